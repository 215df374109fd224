"""How on-demand learning divides its batch over training, and whether it matters (Algorithm 1, Eq. 3, Sec. 6.6)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion import judge
from companion.judge import Decision, Evidence, decide_claim, plain
from companion.show import figures, sentences
from companion.show.figures import subplots
from odl import paper
from odl.schedules import allocate, on_demand

# Figures


def plot_shares(given: dict):
    """Draw Eq. 3 before any training: the images of a batch that PSNRs would get; given: title → dB per level."""
    figure, axes = figures.share_panels(given, size=(2.2 * len(given), 2.5))
    for axis, psnr in zip(axes, given.values(), strict=True):
        counts = allocate(on_demand(0, psnr, len(psnr)), paper.BATCH_SIZE)
        bars = axis.bar(range(1, len(psnr) + 1), counts, color=figures.LEVEL_COLOURS[: len(psnr)], width=0.75)
        axis.bar_label(bars, fontsize=9)
    axes[0].set_ylabel("images per batch")
    axes[0].margins(y=0.12)  # room for the number above the highest bar
    return figure


def plot_histories(**histories):
    """Draw PSNR and share of the batch per level after each epoch of trainings, a column each.

    histories: name → a dict for each epoch, with `psnr` (dB) and `allocation` (per cent) of levels 1 to 5.
    """
    size = (1 + 3.5 * len(histories), 4.6)
    figure, axes = subplots(2, len(histories), figsize=size, squeeze=False, sharey="row", layout="constrained")
    for column, (name, history) in zip(axes.T, histories.items(), strict=True):
        for axis, what in zip(column, ("psnr", "allocation"), strict=True):
            for level, values in enumerate(zip(*(epoch[what] for epoch in history), strict=True), 1):
                axis.plot(range(1, 1 + len(history)), values, color=figures.LEVEL_COLOURS[level - 1], label=level)
        column[0].set_title(name.replace("_", " "))
        column[1].axhline(100 / paper.N_LEVELS, color="0.4", linestyle=":")
        column[1].set_xlabel("epoch")
        column[1].xaxis.set_major_locator(plt.MaxNLocator(integer=True))
    axes[0, 0].set_ylabel("PSNR (dB)")
    axes[1, 0].set_ylabel("share of the batch (%)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), title="level", loc="outside right center")
    return figure


# The table, and what is said of it


def shares_table(runs: dict) -> pd.DataFrame:
    """Return each level's share (%), first, last, least and most, and the dose; runs: task → Result or None."""
    rows = []
    for task, result in runs.items():
        for level, share in enumerate(percent(result).T if result else (), 1):
            ends = {"first": share[0], "last": share[-1], "least": share.min(), "most": share.max()}
            rows.append({"task": task, "level": level} | ends | {"dose": 100 * judge.dose_of(result)})
    return pd.DataFrame(rows, columns=["task", "level", "first", "last", "least", "most", "dose"])


def percent(run) -> np.ndarray:
    """Return per cent of the batch that each level had in each epoch of a run: (epochs, levels)."""
    return np.array([epoch["allocation"] for epoch in run.history])


def describe_doses(runs: dict) -> str:
    """Say what a dose decides; runs: task → Result or None."""
    found = {task: run for task, run in runs.items() if run}
    if not found:
        return sentences.QUESTION_OPEN
    words = (
        f"Rigid joint learning has a dose of 0: every level gets 1/{paper.N_LEVELS} of the batch. That a lower PSNR "
        "gets more images is Equation 3 itself; whether it matters is the question of dose and ladder, the next page."
    )
    return f"{words}\n\n{sentences.scale([*found.values()])}"


def judge_shift(evidence: Evidence) -> Decision:
    """Judge level 5 against level 1 in the last epoch."""
    moved = {task: [s[-1, -1] - s[-1, 0] for s in found] for task, found in shares(evidence).items()}
    return decide_claim(moved, unit="points")


def judge_easiest_share(evidence: Evidence) -> Decision:
    """Judge the smallest share that level 1 ever has: more than half of an equal one."""
    least = {task: [s[:, 0].min() for s in found] for task, found in shares(evidence).items()}
    text = "; ".join(f"{task} {np.mean(values):.1f} %" for task, values in least.items() if values)
    return decide_claim(least, beyond=100 / paper.N_LEVELS / 2, unit="%", text=text)


def shares(evidence: Evidence) -> dict:
    """Return plain name of a task → `percent` of its on-demand runs, one array per seed."""
    return {
        plain(task): [percent(run) for [run] in judge.paired(evidence.runs, task, "on_demand")]
        for task in paper.AS_SHIPPED
    }
