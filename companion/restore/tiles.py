"""A whole photograph through a residual U-Net, in overlapping tiles that bound the memory."""

import copy
from functools import partial

import torch

from odl.device import forward
from odl.network import ResidualUNet

TILE = 768  # pixels of a side that a tile adds; tiles begin at multiples of the network's stride
MARGIN = 56  # pixels around them, more than the network sees
TURNS = 4  # passes, each of the photograph turned by another quarter, whose mean is the answer


def restore_whole(network: ResidualUNet, y, precision: str = "fp32", progress=None, tile: int = TILE) -> torch.Tensor:
    """Restore y (1, channels, H, W) in [-1, 1] of any size: the mean of `TURNS` passes, whose seams nobody sees."""
    total = torch.zeros_like(y)
    for turn in range(TURNS):
        part = copy.copy(network)  # its weights are shared
        done = progress and (lambda share, turn=turn: progress((turn + share) / TURNS))
        part.correction = partial(in_tiles, network.correction, network.channels, done, tile)
        with torch.inference_mode():
            total += forward(part, y.rot90(turn, (2, 3)), precision).rot90(-turn, (2, 3)) / TURNS
    return total


def in_tiles(correction, channels: int, progress, tile: int, planes) -> torch.Tensor:
    """Return what a network adds in one pass, (1, channels, H, W), a tile at a time.

    It adds nothing in tiles whose mask, which is one plane more, is empty.
    """
    height, width = planes.shape[2:]
    added = planes.new_zeros((1, channels, height, width))
    places = [(top, left) for top in range(0, height, tile) for left in range(0, width, tile)]
    for k, (top, left) in enumerate(places):
        below, right = min(top + tile, height), min(left + tile, width)
        if planes.shape[1] == channels or planes[:, channels:, top:below, left:right].any():
            start = max(0, top - MARGIN), max(0, left - MARGIN)
            part = planes[..., start[0] : below + MARGIN, start[1] : right + MARGIN]
            inner = slice(top - start[0], below - start[0]), slice(left - start[1], right - start[1])
            part = part.contiguous(memory_format=torch.channels_last)
            added[..., top:below, left:right] = correction(part)[..., *inner]
        if progress:
            progress((k + 1) / len(places))
    return added
