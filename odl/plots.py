"""The figures, each from a DataFrame or from images, and tables with the paper's numbers beside ours."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from skimage import img_as_float32
from skimage.metrics import peak_signal_noise_ratio
from skimage.transform import resize
from tqdm.auto import tqdm

from odl import paper
from odl.corruptions import FILL, TASKS
from odl.data import read_image

plt.rcParams |= {
    "figure.facecolor": "white",
    "figure.dpi": 110,
    "savefig.bbox": "tight",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}

# Okabe–Ito colours: told apart by readers with any colour vision.
COLOURS = {
    "on_demand": "#D55E00",
    "rigid_joint": "#0072B2",
    "cumulative_curriculum": "#009E73",
    "cumulative_anti_curriculum": "#56B4E9",
    "staged_curriculum": "#CC79A7",
    "staged_anti_curriculum": "#E69F00",
    "hard_mining": "#555555",
    "fixated_easy": "#009E73",
    "fixated_hard": "#0072B2",
}
LEVEL_COLOURS = plt.get_cmap("viridis")(np.linspace(0.9, 0.05, paper.N_LEVELS + 1))  # light: easy, dark: hard
TITLES = paper.SCHEDULES | paper.FIXATED


def to_picture(x) -> np.ndarray:
    """One image (channels, H, W) in [-1, 1], or (H, W[, 3]) in [0, 1], as something imshow takes."""
    if torch.is_tensor(x):
        x = ((x.detach().float().cpu().clamp(-1, 1) + 1) / 2).permute(1, 2, 0).numpy()
    x = np.asarray(x)
    return x[..., 0] if x.ndim == 3 and x.shape[2] == 1 else x


def picture_grid(rows, columns=None, labels=None, scores=None, size: float = 1.25):
    """A grid of images: `rows` is a list of lists; optional titles per column, labels per row, a line per image."""
    n, m = len(rows), max(len(row) for row in rows)
    high, wide = to_picture(rows[0][0]).shape[:2]
    tall = size * high / wide + 0.2 * bool(scores)
    figure, axes = plt.subplots(n, m, figsize=(size * m + 0.4 * bool(labels), tall * n + 0.3), squeeze=False)
    for i, row in enumerate(rows):
        for j in range(m):
            axis = axes[i, j]
            axis.set(xticks=[], yticks=[])
            axis.grid(False)
            axis.spines[:].set_visible(False)
            if j < len(row):
                axis.imshow(to_picture(row[j]), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            if scores and j < len(scores[i]) and scores[i][j] is not None:
                axis.set_xlabel(scores[i][j], fontsize=8, labelpad=2)
            if columns and i == 0:
                axis.set_title(columns[j], fontsize=9)
        if labels:
            axes[i, 0].set_ylabel(labels[i], fontsize=9)
    figure.tight_layout(pad=0.3)
    return figure


def task_levels(task: str, x, generator=None, levels=range(1, 7)):
    """One clean image (3, 64, 64) at every level: what the sub-tasks of a task look like."""
    generator = generator or torch.Generator().manual_seed(0)
    row = [TASKS[task].corrupt(x.unsqueeze(0), level, generator)[0] for level in levels]
    return picture_grid([[x, *row]], ["clean", *(f"level {level}" for level in levels)])


def schedules():
    """Images per level in a batch over training, for the schedules that are fixed beforehand."""
    from odl.schedules import SCHEDULES, allocate

    names = [name for name in paper.SCHEDULES if name not in ("hard_mining", "on_demand")]
    figure, axes = plt.subplots(1, len(names), figsize=(11, 2.2), sharey=True, layout="constrained")
    done = np.linspace(0, 1, 200, endpoint=False)
    for axis, name in zip(axes, names, strict=True):
        shares = [allocate(SCHEDULES[name](d, None, paper.N_LEVELS), paper.BATCH_SIZE) for d in done]
        axis.stackplot(done, np.transpose(shares), colors=LEVEL_COLOURS, labels=range(1, paper.N_LEVELS + 1))
        axis.set(xlim=(0, 1), ylim=(0, paper.BATCH_SIZE), xticks=[0, 0.5, 1])
        axis.set_title(TITLES[name].replace(" Curriculum", "\ncurriculum").replace(" Anti-", "\nanti-"), fontsize=9)
        axis.set_xlabel("share of training", fontsize=8)
    axes[0].set_ylabel("images per batch")
    figure.legend(*axes[0].get_legend_handles_labels(), title="level", loc="outside right center", fontsize=8)
    return figure


def level_names(task: str, levels=range(1, 7)) -> list[str]:
    """Tick labels: the level and its severities."""
    intervals = paper.TASKS[task]["levels"]
    return [f"{level}\n{intervals[level - 1][0]}–{intervals[level - 1][1]}" for level in levels]


def psnr_per_level(results, task: str, axis=None):
    """PSNR against level, a line per schedule, means over seeds and trials; the extra-credit level is shaded."""
    axis = axis or plt.subplots(figsize=(6.5, 3.6), layout="constrained")[1]
    levels = list(range(1, paper.N_LEVELS + 2))
    for schedule in dict.fromkeys(result.experiment["schedule"] for result in results):
        frames = [r.evaluation for r in results if r.experiment["schedule"] == schedule]
        mean = pd.concat(frames).groupby("level").psnr.mean().reindex(map(str, levels))
        width = 2.2 if schedule == "on_demand" else 1.3
        axis.plot(levels, mean, "o-", color=COLOURS[schedule], label=TITLES[schedule], linewidth=width, markersize=4)
    axis.axvspan(5.5, 6.5, color="0.92", zorder=0)
    axis.set(xticks=levels, xlabel=f"level: {paper.TASKS[task]['severity']}", ylabel="PSNR (dB)", xlim=(0.5, 6.5))
    axis.set_xticklabels(level_names(task))
    axis.text(6, axis.get_ylim()[0], "not trained", ha="center", va="bottom", fontsize=8, color="0.4")
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return axis.figure


def history_frame(result) -> pd.DataFrame:
    """The history as rows (epoch, level, psnr, allocation)."""
    rows = [
        (epoch, level + 1, psnr, entry["allocation"][level] if entry["allocation"] else None)
        for epoch, entry in enumerate(result.history, 1)
        for level, psnr in enumerate(entry["psnr"])
    ]
    return pd.DataFrame(rows, columns=["epoch", "level", "psnr", "allocation"])


def show_table(frame: pd.DataFrame, caption: str = "", best: dict | None = None, digits: dict | None = None):
    """A table for the page: titles for schedules, the best of a column bold. `best`: column → "min" or "max"."""
    frame = frame.replace({"schedule": TITLES}) if "schedule" in frame else frame
    formats = {c: "{:.2f}" for c in frame.select_dtypes("number")} | (digits or {})
    style = frame.style.format(formats, na_rep="–").hide(axis="index").set_caption(caption)
    for column, how in (best or {}).items():
        extreme = getattr(frame[column], how)()
        style = style.map(lambda v, e=extreme: "font-weight: bold" if v == e else "", subset=[column])
    return style.set_table_attributes('class="odl-table"')


def show_table1(table: pd.DataFrame, caption: str = ""):
    """Table 1 with ± standard errors, the paper's columns under their data set."""

    def pm(value, error, digits):
        return "–" if pd.isna(value) else f"{value:.{digits}f} ± {error:.1g}"

    best = table.psnr.max()
    shown = pd.DataFrame(
        {
            ("", "schedule"): table.schedule.map(TITLES),
            ("ours", "L2 (‰)"): [pm(*row, 2) for row in zip(table.l2, table.l2_se, strict=True)],
            ("ours", "PSNR (dB)"): [pm(*row, 3) for row in zip(table.psnr, table.psnr_se, strict=True)],
            ("ours", "p"): ["–" if pd.isna(p) else f"{p:.0e}" for p in table.p_value],
        }
        | {
            (f"paper, {title}", unit): table[f"paper_{name}_{key}"]
            for name, title in (("celeba", "CelebA"), ("sun397", "SUN397"))
            for key, unit in (("l2", "L2 (‰)"), ("psnr", "PSNR (dB)"))
        }
    )
    style = shown.style.format(precision=2).hide(axis="index").set_caption(caption)
    bold = pd.DataFrame("", index=shown.index, columns=shown.columns)
    bold.loc[table.psnr == best, [("ours", "PSNR (dB)")]] = "font-weight: bold"
    for name in ("CelebA", "SUN397"):
        column = (f"paper, {name}", "PSNR (dB)")
        bold.loc[shown[column] == shown[column].max(), [column]] = "font-weight: bold"
    return style.apply(lambda _: bold, axis=None).set_table_attributes('class="odl-table"')


def read_photograph(path, longest: int = 400) -> np.ndarray:
    """An image file as (height, width, 3) float in [0, 1], its longer side reduced to at most `longest` pixels."""
    image = read_image(path, 0)
    shrink = longest / max(image.shape[:2])
    if shrink < 1:
        image = resize(image, [round(side * shrink) for side in image.shape[:2]], anti_aliasing=True)
    return img_as_float32(image)


def progress_over(items: dict, function) -> dict:
    """`function` of each value, with a progress bar that names the keys."""
    with tqdm(items.items()) as bar:
        answers = {}
        for name, value in bar:
            bar.set_description_str(name)
            answers[name] = function(value)
    return answers


def repairs(photograph, masks, repaired):
    """Photographs as damaged and as repaired, with the PSNR inside the mask."""
    rows, scores = [], []
    for name, mask in masks.items():
        damaged = np.where(mask[..., None], np.float32(FILL) / 255, photograph)
        shown = [damaged] + ([repaired[name]] if repaired[name] is not None else [])
        rows.append([photograph, *shown])
        scores.append([None] + [f"{psnr_inside(x, photograph, mask):.1f} dB inside" for x in shown])
    columns = ["original", "damaged", "repaired"][: len(rows[0])]
    return picture_grid(rows, columns, list(masks), scores, size=2.6)


def psnr_inside(x_hat, x, mask) -> float:
    """PSNR in dB over the pixels of the mask."""
    return peak_signal_noise_ratio(x[mask], x_hat[mask], data_range=1)


def say(text: str):
    """A sentence made from measured numbers, as text on the page."""
    from IPython.display import Markdown

    return Markdown(text)
