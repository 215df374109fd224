"""Freed memory stays in the process: counted by the page faults of the kernel, in processes of their own."""

import platform
import subprocess
import sys

import pytest

from odl.machine import device

COUNT = """
import resource, torch
from odl.corruptions import TASKS
from odl.machine.device import prepare
prepare('cpu')
torch.set_num_threads(1)
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
x, generator = torch.zeros(100, 3, 64, 64), torch.Generator()
def step(): return [TASKS[name].corrupt(x, 3, generator) for name in ("deblur", "interpolate", "inpaint")]
step(); step(); before = faults()
for _ in range(20): step()
print(faults() - before)
"""


def faults_after(first: str) -> int:
    """Page faults of twenty batches through three tasks."""
    run = subprocess.run([sys.executable, "-c", first + COUNT], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library can be told to keep memory")
def test_the_library_keeps_what_is_freed():
    as_it_was = faults_after("from odl.machine import device; device.keep_memory = lambda: False\n")
    assert faults_after("") < as_it_was / 10


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr(device.sys, "platform", "darwin")
    assert device.keep_memory() is False


def test_a_torch_without_onednn_is_not_asked_what_it_knows(monkeypatch):
    """As on a Mac: the namespace is empty there."""
    monkeypatch.setattr(device.torch.backends.mkldnn, "is_available", lambda: False)
    monkeypatch.setattr(device.torch.ops, "mkldnn", object())
    assert device.quick_precision() == "fp32"
