"""Table 3: eleven photographs at σ = 25, ours beside other denoisers (Sec. 6.7)."""

import numpy as np
import pandas as pd

from companion import judge, published
from companion.judge import Decision, Evidence
from companion.measure import denoising, photographs
from companion.restore import chosen
from companion.show import sentences, tables
from companion.words import estimate

PUBLISHED_RIVALS = published.TABLE3_SYSTEMS[:6]  # published by others
MAX_BEHIND = 2 * 0.14  # dB, twice the paper's 30.54 − 30.40


def denoisers_table(
    systems, sigma=25, dataset="db11", profile="reference", ours=None, measure=True, device="auto"
) -> pd.DataFrame:
    """Return a row per image × system × noise; `psnr` and `published`, NaN for what the paper does not have, in dB.

    `ours` is system → its runs, one for each `seed`, as `denoising.our_runs` has them.
    """
    frames = [
        denoising.rows_of(system, sigma, clip, None, dataset, profile, run, measure, device)
        for system in systems
        for run in (ours or {}).get(system, [None])
        for clip in (False, True)
    ]
    # Also the network that `restore` takes, where `companion photographs` has measured it.
    for row, (strength, clip) in photographs.ON_DB11.items() if (dataset, profile) == ("db11", "reference") else ():
        if strength == sigma and chosen.weights_of("denoise") and (result := photographs.measurement_of(row).load()):
            rows = result.evaluation[result.evaluation.system == chosen.PHOTOGRAPHS]
            whose = {"trained_on": "bsds500-native", "sigma": sigma, "clipped": clip, "seed": 0, "note": ""}
            frames.append(rows.assign(**whose))
    table = pd.concat(frames, ignore_index=True)
    known = published.TABLE3 if sigma == 25 else {}
    table["published"] = [known.get(row.image, {}).get(row.system, np.nan) for row in table.itertuples()]
    columns = ["image", "system", "trained_on", "sigma", "clipped", "seed", "psnr", "published", "seconds", "note"]
    return table[columns].astype({"seed": "Int64"})


def show_denoisers(table: pd.DataFrame):
    """Show PSNR per image: the paper's systems and others on unclipped noise, as published, and on clipped noise.

    Of our networks it is the mean over seeds.
    """
    from IPython.display import HTML  # not needed where no notebook is

    parts = {}
    for clipped, noise in ((False, "noise not clipped, as published systems are run"), (True, "clipped noise")):
        measured = table[table.clipped == clipped].groupby(["image", "system"]).psnr.mean().unstack()
        measured = measured[table.system.unique()].dropna(axis="columns", how="all")  # the means name what is left out
        papers = [system for system in (denoising.NOISY, *published.TABLE3_SYSTEMS) if system in measured]
        parts[f"Measured here, {noise}"] = measured[papers]
        if not clipped and table.sigma.iloc[0] == 25 and {*table.image} & {*published.TABLE3}:
            printed = pd.DataFrame(published.TABLE3).T.reindex(table.image.unique()).rename_axis("image")
            parts["Published"] = printed.rename(columns={name: name.upper() for name in ("mlp", "csf", "tnrd")})
        parts[f"Measured here, {noise}, not in the paper's table"] = measured.drop(columns=papers)
    names = {system: entry.title if entry.steps else entry.short for system, entry in denoising.SYSTEMS.items()}
    shown = [
        tables.show_table(frame.rename(columns=names).rename_axis(columns=None).reset_index())
        .set_caption(caption)
        .set_table_attributes(denoising.DENSE)
        for caption, frame in parts.items()
        if len(frame.columns)
    ]
    return HTML("".join(style.to_html() for style in shown))


def show_means(table: pd.DataFrame):
    """Show means over images and seeds, a row per system: told σ, clipped, unclipped, published, seconds an image."""
    rows = []
    for system, part in table.groupby("system", sort=False):
        clipped, unclipped = (part[part.clipped == flag] for flag in (True, False))
        entry, note = denoising.SYSTEMS[system], part.note.min()
        told, seconds = "yes" if entry.knows_sigma else "no", clipped.seconds.mean()
        if system == denoising.NOISY:
            told, seconds = "–", np.nan
        means = [clipped.psnr.mean(), unclipped.psnr.mean(), clipped.published.mean(), seconds]
        rows.append([f"{entry.name} ({note})" if note else entry.title, told, *means])
    columns = ["system", "told σ", "clipped (dB)", "unclipped (dB)", "published (dB)", "seconds an image"]
    return tables.show_table(pd.DataFrame(rows, columns=columns)).set_table_attributes(denoising.DENSE)


# Verdicts


def on_db11(evidence: Evidence, system: str, clipped=False) -> pd.DataFrame:
    """Return PSNR at σ = 25, a row per photograph, a column per seed that is measured."""
    rows = evidence.table3[(evidence.table3.system == system) & (evidence.table3.clipped == clipped)]
    return rows.pivot(index="image", columns="seed", values="psnr").astype(float).dropna(axis="columns")


def judge_specialist(evidence: Evidence) -> Decision:
    """Judge the on-demand network against the same network trained at σ = 25, mean of the eleven photographs."""
    free, clipped = ([*ahead_of_specialist(evidence, clipped).mean()] for clipped in (False, True))
    text = f"{estimate(free)}, on clipped noise {estimate(clipped)}"
    return judge.decide_claim({"": free}, beyond=-MAX_BEHIND, text=text)


def ahead_of_specialist(evidence: Evidence, clipped=False) -> pd.DataFrame:
    """Return on-demand minus fixated at 25 (dB): a row for each of the eleven photographs, a column per seed.

    It is empty for other photographs.
    """
    gap = (on_db11(evidence, "on_demand", clipped) - on_db11(evidence, "fixated", clipped)).dropna(axis="columns")
    return gap if len(gap) == len(published.TABLE3) else pd.DataFrame()


def published_leads(measured: pd.Series) -> pd.Series:
    """Return by how much PSNRs per image beat the best of the six published systems, largest lead first."""
    best = {image: max(row[system] for system in PUBLISHED_RIVALS) for image, row in published.TABLE3.items()}
    return (measured - pd.Series(best)).dropna().sort_values(ascending=False)


def images_won(system: str) -> int:
    """Return the paper's count of one of its two systems."""
    return int((published_leads(pd.DataFrame(published.TABLE3).loc[system]) > 0).sum())


def judge_images_won(evidence: Evidence, system: str) -> Decision:
    """Judge as many images won as in the paper, n: the n-th best lead is positive, on noise that is not clipped."""
    free, clipped = ([published_leads(psnr) for _, psnr in on_db11(evidence, system, c).items()] for c in (False, True))
    n, images = images_won(system), len(published.TABLE3)
    margins = [leads.iloc[n - 1] for leads in free if len(leads) == images]
    won, beside = ("–".join(map(str, sorted({(leads > 0).sum() for leads in seeds}))) for seeds in (free, clipped))
    text = f"{won} of {images} images, on clipped noise {beside}; the {n}th best margin is {estimate(margins)}"
    return judge.decide_claim({"": margins}, text=text)


def describe_denoisers(table: pd.DataFrame, results) -> str:
    """Say our two networks against each other and against the published numbers."""
    evidence = Evidence(table3=table[table.sigma == 25])
    behind = f"On-demand at most {MAX_BEHIND} dB behind fixated at 25, twice the paper's distance"
    lines = {behind: judge_specialist(evidence)}
    for system, title in (("on_demand", "The on-demand network"), ("fixated", "The model fixated at 25")):
        label = f"{title}, images above all six published numbers (paper: {images_won(system)} of 11)"
        lines[label] = judge_images_won(evidence, system)
    return sentences.page(lines, results)
