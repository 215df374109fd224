"""What is measured of every claim of the paper: functions of `Measured` that answer (value as text, verdict)."""

from dataclasses import dataclass

import pandas as pd

from odl import blocks, paper, results
from odl.comparators import INPAINTERS
from odl.evaluate import overall, paired_p_value
from odl.judge import FAILED, LEAST, LEVELS, NOT_MEASURED, REPRODUCED, UNTESTED, WITHIN, gaps, judge, score, span

RIVALS = tuple(schedule for schedule in paper.SCHEDULES if schedule != "on_demand")
JOINT = ("rigid_joint", "cumulative_curriculum", "cumulative_anti_curriculum")
CENTRE, RANDOM = INPAINTERS
OURS_HALF, RIGID_HALF, RIGID_ALL = results.EXTRA_DATA


@dataclass(frozen=True)
class Measured:
    """What is on disk for one profile and data set; everything may be empty."""

    runs: dict  # (task, schedule, seed) → Result; of Table 2 the task is "blocks"
    table3: pd.DataFrame  # denoising.table3 of our two systems
    spectrum: pd.DataFrame  # denoising.spectrum of the all-rounder, and of BM3D told the truth and told 25


def plain(task: str) -> str:
    """`Image inpainting` → `inpainting`."""
    return paper.TASKS[task]["title"].split()[-1].lower()


# Fixation (Sec. 6.4)


def fixated_behind(m: Measured, task: str):
    """The all-rounder against both fixated models over the whole spectrum."""
    return judge({name: gaps(m.runs, task, "on_demand", f"fixated_{name}") for name in ("easy", "hard")})


def spike(m: Measured, task: str):
    """Each fixated model against the all-rounder at its own severity."""
    return judge({name: gaps(m.runs, task, f"fixated_{name}", "on_demand", [name]) for name in ("easy", "hard")})


def random_places(m: Measured):
    """The all-rounder against fixated inpainters on squares of about their own size, anywhere."""
    easy = gaps(m.runs, "inpaint", "on_demand", "fixated_easy", ["1"])
    hard = gaps(m.runs, "inpaint", "on_demand", "fixated_hard", ["6"])
    return judge({"easy": easy, "hard": hard})


# Schedules (Table 1, Sec. 6.6)


def leads(m: Measured, task: str, levels=LEVELS, column="psnr") -> dict:
    """On-demand against every other schedule: rival → margins in dB."""
    return {rival: gaps(m.runs, task, "on_demand", rival, levels, column) for rival in RIVALS}


def closest(rivals: dict) -> str:
    """The rival with the smallest margin, in words."""
    measured = {rival: margins for rival, margins in rivals.items() if margins}
    if not measured:
        return "–"
    rival = min(measured, key=lambda name: min(measured[name]))
    return f"{span(measured[rival])} against {paper.SCHEDULES[rival]}"


def best_of_seven(m: Measured, task: str):
    """On-demand against each of the six others, in PSNR and in L2."""
    psnr, l2 = leads(m, task), leads(m, task, column="l2")
    met = sum(bool(margins) for margins in psnr.values())
    text = f"PSNR {closest(psnr)}; L2 {closest(l2)}; {met} of {len(RIVALS)} rivals measured"
    parts = {("psnr", k): v for k, v in psnr.items()} | {("l2", k): v for k, v in l2.items()}
    return judge(parts, text=text)


def significant(m: Measured):
    """Paired t-tests over the trials of each seed: on-demand ahead of rigid joint with p < 0.05, or not."""
    parts, words = {task: [] for task in paper.TASKS}, []
    for (task, schedule, seed), run in m.runs.items():
        other = m.runs.get((task, "rigid_joint", seed))
        if schedule == "on_demand" and other:
            a, b = (overall(r.evaluation).psnr for r in (run, other))
            p, ahead = paired_p_value(a, b), a.mean() > b.mean()
            parts[task] += [1 if ahead and p < 0.05 else -1] if p == p else []  # NaN: trials that do not differ
            words.append(f"{plain(task)} {p:.0e} {'ahead' if ahead else 'behind'}")
    return judge(parts, least=0, alone=1, text=", ".join(words))


def level_6(m: Measured):
    """On-demand against each of the six others on the level that nobody trained on."""
    rivals = {task: leads(m, task, ["6"]) for task in paper.TASKS}
    parts = {(task, rival): v for task in rivals for rival, v in rivals[task].items()}
    return judge(parts, text="; ".join(f"{plain(task)} {closest(rivals[task])}" for task in rivals))


def collapse(m: Measured):
    """Rigid joint against the staged curriculum on deblurring: at least half of the published gap."""
    published = min(paper_gaps("rigid_joint", "staged_curriculum", ["deblur"]))
    return judge({"": gaps(m.runs, "deblur", "rigid_joint", "staged_curriculum")}, beyond=published / 2)


def last_sub_task(m: Measured):
    """Staged anti-curriculum against rigid joint: more is lost on level 5, seen first, than on level 1, seen last."""
    parts = {}
    for task in paper.TASKS:
        first, last = (gaps(m.runs, task, "rigid_joint", "staged_anti_curriculum", [level]) for level in "51")
        parts[plain(task)] = [a - b for a, b in zip(first, last, strict=True)]
    return judge(parts)


def hard_mining(m: Measured):
    """On-demand against hard mining."""
    return judge({plain(task): gaps(m.runs, task, "on_demand", "hard_mining") for task in paper.TASKS})


def competitive(m: Measured):
    """The worst of the jointly trained schedules against the best of the other three."""
    parts = {}
    for task in paper.TASKS:
        seeds = {key[2] for key in m.runs if key[0] == task}
        complete = [seed for seed in sorted(seeds) if all((task, rival, seed) in m.runs for rival in RIVALS)]
        scores = [{rival: score(m.runs[task, rival, seed]) for rival in RIVALS} for seed in complete]
        parts[plain(task)] = [worst_joint(s) for s in scores]
    return judge(parts)


def worst_joint(scores: dict) -> float:
    """How far the worst jointly trained schedule is ahead of the best of the others; scores: schedule → dB."""
    others = [scores[rival] for rival in RIVALS if rival not in JOINT]
    return min(scores[schedule] for schedule in JOINT) - max(others)


# Allocation and data (Sec. 6.6)

# 0.4 dB between two seeds moves a share of 20 images by less than half an image.
COUNTED = {"least": 0, "alone": 0.5, "unit": "images"}


def allocations(m: Measured) -> dict:
    """Plain name of a task → images per level and epoch (epochs × levels), one list per seed."""
    runs = {task: [run for key, run in m.runs.items() if key[:2] == (task, "on_demand")] for task in paper.TASKS}
    return {plain(task): [[epoch["allocation"] for epoch in run.history] for run in runs[task]] for task in runs}


def shifts(m: Measured):
    """Level 5 against level 1 in the last batch."""
    parts = {task: [counts[-1][-1] - counts[-1][0] for counts in runs] for task, runs in allocations(m).items()}
    return judge(parts, **COUNTED)


def never_abandons(m: Measured):
    """The fewest images that level 1 ever gets: more than half of an equal share."""
    fewest = {task: [min(epoch[0] for epoch in counts) for counts in runs] for task, runs in allocations(m).items()}
    half = paper.BATCH_SIZE / paper.N_LEVELS / 2
    shown = ", ".join(f"{task} {min(v) if v else '–'}" for task, v in fewest.items())
    return judge(fewest, beyond=half, **COUNTED, text=f"{shown} images")


def extra_images(m: Measured):
    """What twice the images are worth to rigid joint learning: no more than 0.1 dB."""
    return judge({"": gaps(m.runs, "inpaint", RIGID_ALL, RIGID_HALF)}, beyond=LEAST, sign=-1, least=0)


def half_the_images(m: Measured):
    """On-demand with half of the images against rigid joint with all of them."""
    return judge({"": gaps(m.runs, "inpaint", OURS_HALF, RIGID_ALL)})


# Inpainters (Table 2)


def places(m: Measured, method: str) -> list[float]:
    """Central minus arbitrary block (dB) of one method, for every seed."""
    runs = [run for key, run in m.runs.items() if key[:2] == ("blocks", method)]
    return [score(run, ["central"]) - score(run, ["arbitrary"]) for run in runs]


def centre_wins(m: Measured):
    """The centre encoder against the all-rounder on the central block."""
    return judge({"": gaps(m.runs, "blocks", CENTRE, "on_demand", ["central"])})


def centre_fails(m: Measured):
    """What the centre encoder loses on an arbitrary block: more than 3 dB, twice the error."""
    return judge({"": places(m, CENTRE)}, beyond=3, alone=WITHIN)


def random_behind(m: Measured):
    """The all-rounder against the encoder with random region dropout on both blocks."""
    return judge({block: gaps(m.runs, "blocks", "on_demand", RANDOM, [block]) for block in blocks.BLOCKS})


def same_in_both(m: Measured):
    """Less than 1 dB between the two places for the all-rounder."""
    return judge({"": [abs(gap) for gap in places(m, "on_demand")]}, beyond=1, sign=-1, least=0, alone=WITHIN)


# Denoisers (Table 3, Fig. 6)


def published_leads(measured: pd.Series) -> pd.Series:
    """By how much PSNRs per image beat the best of the six published systems, largest lead first."""
    best = {image: max(row[system] for system in paper.TABLE3_SYSTEMS[:6]) for image, row in paper.TABLE3.items()}
    return (measured - pd.Series(best)).dropna().sort_values(ascending=False)


def images_won(system: str) -> int:
    """The paper's count of one of its two systems."""
    return int((published_leads(pd.Series({image: row[system] for image, row in paper.TABLE3.items()})) > 0).sum())


def wins(m: Measured, system: str):
    """As many images won as in the paper, n: the n-th best lead is positive."""
    rows = m.table3[(m.table3.system == system) & m.table3.clipped]
    lead, n = published_leads(rows.set_index("image").psnr), images_won(system)
    if len(lead) < len(paper.TABLE3):
        return NOT_MEASURED, UNTESTED
    text = f"{(lead > 0).sum()} of {len(lead)}, lead number {n} is {span([lead.iloc[n - 1]])}"
    return judge({"": [lead.iloc[n - 1]]}, least=0, text=text)


def curves(m: Measured) -> pd.DataFrame:
    """PSNR per σ, a column per curve: `on_demand`, `bm3d`, `bm3d25`."""
    name = m.spectrum.system + m.spectrum.told.map(lambda told: "" if pd.isna(told) else f"{told:g}")
    return m.spectrum.assign(name=name).pivot(index="sigma", columns="name", values="psnr").astype(float)


def whole_spectrum(m: Measured):
    """The all-rounder, told nothing, is nowhere more than 0.5 dB behind BM3D, told the truth."""
    gap = curves(m).on_demand - curves(m).bm3d
    text = f"{span(gap.dropna())} at {gap.count()} of {len(gap)} noise levels"
    return judge({sigma: [value] if value == value else [] for sigma, value in gap.items()}, -0.5, least=0, text=text)


def bm3d_collapses(m: Measured):
    """BM3D told 25 against BM3D told the truth: more than 3 dB lost somewhere above 25. No seed is involved."""
    loss = (curves(m).bm3d25 - curves(m).bm3d)[lambda s: s.index > 25]
    if loss.isna().any() and not loss.min() < -3:
        return NOT_MEASURED, UNTESTED
    return f"{span([loss.min()])} at σ = {loss.idxmin():g}", REPRODUCED if loss.min() < -3 else FAILED


def mlp(m: Measured):
    """Burger's MLP is not among the systems run here."""
    return NOT_MEASURED, UNTESTED


# What the paper has


def paper_gaps(one: str, other: str, tasks=tuple(paper.TASKS)) -> list[float]:
    """Published differences in PSNR of two schedules on CelebA and SUN397."""
    return [paper.TABLE1[task][one][k][1] - paper.TABLE1[task][other][k][1] for task in tasks for k in (0, 1)]
