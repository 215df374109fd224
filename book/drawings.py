"""The chapters' own figures: six inches wide, so that a phone shows a whole one and its words can be read."""

from functools import partial
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import reasons
import torch
from lab_page import as_input, networks, photograph
from measured import PROFILE, load, worlds, written

from companion import judge, published
from companion.claims import claims, scorecard
from companion.measure import denoising
from companion.pages import db11_spectrum, dose, table2
from companion.show import figures
from companion.show.pictures import restored_by
from odl import paper
from odl.corruptions import TASKS

WIDE = 6  # inches
EQUAL = "rigid_joint"
OTHERS = [s for s in published.SEVEN if s != EQUAL]
MARKS = {"scenes": ("o", "#0072B2"), "faces": ("s", "#D55E00")}  # of a data set
RULES = {"on_demand": "o", "cumulative_curriculum": "^", "cumulative_anti_curriculum": "v"}  # marks of both scores
RULES |= {"minimax_gap": "D", "group_dro": "s", "inverse_mse": "P", "static_easy": "*"}
COLOURS = figures.COLOURS | {
    "minimax_gap": "#CC79A7",
    "group_dro": "#E69F00",
    "inverse_mse": "#555555",
    "static_easy": "#0072B2",
}
LEANS = {-4: "k = −4, strongly to the easy levels", -1: "k = −1, to the easy levels"}
LEANS |= {1: "k = 1, Equation 3", 4: "k = 4, four times the dose"}


def ruined():
    """A face blurred a lot and a little, through the network fixated on the stronger blur and the on-demand one."""
    x, task = as_input("astronaut.png"), TASKS["deblur"]
    shown = {n: network for n, network in networks("deblur").items() if n in ("fixated_hard", "on_demand")}
    rows, scores, own = [], [], paper.TASKS["deblur"]["hard"]
    for sigma in (own, 1):
        y = task.corrupt_between(x, float(sigma), float(sigma), torch.Generator().manual_seed(5), centred=True)
        found = restored_by(shown, x, y)
        rows.append([found[name][0][0] for name in ("not_restored", *shown)])
        scores.append([f"{found[name][1].item():.1f} dB" for name in ("not_restored", *shown)])
    names = {"on_demand": "trained on\nall levels", "fixated_hard": f"trained on\nσ = {own} alone"}
    return figures.picture_grid(rows, ["blurred", *map(names.get, shown)], [f"σ = {own}", "σ = 1"], scores, size=1.9)


def barely():
    """What one level gets of a batch against its PSNR, the other four having 30 dB."""
    figure, axis = plt.subplots(figsize=(WIDE, 3.2), layout="constrained")
    psnr = np.linspace(10, 45, 100)
    rules = {"1/PSNR, Equation 3": partial(dose.shares, k=1), "1/PSNR⁴": partial(dose.shares, k=4)}
    rules["the squared error itself"] = lambda p: 10 ** (-p / 10)
    for (name, rule), colour in zip(rules.items(), ("#D55E00", "#CC79A7", "#0072B2"), strict=True):
        weights = [rule(np.array([30, 30, 30, 30, p])) for p in psnr]
        axis.plot(psnr, [100 * w[-1] / w.sum() for w in weights], color=colour, label=name, linewidth=2)
    axis.axhline(20, color="0.4", linestyle=":", linewidth=1)
    last = [np.array(run.history[-1]["psnr"]) for run in judge.runs_of(load().runs, "on_demand")]
    if last:
        ends = [end([end(scores - scores.mean()) for scores in last]) for end in (min, max)]
        axis.axvspan(30 + ends[0], 30 + ends[1], color="0.93", zorder=0)
        how = {"ha": "center", "va": "top", "fontsize": 9, "color": "0.4"}
        axis.text(30 + np.mean(ends), 92, "as far as levels lie\napart in our runs", **how)
    axis.set(xlabel="PSNR of the level (dB); the other four have 30", ylabel="its share of the batch (%)", ylim=(0, 95))
    axis.legend(fontsize=9)
    return figure


def leans(*sets) -> list[int]:
    """The exponents that are compared with equal shares in any of what is measured; all where nothing is."""
    pairs = {k: [judge.paired(m.runs, task, dose.NAMES[k], EQUAL) for m in sets for task in paper.TASKS] for k in LEANS}
    return [k for k in LEANS if any(pairs[k])] or [*LEANS]


def levels(title: str):
    """Of each task and level of a data set: its gradient under equal shares, its share by each k, what came of it."""
    figure, axes = plt.subplots(
        len(paper.TASKS), 3, figsize=(WIDE, 6.8), sharex=True, sharey="col", layout="constrained"
    )
    m, places = worlds().get(title, judge.Measured()), np.arange(1, paper.N_LEVELS + 1)
    tried, table = leans(m), dose.levels(m)
    for row, task in zip(axes, paper.TASKS, strict=True):
        row[0].set_ylabel(judge.plain(task).capitalize())
        own = table[table.task == task]
        pull = own.drop_duplicates("level")
        row[0].bar(pull.level, pull.pull, color=figures.LEVEL_COLOURS[: len(pull)], width=0.75)
        for k, beside in zip(tried, np.linspace(-0.15, 0.15, len(tried)), strict=True):
            look, rows = {"color": dose.COLOURS[k]}, own[own.k == k]
            if len(rows):
                row[1].plot(places, rows.share, "o-", markersize=3, linewidth=1.2, **look)
                row[2].plot(places + beside, rows.margin, "o", markersize=4, label=LEANS[k], **look)
                row[2].vlines(places + beside, rows.low, rows.high, linewidth=1.2, **look)
        row[1].axhline(20, color="0.4", linestyle=":", linewidth=1)
        row[2].axhline(0, color="0.4", linewidth=1)
    titles = "pull: gradient norm\n(level 1 = 1)", "share: last epoch\n(% of images)"
    for axis, title in zip(axes[0], [*titles, "outcome: margin over\nequal shares (dB)"], strict=True):
        axis.set_title(title, fontsize=9.5)
    for axis in axes[-1]:
        axis.set(xlabel="level", xticks=places)
    figure.legend(*axes[0, 2].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def contest():
    """Every schedule of Table 1 minus equal shares: a dot a seed, the 95 % interval, the paper's two numbers."""
    figure, axes = plt.subplots(2, 2, figsize=(WIDE, 5.4), sharex=True, sharey=True, layout="constrained")
    found = worlds()
    for axis, task in zip(axes.flat, paper.TASKS, strict=True):
        axis.axvspan(-judge.WITHIN, judge.WITHIN, color="0.9", zorder=0, linewidth=0)
        axis.axvline(0, color="0.4", linewidth=1)
        for i, rival in enumerate(OTHERS):
            for j, (name, m) in enumerate(found.items()):
                mark, colour = MARKS[name]
                y = i + 0.3 * (j - (len(found) - 1) / 2)
                draw_seeds(axis, m, task, rival, y, mark, color=colour, linewidth=1.5, label=f"here, {name}")
            draw_paper(axis, rival, task, i)
        axis.set_title(judge.plain(task).capitalize(), fontsize=10)
    ticks = [-10, -1, -0.1, 0, 0.1, 0.5]
    axis.set_xscale("symlog", linthresh=0.1)
    axis.set(ylim=(len(OTHERS) - 0.5, -0.5), xlim=(-20, 0.8), xticks=ticks, yticks=range(len(OTHERS)))
    axis.set_xticklabels([*map(figures.minus, ticks)], fontsize=8)
    axis.set_yticklabels([published.SEVEN[s].replace("umulative", "umul.") for s in OTHERS], fontsize=8.5)
    axis.xaxis.set_minor_locator(plt.NullLocator())
    figure.supxlabel("mean PSNR minus that of equal shares (dB; logarithmic beyond ±0.1)", fontsize=9)
    figure.legend(*once_each(axis), loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


def draw_seeds(axis, m, task: str, schedule: str, y: float, mark: str, linewidth: float, **look) -> None:
    """Margins of a schedule over equal shares: a dot a seed, and the 95 % interval."""
    gaps = judge.gaps(m.runs, task, schedule, EQUAL)
    axis.plot(gaps, [y] * len(gaps), mark, markersize=4, alpha=0.6, **look)
    if len(gaps) >= judge.ENOUGH:
        axis.hlines(y, *judge.interval(gaps), color=look["color"], linewidth=linewidth)


def draw_paper(axis, schedule: str, task: str, y: float) -> None:
    printed = claims.paper_gaps(schedule, EQUAL, [task])
    axis.plot(printed, [y] * len(printed), "D", color="0.35", markerfacecolor="none", label="paper")


def once_each(*axes) -> tuple[list, list]:
    """Handles and labels of a legend that names nothing twice."""
    entries = {name: mark for axis in axes for mark, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    return [*entries.values()], [*entries]


def scores():
    """Both scores of each rule minus those of equal shares, on faces, with their intervals."""
    titles = published.SEVEN | published.LATER
    figure, axes = plt.subplots(2, 2, figsize=(WIDE, 5.8), layout="constrained")
    for axis, task in zip(axes.flat, paper.TASKS, strict=True):
        for span, line in ((axis.axvspan, axis.axvline), (axis.axhspan, axis.axhline)):
            span(-judge.WITHIN, judge.WITHIN, color="0.93", zorder=0, linewidth=0)
            line(0, color="0.4", linewidth=1)
        for name, both in reasons.scores(task).items():
            x, y = map(np.mean, both)
            look = {"color": COLOURS[name], "linewidth": 1.3}
            axis.plot(x, y, RULES[name], label=titles[name], markersize=7, **look)
            if len(both[0]) >= judge.ENOUGH:
                axis.hlines(y, *judge.interval(both[0]), **look)
                axis.vlines(x, *judge.interval(both[1]), **look)
        axis.set_title(judge.plain(task).capitalize(), fontsize=10)
    figure.supxlabel("mean PSNR minus that of equal shares (dB)", fontsize=9)
    figure.supylabel("worst gap, by how much smaller than equal shares' (dB)", fontsize=9)
    figure.legend(*once_each(*axes.flat), loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


def controls():
    """The curriculum's share, order and rate apart, on faces: differences in mean PSNR with their intervals."""
    table = dose.controls(worlds().get("faces", judge.Measured()))
    figure = dose.plot_controls(table[~table.contrast.str.startswith("k = ")])
    [axis] = figure.axes
    figure.set_size_inches(WIDE, 1.2 + 0.5 * len(axis.get_yticks()))
    axis.set_yticks(axis.get_yticks(), [fill(t.get_text(), 26) for t in axis.get_yticklabels()], fontsize=8.5)
    return figure


def systems():
    """A detail with strong noise, through a classical denoiser told 25, or the truth, and a network told nothing."""
    left, top, side, sigma = 180, 60, 128, 50
    x = np.array(photograph("astronaut.png").convert("L").crop((left, top, left + side, top + side)))
    y = denoising.add_awgn(x, "astronaut", sigma, clip=True)
    # Not by BM3D, which a reader may choose not to install.
    denoisers = denoising.denoisers(["nlm", "on_demand"], denoising.our_systems(PROFILE))
    shown = {f"noisy, σ = {sigma}": y}
    shown |= {f"non-local means, told {told}": denoisers["nlm"](y, told).clip(0, 1) for told in (25, sigma)}
    if "on_demand" in denoisers:
        shown["on-demand, told nothing"] = denoisers["on_demand"](y, sigma).clip(0, 1)
    titles, images = [*shown], [*shown.values()]
    figure, axes = plt.subplots(2, 2, figsize=(WIDE, 6.6), squeeze=False, layout="constrained")
    figures.empty(axes)
    for axis, title, image in zip(axes.flat, titles, images, strict=False):
        figures.show_picture(axis, image, f"{denoising.decibels(image, x):.1f} dB", 11)
        axis.set_title(title, fontsize=11, color=figures.LABEL)
    return figure


def spectrum():
    """PSNR minus that of BM3D told the truth, against σ."""
    figure, axis = plt.subplots(figsize=(WIDE, 3), layout="constrained")
    found = db11_spectrum.curves(load())
    names = {"on_demand": ("on-demand, told nothing", "#D55E00"), "bm3d25": ("BM3D, told 25", "#0072B2")}
    names["tnrd"] = "TNRD, trained at 25", "#009E73"
    for curve, (label, colour) in names.items():
        axis.plot(found.index, found[curve] - found.bm3d, "o-", color=colour, label=label, linewidth=2)
    axis.axhline(0, color="0.4", linewidth=1)
    axis.set(xlabel="noise σ (of 255)", ylabel="PSNR − BM3D told σ (dB)", xticks=list(found.index))
    axis.legend(fontsize=9)
    return figure


def blocks():
    """Table 2: PSNR inside a central and an arbitrary block of every method, here and in the paper."""
    figure, axis = plt.subplots(figsize=(WIDE, 2.4), layout="constrained")
    rows = written("table2", "inpaint")
    rows = pd.DataFrame(columns=["method"]) if rows is None else rows
    for i, row in enumerate(rows.itertuples()):
        for block, mark, colour in (("central", "o", "#0072B2"), ("arbitrary", "s", "#D55E00")):
            axis.plot(getattr(row, f"{block}_psnr"), i, mark, color=colour, markersize=8, label=f"{block}, here")
            printed = getattr(row, f"{block}_paper_psnr")
            axis.plot(printed, i, mark, color=colour, markerfacecolor="none", markersize=8, label=f"{block}, paper")
    axis.set_yticks(range(len(rows)), [table2.TITLES[name].replace("encoder, ", "encoder,\n") for name in rows.method])
    axis.set(ylim=(max(len(rows), 1) - 0.5, -0.5), xlabel="PSNR inside the block (dB)")
    figure.legend(*once_each(axis), loc="outside upper center", ncols=4, fontsize=8.5)
    return figure


def found():
    """Feedback minus equal shares for every dose and task: seeds, interval, and the word by its colour."""
    sets = worlds()
    cases = [(k, task) for k in leans(*sets.values()) for task in paper.TASKS]
    figure, axis = plt.subplots(figsize=(WIDE, 0.8 + 0.3 * len(cases)), layout="constrained")
    axis.axvspan(-judge.WITHIN, judge.WITHIN, color="0.92", zorder=0, linewidth=0)
    axis.axvline(0, color="0.4", linewidth=1)
    for i, (k, task) in enumerate(cases):
        for j, (name, m) in enumerate(sets.items()):
            word = judge.compare(m, {"": (task, dose.NAMES[k], EQUAL)}).word
            colour, y = scorecard.COLOURS[word], i + 0.3 * (j - (len(sets) - 1) / 2)
            axis.plot([], [], color=colour, linewidth=2, label=word if word != judge.MISSING else "_")
            draw_seeds(axis, m, task, dose.NAMES[k], y, MARKS[name][0], color=colour, linewidth=2, label=name)
        if k == 1:
            draw_paper(axis, "on_demand", task, i)
    axis.set_yticks(range(len(cases)), [f"{judge.plain(task)}, k = {figures.minus(k)}" for k, task in cases])
    axis.set(ylim=(len(cases) - 0.5, -0.5), xlabel="mean PSNR minus that of equal shares (dB)")
    axis.legend(*once_each(axis), fontsize=9)
    return figure


FIGURES = {
    "ruined.png": ruined, "barely.svg": barely, "contest.svg": contest, "controls.svg": controls, "scores.svg": scores,
    "systems.png": systems, "spectrum.svg": spectrum, "blocks.svg": blocks, "found.svg": found,
} | {f"levels-{title}.svg": partial(levels, title) for title in MARKS}  # fmt: skip
