"""How on-demand learning divides its batch over training, and whether it matters (Sec. 6.6)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion import judge
from companion.figures import LEVEL_COLOURS, ROOM, history_frame
from companion.judge import Measured, Verdict, plain, verdict_on
from companion.prose import NOTHING, scale, swamped_tasks
from odl import paper
from odl.schedules import allocate, on_demand


def shares(m: Measured) -> dict:
    """Plain name of a task → per cent of the batch per epoch and level (epochs × levels), one array per seed."""
    runs = {task: [run for key, run in m.runs.items() if key[:2] == (task, "on_demand")] for task in paper.TASKS}
    return {plain(t): [np.array([e["allocation"] for e in run.history]) for run in runs[t]] for t in runs}


def shifts(m: Measured) -> Verdict:
    """Level 5 against level 1 in the last epoch."""
    return verdict_on({task: [s[-1, -1] - s[-1, 0] for s in found] for task, found in shares(m).items()}, unit="%")


def never_abandons(m: Measured) -> Verdict:
    """The smallest share that level 1 ever has: more than half of an equal one."""
    least = {task: [s[:, 0].min() for s in found] for task, found in shares(m).items()}
    return verdict_on(least, beyond=100 / paper.N_LEVELS / 2, unit="%")


def table(runs: dict) -> pd.DataFrame:
    """Shares of on-demand runs in per cent of a batch (task → Result or None).

    Columns task, level, first and last (epoch), least and most (of any epoch), dose (mean over epochs, a row's task's).
    """
    rows = []
    for task, result in runs.items():
        shares = np.array([epoch["allocation"] for epoch in result.history]) if result else np.zeros((0, 0))
        for level, column in enumerate(shares.T, 1):
            ends = {"first": column[0], "last": column[-1], "least": column.min(), "most": column.max()}
            rows.append({"task": task, "level": level} | ends | {"dose": 100 * judge.dose_of(result)})
    return pd.DataFrame(rows, columns=["task", "level", "first", "last", "least", "most", "dose"])


def verdict(table: pd.DataFrame, runs: dict) -> str:
    """Where the shares end and how large the dose is; runs: task → Result or None. No claim is decided by this."""
    if table.empty:
        return NOTHING
    lines = []
    for task, part in table.groupby("task", sort=False):
        last = part["last"].tolist()
        lines.append(
            f"- {paper.TASKS[task]['title']}: level 1 ends with {last[0]:.1f} % of the batch and level 5 with "
            f"{last[-1]:.1f} %; every level has between {part.least.min():.1f} % and {part.most.max():.1f} %, and "
            f"the dose is {part.dose.iloc[0]:.2f} %."
        )
    words = (
        f"Rigid joint learning has a dose of 0: every level gets 1/{paper.N_LEVELS} of the batch. That a lower PSNR "
        "gets more images is Equation 3 itself; whether it matters is the question of dose and ladder, the next page."
    )
    found = [run for run in runs.values() if run]
    return "\n\n".join(filter(None, ("\n".join(lines), words, swamped_tasks(found, ["on_demand"]), scale(found))))


# Allocation


def plot_shares():
    """Eq. 3 before any training: the images per level that given validation PSNRs would get."""

    given = {
        "untrained: all the same": (12, 12, 12, 12, 12),
        "small gap: 22 to 20 dB": (22, 21.5, 21, 20.5, 20),
        "large gap: 36 to 24 dB": (36, 33, 30, 27, 24),
        "a level fails: 40 to 10 dB": (40, 32.5, 25, 17.5, 10),
    }
    figure, axes = plt.subplots(1, len(given), figsize=(8.8, 2.5), sharey=True, layout="constrained")
    levels = np.arange(1, paper.N_LEVELS + 1)
    for axis, (title, psnr) in zip(axes, given.items(), strict=True):
        counts = allocate(on_demand(0, psnr, paper.N_LEVELS), paper.BATCH_SIZE)
        bars = axis.bar(levels, counts, color=LEVEL_COLOURS[:-1], width=0.75)
        axis.bar_label(bars, fontsize=9)
        axis.axhline(paper.BATCH_SIZE / paper.N_LEVELS, color="0.4", linestyle=":", linewidth=1)
        axis.set(xticks=levels, xlabel="level and its PSNR (dB)")
        axis.set_xticklabels([f"{level}\n{value:g}" for level, value in zip(levels, psnr, strict=True)])
        axis.set_title(title, fontsize=9.5)
    axes[0].set_ylabel("images per batch")
    return figure


def plot_allocation(result):
    """Validation PSNR and share of the batch per level after each epoch of one on-demand run, and its dose.

    Dashed on the left: the damaged test images of a level, where they are near enough to be drawn.
    """
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
    frame, damaged = history_frame(result), result.evaluation.groupby("level").psnr_input.mean()
    for level, part in frame.groupby("level"):
        style = {"color": LEVEL_COLOURS[level - 1], "label": level, "linewidth": 1.8}
        axes[0].plot(part.epoch, part.psnr, "o-", markersize=3, **style)
        if frame.psnr.min() - ROOM < damaged[str(level)] < frame.psnr.max() + ROOM:
            axes[0].axhline(damaged[str(level)], color=style["color"], linestyle="--", linewidth=1)
    axes[0].set(ylabel="dB", title="validation PSNR of each level")
    draw_allocation(axes[1], frame)
    axes[1].set(ylabel="per cent of the batch", title="what each level gets")
    axes[2].plot(range(1, len(result.history) + 1), [100 * e["dose"] for e in result.history], color="#D55E00")
    axes[2].set(ylabel="per cent of the batch", title="dose", ylim=(0, None))
    for axis in axes:
        axis.set_xlabel("epoch")
        axis.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
    figure.legend(*axes[0].get_legend_handles_labels(), title="level", loc="outside right center")
    return figure


def draw_allocation(axis, frame: pd.DataFrame) -> None:
    """Per cent of the batch per level against epoch."""
    for level, part in frame.groupby("level"):
        color = LEVEL_COLOURS[level - 1]
        axis.step(part.epoch, part.allocation, where="mid", color=color, label=level, linewidth=1.8)
    axis.axhline(100 / paper.N_LEVELS, color="0.4", linestyle=":", linewidth=1)
    axis.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
    axis.set(xlabel="epoch")


def plot_allocations(runs: dict):
    """Per cent of the batch per level over training of all tasks; runs: task → Result or None."""
    figure, axes = plt.subplots(2, len(runs) // 2, figsize=(8.6, 4.6), sharey=True, layout="constrained")
    for axis, (task, result) in zip(axes.flat, runs.items(), strict=True):
        axis.set_title(paper.TASKS[task]["title"], fontsize=10)
        if result:
            draw_allocation(axis, history_frame(result))
            entries = axis.get_legend_handles_labels()
        else:
            axis.set_xticks([])
            axis.text(0.5, 0.5, "not measured yet", transform=axis.transAxes, ha="center", color="0.4")
    figure.supylabel("per cent of the batch", fontsize=10)
    if any(runs.values()):
        figure.legend(*entries, title="level", loc="outside right center")
    return figure
