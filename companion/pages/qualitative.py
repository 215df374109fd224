"""Restored images beside those of other schedules (Fig. 5, Supp. G)."""

import torch

from companion import published
from companion.show import pictures, sentences
from odl import crops, paper
from odl.corruptions import Task

SHORT = dict.fromkeys(published.FIXATED, "fixated") | {"rigid_joint": "rigid joint", "on_demand": "on-demand"}
SHORT |= {"not_restored": "damaged"}


def quintuples(task: Task, networks: dict, x, levels, prefix: str = "") -> list:
    """Return Fig. 5 for `figures.picture_rows`: original, damaged, restored, per level and image."""
    rows = []
    for level in levels:
        label = f"level {level}" if isinstance(level, int) else f"only\n{sentences.severity_text(task.name, level)}"
        for k, image in enumerate(x.split(1)):
            generator = torch.Generator().manual_seed(crops.seed_of("quintuple", level, k))
            y = task.corrupt(image, level, generator)
            found = pictures.restored_by(networks, image, y, keep=task.name in paper.MASKED)
            named = {SHORT.get(name, name): one for name, one in found.items()}
            shown = [(title, picture[0], f"{score.item():.1f} dB") for title, (picture, score) in named.items()]
            rows.append((prefix + label, [("original", image[0], ""), *shown]))
    return rows
