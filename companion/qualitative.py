"""Restored images beside those of other schedules (Fig. 5, Supp. G)."""

import torch

from companion import prose
from companion.figures import picture_blocks
from companion.judge import Measured, compare, keyed, plain
from companion.pictures import restored_by
from companion.prose import page, swamped_tasks
from odl import crops, paper
from odl.corruptions import Task
from odl.evaluation import bounds_of


def quintuples(task: Task, networks: dict, x, levels, prefix: str = "") -> list:
    """Fig. 5: original, corrupted and restored, per level and image: rows (label, list of (title, image, line)).

    levels: of 1…6, `easy` and `hard`.
    """
    titles = dict.fromkeys(paper.FIXATED, "fixated") | {"rigid_joint": "rigid joint", "on_demand": "on-demand"}
    rows = []
    for level in levels:
        low, high = bounds_of(task, level)
        label = f"level {level}" if isinstance(level, int) else f"only\n{prose.severity_text(task.name, level)}"
        for k, image in enumerate(x):
            generator = torch.Generator().manual_seed(crops.seed_of("quintuple", level, k))
            y = task.corrupt_between(image[None], low, high, generator, centred=not isinstance(level, int))
            answers = restored_by(networks, image[None], y)
            rest = [(titles.get(n, n), picture[0], f"{score.item():.1f} dB") for n, (picture, score) in answers.items()]
            rows.append((prefix + label, [("original", image, ""), *rest]))
    return rows


def verdict(measured: dict, results) -> str:
    """On-demand minus its two opponents in mean PSNR; measured: task → results."""
    titles, lines = paper.SCHEDULES | paper.FIXATED, {}
    for task, found in measured.items():
        for other in ("rigid_joint", prose.FIGURE2[task]):
            label = f"{plain(task).capitalize()}, on-demand − {titles[other].lower()}"
            lines[label] = compare(Measured(keyed(found)), {"": (task, "on_demand", other)})
    return page(
        lines,
        results,
        swamped_tasks([r for found in measured.values() for r in found], titles),
        "Means over all test crops, levels 1–6: a few pictures prove nothing." if results else "",
    )


# Qualitative


def plot_quintuples(rows: list, blocks: int = 2):
    """Fig. 5: `picture_blocks` of the original, the corrupted image and three restorations."""
    return picture_blocks(rows, ("original", "corrupted", "rigid joint", "fixated", "on-demand"), blocks)
