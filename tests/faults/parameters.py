"""Wrong parameters: of every notebook, and of the command line."""

import contextlib
import os
import sys
import time
from dataclasses import fields
from pathlib import Path

import nbformat
import papermill

from odl.__main__ import main
from odl.experiment import Experiment

from .campaign import LOUD, RECOVERED, SILENT, Edit, Row, ended, files_below, fresh_root, in_a_child

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LIMIT = 10  # seconds
WRONG = {  # parameter → typo, wrong type, out of range, empty
    "task": ["inpant", "", 3, None, ["inpaint"]],
    "dataset": ["nowhere", "", 3, None, "/nowhere/at/all"],
    "profile": ["demoo", "", 3, None, True],
    "seed": [-1, "zero", "", 1.5, True, None, 2**40],
    "seeds": [-1, "zero", "", [], [0, -1], [0.5], "[0, -1]", "[0, one]", "[]", None],
    "device": ["gpu", "", 0, None],
    "train": ["false", "", 0, None],
    "systems": ["bm3d", [], ["bm4d"], "[bm3d, bm4d]", "[]", "", None],
    "sigmas": [25, [], [0], ["25"], "[25, 0]", "[25, many]", None],
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


def cells_of(notebook: Path) -> tuple[str, str]:
    """The cell of parameters and the first that is executed after it."""
    code = [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "code"]
    assert "parameters" in code[0].metadata.tags
    return code[0].source, code[1].source


def cases() -> list[tuple[Path, str, object]]:
    """Every notebook × every parameter of it, and one more × every wrong value."""
    return [
        (notebook, name, value)
        for notebook in NOTEBOOKS
        for name in [*papermill.inspect_notebook(notebook), "tsak"]
        for value in WRONG[name]
    ]


def run_cells(_, cells, name, value, report):
    """What papermill does with a parameter, in this process: cell, injected value, next cell. Status 1 on an error."""
    namespace = {"__name__": "__main__", "In": [f"# Parameters\n{name} = {value!r}\n"]}
    try:
        exec(cells[0], namespace)
        namespace[name] = value
        exec(cells[1], namespace)
    except Exception as error:
        lines = getattr(error, "_render_traceback_", lambda: ["a", "traceback"])()
        Path(report).write_text("\n".join(lines))
        sys.exit(1)


def run_command(_, arguments, report):
    with open(report, "w") as file, contextlib.redirect_stderr(file):
        sys.exit(main(arguments))


def refused(name: str, target, *arguments) -> tuple[str, float]:
    """Run it in a process of its own: the exit status is not 0, one line names the parameter, nothing is written."""
    with fresh_root(demo=False) as root:
        report = root.with_name(f"{root.name}-report")
        os.chdir(root)
        start = time.perf_counter()
        status = ended(in_a_child(target, *arguments, report), LIMIT)
        seconds = time.perf_counter() - start
        said = report.read_text().strip() if report.exists() else ""
        report.unlink(missing_ok=True)
        os.chdir(ROOT)
        if status == 0 or files_below(root):
            return SILENT, seconds
        return (RECOVERED if status and name in said and "\n" not in said else LOUD), seconds


def notebooks(n):
    """Cases of all notebooks, evenly where there are more than n; each in a process of its own."""
    wrong = cases()
    cells = {notebook: cells_of(notebook) for notebook in NOTEBOOKS}
    for i in range(n):
        notebook, name, value = wrong[i * len(wrong) // n]
        yield refused(name, run_cells, cells[notebook], name, value)


def commands(n):
    for i in range(n):
        option, value = OPTIONS[i * len(OPTIONS) // n]
        name = value.partition("=")[0] if option == "--set" else option.strip("-")
        yield refused(name, run_command, ["train", "--profile", "smoke", option, value])


CHOICES = Edit("odl.experiment.choice", "not isinstance(value, str) or value not in options", "False")
INTEGERS = Edit("odl.experiment.integer", "not low <= value <= high", "False")

ROWS = {
    "parameters": Row(
        "A wrong parameter costs seconds",
        "every notebook × every parameter × typo, wrong type, out of range, empty, unknown",
        len(cases()),
        notebooks,
        "names of tasks, profiles and devices are not looked up, and numbers have no range",
        (CHOICES, INTEGERS),
        12,
    ),
    "commands": Row(
        "A wrong option costs seconds",
        "every option of `python -m odl train` × the same",
        len(OPTIONS),
        commands,
        "names of tasks, profiles and devices are not looked up, and numbers have no range",
        (CHOICES, INTEGERS),
        12,
    ),
}
