"""Restored images beside those of other schedules (Fig. 5, Supp. G).

Runs: rigid joint learning, one fixated model and on-demand learning, of every task.
"""

import torch

from companion import figures, judge, pictures, prose
from odl import crops, paper
from odl.corruptions import Task

SHORT = dict.fromkeys(paper.FIXATED, "fixated") | {"rigid_joint": "rigid joint", "on_demand": "on-demand"}
SHORT |= {"corrupted": "damaged"}


def quintuples(task: Task, networks: dict, x, levels, prefix: str = "") -> list:
    """Fig. 5: original, damaged and restored, per level and image: rows (label, list of (title, image, line)).

    levels: of 1…6, `easy` and `hard`.
    """
    rows = []
    for level in levels:
        label = f"level {level}" if isinstance(level, int) else f"only\n{prose.severity_text(task.name, level)}"
        for k, image in enumerate(x.split(1)):
            generator = torch.Generator().manual_seed(crops.seed_of("quintuple", level, k))
            y = task.corrupt(image, level, generator)
            shown = [("original", image[0], "")]
            for name, (picture, score) in pictures.restored_by(networks, image, y).items():
                shown.append((SHORT.get(name, name), picture[0], f"{score.item():.1f} dB"))
            rows.append((prefix + label, shown))
    return rows


def plot_quintuples(rows: list, blocks: int = 2):
    """Fig. 5: `picture_blocks` of the original, the damaged image and its restorations, a column for each."""
    titles = dict.fromkeys(title for _, shown in rows for title, *_ in shown)
    return figures.picture_blocks(rows, tuple(titles), blocks)


def verdict(measured: dict, results) -> str:
    """On-demand minus its two opponents in mean PSNR; measured: task → results."""
    titles, lines = paper.SCHEDULES | paper.FIXATED, {}
    for task, found in measured.items():
        for other in ("rigid_joint", prose.FIGURE2.get(task, "fixated_hard")):
            label = f"{judge.plain(task).capitalize()}, on-demand − {titles[other].lower()}"
            lines[label] = judge.compare(judge.Measured(judge.keyed(found)), {"": (task, "on_demand", other)})
    below = prose.swamped_tasks([run for found in measured.values() for run in found], titles)
    means = "Means over all test crops, levels 1–6: a few pictures prove nothing." if results else ""
    return prose.page(lines, results, below, means)
