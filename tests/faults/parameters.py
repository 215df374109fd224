"""Wrong parameters: of every notebook, and of the command line."""

import contextlib
import random
import sys
import tempfile
import time
from dataclasses import fields
from functools import cache
from pathlib import Path

import nbformat
import papermill

from odl.__main__ import main
from odl.experiment import Experiment
from odl.machine import files

from .campaign import LOUD, RECOVERED, SILENT, ended, files_below, in_a_child, row

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LIMIT = 10  # seconds
WRONG = {  # parameter → typo, wrong type, out of range, empty
    "task": ["inpant", "", 3, None, ["inpaint"]],
    "dataset": ["nowhere", "", 3, None, "/nowhere/at/all"],
    "profile": ["demoo", "", 3, None, True],
    "seed": [-1, "zero", "", 1.5, True, None, 2**40],
    "seeds": [-1, "zero", "", [], [0, -1], [0.5], "[0, -1]", "[0, one]", "[]", None],
    "schedules": ["", 3, None, ["rigid"], "[rigid]", [3]],
    "device": ["gpu", "", 0, None],
    "train": ["no", "", 0, None],
    "systems": [[], ["bm4d"], "[bm3d, bm4d]", "[]", "", None],
    "sigmas": [[], [0], ["25"], "[25, 0]", "[25, many]", None],
    "sigma": [0, -25, "25", float("nan"), None],
    "photographs": ["nowhere", "", 3, None],
    "image": ["nowhere.png", 3, None],
    "mask": ["nowhere.png", 3, None],
    "longest": [63, "400", None],
    "size": [63, 513, "80", None],
    "stride": [0, 65, "8", 2.5, None],
    "images": [0, -1, "3", 10**9, 2.5, None],
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


def run_cells(_, report, parameters, first, name, value):
    """What papermill does with a parameter, in this process: cell, injected value, next cell. Status 1 on an error."""
    namespace = {"__name__": "__main__", "In": [f"# Parameters\n{name} = {value!r}\n"]}
    try:
        exec(parameters, namespace)
        namespace[name] = value
        exec(first, namespace)
    except Exception as error:
        lines = getattr(error, "_render_traceback_", lambda: ["a", "traceback"])()
        Path(report).write_text("\n".join(lines), encoding="utf-8")
        sys.exit(1)


def run_command(_, report, *arguments):
    with open(report, "w", encoding="utf-8") as file, contextlib.redirect_stderr(file):
        sys.exit(main(arguments))


def refused(name: str, target, *arguments) -> tuple[str, float]:
    """Run it in a process of its own: the exit status is not 0, one line names the parameter, nothing is written."""
    root = files.root()
    with tempfile.NamedTemporaryFile("r+", encoding="utf-8") as report, contextlib.chdir(root):
        start = time.perf_counter()
        status = ended(in_a_child(target, report.name, *arguments), LIMIT)
        seconds, said = time.perf_counter() - start, report.read().strip()
    if status == 0 or files_below(root):
        return SILENT, seconds
    return (RECOVERED if status and name in said and "\n" not in said else LOUD), seconds


@row(
    len(CASES),
    12,
    "A wrong parameter costs seconds",
    "every notebook × every parameter × typo, wrong type, out of range, empty, unknown",
)
def parameters(i, chance):
    notebook, name, value = CASES[i]
    return refused(name, run_cells, *cells_of(notebook), name, value)


@row(len(OPTIONS), 12, "A wrong option costs seconds", "every option of `python -m odl train` × the same")
def commands(i, chance):
    option, value = OPTIONS[i]
    name = value.partition("=")[0] if option == "--set" else option.strip("-")
    return refused(name, run_command, "train", "--profile", "smoke", option, value)
