"""The parts of shrinkage fields and reaction diffusion: filters in a cosine basis, learned functions of a number."""

import torch
from scipy.fft import idctn
from torch import nn


def cosine_basis(side: int) -> torch.Tensor:
    """Return the cosine functions of two dimensions but the constant one: (side² - 1, side, side), norm 1."""
    units = torch.eye(side * side, dtype=torch.float64).view(-1, side, side)
    return torch.from_numpy(idctn(units.numpy(), axes=(1, 2), norm="ortho"))[1:].float()


class Filters(nn.Module):
    """As many filters as the basis has, each a combination of it with norm 1: (side² - 1, 1, side, side)."""

    def __init__(self, side: int):
        super().__init__()
        self.register_buffer("basis", cosine_basis(side))
        self.coefficients = nn.Parameter(torch.eye(side * side - 1))

    def forward(self) -> torch.Tensor:
        rows = nn.functional.normalize(self.coefficients, dim=1)
        return (rows @ self.basis.flatten(1)).view(-1, 1, *self.basis.shape[1:])


class Functions(nn.Module):
    """A learned function for each channel: linear between `knots` values on [-reach, reach], constant beyond."""

    # Papers: sums of Gaussians at the knots; here: linear between them, because a pixel then needs only two weights.

    def __init__(self, channels: int, knots: int, reach: float, start):
        super().__init__()
        self.reach = reach
        place = torch.linspace(-reach, reach, knots)
        self.values = nn.Parameter(start(place).repeat(channels, 1))  # (channels, knots)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Map z (B, channels, H, W) to the same shape."""
        channels, knots = self.values.shape
        place = (z.clamp(-self.reach, self.reach) + self.reach) * ((knots - 1) / (2 * self.reach))
        left = place.detach().floor().clamp(max=knots - 2)
        index = left.long().flatten(2)
        values = self.values.expand(len(z), channels, knots)
        low, high = (values.gather(2, index + k).view_as(z) for k in (0, 1))
        return low + (high - low) * (place - left)
