"""The fixation problem: PSNR over the whole spectrum of severities (Fig. 2 and 4, Sec. 4 and 6.4, Supp. C and D)."""

import hashlib
import textwrap

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from companion import judge, published
from companion.data import packs, sets
from companion.judge import Decision, Evidence, compare, plain
from companion.show import figures, sentences, tables
from companion.show.figures import COLOURS, KEPT_LINE, MAX_DB_BEYOND, NOT_RESTORED_LINE, subplots, title_of
from companion.show.pictures import restored_by
from companion.training import results
from odl import crops, paper
from odl.corruptions import TASKS
from odl.evaluation import images_of, psnr, scored, task_of
from odl.experiment import Experiment

SPECTRUM = {  # severities at which a curve is measured, the fixated ones and their neighbours among them
    "inpaint": (*range(1, 9), *range(10, 29, 2), *range(29, 37)),
    "interpolate": tuple(np.arange(0, 91, 2.5)),
    "deblur": tuple(np.arange(0, 6.1, 0.25)),
    "denoise": tuple(np.arange(0, 121, 5)),
}
IMAGES_A_POINT = 64  # enough, because every point and every model sees the same crops
PSNRS = ["psnr", "psnr_input", "psnr_kept", "psnr_hole"]  # of what, as in an evaluation
COMPARED = "levels 1–6", "own severity"  # of a comparison
SCORES = ["output", "input", "kept", "hole"]  # the same, as `evaluation.scored` has it
COLUMNS = ["run", "schedule", "severity", "centred", *PSNRS]


# The curves of Figure 4


def spectrum(experiments: list[Experiment], device="cpu") -> pd.DataFrame:
    """Return PSNR against severity of every measured run: rows with `COLUMNS`, all PSNRs in dB.

    Loaded where it is stored, else measured with the networks and stored; a line says where the weights or the
    photographs for that are not here.
    """
    first = experiments[0]
    key = ("fixation_spectrum", first.profile, first.dataset, first.task, first.network)
    path, frames = tables.table_path(*key), [pd.DataFrame(columns=COLUMNS)]
    stored = pd.read_csv(path) if path.exists() else frames[0]
    for experiment in filter(results.load_result, experiments):
        sha256 = hashlib.sha256(results.path_of(experiment).read_bytes()).hexdigest()  # of this very measurement
        known = {"run": sha256[:12], "schedule": experiment.schedule}
        rows = stored[stored.run == known["run"]]
        try:
            if rows.empty:
                rows = measure(experiment, results.load_network(experiment).to(device), device).assign(**known)
            frames.append(rows[COLUMNS])
        except (FileNotFoundError, sets.DataError) as error:
            print(f"A curve is left out: {error}")
    frame = pd.concat(frames[1:] or frames, ignore_index=True)
    if {*stored.schedule} <= {*frame.schedule}:  # where a network is not here, its curve stays in the table
        tables.write_table(frame, *key)
    return frame


def measure(experiment: Experiment, network, device) -> pd.DataFrame:
    """Return rows severity, centred, *PSNRS; both blur widths equal; squares at random places, then centred ones."""
    task = task_of(experiment)
    n = min(experiment.test_images, IMAGES_A_POINT)
    x = images_of(experiment, packs.load(experiment.dataset, "test"), n, "test").to(device)
    places, levels = (False, True) if task.name == "inpaint" else (False,), paper.TASKS[task.name]["levels"]
    severities = SPECTRUM.get(task.name, np.linspace(levels[0][0], levels[-1][1], 25))
    points = [(severity, centred) for centred in places for severity in severities]
    rows = []
    for severity, centred in tqdm(points, desc=f"spectrum of {experiment.schedule}", leave=False):
        generator = torch.Generator(device).manual_seed(crops.seed_of("spectrum", severity))
        y = task.corrupt_between(x, severity, severity, generator, centred)
        x_hat, _ = restored_by({"x_hat": network}, x, y)["x_hat"]
        decibels = {name: psnr(error).nanmean().item() for name, error in scored(task, x_hat, x, y).items()}
        rows.append((float(severity), centred, *(decibels.get(name, np.nan) for name in SCORES)))
    return pd.DataFrame(rows, columns=["severity", "centred", *PSNRS]).round(dict.fromkeys(PSNRS, 3))


# Figures


def plot_spectrum(frame: pd.DataFrame, task: str):
    """Draw Fig. 4, PSNR over the whole spectrum; for inpainting with squares at random places and in the centre."""
    parts = {"square at a random place": False, "square in the centre": True} if task == "inpaint" else {"": False}
    size = (3.2 + 3.6 * len(parts), 3.8)
    figure, axes = subplots(1, len(parts), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for axis, (title, centred) in zip(axes[0], parts.items(), strict=True):
        draw_spectrum(axis, frame[frame.centred == centred], task)
        axis.set_title(title, fontsize=10, pad=16)
    axes[0, 0].set_ylabel("PSNR (dB)")
    if len(frame):
        axes[0, 0].set_ylim(limits(frame))  # of both
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


def draw_spectrum(axis, frame: pd.DataFrame, task: str) -> None:
    """Draw PSNR against severity, a line per model.

    Behind them what is not restored, and on-demand's output with known pixels kept; where these leave the picture at
    its top or its bottom, they are cut off.
    """
    figures.severity_axis(axis, task)
    if frame.empty:
        return
    damaged, ours = frame.drop_duplicates("severity"), frame[frame.schedule == "on_demand"]
    axis.plot(damaged.severity, damaged.psnr_input, **NOT_RESTORED_LINE)  # the same for all models
    if ours.psnr_kept.notna().any():
        axis.plot(ours.severity, ours.psnr_kept, **KEPT_LINE)
    dashes = {"fixated_easy": "-.", "fixated_hard": (0, (6, 2))}  # beside the colours, for every eye
    for schedule, part in frame.groupby("schedule", sort=False):
        look = {"color": COLOURS.get(schedule), "linewidth": 2.2 if schedule == "on_demand" else 1.5}
        look["linestyle"] = dashes.get(schedule, "-")
        axis.plot(part.severity, part.psnr, label=title_of(schedule), **look)
    axis.set_ylim(limits(frame))


def limits(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the lowest and the highest dB of the picture of a spectrum."""
    drawn = frame.loc[frame.severity > 0, ["psnr", "psnr_input", "psnr_kept"]]
    low, high = drawn.psnr.min() - MAX_DB_BEYOND, drawn.psnr.max() + MAX_DB_BEYOND
    return max(drawn.min().min(), low) - 0.5, min(drawn.max().max(), high) + 0.5


def plot_holes(frame: pd.DataFrame, task: str):
    """Draw PSNR inside the missing pixels alone, over the whole spectrum."""
    inside = frame.assign(psnr=frame.psnr_hole, psnr_input=tables.scores(frame).hole_input, psnr_kept=np.nan)
    figure = plot_spectrum(inside, task)
    figure.axes[0].set_ylabel("PSNR inside the missing pixels (dB)")
    return figure


def plot_spectra(frames: dict):
    """Draw one small spectrum per task; frames: task → frame of `spectrum`, empty where nothing is measured."""
    figure, axes = subplots(2, -(-len(frames) // 2), figsize=(8.6, 6), layout="constrained")
    for axis, (task, frame) in zip(axes.flat, frames.items(), strict=False):
        draw_spectrum(axis, frame[frame.centred == False], task)  # noqa: E712
        axis.set_title(paper.TASKS[task]["title"], fontsize=10, pad=16)
        if frame.empty:
            axis.set_yticks([])
            axis.text(0.5, 0.5, judge.MISSING, transform=axis.transAxes, ha="center", color="0.4")
    figure.supylabel("PSNR (dB)", fontsize=10)
    entries = {t: h for axis in axes.flat for h, t in zip(*axis.get_legend_handles_labels(), strict=True)}
    if entries:
        figure.legend(entries.values(), entries, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def examples(task: str, networks: dict, x, damage: dict) -> list:
    """Return Fig. 2 for `figures.picture_rows`: images x (n, channels, 64, 64), damaged and restored.

    damage: title → (severity, whether centred).
    """
    rows = {}
    for k, image in enumerate(x.split(1)):
        for j, (title, (severity, centred)) in enumerate(damage.items()):
            generator = torch.Generator().manual_seed(10 * k + j)
            y = TASKS[task].corrupt_between(image, severity, severity, generator, centred)
            for name, (picture, score) in restored_by(networks, image, y, keep=task in paper.MASKED).items():
                label = textwrap.fill(title_of(name), 12)
                rows.setdefault(label, []).append((title, picture[0], f"{score.item():.1f} dB"))
    return list(rows.items())


# Sentences and judged claims


def describe_fixation(results, task: str, joint=()) -> str:
    """Say each fixated model against the on-demand network: over the spectrum, and at its own severity.

    `joint` are the runs of rigid joint learning, which stands in the on-demand network's place for comparison.
    """
    evidence, where = Evidence(judge.keyed(results)), ", inside the hole" if task == "inpaint" else ""
    lines = {}
    for own in ("easy", "hard"):
        title, severity = published.FIXATED[f"fixated_{own}"], sentences.severity_text(task, own)
        labels = f"On-demand − {title}, levels 1–6{where}", f"{title} − on-demand at {severity}{where}"
        lines |= {label: compare(evidence, {"": pair}) for label, pair in zip(labels, contests(task, own), strict=True)}
    return sentences.page(lines, results, compare_with_equal_shares(Evidence(judge.keyed([*results, *joint]))))


def judge_fixation(evidence: Evidence, schedule: str = "on_demand") -> Decision:
    """Judge both fixated models of every task: behind over the spectrum, and not behind at their own severity.

    Not behind is at most `judge.EQUIVALENCE` behind.
    """
    pairs, bounds = {}, {}
    for task in paper.AS_SHIPPED:
        for own in ("easy", "hard"):
            over, there = contests(task, own, schedule)
            name = f"{plain(task)}, fixated on {own}, "
            pairs |= {f"{name}{COMPARED[0]}": over, f"{name}{COMPARED[1]}": there}
            bounds[f"{name}{COMPARED[1]}"] = -judge.EQUIVALENCE
    return compare(evidence, pairs, harm=True, beyond=bounds)


def judge_hard_model_on_mild_damage(evidence: Evidence) -> Decision:
    """Judge the model fixated on hard damage against itself: at its own severity, and on level 1.

    On the tasks of which the paper shows that model.
    """
    parts = {}
    for task in paper.AS_SHIPPED:
        if published.figure2(task) == "fixated_hard":
            *_, (own,), column = contests(task, "hard")[1]
            runs = [run for (run,) in judge.paired(evidence.runs, task, "fixated_hard")]
            parts[plain(task)] = [judge.score(run, [own], column) - judge.score(run, ["1"], column) for run in runs]
    return judge.decide_claim(parts)


def margins_table(evidence: Evidence) -> pd.DataFrame:
    """Return every comparison of `judge_fixation` with rigid joint learning in the place of on-demand learning, too.

    Columns comparison, on_demand and rigid_joint: mean margins (dB) in favour of the claim, over seeds that all three
    networks have. Whether feedback has a part in the cure of fixation shows in how far the two are apart.
    """
    rows = []
    for task in paper.AS_SHIPPED:
        for own in ("easy", "hard"):
            trios = judge.paired(evidence.runs, task, "on_demand", "rigid_joint", f"fixated_{own}")
            for what, sign, (*_, levels, column) in zip(COMPARED, (1, -1), contests(task, own), strict=True):
                for trio in trios:
                    scores = np.array([judge.score(run, levels, column) for run in trio])
                    rows.append((f"{plain(task)}, fixated on {own}, {what}", *sign * (scores[:2] - scores[2])))
    table = pd.DataFrame(rows, columns=["comparison", "on_demand", "rigid_joint"])
    return table.groupby("comparison", sort=False).mean().reset_index()


def compare_with_equal_shares(evidence: Evidence) -> str:
    """Say how far rigid joint learning's margins are from on-demand learning's, and where it does harm.

    Empty where either is not measured.
    """
    margins = margins_table(evidence)
    if margins.empty:
        return ""
    apart = (margins.on_demand - margins.rigid_joint).abs().max()
    below = levels_below(evidence.runs, "rigid_joint").items()
    named = "; ".join(f"{task} on level{'s' * (len(on) > 1)} {', '.join(on)}" for task, on in below)
    harm = f" It has a lower PSNR than the damaged images in {named}." if named else ""
    return (
        f"Rigid joint learning, which trains on the same levels without feedback, has the same mean margins over the "
        f"fixated models within {apart:.2f} dB.{harm}"
    )


def levels_below(runs: dict, schedule: str) -> dict[str, list[str]]:
    """Return plain name of a task → levels on which a schedule is below the damaged images, in the mean over seeds."""
    found = {}
    for task in paper.AS_SHIPPED:
        own = [run for run in judge.runs_of(runs, schedule, [task]) if "psnr_input" in run.evaluation]
        gain = {i: [judge.gained(run, [i]) for run in own] for i in judge.LEVELS}
        found[plain(task)] = [level for level in judge.LEVELS if own and np.mean(gain[level]) < 0]
    return {task: levels for task, levels in found.items() if levels}


def contests(task: str, own: str, schedule="on_demand", network="") -> tuple[tuple, tuple]:
    """Return a schedule minus a fixated model over the spectrum, and the model minus it at its own severity.

    Both are pairs of `compare`, in the paper's network or in another, as `, unet`. Scored inside the hole for
    inpainting: elsewhere an autoencoder's copying counts.
    """
    one, fixated, column = schedule + network, f"fixated_{own}{network}", "psnr_hole" if task == "inpaint" else "psnr"
    return (task, one, fixated, judge.LEVELS, column), (task, fixated, one, [own], column)
