"""Packed images, and random 64×64 crops of them on the device, as in the released code."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from odl.device import constant, room
from odl.paper import CROP


@dataclass(frozen=True)
class Pack:
    """Images of one split: `pixels` is flat uint8, image i is the height[i] · width[i] · 3 bytes from offset[i] on."""

    pixels: torch.Tensor  # (bytes,)
    offset: torch.Tensor  # (n,) int64
    height: torch.Tensor  # (n,) int64
    width: torch.Tensor  # (n,) int64
    names: tuple[str, ...]
    sha256: str
    skipped: tuple[str, ...] = ()

    def __len__(self):
        return len(self.names)

    def to(self, device) -> "Pack":
        """Copy this split to `device`. Pixels that do not fit there stay memory-mapped on the host."""
        first = int(self.offset[0])
        last = int(self.offset[-1] + 3 * self.height[-1] * self.width[-1])
        pixels, index = self.pixels[first:last], (self.offset - first, self.height, self.width)
        pixels = pixels.to(device) if len(pixels) < room(device) else pixels
        return Pack(pixels, *(t.to(device) for t in index), self.names, self.sha256, self.skipped)

    def image(self, i: int) -> np.ndarray:
        """Return image i as (height, width, 3) uint8."""
        h, w, start = int(self.height[i]), int(self.width[i]), int(self.offset[i])
        return self.pixels[start : start + 3 * h * w].view(h, w, 3).cpu().numpy()


def crop(pack: Pack, index: torch.Tensor, generator: torch.Generator, flip: bool = True) -> torch.Tensor:
    """Draw a 64×64 crop of each image in `index` (B,), flipped with probability ½: (B, 3, 64, 64) in [-1, 1].

    One gather of rows where the pixels are, without a loop, channels_last.
    """
    u = torch.rand((len(index), 3), generator=generator, device=generator.device)
    height, width = pack.height[index], pack.width[index]
    top, left = ((u[:, k] * (side - CROP + 1)).long() for k, side in enumerate((height, width)))
    row = torch.arange(CROP, device=index.device)
    start = pack.offset[index, None] + ((top[:, None] + row) * width[:, None] + left[:, None]) * 3  # (B, 64)
    pixels = pack.pixels.unfold(0, 3 * CROP, 1)[start.to(pack.pixels.device)].to(start.device)  # (B, 64, 192)
    x = pixels.view(-1, CROP, CROP, 3).permute(0, 3, 1, 2).float() / 127.5 - 1
    return torch.where((u[:, 2] < 0.5).view(-1, 1, 1, 1), x.flip(-1), x) if flip else x


def grey(x: torch.Tensor) -> torch.Tensor:
    """Return the luminance of (B, 3, H, W): (B, 1, H, W)."""
    # Released code: 0.9999·R, by a slip; here: luminance, because the paper says grey-scale.
    return (x * constant((0.299, 0.587, 0.114), x.device).view(1, 3, 1, 1)).sum(1, keepdim=True)


def fixed_crops(pack: Pack, n: int, stream: str) -> torch.Tensor:
    """Return the same n crops in every run, (n, 3, 64, 64) in [-1, 1] on the CPU, drawn by the name of their `stream`.

    Crop i is of image i modulo the number of images, never flipped.
    """
    generator = torch.Generator().manual_seed(seed_of(stream))
    return crop(pack.to("cpu"), torch.arange(n) % len(pack), generator, flip=False)


def seed_of(*parts) -> int:
    """Return a generator's seed from whatever names a stream of randomness."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:7])
