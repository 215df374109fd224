"""Arithmetic on a device: precision, Adam whose state a GPU keeps, constants that are copied once."""

import threading
from contextlib import ExitStack, contextmanager
from functools import cache

import torch

MATMUL = [getattr(library, "matmul", None) for library in (torch.backends.cuda, torch.backends.mkldnn)]
DEFAULTS = [
    (each, "fp32_precision", "ieee") for each in MATMUL if hasattr(each, "fp32_precision")
]  # from PyTorch 2.9 on
DEFAULTS += [(torch.backends.cudnn, "benchmark", False)]
DEFAULTS += [
    (each, "enabled", True) for each in (torch.backends.cudnn, torch.backends.mkldnn) if hasattr(each, "enabled")
]


SHARED, INSIDE, ENTERING = ExitStack(), [], threading.Lock()  # what is put back, by whom, one at a time


@contextmanager
def pytorch_defaults():
    """Compute as PyTorch does by default, so that nothing a caller has set in the process changes a number.

    Set and put back are the default dtype and device, autocast, the gradient mode, and how products are computed. What
    all threads share is put back by the last of those that overlap.
    """
    with ExitStack() as stack:
        with ENTERING:
            if not INSIDE:
                SHARED.callback(torch.set_default_dtype, torch.get_default_dtype())
                for library, name, _ in DEFAULTS:
                    SHARED.callback(setattr, library, name, getattr(library, name))
            INSIDE.append(stack)
            stack.callback(leave)
            torch.set_default_dtype(torch.float32)
            for library, name, value in DEFAULTS:
                setattr(library, name, value)
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):  # its cache of cast weights would outlive a step
                stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        stack.enter_context(torch.inference_mode(False))  # gradients are kept, too
        yield


def leave() -> None:
    """Put back what all threads share, where no other computes."""
    with ENTERING:
        INSIDE.pop()
        if not INSIDE:
            SHARED.close()


@cache
def constant(values: tuple, device: torch.device) -> torch.Tensor:
    """Return numbers on the device, copied there once, because a CUDA graph can hold no copy from the host."""
    with torch.inference_mode(False):  # kept for training too, whoever asks first
        return torch.tensor(values, dtype=torch.float32, device=device)


def quick_precision(device: str = "cpu") -> str:
    """Return the quick precision of a device: `bf16` where it has that natively, else `fp32`."""
    if str(device).startswith("cuda"):
        return "bf16" if torch.cuda.get_device_capability()[0] >= 8 else "fp32"  # a T4 has 7.5
    onednn = torch.backends.mkldnn.is_available()  # not in the wheels for Macs, which lack the question too
    return "bf16" if onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported() else "fp32"


def forward(network, y, precision: str) -> torch.Tensor:
    """Return what the network makes of y (B, channels, H, W): in fp64, else in `arithmetic(precision)`, as fp32."""
    if precision == "fp64":
        return network(y.double())
    half = arithmetic(precision, y.device.type) == "bf16"
    with torch.autocast(y.device.type, torch.bfloat16, enabled=half):
        return network(y).float()


def arithmetic(precision: str, device: str) -> str:
    """Return what is computed in: the precision, but fp32 for bf16 where the device has none natively."""
    return quick_precision(device) if precision == "bf16" else precision


def adam(parameters, learning_rate: float, device, beta1: float = 0.5) -> torch.optim.Adam:
    """Return Adam as in Sec. 6.2; on a GPU its state and its rate stay there, so that a graph can hold them."""
    on_gpu = torch.device(device).type == "cuda"
    rate = torch.tensor(learning_rate, device=device) if on_gpu else learning_rate
    optimizer = torch.optim.Adam(parameters, rate, betas=(beta1, 0.999), fused=True, capturable=on_gpu)
    for group in optimizer.param_groups:
        group["initial_lr"] = float(group["lr"])
    return optimizer


def set_rate(optimizer, factor: float) -> None:
    """Set every learning rate to `factor` times its initial one."""
    for group in optimizer.param_groups:
        rate = factor * group.setdefault("initial_lr", float(group["lr"]))
        group["lr"] = group["lr"].fill_(rate) if torch.is_tensor(group["lr"]) else rate


RESERVED = 4 << 30  # bytes of a GPU that training wants beside the images


def room(device) -> float:
    """Return how many bytes a pack may take on a device; on a CPU infinity, because its file is mapped into memory."""
    if torch.device(device).type == "cpu":
        return float("inf")
    return torch.cuda.mem_get_info(device)[0] - RESERVED
