"""Which network restores a photograph: the newer ones for photographs where they ship, else the paper's."""

from pathlib import Path

from companion.disk import files
from odl import paper
from odl.parameters import ParameterError, choice, integer

PHOTOGRAPHS, PAPER = "photographs", "paper"  # what `network` may be
TRAINED_ON = {"denoise": "photo_denoise", "deblur": "photo_deblur"} | dict.fromkeys(paper.MASKED, "photo_fill")
MASK_HELP = "white, red or transparent where pixels are missing"


def weights_of(task: str) -> Path | None:
    """Return the file of the network for photographs with this damage; None where no manifest has it."""
    name = f"{TRAINED_ON[task]}.safetensors"
    for folder in (files.models(), files.shipped()):
        if (folder / "manifest.json").exists() and name in files.unseal(folder / "manifest.json"):
            return folder / name
    return None


def check_call(task: str, mask, stride: int | None = None, network: str | None = None) -> str:
    """Return which network restores, `photographs` or `paper`; refuse what no photograph could make right.

    Raises ParameterError.
    """
    choice("task", task, TRAINED_ON)
    if task in paper.MASKED and mask is None:
        raise ParameterError(f"task={task!r} needs a mask (--mask M.png), {MASK_HELP}")
    if mask is not None and task not in paper.MASKED:
        raise ParameterError(f"a mask (--mask) belongs to {' and '.join(paper.MASKED)}, not to task={task!r}")
    if network is not None:
        choice("network", network, (PHOTOGRAPHS, PAPER))
    network = network or (PHOTOGRAPHS if weights_of(task) else PAPER)
    if network == PHOTOGRAPHS and weights_of(task) is None:
        raise ParameterError(f"network={network!r} has no weights for {task} here; nearest: {PAPER!r}")
    if stride is not None:
        integer("stride", stride, 1, 64)
        if network == PHOTOGRAPHS:
            raise ParameterError(f"stride={stride} belongs to network='paper' (--network paper), which sees windows")
    return network
