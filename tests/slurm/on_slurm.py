"""One task's smoke sweep on a real SLURM, a node lost in the middle: bit for bit what this machine alone measures.

make sweep-slurm, or python -m pytest tests/slurm/on_slurm.py; some minutes, most of them SLURM's own waiting.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from companion import published
from companion.measure import gradients_and_pool
from companion.runs import catalogue
from tests.slurm import cluster

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ("--config", "task=interpolate", "bundle=3", "mem_mb=900", "runtime=60")
ON_SLURM = ("--executor", "slurm", "--jobs", "2", "--max-threads", "1")
ON_SLURM += ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "3", "--slurm-no-account")
LOST = "n0"
RUNS = len(published.SEVEN) + len(published.FIXATED) + len(catalogue.DOSES) + 1  # on_demand_l2
RESULTS = RUNS + sum(len(measured) for measured in gradients_and_pool.MEASURED.values())


def snakemake(root: Path, *arguments, environment=os.environ, **more) -> subprocess.Popen:
    """Snakemake on this code, below a root of its own."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", *arguments, *CONFIG]
    environment = environment | {"ODL_ROOT": str(root), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=root, env=environment, text=True, stderr=subprocess.STDOUT, **more)


def measured(root: Path) -> dict[str, dict]:
    """Every result below a root, without what tells one machine and moment from another."""
    found = {}
    for path in sorted((root / "data" / "results").rglob("*.json")):
        if path.parent.name == "tables":  # verdicts on them
            continue
        content = json.loads(path.read_text())
        for name in ("seconds", "commit"):
            content["provenance"].pop(name)
        found[path.name] = content | {"seal": None}
    return found


def weights(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted((root / "runs").rglob("weights.safetensors"))}


@pytest.mark.timeout(1800)
@pytest.mark.skipif(bool(cluster.missing()), reason=cluster.missing())
def test_a_lost_node_changes_nothing():
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="install the extra `sweep`")
    folder = Path(tempfile.mkdtemp(prefix="odl"))  # short: a socket's path has 100 letters; left as it is by a failure
    print(folder)
    there, here = folder / "there", folder / "here"
    there.mkdir()
    here.mkdir()
    with cluster.Cluster(folder / "slurm") as slurm, open(folder / "snakemake.log", "w+", encoding="utf-8") as log:
        run = snakemake(there, *ON_SLURM, environment=slurm.environment, stdout=log)
        try:
            job = lose_a_node(slurm, there, run)
            queue_again(slurm, job, run)
            assert run.wait(1200) == 0, (folder / "snakemake.log").read_text()
        finally:
            run.kill()
        assert f"{job}|COMPLETED|n1" in slurm.says("squeue", "--states=all", "-h", "-o", "%i|%T|%N").split()
    assert snakemake(here, "--cores", "1", stdout=subprocess.DEVNULL).wait(1200) == 0
    assert len(measured(here)) == RESULTS and measured(there) == measured(here)
    assert len(weights(here)) == RUNS and weights(there) == weights(here)
    assert (there / "_build" / "notebooks" / "table1-interpolate.ipynb").exists()
    shutil.rmtree(folder)


def lose_a_node(slurm, root: Path, run) -> str:
    """Kill n0 when its job has written the first but not the last of its three results. Returns the job's number."""
    while True:
        assert run.poll() is None, "Snakemake ended before a node was lost"
        jobs = slurm.says("squeue", "-h", "-t", "R", "-w", LOST, "-o", "%i").split()
        for number in jobs:
            written = results_on_the_way(slurm)
            if 0 < sum((root / path).exists() for path in written) < len(written):
                slurm.lose(LOST)
                return number
        time.sleep(0.2)


def results_on_the_way(slurm) -> list[str]:
    """The results that the job on the node is to write, from the command that runs for it."""
    for process in cluster.processes_of(LOST, slurm.environment["SLURM_CONF"]):
        arguments = process.info["cmdline"] or []
        if "reproduce" in arguments and "--only" in arguments:
            after = arguments[arguments.index("--only") + 1 :]
            return [argument for argument in after if argument.endswith(".json")]
    return []


def queue_again(slurm, job: str, run) -> None:
    """Wait until SLURM has queued the job again, and spare it the two minutes that it waits by default."""
    while slurm.says("squeue", "-h", "-j", job, "-o", "%T").strip() != "PENDING":
        assert run.poll() is None, "Snakemake ended before the job was queued again"
        time.sleep(1)
    slurm.says("scontrol", "update", f"JobId={job}", "StartTime=now")
