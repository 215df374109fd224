"""The supplement's pictures of denoised photographs (Supp. H)."""

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from companion import denoising
from companion.denoising import FIXED, SHORT, add_awgn, decibels, images_or_demo, noted
from companion.figures import picture_blocks


def pictures(denoisers: dict, sigmas, name: str, image) -> pd.DataFrame:
    """One photograph through every denoiser, each told 25 whatever the noise, which is clipped (Supp. H).

    Rows (system, sigma, picture (H, W) on the [0, 1] scale, psnr in dB); the first of each σ is `noisy`.
    """
    rows = []
    for sigma in sigmas:
        y = add_awgn(image, name, sigma, True)
        answers = {"noisy": y}
        answers |= {system: np.clip(denoise(y, FIXED), 0, 1) for system, denoise in denoisers.items()}
        rows += [(s, sigma, x_hat, decibels(x_hat, image)) for s, x_hat in answers.items()]
    return pd.DataFrame(rows, columns=["system", "sigma", "picture", "psnr"])


# Supplement H


def plot_spectrum(shown: pd.DataFrame, image):
    """One photograph at several σ: a row per system of `gallery.pictures`, a column per σ."""
    titles = [f"σ = {sigma:g}" for sigma in dict.fromkeys(shown.sigma)]
    rows = [("clean", [(titles[0], image / 255, "")])]
    for system, part in shown.groupby("system", sort=False):
        lines = zip(titles, part.picture, part.psnr, strict=True)
        rows.append((SHORT.get(system, system), [(title, x, f"{db:.1f} dB") for title, x, db in lines]))
    return picture_blocks(rows, titles)


def show_photograph(table: pd.DataFrame, image: str):
    """Table 3's numbers of one photograph in dB, a row per system: clipped noise, unclipped noise, as published."""
    clipped, unclipped = (table[(table.image == image) & (table.clipped == flag)] for flag in (True, False))
    names = [noted(row.system, row.note) for row in clipped.itertuples()]
    frame = clipped.assign(system=names, clipped=clipped.psnr, unclipped=list(unclipped.psnr))
    frame = frame[["system", "clipped", "unclipped", "published"]]
    style = frame.style.format(precision=2, na_rep="–").hide(axis="index")
    style = style.relabel_index([f"{image}, PSNR (dB)", *frame.columns[1:]], axis="columns")
    return style.set_table_attributes('class="odl-table"')


def crops(name: str, size: int) -> dict[str, np.ndarray]:
    """The middle of each photograph by its name, (size, size) uint8."""
    return {label: denoising.centre(image, size) for label, image in images_or_demo(name)}


def plot_all(images: dict, denoisers: dict, ours, sigma: float = 25):
    """Every photograph with noise, through our two systems, and through that one of the others that does best on it."""
    quick = {system: denoise for system, denoise in denoisers.items() if system not in denoising.SLOW}
    rows = []
    for name, image in tqdm(images.items()):
        shown = pictures(quick, [sigma], name, image).set_index("system")
        line = [("clean", image / 255, "")]
        named = {"noisy": "noisy"} | {system: SHORT[system] for system in ours}
        line += [(named[s], shown.picture[s], f"{shown.psnr[s]:.1f} dB") for s in named if s in shown.index]
        others = shown.psnr.drop(list(named), errors="ignore")
        if len(others):
            best = others.idxmax()
            line.append(("best other", shown.picture[best], f"{SHORT[best]}, {others[best]:.1f} dB"))
        rows.append((name, line))
    titles = max(([title for title, *_ in line] for _, line in rows), key=len)
    return picture_blocks(rows, titles)
