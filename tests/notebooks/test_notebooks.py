"""Every notebook runs at the smoke profile, and refuses what a user can get wrong, with nothing written."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from companion import catalogue, published
from odl import paper
from odl.parameters import ParameterError
from tests.faults.parameters import cases, cells_of

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAPERMILL = Path(sys.executable).with_name("papermill")
NAMES = [notebook.stem for notebook in NOTEBOOKS]


def run(notebook: Path, folder: Path, *parameters, timeout=240, output="out.ipynb", **environment):
    """papermill in a process of its own, writing below `folder` only."""
    command = [PAPERMILL, notebook, *([output] if output else []), "--no-progress-bar"]
    for name, value in parameters:
        command += ["-p", name, str(value)]
    env = os.environ | {"ODL_ROOT": str(folder), "OMP_NUM_THREADS": "1"} | environment
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)


def test_the_notebooks_of_the_paper_are_all_there():
    pages = "fixation allocation dose table1 table2 table3 db11_spectrum gallery qualitative extra_data applications"
    assert {*pages.split(), "scorecard"} <= set(NAMES)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_stored_without_outputs_and_with_tagged_parameters(notebook):
    cells = nbformat.read(notebook, 4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert all(len(cell.source.splitlines()) <= 20 for cell in code)


@pytest.mark.timeout(280)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_runs_at_smoke(notebook, tmp_path):
    done = run(notebook, tmp_path, ("profile", "smoke"))
    assert done.returncode == 0, done.stderr[-2000:]
    cells = nbformat.read(tmp_path / "out.ipynb", 4).cells
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) or "text/html" in output.get("data", {}) for output in outputs)
    warnings = [output.text for output in outputs if output.get("name") == "stderr" and "Warning" in output.text]
    assert not warnings
    check_runs(notebook.stem, tmp_path / "data" / "results")


def check_runs(name: str, folder: Path) -> None:
    """What a notebook has trained is what the graph of the sweep says that its page shows."""
    jobs = catalogue.jobs("smoke", "demo", [0])
    page = "table1-inpaint" if name == "table1" else name
    shown = {m.name for job in catalogue.shown_on(page, jobs) for m in job.measurements}
    known = {m.name for job in jobs for m in job.measurements}
    written = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.json")}
    assert written & known <= shown and (written & known or name in ("scorecard", "add_your_own"))


@pytest.mark.timeout(280)
@pytest.mark.parametrize("task", [task for task in paper.TASKS if task != "inpaint"])
def test_table1_of_every_task(task, tmp_path):
    """Written with the columns promised, rows in the paper's order, also without an output path; then loaded."""
    table1 = ROOT / "notebooks" / "table1.ipynb"
    done = run(table1, tmp_path, ("task", task), ("profile", "smoke"), output=None)
    assert done.returncode == 0, done.stderr[-2000:]
    table = pd.read_csv(tmp_path / f"data/results/smoke/tables/table1-demo-{task}.csv")
    assert list(table.schedule) == ["not_restored", *paper.SCHEDULES]
    table = table[1:]
    promised = ["schedule", "seeds", "l2", "l2_sd", "psnr", "psnr_sd"]
    promised += ["psnr_kept", "psnr_hole", "ahead", "low", "high", "verdict"]
    assert list(table)[: len(promised)] == promised and set(table.seeds) == {1}
    assert list(table.paper_celeba_psnr) == [published.TABLE1[task][s][0][1] for s in paper.SCHEDULES]
    runs = {path: path.stat().st_mtime_ns for path in tmp_path.glob("data/results/smoke/demo/*/*.json")}
    assert len(runs) == len(paper.SCHEDULES)
    if task == "interpolate":  # once: a notebook takes ten seconds
        assert run(table1, tmp_path, ("task", task), ("profile", "smoke")).returncode == 0
    assert runs == {path: path.stat().st_mtime_ns for path in runs}  # loaded, not trained again


# What a user can get wrong. The issue's own cases go through papermill; every notebook's first two cells run here.

CASES = cases()


@pytest.mark.parametrize(("notebook", "name", "value"), CASES, ids=[f"{n.stem}-{p}={v!r:.20}" for n, p, v in CASES])
def test_a_wrong_parameter_is_refused_before_anything_is_written(notebook, name, value, tmp_path, monkeypatch):
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    parameters, check = cells_of(notebook)
    namespace = {"In": [f"# Parameters\n{name} = {value!r}\n"]}
    exec(parameters, namespace)
    namespace[name] = value
    with pytest.raises(ParameterError) as error:
        exec(check, namespace)
    assert "\n" not in str(error.value) and name in str(error.value)
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("notebook", "name", "text", "meant"),
    [
        ("table3", "systems", "[bm3d, ksvd]", ["bm3d", "ksvd"]),
        ("gallery", "systems", "['tv', \"nlm\",tv]", ["tv", "nlm"]),
        ("db11_spectrum", "sigmas", "[5, 12.5]", [5, 12.5]),
        ("scorecard", "seeds", "[0, 1]", [0, 1]),
        ("table1", "schedules", "[rigid_joint, on_demand]", ["rigid_joint", "on_demand"]),
    ],
)
def test_a_list_may_be_text_as_papermill_passes_it(notebook, name, text, meant, tmp_path, monkeypatch):
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    parameters, check = cells_of(ROOT / "notebooks" / f"{notebook}.ipynb")
    namespace = {}
    exec(parameters, namespace)
    namespace[name] = text
    exec(check, namespace)
    assert namespace[name] == meant


@pytest.mark.timeout(280)
def test_table3_runs_the_systems_that_were_asked_for(tmp_path):
    table3 = ROOT / "notebooks" / "table3.ipynb"
    done = run(table3, tmp_path, ("systems", "[tv, wavelet]"), ("profile", "smoke"))
    assert done.returncode == 0, done.stderr[-2000:]
    table = pd.read_csv(tmp_path / "data/results/smoke/tables/table3-demo-denoise.csv")
    assert set(table.system) == {"noisy", "tv", "wavelet"} and table.psnr.notna().all()
    refused = run(table3, tmp_path, ("systems", "[tv, bm4d]"), output="no.ipynb")
    line = refused.stderr.strip().splitlines()[-1]
    assert refused.returncode and line.startswith("ParameterError: systems='bm4d' is not one of bm3d, ksvd, ")
    assert line.endswith("nearest: 'bm3d'")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_the_defaults_are_accepted(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    namespace = {}
    for source in cells_of(notebook):
        exec(source, namespace)


@pytest.mark.parametrize(("name", "value"), [("tsak", "inpaint"), ("dataset", "nowhere")])
def test_papermill_says_it_in_one_line(name, value, tmp_path):
    done = run(ROOT / "notebooks" / "table1.ipynb", tmp_path, (name, value), timeout=60)
    line = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0 and line.startswith("ParameterError") and name in line, done.stderr[-800:]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["out.ipynb"]
