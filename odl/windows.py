"""Images of any size: overlapping windows (Supp. H), and holes of any shape filled from their border, our own way."""

import copy
import itertools

import numpy as np
import torch
from torch import nn

from odl.corruptions import delete
from odl.crops import CROP
from odl.device import forward
from odl.images import check_image, check_mask, check_scale
from odl.parameters import integer

BATCH = 256  # windows that pass through the network at a time
MAX_HOLE = 0.35  # share of a window that may be missing: level 6 removes at most 36² of 64²


def restorer(network: nn.Module, precision: str = "fp32", device: str = "cpu"):
    """Return a trained network as a function y -> x_hat for inference, (B, channels, 64, 64) float32 in and out.

    `precision` is fp32, bf16 or fp64.
    """
    dtype = torch.float64 if precision == "fp64" else torch.float32
    network = copy.deepcopy(network).eval().to(device, dtype, memory_format=torch.channels_last)
    return torch.inference_mode()(lambda y: forward(network, y, precision).float())


def restore_image(network, image, stride=3, precision="fp32", device="cpu", progress=None):
    """Restore an image of any size by averaging the outputs of overlapping 64×64 windows (Supp. H: stride 3).

    `image` is float (height, width) or (height, width, 3) on the [0, 1] scale; what is returned has its shape.
    The last window of each row and column is flush with the border. A network for grey images restores each channel
    of a colour image alone. Images smaller than a window are reflected. After every `BATCH` windows
    `progress(share done)` is called. Raises ParameterError, also for a `stride` that is not 1 to 64 pixels.
    """
    x = planes_of(image, network)
    height, width = x.shape[2:]
    y = (reflect_to_window(x) * 2 - 1).to(device)
    places = list(itertools.product(*(window_starts(side, stride) for side in y.shape[2:])))
    total, count = votes(restorer(network, precision, device), y, places, progress)
    return to_image(((total / count).cpu() + 1) / 2, height, width, np.ndim(image))


def votes(restore, y, places, progress=None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sum of restored windows at `places` (top, left) of y (n, C, H, W), and how many see a pixel (H, W)."""
    total, count = torch.zeros_like(y), torch.zeros(y.shape[2:], device=y.device)
    step = max(1, BATCH // len(y))
    for i in range(0, len(places), step):
        group = places[i : i + step]
        windows = torch.cat([y[..., r : r + CROP, c : c + CROP] for r, c in group])  # (n · step, C, 64, 64)
        for (r, c), x_hat in zip(group, restore(windows).split(len(y)), strict=True):
            total[..., r : r + CROP, c : c + CROP] += x_hat
            count[r : r + CROP, c : c + CROP] += 1
        if progress:
            progress((i + len(group)) / len(places))
    return total, count


def inpaint_image(network, image, mask, stride=8, precision="fp32", device="cpu", progress=None):
    """Fill the pixels of `image` (height, width[, 3]), floats in [0, 1], where `mask` (height, width) is not 0.

    Windows that miss at most 35 % of their pixels (more, where none does) vote by their mean; what they fill counts as
    known for the next ring, so holes of any shape and size close from their border inwards. Known pixels are returned
    as they are, up to rounding. `stride` is 1 to 64 pixels; `progress(share done)` is called as windows are done.
    Raises ParameterError.
    """
    # Paper: objects are removed from photographs (Supp. F), how is not said.
    x, mask = planes_of(image, network), np.asarray(mask) != 0
    check_mask(mask, np.shape(image))
    height, width = x.shape[2:]
    y = (reflect_to_window(x) * 2 - 1).to(device)
    unknown = reflect_to_window(torch.from_numpy(mask)[None, None])[0, 0].to(device)
    restore = restorer(network, precision, device)
    rows, columns = (window_starts(side, stride) for side in y.shape[2:])
    left_at_start = int(unknown.sum())
    with torch.inference_mode():
        while unknown.any():
            share = shares(unknown, rows, columns)
            limit = share[share > 0].min().clamp(min=MAX_HOLE)
            chosen = [(rows[i], columns[j]) for i, j in ((share > 0) & (share <= limit)).nonzero().tolist()]
            filled = torch.zeros_like(unknown)
            for r, c in chosen:
                filled[r : r + CROP, c : c + CROP] = True
            filled &= unknown
            done, ring = 1 - int(unknown.sum()) / left_at_start, int(filled.sum()) / left_at_start
            within = progress and (lambda share, done=done, ring=ring: progress(done + share * ring))
            total, count = votes(restore, delete(y, unknown), chosen, within)
            y = torch.where(filled, total / count.clamp(min=1), y)
            unknown &= ~filled
    return to_image((y.cpu() + 1) / 2, height, width, np.ndim(image))


def shares(unknown: torch.Tensor, rows: list[int], columns: list[int]) -> torch.Tensor:
    """Return the share of pixels of `unknown` (H, W) in each window: (rows, columns), from sums over rectangles."""
    total = nn.functional.pad(unknown.long().cumsum(0).cumsum(1), (1, 0, 1, 0))
    top, left = torch.tensor(rows, device=unknown.device), torch.tensor(columns, device=unknown.device)
    above, below = total[top], total[top + CROP]
    return (below[:, left + CROP] - below[:, left] - above[:, left + CROP] + above[:, left]) / CROP**2


def window_starts(side: int, stride: int) -> list[int]:
    """Return the starts of the windows along one axis: every `stride` pixels, the last flush with the border.

    Raises ParameterError where pixels would lie between windows.
    """
    integer("stride", stride, 1, CROP)
    last = side - CROP
    return sorted({*range(0, last + 1, stride), last})


def planes_of(given, network) -> torch.Tensor:
    """Return the image as (n, `network.channels`, height, width) float; a network without takes the image's own.

    Raises ParameterError.
    """
    image = np.asarray(given, np.float32)
    check_image(image)
    check_scale("image", image)
    planes = torch.from_numpy(image[None] if image.ndim == 2 else image.transpose(2, 0, 1))  # (1 or 3, height, width)
    alone = getattr(network, "channels", len(planes)) == 1
    return planes.unsqueeze(1) if alone else planes.expand(3, *image.shape[:2]).unsqueeze(0)


def reflect_to_window(x: torch.Tensor) -> torch.Tensor:
    """Reflect (n, C, H, W) below and to the right until it holds a window."""
    below, right = (max(0, CROP - side) for side in x.shape[2:])
    return torch.from_numpy(np.pad(x.numpy(), ((0, 0), (0, 0), (0, below), (0, right)), mode="reflect"))


def to_image(x: torch.Tensor, height: int, width: int, ndim: int) -> np.ndarray:
    """Turn (n, C, ≥ height, ≥ width) back into (height, width) or (height, width, 3), clipped to [0, 1]."""
    planes = x[:, :, :height, :width].flatten(0, 1).clamp(0, 1)
    return planes.permute(1, 2, 0).numpy() if ndim == 3 else planes.mean(0).numpy()
