"""Notebooks where their repository is not: one first cell, what it does to a machine, and how many cores are taken.

`python -m tests.services` runs one in environments like those of Colab, Kaggle and Binder.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import address
import loky
import nbformat
import pytest
import torch
import yaml
from packaging.requirements import Requirement

import odl
from companion import hosted
from odl.machine import device

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@b"]


def test_every_notebook_begins_with_the_same_cell():
    firsts = {next(c for c in nbformat.read(path, 4).cells if c.cell_type == "code").source for path in NOTEBOOKS}
    [cell] = firsts
    [shown] = re.findall(r'(?m)^address = "(.*?)"  # .*\nbranch = "(.*?)"  # ', cell)
    assert shown == address.address()


@pytest.fixture
def alone(tmp_path):
    """Runs the first cell where the companion is not; what it then finds prints where it is."""
    bare, work = tmp_path / "served", tmp_path / "work"
    (bare / "companion").mkdir(parents=True)
    (bare / "companion" / "hosted.py").write_text("def set_up(): print('found', __file__)\n")
    (bare / "companion" / "__init__.py").touch()
    for command in (["init", "-q", "-b", address.address()[1]], ["add", "."], ["commit", "-qm", "-"]):
        subprocess.run([*GIT, "-C", bare, *command], check=True)
    work.mkdir()
    cell = next(c for c in nbformat.read(NOTEBOOKS[0], 4).cells if c.cell_type == "code").source
    cell = re.sub(r'(?m)^(address = )".*?"', rf'\1"file://{bare}"', cell)

    def run(before="", **env) -> str:
        hidden = "import importlib.util as u; u.find_spec = lambda name: None"
        code = f"import sys\nsys.path = [p for p in sys.path if p]\n{hidden}\n{before}\n{cell}"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=work, env=os.environ | env, capture_output=True, text=True
        )
        assert "Traceback" not in done.stderr, done.stderr
        return (done.stdout + done.stderr).strip()

    return run, work


def test_the_first_cell_fetches_once(alone):
    run, work = alone
    there = f"found {work}/on-demand-learning/companion/hosted.py"
    assert run() == there and run(PATH="/nowhere") == there  # the second time without git
    assert [path.name for path in work.iterdir()] == ["on-demand-learning"]


def test_of_two_first_cells_that_fetch_at_once_one_s_clone_stays(alone):
    run, work = alone
    with ThreadPoolExecutor(3) as many:
        said = {*many.map(lambda _: run(), range(3))}
    assert said == {f"found {work}/on-demand-learning/companion/hosted.py"}
    assert [path.name for path in work.iterdir()] == ["on-demand-learning"]


def test_what_the_first_cell_lacks_is_one_line(alone):
    run, work = alone
    assert "cannot be cloned: are git and a network here" in (said := run(PATH="/nowhere")) and "\n" not in said
    (work.parent / "served" / "companion" / "hosted.py").unlink()  # another repository, as that of the authors
    subprocess.run([*GIT, "-C", work.parent / "served", "commit", "-qam", "-"], check=True)
    assert "is the address right?" in run() and not [*work.iterdir()]
    (work / "on-demand-learning").mkdir()
    assert f"move {work}/on-demand-learning away" in run()


def test_an_old_kernel_is_named(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    with pytest.raises(hosted.SetUpError, match="needs Python 3.11"):
        hosted.set_up()


def test_a_checkout_stays_as_it_is(monkeypatch, capsys):
    monkeypatch.delenv("ODL_ROOT", raising=False)
    monkeypatch.setattr(hosted.subprocess, "run", None)  # nothing is installed
    monkeypatch.setattr(loky, "cpu_count", os.cpu_count)
    before = dict(os.environ), list(sys.path)
    hosted.set_up()
    assert (dict(os.environ), sys.path) == before and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("written", ["", '""', "null"])
def test_without_an_address_there_is_none(tmp_path, monkeypatch, written):
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    (tmp_path / "_config.yml").write_text(re.sub(r"(?m)^  url: .*$", f"  url: {written}", config), encoding="utf-8")
    monkeypatch.setattr(address, "ROOT", tmp_path)
    assert address.address()[0] == ""


@pytest.mark.parametrize("written", ['"{}"', "{}", "{}/"])
def test_the_address_goes_from_the_configuration_to_where_it_stands_alone(tmp_path, monkeypatch, written):
    files = ["_config.yml", "CITATION.cff", *(f"notebooks/{path.name}" for path in NOTEBOOKS)]
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(address, "ROOT", tmp_path)
    config = (tmp_path / "_config.yml").read_text(encoding="utf-8")
    url, before = "https://github.com/owner/name", address.address()
    config = re.sub(r"(?m)^  url: .*\n  branch: .*$", f"  url: {written.format(url)}\n  branch: trunk", config)
    (tmp_path / "_config.yml").write_text(config, encoding="utf-8")
    with pytest.raises(SystemExit, match="python book/address.py"):
        address.check()
    changed = address.with_address(*address.address())
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    address.check()
    assert yaml.safe_load(changed[tmp_path / "CITATION.cff"])["repository-code"] == url
    for path in NOTEBOOKS:
        assert changed[tmp_path / "notebooks" / path.name].count(rf'"address = \"{url}\"  #') == 1
        assert changed[tmp_path / "notebooks" / path.name].count(r'"branch = \"trunk\"  #') == 1
    back = {path: text.encode() for path, text in address.with_address(*before).items()}
    assert all(text == (ROOT / path.relative_to(tmp_path)).read_bytes() for path, text in back.items())


def test_what_programs_read_to_cite_it_agrees():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"] == odl.__version__ and citation["license"] == project["license"]
    assert zenodo["title"] == citation["title"]
    assert bool(address.address()[0]) == ("repository-code" in citation)
    assert f"\n## {odl.__version__}, protocol {odl.PROTOCOL}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_workflow_runs_what_ci_runs_and_publishes_the_book():
    steps = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text(encoding="utf-8"))["jobs"]["test"]["steps"]
    order = [step.get("run") or step["with"].get("path") for step in steps if "run" in step or "with" in step]
    assert order.index(".ci/run") < order.index("_build/html") and os.access(ROOT / ".ci/run", os.X_OK)


def test_the_first_command_of_the_readme_is_the_users_own():
    _, first, after = (ROOT / "README.md").read_text(encoding="utf-8").split("```", 2)
    assert first == "bash\npapermill notebooks/table1.ipynb out.ipynb -p task inpaint\n"
    assert "Missing argument 'OUTPUT_PATH'" in after and " minutes on 2 cores" in after


def test_only_what_is_missing_is_installed_and_nothing_else_moves(monkeypatch):
    """pip gets what is missing, and every version that is here as a constraint."""
    calls = []

    def run(command, **_):
        constraints = Path(command[command.index("--constraint") + 1]).read_text(encoding="utf-8").splitlines()
        calls.append((command[command.index("--constraint") + 2 :], constraints))
        return subprocess.CompletedProcess(command, 0)

    def version(name):
        if name == "pooch":
            raise hosted.PackageNotFoundError(name)
        return real(name)

    real = hosted.version
    monkeypatch.setattr(hosted, "version", version)
    monkeypatch.setattr(hosted.subprocess, "run", run)
    hosted.set_up()
    [(asked, constraints)] = calls
    assert [Requirement(text).name for text in asked] == ["pooch"]
    assert f"torch=={real('torch')}" in constraints and f"numpy=={real('numpy')}" in constraints


def test_what_is_here_is_pinned_once_and_readably(tmp_path, monkeypatch):
    """As where Debian's packages lie behind a service's: two of a name, another form of version, a broken one."""
    debian = {
        "first/twice": "2.0",
        "second/twice": "1.0",
        "second/devscripts": "2.22.1ubuntu1",
        "second/local": "1.0+cu128",
    }
    for name, number in debian.items():
        folder = tmp_path / f"{name}-{number}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {folder.name.split('-')[0]}\nVersion: {number}\n"
        )
    (tmp_path / "second" / "broken-1.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    assert hosted.pinned() == ["local==1.0+cu128", "twice==2.0"]


def test_a_package_that_is_too_old_is_named_and_kept(monkeypatch):
    old = {"pandas": "1.5.3"}
    real = hosted.version
    monkeypatch.setattr(hosted, "version", lambda name: old.get(name) or real(name))
    with pytest.raises(
        hosted.SetUpError, match=r"^pandas 1\.5\.3 is here, and pandas>=2\.2 is needed: pip install"
    ) as e:
        hosted.set_up()
    assert e.value._render_traceback_() == [f"SetUpError: {e.value}"]


def test_what_pip_cannot_do_is_one_line(monkeypatch):
    monkeypatch.setattr(hosted, "missing", lambda: ["no-such-package-of-anybody>=1"])
    said = "looking\nERROR: No matching distribution\nhint: see the manual\n\n[notice] A new release of pip\n"
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(hosted.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(hosted.SetUpError, match="no-such-package.*No matching distribution") as error:
        hosted.set_up()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("place", ["elsewhere", "on the drive", "Colab without a drive"])
def test_results_go_to_the_drive_or_what_is_lost_is_said(place, tmp_path, monkeypatch, capsys):
    """Unless the checkout is there."""
    drive = tmp_path / "drive"
    if place != "Colab without a drive":
        drive.mkdir()
    monkeypatch.setattr(hosted, "DRIVES", (tmp_path / "not mounted", drive))
    monkeypatch.setattr(hosted, "COLAB", tmp_path)
    monkeypatch.setattr(hosted, "ROOT", (drive if place == "on the drive" else tmp_path) / "clone")
    monkeypatch.setenv("ODL_ROOT", "")  # so that what is set is undone
    hosted.keep_results()
    expected, said = str(drive / "on-demand-learning") if place == "elsewhere" else "", capsys.readouterr().out
    assert os.environ["ODL_ROOT"] == expected and expected in said
    assert said.count("\n") <= 1 and ("mount a drive" in said) == (not drive.exists())


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


def test_training_takes_no_more_threads_than_cores(monkeypatch):
    monkeypatch.setattr(device, "cpu_count", lambda: 1)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        device.prepare("cpu")
        assert torch.get_num_threads() == 1
        monkeypatch.setattr(device, "cpu_count", lambda: 64)
        device.prepare("cpu")
        assert torch.get_num_threads() == 1  # what a user has chosen is not raised
    finally:
        torch.set_num_threads(before)


def test_a_container_s_kernel_is_told_before_pytorch_counts(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("ODL_ROOT", "somewhere")
    monkeypatch.setattr(loky, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    hosted.set_up()
    assert os.environ.pop("OMP_NUM_THREADS") == "1"
