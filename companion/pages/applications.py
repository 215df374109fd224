"""Scars and objects removed from photographs (Supp. F)."""

import numpy as np
import pandas as pd
from skimage.draw import bezier_curve, disk
from skimage.metrics import peak_signal_noise_ratio
from skimage.morphology import dilation
from skimage.morphology import disk as ball

from companion.measure.blocks import BIHARMONIC
from companion.show import figures, sentences

NETWORK = "on-demand"


def curves(size, rng: np.random.Generator, n: int, reach: float, thickness: int) -> np.ndarray:
    """Return n bent lines, each in a box of `reach` times the image's sides: (height, width), true where lost."""
    mask = np.zeros(size, bool)
    boxes = [(side, max(1, round(reach * side))) for side in size]
    for _ in range(n):
        places = [rng.integers(0, max(1, side - box)) + rng.integers(0, box, 3) for side, box in boxes]
        mask[bezier_curve(*np.transpose(places).ravel(), 1.0, shape=size)] = True  # row and column of three points
    return dilation(mask, ball(thickness))


def dust(size, rng: np.random.Generator, n: int, radius: int) -> np.ndarray:
    """Return n spots of dust with radii from 1 to `radius`."""
    mask = np.zeros(size, bool)
    places = rng.integers(0, size[0], n), rng.integers(0, size[1], n), rng.integers(1, radius + 1, n)
    for row, column, r in zip(*places, strict=True):
        mask[disk((row, column), r + 0.5, shape=size)] = True
    return mask


def spot(size, top: float, left: float, bottom: float, right: float) -> np.ndarray:
    """Return an ellipse that covers an object; its box in shares of the image."""
    rows, columns = np.ogrid[: size[0], : size[1]]
    y = (rows / size[0] - (top + bottom) / 2) / ((bottom - top) / 2)
    x = (columns / size[1] - (left + right) / 2) / ((right - left) / 2)
    return y**2 + x**2 <= 1


def repairs_table(photograph, masks: dict, pictures: dict) -> pd.DataFrame:
    """Return PSNR (dB) inside each mask: columns mask, missing (share of the pixels) and one for each of `pictures`.

    pictures: name → mask's name → image.
    """
    table = pd.DataFrame({"mask": list(masks), "missing": [mask.mean() for mask in masks.values()]})
    for title, of in pictures.items():
        table[title] = [peak_signal_noise_ratio(photograph[m], of[k][m], data_range=1) for k, m in masks.items()]
    return table


def plot_repairs(photograph, masks: dict, pictures: dict):
    """Draw the photograph and, for each mask, `pictures` of `repairs_table` with the PSNR inside."""
    table = repairs_table(photograph, masks, pictures)
    rows = [[photograph, *(of[name] for of in pictures.values())] for name in masks]
    scores = [["", *(f"{db:.1f} dB inside" for db in row)] for row in table[list(pictures)].to_numpy()]
    return figures.picture_grid(rows, ["original", *pictures], list(masks), scores, size=2.1)


def describe_repairs(table: pd.DataFrame, results) -> str:
    """Say in how many masks the on-demand network's number is the higher one, and the scale."""
    if not results or NETWORK not in table:
        return "No trained network is here."
    above = {name: (table[NETWORK] > table[name]).sum() for name in ("damaged", BIHARMONIC)}
    return (
        f"Inside the mask, the on-demand network scores higher than the grey filling in {above['damaged']} of "
        f"{len(table)} masks, and higher than the biharmonic filling in {above[BIHARMONIC] or 'none'}. "
        "One photograph and one training decide nothing, and the paper gives pictures only.\n\n"
        + sentences.scale(results)
    )
