"""Trainable nonlinear reaction diffusion, trained here for σ = 25 (Sec. 6.7)."""

import torch
from torch import nn
from torch.nn.functional import conv2d, conv_transpose2d, pad

from companion.comparators.fields import Filters, Functions


class Diffusion(nn.Module):
    """One step: u - Σ k̄ ∗ φ(k ∗ u) - λ (u - y), for images (B, 1, H, W) on the 0–255 scale."""

    def __init__(self):
        super().__init__()
        self.filters = Filters(5)
        # Influence of a Student's t, which smooths but for edges.
        self.influence = Functions(24, 63, 310.0, lambda z: 0.02 * z / (1 + (z / 50) ** 2))
        self.reaction = nn.Parameter(torch.tensor(0.1))

    def forward(self, u, y):
        k = self.filters()
        margin = k.shape[-1] // 2
        z = conv2d(pad(u, [margin] * 4, mode="replicate"), k)
        diffusion = conv_transpose2d(pad(self.influence(z), [margin] * 4, mode="replicate"), k, padding=2 * margin)
        return u - diffusion - self.reaction * (u - y)


class TNRD(nn.Module):
    """Five steps of diffusion with 24 filters of 5×5, their functions learned too (Chen, Pock, TPAMI 2017).

    Input and output (B, 1, H, W) on the [0, 1] scale.
    """

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(Diffusion() for _ in range(5))

    def forward(self, y):
        u = y = 255 * y
        for stage in self.stages:
            u = stage(u, y)
        return u / 255
