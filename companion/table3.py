"""Table 3: eleven photographs at σ = 25, ours beside other denoisers (Sec. 6.7)."""

import numpy as np
import pandas as pd

from companion import denoising
from companion.comparators import DENOISERS, LEARNED
from companion.denoising import (
    PUBLISHED,
    SHORT,
    TITLES,
    check,
    images_or_demo,
    noted,
    our_systems,
    reason,
    run_or_load,
    systems_in,
)
from companion.figures import picture_grid
from companion.judge import Measured, Verdict, estimate, signed, verdict_on
from companion.prose import page
from odl import paper

# Tables


def table(
    systems, sigma=25, dataset="db11", profile="reference", ours=None, measure=True, progress=None
) -> pd.DataFrame:
    """Table 3, a row per image × system × noise: image, system, sigma, clipped, psnr, published (dB), seconds, note.

    `published` is the paper's number for σ = 25, NaN for what the paper does not have.
    """
    ours = our_systems() if ours is None else ours
    for system in systems:
        check(system, sigma, None, ours)
    frames = []
    for i, (system, clip) in enumerate((s, c) for s in systems for c in (False, True)):
        show = progress and (lambda done, i=i: progress((i + done) / (2 * len(systems))))
        rows = run_or_load(system, sigma, clip, None, dataset, profile, ours, show, measure)
        rows = rows.assign(system=system, sigma=sigma, clipped=clip, note="")
        if rows.psnr.isna().all():
            rows["note"] = reason(system)
        frames.append(rows)
    table = pd.concat(frames, ignore_index=True)
    table["published"] = [published(row.image, row.system, sigma) for row in table.itertuples()]
    return table[["image", "system", "sigma", "clipped", "psnr", "published", "seconds", "note"]]


def published(image: str, system: str, sigma: float) -> float:
    return paper.TABLE3.get(image, {}).get(system, np.nan) if sigma == 25 else np.nan


NEAR = 2 * 0.14  # dB: twice the paper's 30.54 − 30.40


# Denoisers (Table 3, Fig. 6): one training each, so that a seed is a lone one


def on_db11(m: Measured, system: str, clipped=False) -> pd.Series:
    """PSNR per photograph at σ = 25."""
    rows = m.table3[(m.table3.system == system) & (m.table3.clipped == clipped)]
    return rows.set_index("image").psnr.astype(float)


def near_specialist(m: Measured) -> Verdict:
    """The all-rounder against the same network trained at σ = 25, mean of the eleven photographs."""
    free, clipped = ((on_db11(m, "on_demand", c) - on_db11(m, "fixated", c)).dropna() for c in (False, True))
    lone = [free.mean()] if len(free) == len(paper.TABLE3) else []
    return verdict_on(
        {"": lone}, beyond=-NEAR, text=f"{signed(free.mean())}, on clipped noise {signed(clipped.mean())}"
    )


def published_leads(measured: pd.Series) -> pd.Series:
    """By how much PSNRs per image beat the best of the six published systems, largest lead first."""
    best = {image: max(row[system] for system in paper.TABLE3_SYSTEMS[:6]) for image, row in paper.TABLE3.items()}
    return (measured - pd.Series(best)).dropna().sort_values(ascending=False)


def images_won(system: str) -> int:
    """The paper's count of one of its two systems."""
    return int((published_leads(pd.Series({image: row[system] for image, row in paper.TABLE3.items()})) > 0).sum())


def wins(m: Measured, system: str) -> Verdict:
    """As many images won as in the paper, n: the n-th best lead is positive, on noise as published, not clipped."""
    free, clipped = (published_leads(on_db11(m, system, c)) for c in (False, True))
    n = images_won(system)
    lone = [free.iloc[n - 1]] if len(free) == len(paper.TABLE3) else []
    text = f"{(free > 0).sum()} of {len(free)}, on clipped noise {(clipped > 0).sum()}"
    return verdict_on({"": lone}, text=f"{text}; margin number {n} is {estimate(lone)}")


def verdict(table: pd.DataFrame, results) -> str:
    """Our two networks against each other and against the published numbers."""
    m = Measured(table3=table[table.sigma == 25])
    lines = {"All-rounder − fixated at 25 (paper: −0.14 dB)": near_specialist(m)}
    for system, title in (("on_demand", "The all-rounder"), ("fixated", "The model fixated at 25")):
        label = f"{title}, images above all six published numbers (paper: {images_won(system)} of 11)"
        lines[label] = wins(m, system)
    return page(lines, results)


def plot_noisy(name: str, sigma: float, most: int = 6):
    """Clean and noisy photographs, clipped noise."""
    images = images_or_demo(name)[:most]
    clean = [image / 255 for _, image in images]
    noisy = [denoising.add_awgn(image, name, sigma, True) for name, image in images]
    side = min(min(image.shape) for image in clean)
    rows = [[image[:side, :side] for image in row] for row in (clean, noisy)]
    return picture_grid(rows, [name for name, _ in images], ["clean", f"σ = {sigma:g}"], size=1.5)


def show(table: pd.DataFrame):
    """PSNR per image: the paper's systems and others on unclipped noise, as published, and on clipped noise."""
    from IPython.display import HTML  # not needed where no notebook is

    published = pd.DataFrame(paper.TABLE3).T.reindex(dict.fromkeys(table.image))
    known = table.sigma.iloc[0] == 25 and set(table.image) & set(paper.TABLE3)
    tables = {}
    for clipped, noise in ((False, "noise not clipped, as published systems are run"), (True, "clipped noise")):
        measured = table[table.clipped == clipped].pivot(index="image", columns="system", values="psnr")
        measured = measured.dropna(axis="columns", how="all")  # the table of means names what is left out
        papers = [system for system in (denoising.NOISY, *paper.TABLE3_SYSTEMS) if system in measured]
        tables[f"Measured here, {noise}"] = measured[papers]
        if known and not clipped:
            tables["Published"] = published.rename(columns=PUBLISHED)
        others = [system for system in systems_in(table) if system in measured and system not in papers]
        tables[f"Measured here, {noise}, not in the paper's table"] = measured[others]
    tables = {caption: frame for caption, frame in tables.items() if len(frame.columns)}
    return HTML("".join(captioned(frame, caption).to_html() for caption, frame in tables.items()))


def captioned(frame: pd.DataFrame, caption: str):
    """Systems × images in dB under a caption."""
    frame = (
        frame.rename(columns=SHORT | {name: TITLES[name] for name in LEARNED}).rename_axis(columns=None).reset_index()
    )
    style = frame.style.format(precision=2, na_rep="–").hide(axis="index").set_caption(caption)
    return style.set_table_attributes('class="odl-table odl-dense"')


def show_means(table: pd.DataFrame):
    """Means over the images, a row per system: clipped, unclipped, published, seconds an image, whether told σ."""
    rows = []
    for system in systems_in(table):
        part = table[table.system == system]
        clipped, unclipped = (part[part.clipped == flag] for flag in (True, False))
        told = "yes" if DENOISERS.get(system, {}).get("knows_sigma") else "no"
        seconds = clipped.seconds.mean()
        if system == denoising.NOISY:
            told, seconds = "–", float("nan")
        means = [clipped.psnr.mean(), unclipped.psnr.mean(), clipped.published.mean(), seconds]
        rows.append([noted(system, part.note.iloc[0]), told, *means])
    columns = ["system", "told σ", "clipped (dB)", "unclipped (dB)", "published (dB)", "seconds an image"]
    frame = pd.DataFrame(rows, columns=columns)
    style = frame.style.format(precision=2, na_rep="–").hide(axis="index")
    return style.set_table_attributes('class="odl-table odl-dense"')
