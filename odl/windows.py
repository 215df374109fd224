"""Images of any size: overlapping windows for denoising, deblurring and interpolation; masked inpainting (Supp. H)."""

import copy
import itertools

import numpy as np
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from odl.corruptions import FILL
from odl.crops import CROP
from odl.network import EncoderDecoder
from odl.parameters import ParameterError
from odl.photographs import check_shape, size_of

MAX_HOLE = 0.35  # share of a window that may be missing: level 6 removes at most 36² of 64²


def restorer(network: EncoderDecoder, precision: str = "fp32", device: str = "cpu"):
    """A trained network as a function y -> x_hat for inference, (B, channels, 64, 64) float32 in and out.

    BatchNorm is folded into the convolutions, and weights are rounded once, not at every call.
    """
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}[precision]
    network = fold_batchnorm(network).to(device, dtype)
    return torch.inference_mode()(lambda y: network(y.to(dtype)).float())


def restore_image(network, image, stride=3, batch=256, precision="fp32", device="cpu", progress=None):
    """Restore an image of any size by averaging the outputs of overlapping 64×64 windows (Supp. H: stride 3).

    `image` is float (height, width) or (height, width, 3) on the [0, 1] scale; what is returned has its shape.
    The last window of each row and column is flush with the border. A network for grey images restores each channel
    of a colour image alone. Images smaller than a window are reflected. About `batch` windows pass through the network
    at a time, and then `progress(share done)` is called.
    """
    x = check_image(image, network)
    height, width = x.shape[2:]
    y = (reflect_to_window(x) * 2 - 1).to(device)
    restore, total = restorer(network, precision, device), torch.zeros_like(y)
    rows, columns = (window_starts(side, stride) for side in y.shape[2:])
    done = 0
    for left, across in grids(columns, stride, len(columns)):
        for top, down in grids(rows, stride, max(1, batch // across)):
            size = [CROP + (count - 1) * stride for count in (down, across)]
            part = (..., slice(top, top + size[0]), slice(left, left + size[1]))
            windows = y[part].unfold(2, CROP, stride).unfold(3, CROP, stride)  # (n, C, down, across, 64, 64)
            windows = windows.permute(0, 2, 3, 1, 4, 5).flatten(0, 2)  # (n · down · across, C, 64, 64)
            x_hat = torch.cat([restore(some) for some in windows.split(batch)])
            x_hat = x_hat.reshape(len(y), down * across, -1).transpose(1, 2)  # (n, C · 64 · 64, down · across)
            total[part] += nn.functional.fold(x_hat, size, CROP, stride=stride)
            done += down * across
            if progress:
                progress(done / (len(rows) * len(columns)))
    count = torch.outer(*(cover(starts, side) for starts, side in zip((rows, columns), y.shape[2:], strict=True)))
    return to_image((total.cpu() / count + 1) / 2, height, width, np.ndim(image))


def grids(starts: list[int], stride: int, most: int) -> list[tuple[int, int]]:
    """(first start, how many) of runs of at most `most` windows that lie `stride` apart; the last may lie closer."""
    regular = len([start for start in starts if start % stride == 0])
    runs = [(starts[i], min(most, regular - i)) for i in range(0, regular, most)]
    return runs + [(start, 1) for start in starts[regular:]]


def cover(starts: list[int], side: int) -> torch.Tensor:
    """How many windows lie over each pixel along one axis: (side,)."""
    place = torch.arange(side)
    return sum(((place >= start) & (place < start + CROP)).float() for start in starts)


def inpaint_image(network, image, mask, stride=8, batch=256, precision="fp32", device="cpu", progress=None):
    """Fill the pixels of `image` (height, width[, 3]), floats in [0, 1], where `mask` (height, width) is true.

    Windows that miss at most a third of their pixels vote by their mean; what they fill counts as known for the next
    ring, so holes of any shape and size close from their border inwards. Known pixels are returned untouched.
    """
    x = check_image(image, network)
    missing = np.asarray(mask, bool)
    if missing.shape != tuple(x.shape[2:]):
        raise ParameterError(f"mask has size {size_of(missing.shape)}, the image {size_of(x.shape[2:])}")
    if missing.all():
        raise ParameterError("mask covers the whole image: nothing is known to inpaint from")
    height, width = x.shape[2:]
    y = (reflect_to_window(x) * 2 - 1).to(device)
    unknown = reflect_to_window(torch.from_numpy(missing)[None, None].float())[0, 0].to(device) > 0.5
    restore, fill = restorer(network, precision, device), torch.tensor(FILL, device=device).view(3, 1, 1) / 127.5 - 1
    rows, columns = (window_starts(side, stride) for side in y.shape[2:])
    left_at_start = int(unknown.sum())
    with torch.inference_mode():
        while unknown.any():
            share = shares(unknown, rows, columns)
            limit = share[share > 0].min().clamp(min=MAX_HOLE)
            chosen = [(rows[i], columns[j]) for i, j in ((share > 0) & (share <= limit)).nonzero().tolist()]
            total, count = torch.zeros_like(y[0]), torch.zeros(y.shape[2:], device=device)
            shown = torch.where(unknown, fill, y[0])
            for i in range(0, len(chosen), batch):
                group = chosen[i : i + batch]
                windows = torch.stack([shown[:, r : r + CROP, c : c + CROP] for r, c in group])
                for (r, c), x_hat in zip(group, restore(windows), strict=True):
                    total[:, r : r + CROP, c : c + CROP] += x_hat
                    count[r : r + CROP, c : c + CROP] += 1
            filled = unknown & (count > 0)
            y[0] = torch.where(filled, total / count.clamp(min=1), y[0])
            unknown &= ~filled
            if progress:
                progress(1 - int(unknown.sum()) / left_at_start)
    return to_image((y.cpu() + 1) / 2, height, width, np.ndim(image))


def shares(unknown: torch.Tensor, rows: list[int], columns: list[int]) -> torch.Tensor:
    """The share of unknown pixels in each window: (rows, columns), from sums over rectangles."""
    total = nn.functional.pad(unknown.long().cumsum(0).cumsum(1), (1, 0, 1, 0))
    top, left = torch.tensor(rows, device=unknown.device), torch.tensor(columns, device=unknown.device)
    above, below = total[top], total[top + CROP]
    return (below[:, left + CROP] - below[:, left] - above[:, left + CROP] + above[:, left]) / CROP**2


def window_starts(side: int, stride: int) -> list[int]:
    """Starts of the windows along one axis: every `stride` pixels, the last flush with the border."""
    last = side - CROP
    return sorted({*range(0, last + 1, stride), last})


def check_image(image, network) -> torch.Tensor:
    """The image as (n, channels of the network, height, width) float. Raises ParameterError."""
    array = np.asarray(image, np.float32)
    check_shape(array)
    if not np.isfinite(array).all():
        raise ParameterError("image has values that are not finite")
    if np.abs(array - 0.5).max() > 10:
        raise ParameterError(f"image reaches from {array.min():.3g} to {array.max():.3g}; the [0, 1] scale is needed")
    channels = network.encoder[0].in_channels
    x = torch.from_numpy(array)
    if channels == 1:
        return x[None, None] if x.ndim == 2 else x.permute(2, 0, 1).unsqueeze(1)
    return (x.unsqueeze(-1).expand(*x.shape, 3) if x.ndim == 2 else x).permute(2, 0, 1).unsqueeze(0).contiguous()


def reflect_to_window(x: torch.Tensor) -> torch.Tensor:
    """Reflect (n, C, H, W) below and to the right until it holds a window."""
    while min(x.shape[2:]) < CROP:
        grow = [max(0, min(CROP - side, side - 1)) for side in x.shape[2:]]
        x = nn.functional.pad(x, (0, grow[1], 0, grow[0]), mode="reflect")
    return x.clone()


def to_image(x: torch.Tensor, height: int, width: int, ndim: int) -> np.ndarray:
    """(n, C, ≥ height, ≥ width) back to (height, width) or (height, width, 3) in [0, 1]."""
    planes = x[:, :, :height, :width].flatten(0, 1).clamp(0, 1)
    return planes.permute(1, 2, 0).numpy() if ndim == 3 else planes.mean(0).numpy()


def fold_batchnorm(network: EncoderDecoder) -> EncoderDecoder:
    """A copy for inference with every BatchNorm folded into the convolution before it: same outputs, fewer passes."""
    network = copy.deepcopy(network).eval()
    for part in (network.encoder, network.decoder):
        for i, (conv, norm) in enumerate(itertools.pairwise(part)):
            if isinstance(norm, nn.BatchNorm2d):
                part[i] = fuse_conv_bn_eval(conv, norm, isinstance(conv, nn.ConvTranspose2d))
                part[i + 1] = nn.Identity()
    return network.to(memory_format=torch.channels_last)
