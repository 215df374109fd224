"""What a reader's own rows are, so that a changed function is never taken for the one that was measured."""

import hashlib
import re
from functools import partial
from reprlib import recursive_repr
from types import CellType, CodeType, FunctionType, MethodType, ModuleType


def code_of(rows: list) -> str:
    """Return a hash of the code of some rows; empty where there are none.

    The bytecode counts, with its constants, defaults and closure, because workers have no source of a notebook's cells.
    What a function finds by a global name does not count, and of a class or a module in a closure only the name does. A
    list in a closure counts as it is when the run is named: a schedule with a memory is a class (`odl/schedules.py`).
    """
    return hashlib.sha256(repr(described(rows)).encode()).hexdigest()[:16] if rows else ""


def is_own(row) -> bool:
    """Return True if a row is made of a reader's code: a function, a class, or an instance that has one."""
    if isinstance(row, partial):
        return is_own(row.func)
    if isinstance(row, FunctionType | type):
        return (row.__module__ or "").split(".")[0] != "odl"  # None where it was executed without a module
    return is_own(type(row)) or any(is_own(each) for each in vars(row).values() if callable(each))


@recursive_repr("itself")  # a function may lie in its own closure
def described(value):
    """Return what a value is made of, as nested tuples of names, numbers and bytecode."""
    if isinstance(value, partial):
        return "partial", described(value.func), described(value.args), described(value.keywords)
    if isinstance(value, staticmethod | classmethod | property):
        return described(value.fget if isinstance(value, property) else value.__func__)
    if isinstance(value, MethodType):
        return described(value.__func__), described(value.__self__)
    if isinstance(value, FunctionType):
        parts = described(value.__code__), described(value.__defaults__), described(value.__kwdefaults__)
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        # The cell `__class__` is super()'s, and some are still empty.
        held = [cell.cell_contents for name, cell in cells if name != "__class__" and cell != CellType()]
        held = [each.__name__ if isinstance(each, type | ModuleType) else described(each) for each in held]
        parts += (held,) * bool(held)
        return (*parts, described(value.__wrapped__)) if hasattr(value, "__wrapped__") else parts
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_varnames[: value.co_argcount], described(value.co_consts)
    if isinstance(value, dict):
        return [(key, described(each)) for key, each in sorted(value.items(), key=str)]
    if isinstance(value, list | tuple):
        return [described(each) for each in value]
    if isinstance(value, type):
        counted = ("__init__", "__call__")
        methods = {name: each for name, each in vars(value).items() if not name.startswith("__") or name in counted}
        return value.__qualname__, described(methods), [described(base) for base in value.__bases__ if own_class(base)]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return repr(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # an array or a tensor
        return str(value.dtype), tuple(value.shape), repr(value.tolist())
    if not hasattr(value, "__dict__"):
        return re.sub(" at 0x[0-9A-Fa-f]+", "", repr(value))  # without its place in memory
    kind = described(type(value)) if own_class(type(value)) else type(value).__qualname__
    return kind, described(value.__dict__)


def own_class(value: type) -> bool:
    """Return True if a class is neither Python's, PyTorch's nor this package's."""
    return value.__module__.split(".")[0] not in ("builtins", "torch", "odl", "abc")
