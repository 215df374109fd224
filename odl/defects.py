"""Masks of the defects that photographs have, drawn at random: what an inpainter is for (Supp. F)."""

import numpy as np
from skimage.draw import bezier_curve, disk
from skimage.morphology import dilation
from skimage.morphology import disk as ball


def scratches(height: int, width: int, rng: np.random.Generator, n: int = 6, thickness: int = 2) -> np.ndarray:
    """n curved scratches across the image: (height, width), true where pixels are lost."""
    mask = np.zeros((height, width), bool)
    for _ in range(n):
        rows, columns = rng.integers(0, height, 3), rng.integers(0, width, 3)
        mask[bezier_curve(rows[0], columns[0], rows[1], columns[1], rows[2], columns[2], 1.0, shape=mask.shape)] = True
    return dilation(mask, ball(thickness))


def scars(height: int, width: int, rng: np.random.Generator, n: int = 4, thickness: int = 4) -> np.ndarray:
    """n curved scars, each within a square of a fifth of the shorter side."""
    mask, reach = np.zeros((height, width), bool), max(1, min(height, width) // 5)
    for _ in range(n):
        rows, columns = (rng.integers(0, max(1, side - reach)) + rng.integers(0, reach, 3) for side in mask.shape)
        mask[bezier_curve(rows[0], columns[0], rows[1], columns[1], rows[2], columns[2], 1.0, shape=mask.shape)] = True
    return dilation(mask, ball(thickness))


def dust(height: int, width: int, rng: np.random.Generator, n: int = 120, radius: int = 3) -> np.ndarray:
    """n spots of dust with radii from 1 to `radius`."""
    mask = np.zeros((height, width), bool)
    for row, column, r in zip(
        rng.integers(0, height, n), rng.integers(0, width, n), rng.integers(1, radius + 1, n), strict=True
    ):
        mask[disk((row, column), r + 0.5, shape=mask.shape)] = True
    return mask


def spot(height: int, width: int, top: float, left: float, bottom: float, right: float) -> np.ndarray:
    """An ellipse that covers an object; its box in shares of the image."""
    rows, columns = np.ogrid[:height, :width]
    y = (rows / height - (top + bottom) / 2) / ((bottom - top) / 2)
    x = (columns / width - (left + right) / 2) / ((right - left) / 2)
    return y**2 + x**2 <= 1
