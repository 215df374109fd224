"""What every notebook does: check its parameters, and grade its exercise."""

import os
import re
from collections.abc import Callable
from functools import partial
from numbers import Number
from pathlib import Path

import numpy as np
import yaml

from companion.data import sets
from companion.training.device import DEVICES
from odl.experiment import PROFILES, check_dataset, is_folder
from odl.parameters import ParameterError, choice, integer, nearest, number

DRIVES = "/content/drive/MyDrive", "/kaggle/working"  # of Colab, once it is mounted, and of Kaggle
TEXTS = {"task", "dataset", "network", "profile", "device", "photographs", "image"}  # names and paths


def set_up(namespace: dict, names: str) -> None:
    """Prepare the kernel, and refuse a parameter that papermill injected and the notebook does not know.

    `namespace` is the notebook's globals, which hold the cells that ran as `In`; `names` are its parameters. Papermill
    itself only logs a misspelt one. What else a reader has defined in the kernel is no concern, so that every cell can
    run again. Where a hosted service has mounted a drive, results go there unless `ODL_ROOT` says where.
    """
    shell = namespace.get("get_ipython", lambda: None)()
    if hasattr(shell, "kernel") and not os.environ.get("MPLBACKEND", "").startswith("module://"):
        shell.enable_matplotlib("inline")  # whatever MPLBACKEND says
    drive = next(filter(os.path.isdir, DRIVES), None)
    if drive and not os.environ.get("ODL_ROOT"):
        os.environ["ODL_ROOT"] = os.path.join(drive, "on-demand-learning")
        print("Results and checkpoints go to", os.environ["ODL_ROOT"])
    known = names.split()
    cells = [cell for cell in namespace.get("In", []) if cell.startswith("# Parameters\n")]
    for name in re.findall(r"(?m)^(?!PAPERMILL_)(\w+) = ", "\n".join(cells)):
        if name not in known:
            raise ParameterError(f"unknown parameter {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    for name in known:
        namespace[name] = meant(name, namespace[name])
    for name, options in (("device", DEVICES), ("profile", PROFILES)):
        if name in known:
            choice(name, namespace[name], options)
    for name in {"dataset", "photographs"} & {*known}:
        check_dataset(namespace[name], name)
        if is_folder(namespace[name]) and not os.path.isdir(os.path.expanduser(namespace[name])):
            raise ParameterError(f"{name}={namespace[name]!r}: no such folder")
    if "train" in known and not isinstance(namespace["train"], bool):
        raise ParameterError(f"train={namespace['train']!r} is not True or False")


# Values


def meant(name: str, value):
    """Return a parameter as the notebook needs it: a name or a path as text, of all else what its text means in YAML.

    Papermill's -p passes lists and flags as text, and makes numbers of names such as 2023. Raises ParameterError.
    """
    if name in TEXTS:
        if not isinstance(value, str | os.PathLike):
            how = f"a path such as ./NAME is taken as typed, and so is what follows papermill's -r {name}"
            raise ParameterError(f"{name}={value!r} is no text but {type(value).__name__}; {how}")
        return os.fspath(value)
    try:
        return yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError:
        raise ParameterError(f"{name}={value!r} cannot be read; a list is written [0, 1, 2]") from None


def check_seeds(seeds, example: str = "[0, 1, 2]") -> list[int]:
    """Return a list of seeds; of a lone one a line says that it is no count. Raises ParameterError."""
    found = several("seeds", seeds, partial(integer, low=0, high=2**31), example)
    if isinstance(seeds, int):
        print(f"seeds={seeds} is one run each, with seed {seeds}; several seeds are a list, such as [0, 1, 2]")
    return found


def check_sigmas(sigmas) -> list[float]:
    """Return a list of noise levels σ on the 0–255 scale, also of a lone one. Raises ParameterError."""
    return several("sigmas", sigmas, partial(number, low=1, high=120), "[15, 25]")


def several(name: str, values, check, example: str = "") -> list:
    """Return the values of a list, or a lone one, each once; `example` is a list of numbers, where those are meant.

    `check(name, value)` raises ParameterError.
    """
    values = values if isinstance(values, list | tuple) else [values]
    if not values:
        raise ParameterError(f"{name}=[] is empty")
    for value in values:
        if example and not isinstance(value, Number):
            raise ParameterError(f"{name}={value!r} is no number; a list is written {example}")
        if len(parts := re.findall(r"[^\s,()]+", value) if isinstance(value, str) else []) > 1:
            raise ParameterError(f"{name}={value!r} is no list; a list is written [{', '.join(parts)}]")
        check(name, value)
    return list(dict.fromkeys(values))


def check_image(name: str, value) -> Path:
    """Return the path of an image: a file, or a demo photograph by its name."""
    photographs = [file for files in sets.DEMO.values() for file in files]
    if value in photographs:
        return sets.find("demo") / value
    path = os.path.expanduser(value) if isinstance(value, str) else ""
    if not os.path.isfile(path):
        options = ", ".join(photographs)
        raise ParameterError(f"{name}={value!r} is neither a file nor one of {options}{nearest(value, photographs)}")
    return Path(path)


# The exercise


class NotYet(AssertionError):
    """An answer that does not pass: Jupyter shows its one line and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


PASSED, NOT_TESTED = "The tests of this exercise pass.", "Not tested: nothing is measured here. Set train = True."
POINTS, HALF = 2, 1  # nbgrader reads a number below a cell as its points, and anything else as all of them


def grade(answer: dict | None, statements: Callable) -> str | int:
    """Return what an answer earns: all points where all `statements(answer)` hold, half where half of them do.

    A line names the first that does not hold; where fewer than half do, it is raised as NotYet.
    """
    points, line = graded(answer, statements)
    if points == 0:
        raise NotYet(f"Not yet. {line}")
    if points == HALF:
        print(f"Half of it. {line}")
        return HALF
    return line


def graded(answer: dict | None, statements: Callable) -> tuple[int | None, str]:
    """Return the points of an answer, None where nothing is measured, and a line that says why."""
    if answer is None:
        return 0, "`answer` is still the stand-in. The exercise says what to put into it."
    try:
        found = statements(answer)
        wrong = [text for text, holds in found.items() if not np.all(holds)]
    except KeyError as error:
        return 0, f"`answer` has no {error}."
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        problem = " ".join(str(error).split())
        return 0, f"`answer` does not have the form that the exercise asks for ({problem})."
    if wrong:
        return HALF * (2 * len(wrong) <= len(found)), f"This should hold: {wrong[0]}."
    return (POINTS, PASSED) if found else (None, NOT_TESTED)


def check_samples(samples: dict, statements: Callable) -> None:
    """Raise AssertionError where the tests give a sample, a student's words → (points, answer), other points."""
    for words, (points, answer) in samples.items():
        given, line = graded(answer, statements)
        assert given in (points, None), f"{given} points, not {points}: “{words}” ({line})"
