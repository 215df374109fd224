"""What is measured of every claim of the paper: functions of `Measured` that answer a `Verdict`."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from odl import blocks, denoising, paper, results
from odl.comparators import DENOISERS, INPAINTERS
from odl.evaluate import overall, paired_p_value
from odl.judge import (
    LEVELS,
    MISSING,
    WITHIN,
    Verdict,
    arithmetic,
    below_input,
    estimate,
    gaps,
    judge,
    paired,
    score,
    signed,
)

RIVALS = tuple(schedule for schedule in paper.SCHEDULES if schedule != "on_demand")
JOINT = ("rigid_joint", "cumulative_curriculum", "cumulative_anti_curriculum")
CENTRE, RANDOM = INPAINTERS
TITLES = {name: entry["title"] for name, entry in (DENOISERS | INPAINTERS).items()}
OURS_HALF, RIGID_HALF, RIGID_ALL = results.EXTRA_DATA
SHARP = "on_demand, k = 4"  # Eq. 3 with 1/P^4: about four times the dose
CLASSICAL, LEARNED = ("bm3d", "ksvd", "wnnm"), ("mlp", "csf", "tnrd")
CURVES = ("on_demand", "bm3d", *((system, denoising.FIXED) for system in CLASSICAL), *LEARNED)
NEAR = 2 * 0.14  # dB: twice the paper's 30.54 − 30.40
FAR = 3  # dB: twice the squared error


def no_rows(*columns: str):
    return field(default_factory=lambda: pd.DataFrame(columns=list(columns)))


@dataclass(frozen=True)
class Measured:
    """What is on disk for one profile and data set; everything may be empty."""

    runs: dict = field(default_factory=dict)  # (task, schedule, seed) → Result; of Table 2 the task is "blocks"
    table3: pd.DataFrame = no_rows("image", "system", "clipped", "psnr")  # denoising.table3 of our two systems
    spectrum: pd.DataFrame = no_rows("system", "told", "sigma", "psnr")  # denoising.spectrum of `CURVES`


def plain(task: str) -> str:
    """`Image inpainting` → `inpainting`."""
    return paper.TASKS[task]["title"].split()[-1].lower()


def compare(m: Measured, pairs: dict, **how) -> Verdict:
    """The judge on differences of schedules; pairs: label → (task, one, other) and perhaps levels and column."""
    below = [
        label for label, pair in pairs.items() if below_input(m.runs, *pair[:3], column=(*pair, "psnr", "psnr")[4])
    ]
    return judge({label: gaps(m.runs, *pair) for label, pair in pairs.items()}, below=below, **how)


def not_yet(m: Measured) -> Verdict:
    """Of what no results file holds anything."""
    return Verdict(MISSING)


# Fixation (Sec. 6.4)


def fixation(m: Measured, tasks=tuple(paper.TASKS)) -> Verdict:
    """Both fixated models of every task: behind the all-rounder over the spectrum, and ahead at their own severity."""
    pairs = {}
    for task in tasks:
        for name in ("easy", "hard"):
            fixated, column, label = f"fixated_{name}", hole_or_all(task), f"{plain(task)} {name}"
            pairs[f"{label}, levels 1–6"] = (task, "on_demand", fixated, LEVELS, column)
            pairs[f"{label}, own severity"] = (task, fixated, "on_demand", [name], column)
    return compare(m, pairs)


def hole_or_all(task: str) -> str:
    """The column that fixation is scored by: inside the hole for inpainting, else an autoencoder's copying counts."""
    return "psnr_hole" if task == "inpaint" else "psnr"


def random_places(m: Measured) -> Verdict:
    """The all-rounder against fixated inpainters on squares of about their own size, anywhere."""
    own = {"easy": "1", "hard": "6"}  # 5×5 and 32×32 lie in these levels
    return compare(m, {k: ("inpaint", "on_demand", f"fixated_{k}", [v], "psnr_hole") for k, v in own.items()})


# Schedules (Table 1, Sec. 6.6)


def best_of_seven(m: Measured, task: str) -> Verdict:
    """On-demand against each of the six others."""
    return compare(m, {paper.SCHEDULES[rival]: (task, "on_demand", rival) for rival in RIVALS})


def level_6(m: Measured) -> Verdict:
    """On-demand against each of the six others on the level that nobody trained on."""
    pairs = {(task, rival): (task, "on_demand", rival, ["6"]) for task in paper.TASKS for rival in RIVALS}
    return compare(m, {f"{plain(t)}, {paper.SCHEDULES[r]}": pair for (t, r), pair in pairs.items()})


def collapse(m: Measured) -> Verdict:
    """The staged curriculum on deblurring: below its input at level 1, or more than 3 dB behind rigid joint."""
    pairs = paired(m.runs, "deblur", "rigid_joint", "staged_curriculum")
    behind = np.array([score(joint) - score(staged) for joint, staged in pairs])
    damage = np.array([score(staged, "1", "psnr_input") - score(staged, "1") for _, staged in pairs])
    text = f"{estimate(behind)} to rigid joint; input − output at level 1 {estimate(damage)}"
    return judge(
        {"": np.maximum(behind - FAR, damage)}, below=swamped(m, "staged_curriculum", {"": "deblur"}), text=text
    )


def last_sub_task(m: Measured, schedule: str, first: str, last: str) -> Verdict:
    """A staged schedule against rigid joint: more is lost on the level seen first than on the level seen last."""
    parts = {}
    for task in paper.TASKS:
        lost = [gaps(m.runs, task, "rigid_joint", schedule, [level]) for level in (first, last)]
        parts[plain(task)] = [a - b for a, b in zip(*lost, strict=True)]
    return judge(parts, below=swamped(m, schedule, {plain(task): task for task in paper.TASKS}))


def swamped(m: Measured, schedule: str, tasks: dict) -> list:
    """The labels of the tasks in which rigid joint and another schedule are both below the damaged image."""
    return [label for label, task in tasks.items() if below_input(m.runs, task, "rigid_joint", schedule)]


def hard_mining(m: Measured) -> Verdict:
    """On-demand against hard mining."""
    return compare(m, {plain(task): (task, "on_demand", "hard_mining") for task in paper.TASKS})


def competitive(m: Measured) -> Verdict:
    """The worst of the jointly trained schedules against the best of the other three."""
    parts = {}
    for task in paper.TASKS:
        scores = [dict(zip(RIVALS, map(score, runs), strict=True)) for runs in paired(m.runs, task, *RIVALS)]
        parts[plain(task)] = [worst_joint(s) for s in scores]
    return judge(parts, below=[plain(task) for task in paper.TASKS if below_input(m.runs, task, *RIVALS)])


def worst_joint(scores: dict) -> float:
    """How far the worst jointly trained schedule is ahead of the best of the others; scores: schedule → dB."""
    others = [scores[rival] for rival in RIVALS if rival not in JOINT]
    return min(scores[schedule] for schedule in JOINT) - max(others)


def papers_test(m: Measured, rivals=("rigid_joint",), tasks=tuple(paper.TASKS)) -> pd.DataFrame:
    """The paper's test, which asks about two networks and not about two schedules: a row per task, rival and seed.

    Columns task, rival, seed, ahead (dB by which on-demand is), p (paired t-test over the trials of these networks).
    """
    rows = []
    for task in tasks:
        for rival in rivals:
            seeds = sorted(k[2] for k in m.runs if k[:2] == (task, rival) and (task, "on_demand", k[2]) in m.runs)
            for seed in seeds:
                a, b = (overall(m.runs[task, name, seed].evaluation).psnr for name in ("on_demand", rival))
                rows.append((plain(task), paper.SCHEDULES[rival], seed, (a - b).mean(), paired_p_value(a, b)))
    return pd.DataFrame(rows, columns=["task", "rival", "seed", "ahead", "p"])


# Allocation and data (Sec. 6.6)


def dose(m: Measured) -> Verdict:
    """Equation 3 with 1/P^4 against equal shares: a larger dose of what on-demand learning does."""
    pairs = {plain(task): (task, SHARP, "rigid_joint") for task in paper.TASKS}
    doses = [dose_of(run) for key, run in m.runs.items() if key[1] == SHARP]
    verdict = compare(m, pairs)
    return Verdict(verdict.word, f"{verdict.measured}, dose {np.mean(doses):.2%}", verdict.needs) if doses else verdict


def dose_of(run) -> float:
    """Mean over epochs of the share of a batch by which a level is away from its equal share."""
    return float(np.mean([epoch["dose"] for epoch in run.history]))


def shares(m: Measured) -> dict:
    """Plain name of a task → per cent of the batch per epoch and level (epochs × levels), one array per seed."""
    runs = {task: [run for key, run in m.runs.items() if key[:2] == (task, "on_demand")] for task in paper.TASKS}
    return {plain(t): [np.array([e["allocation"] for e in run.history]) for run in runs[t]] for t in runs}


def shifts(m: Measured) -> Verdict:
    """Level 5 against level 1 in the last epoch."""
    return judge({task: [s[-1, -1] - s[-1, 0] for s in found] for task, found in shares(m).items()}, unit="%")


def never_abandons(m: Measured) -> Verdict:
    """The smallest share that level 1 ever has: more than half of an equal one."""
    least = {task: [s[:, 0].min() for s in found] for task, found in shares(m).items()}
    return judge(least, beyond=100 / paper.N_LEVELS / 2, unit="%")


def extra_images(m: Measured) -> Verdict:
    """What twice the images are worth to rigid joint learning: no more than 0.1 dB."""
    return compare(m, {"": ("inpaint", RIGID_ALL, RIGID_HALF)}, beyond=WITHIN, sign=-1)


def half_the_images(m: Measured) -> Verdict:
    """On-demand with half of the images against rigid joint with all of them."""
    return compare(m, {"": ("inpaint", OURS_HALF, RIGID_ALL)})


# Inpainters (Table 2)


def on_block(m: Measured, one: str, others, block: str) -> Verdict:
    """One method against others on the central or on an arbitrary block."""
    return compare(m, {TITLES.get(other, ""): ("blocks", one, other, [block]) for other in others})


def random_behind(m: Measured) -> Verdict:
    """The all-rounder against the encoder with random region dropout on both blocks."""
    return compare(m, {block: ("blocks", "on_demand", RANDOM, [block]) for block in blocks.BLOCKS})


def places(m: Measured, method: str) -> np.ndarray:
    """Central minus arbitrary block (dB) of one method, for every seed."""
    runs = [run for key, run in m.runs.items() if key[:2] == ("blocks", method)]
    return np.array([score(run, ["central"]) - score(run, ["arbitrary"]) for run in runs])


def centre_fails(m: Measured) -> Verdict:
    """What the centre encoder loses on an arbitrary block."""
    return judge({"": places(m, CENTRE)}, beyond=FAR)


def same_in_both(m: Measured) -> Verdict:
    """Less than 1 dB between the two places for the all-rounder, either way."""
    gap = places(m, "on_demand")
    return judge({"central": gap, "arbitrary": -gap}, beyond=-1, text=estimate(gap))


# Denoisers (Table 3, Fig. 6): one training each, so that a seed is a lone one


def on_db11(m: Measured, system: str, clipped=False) -> pd.Series:
    """PSNR per photograph at σ = 25."""
    rows = m.table3[(m.table3.system == system) & (m.table3.clipped == clipped)]
    return rows.set_index("image").psnr.astype(float)


def near_specialist(m: Measured) -> Verdict:
    """The all-rounder against the same network trained at σ = 25, mean of the eleven photographs."""
    free, clipped = ((on_db11(m, "on_demand", c) - on_db11(m, "fixated", c)).dropna() for c in (False, True))
    lone = [free.mean()] if len(free) == len(paper.TABLE3) else []
    return judge({"": lone}, beyond=-NEAR, text=f"{signed(free.mean())}, on clipped noise {signed(clipped.mean())}")


def published_leads(measured: pd.Series) -> pd.Series:
    """By how much PSNRs per image beat the best of the six published systems, largest lead first."""
    best = {image: max(row[system] for system in paper.TABLE3_SYSTEMS[:6]) for image, row in paper.TABLE3.items()}
    return (measured - pd.Series(best)).dropna().sort_values(ascending=False)


def images_won(system: str) -> int:
    """The paper's count of one of its two systems."""
    return int((published_leads(pd.Series({image: row[system] for image, row in paper.TABLE3.items()})) > 0).sum())


def wins(m: Measured, system: str) -> Verdict:
    """As many images won as in the paper, n: the n-th best lead is positive, on noise as published, not clipped."""
    free, clipped = (published_leads(on_db11(m, system, c)) for c in (False, True))
    n = images_won(system)
    lone = [free.iloc[n - 1]] if len(free) == len(paper.TABLE3) else []
    text = f"{(free > 0).sum()} of {len(free)}, on clipped noise {(clipped > 0).sum()}"
    return judge({"": lone}, text=f"{text}; margin number {n} is {estimate(lone)}")


def curves(m: Measured) -> pd.DataFrame:
    """PSNR per σ, a column per curve: `on_demand`, `bm3d`, `bm3d25`, …; NaN where nothing is measured."""
    name = m.spectrum.system + m.spectrum.told.map(lambda told: "" if pd.isna(told) else f"{told:g}")
    wide = m.spectrum.assign(name=name).pivot(index="sigma", columns="name", values="psnr").astype(float)
    return wide.reindex(columns=["on_demand", "bm3d", *(f"{s}{denoising.FIXED}" for s in CLASSICAL), *LEARNED])


def whole_spectrum(m: Measured) -> Verdict:
    """The all-rounder, told nothing, is nowhere more than 0.5 dB behind BM3D, told the truth."""
    gap = curves(m).on_demand - curves(m).bm3d
    return judge({f"σ = {sigma:g}": [v] if v == v else [] for sigma, v in gap.items()}, beyond=-0.5)


def loss_above_25(m: Measured, systems) -> dict:
    """System → the most that it is behind BM3D told the truth at a σ above 25 (dB); only what is measured."""
    gap = curves(m)[lambda frame: frame.index > denoising.FIXED]
    loss = gap[list(systems)].rsub(gap.bm3d, axis=0).max()
    return loss.dropna().to_dict()


def told_25(m: Measured) -> Verdict:
    """BM3D, K-SVD and WNNM told 25 against BM3D told the truth. No seed is involved."""
    loss = loss_above_25(m, [f"{system}{denoising.FIXED}" for system in CLASSICAL])
    words = ", ".join(f"{TITLES[name.removesuffix('25')]} {signed(-db)}" for name, db in loss.items())
    return arithmetic(min(loss.values()) > FAR, words) if loss else Verdict(MISSING)


def trained_at_25(m: Measured) -> Verdict:
    """MLP, CSF and TNRD, each trained once at σ = 25, against BM3D told the truth."""
    loss = loss_above_25(m, LEARNED)
    return judge({system.upper(): [loss[system]] if system in loss else [] for system in LEARNED}, beyond=FAR)


# What the paper has


def paper_gaps(one: str, other: str, tasks=tuple(paper.TASKS)) -> list[float]:
    """Published differences in PSNR of two schedules on CelebA and SUN397."""
    return [paper.TABLE1[task][one][k][1] - paper.TABLE1[task][other][k][1] for task in tasks for k in (0, 1)]
