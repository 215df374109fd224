"""What every notebook does first and last: check its parameters, grade its exercise, record what it was run with."""

import ast
import platform
import time
from collections.abc import Callable

import numpy as np
import torch

from odl.data import packs
from odl.experiment import PROFILES
from odl.machine import files, store
from odl.machine.provenance import commit
from odl.parameters import DEVICES, ParameterError, choice, flag, nearest, truth


def record(**parameters) -> dict:
    """What a notebook was run with: its parameters, hashes and versions, and the results files behind what it shows."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    hashes = {"config": files.seal_of(parameters), "data": data_hash(parameters.get("dataset"))}
    when = {"commit": commit(), "versions": versions, "time": time.strftime("%Y-%m-%d %H:%M")}
    return {"parameters": parameters, "sha256": hashes} | when | {"results": store.names_of_used()}


def data_hash(dataset: str | None) -> str | None:
    """SHA-256 of a set's packed pixels, None where it is not packed."""
    index = packs.folder_of(dataset or "") / "index.json"
    return files.unseal(index)["sha256"] if dataset and index.exists() else None


def check_parameters(namespace: dict, names: str) -> None:
    """Refuse a parameter that papermill injected and the notebook does not know. `names`: the known ones.

    `namespace` is the notebook's globals, which hold the cells that ran as `In`; papermill itself only logs a misspelt
    parameter. What else a reader has defined in the kernel is no concern, so that every cell can run again.
    """
    known = names.split()
    for name in (name for cell in namespace.get("In", []) for name in injected(cell)):
        if name not in known:
            raise ParameterError(f"unknown parameter {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    if "device" in namespace:
        choice("device", namespace["device"], DEVICES)
    if "profile" in namespace:
        choice("profile", namespace["profile"], PROFILES)
    if "train" in namespace:
        namespace["train"] = truth(namespace["train"])
        flag("train", namespace["train"])


def injected(cell: str) -> list[str]:
    """The names that a cell of papermill sets, but for its own PAPERMILL_…; none for any other cell."""
    if not cell.startswith("# Parameters\n"):
        return []
    names = [target.id for node in ast.parse(cell).body if isinstance(node, ast.Assign) for target in node.targets]
    return [name for name in names if not name.startswith("PAPERMILL_")]


class NotYet(AssertionError):
    """An answer that does not pass: Jupyter shows its one line and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def grade(answer: dict | None, statements: Callable) -> str:
    """Raise NotYet with the first of `statements(answer)`, text → whether it holds, that does not."""
    if answer is None:
        raise NotYet("Not yet. `answer` is still the stand-in. The exercise says what to put into it.")
    try:
        wrong = [text for text, holds in statements(answer).items() if not np.all(holds)]
    except KeyError as error:
        raise NotYet(f"Not yet. `answer` has no {error}.") from None
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise NotYet(f"Not yet. `answer` does not have the form that the exercise asks for ({problem}).") from None
    if wrong:
        raise NotYet(f"Not yet. This should hold: {wrong[0]}.")
    return "The tests of this exercise pass."
