"""Draw the book's own figures and write the tables its pages include, from the code and the results files.

python book/figures.py FOLDER makes everything that the pages take from /generated.
book/_static/answer.png, which README.md shows, is a copy of FOLDER/answer.png.
"""

import argparse
import io
import json
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import appendix
import demo
import drawings
import exercises
import facts
import lab_page
import matplotlib.pyplot as plt
import numpy as np
import results_table
import speed
import tables
import torch
from matplotlib.patches import Polygon
from measured import DATASET, NOT_MEASURED, PROFILE
from PIL import Image

from companion.judge import plain
from companion.pages import allocation, table1
from companion.show import figures
from odl import paper
from odl.corruptions import TASKS
from odl.crops import grey

INTERVALS = {"inpaint": "{}–{} px", "interpolate": "{}–{} %", "deblur": "σ {}–{} px", "denoise": "σ {}–{} of 255"}
MUTED = "#666666"
SCORES = {  # made up: dB on levels 1 to 5
    "untrained: all the same": [12, 12, 12, 12, 12],
    "small gap: 22 to 20 dB": [22, 21.5, 21, 20.5, 20],
    "large gap: 36 to 24 dB": [36, 33, 30, 27, 24],
    "a level fails: 40 to 10 dB": [40, 32.5, 25, 17.5, 10],
}
plt.rcParams["svg.hashsalt"] = "odl"  # the same file from the same data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FIGURES.items():
        save(make(), folder / name)
    for name, make in TABLES.items():
        (folder / f"{name}.md").write_text(f"{titled(name, made_or_missing(name, make))}\n", encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps(numbers()), encoding="utf-8")


def made_or_missing(name: str, make) -> str:
    """Return a table, or the command that measures what it shows."""
    try:
        return make()
    except FileNotFoundError:
        scale = f"--profile {PROFILE} --dataset {DATASET}"
        command = "make bench" if name.startswith("speed") else f"python -m companion reproduce {scale}"
        return f"This is {NOT_MEASURED}: `{command}` does it."


def titled(name: str, text: str) -> str:
    if name not in CAPTIONS or not text.startswith("| "):
        return text
    table, _, more = text.partition("\n\n")
    return f"```{{table}} {CAPTIONS[name]}\n:name: tab-{name}\n\n{table}\n```\n\n{more}"


def numbers() -> dict:
    """Return what facts.json has of `facts.FACTS`: what a page says for each name."""
    return {
        page: {key: str(fact or NOT_MEASURED) for key, fact in make().items()} for page, make in facts.FACTS.items()
    }


def save(figure, path: Path) -> None:
    """Write a PNG of 150 dots an inch, of 256 colours where it is opaque, or an SVG without a date."""
    drawn, kind = io.BytesIO(), path.suffix[1:]
    figure.savefig(drawn, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {"Software": None})
    plt.close(figure)
    if kind == "png":
        picture, drawn = Image.open(drawn), io.BytesIO()
        if picture.mode != "RGBA" or picture.getextrema()[3][0] == 255:  # else its labels stand on whatever the page is
            picture = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        picture.save(drawn, "PNG", optimize=True)
    path.write_bytes(drawn.getvalue())


def concept():
    """Draw four tasks × six levels on one photograph, as the paper's Fig. 1; one draw for all levels of a task."""
    photograph, levels, rows, below = lab_page.as_input("chelsea.png"), range(1, paper.N_LEVELS + 2), [], []
    for name, task in TASKS.items():
        clean = grey(photograph) if task.channels == 1 else photograph
        images = [clean, *(task.corrupt(clean, level, torch.Generator().manual_seed(5)) for level in levels)]
        rows.append([image[0] for image in images])
        below.append(["", *(INTERVALS[name].format(*interval) for interval in paper.TASKS[name]["levels"])])
    titles = ["clean", *(f"level {level}" for level in levels[:-1]), "level 6: tests"]
    return figures.picture_grid(rows, titles, [plain(name).capitalize() for name in TASKS], below)


def network():
    """Draw the encoder and decoder as blocks: height for resolution, thickness for channels (the paper's Fig. 3)."""
    figure, axis = plt.subplots(figsize=(10, 3.7), layout="constrained")
    blocks, places, x = [("input", 3, 64)] + [layer[:3] for layer in appendix.layers(3, 64)], {}, 0.0
    for name, channels, side in blocks:
        thick, high = 0.10 + 0.06 * np.log2(1 + channels / 3), 0.35 + 2.2 * (side / 64) ** 0.6
        colour = {3: "#777777"}.get(channels, "#D55E00" if name == "channel-wise" else "#0072B2")
        places[name] = middle = x + thick / 2
        block(axis, x, thick, high, colour)
        axis.text(middle, -high / 2 - 0.13, f"{channels}\n{side}×{side}", ha="center", va="top", fontsize=9)
        axis.text(middle + 0.14, high / 2 + 0.42, name, ha="center", fontsize=9, color=colour)
        if x:
            style = {"arrowstyle": "-|>", "color": MUTED, "linewidth": 1}
            axis.annotate("", (x - 0.07, 0), (x - 0.62, 0), arrowprops=style)
        x += thick + 0.95
    # fmt: off
    notes = [
        ("input", "down 4", -2.15, MUTED, "convolution 4×4, stride 2 · batch norm · leaky ReLU 0.2"),
        ("up 1", "up 4", -2.15, MUTED,
         "transposed convolution 4×4, stride 2 ·\nbatch norm · ReLU; at the end tanh alone"),
        ("channel-wise", "channel-wise", -1.3, "#D55E00", "one linear map\n16 → 16 for\neach channel"),
    ]
    # fmt: on
    for left, right, height, colour, note in notes:
        axis.text((places[left] + places[right]) / 2, height, note, ha="center", va="top", fontsize=8.5, color=colour)
    axis.set(xlim=(-0.4, x - 0.4), ylim=(-2.65, 2.2), aspect="equal")
    axis.axis("off")
    return figure


def block(axis, x, thick, high, colour):
    """Draw a cuboid seen from the right."""
    low, right, top, lean = -high / 2, x + thick, high / 2, 0.28
    faces = {
        0.85: [(x, low), (right, low), (right, top), (x, top)],
        0.55: [(x, top), (right, top), (right + lean, top + lean), (x + lean, top + lean)],
        0.70: [(right, low), (right + lean, low + lean), (right + lean, top + lean), (right, top)],
    }
    for alpha, corners in faces.items():
        axis.add_patch(Polygon(corners, facecolor="white", zorder=2))
        axis.add_patch(Polygon(corners, facecolor=colour, alpha=alpha, edgecolor="white", linewidth=0.8, zorder=3))


FIGURES = {
    "concept.png": concept, "network.svg": network, "schedules.png": table1.plot_schedules,
    "shares.svg": partial(allocation.plot_shares, SCORES),
    "lab-fixation.png": partial(lab_page.restorations, "chelsea.png", "deblur", 2.0),  # milder than the hard severity
    "lab-allocation.svg": lab_page.still_allocation, "lab-inpaint.png": lab_page.still_inpaint,
    "lab-seeds.svg": lab_page.still_seeds,
} | drawings.FIGURES  # fmt: skip
TABLES = {f"speed-{name}": partial(speed.table, name) for name in speed.ORDER}
TABLES |= {
    "demo": demo.figure, "results-table": results_table.results_table,
    "tasks-table": appendix.tasks, "parameter-counts": appendix.parameter_counts,
    "profiles-table": appendix.profiles_table, "cost": appendix.cost,
    "data-table": appendix.data_table, "checksums": appendix.checksums, "model-cards": appendix.model_cards,
} | tables.TABLES | exercises.TABLES | appendix.STATEMENT  # fmt: skip
CAPTIONS = {  # of the tables that stand on one page alone
    "tasks-table": "Levels 1 to 6 of each task, and the severities of the fixated models.",
    "parameter-counts": "Layers of the network at width 64, counted on the network itself.",
    "results-table": "Every table and figure with results: its notebook, the paper's numbers and those measured here.",
}

if __name__ == "__main__":
    main()
