"""Wrong parameters: of every notebook, and of the command line."""

import io
import random
import time
from contextlib import chdir, redirect_stderr
from dataclasses import fields
from functools import cache
from pathlib import Path

import nbformat
import papermill

from companion.cli import main
from companion.disk import files
from odl.experiment import Experiment

from .campaign import LOUD, RECOVERED, SILENT, files_below, row

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LIMIT = 10  # seconds
WRONG = {  # parameter → typo, wrong type, out of range, empty
    "task": ["inpant", "", 3, None, ["inpaint"]],
    "dataset": ["nowhere", "", 3, None, "/nowhere/at/all"],
    "profile": ["demoo", "", 3, None, True],
    "seed": [-1, "zero", "", 1.5, True, None, 2**40],
    "seeds": [-1, "zero", "", [], [0, -1], [0.5], "[0, -1]", "[0, one]", "[]", "[0, 1", "0 1 2", "(0, 1)", "0,1", None],
    "schedules": ["", 3, None, ["rigid"], "[rigid]", [3]],
    "device": ["gpu", "", 0, None],
    "train": ["never", "", 0, None],
    "systems": [[], ["bm4d"], "[bm3d, bm4d]", "[]", "", None],
    "sigmas": [[], [0], ["25"], "[25, 0]", "[25, many]", "25 50", None],
    "sigma": [0, -25, "many", float("nan"), None],
    "photographs": ["nowhere", "", 3, None],
    "image": ["nowhere.png", 3, None],
    "mask": ["nowhere.png", 3, None],
    "longest": [63, "long", None],
    "size": [63, 513, "big", None],
    "stride": [0, 65, "eight", 2.5, None],
    "images": [0, -1, "three", 10**9, 2.5, None],
    "tsak": ["inpaint"],  # no notebook has it
}
NUMBERS = [field.name for field in fields(Experiment)][5:]
OPTIONS = [[option, value] for option in ("--task", "--schedule", "--profile", "--dataset") for value in ("x", "", "3")]
OPTIONS += [["--seed", "-1"], ["--device", "gpu"], ["--device", ""]]
OPTIONS += [["--set", f"{name}={value}"] for name in NUMBERS for value in ("", "x", "-1", "null", "true", "[]", "NaN")]
OPTIONS += [["--set", f"{name}x=1"] for name in NUMBERS]
OPTIONS.remove(["--set", "sharpness=-1"])  # which is a good value


@cache
def cells_of(notebook: Path) -> tuple[str, str]:
    """The cell of parameters and the first that is executed after it."""
    code = [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "code"]
    [i] = [i for i, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    return code[i].source, code[i + 1].source


def cases() -> list[tuple[Path, str, object]]:
    """Every notebook × every parameter of it, and one more × every wrong value."""
    parameters = [(n, name) for n in NOTEBOOKS for name in [*papermill.inspect_notebook(n), "tsak"]]
    return [(notebook, name, value) for notebook, name in parameters for value in WRONG[name]]


CASES = random.Random(0).sample(cases(), len(cases()))  # in an order of which the first few are of all kinds
OPTIONS = random.Random(0).sample(OPTIONS, len(OPTIONS))


def begun(notebook: Path, name: str, value) -> dict:
    """What papermill does with a parameter: cell, injected value, next cell. Returns the notebook's names."""
    parameters, first = cells_of(notebook)
    namespace = {"In": [f"# Parameters\n{name} = {value!r}\n"]}
    exec(parameters, namespace)
    namespace[name] = value
    exec(first, namespace)
    return namespace


def said_by(act, *arguments) -> str | None:
    """What a user reads of the error that ends it; None where there is none."""
    with chdir(files.root()), redirect_stderr(io.StringIO()) as said:
        try:
            status = act(*arguments)
        except Exception as error:
            return "\n".join(getattr(error, "_render_traceback_", lambda: ["a", "traceback"])())
    return said.getvalue().strip() if status == 2 else None


def refused(name: str, act, *arguments) -> tuple[str, float]:
    """Recovered when one line names the parameter within seconds, and nothing is written."""
    start = time.perf_counter()
    said, seconds = said_by(act, *arguments), time.perf_counter() - start
    if said is None or files_below(files.root()):
        return SILENT, seconds
    return (RECOVERED if name in said and "\n" not in said and seconds < LIMIT else LOUD), seconds


@row(
    len(CASES),
    12,
    "A wrong parameter costs seconds",
    "every notebook × every parameter × typo, wrong type, out of range, empty, unknown",
)
def parameters(i, chance):
    return refused(CASES[i][1], begun, *CASES[i])


@row(len(OPTIONS), 12, "A wrong option costs seconds", "every option of `python -m odl train` × the same")
def commands(i, chance):
    option, value = OPTIONS[i]
    name = value.partition("=")[0] if option == "--set" else option.strip("-")
    return refused(name, main, ["train", "--profile", "smoke", option, value])
