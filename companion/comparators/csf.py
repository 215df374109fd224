"""Cascade of shrinkage fields, trained here for σ = 25 (Sec. 6.7)."""

import torch
from torch import nn
from torch.nn.functional import conv2d, conv_transpose2d, pad

from companion.comparators.fields import Filters, Functions

MARGIN = 12  # pixels of mirrored border, because the division below is circular


class Shrinkage(nn.Module):
    """One stage: the image whose filter responses are the shrunk ones of x, and which stays near y; 0–255 scale."""

    def __init__(self):
        super().__init__()
        self.filters = Filters(5)
        self.shrink = Functions(24, 53, 260.0, lambda z: z)  # the authors' start: nothing is shrunk
        self.fidelity = nn.Parameter(torch.tensor(0.1).log())  # logarithm of λ

    def forward(self, x, y):
        k, size = self.filters(), x.shape[-2:]
        margin = k.shape[-1] // 2
        z = self.shrink(conv2d(pad(x, [margin] * 4, mode="circular"), k))
        grown = pad(k.flip(-1, -2), (0, size[1] - k.shape[-1], 0, size[0] - k.shape[-2]))
        power = torch.fft.rfft2(grown).abs().square().sum((0, 1))  # of all filters together: (H, W // 2 + 1)
        weight = self.fidelity.exp()
        above = weight * y + conv_transpose2d(pad(z, [margin] * 4, mode="circular"), k, padding=2 * margin)
        return torch.fft.irfft2(torch.fft.rfft2(above) / (weight + power), s=size)


class CSF(nn.Module):
    """Five stages with 24 filters of 5×5 and a learned shrinkage function for each (Schmidt, Roth, CVPR 2014).

    Input and output (B, 1, H, W) on the [0, 1] scale.
    """

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(Shrinkage() for _ in range(5))

    def forward(self, y):
        x = y = pad(255 * y, [MARGIN] * 4, mode="reflect")
        for stage in self.stages:
            x = stage(x, y)
        return x[..., MARGIN:-MARGIN, MARGIN:-MARGIN] / 255
