"""Every notebook runs at the smoke profile, and refuses what a user can get wrong, with nothing written."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import repeat
from pathlib import Path

import children
import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import select_figure_formats
from papermill import inspect_notebook
from traitlets.config import Config

from companion import published
from companion.cli import companion
from companion.notebook import TEXTS
from companion.runs import catalogue
from odl.parameters import ParameterError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAPERMILL = Path(sys.executable).with_name("papermill")
NAMES = [notebook.stem for notebook in NOTEBOOKS]
SEEDED = [notebook.stem for notebook in NOTEBOOKS if '"seeds = [' in notebook.read_text(encoding="utf-8")]


def papermill(name: str, folder: Path, variables=None, **parameters):
    """papermill in a process of its own, writing out.ipynb below `folder`, with environment variables of its own."""
    command = [PAPERMILL, ROOT / "notebooks" / f"{name}.ipynb", "out.ipynb", "--no-progress-bar"]
    for parameter, value in parameters.items():
        command += ["-p", parameter, value]
    env = os.environ | {"ODL_ROOT": str(folder), "OMP_NUM_THREADS": "1"} | (variables or {})
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)


def run(notebook: Path, folder: Path, edit=("", ""), **parameters) -> dict:
    """The same without a kernel, in a child that has imported already: its error, what it shows, says and prints.

    `edit` is a text of the cells and what a reader puts in its place.
    """
    sources = [cell.source.replace(*edit) for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "code"]
    sources.insert(2, "# Parameters\n" + "".join(f"{name} = {value!r}\n" for name, value in parameters.items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODL_ROOT", str(folder))
        child = children.in_a_child(run_cells, folder, sources)
    assert children.ended(child, 240) == 0
    return json.loads((folder / "shown.json").read_text())


def run_and_draw(shell, source):
    """Run a cell, then draw every figure that it has left open, as the inline backend does."""
    result = shell.run_cell(source, store_history=True)
    for number in plt.get_fignums():
        plt.figure(number).savefig(io.BytesIO())
        shell.display_pub.outputs.append({"data": {"image/png": ""}})
    plt.close("all")
    return result


def run_cells(folder, sources):
    """Run cells as a kernel does, until one fails; write what became of them."""
    os.chdir(folder)
    shell, said = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}})), io.StringIO()
    select_figure_formats(shell, "png")
    shell.display_pub = CapturingDisplayPublisher()
    shown = shell.display_pub.outputs
    shell.display_trap.hook = CapturingDisplayHook(shell=shell, outputs=shown)
    with redirect_stderr(said), redirect_stdout(printed := io.StringIO()):
        results = map(run_and_draw, repeat(shell), sources)
        failed = next((result for result in results if not result.success), None)
    error = failed and traceback.format_exception_only(failed.error_in_exec or failed.error_before_exec)[-1].strip()
    kinds = [kind for output in shown for kind in output["data"]]
    found = {"error": error, "kinds": kinds, "said": said.getvalue(), "printed": printed.getvalue()}
    (folder / "shown.json").write_text(json.dumps(found))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_stored_without_outputs_and_begins_with_parameters_and_a_folded_set_up(notebook):
    """For any kernel, and with one cell to change."""
    content = nbformat.read(notebook, 4)
    cells, code = content.cells, [cell for cell in content.cells if cell.cell_type == "code"]
    assert content.metadata.get("kernelspec", {}).get("name", "python3") == "python3"
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert ["parameters" in cell.metadata.get("tags", []) for cell in code] == [i == 1 for i in range(len(code))]
    assert "notebook.set_up(" in code[2].source and code[2].metadata.jupyter.source_hidden
    [asked] = [i for i, cell in enumerate(cells) if "**Change it.**" in cell.source]
    assert "*What to expect:*" in cells[asked].source and "jupyter" not in cells[asked + 1].metadata
    assert cells[asked + 1].cell_type == "code" and "hide-input" not in cells[asked + 1].metadata.get("tags", [])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_links_lead_to_files_beside_the_notebook(notebook):
    """In the book a link to a notebook of several pages leads to the first of them."""
    text = "\n".join(cell.source for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert links and [link for link in links if not (notebook.parent / link).is_file()] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_runs_at_smoke(notebook, tmp_path):
    """What it has trained is what the graph of the sweep says that its page shows."""
    found = run(notebook, tmp_path, profile="smoke")
    assert found["error"] is None, found["said"]
    assert {"image/png", "text/html"} & {*found["kinds"]} and "Warning" not in found["said"]
    every, folder = catalogue.measurements("smoke", "demo", [0]), tmp_path / "data" / "results"
    page = "table1-inpaint" if notebook.stem == "table1" else notebook.stem
    shown = {one.name for one in catalogue.shown_on(page, every, "smoke", "demo", [0])}
    known = {one.name for one in every}
    written = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.json")}
    assert written & known <= shown and (written & known or page in ("scorecard", "algorithm1", "add_your_own"))


@pytest.mark.parametrize("rule", ["1 / np.array(psnr)", "np.arange(1.0, n + 1)"])
def test_another_equation_3_is_told_from_the_library_s_and_the_exercise_is_reached(rule, tmp_path):
    theirs = "1 / np.array(psnr)"
    edit = f"if psnr is None else {theirs}\n", f"if psnr is None else {rule}\n"
    found = run(ROOT / "notebooks" / "algorithm1.ipynb", tmp_path, edit, profile="smoke")
    assert found["error"] is None and "turned round, the last two epochs" in found["printed"]
    assert ("They are the same in every epoch." in found["printed"]) == (rule == theirs)
    assert ("Your Equation 3 is another rule than the library's." in found["printed"]) == (rule != theirs)
    assert ("From epoch 2 on your numbers are not the library's" in found["printed"]) == (rule != theirs)


@pytest.mark.parametrize(
    ("name", "task", "dataset"),
    [("table1", "denoise", "demo-native"), ("table1", "inpaint", "demo"), ("table2", "inpaint", "demo")]
    + [(name, "denoise", "demo") for name in ("table3", "db11_spectrum", "gallery")],
)
def test_the_command_that_is_told_trains_what_is_missing(name, task, dataset, root, tmp_path, capsys):
    """And no other size of the photographs where the runs are Table 3's."""
    given = {"task": task} if name == "table1" else {}
    found = run(ROOT / "notebooks" / f"{name}.ipynb", tmp_path, profile="smoke", dataset=dataset, train=False, **given)
    assert found["error"] is None, found["said"]
    [options] = re.findall(r"or run python -m companion reproduce (.*)\.\n", found["printed"])
    page = f"{name}-{task}" if name == "table1" else name
    assert options == f"--profile smoke --dataset {dataset} --page {page} --seeds 0"
    assert companion(["reproduce", *options.split(), "--list"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert {one.run_id for one in catalogue.runs(name, task, dataset, "smoke", [0])} <= listed


@pytest.mark.parametrize("name", ["table1", "fixation", "allocation"])
def test_what_is_measured_on_faces_is_shown_without_them(name, tmp_path, no_shared_data):
    """The README's commands, with what comes with the repository, no photograph, no network and no training."""
    of_faces = Path("data/results/reference/celeba10k-native")
    shutil.copytree(ROOT / of_faces, tmp_path / of_faces)
    before = {*tmp_path.glob("data/results/**/*.json")}
    scale = {"dataset": "celeba10k-native", "profile": "reference", "train": False}
    found = run(ROOT / f"notebooks/{name}.ipynb", tmp_path, task="deblur", **scale)
    assert found["error"] is None and "text/html" in found["kinds"], found["said"]
    table = Path(f"data/results/reference/tables/{name}-celeba10k-native-deblur.csv")
    assert (tmp_path / table).read_text() == (ROOT / table).read_text()
    if name == "table1":
        table = pd.read_csv(ROOT / table)
        assert [*table.schedule[table.worst_gap.notna()]] == [*published.SEVEN, *catalogue.NEWER]
    assert {*tmp_path.glob("data/results/**/*.json")} == before and not (tmp_path / "runs").exists()


FACES = Path("data/results/reference/celeba10k-native")
OF_A_NETWORK = [path.stem for path in NOTEBOOKS if '"network = \\"paper' in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", OF_A_NETWORK)
def test_no_other_network_than_was_asked_for_is_shown_or_written(name, tmp_path, no_shared_data):
    """With every result of the paper's network here, and none of another."""
    for folder in (FACES, FACES.with_name("bsds500")):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*network=*"))
    scale = {"dataset": "bsds500", "profile": "reference", "network": "unet", "train": False}
    found = run(ROOT / f"notebooks/{name}.ipynb", tmp_path, **scale)
    assert found["error"] is None, found["said"]
    assert "A curve is left out" not in found["printed"] and not [*tmp_path.rglob("*.csv")]


@pytest.mark.parametrize(("name", "dataset"), [("table1", "bsds500"), ("allocation", "celeba10k-native")])
def test_the_network_that_was_asked_for_is_written_under_its_name(name, dataset, tmp_path, no_shared_data):
    """On faces, of which both networks have results here."""
    shutil.copytree(ROOT / FACES, tmp_path / FACES)
    scale = {"dataset": dataset, "profile": "reference", "network": "unet", "train": False}
    assert run(ROOT / f"notebooks/{name}.ipynb", tmp_path, task="deblur", **scale)["error"] is None
    [path] = tmp_path.rglob("*.csv")
    assert path.name == f"{name}-celeba10k-native-deblur-unet.csv"
    files = [ROOT / FACES / f"deblur/on_demand-seed{seed}-network=unet.json" for seed in catalogue.SEEDS_OF_FACES]
    contents, table = [json.loads(file.read_text()) for file in files], pd.read_csv(path)
    if name == "allocation":
        assert table["last"].tolist() == pytest.approx(contents[0]["history"][-1]["allocation"])
    else:
        means = [pd.DataFrame(c["evaluation"]).query("level not in ('easy', 'hard')").psnr.mean() for c in contents]
        assert table.set_index("schedule").psnr["on_demand"] == pytest.approx(sum(means) / len(means))


WRONG = {  # parameter → typo, wrong type, out of range, empty
    "task": ["inpant", "", 3, None, ["inpaint"]],
    "dataset": ["nowhere", "", 3, None, "/nowhere/at/all"],
    "profile": ["demoo", "", 3, None, True],
    "network": ["papr", "", 3, None],
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
    "longest": [63, "long", None],
    "size": [63, 513, "big", None],
    "stride": [0, 65, "eight", 2.5, None],
    "images": [0, -1, "three", 10**9, 2.5, None],
    "tsak": ["inpaint"],  # no notebook has it
}


@cache
def cells_of(notebook: Path) -> tuple[str, str]:
    """The cell of parameters and the first that is executed after it."""
    code = [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "code"]
    [i] = [i for i, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    return code[i].source, code[i + 1].source


def begun(notebook: Path, name: str, value) -> dict:
    """What papermill does with a parameter: cell, injected value, next cell. Returns the notebook's names."""
    parameters, first = cells_of(notebook)
    namespace = {"In": [f"# Parameters\n{name} = {value!r}\n"]}
    exec(parameters, namespace)
    namespace[name] = value
    exec(first, namespace)
    return namespace


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_a_wrong_parameter_is_refused_before_anything_is_written(notebook, root):
    for name, value in [(given, value) for given in [*inspect_notebook(notebook), "tsak"] for value in WRONG[given]]:
        with pytest.raises(ParameterError) as error:
            begun(notebook, name, value)
        way = f"-r {name}" if name in TEXTS and not isinstance(value, str) else name
        assert "\n" not in str(error.value) and way in str(error.value), (name, value)
        if name in ("seeds", "sigmas") and value in ("0 1 2", "(0, 1)", "0,1", "25 50"):
            assert "a list is written [" in str(error.value), (name, value)
    assert not root.exists()


@pytest.mark.parametrize(
    ("notebook", "name", "text", "meant"),
    [
        ("table3", "systems", "[bm3d, ksvd]", ["bm3d", "ksvd"]),
        ("gallery", "systems", "['nlm', \"ksvd\",nlm]", ["nlm", "ksvd"]),
        ("db11_spectrum", "sigmas", "[5, 12.5]", [5, 12.5]),
        *((name, "seeds", "[0, 1]", [0, 1]) for name in SEEDED),
        ("table1", "schedules", "[rigid_joint, on_demand]", ["rigid_joint", "on_demand"]),
    ],
)
def test_a_list_may_be_text_as_papermill_passes_it(notebook, name, text, meant, root):
    assert begun(ROOT / "notebooks" / f"{notebook}.ipynb", name, text)[name] == meant


def test_figures_are_shown_whatever_backend_the_shell_names(tmp_path):
    done = papermill("allocation", tmp_path, {"MPLBACKEND": "agg"}, profile="smoke")
    assert done.returncode == 0, done.stderr[-800:]
    cells = nbformat.read(tmp_path / "out.ipynb", 4).cells
    shown = ["image/png" in output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    assert sum(shown) == sum("image" in cell.metadata.get("mystnb", {}) for cell in cells) > 0


def test_papermill_says_it_in_one_line(tmp_path):
    done = papermill("table1", tmp_path, tsak="inpaint")
    line = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0 and line.startswith("ParameterError") and "tsak" in line, done.stderr[-800:]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["out.ipynb"]
