"""What the figures share: style, colours, titles, grids of pictures, axes.

Importing this sets Matplotlib's style, so that a figure which a reader draws on a page looks like those beside it.
What a reader has set, such as text.usetex without LaTeX or a style sheet, breaks none: each begins with `subplots`.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from companion import judge, published
from odl import paper
from odl.corruptions import TASKS

STYLE = {
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "savefig.bbox": "tight",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}


def subplots(*shape, **how):
    """Return `plt.subplots` from Matplotlib's defaults and this style, which stay for what is drawn into it later."""
    set_style()
    return plt.subplots(*shape, **how)


def set_style() -> None:
    plt.rcdefaults()
    plt.rcParams |= STYLE


set_style()

# Colours of Okabe and Ito, then of Tol: one for each schedule. Where they meet, dashes or marks tell them apart, too.
COLOURS = {
    "on_demand": "#D55E00",
    "rigid_joint": "#0072B2",
    "cumulative_curriculum": "#009E73",
    "cumulative_anti_curriculum": "#56B4E9",
    "staged_curriculum": "#CC79A7",
    "staged_anti_curriculum": "#E69F00",
    "hard_mining": "#555555",
    "fixated_easy": "#999933",
    "fixated_hard": "#882255",
    "minimax_gap": "#AA4499",
    "group_dro": "#332288",
    "inverse_mse": "#44AA99",
    "static_easy": "#117733",
    "second_moment": "#6699CC",
}
LEVEL_COLOURS = plt.get_cmap("viridis")(np.linspace(0.9, 0.05, paper.N_LEVELS + 1))  # light: easy, dark: hard
TITLES = {"not_restored": "Not restored", "kept": "Known pixels kept"} | published.SEVEN
TITLES |= {f"{name}_composite": f"{title}, composite kept" for name, title in published.SPECIALISTS.items()}
TITLES |= published.FIXATED | published.LATER | published.SPECIALISTS | published.CLASSICAL
TITLES |= {"on_demand_l2": "Equation 3 with L2"}
NOT_RESTORED_LINE = {"color": "0.45", "linestyle": "--", "linewidth": 1.4, "label": "not restored"}
KEPT_LINE = {"color": COLOURS["on_demand"], "linewidth": 0.9, "label": "on-demand, known pixels kept"}
LABEL_COLOUR = "#777777"  # of pictures, whose figure has no ground of its own: a page may be light or dark
MAX_DB_BEYOND = 6  # dB that a figure shows above and below the networks; undamaged images have 100 dB


def minus(number: float) -> str:
    """Return a number with a real minus sign."""
    return f"{number:g}".replace("-", "−")


def title_of(schedule: str) -> str:
    """Return the title of a schedule, or its name where a reader added it."""
    return TITLES.get(schedule, schedule)


def mark_equivalence(axis, along: str = "x", label: str | None = None) -> None:
    """Draw no margin as a line and the margins that count as equal as a band."""
    span, line = (axis.axvspan, axis.axvline) if along == "x" else (axis.axhspan, axis.axhline)
    span(-judge.EQUIVALENCE, judge.EQUIVALENCE, color="0.92", zorder=0, linewidth=0, label=label)
    line(0, color="0.4", linewidth=1)


def to_picture(x) -> np.ndarray:
    """Return one image (channels, H, W) in [-1, 1], or (H, W[, 3]) in [0, 1], as something imshow takes."""
    if torch.is_tensor(x):
        x = ((x.detach().float().cpu().clamp(-1, 1) + 1) / 2).permute(1, 2, 0).numpy()
    x = np.asarray(x)
    return x[..., 0] if x.ndim == 3 and x.shape[2] == 1 else x


def picture_grid(rows, columns=None, labels=None, scores=None, size: float = 1.25):
    """Draw a grid of images: `rows` is a list of lists; titles per column, labels per row, a line per image."""
    n, m = len(rows), max(map(len, rows))
    high, wide = to_picture(rows[0][0]).shape[:2]
    width = size * m + 0.4 * bool(labels)
    small = max(8, width)  # points: the wider a figure, the more a page reduces it
    tall = size * high / wide + small / 40 * bool(scores)
    figure, axes = subplots(n, m, figsize=(width, tall * n + 0.3), squeeze=False)
    empty(axes)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            show_picture(axes[i, j], image, scores and scores[i][j], small)
        if labels:
            axes[i, 0].set_ylabel(labels[i], fontsize=small + 1, color=LABEL_COLOUR)
    for axis, title in zip(axes[0], columns or (), strict=False):
        axis.set_title(title, fontsize=small + 1, color=LABEL_COLOUR)
    figure.tight_layout(pad=0.3)
    return figure


def picture_rows(rows: list, size: float = 1.25):
    """Draw rows (label, list of (title, image, line below)); a row may end before the longest."""
    labels, pictures = zip(*rows, strict=True)
    titles, images, lines = ([[one[k] for one in row] for row in pictures] for k in range(3))
    return picture_grid(images, max(titles, key=len), labels, lines, size)


def empty(axes) -> None:
    """Clear axes of ticks, grid and frame, on whatever the page is."""
    axes.flat[0].figure.set_facecolor("none")
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.grid(False)
        axis.spines[:].set_visible(False)


def show_picture(axis, image, line: str | None, size: float) -> None:
    """Draw an image, and a line below it."""
    axis.imshow(to_picture(image), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    if line:
        axis.set_xlabel(line, fontsize=size, labelpad=2, color=LABEL_COLOUR)


def task_levels(task: str, x):
    """Draw one clean image (channels, 64, 64) at every level: what the levels of a task look like."""
    generator, levels = torch.Generator().manual_seed(0), range(1, paper.N_LEVELS + 2)
    row = [TASKS[task].corrupt(x.unsqueeze(0), level, generator)[0] for level in levels]
    return picture_grid([[x, *row]], ["clean", *(f"level {level}" for level in levels)])


def share_panels(given: dict, size):
    """Return a figure and a panel per title of given (title → dB per level), with the equal share of 100 images."""
    figure, axes = subplots(1, len(given), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for axis, (title, psnr) in zip(axes[0], given.items(), strict=True):
        axis.set_xticks(range(1, len(psnr) + 1), [f"{level}\n{value:g}" for level, value in enumerate(psnr, 1)])
        axis.set_xlabel("level and its PSNR (dB)")
        axis.set_title(title, fontsize=9.5)
        axis.axhline(100 / paper.N_LEVELS, color="0.4", linestyle=":", linewidth=1)
    return figure, axes[0]


def severity_axis(axis, task: str) -> None:
    """Draw the task's severities as x axis: levels as bands, numbered above, the fixated severities as dotted lines."""
    known = paper.TASKS[task]
    starts = [low for low, _ in known["levels"]] + [known["levels"][-1][1]]
    for level, (low, high) in enumerate(zip(starts, starts[1:], strict=False), 1):
        axis.axvspan(low, high, color=("0.96", "1.0")[level % 2], zorder=0, linewidth=0)
        place = {"transform": axis.get_xaxis_transform(), "ha": "center"}
        axis.text((low + high) / 2, 1.01, level, color="0.4", fontsize=8, **place)
    for name in ("easy", "hard"):
        axis.axvline(known[name], color=COLOURS[f"fixated_{name}"], linestyle=":", linewidth=1.2)
    axis.set(xlim=(starts[0], starts[-1]), xlabel=known["severity"])
    axis.grid(axis="x", visible=False)
