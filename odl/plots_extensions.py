"""Figures of the pages beyond the paper."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.ticker import PercentFormatter

from odl import extensions, paper, results
from odl.corruptions import TASKS
from odl.extensions import K_VALUES, MIXTURE, N_VALUES
from odl.judge import LEVELS, WITHIN, number
from odl.plots import level_names, picture_grid, show_table

GIVEN = (36, 33, 30, 27, 24)  # dB: made-up scores of levels 1 to 5 with a large gap
SEED_MARKS = "os^Dv"
N_COLOURS = dict(zip(N_VALUES, ("#CC79A7", "#D55E00", "#56B4E9", "#009E73"), strict=True))
K_COLOURS = dict(zip(K_VALUES, ("#0072B2", "#D55E00", "#E69F00", "#555555"), strict=True))
MIXED = {"mixture, on-demand": "#D55E00", "mixture, on-demand, longer": "#0072B2"}


def rule(task: str, runs: dict):
    """Before any training, with made-up scores: densities for several N and without levels; images per level for k."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for n in N_VALUES:
        middle = (np.arange(n) + 0.5) / n * paper.N_LEVELS - 0.5
        run = runs[f"N = {n}"][0]
        shares = extensions.shares(run, np.interp(middle, np.arange(paper.N_LEVELS), GIVEN))
        draw_shares(left, task, shares, color=N_COLOURS[n], label=f"N = {n}", linewidth=3.5 if n == 5 else 1.4)
    draw_density(left, task, GIVEN, color="black", label="continuous", linewidth=1.8)
    left.legend(fontsize=8)
    for k in K_VALUES:
        draw_counts(right, k, extensions.shares(runs[f"k = {k}"][0], GIVEN))
    right.set(ylabel="per cent of the batch", xlabel="level and its PSNR (dB)")
    right.set_xticks(range(1, 6), [f"{level}\n{p}" for level, p in enumerate(GIVEN, 1)])
    right.legend(fontsize=8)
    return figure


def draw_shares(axis, task: str, counts, **look) -> None:
    """Images per sub-task as a density of severities, 1 where all severities are equally likely."""
    edges = np.linspace(*extensions.severity_range(task), len(counts) + 1)
    axis.stairs(np.array(counts) / np.sum(counts) * len(counts), edges, baseline=None, **look)


def draw_density(axis, task: str, psnr, **look) -> None:
    """The density of continuous levels, 1 where all severities are equally likely."""
    severity, p = extensions.density(psnr, task)
    axis.plot(severity, p * np.ptp(severity), **look)
    axis.axhline(1, color="0.4", linestyle=":", linewidth=1)
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.9), max(high, 1.1))  # else a shift of a thousandth fills the picture
    axis.set(xlabel=paper.TASKS[task]["severity"], ylabel="density, relative to uniform")


def draw_counts(axis, k, counts) -> None:
    """Per cent of the batch per level with sharpness k."""
    look = {"color": K_COLOURS[k], "linewidth": 1.5 if k else 4, "markersize": 4}  # k = 1 may lie on k = 0
    axis.plot(range(1, len(counts) + 1), 100 * np.array(counts) / np.sum(counts), "o-", label=f"k = {k}", **look)


def mixture(x):
    """Photographs (n, 3, 64, 64), clean and under each task of the mixture at rising levels."""
    levels = torch.arange(len(x)) % paper.N_LEVELS + 1
    rows = {"clean": x}
    rows |= {task: TASKS[task].corrupt(x, levels, torch.Generator().manual_seed(3)) for task in MIXTURE}
    return picture_grid(list(rows.values()), [f"level {level}" for level in levels], list(rows))


def dots(axis, groups: dict, colour="#D55E00", shift=0.0, label=None) -> None:
    """Gaps in dB, a column per group and a mark per seed; in the grey band differences are called equivalent."""
    empty = not axis.lines and not any(groups.values())
    look = {"color": colour, "markersize": 6, "markerfacecolor": "none"}
    for column, margins in enumerate(groups.values()):
        for mark, margin in zip(SEED_MARKS, margins, strict=False):
            axis.plot(column + shift, margin, mark, **look)
    axis.plot([], [], "o", label=label, **look)
    if empty:
        axis.text(0.5, 0.6, "not measured yet", transform=axis.transAxes, ha="center", color="0.4")
    axis.axhspan(-WITHIN, WITHIN, color="0.9", zorder=0, linewidth=0)
    axis.axhline(0, color="0.4", linewidth=1)
    axis.set_xticks(range(len(groups)), list(groups))
    axis.set(xlim=(-0.6, len(groups) - 0.4), ylabel="gap (dB)")
    axis.grid(axis="x", visible=False)


def gaps_of(frame: pd.DataFrame, question: str) -> dict:
    """run → gaps, one per seed."""
    return {run: list(part.gap) for run, part in frame[frame.question == question].groupby("run", sort=False)}


def loaded(runs) -> list:
    return [result for result in map(results.load, runs) if result]


def continuous(task: str, runs: dict):
    """Shares and densities that training ended with, and the gap of continuous levels on each of the six levels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    pairs = [(results.load(a), results.load(b)) for a, b in zip(runs["continuous"], runs["on-demand"], strict=True)]
    for i, (ours, levels) in enumerate(pair for pair in pairs if all(pair)):
        look = {"linestyle": ("-", "--")[i % 2], "linewidth": 1.6}
        names = (None, None) if i else ("five levels", "continuous")
        draw_shares(left, task, levels.history[-1]["allocation"], color="#D55E00", label=names[0], **look)
        draw_density(left, task, ours.history[-1]["psnr"], color="black", label=names[1], **look)
        left.legend(fontsize=8)
        ours, levels = (r.evaluation.groupby("level").psnr.mean()[list(LEVELS)] for r in (ours, levels))
        right.plot(range(6), ours - levels, SEED_MARKS[i], color="black", markerfacecolor="none")
    dots(right, dict.fromkeys(level_names(task), []))
    right.set(xlabel=f"level: {paper.TASKS[task]['severity']}")
    return figure


def numbers(frame: pd.DataFrame, cost: pd.DataFrame):
    """Gap to N = 5 for other N, and what share of an epoch's arithmetic validation takes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    dots(left, gaps_of(frame, "number of sub-tasks"))
    left.set_title("against N = 5", fontsize=10)
    for column, title, colour in (("ours", "these runs", "#D55E00"), ("paper", "the paper's epochs", "#0072B2")):
        right.plot(cost.N, cost[column], "o-", color=colour, label=title)
    right.yaxis.set_major_formatter(PercentFormatter(1))
    right.set(xlabel="N", ylabel="validation's share of arithmetic", ylim=(0, None), xticks=cost.N)
    right.legend(fontsize=8)
    return figure


def sharpness(frame: pd.DataFrame, runs: dict):
    """Images per level in the last epoch for every k, first seed, and the gap to k = 1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for k in K_VALUES:
        for result in loaded(runs[f"k = {k}"][:1]):
            draw_counts(left, k, result.history[-1]["allocation"])
            left.legend(fontsize=8)
    left.set(xlabel="level", ylabel="per cent of the batch", xticks=range(1, 6))
    dots(right, gaps_of(frame, "sharpness"))
    right.set_title("against k = 1", fontsize=10)
    return figure


def mixtures(frame: pd.DataFrame):
    """Gap of the mixtures to each task's specialist, and of feedback to rigid joint learning on the mixture."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(3, 2), layout="constrained")
    for i, (run, colour) in enumerate(MIXED.items()):
        part = frame[(frame.question == "mixture: specialists") & (frame.run == run)]
        groups = {task: list(part.gap[part.tasks == task]) for task in MIXTURE}
        dots(left, groups, colour, 0.3 * i - 0.15, ("as many steps as one", "as many steps as all three")[i])
    left.legend(fontsize=8)
    left.set_title("one network against the specialist of each task", fontsize=10)
    feedback = gaps_of(frame, "mixture: feedback")
    dots(right, {run.replace("mixture, on-demand", "on demand").strip(): v for run, v in feedback.items()})
    right.set_title("against rigid joint learning on the mixture", fontsize=10)
    return figure


def show(frame: pd.DataFrame):
    """Every comparison of `extensions.gaps`: PSNR, and the gap of each seed."""
    table = extensions.table(frame)
    by = frame.groupby(["question", "run", "against"], sort=False).gap
    names = {"question": "question", "run": "run", "against": "beside", "psnr": "PSNR (dB)"}
    shown = table[list(names)].rename(columns=names)
    shown["question"] = table.question.where(~table.question.duplicated(), "")
    shown["gap of each seed (dB)"] = [",\u00a0".join(map(number, part)) for _, part in by]
    return show_table(shown).set_table_attributes('class="odl-table odl-words"')
