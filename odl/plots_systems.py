"""Figures and tables of Tables 2 and 3 and Figure 6: our network beside other systems."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from odl import blocks, denoising, paper
from odl.comparators import AUTHORS, DENOISERS, INPAINTERS, LEARNED, context_encoder, trained
from odl.corruptions import delete, draw_square, square_mask
from odl.datasets import DataError
from odl.plots import picture_blocks, picture_grid

COLOURS = {
    **{"on_demand": "#D55E00", "fixated": "#0072B2", "bm3d": "#000000"},
    **{"nlm": "#009E73", "tv": "#CC79A7", "wavelet": "#56B4E9", "ksvd": "#8C6D31", "wnnm": "#E69F00"},
    **{"mlp": "#A6761D", "csf": "#66A61E", "tnrd": "#7570B3", "dncnn": "#1B9E77"},
    **{"dncnn_25": "#666666", "noisy": "#737373"},
    **{"csf_authors": "#1F78B4", "tnrd_authors": "#B15928", "dncnn_authors": "#E31A1C"},
}
TITLES = {name: entry["title"] for name, entry in (DENOISERS | INPAINTERS).items()} | {
    **{"on_demand": "all-rounder (ours)", "fixated": "fixated at 25 (ours)"},
    **{"noisy": "noisy, not restored", "not_restored": "Not restored: the grey filling"},
}
SHORT = TITLES | {
    **{"nlm": "NLM", "tv": "TV", "wavelet": "Wavelets", "on_demand": "ours", "fixated": "ours, 25"},
    **{name: f"{TITLES[name].split(', retrained')[0]}, retrained" for name in LEARNED},
    **{"noisy": "noisy"},
}
PUBLISHED = {"mlp": "MLP", "csf": "CSF", "tnrd": "TNRD"}  # the paper's own

# Table 2


def inpainting_masks(x):
    """What each method of Table 2 trains on, on one crop x (1, 3, 64, 64)."""
    generator = torch.Generator().manual_seed(1)
    levels = torch.tensor([2.0, 4.0, 5.0])
    low, high = torch.tensor([paper.TASKS["inpaint"]["levels"][int(level) - 1] for level in levels]).float().unbind(1)
    squares = square_mask(draw_square(low, high, 64, generator), 64)
    masks = [blocks.block_masks("central", 1, generator), context_encoder.random_regions(3, generator), squares]
    row = [x[0], *(delete(x, mask[None])[0] for group in masks for mask in group)]
    return picture_grid([row], ["clean", "centre", "random", "random", "random", "squares", "squares", "squares"])


def pm(value, error, digits: int) -> str:
    """Value ± standard error, or a dash."""
    return "–" if pd.isna(value) else f"{value:.{digits}f} ± {error:.1g}"


def show_table2(table: pd.DataFrame):
    """Table 2: per block ours ± standard errors and the paper's numbers."""
    shown = {("", "method"): table.method.map(TITLES)}
    for block in blocks.BLOCKS:
        part = {name: table[f"{block}_{name}"] for name in ("l2", "l2_se", "psnr", "psnr_se", "paper_l2", "paper_psnr")}
        shown |= {
            (f"{block} block", "L2 (%)"): [pm(*row, 3) for row in zip(part["l2"], part["l2_se"], strict=True)],
            (f"{block} block", "PSNR (dB)"): [pm(*row, 2) for row in zip(part["psnr"], part["psnr_se"], strict=True)],
            (f"{block} block", "paper: L2"): part["paper_l2"],
            (f"{block} block", "paper: PSNR"): part["paper_psnr"],
        }
    frame = pd.DataFrame(shown)
    style = frame.style.format(precision=2, na_rep="–").hide(axis="index")
    return style.set_table_attributes('class="odl-table odl-numbers"')


def blocks_filled(x, ours, encoders):
    """The central and a shifted block of one crop, filled by every method whose weights are here."""
    places = {"central": torch.tensor([[32.0, 16, 16]]), "shifted": torch.tensor([[32.0, 2, 28]])}
    networks = context_encoder.networks(ours, encoders)
    rows = []
    for place in places.values():
        mask = square_mask(place, 64)
        y = delete(x, mask)
        with torch.inference_mode():
            rows.append([x[0], y[0], *(blocks.inpaint(network, y, mask)[0] for network in networks.values())])
    names = {"on_demand": "all-rounder", "context_encoder_center": "centre", "context_encoder_random": "random drop"}
    columns = ["original", "missing", *(names[name] for name in networks)]
    return picture_grid(rows, columns, list(places), size=1.6)


# Table 3


def images_or_demo(name: str) -> list[tuple[str, np.ndarray]]:
    """The photographs to denoise; the demo's, with a line that says so, where the set is not here."""
    try:
        return denoising.photographs(name)
    except DataError as error:
        print(f"Pictures below are the demo photographs: {error}")
        return denoising.photographs("demo")


def noisy_photographs(name: str, sigma: float, most: int = 6):
    """Clean and noisy photographs, clipped noise."""
    images = images_or_demo(name)[:most]
    clean = [image / 255 for _, image in images]
    noisy = [denoising.add_awgn(image, name, sigma, True) for name, image in images]
    side = min(min(image.shape) for image in clean)
    rows = [[image[:side, :side] for image in row] for row in (clean, noisy)]
    return picture_grid(rows, [name for name, _ in images], ["clean", f"σ = {sigma:g}"], size=1.5)


def systems_in(table: pd.DataFrame) -> list[str]:
    """The systems of a table in the order they were asked for."""
    return list(dict.fromkeys(table.system))


def show_table3(table: pd.DataFrame):
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


def show_table3_means(table: pd.DataFrame):
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


def noted(system: str, note: str) -> str:
    """The title of a system, and why it has no number."""
    return f"{LEARNED.get(system, [TITLES[system]])[0]} ({note})" if note else TITLES[system]


# Supplement H


def spectrum_pictures(shown: pd.DataFrame, image):
    """One photograph at several σ: a row per system of `denoising.pictures`, a column per σ."""
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


def all_photographs(images: dict, denoisers: dict, ours, sigma: float = 25):
    """Every photograph with noise, through our two systems, and through that one of the others that does best on it."""
    quick = {system: denoise for system, denoise in denoisers.items() if system not in denoising.SLOW}
    rows = []
    for name, image in tqdm(images.items()):
        shown = denoising.pictures(quick, [sigma], name, image).set_index("system")
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


# Figure 6


def noise_spectrum(name: str, sigmas):
    """One photograph at every σ."""
    label, image = images_or_demo(name)[-1]
    side = min(image.shape)
    row = [denoising.add_awgn(image, label, sigma, True)[:side, :side] for sigma in sigmas]
    return picture_grid([row], [f"σ = {sigma:g}" for sigma in sigmas], size=1.5)


NOT_CLIPPED = {"linewidth": 0.8, "linestyle": "-.", "label": "noisy, where noise is not clipped"}


def noise_curves(table: pd.DataFrame):
    """PSNR against σ: on the left the paper's curves and DnCNN's, on the right everything that is fixed at σ = 25.

    In both the noisy photographs, and the same where noise is not clipped, which is 20 log₁₀(255/σ) for any image.
    """
    figure, axes = plt.subplots(1, 2, figsize=(9, 5.6), sharey=True)
    measured = table.dropna(subset="psnr").groupby(["system", table.told.fillna(0)], sort=False)
    curves = {(system, told or None): part for (system, told), part in measured}
    ours = ("on_demand", None)
    noisy = (denoising.NOISY, None)
    left = [ours, ("bm3d", None), ("bm3d", 25), ("mlp", None), ("dncnn", None), noisy]
    right = [ours, *(curve for curve in curves if is_fixed(*curve)), noisy]
    for axis, chosen, title in zip(axes, (left, right), ("as in the paper", "everything fixed at σ = 25"), strict=True):
        for curve in chosen:
            if curve in curves:
                axis.plot(curves[curve].sigma, curves[curve].psnr, label=curve_name(*curve), **look_of(*curve))
        if noisy in curves:
            sigma = curves[noisy].sigma
            axis.plot(sigma, 20 * np.log10(255 / sigma), **look_of(*noisy) | NOT_CLIPPED)
        axis.set(xlabel="noise σ (of 255)", title=title)
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    axes[0].set_ylabel("PSNR (dB), mean over the images")
    figure.tight_layout()
    return figure


def is_fixed(system: str, told) -> bool:
    """Whether a curve is that of a system made for σ = 25 or told it whatever comes."""
    learner = trained.LEARNERS.get(system)
    return bool(told) or system in ("fixated", *AUTHORS) or (learner is not None and learner.low == learner.high)


def curve_name(system: str, told) -> str:
    """`BM3D, told σ`, `BM3D, told 25`; nothing is added where a system is told nothing."""
    entry = DENOISERS.get(system, {"title": TITLES[system], "knows_sigma": False})
    return entry["title"] + (f", told {f'{told:g}' if told else 'σ'}" if entry["knows_sigma"] else "")


def look_of(system: str, told) -> dict:
    width = 2.4 if system == "on_demand" else 1.4
    if system == denoising.NOISY:
        return {"color": COLOURS[system], "linestyle": ":", "linewidth": width}
    line = "--" if is_fixed(system, told) else "-"
    return {"color": COLOURS[system], "linestyle": line, "linewidth": width, "marker": "o", "markersize": 4}


def show_spectrum(table: pd.DataFrame):
    """PSNR (dB), a row per system, a column per σ."""
    table = table[table.groupby(["system", table.told.fillna(0)]).psnr.transform("count") > 0]
    names = [curve_name(row.system, None if pd.isna(row.told) else row.told) for row in table.itertuples()]
    named = table.assign(name=names)
    frame = named.pivot(index="name", columns="sigma", values="psnr").reindex(named.name.unique())
    frame.columns = [f"σ\u00a0=\u00a0{sigma:g}" for sigma in frame.columns]  # not broken over lines
    frame = frame.rename_axis("PSNR (dB)").reset_index()
    style = frame.style.format(precision=2, na_rep="–").hide(axis="index")
    return style.set_table_attributes('class="odl-table odl-dense"')
