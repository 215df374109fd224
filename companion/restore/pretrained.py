"""Photographs restored by the networks that ship: whole, or as the paper has it in windows."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from companion.data import reader
from companion.restore import image_files
from companion.restore.chosen import PAPER, check_call, weights_of
from companion.restore.fill import GONE, ToldUNet
from companion.restore.tiles import restore_whole
from companion.training.checkpoint import read_weights
from companion.training.device import check_device
from companion.training.results import load_network, place_of_weights
from odl import paper
from odl.corruptions import FILL, TASKS
from odl.crops import CROP
from odl.device import pytorch_defaults, quick_precision
from odl.experiment import PROFILES, Experiment
from odl.images import check_image, check_scale
from odl.network import EncoderDecoder, ResidualUNet
from odl.parameters import choice
from odl.windows import inpaint_image, restore_image, shares, window_starts

STRIDES = (8, 16, 32)
MAX_WINDOWS = 60_000  # two to three minutes of one CPU core at width 32
# For the networks behind pictures and for Table 3's.
LONG = {profile: {"epochs": 6 * PROFILES[profile]["epochs"]} for profile in ("reference", "gpu")}


def load(task: str) -> EncoderDecoder:
    """Return the paper's network of a task (inpaint, interpolate, deblur or denoise), in eval mode on the CPU.

    It maps (B, 3, 64, 64) in [-1, 1] to the same shape; (B, 1, 64, 64) to denoise. Of the weights that are here those
    of the longest training are taken, but for inpainting, where it closes squares better and scratches worse;
    those that ship are checked against their manifest. Raises ParameterError, FileNotFoundError, or DamagedFile.

    >>> network = odl.load("deblur")
    """
    choice("task", task, paper.TASKS)
    short = Experiment.of(task, "bsds500", "on_demand", profile="reference")
    long = replace(short, **LONG["reference"])
    experiment = long if task != "inpaint" and place_of_weights(long) else short
    place = place_of_weights(experiment)
    return copy.deepcopy(read(experiment, place, place and place.stat().st_mtime_ns))


@cache
def read(experiment: Experiment, place: Path | None, changed: int | None) -> EncoderDecoder:
    """Read a run's network from its file, once a process unless the file has changed."""
    return load_network(experiment)


def load_for_photographs(task: str, device: str = "cpu") -> ResidualUNet:
    """Return the network for photographs with this damage, where `weights_of` has it; callers share it."""
    place = weights_of(task)
    return read_unet(place, place.stat().st_mtime_ns, device)


@cache
@pytorch_defaults()
def read_unet(place: Path, changed: int, device: str) -> ResidualUNet:
    """Read a network for photographs from its file, once a process unless the file has changed."""
    weights = read_weights(place)
    width, planes = weights["head.weight"].shape[:2]
    network = (ToldUNet if planes == 16 else ResidualUNet)(3, width)
    network.load_state_dict({name: t.float() for name, t in weights.items()})
    return network.eval().to(device, memory_format=torch.channels_last)


@pytorch_defaults()
def restore(
    image: np.ndarray | Image.Image,
    task: str,
    mask: np.ndarray | Image.Image | None = None,
    stride: int | None = None,
    device: str = "auto",
    progress: Callable[[float], None] | None = None,
    network: str | None = None,
) -> np.ndarray | Image.Image:
    """Restore a photograph of any size with the pretrained network of a task, and return it as it was given.

    `image` is (H, W) or (H, W, 3), floats in [0, 1] or uint8, or a Pillow image, returned upright with its alpha.
    `mask` says which pixels are missing and what lies there does not matter: (H, W), true or not 0 where missing, or a
    picture, Pillow's or an array, that is white, red or transparent there. It is needed to inpaint and to interpolate.
    Pixels that are not missing are returned as they are.
    `network` is `photographs`, which have met noise, blur and holes of many kinds and are told the mask, or `paper`,
    the on-demand networks of the notebooks; None takes the first where they ship. Those of the paper see windows of
    64×64 pixels, `stride` apart (None: by the number of pixels, so that a CPU takes minutes at most); they make hardly
    damaged photographs worse, and denoise a colour image channel by channel.
    `device` is auto, cpu or cuda; `progress(share done)` is called as it goes. Warns with `DamageWarning` where the
    mask seems inverted or the image is very dark. Raises ParameterError, of one line.

    >>> clean = odl.restore(noisy, "denoise")
    >>> whole = odl.restore(photograph, "inpaint", mask=scratches)
    """
    network = check_call(task, mask, stride, network)
    picture = isinstance(image, Image.Image)
    image = image_files.eight_bits("image", image) if picture else image
    y = np.asarray(reader.flat(image)) if picture else image_files.as_array("image", image)
    check_image(y)
    missing = image_files.missing(y, task, mask)
    device, known = check_device(device), y if missing is None else y[~missing]
    doubt = None if missing is None else image_files.doubt_of_mask(missing, task)
    for line in filter(None, (reader.faint(known if y.dtype == np.uint8 else 255 * known), doubt)):
        warnings.warn(line, image_files.DamageWarning, stacklevel=3)  # of who calls, above the decorator
    by = partial(by_windows, task, stride) if network == PAPER else partial(at_once, task)
    x_hat, (box, part) = np.array(y, np.float32 if y.dtype == bool else None), by(y, missing, device, progress)
    if y.dtype == np.uint8:
        part = (part * 255).round()
    gone = missing if missing is None or y.ndim == 2 else missing[..., None]
    x_hat[box] = part if gone is None else np.where(gone[box], part, y[box])
    return image_files.like(image, x_hat) if picture else x_hat


def at_once(task: str, y: np.ndarray, missing: np.ndarray | None, device: str, progress) -> tuple[tuple, np.ndarray]:
    """Restore every pixel of y, whole or in tiles, by a network for photographs. Returns what `by_windows` does."""
    network, damaged = load_for_photographs(task, device), in_colour(y, missing)
    check_scale("image", damaged)
    known = damaged if missing is None else damaged[~missing]
    grey = bool((known == known[..., :1]).all())
    planes = torch.from_numpy(damaged).permute(2, 0, 1)[None] * 2 - 1
    if missing is not None:
        planes = planes.clamp(-1, 1)
        planes[..., torch.from_numpy(missing)] = GONE
    x_hat = restore_whole(network, planes.to(device), quick_precision(device), progress)[0].cpu()
    x_hat = x_hat.mean(0, keepdim=True).expand(x_hat.shape) if grey else x_hat
    whole = ((x_hat + 1) / 2).clamp(0, 1).permute(1, 2, 0).numpy()
    return (slice(None), slice(None)), whole if y.ndim == 3 else whole[..., 0]


def by_windows(task: str, stride: int | None, y: np.ndarray, missing: np.ndarray | None, device: str, progress):
    """Restore y by the paper's network on windows, of a masked image those near the holes.

    Returns a box of y (rows, columns) and its pixels on [0, 1]. A grey image whose holes the network knows by their
    tint is restored as three channels.
    """
    stride, how = stride or stride_for(y, task, missing), {"precision": quick_precision(device), "device": device}
    box = (slice(None), slice(None)) if missing is None else around(missing, stride)
    gone = None if missing is None else missing[box]
    by = partial(inpaint_image, mask=gone) if task == "inpaint" else restore_image
    damaged = floats(y[box]) if gone is None else in_colour(y[box], gone)
    part = by(load(task), damaged, stride=stride, progress=progress, **how)
    return box, part.mean(2) if part.ndim > y.ndim else part


def floats(y: np.ndarray) -> np.ndarray:
    """Return an image uint8 or on [0, 1] as float32 on [0, 1]."""
    return np.asarray(y, np.float32) / (255 if y.dtype == np.uint8 else 1)


def in_colour(y: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    """Return an image (H, W[, 3]) as float32 (H, W, 3) on [0, 1], its missing pixels of the paper's tint."""
    damaged = floats(y).copy() if y.ndim == 3 else np.repeat(floats(y)[..., None], 3, 2)
    if missing is not None:
        damaged[missing] = np.float32(FILL) / 255
    return damaged


def around(missing: np.ndarray, stride: int) -> tuple[slice, slice]:
    """Return the rows and columns that hold every window with a missing pixel; windows lie there as in the image."""
    box = []
    for axis, side in enumerate(missing.shape):
        first, last = np.flatnonzero(missing.any(1 - axis))[[0, -1]].tolist()
        start = max(0, first - CROP + 1) // stride * stride
        box.append(slice(start, side if side - CROP <= last else last // stride * stride + CROP))
    return tuple(box)


def stride_for(image: np.ndarray, task: str, missing: np.ndarray | None) -> int:
    """Return the closest of STRIDES with at most MAX_WINDOWS windows for the network, to inpaint those with holes."""
    area = image.size if TASKS[task].channels == 1 else image.shape[0] * image.shape[1]
    if task == "inpaint" and min(missing.shape) > CROP:
        part = missing[around(missing, STRIDES[0])]
        starts = [window_starts(side, STRIDES[0]) for side in part.shape]
        area = int((shares(torch.from_numpy(part), *starts) > 0).sum()) * STRIDES[0] ** 2
    return next((stride for stride in STRIDES if area / stride**2 <= MAX_WINDOWS), STRIDES[-1])
