"""What a number was measured with: the commit of the code and the device."""

import subprocess
from pathlib import Path

import torch

CODE = ("odl", "companion")  # what makes numbers


def device_name(device: str) -> str:
    """The GPU's name, or how many threads the CPU was given."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return "CPU, 1 thread" if threads == 1 else f"CPU, {threads} threads"


def commit(*folders: Path) -> str:
    """The commit of the code, marked when `CODE` or one of `folders` has changes; `unknown` outside a repository."""
    try:
        name = git("rev-parse", "--short", "HEAD")
        changes = git("status", "--porcelain", "--", *CODE, *folders)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name}-dirty" if changes else name


def git(*command) -> str:
    command = ["git", "-C", Path(__file__).resolve().parents[2], *command]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
