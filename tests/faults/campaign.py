"""What every row of the campaign shares: outcomes, broken promises, roots, processes that are killed."""

import atexit
import hashlib
import inspect
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import torch
from tqdm.auto import tqdm

from odl import data, datasets
from odl.paths import OneLine

PROCESSES = multiprocessing.get_context("forkserver")  # a server with torch imported makes children in milliseconds
PRELOADED = ["odl.sweep", "odl.scorecard", "skimage.metrics", "torch._dynamo"]
PRELOADED += [f"tests.faults.{name}" for name in ("training", "files", "sources", "parameters")]
PROCESSES.set_forkserver_preload(PRELOADED)
RECOVERED, LOUD, SILENT = "recovered", "loud", "silent"
BROKEN = 20  # injections with the promise broken are enough to see it break
PATIENCE = 120  # seconds after which a process counts as hanging


def located(place: str) -> tuple:
    """The module and the name that `odl.train.fit` stands for."""
    module, name = place.rsplit(".", 1)
    return import_module(module), name


def swapped(place: str, value) -> Callable:
    """Put a value in the place of an attribute. Returns what puts it back."""
    module, name = located(place)
    original = getattr(module, name)
    setattr(module, name, value)
    return lambda: setattr(module, name, original)


@dataclass(frozen=True)
class Edit:
    """A promise broken: a function of odl with a piece of its source replaced."""

    place: str  # odl.train.fit
    old: str
    new: str

    def apply(self) -> Callable:
        """Replace the function. Returns what puts it back."""
        module, name = located(self.place)
        original = getattr(module, name)
        source = getattr(original, "edited", None) or textwrap.dedent(inspect.getsource(original))
        assert source.count(self.old) == 1, f"{self.place} has no line {self.old!r}"
        made = {}
        source = source.replace(self.old, self.new)
        exec(source, vars(module), made)
        made[name].edited = source  # a second edit goes on from here
        return swapped(self.place, made[name])


@dataclass(frozen=True)
class Setting:
    """A promise broken: an attribute of a module changed."""

    place: str
    value: object

    def apply(self) -> Callable:
        return swapped(self.place, self.value)


TEMPORARY = 'temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")'
IN_PLACE = """file = open(path, "wb", buffering=0)
    for start in range(0, len(content), 4096):
        file.write(content[start : start + 4096])
    return"""
DIRECT = Edit("odl.paths.write_atomically", TEMPORARY, IN_PLACE)  # in place and piece by piece, no rename


@dataclass(frozen=True)
class Row:
    """One line of the table: `inject(n)` yields an outcome for each of n injections."""

    promise: str
    fault: str
    injections: int
    inject: Callable[[int], Iterator[tuple[str, float]]]
    mutation: str  # what is broken, in words
    edits: tuple
    short: int  # injections in the short version

    @property
    def broken_injections(self) -> int:
        """As many where a row is of hundreds, which are cheap; a few where each takes processes."""
        return self.injections if self.injections >= 400 else min(self.injections, BROKEN)


def measure(row: Row, n: int, name: str = "", edits=()) -> dict:
    """Inject n faults, with a promise broken by `edits`: how many of each outcome, and the worst recovery time."""
    ended(in_a_child(nothing))  # starting the server of processes is no part of a recovery
    outcomes, worst, start = Counter(), 0.0, time.perf_counter()
    with broken(edits), tqdm(total=n, desc=name, leave=False, unit="fault", disable=None) as bar:
        for outcome, seconds in row.inject(n):
            outcomes[outcome] += 1
            worst = max(worst, seconds if outcome == RECOVERED else 0.0)
            bar.set_postfix(outcomes, refresh=False)
            bar.update()
    counts = {kind: outcomes[kind] for kind in (RECOVERED, LOUD, SILENT)}
    return {"injected": outcomes.total()} | counts | {"worst_seconds": worst, "seconds": time.perf_counter() - start}


@contextmanager
def broken(edits):
    """With the promise broken, here and in every process that is started meanwhile."""
    global EDITS
    undo, EDITS = [edit.apply() for edit in edits], tuple(edits)
    try:
        yield
    finally:
        EDITS = ()
        for put_back in reversed(undo):
            put_back()


EDITS: tuple = ()


# Judging what happened


def judged(act: Callable, right: Callable) -> tuple[str, float]:
    """Recovered when the answer is right or the error is one line for the user; silent when a wrong answer is given."""
    start = time.perf_counter()
    with quiet():
        try:
            outcome = RECOVERED if right(act()) else SILENT
        except OneLine as error:
            outcome = LOUD if "\n" in str(error) else RECOVERED
        except Exception:
            outcome = LOUD
    return outcome, time.perf_counter() - start


@contextmanager
def quiet():
    """Without what the code prints: messages and progress bars of odl, in a campaign that has its own."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def flipped(content: bytes, chance: random.Random) -> bytes:
    """With one bit turned."""
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def truncated(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


DAMAGES = (flipped, truncated)


def digest(value) -> str:
    """SHA-256 of nested dicts, lists, numbers and tensors, every bit of them."""
    total = hashlib.sha256()

    def add(part):
        if isinstance(part, torch.Tensor):
            total.update(f"{part.dtype}{tuple(part.shape)}".encode() + part.contiguous().numpy().tobytes())
        elif isinstance(part, dict):
            for key in sorted(part, key=str):
                total.update(str(key).encode())
                add(part[key])
        elif isinstance(part, list | tuple):
            total.update(f"[{len(part)}]".encode())
            for item in part:
                add(item)
        else:
            total.update(repr(part).encode())

    add(value)
    return total.hexdigest()


# Where it happens


@cache
def packed_demo() -> Path:
    """The demo photographs, packed once for all roots."""
    folder = tempfile.mkdtemp(prefix="odl-faults-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with rooted(Path(folder)), quiet():
        return data.prepare("demo")


@contextmanager
def rooted(folder: Path):
    """ODL_ROOT is `folder`, and ODL_DATA is nowhere."""
    before = {name: os.environ.pop(name, None) for name in ("ODL_ROOT", "ODL_DATA")}
    os.environ["ODL_ROOT"] = str(folder)
    try:
        yield folder
    finally:
        os.environ.pop("ODL_ROOT")
        os.environ.update({name: value for name, value in before.items() if value is not None})


@contextmanager
def fresh_root(demo=True):
    """A root of its own, with the demo pack linked into it."""
    pack = packed_demo() if demo else None
    with tempfile.TemporaryDirectory(prefix="odl-fault-") as folder, rooted(Path(folder)):
        if demo:
            datasets.home("demo").mkdir(parents=True)
            (datasets.home("demo") / pack.name).symlink_to(pack)
        yield Path(folder)


# Processes


def in_a_child(target: Callable, *arguments, shared=None):
    """Start `target(shared, *arguments)` in a process of its own, with the same root and the same broken promises."""
    child = PROCESSES.Process(target=child_main, args=(EDITS, dict(os.environ), target, shared, arguments))
    child.start()
    return child


def nothing(_):
    """A process that ends at once."""


def child_main(edits, environment, target, shared, arguments):
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    for edit in edits:
        edit.apply()
    nowhere = open(os.devnull, "w")  # noqa: SIM115
    sys.stdout = sys.stderr = nowhere
    target(shared, *arguments)


def number(kind="d", value=0):
    """A number shared with a child."""
    return PROCESSES.Value(kind, value, lock=False)


def ended(child, seconds=PATIENCE) -> int | None:
    """The exit status of a child, None where it hangs; such a child is killed."""
    child.join(seconds)
    if child.is_alive():
        child.kill()
        child.join()
        return None
    return child.exitcode


def killed(child) -> bool:
    """kill -9; whether the child was still at work."""
    child.kill()
    child.join()
    return child.exitcode == -signal.SIGKILL


def deadly(name: str, count: int, when: str) -> None:
    """From now on this process dies at the given call of a function of `os`, before or after it."""
    original, calls = getattr(os, name), []

    def call(*arguments):
        calls.append(arguments)
        if len(calls) == count and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = original(*arguments)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(os, name, call)


def files_below(folder: Path) -> set[str]:
    """Every file but locks, relative."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")}
