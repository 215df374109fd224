"""The pretrained on-demand networks, and what they make of a photograph."""

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
from companion.restore import advice as doubts
from companion.restore import image_files
from companion.training.device import check_device
from companion.training.results import load_network, place_of_weights
from odl import paper
from odl.corruptions import FILL, TASKS
from odl.crops import CROP
from odl.device import quick_precision
from odl.experiment import PROFILES, Experiment
from odl.images import check_image
from odl.network import EncoderDecoder
from odl.parameters import choice
from odl.windows import inpaint_image, restore_image, shares, window_starts

STRIDES = (8, 16, 32)
MAX_WINDOWS = 60_000  # two to three minutes of one CPU core at width 32
SAMPLE = 256  # pixels of a side of what is denoised first, to warn before the work
# For the networks behind pictures and for Table 3's.
LONG = {profile: {"epochs": 6 * PROFILES[profile]["epochs"]} for profile in ("reference", "gpu")}


def load(task: str) -> EncoderDecoder:
    """The pretrained on-demand network of a task (inpaint, interpolate, deblur or denoise), in eval mode on the CPU.

    It maps (B, 3, 64, 64) in [-1, 1] to the same shape; (B, 1, 64, 64) to denoise. Of the weights that are here those
    of the longest training are taken, but for inpainting, where it closes squares better and scratches worse (the
    notebook `applications`); those that ship are checked against their manifest. Raises ParameterError,
    FileNotFoundError, or DamagedFile.

    >>> network = odl.load("deblur")
    """
    choice("task", task, paper.TASKS)
    short = Experiment.of(task, "bsds500", "on_demand", profile="reference")
    long = replace(short, **LONG["reference"])
    run = long if task != "inpaint" and place_of_weights(long) else short
    place = place_of_weights(run)
    return copy.deepcopy(read(run, place, place and place.stat().st_mtime_ns))


@cache
def read(run: Experiment, place: Path | None, changed: int | None) -> EncoderDecoder:
    """Read a run's network from its file, once a process unless the file has changed."""
    return load_network(run)


def restore(
    image: np.ndarray | Image.Image,
    task: str,
    mask: np.ndarray | Image.Image | None = None,
    stride: int | None = None,
    device: str = "auto",
    progress: Callable[[float], None] | None = None,
) -> np.ndarray | Image.Image:
    """Restore a photograph of any size with the pretrained network of a task, and return it as it was given.

    `image` is (H, W) or (H, W, 3), floats in [0, 1] or uint8, or a Pillow image, returned upright with its alpha.
    `mask` says which pixels are missing and what lies there does not matter: (H, W), true or not 0 where missing, or a
    Pillow image that is white, red or transparent there. It is needed to inpaint and to interpolate. Pixels that are
    not missing are returned as they are. The denoiser was trained on grey images: of a colour image it restores each
    channel alone.
    Windows of 64×64 pixels lie `stride` apart (None: by the number of pixels, so that a CPU takes minutes at most).
    `device` is auto, cpu or cuda; `progress(share done)` is called as it goes. Warns with `DamageWarning` where the
    result may be worse than the image. Raises ParameterError, of one line.

    >>> clean = odl.restore(noisy, "denoise")
    >>> whole = odl.restore(photograph, "inpaint", mask=scratches)
    """
    image_files.check_call(task, mask, stride)
    picture = isinstance(image, Image.Image)
    image = image_files.eight_bits("image", image) if picture else image
    y = np.asarray(reader.flat(image)) if picture else image_files.as_array("image", image)
    check_image(y)
    missing = image_files.missing(y, task, mask)
    device, stride, network = check_device(device), stride or stride_for(y, task, missing), load(task)
    how = {"precision": quick_precision(device), "device": device}
    doubt, known = before(network, y, task, missing, how), y if missing is None else y[~missing]
    for line in filter(None, (reader.faint(known if y.dtype == np.uint8 else 255 * known), doubt)):
        warnings.warn(line, doubts.DamageWarning, stacklevel=2)
    x_hat = np.array(y, np.float32 if y.dtype == bool else None)
    box = (slice(None), slice(None)) if missing is None else around(missing, stride)
    part, gone = y[box], None if missing is None else missing[box]
    by = partial(inpaint_image, mask=gone) if task == "inpaint" else restore_image
    whole = by(network, floats(part, gone), stride=stride, progress=progress, **how)
    if y.dtype == np.uint8:
        whole = (whole * 255).round()
    keep = False if gone is None else ~gone if y.ndim == 2 else ~gone[..., None]
    x_hat[box] = np.where(keep, part, whole)
    if task == "denoise" and not doubt and (doubt := doubts.doubt(floats(y), floats(x_hat), task)):
        warnings.warn(doubt, doubts.DamageWarning, stacklevel=2)
    return image_files.like(image, x_hat) if picture else x_hat


def floats(y: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
    """An image (H, W[, 3]) uint8 or on [0, 1] as float32 on [0, 1], its missing pixels grey."""
    damaged = np.array(y, np.float32)
    if y.dtype == np.uint8:
        damaged /= 255
    if missing is not None:
        damaged[missing] = np.float32(FILL) / 255 if y.ndim == 3 else np.mean(FILL) / 255
    return damaged


def before(network, y: np.ndarray, task: str, missing: np.ndarray | None, how: dict) -> str | None:
    """The doubt that there is before the work, if any; of noise, from the middle of a large image."""
    if missing is not None:
        return doubts.doubt_of_mask(y, missing, task)
    if task != "denoise":
        return doubts.doubt(floats(y), None, task)
    top, left = ((side - SAMPLE) // 2 for side in y.shape[:2])
    if min(top, left) < SAMPLE // 2:
        return None
    middle = floats(y[top : top + SAMPLE, left : left + SAMPLE])
    return doubts.doubt(middle, restore_image(network, middle, STRIDES[-1], **how), task)


def around(missing: np.ndarray, stride: int) -> tuple[slice, slice]:
    """Return the rows and columns that hold every window with a missing pixel; windows lie there as in the image."""
    box = []
    for axis, side in enumerate(missing.shape):
        first, last = np.flatnonzero(missing.any(1 - axis))[[0, -1]].tolist()
        start = max(0, first - CROP + 1) // stride * stride
        box.append(slice(start, side if side - CROP <= last else last // stride * stride + CROP))
    return tuple(box)


def stride_for(image: np.ndarray, task: str, missing: np.ndarray | None) -> int:
    """The closest of STRIDES at which the network sees at most MAX_WINDOWS windows, to inpaint those with holes."""
    area = image.size if TASKS[task].channels == 1 else image.shape[0] * image.shape[1]
    if task == "inpaint" and min(missing.shape) > CROP:
        part = missing[around(missing, STRIDES[0])]
        starts = [window_starts(side, STRIDES[0]) for side in part.shape]
        area = int((shares(torch.from_numpy(part), *starts) > 0).sum()) * STRIDES[0] ** 2
    return next((stride for stride in STRIDES if area / stride**2 <= MAX_WINDOWS), STRIDES[-1])
