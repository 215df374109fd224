"""The supplement's pictures of denoised photographs (Supp. H)."""

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from companion.measure import denoising
from companion.measure.denoising import FIXED, NOISY, OUR_SYSTEMS, SLOW, SYSTEMS
from companion.show.figures import picture_rows


def pictures(denoisers: dict, sigmas, name: str, image, told: float = FIXED) -> pd.DataFrame:
    """Return one photograph through every denoiser, each told 25 whatever the noise, which is clipped (Supp. H).

    picture: (H, W) on the [0, 1] scale; psnr in dB; the first system of each σ is `noisy`.
    """
    rows = []
    for sigma in sigmas:
        y = denoising.add_awgn(image, name, sigma, clip=True)
        found = {NOISY: y} | {system: np.clip(denoise(y, told), 0, 1) for system, denoise in denoisers.items()}
        rows += [(system, sigma, x_hat, denoising.decibels(x_hat, image)) for system, x_hat in found.items()]
    return pd.DataFrame(rows, columns=["system", "sigma", "picture", "psnr"])


SHOWN = (NOISY, "bm3d", "nlm", *OUR_SYSTEMS)  # what is shown of one photograph, if it is there


def plot_spectrum(shown: pd.DataFrame):
    """Draw one photograph at several σ: a row for each of `SHOWN` among `pictures`, a column per σ."""
    rows = []
    for system, part in shown[shown.system.isin(SHOWN)].groupby("system", sort=False):
        line = [(f"σ = {one.sigma:g}", one.picture, f"{one.psnr:.1f} dB") for one in part.itertuples()]
        rows.append((SYSTEMS[system].short, line))
    return picture_rows(rows, size=2)


def plot_all(images: dict, denoisers: dict, sigma: float = 25):
    """Draw every photograph with noise, through our two systems, and through the best other system on it."""
    quick = {system: denoise for system, denoise in denoisers.items() if system not in SLOW}
    ours = [system for system in OUR_SYSTEMS if system in quick]
    names = {system: SYSTEMS[system].short for system in (NOISY, *ours)}
    rows = []
    for title, image in tqdm(images.items()):
        shown = pictures(quick, [sigma], title, image).set_index("system")
        line = [(short, shown.picture[system], f"{shown.psnr[system]:.1f} dB") for system, short in names.items()]
        others = shown.psnr.drop(list(names))
        if len(others):
            best = others.idxmax()
            name = SYSTEMS[best].short.removesuffix(f" at {FIXED}")
            line.append(("best other", shown.picture[best], f"{name}, {others[best]:.1f} dB"))
        rows.append((title, line))
    return picture_rows(rows)
