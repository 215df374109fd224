"""The figures, each from a DataFrame or from images, and tables with the paper's numbers beside ours."""

import re

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
from odl.judge import number

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
TITLES = {"not_restored": "Not restored"} | paper.SCHEDULES | paper.FIXATED
GREY = {"color": "0.45", "linestyle": "--", "linewidth": 1.4, "label": "not restored"}  # the damaged images themselves
KEPT = {"color": COLOURS["on_demand"], "linewidth": 0.9, "label": "on-demand, known pixels kept"}


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
    width = size * m + 0.4 * bool(labels)
    small = max(8, width)  # points: the wider a figure, the more a page reduces it
    tall = size * high / wide + small / 40 * bool(scores)
    figure, axes = plt.subplots(n, m, figsize=(width, tall * n + 0.3), squeeze=False)
    for i, row in enumerate(rows):
        for j in range(m):
            axis = axes[i, j]
            axis.set(xticks=[], yticks=[])
            axis.grid(False)
            axis.spines[:].set_visible(False)
            if j < len(row):
                axis.imshow(to_picture(row[j]), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            if scores and j < len(scores[i]) and scores[i][j] is not None:
                axis.set_xlabel(scores[i][j], fontsize=small, labelpad=2)
            if columns and i == 0:
                axis.set_title(columns[j], fontsize=small + 1)
        if labels:
            axes[i, 0].set_ylabel(labels[i], fontsize=small + 1)
    figure.tight_layout(pad=0.3)
    return figure


def picture_blocks(rows: list, titles, blocks: int = 2):
    """Rows (label, list of (title, image, line below)) under a column per title, side by side in `blocks` blocks."""
    n, ratios = -(-len(rows) // blocks), (([1] * len(titles) + [0.5]) * blocks)[:-1]
    size = (1.08 * sum(ratios), 1.36 * n + 0.3)
    small = max(8, size[0])  # points: the wider a figure, the more a page reduces it
    figure, axes = plt.subplots(n, len(ratios), figsize=size, squeeze=False, width_ratios=ratios)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.grid(False)
        axis.spines[:].set_visible(False)
        axis.set_box_aspect(1)  # also where there is no picture
    for k, (label, pictures) in enumerate(rows):
        i, first = k // blocks, k % blocks * (len(titles) + 1)
        axes[i, first].set_ylabel(label, fontsize=small, labelpad=3)
        for j, title in enumerate(titles if i == 0 else ()):
            axes[0, first + j].set_title(title, fontsize=small)
        for title, image, line in pictures:
            axis = axes[i, first + titles.index(title)]
            axis.imshow(to_picture(image), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axis.set_xlabel(line, fontsize=small, labelpad=2)
    figure.subplots_adjust(left=0.04, right=0.99, top=0.94, bottom=0.04, wspace=0.04, hspace=0.28)
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
    figure, axes = plt.subplots(1, len(names), figsize=(8.6, 2.2), sharey=True, layout="constrained")
    done = np.linspace(0, 1, 200, endpoint=False)
    for axis, name in zip(axes, names, strict=True):
        shares = [allocate(SCHEDULES[name](d, None, paper.N_LEVELS), paper.BATCH_SIZE) for d in done]
        axis.stackplot(done, np.transpose(shares), colors=LEVEL_COLOURS, labels=range(1, paper.N_LEVELS + 1))
        axis.set(xlim=(0, 1), ylim=(0, paper.BATCH_SIZE), xticks=[0, 0.5, 1])
        axis.set_title(
            TITLES[name].replace(" Anti-Curriculum", "\nanti-curriculum").replace(" Curriculum", "\ncurriculum"),
            fontsize=9,
        )
        axis.set_xlabel("share of training", fontsize=8)
    axes[0].set_ylabel("images per batch")
    figure.legend(*axes[0].get_legend_handles_labels(), title="level", loc="outside right center", fontsize=8)
    return figure


def level_names(task: str, levels=range(1, 7)) -> list[str]:
    """Tick labels: the level and its severities."""
    intervals = paper.TASKS[task]["levels"]
    return [f"{level}\n{intervals[level - 1][0]}–{intervals[level - 1][1]}" for level in levels]


def psnr_per_level(table: pd.DataFrame, task: str):
    """PSNR against level of `results.level_table`: beside what is not restored, and the schedules closer up."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    levels = list(range(1, paper.N_LEVELS + 2))
    rows = table.set_index(["scored", "schedule"])[[f"level_{level}" for level in levels]]
    for (scored, schedule), psnr in rows.iterrows():
        look = {"color": COLOURS.get(schedule), "linewidth": 2.2 if schedule == "on_demand" else 1.3}
        if (scored, schedule) == ("all pixels", "not_restored"):
            axes[0].plot(levels, psnr, **GREY)
        elif scored == "all pixels":
            for axis in axes:
                axis.plot(levels, psnr, "o-", label=TITLES[schedule], markersize=4, **look)
        elif (scored, schedule) == ("known pixels kept", "on_demand"):
            axes[0].plot(levels, psnr, **KEPT)
    for axis, title in zip(axes, ("beside the damaged images", "the schedules alone"), strict=True):
        axis.axvspan(5.5, 6.5, color="0.92", zorder=0)
        axis.set(xticks=levels, xlabel=f"level: {paper.TASKS[task]['severity']}", xlim=(0.5, 6.5))
        axis.set_xticklabels(level_names(task))
        axis.set_title(title, fontsize=10)
        axis.text(6, axis.get_ylim()[0], "not trained", ha="center", va="bottom", fontsize=8, color="0.4")
    axes[0].set_ylabel("PSNR (dB)")
    if len(table):
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def margins(table: pd.DataFrame):
    """Mean PSNR of on-demand learning minus that of every other schedule (dB), here and in the paper's Table 1."""
    rows = table.set_index("schedule")
    rivals = rows.index.drop(["not_restored", "on_demand"])
    looks = {"psnr": ("here", "o", "#D55E00"), "paper_celeba_psnr": ("paper, CelebA", "s", "#0072B2")}
    looks |= {"paper_sun397_psnr": ("paper, SUN397", "D", "#56B4E9")}
    figure, axis = plt.subplots(figsize=(8, 2.8), layout="constrained")
    for column, (label, marker, color) in looks.items():
        gap = rows.ahead[rivals] if column == "psnr" else rows.loc["on_demand", column] - rows.loc[rivals, column]
        axis.plot(gap, range(len(rivals)), marker, color=color, label=label, alpha=0.9)
    axis.axvline(0, color="0.4", linewidth=1)
    axis.set_xscale("symlog", linthresh=1)  # margins of a tenth and of ten dB in one picture
    axis.set_xticks([-1, -0.5, 0, 0.5, 1, 2, 5, 10], ["−1", "−0.5", "0", "0.5", "1", "2", "5", "10"])
    axis.xaxis.set_minor_locator(plt.NullLocator())
    axis.set_yticks(range(len(rivals)), [TITLES[name] for name in rivals])
    axis.set(ylim=(len(rivals) - 0.5, -0.5), xlabel="on-demand learning is ahead by (dB)")
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def history_frame(result) -> pd.DataFrame:
    """The history as rows (epoch, level, psnr in dB, allocation in per cent of a batch)."""
    rows = [
        (epoch, level + 1, psnr, entry["allocation"][level] if entry["allocation"] else None)
        for epoch, entry in enumerate(result.history, 1)
        for level, psnr in enumerate(entry["psnr"])
    ]
    return pd.DataFrame(rows, columns=["epoch", "level", "psnr", "allocation"])


def show_table(frame: pd.DataFrame, digits: dict | None = None):
    """A table for the page, with titles for schedules."""
    frame = frame.replace({"schedule": TITLES}) if "schedule" in frame else frame
    formats = {c: "{:.2f}" for c in frame.select_dtypes("floating")} | (digits or {})
    style = frame.style.format(formats, na_rep="–").hide(axis="index")
    return style.set_table_attributes('class="odl-table"')


def show_table1(table: pd.DataFrame, best: str | None = None):
    """Table 1 with ± standard deviations over seeds, and the verdict on every margin; bold where the judge decides.

    What only tasks with missing pixels have stands only there.

    best: the schedule that leads all others by the rule, None where none does.
    """

    def pm(value, error):
        return "–" if pd.isna(value) else f"{value:.2f}" + ("" if pd.isna(error) else f" ± {error:.2f}")

    def margin(row):
        known = "" if pd.isna(row.low) else f" [{number(row.low)}, {number(row.high)}]"
        return "–" if pd.isna(row.ahead) else f"{number(row.ahead)}{known}"

    shown = pd.DataFrame(
        {
            ("", "schedule"): table.schedule.map(TITLES),
            ("ours", "seeds"): table.seeds,
            ("ours", "L2 (‰)"): [pm(*row) for row in zip(table.l2, table.l2_sd, strict=True)],
            ("ours", "PSNR (dB)"): [pm(*row) for row in zip(table.psnr, table.psnr_sd, strict=True)],
            ("ours", "known pixels kept"): table.psnr_kept,
            ("ours", "missing pixels"): table.psnr_hole,
            ("ours", "on-demand − it (dB)"): [margin(row) for row in table.itertuples()],
            ("ours", "verdict"): table.verdict,
        }
        | {
            (f"paper, {title}", unit): table[f"paper_{name}_{key}"]
            for name, title in (("celeba", "CelebA"), ("sun397", "SUN397"))
            for key, unit in (("l2", "L2 (‰)"), ("psnr", "PSNR (dB)"))
        }
    )
    shown = shown.drop(columns=[c for c in list(shown)[4:6] if shown[c].isna().all()])
    style = shown.style.format(precision=2, na_rep="–").hide(axis="index")
    bold = pd.DataFrame("", index=shown.index, columns=shown.columns)
    bold.loc[table.schedule == best, [("ours", "PSNR (dB)")]] = "font-weight: bold"
    return style.apply(lambda _: bold, axis=None).set_table_attributes('class="odl-table odl-numbers"')


def show_papers_test(table: pd.DataFrame):
    """The paper's test, a row per seed: `measures.papers_test`."""
    names = {"ahead": "on-demand − it (dB)", "p": "p"}
    return show_table(table.rename(columns=names), digits={names["ahead"]: number, "p": "{:.0e}"})


def read_photograph(path, longest: int) -> np.ndarray:
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
    return picture_grid(rows, columns, list(masks), scores, size=2.4)


def psnr_inside(x_hat, x, mask) -> float:
    """PSNR in dB over the pixels of the mask."""
    return peak_signal_noise_ratio(x[mask], x_hat[mask], data_range=1)


# Fixation


def severity_axis(axis, task: str) -> None:
    """The task's severities as x axis: levels as bands, numbered above, the fixated severities as dotted lines."""
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


def training_ranges(task: str):
    """Which severities each model sees in training: two points, and everything up to level 5."""
    figure, axis = plt.subplots(figsize=(7, 1.5), layout="constrained")
    severity_axis(axis, task)
    names = ("fixated_easy", "fixated_hard", "on_demand")
    for row, name in enumerate(names[:2]):
        axis.plot(paper.TASKS[task][name.removeprefix("fixated_")], row, "o", color=COLOURS[name], markersize=8)
    last = paper.TASKS[task]["levels"][paper.N_LEVELS - 1][1]
    axis.plot([paper.TASKS[task]["levels"][0][0], last], [2, 2], color=COLOURS["on_demand"], linewidth=7)
    axis.set(yticks=range(3), ylim=(2.6, -0.6))
    axis.set_yticklabels([TITLES[name] for name in names])
    return figure


def fixated_severities(task: str, x):
    """Clean images (n, channels, 64, 64) and the two severities at which fixated models are trained."""
    known, generator = paper.TASKS[task], torch.Generator().manual_seed(0)
    rows = {"clean": x}
    for name in ("easy", "hard"):
        y = TASKS[task].corrupt_between(x, known[name], known[name], generator, centred=True)
        rows[f"{name}: {paper.severity_text(task, name)}"] = y
    return picture_grid(list(rows.values()), labels=list(rows))


ROOM = 6  # dB above and below the networks for what is not restored, which reaches 100 dB where nothing is damaged


def limits(frame: pd.DataFrame) -> tuple[float, float]:
    """The lowest and the highest dB of the picture of a spectrum."""
    frame = frame[frame.severity > 0]
    (low, *lower), (high, *higher) = (
        list(getattr(frame[["psnr", "psnr_input", "psnr_kept"]], end)()) for end in ("min", "max")
    )
    return max(np.nanmin([low, *lower]), low - ROOM) - 0.5, min(np.nanmax([high, *higher]), high + ROOM) + 0.5


def draw_spectrum(axis, frame: pd.DataFrame, task: str) -> None:
    """PSNR against severity, a line per model; means per level (`source` levels) as points.

    Behind them what is not restored, and on-demand's output with known pixels kept; where these leave the picture at
    its top or its bottom, they are cut off.
    """
    severity_axis(axis, task)
    parts, ours = [part for _, part in frame.groupby("schedule")], frame[frame.schedule == "on_demand"]
    if len(damaged := max(parts, key=len, default=frame)) > 2:  # the same for all, but some are measured more finely
        axis.plot(damaged.severity, damaged.psnr_input, **GREY)
    if ours.psnr_kept.notna().any():
        axis.plot(ours.severity, ours.psnr_kept, **KEPT)
    for schedule, part in frame.groupby("schedule", sort=False):
        look = {"color": COLOURS[schedule], "linewidth": 2.2 if schedule == "on_demand" else 1.5, "markersize": 4}
        marker = "o" if (part.source == "levels").any() else None
        line = "-" if len(part) > 2 else "none"  # two points of a spike are no curve
        axis.plot(part.severity, part.psnr, marker=marker, linestyle=line, label=TITLES[schedule], **look)
    if len(frame):
        axis.set_ylim(limits(frame))


def spectrum(frame: pd.DataFrame, task: str):
    """Fig. 4: PSNR over the whole spectrum; for inpainting with squares at random places and in the centre."""
    parts = {"square at a random place": False, "square in the centre": True} if task == "inpaint" else {"": False}
    figure, axes = plt.subplots(
        1, len(parts), figsize=(3.2 + 3.6 * len(parts), 3.8), sharey=True, squeeze=False, layout="constrained"
    )
    for axis, (title, centred) in zip(axes[0], parts.items(), strict=True):
        draw_spectrum(axis, frame[frame.centred == centred], task)
        axis.set_title(title, fontsize=10, pad=16)
    axes[0, 0].set_ylabel("PSNR (dB)")
    if len(parts) == 2 and len(frame):
        axes[0, 0].set_ylim(limits(frame))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


def spectra(frames: dict):
    """One small spectrum per task; frames: task → frame of `fixation.spectrum`, empty where nothing is measured."""
    figure, axes = plt.subplots(2, len(frames) // 2, figsize=(8.6, 6), layout="constrained")
    for axis, (task, frame) in zip(axes.flat, frames.items(), strict=True):
        draw_spectrum(axis, frame[frame.centred == False], task)  # noqa: E712
        axis.set_title(paper.TASKS[task]["title"], fontsize=10, pad=16)
        if frame.empty:
            axis.set_yticks([])
            axis.text(0.5, 0.5, "not measured yet", transform=axis.transAxes, ha="center", color="0.4")
    figure.supylabel("PSNR (dB)", fontsize=10)
    entries = {t: h for axis in axes.flat for h, t in zip(*axis.get_legend_handles_labels(), strict=True)}
    if entries:
        figure.legend(entries.values(), entries, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def holes(frame: pd.DataFrame, task: str):
    """PSNR inside the missing pixels alone, over the whole spectrum."""
    gap = frame.psnr_input - frame.psnr_kept  # of the image, and of its hole alike: the rest is known
    inside = frame.assign(psnr=frame.psnr_hole, psnr_input=frame.psnr_hole + gap, psnr_kept=np.nan)
    figure = spectrum(inside, task)
    figure.axes[0].set_ylabel("PSNR inside the missing pixels (dB)")
    return figure


def show_levels(table: pd.DataFrame, task: str):
    """PSNR (dB) per level of `results.level_table`; what is scored is named where there is a choice."""
    known = paper.TASKS[task]
    table = table.drop(columns="scored") if table.scored.nunique() < 2 else table
    names = {f"level_{i}": f"{i}: {low}–{high}" for i, (low, high) in enumerate(known["levels"], 1)}
    names |= {"mean": "mean 1–6"} | {name: f"only {paper.severity_text(task, name)}" for name in ("easy", "hard")}
    return show_table(table.rename(columns=names))


# Allocation


def shares():
    """Eq. 3 before any training: the images per level that given validation PSNRs would get."""
    from odl.schedules import allocate, on_demand

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


def allocation(result):
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


def allocations(runs: dict):
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


# Qualitative


def quintuples(rows: list, blocks: int = 2):
    """Fig. 5: `picture_blocks` of the original, the corrupted image and three restorations."""
    return picture_blocks(rows, ("original", "corrupted", "rigid joint", "fixated", "on-demand"), blocks)


# Extra data


def show_extra_data(table: pd.DataFrame):
    """The extra-data test; ± is a standard deviation over seeds."""
    names = {"run": "run", "train_images": "images", "seeds": "seeds", "l2": "L2 (‰)"}
    names |= {"psnr": "PSNR (dB)", "psnr_sd": "± (dB)"}
    return show_table(table[list(names)].rename(columns=names), {"images": "{:,}"})


def training_curves(measured: dict, axis=None):
    """Mean validation PSNR over levels against epoch; measured: name → list of results, a thin line per seed."""
    axis = axis or plt.subplots(figsize=(6.5, 3.4), layout="constrained")[1]
    for k, (name, runs) in enumerate(measured.items()):
        for i, result in enumerate(runs):
            curve = history_frame(result).groupby("epoch").psnr.mean()
            look = {"color": ("#D55E00", "#56B4E9", "#0072B2")[k], "linestyle": ("-", "--", ":")[k], "linewidth": 2}
            axis.plot(curve, label=None if i else name, **look)
    axis.set(xlabel="epoch", ylabel="validation PSNR (dB)")
    axis.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
    if measured:
        axis.legend(fontsize=9, loc="lower right")
    return axis.figure


def say(text: str):
    """A sentence made from measured numbers, as text on the page, with a minus where a number has one."""
    from IPython.display import Markdown

    return Markdown(re.sub(r"(?<=[\s(])-(?=\d)", "−", text))
