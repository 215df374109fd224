"""A small multi-layer perceptron on patches, trained here for σ = 25 (Sec. 6.7)."""

import torch
from torch import nn
from torch.nn.functional import fold, pad

STRIDE = 3  # pixels between patches, as in the paper


class MLP(nn.Module):
    """Noisy patches in, clean ones out, averaged where they overlap (Burger, Schuler, Harmeling, CVPR 2012).

    Input and output (B, 1, H, W) on the [0, 1] scale; in training every input is one patch, restored alone.
    """

    # Paper: layers of 2047 on patches of 39; here: of 1023 on patches of 17, a fraction of the arithmetic.

    def __init__(self, patch: int = 17, hidden: int = 1023):
        super().__init__()
        self.patch = patch
        inputs = [patch * patch] + [hidden] * 3
        modules = [m for n in inputs for m in (nn.Linear(n, hidden), nn.Tanh())]
        self.layers = nn.Sequential(*modules, nn.Linear(hidden, patch * patch))
        window = torch.signal.windows.gaussian(patch, std=patch / 4)
        self.register_buffer("window", torch.outer(window, window).flatten())  # centres count more than borders

    def estimate(self, patches):
        """Return clean patches (…, patch²) for noisy ones."""
        return self.layers((patches - 0.5) / 0.2) * 0.2 + 0.5

    def forward(self, y):
        if self.training:
            return self.estimate(y.flatten(1)).view(y.shape)
        height, width = y.shape[-2:]
        # Two pixels are left over at the far end of every side, which no patch covers and none of the image needs.
        grown = [self.patch - 1 + (-(side + self.patch - 2)) % STRIDE for side in (height, width)]
        top, left = (g // 2 for g in grown)
        y = pad(y, (left, grown[1] - left, top, grown[0] - top), mode="reflect")
        patches = y.unfold(2, self.patch, STRIDE).unfold(3, self.patch, STRIDE)  # (B, 1, rows, columns, patch, patch)
        x = self.estimate(patches.flatten(4)[:, 0].flatten(1, 2)) * self.window  # (B, rows · columns, patch²)
        parts = (part.transpose(1, 2) for part in (x, self.window.expand_as(x)))
        total, weight = (fold(part, y.shape[-2:], self.patch, stride=STRIDE) for part in parts)
        return (total / weight)[..., top : top + height, left : left + width]
