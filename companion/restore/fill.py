"""A network that is told which pixels are missing: a first guess from the known ones, and what it adds to that."""

import torch
from torch import nn
from torch.nn import functional

from odl.network import ResidualUNet

GONE = 2.0  # the value of a missing pixel in all channels, outside of [-1, 1]


def push_pull(values, weight):
    """Fill the pixels of values (B, C, H, W) where weight (B, 1, H, W) is 0, from those where it is 1.

    Known pixels are averaged over squares of 2, 4, 8, … pixels; on the way back every square without a known pixel
    takes what the next coarser resolution has there, interpolated.
    """
    if max(values.shape[2:]) == 1:
        return values
    share = functional.avg_pool2d(weight, 2, ceil_mode=True)
    means = functional.avg_pool2d(values * weight, 2, ceil_mode=True) / share.clamp(min=1e-6)
    coarse = push_pull(means, (4 * share).clamp(max=1))
    guess = functional.interpolate(coarse, size=values.shape[2:], mode="bilinear", align_corners=False)
    return torch.lerp(guess, values, weight)


class ToldUNet(ResidualUNet):
    """Fills the pixels that are `GONE`, by a U-Net that sees a push-pull guess and the mask; keeps all others.

    Input and output (B, channels, H, W) of any size; training starts from the guess itself.
    """

    def __init__(self, channels: int = 3, width: int = 32):
        super().__init__(channels, width)
        self.head = nn.Conv2d(4 * (channels + 1), width, 3, padding=1)

    def forward(self, y):
        gone = y[:, :1] > (1 + GONE) / 2
        known = (~gone).to(y.dtype)
        guess = push_pull(y * known, known)
        return torch.where(gone, guess + self.correction(torch.cat([guess, 1 - known], 1)), y)
