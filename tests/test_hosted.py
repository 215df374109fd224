"""Notebooks where their repository is not, and what programs read: citation, workflow, Binder's environment."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import torch
import yaml
from packaging.requirements import Requirement

import odl
from companion import notebook
from companion.training import device

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_every_notebook_begins_with_the_same_four_lines_and_says_how_to_get_the_companion(tmp_path):
    firsts = {next(c for c in nbformat.read(path, 4).cells if c.cell_type == "code").source for path in NOTEBOOKS}
    [cell] = firsts
    assert cell.count("\n") == 3
    command = [sys.executable, "-c"]
    assert subprocess.run([*command, f"import sys; sys.modules['companion'] = object()\n{cell}"]).returncode == 0
    hidden = f"import sys; sys.modules['companion'] = None\n{cell}"
    done = subprocess.run([*command, hidden], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "%pip install" in done.stderr


@pytest.mark.parametrize(("mounted", "said"), [(False, ""), (True, ""), (True, "/elsewhere")])
def test_results_go_to_the_drive_of_a_service(mounted, said, tmp_path, monkeypatch, capsys):
    """Unless a user says where."""
    monkeypatch.setattr(notebook, "DRIVES", (str(tmp_path / "none"), str(tmp_path if mounted else tmp_path / "none")))
    monkeypatch.setenv("ODL_ROOT", said)  # so that what is set is undone
    notebook.set_up({}, "")
    found = str(tmp_path / "on-demand-learning") if mounted and not said else said
    assert os.environ["ODL_ROOT"] == found
    assert capsys.readouterr().out == f"Results and checkpoints go to {found}\n" * (found != said)


def test_what_programs_read_to_cite_it_agrees():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"] == odl.__version__ and citation["license"] == project["license"]
    assert f"\n## {odl.__version__}, protocol {odl.PROTOCOL}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_binder_has_the_core_for_a_cpu_at_the_tested_versions():
    content = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    *conda, last = content["dependencies"]
    needs = [Requirement(line) for line in last["pip"]]  # none is a file of the repository: no -r, no -e
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {Requirement(text).name.lower(): str(Requirement(text).specifier) for text in project["dependencies"]}
    by_conda = {"torch": "pytorch-cpu", "torchvision": "torchvision", "numpy": "numpy"}
    assert {f"{package}{core[name]}" for name, package in by_conda.items()} <= {*conda}
    assert {need.name.lower() for need in needs} == core.keys() - by_conda.keys() | {"ipywidgets", "papermill"}
    pinned = {line.split(" ;")[0].lower() for line in (ROOT / "requirements.txt").read_text().splitlines()}
    assert {str(need).lower() for need in needs} <= pinned


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (64, 3)])  # what a user has chosen is not raised
def test_training_takes_no_more_threads_than_cores(monkeypatch, cores, expected):
    monkeypatch.setattr(device, "cpu_count", lambda: cores)
    torch.set_num_threads(3)
    try:
        device.prepare("cpu")
        assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(1)
