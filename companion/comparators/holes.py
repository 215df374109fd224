"""Blocks that are missing in the middle or anywhere, and the error of a fill inside them (Table 2)."""

from functools import partial
from math import ceil

import numpy as np
import pandas as pd
import torch
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
from skimage.restoration import inpaint_biharmonic
from threadpoolctl import threadpool_limits
from torch import nn

from companion.data import packs
from odl import crops
from odl.corruptions import delete, draw_square, square_mask
from odl.device import forward
from odl.evaluation import psnr

BLOCKS = ("central", "arbitrary")
SIDE = 32  # the paper does not say; the context encoder's setting implies it


def block_masks(block: str, n: int, generator, side: int = SIDE) -> torch.Tensor:
    """Draw masks that are true inside one missing block per image, in the middle or anywhere: (n, 1, 64, 64)."""
    sides = torch.full((n,), float(side), device=generator.device)
    return square_mask(draw_square(sides, sides, crops.CROP, generator, centred=block == "central"), crops.CROP)


def inpaint(network, y, mask, precision: str = "fp32") -> torch.Tensor:
    """Fill the missing pixels of y (B, 3, 64, 64): true in mask (B, 1, 64, 64).

    A network that returns only the centre leaves missing pixels outside it as they are.
    """
    return paste(forward(network, y, precision), y, mask)


def paste(x_hat, y, mask) -> torch.Tensor:
    """Return y (B, 3, 64, 64) with its missing pixels from x_hat (B, 3, side, side), the whole image or its centre."""
    margin = (y.shape[-1] - x_hat.shape[-1]) // 2
    inside = nn.functional.pad(torch.ones_like(x_hat[:, :1], dtype=torch.bool), [margin] * 4)
    return torch.where(mask & inside, nn.functional.pad(x_hat, [margin] * 4), y)


def hole_error(x_hat, x, mask) -> torch.Tensor:
    """Return mean squared error per image over its missing pixels, on the [0, 1] scale: (B,)."""
    squared = ((x_hat - x) ** 2 * mask).flatten(1).sum(1)
    return squared / (x.shape[1] * mask.flatten(1).sum(1)) / 4


def errors(fill, x, mask, batch_size: int) -> torch.Tensor:
    """Return `hole_error` of what `fill(y, mask)` makes of x without the pixels in mask, a batch at a time: (B,)."""
    parts = zip(x.split(batch_size), mask.split(batch_size), strict=True)
    return torch.cat([hole_error(fill(delete(p, m), m), p, m) for p, m in parts])


def evaluate(experiment, network, device="cpu", progress=None) -> pd.DataFrame:
    """Return `measure` of a network."""
    fill = partial(inpaint, network.to(device).eval(), precision=experiment.precision)
    return measure(experiment, fill, device, progress)


@torch.inference_mode()
def measure(experiment, fill, device="cpu", progress=None) -> pd.DataFrame:
    """Return rows (trial, level, l2, psnr), level `central` or `arbitrary`; the same draws for every `fill(y, mask)`.

    l2 in ‰, psnr the mean over images of the PSNR per image, both inside the block.
    """
    # Paper: standard errors are not given here; here: a trial draws its crops afresh, because nothing else varies
    # between two trials of the central block.
    pack = packs.load(experiment.dataset, "test")
    rows = []
    for trial in range(experiment.trials):
        x = crops.fixed_crops(pack, experiment.test_images, f"blocks/{trial}").to(device)
        for block in BLOCKS:
            generator = torch.Generator(device).manual_seed(crops.seed_of("blocks", trial, block))
            mask = block_masks(block, len(x), generator)
            error = errors(fill, x, mask, experiment.batch_size)
            rows.append((trial, block, error.mean().item() * 1000, psnr(error).mean().item()))
            if progress:
                progress(len(rows) / (experiment.trials * len(BLOCKS)))
    return pd.DataFrame(rows, columns=["trial", "level", "l2", "psnr"]).round({"l2": 6, "psnr": 5})


def work_of(experiment) -> int:
    """Return the number of batches passed forward in one measurement on the blocks."""
    return experiment.trials * len(BLOCKS) * ceil(experiment.test_images / experiment.batch_size)


def smoothest(y, mask) -> torch.Tensor:
    """Return y (B, C, H, W) in [-1, 1] with Δ²x̂ = 0 where mask (B, 1, H, W) is true, as scikit-image solves it."""
    pairs = zip(y.permute(0, 2, 3, 1).double().numpy(), mask[:, 0].numpy(), strict=True)
    with threadpool_limits(1, "blas"):  # as in `interpolated`
        filled = [inpaint_biharmonic((image + 1) / 2, missing, channel_axis=-1) for image, missing in pairs]
    return torch.from_numpy(np.stack(filled) * 2 - 1).permute(0, 3, 1, 2).to(y.dtype)


def interpolated(image: np.ndarray, hole: np.ndarray) -> np.ndarray:
    """Return an image (H, W[, C]) whose pixels where `hole` (H, W) is true are linear between the nearest known ones.

    These are the corners of Delaunay's triangles; beyond the outermost a pixel is as its nearest.
    """
    filled, known, wanted = image.copy(), (np.argwhere(~hole), image[~hole]), np.argwhere(hole)
    with threadpool_limits(1, "blas"):  # each triangle is a tiny system, on which two threads wait for busy cores
        inside = LinearNDInterpolator(*known)(wanted)
    beyond = np.isnan(inside)
    filled[hole] = np.where(beyond, NearestNDInterpolator(*known)(wanted), inside) if beyond.any() else inside
    return filled
