"""Freed memory stays in the process: counted by the page faults of the kernel, in a process of its own."""

import platform
import subprocess
import sys

import pytest

from odl.machine import device

COUNT = """
import resource, torch
from odl.corruptions import TASKS
from odl.machine.device import prepare
torch.set_num_threads(1)
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
x, generator = torch.zeros(100, 3, 64, 64), torch.Generator()
def step(): return [TASKS[name].corrupt(x, 3, generator) for name in ("deblur", "interpolate", "inpaint")]
def of_twenty_batches():
    step(); step(); before = faults()
    for _ in range(20): step()
    return faults() - before
as_it_was = of_twenty_batches()
prepare('cpu')
print(as_it_was, of_twenty_batches())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library can be told to keep memory")
def test_the_library_keeps_what_is_freed():
    run = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    as_it_was, kept = map(int, run.stdout.split())
    assert kept < as_it_was / 10


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr(device.sys, "platform", "darwin")
    assert device.keep_memory() is False


def test_a_torch_without_onednn_is_not_asked_what_it_knows(monkeypatch):
    """As on a Mac: the namespace is empty there."""
    monkeypatch.setattr(device.torch.backends.mkldnn, "is_available", lambda: False)
    monkeypatch.setattr(device.torch.ops, "mkldnn", object())
    assert device.quick_precision() == "fp32"
