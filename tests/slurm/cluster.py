"""A real SLURM on this machine: munged, slurmctld and two node daemons on loopback, brought up and taken down."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "srun", "munged", "mungekey")
NODES = ("n0", "n1")
MUNGE = (("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))
CONF = """
ClusterName=odl
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
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
KillWait=2
MinJobAge=600
ReturnToService=0
{nodes}
PartitionName=odl Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=2000 State=UNKNOWN"


SEARCH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def missing() -> str:
    """Why no cluster can be started here; empty where one can."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=SEARCH)]
    if absent:
        return f"SLURM is not installed ({', '.join(absent)} not found): apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "a SLURM of one's own needs root"


class Cluster:
    """`with Cluster(folder) as cluster:` sbatch and squeue work with `cluster.environment` until its end."""

    def __init__(self, folder: Path):
        self.folder = folder
        path = os.pathsep.join((f"{folder}/bin", SEARCH))
        self.environment = os.environ | {"SLURM_CONF": f"{folder}/slurm.conf", "PATH": path}
        self.daemons: dict[str, subprocess.Popen] = {}

    def __enter__(self):
        self.folder.mkdir(mode=0o755)
        host, ports = socket.gethostname().split(".")[0], free_ports(1 + len(NODES))
        nodes = [NODE.format(name=n, host=host, port=p) for n, p in zip(NODES, ports[1:], strict=True)]
        text = CONF.format(host=host, ports=ports, folder=self.folder, nodes="\n".join(nodes))
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.wrap("srun")
        subprocess.run(["mungekey", f"--keyfile={self.folder}/munge.key"], env=self.environment, check=True)
        own = [f"--{name}={self.folder}/munge.{end}" for name, end in MUNGE]
        try:
            self.start("munged", "munged", "--foreground", "--force", *own)
            self.until(lambda: (self.folder / "munge.socket").exists(), "munged")
            self.start("slurmctld", "slurmctld", "-D")
            for node in NODES:
                self.start(node, "slurmd", "-D", "-N", node)
            self.until(lambda: self.says("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * 2, "idle nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for node in NODES:
            self.lose(node)
        for daemon in self.daemons.values():
            daemon.terminate()
        for daemon in self.daemons.values():
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            daemon.kill()
            daemon.wait()

    def wrap(self, program: str) -> None:
        """Let a program find this cluster where the plugin has dropped SLURM's variables, as it does inside a job."""
        wrapper, found = self.folder / "bin" / program, shutil.which(program, path=SEARCH)
        wrapper.parent.mkdir()
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec {found} "$@"\n')
        wrapper.chmod(0o755)

    def start(self, name: str, *command: str) -> None:
        environment = self.environment | {"ODL_NODE": name}
        with open(self.folder / f"{name}.out", "wb") as out:
            self.daemons[name] = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)

    def says(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60).stdout

    def until(self, true, what: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not true():
            dead = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                raise RuntimeError(f"no {what} after {seconds} s; ended: {dead}; see {self.folder}")
            time.sleep(0.2)

    def lose(self, node: str) -> None:
        """Kill everything that runs on a node at once, its daemon included: a machine that lost power."""
        lost = processes_of(node, self.environment["SLURM_CONF"])
        for end in (psutil.Process.suspend, psutil.Process.kill):  # first nobody can report that another one died
            for process in lost:
                with suppress(psutil.NoSuchProcess):
                    end(process)


def processes_of(node: str, conf: str) -> list[psutil.Process]:
    """The node's daemon and what its jobs started, by what their environment says, and the step daemons above these.

    A step daemon writes its title over its environment; only its place tells whose it is.
    """
    everything = list(psutil.process_iter(["environ", "cmdline", "name", "ppid"]))
    found = [process for process in everything if is_on(node, conf, process.info["environ"])]
    above = {process.info["ppid"] for process in found}
    return found + [p for p in everything if p.info["name"] == "slurmstepd" and p.pid in above]


def is_on(node: str, conf: str, environ: dict | None) -> bool:
    variables = environ or {}  # none of another user's, or of one that has ended
    return node in (variables.get("ODL_NODE"), variables.get("SLURMD_NODENAME")) and variables.get("SLURM_CONF") == conf


def free_ports(n: int) -> list[int]:
    with ExitStack() as until_then:
        sockets = [until_then.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [s.getsockname()[1] for s in sockets]
