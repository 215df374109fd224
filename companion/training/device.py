"""What differs between machines: which device there is, deterministic kernels, the allocator."""

import ctypes
import os
import re
import sys
import warnings
from functools import cache

import torch
from loky import cpu_count

from odl.parameters import ParameterError, choice

DEVICES = ("auto", "cpu", "cuda")


def keep_memory() -> None:
    """Keep freed memory in the process instead of giving it back to the system, where that can be done.

    Every training step asks for the same tensors again, and the system would hand out each page anew and clear it
    first. Only the GNU C library can be told so.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt:
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD of malloc.h: all
        mallopt(-3, 32 * 2**20)  # M_MMAP_THRESHOLD: the largest value that it takes


@cache
def gpu() -> tuple[bool, str]:
    """Whether PyTorch can use a GPU here, and why it cannot use one that there is; what stays idle is printed once."""
    if not torch.cuda.is_available():
        return False, ""
    name = "this GPU"
    try:
        with warnings.catch_warnings(record=True) as said:  # of a GPU that cannot be used PyTorch says it in many lines
            warnings.simplefilter("always")
            need_kernels(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())
            name, count = torch.cuda.get_device_name(), torch.cuda.device_count()
            torch.ones(1, device="cuda").sum().item()
    except Exception as error:  # a P100, one that another process fills, or whatever a driver says
        reason = (
            f"PyTorch {torch.__version__} cannot use {name} ({[*str(error).splitlines(), type(error).__name__][0]})"
        )
        print(f"{reason}; the CPU is used", file=sys.stderr)
        return False, reason
    for line in said:
        warnings.warn(line.message, line.category, stacklevel=2)
    if count > 1:
        print(f"1 of {count} GPUs is used, {name}; the others are idle", file=sys.stderr)
    return True, ""


def need_kernels(capability: tuple[int, int], built: list[str]) -> None:
    """Raise RuntimeError where PyTorch has no code for a GPU: `sm_75` is for 7.5 to 7.9, `compute_75` from 7.5 on."""
    found = [re.match(r"(sm|compute)_(\d+)(\d)", name) for name in built]
    versions = [(match[1], (int(match[2]), int(match[3]))) for match in found if match]
    if not any(v <= capability and (kind == "compute" or v[0] == capability[0]) for kind, v in versions) and versions:
        raise RuntimeError(f"its code is for {', '.join(built)}, and not for sm_{capability[0]}{capability[1]}")


def prepare(device) -> None:
    """Set this process up for training on a device: memory that is kept, kernels that give the same bits.

    On a CPU with no more threads than a container grants cores, because PyTorch counts those of the machine.
    """
    keep_memory()
    torch.set_num_threads(min(torch.get_num_threads(), cpu_count()))
    if str(device).startswith("cuda"):
        make_deterministic()


def make_deterministic() -> None:
    """Kernels on a GPU that give the same bits at every call, also beside other streams: exact resume needs them."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.deterministic = True


def check_device(device) -> str:
    """`auto` becomes cuda where PyTorch can use one, else cpu; a line says what stays idle. Raises ParameterError."""
    choice("device", device, DEVICES)
    if device == "cpu":
        return device
    usable, reason = gpu()
    if device == "cuda" and not usable:
        raise ParameterError(
            f"device='cuda' is not available on this machine{reason and f': {reason}'}; nearest: 'cpu'"
        )
    return "cuda" if usable else "cpu"
