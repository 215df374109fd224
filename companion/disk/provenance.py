"""What a number was measured with: the commit of the code and the device."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
CODE = ("odl", "companion")  # what makes numbers


def origin(device: str, package: str = "torch") -> dict:
    """Return what a number is measured with: device, versions of Python and of the package that makes it."""
    versions = {"python": platform.python_version(), package: version(package).split("+")[0]}
    return {"device": device_name(device), "versions": versions}


def device_name(device: str) -> str:
    """Return the GPU's name, or how many threads the CPU was given."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return "CPU, 1 thread" if threads == 1 else f"CPU, {threads} threads"


def processor() -> str:
    """Return the CPU's model as the system names it."""
    path = Path("/proc/cpuinfo")
    found = re.search(r"(?m)^model name\s*: (.*)$", path.read_text(encoding="utf-8")) if path.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def arithmetic_of(provenance: dict, experiment: dict) -> str | None:
    """Return the arithmetic of a result, None where nothing trains; an older one says only where bf16 was rounded."""
    precision = experiment.get("precision")
    return provenance.get("arithmetic", f"{precision} rounded" if "bf16" in provenance else precision)


def commit(*folders: Path) -> str:
    """Return `ODL_COMMIT` where it is set, as for code that travelled without its repository; else the checkout's.

    The checkout's is marked where `CODE` or one of `folders` has changes, and `unknown` where there is none.
    """
    if named := os.environ.get("ODL_COMMIT"):
        return named
    try:
        (ROOT / "pyproject.toml").stat()  # else an installed odl would name a repository that it lies in
        name = git("rev-parse", "--short", "HEAD")
        changes = git("status", "--porcelain", "--", *CODE, *folders)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name}-dirty" if changes else name


def git(*command) -> str:
    command = ["git", "-C", ROOT, *command]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
