"""The sweep as a graph, by Snakemake itself: what runs, what is left alone, what runs again."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made import album

from companion.runs import catalogue
from odl.parameters import ParameterError

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "data/results/smoke/demo/interpolate"
HARD_MINING, RIGID_JOINT, BROKEN = (f"{FOLDER}/{s}-seed0.json" for s in ("hard_mining", "rigid_joint", "fixated_easy"))
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def sweep(demo_pack, tmp_path_factory):
    """`sweep(*arguments)` runs Snakemake on a copy of the code, in a root with the demo pack."""
    for name in ("snakemake", "snakemake_executor_plugin_slurm"):
        pytest.importorskip(name, reason=f"{name} is not installed; the extra `sweep` has it: make sweep")
    code, root = tmp_path_factory.mktemp("code"), tmp_path_factory.mktemp("root")
    for name in ("odl", "companion", "book", "notebooks", "profiles"):
        shutil.copytree(ROOT / name, code / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "_toc.yml", "_config.yml"):
        shutil.copy(ROOT / name, code)
    (root / "data" / "demo").mkdir(parents=True)
    (root / "data" / "demo" / demo_pack.name).symlink_to(demo_pack)
    environment = os.environ | {"ODL_ROOT": str(root)}
    environment.pop("PYTHONPATH", None)

    def run(*arguments, config=("task=interpolate",)):
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nocolor", *arguments, "--config", *config]
        said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.run(command, cwd=code, env=environment, text=True, timeout=280, **said)

    run.code, run.root = code, root
    return run


def started(run) -> set[str]:
    """The results files that a run of Snakemake names as to be made."""
    return set(re.findall(r"(?m)^(?:local)?rule run:(?:\n    .*)*?\n    output: (\S+)", run.stdout))


@pytest.fixture(scope="module")
def two_runs(sweep):
    """A run, measured, and one that cannot be."""
    broken = sweep.root / "runs" / "smoke" / "demo" / "interpolate" / "fixated_easy-seed0"
    broken.parent.mkdir(parents=True)
    broken.write_text("a file where a folder is needed")
    return sweep(HARD_MINING, BROKEN)


def test_a_run_that_fails_keeps_its_log_and_stops_no_other(sweep, two_runs):
    assert two_runs.returncode and started(two_runs) == {HARD_MINING, BROKEN}
    log = sweep.root / "runs" / "logs" / f"{BROKEN}.log"
    assert "error: " in log.read_text() and not (sweep.root / BROKEN).exists()
    assert json.loads((sweep.root / HARD_MINING).read_text())["experiment"]["profile"] == "smoke"


def test_what_is_there_is_left_alone_whatever_its_age_unless_it_is_of_another_protocol(sweep, two_runs):
    """And whatever changes in code that measures nothing."""
    os.utime(sweep.root / HARD_MINING, (1, 1))
    with (sweep.code / "book/build.py").open("a") as file:
        file.write("# another line\n")
    assert "Nothing to be done" in sweep(HARD_MINING).stdout
    file = sweep.code / "odl/__init__.py"
    before = file.read_text()
    file.write_text(re.sub(r"(?m)^PROTOCOL = \d+", "PROTOCOL = 999", before))
    made = started(sweep("-n", HARD_MINING))
    file.write_text(before)
    assert made == {HARD_MINING}


def test_runs_that_need_others_wait_for_them_and_none_has_two_rules(sweep):
    """On faces minimax training needs five specialists, and recorded shares the run that recorded them."""
    faces = ["dataset=celeba10k-native", "task=deblur", "seeds=[10,11]"]
    done = sweep("--dry-run", config=faces)
    assert done.returncode == 0, done.stdout
    [waits] = re.findall(r"rule run:\n\s+input: (.*)\n\s+output: \S+/minimax_gap-seed11.json", done.stdout)
    assert re.findall(r"level_\d-seed10", waits) == [f"level_{i}-seed10" for i in range(1, 6)]


def test_every_page_shows_runs_of_the_shared_list():
    """What a page trains is in the list, and nothing else is shown; an unknown page is named."""
    for dataset in ("demo-native", "demo"):
        scale = "smoke", dataset, [0, 1]
        every = catalogue.measurements(*scale)
        for page in catalogue.PAGES:
            shown = catalogue.shown_on(f"{page}-inpaint", every, *scale)
            assert {one.experiment for one in shown} == {*catalogue.runs(page, "inpaint", dataset, "smoke", [0, 1])}
    halves = catalogue.shown_on("extra_data-denoise", every, *scale)  # the book has those of inpainting alone
    assert {one.experiment for one in halves} == {*catalogue.runs("extra_data", "denoise", dataset, "smoke", [0, 1])}
    assert len(catalogue.runs("table1", "deblur", "demo", "smoke", [0, 1])) == 14
    assert catalogue.shown_on("scorecard", every, *scale) == every
    with pytest.raises(ParameterError, match="nearest: 'table1'"):
        catalogue.shown_on("tabel1", every, *scale)


def test_only_takes_names_and_paths_of_the_list_that_reproduce_shares():
    every = catalogue.measurements("smoke", "demo", [0, 1])
    names = ["smoke/demo/inpaint/on_demand-seed0-blocks", RIGID_JOINT]
    chosen = [one.name for one in catalogue.only(names, every)]
    assert chosen == [names[0], "smoke/demo/interpolate/rigid_joint-seed0"]
    with pytest.raises(ParameterError, match="nearest: 'smoke/demo/inpaint/on_demand-seed0'"):
        catalogue.only(["smoke/demo/inpaint/ondemand-seed0"], every)


def test_a_folder_beside_the_caller_and_seeds_as_a_shell_gives_them(sweep):
    """The root is elsewhere; what reads as a number is no name."""
    album(sweep.code / "2023", 4)
    for seeds, runs in {"[0,1]": 2, "3": 1, "[3]": 1}.items():
        done = sweep("--dry-run", config=("task=interpolate", "dataset=./2023", f"seeds={seeds}"))
        assert done.returncode == 0, done.stdout
        trained = {file for file in started(done) if re.search(r"/rigid_joint-seed\d\.json$", file)}
        assert len(trained) == runs and all("/2023-" in file for file in trained)
    wrong = {"dataset=2023": "dataset=", "seeds=[0,x]": "seeds=", "seeds=0,1": "seeds=", "seeds=1.5": "seeds="}
    for given, said in (wrong | {"profil=demo": "config='profil' is not one of"}).items():
        done = sweep("--dry-run", config=("task=interpolate", given))
        assert done.returncode == 1 and said in done.stdout and "Traceback" not in done.stdout
