"""`make` in folders whose names a shell would take apart, and in the environments that it takes for its own."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {*re.findall(r"(?m)^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"))} - {"clean"}
NAME = "my room's Köpy"


def make(folder: Path, *arguments, **environment) -> subprocess.CompletedProcess:
    """Run make there, in no environment but the one that is given."""
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | environment
    return subprocess.run(["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / f"clone of {NAME}"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    return folder


def programs(folder: Path, log: Path, python: str = "") -> Path:
    """A folder of programs that note how they were called; `python` is what its Python does besides."""
    folder.mkdir(parents=True)
    for name in ("python", "papermill", "ruff", "lint-imports", "uv", "snakemake"):
        more = python if name == "python" else ""
        line = f'echo {name} "$@" >>{shlex.quote(str(log))}'
        (folder / name).write_text(f"#!/bin/sh\n{line}\n{more}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_command_works_between_spaces_and_quotes(target, clone, tmp_path):
    """With BIN elsewhere, nothing is installed, and only its programs run."""
    log = tmp_path / "log"
    folder = programs(tmp_path / f"programs of {NAME}", log)
    done = make(clone, target, f"BIN={folder}")
    assert done.returncode == 0, done.stderr
    assert log.exists() == (target != "help") and not (clone / ".venv").exists()
    if target == "sweep":
        assert (clone / "runs" / "sweep").is_dir()


@pytest.mark.parametrize("ours", [True, False])
def test_a_conda_environment_is_told_by_what_is_in_it(ours, clone, tmp_path):
    """Whatever its name or path. One that is another project's is left alone; Binder's is used."""
    prefix, run = tmp_path / f"envs of {NAME}", "exec " + shlex.quote(sys.executable) + ' "$@"'
    programs(prefix / "bin", tmp_path / "log", run if ours else "exit 1")
    (prefix / "conda-meta").mkdir()
    done = make(clone, "-n", "lint", CONDA_PREFIX=str(prefix), CONDA_DEFAULT_ENV=str(prefix))
    assert (f'"{prefix}/bin/ruff" check .' in done.stdout) == ours, done.stdout + done.stderr
    assert ("requirements.txt" in done.stderr) != ours  # which a .venv is made of, and this folder lacks
    done = make(clone, "-n", "lint", NB_PYTHON_PREFIX="/srv/conda/envs/notebook")  # Binder's
    assert '"/srv/conda/envs/notebook/bin/ruff" check .' in done.stdout, done.stderr


@pytest.mark.parametrize("whole", [True, False])
def test_a_half_made_environment_is_made_anew(whole, clone, tmp_path):
    """As `python3 -m venv` leaves it where Debian's python3-venv is missing: a Python without pip."""
    for name in ("requirements.txt", "pyproject.toml", "setup.py"):
        (clone / name).touch()
    log, run = tmp_path / "log", f"mkdir -p .venv; cp -r {shlex.quote(str(tmp_path / 'made'))} .venv/bin"
    programs(tmp_path / "made", log)
    programs(clone / ".venv" / "bin", log, "" if whole else "exit 1")
    venv = programs(tmp_path / "system", log, f'case "$*" in *venv*) {run};; esac')
    done = make(clone, ".venv/ready", f"PYTHON={venv / 'python'}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("python -m venv .venv" in log.read_text()) != whole
