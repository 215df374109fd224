"""Scars and objects removed from photographs (Supp. F)."""

import numpy as np
from skimage.draw import bezier_curve, disk
from skimage.metrics import peak_signal_noise_ratio
from skimage.morphology import dilation
from skimage.morphology import disk as ball

from companion.figures import picture_grid
from companion.prose import scale
from odl.corruptions import FILL


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


def verdict(photograph, masks, repaired, results) -> str:
    """PSNR inside each defect before and after the repair."""
    if not results or any(x is None for x in repaired.values()):
        return "No trained network is here."
    damaged = {name: np.where(mask[..., None], np.float32(FILL) / 255, photograph) for name, mask in masks.items()}
    gains = [
        f"{name}: {psnr_inside(damaged[name], photograph, mask):.1f} → "
        f"{psnr_inside(repaired[name], photograph, mask):.1f} dB ({mask.mean():.1%} of the pixels)"
        for name, mask in masks.items()
    ]
    return (
        f"PSNR inside the mask, filled with grey → repaired: {'; '.join(gains)}. "
        "The known pixels are returned untouched. A large hole is closed with a smooth "
        f"patch, as the squared error asks. The paper gives pictures only.\n\n{scale(results)}"
    )


def plot_repairs(photograph, masks, repaired):
    """Photographs as damaged and as repaired, with the PSNR inside the mask."""
    rows, scores = [], []
    for name, mask in masks.items():
        damaged = np.where(mask[..., None], np.float32(FILL) / 255, photograph)
        shown = [damaged] + ([repaired[name]] if repaired[name] is not None else [])
        rows.append([photograph, *shown])
        scores.append([None] + [f"{psnr_inside(x, photograph, mask):.1f} dB inside" for x in shown])
    columns = ["original", "damaged", "repaired"][: len(rows[0])]
    return picture_grid(rows, columns, list(masks), scores, size=2.4)


def psnr_inside(x_hat, x, mask) -> float:
    """PSNR in dB over the pixels of the mask."""
    return peak_signal_noise_ratio(x[mask], x_hat[mask], data_range=1)
