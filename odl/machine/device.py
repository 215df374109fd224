"""What differs between machines: precision, deterministic kernels, the allocator."""

import ctypes
import os
import re
import sys
import warnings
from functools import cache

import torch
from loky import cpu_count


@cache
def constant(values: tuple, device: torch.device) -> torch.Tensor:
    """Numbers on the device; copied there once, because a CUDA graph can hold no copy from the host."""
    with torch.inference_mode(False):  # kept for training too, whoever asks first
        return torch.tensor(values, dtype=torch.float32, device=device)


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


def quick_precision(device: str = "cpu") -> str:
    """`bf16` where the device has it natively, else `fp32`: for what is no measurement."""
    if str(device).startswith("cuda"):
        return "bf16" if torch.cuda.get_device_capability()[0] >= 8 else "fp32"  # a T4 has 7.5
    onednn = torch.backends.mkldnn.is_available()  # not in the wheels for Macs, which lack the question too
    return "bf16" if onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported() else "fp32"


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


def forward(network, y, precision: str) -> torch.Tensor:
    """Forward pass in fp64, else in `arithmetic(precision)` and returned in fp32: (B, channels, 64, 64)."""
    if precision == "fp64":
        return network(y.double())
    half = arithmetic(precision, y.device.type) == "bf16"
    with torch.autocast(y.device.type, torch.bfloat16, enabled=half):
        return network(y).float()


def arithmetic(precision: str, device: str) -> str:
    """What is computed in: the precision, but fp32 for bf16 where the device has none natively."""
    return quick_precision(device) if precision == "bf16" else precision


def adam(parameters, learning_rate: float, device, beta1: float = 0.5) -> torch.optim.Adam:
    """Adam as in Sec. 6.2; on a GPU its state and its rate stay there, so that a graph can hold them."""
    on_gpu = torch.device(device).type == "cuda"
    rate = torch.tensor(learning_rate, device=device) if on_gpu else learning_rate
    optimizer = torch.optim.Adam(parameters, rate, betas=(beta1, 0.999), fused=True, capturable=on_gpu)
    for group in optimizer.param_groups:
        group["initial_lr"] = float(group["lr"])
    return optimizer


def set_rate(optimizer, factor: float) -> None:
    """Set every learning rate to `factor` times its initial one."""
    for group in optimizer.param_groups:
        rate = factor * group["initial_lr"]
        group["lr"] = group["lr"].fill_(rate) if torch.is_tensor(group["lr"]) else rate


RESERVED = 4 << 30  # bytes of a GPU that training wants beside the images


def room(device) -> float:
    """Bytes that a pack may take on a device; on a CPU any number, because its file is mapped into memory."""
    if torch.device(device).type == "cpu":
        return float("inf")
    return torch.cuda.mem_get_info(device)[0] - RESERVED
