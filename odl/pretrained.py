"""The pretrained on-demand networks, and what they make of a photograph."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from PIL import Image

from odl import damage, paper, photographs
from odl.corruptions import FILL, TASKS
from odl.crops import CROP
from odl.data import reader
from odl.experiment import PROFILES, Experiment
from odl.machine.device import quick_precision
from odl.network import EncoderDecoder
from odl.parameters import ParameterError, check_device, choice
from odl.results import network_of, place_of_weights
from odl.windows import inpaint_image, restore_image, shares, window_starts

STRIDES = (8, 16, 32)
MAX_WINDOWS = 60_000  # two to three minutes of one CPU core at width 32
LEAST = -0.5  # below 0 there is only what filters overshoot, and what is on another scale
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
    return network_of(long if task != "inpaint" and place_of_weights(long) else short)


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
    photographs.check_call(task, mask, stride)
    picture = isinstance(image, Image.Image)
    image = reader.upright(image) if picture else image
    y = photographs.pixels(image) if picture else photographs.as_array("image", image)
    photographs.check_shape(y)
    if y.dtype.kind in "iu" and y.dtype != np.uint8:
        how = "image / 65535" if y.dtype == np.uint16 else "np.uint8(image)"
        raise ParameterError(f"image has type {y.dtype}; floats in [0, 1] or uint8 are needed, as {how}")
    missing = photographs.missing(y, task, mask)
    damaged = (y / 255 if y.dtype == np.uint8 else y).astype(np.float32)
    if missing is not None:
        damaged[missing] = np.float32(FILL) / 255 if y.ndim == 3 else np.mean(FILL) / 255
    low = means_of_blocks(damaged).min(initial=0) < LEAST / 5 if task == "denoise" else damaged.min() < LEAST
    if low:  # noise that is not clipped goes there, but not in the mean of many pixels
        reach = f"{damaged.min():.3g} to {damaged.max():.3g}"
        raise ParameterError(f"image reaches from {reach}; the [0, 1] scale is needed, as (image + 1) / 2")
    device, stride = check_device(device), stride or stride_for(damaged, task, missing)
    by = partial(inpaint_image, mask=missing) if task == "inpaint" else restore_image
    x_hat = by(load(task), damaged, stride=stride, precision=quick_precision(device), device=device, progress=progress)
    if doubt := damage.doubt(damaged, x_hat, task, missing):
        warnings.warn(doubt, damage.DamageWarning, stacklevel=2)
    x_hat = (x_hat * 255).round().astype(np.uint8) if y.dtype == np.uint8 else x_hat
    x_hat = x_hat.astype(y.dtype) if y.dtype.kind == "f" else x_hat
    if missing is not None:
        x_hat = np.where(missing if y.ndim == 2 else missing[..., None], x_hat, y)
    return photographs.like(image, x_hat) if picture else x_hat


def means_of_blocks(image: np.ndarray, side: int = 16) -> np.ndarray:
    """Means of the whole blocks of side×side pixels in an image (H, W[, 3])."""
    height, width = (length // side * side for length in image.shape[:2])
    blocks = image[:height, :width].reshape(height // side, side, width // side, side, *image.shape[2:])
    return blocks.mean((1, 3))


def stride_for(image: np.ndarray, task: str, missing: np.ndarray | None) -> int:
    """The closest of STRIDES at which the network sees at most MAX_WINDOWS windows, to inpaint those with holes."""
    area = image.size if TASKS[task].channels == 1 else image.shape[0] * image.shape[1]
    if task == "inpaint" and min(missing.shape) > CROP:
        starts = [window_starts(side, STRIDES[0]) for side in missing.shape]
        area = int((shares(torch.from_numpy(missing), *starts) > 0).sum()) * STRIDES[0] ** 2
    return next((stride for stride in STRIDES if area / stride**2 <= MAX_WINDOWS), STRIDES[-1])
