"""The chapters' own figures: six inches wide, so that a phone shows a whole one and its words can be read.

A schedule has one colour through the book, a data set one mark.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import torch
from facts import EQUAL, EQUATION3, RULES_TODAY, gained, runs_on, sets, sets_faces
from lab_page import as_input, networks, photograph, reference
from measured import PROFILE, load
from tables import TITLES

from companion import judge, published
from companion.claims import claims
from companion.data import packs
from companion.judge import COMPOSITE
from companion.measure import denoising
from companion.measure import photographs as measured_photographs
from companion.measure.recalibration import with_statistics_of
from companion.pages import db11_spectrum, dose
from companion.pages.today import OF_UNET
from companion.restore import chosen
from companion.restore.pretrained import restore
from companion.show import figures
from companion.show.pictures import restored_by
from odl import paper
from odl.corruptions import TASKS
from odl.evaluation import images_of

WIDE = 6  # inches
MARGIN, STRETCHED = "mean PSNR minus that of equal shares (dB)", "even steps up to ±0.1, then tenfold"
STATISTICS = 500  # crops that give the statistics of a severity
OTHERS = ["on_demand", *published.CUMULATIVE, *published.PARTIAL]
MARKS = {"scenes": "o", "faces": "s", "wide": "^"}  # of a data set
PAPERS_MARK = {"marker": "D", "linestyle": "none", "color": "0.35", "markerfacecolor": "none", "label": "paper"}
SHOWN = {
    "fixated_easy": "mild\nblur alone",
    "fixated_hard": "strong\nblur alone",
    EQUAL: "equal\nshares",
    "on_demand": "feedback",
}
LEANS = {-4: "k = −4, strongly to the easy levels", -1: "k = −1, to the easy levels"}
LEANS |= {1: "k = 1, Equation 3", 4: "k = 4, four times as much"}


def answer():
    """Draw one photograph at six levels of blur, and what four networks make of it: the answer in one picture."""
    x, task, found = as_input("chelsea.png"), TASKS["deblur"], networks("deblur")
    shown, levels = {name: found[name] for name in SHOWN}, range(1, paper.N_LEVELS + 2)
    damaged = [task.corrupt(x, level, torch.Generator().manual_seed(5)) for level in levels]
    columns = [restored_by(shown, x, y) for y in damaged]
    titles = {"not_restored": "blurred"} | SHOWN
    figure, axes = plt.subplots(len(titles), len(levels), figsize=(7.2, 5.6), layout="constrained")
    figures.empty(axes)
    for row, (name, title) in zip(axes, titles.items(), strict=True):
        row[0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=10, color=figures.LABEL_COLOUR)
        for axis, column in zip(row, columns, strict=True):
            pictures, scores = column[name]
            best = round(scores.item(), 1) == max(round(other.item(), 1) for _, other in column.values())
            figures.show_picture(axis, pictures[0], f"{scores.item():.1f} dB", 9)
            axis.xaxis.label.set(fontweight="bold" if best else "normal")
    for axis, level in zip(axes[0], levels, strict=True):
        axis.set_title(f"level {level}", fontsize=10, color=figures.LABEL_COLOUR)
    return figure


def ruined():
    """Draw a face blurred a lot and a little, through the on-demand network and the one fixated on the stronger blur.

    The second also with batch statistics of that blur, estimated on the photographs of `demo`.
    """
    x, task, run = as_input("astronaut.png"), TASKS["deblur"], reference("deblur", "fixated_hard")
    shown = {name: networks("deblur")[name] for name in ("on_demand", "fixated_hard")}
    some = images_of(run, packs.load("demo", "train"), STATISTICS, "recalibrate")
    rows, scores, own = [], [], paper.TASKS["deblur"]["hard"]
    for sigma, level in ((own, "hard"), (paper.TASKS["deblur"]["easy"], "easy")):
        y = task.corrupt_between(x, float(sigma), float(sigma), torch.Generator().manual_seed(5), centred=True)
        moved = {"recalibrated": with_statistics_of(run, shown["fixated_hard"], some, level)}
        found = restored_by(shown | moved, x, y)
        rows.append([found[name][0][0] for name in ("not_restored", *shown, *moved)])
        scores.append([f"{found[name][1].item():.1f} dB" for name in ("not_restored", *shown, *moved)])
    titles = ["blurred", "trained on\nall levels", f"trained on\nσ = {own} alone", "the same, its\nstatistics moved"]
    return figures.picture_grid(rows, titles, [f"σ = {own}", f"σ = {sigma}"], scores, size=1.4)


def barely():
    """Draw what one level gets of a batch against how far its PSNR is from that of the other four, which have 25 dB."""
    figure, axis = plt.subplots(figsize=(WIDE, 3.2), layout="constrained")
    apart, others = np.linspace(-15, 15, 100), 25
    rules = {"1/PSNR, Equation 3": (partial(dose.shares, k=1), dose.COLOURS[1])}
    rules["1/PSNR⁴"] = partial(dose.shares, k=4), dose.COLOURS[4]
    rules["the squared error itself"] = (lambda psnr: 10 ** (-psnr / 10)), "0.4"
    for name, (rule, colour) in rules.items():
        weights = [rule(np.array([others] * 4 + [others + x])) for x in apart]
        axis.plot(apart, [100 * w[-1] / w.sum() for w in weights], color=colour, label=name, linewidth=2)
    axis.axhline(20, color=figures.COLOURS[EQUAL], linestyle=":", linewidth=1.5, label="equal shares")
    last = [np.array(run.history[-1]["psnr"]) for run in judge.runs_of(load().runs, "on_demand")]
    if last:
        ends = [end([end(scores - (scores.sum() - scores) / 4) for scores in last]) for end in (min, max)]
        axis.axvspan(*ends, color="0.93", zorder=0)
        how = {"ha": "center", "va": "top", "fontsize": 9, "color": "0.4"}
        axis.text(np.mean(ends), 92, "so far apart lie the\nlevels of our runs on scenes", **how)
    axis.set(
        xlabel="PSNR of the level, minus that of the other four (dB)", ylabel="its share of the batch (%)", ylim=(0, 95)
    )
    axis.legend(fontsize=9)
    return figure


def levels():
    """Draw for each task and level on faces its gradient under equal shares, its share by each k, what came of it."""
    figure, axes = plt.subplots(
        len(paper.TASKS), 3, figsize=(WIDE, 6.8), sharex=True, sharey="col", layout="constrained"
    )
    table, places = dose.levels_table(sets_faces()), np.arange(1, paper.N_LEVELS + 1)
    tried = [k for k in LEANS if (table.k == k).any()]
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
        row[1].axhline(20, color=figures.COLOURS[EQUAL], linestyle=":", linewidth=1.2)
        row[2].axhline(0, color=figures.COLOURS[EQUAL], linestyle=":", linewidth=1.2)
    titles = "pull: gradient norm\n(level 1 = 1)", "share: images of 100\n(equal: 20)"
    for axis, title in zip(axes[0], [*titles, "outcome: PSNR minus\nequal shares' (dB)"], strict=True):
        axis.set_title(title, fontsize=9.5)
    for axis in axes[-1]:
        axis.set(xlabel="level", xticks=places)
    figure.legend(*axes[0, 2].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8.5)
    return figure


def contest():
    """Draw every schedule of Table 1 minus equal shares, by both scores: mean, 95 % interval, the paper's numbers."""
    panels = [("inpaint", "psnr"), ("inpaint", COMPOSITE), ("interpolate", "psnr"), ("interpolate", COMPOSITE)]
    panels += [("deblur", "psnr"), ("denoise", "psnr")]
    figure, axes = plt.subplots(3, 2, figsize=(WIDE, 7.4), sharex=True, sharey=True, layout="constrained")
    for axis, (task, column) in zip(axes.flat, panels, strict=True):
        frame(axis)
        for i, schedule in enumerate(OTHERS):
            for j, name in enumerate(sets()):
                draw(axis, name, task, schedule, i + 0.25 * (j - 1), column, figures.COLOURS[schedule])
            if column == "psnr":
                draw_paper(axis, schedule, task, i)
        score = (", known pixels kept" if column == COMPOSITE else ", all pixels") * (task in paper.MASKED)
        axis.set_title(f"{judge.plain(task).capitalize()}{score}", fontsize=10)
        axis.tick_params(labelsize=8)
    stretch(axis, [-10, -1, -0.1, 0, 0.1, 1])
    axis.set(ylim=(len(OTHERS) - 0.5, -0.5), xlim=(-20, 1.2), yticks=range(len(OTHERS)))
    axis.set_yticklabels([published.SEVEN[s].replace("umulative", "umul.") for s in OTHERS], fontsize=8.5)
    figure.supxlabel(f"{MARGIN}: {STRETCHED}", fontsize=9)
    legend(figure)
    return figure


def stretch(axis, ticks: list[float]) -> None:
    """Make steps of a margin even up to ±0.1 dB and tenfold beyond, as `STRETCHED` says."""
    axis.set_xscale("symlog", linthresh=0.1)
    axis.set(xticks=ticks)
    axis.set_xticklabels([*map(figures.minus, ticks)], fontsize=8)
    axis.xaxis.set_minor_locator(plt.NullLocator())


def frame(axis) -> None:
    """Draw equal shares as a line, and the smallest gain by feedback that the paper reports as a band."""
    axis.axvspan(-judge.EQUIVALENCE, judge.EQUIVALENCE, color="0.92", zorder=0, linewidth=0)
    axis.axvline(0, color=figures.COLOURS[EQUAL], linestyle=":", linewidth=1.5)


def draw(axis, name: str, task: str, schedule: str, y: float, column: str, colour: str, network="", **look) -> None:
    """Draw the mean margin of a schedule over equal shares on a set, with its 95 % interval from three seeds on."""
    margins = judge.gaps(runs_on(name), task, schedule + network, EQUAL + network, column=column)
    if margins:
        axis.plot(np.mean(margins), y, MARKS[name], color=colour, markersize=4, **look)
    if len(margins) >= judge.MIN_SEEDS:
        axis.hlines(y, *judge.interval(margins), color=colour, linewidth=1.5)


def draw_paper(axis, schedule: str, task: str, y: float) -> None:
    printed = claims.paper_gaps(schedule, EQUAL, [task])
    axis.plot(printed, [y] * len(printed), "D", color="0.35", markerfacecolor="none", markersize=5)


def legend(figure) -> None:
    """Add a legend with the marks of the data sets, whatever their colour, and of the paper."""
    marks = {TITLES[name].lower(): mark for name, mark in MARKS.items()}
    lines = [
        plt.Line2D([], [], marker=mark, linestyle="none", color="0.2", markersize=5, label=f"here, {name}")
        for name, mark in marks.items()
    ]
    lines.append(plt.Line2D([], [], **PAPERS_MARK))
    figure.legend(handles=lines, loc="outside upper center", ncols=4, fontsize=8.5)


def systems():
    """Draw a strongly noisy detail, through a classical denoiser told 25, or the truth, and a network told nothing."""
    left, top, side, sigma = 180, 60, 128, 50
    x = np.array(photograph("astronaut.png").convert("L").crop((left, top, left + side, top + side)))
    y = denoising.add_awgn(x, "astronaut", sigma, clip=True)
    # Not by BM3D, which a reader may choose not to install.
    denoisers = denoising.denoisers(["nlm", "on_demand"], denoising.our_systems(PROFILE))
    shown = {f"noisy, σ = {sigma}": y}
    shown |= {f"non-local means, told {told}": denoisers["nlm"](y, told).clip(0, 1) for told in (25, sigma)}
    if "on_demand" in denoisers:
        shown["on-demand, told nothing"] = denoisers["on_demand"](y, sigma).clip(0, 1)
    figure, axes = plt.subplots(2, 2, figsize=(WIDE, 7), squeeze=False, layout="constrained")
    figure.get_layout_engine().set(hspace=0.06)
    figures.empty(axes)
    for axis, (title, image) in zip(axes.flat, shown.items(), strict=False):
        figures.show_picture(axis, image, f"{denoising.decibels(image, x):.1f} dB", 11)
        axis.set_title(title, fontsize=11, color=figures.LABEL_COLOUR)
    return figure


def spectrum():
    """Draw PSNR minus that of BM3D told the truth, against the strength of the noise."""
    figure, axis = plt.subplots(figsize=(WIDE, 3), layout="constrained")
    curves = db11_spectrum.mean_curves(load())
    named = {"on_demand": ("on-demand network, told nothing", figures.COLOURS["on_demand"])}
    named |= {"bm3d25": ("BM3D, told 25", "0.35"), "tnrd": ("TNRD, trained at 25", "0.65")}
    for name, (label, colour) in named.items():
        axis.plot(curves.index, curves[name] - curves.bm3d, "o-", color=colour, label=label, linewidth=2)
    axis.axhline(0, color="0.2", linewidth=1)
    axis.annotate(
        "BM3D told the truth", (1, 0), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=9
    )
    axis.set(xlabel="strength of the noise, σ (of 255)", ylabel="PSNR against it (dB)", xticks=list(curves.index))
    axis.legend(fontsize=9, loc="center right", bbox_to_anchor=(1, 0.45))
    return figure


def forest(rules: dict[str, str], cases: list[tuple[str, str, float, dict]], height: float):
    """Draw two panels, by all pixels and by composite, a row for each task and rule: its margins over equal shares.

    `rules` maps schedules to their labels; of each the `cases` are drawn: set, network, how far below the row's
    middle, and look of the mark.
    """
    colours = figures.COLOURS | {schedule: dose.COLOURS[k] for k, schedule in dose.NAMES.items()}
    rows = [(task, rule) for task in paper.TASKS for rule in rules]
    places = {row: i + 0.6 * (i // len(rules)) for i, row in enumerate(rows)}
    figure, axes = plt.subplots(1, 2, figsize=(WIDE, height), sharex=True, sharey=True, layout="constrained")
    for axis, column, title in zip(axes, ("psnr", COMPOSITE), ("all pixels", "known pixels kept"), strict=True):
        frame(axis)
        axis.set_title(title, fontsize=10)
        for (task, rule), y in places.items():
            for name, network, below, look in cases if column == "psnr" or task in paper.MASKED else ():
                draw(axis, name, task, rule, y + below, column, colours[rule], network, **look)
            if rule == EQUATION3 and column == "psnr":
                draw_paper(axis, rule, task, y)
    axes[0].set_yticks([*places.values()], [f"{judge.plain(task)}, {rules[rule]}" for task, rule in rows], fontsize=8.5)
    axes[0].set(ylim=(max(places.values()) + 0.7, -0.7))
    figure.supxlabel(MARGIN, fontsize=9)
    return figure


def found():
    """Draw feedback minus equal shares, by both scores: turned round, as in the paper, and four times as strong."""
    rules = {dose.NAMES[k]: f"k = {figures.minus(k)}" for k in (-4, 1, 4)}
    figure = forest(rules, [(name, "", 0.25 * (j - 1), {}) for j, name in enumerate(sets())], 5)
    legend(figure)
    return figure


NETWORKS = {"": "the network of 2017", OF_UNET: "a residual U-Net"}  # both on faces
OPEN = {"markerfacecolor": "none"}


def above():
    """Draw PSNR of both networks on equal shares minus that of the damaged faces, level by level."""
    figure, axes = plt.subplots(2, 2, figsize=(WIDE, 5), sharex=True, layout="constrained")
    for axis, task in zip(axes.flat, paper.TASKS, strict=True):
        axis.axhline(0, color="0.45", linestyle="--", linewidth=1.4)
        for (network, label), line in zip(NETWORKS.items(), (":", "-"), strict=True):
            runs = judge.runs_of(sets_faces().runs, EQUAL + network, [task])
            if runs:
                look = {"color": figures.COLOURS[EQUAL], "linestyle": line, "linewidth": 2, "marker": "o"}
                gains = [gained(runs, level) for level in judge.LEVELS]
                axis.plot([*map(int, judge.LEVELS)], gains, markersize=4, label=label, **look)
        axis.set_title(judge.plain(task).capitalize(), fontsize=10)
    for axis in axes[-1]:
        axis.set(xlabel="level", xticks=[*map(int, judge.LEVELS)])
    figure.supylabel("PSNR minus the damaged picture's (dB)", fontsize=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=9)
    return figure


def both_networks():
    """Draw schedules minus equal shares on faces, by both scores: the network of 2017 beside a residual U-Net."""
    runs = sets_faces().runs
    rules = {
        rule: label for rule, label in RULES_TODAY.items() if rule == EQUATION3 or judge.runs_of(runs, rule + OF_UNET)
    }
    looks = dict(zip(NETWORKS, (OPEN, {}), strict=True))
    cases = [("faces", network, below, looks[network]) for network, below in zip(NETWORKS, (-0.15, 0.15), strict=True)]
    figure = forest(rules, cases, 1.6 + 0.38 * len(paper.TASKS) * (len(rules) + 0.6))
    for axis in figure.axes:
        stretch(axis, [-1, -0.1, 0, 0.1, 0.5])
    figure.supxlabel(f"{MARGIN}: {STRETCHED}", fontsize=9)
    mark = {"marker": MARKS["faces"], "linestyle": "none", "color": "0.2", "markersize": 5}
    lines = [plt.Line2D([], [], label=label, **mark, **looks[network]) for network, label in NETWORKS.items()]
    figure.legend(handles=[*lines, plt.Line2D([], [], **PAPERS_MARK)], loc="outside upper center", ncols=3, fontsize=9)
    return figure


REPAIRED = {  # damage: photograph, the corner of the detail that is shown
    "noise 50": ("coffee.png", (150, 270)),
    "disc 3": ("astronaut.png", (50, 160)),
    "mask: scratches": ("chelsea.png", (70, 110)),
}


def repaired():
    """Draw details of three damaged photographs and what two networks and the best that learns nothing make of them."""
    rows, scores, side = [], [], 112
    for row, (name, (top, left)) in REPAIRED.items():
        x, y, mask = next(case for other, *case in measured_photographs.cases_of(row) if other == name)
        task = measured_photographs.task_of(row)
        made = [y / 255]
        made += [restore(y / 255, task, mask, network=network) for network in (chosen.PAPER, chosen.PHOTOGRAPHS)]
        rivals = (rival(y / 255, mask).clip(0, 1) for rival in measured_photographs.RIVALS[task].values())
        made.append(max(rivals, key=lambda x_hat: denoising.decibels(x_hat, x)))
        rows.append([image[top : top + side, left : left + side] for image in made])
        scores.append([f"{denoising.decibels(image, x):.1f} dB" for image in made])
    titles = ["damaged", "the paper's network", "for photographs", "without learning"]
    return figures.picture_grid(rows, titles, ["noise", "defocus", "scratches"], scores, size=1.3)


FIGURES = {
    "answer.png": answer, "ruined.png": ruined, "barely.svg": barely, "levels.svg": levels, "contest.svg": contest,
    "systems.png": systems, "spectrum.svg": spectrum, "found.svg": found, "repaired.png": repaired,
    "above.svg": above, "both-networks.svg": both_networks,
}  # fmt: skip
