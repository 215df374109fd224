"""What differs between machines: which device there is, deterministic kernels, the allocator."""

import ctypes
import os
import sys
from functools import cache

import torch
from loky import cpu_count

from odl.parameters import ParameterError, choice

DEVICES = ("auto", "cpu", "cuda")


@cache
def gpu() -> tuple[bool, str]:
    """Return whether PyTorch can use a GPU here, and why not, which is printed once."""
    if not torch.cuda.is_available():
        return False, ""
    try:
        torch.ones(1, device="cuda").sum().item()
    except Exception as error:  # a P100, one that another process fills, or whatever a driver says
        why = [*str(error).splitlines(), type(error).__name__][0]
        reason = f"PyTorch {torch.__version__} cannot use this GPU ({why})"
        print(f"{reason}; the CPU is used", file=sys.stderr)
        return False, reason
    return True, ""


def prepare(device) -> None:
    """Set this process up for training on a device: memory that is kept, kernels that give the same bits.

    On a CPU with no more threads than a container grants cores, because PyTorch counts those of the machine.
    """
    # Freed memory stays in the process: every step asks for the same tensors, each page of which would be cleared.
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):  # of the GNU C library
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD of malloc.h: all
        mallopt(-3, 32 * 2**20)  # M_MMAP_THRESHOLD: the largest value that it takes
    torch.set_num_threads(min(torch.get_num_threads(), cpu_count()))
    if str(device).startswith("cuda"):
        make_deterministic()


def make_deterministic() -> None:
    """Select kernels of a GPU that give the same bits at every call, beside other streams, too, for exact resume."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.deterministic = True


def check_device(device) -> str:
    """Return cpu or cuda: of `auto`, cuda where PyTorch can use it. Raises ParameterError."""
    choice("device", device, DEVICES)
    if device == "cpu":
        return device
    usable, reason = gpu()
    if device == "cuda" and not usable:
        why = f": {reason}" if reason else ""
        raise ParameterError(f"device='cuda' is not available on this machine{why}; nearest: 'cpu'")
    return "cuda" if usable else "cpu"
