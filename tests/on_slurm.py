"""Three runs on a real SLURM of two nodes on this machine, one of which is lost: bit for bit as without a cluster.

make sweep-slurm, or python -m pytest tests/on_slurm.py; some minutes, most of them SLURM's own waiting. Needs root.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "srun", "munged", "mungekey")
SEARCH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
ABSENT = [name for name in PROGRAMS if not shutil.which(name, path=SEARCH)]
NODES = ("n0", "n1")
CONF = """
ClusterName=odl
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
# A node counts as lost after ten seconds, and its job is queued again.
SlurmdTimeout=10
MinJobAge=600
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=2000 State=UNKNOWN
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=2000 State=UNKNOWN
PartitionName=odl Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
SCHEDULES = ("on_demand", "hard_mining", "rigid_joint")
RESULTS = [f"data/results/smoke/demo/interpolate/{name}-seed0.json" for name in SCHEDULES]
CONFIG = ("--config", "task=interpolate", "--default-resources", "mem_mb=900", "runtime=60")
ON_SLURM = ("--executor", "slurm", "--jobs", "2", "--max-threads", "1", "--slurm-no-account")
ON_SLURM += ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "3")


@contextmanager
def cluster(folder: Path):
    """Bring up munged, slurmctld and two node daemons on loopback: the environment in which sbatch finds them."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [one.getsockname()[1] for one in sockets]
    (folder / "bin").mkdir(parents=True)
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(CONF.format(host=host, ports=ports, folder=folder))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    found = shutil.which("srun", path=SEARCH)  # inside a job the plugin drops SLURM's variables
    (folder / "bin" / "srun").write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {found} "$@"\n')
    (folder / "bin" / "srun").chmod(0o755)
    environment = os.environ | {"SLURM_CONF": f"{folder}/slurm.conf", "PATH": f"{folder}/bin{os.pathsep}{SEARCH}"}
    subprocess.run(["mungekey", f"--keyfile={folder}/munge.key"], env=environment, check=True)
    files = ("key-file", "socket", "pid-file", "log-file", "seed-file")
    munge = [f"--{name}={folder}/munge.{name.partition('-')[0]}" for name in files]
    with ExitStack() as daemons:

        def start(name: str, *command: str) -> None:
            own = environment | {"ODL_NODE": name}
            daemon = subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            daemons.callback(daemon.wait)
            daemons.callback(daemon.kill)

        start("munged", "munged", "--foreground", "--force", *munge)
        until(lambda: (folder / "munge.socket").exists())
        start("slurmctld", "slurmctld", "-D")
        for node in NODES:
            start(node, "slurmd", "-D", "-N", node)
            daemons.callback(lose, node, environment)
        until(lambda: said(environment, "sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * 2)
        yield environment


def until(true, seconds: float = 60, process=None) -> None:
    """Wait for `true()`, while `process` runs."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end and (process is None or process.poll() is None)
        time.sleep(0.2)


def said(environment: dict, *command: str) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60).stdout


def lose(node: str, environment: dict) -> None:
    """Kill everything on a node at once, its daemon included: a machine that lost power."""
    everything, on_it = list(psutil.process_iter(["environ", "name", "ppid"])), []
    for process in everything:
        known = process.info["environ"] or {}  # none of another user's
        if known.get("SLURM_CONF") == environment["SLURM_CONF"]:
            on_it += [process] * (node in (known.get("ODL_NODE"), known.get("SLURMD_NODENAME")))
    above = {process.info["ppid"] for process in on_it}  # a step daemon writes its title over its environment
    on_it += [p for p in everything if p.info["name"] == "slurmstepd" and p.pid in above]
    for end in (psutil.Process.suspend, psutil.Process.kill):  # first nobody can report that another one died
        for process in on_it:
            with suppress(psutil.NoSuchProcess):
                end(process)


def snakemake(root: Path, *arguments, environment=os.environ) -> subprocess.Popen:
    root.mkdir()
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", *RESULTS, *arguments, *CONFIG]
    return subprocess.Popen(command, cwd=root, env=environment | {"ODL_ROOT": str(root), "PYTHONPATH": str(ROOT)})


def left_in(root: Path) -> list:
    """History, scores and weights of each run."""
    contents = [json.loads((root / path).read_text()) for path in RESULTS]
    weights = [path.read_bytes() for path in sorted(root.glob("runs/smoke/**/weights.safetensors"))]
    return [[c[name] for name in ("experiment", "history", "evaluation", "per_image")] for c in contents] + weights


@pytest.mark.timeout(1800)
@pytest.mark.skipif(bool(ABSENT) or os.geteuid() != 0, reason=f"needs root, and of slurm-wlm and munge {ABSENT}")
def test_a_lost_node_changes_nothing():
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="install the extra `sweep`")
    folder = Path(tempfile.mkdtemp(prefix="odl"))  # short: a socket's path has 100 letters
    with cluster(folder / "slurm") as environment:
        run = snakemake(folder / "there", *ON_SLURM, environment=environment)
        running = ("squeue", "-h", "-t", "R", "-w", NODES[0], "-o", "%i")
        until(lambda: said(environment, *running).split(), 600, run)
        [job] = said(environment, *running).split()
        time.sleep(5)  # it imports, or trains
        lose(NODES[0], environment)
        until(lambda: said(environment, "squeue", "-h", "-j", job, "-o", "%T").strip() == "PENDING", 300, run)
        said(environment, "scontrol", "update", f"JobId={job}", "StartTime=now")  # else it waits for two minutes
        assert run.wait(1200) == 0
        assert f"{job}|COMPLETED|{NODES[1]}" in said(environment, "squeue", "--states=all", "-h", "-o", "%i|%T|%N")
    assert snakemake(folder / "here", "--cores", "1").wait(1200) == 0
    assert left_in(folder / "there") == left_in(folder / "here")
    shutil.rmtree(folder)
