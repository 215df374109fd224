"""The scorecard: every claim of the paper with its test, and what the measured numbers say about it.

A claim is measured by a function of `Measured` that answers (value as text, verdict). Nothing is trained here.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import log10

import pandas as pd

from odl import blocks, claims, datasets, denoising, paper, results, store
from odl.comparators import INPAINTERS, context_encoder
from odl.evaluate import overall, paired_p_value
from odl.experiment import Experiment, extra_data

REPRODUCED, FAILED, UNTESTED = VERDICTS = ("reproduced", "not reproduced", "not tested at this scale")
LEVELS = tuple(str(level) for level in range(1, paper.N_LEVELS + 2))
LEAST = 0.1  # dB: no smaller difference is called one
ALONE = 1.0  # dB: what a lone seed must show, because two seeds of one schedule differ by 0.4 dB in mean PSNR
WITHIN = 0.4  # dB: the same for two scores of one network, whose seed is the same
RIVALS = tuple(schedule for schedule in paper.SCHEDULES if schedule != "on_demand")
JOINT = ("rigid_joint", "cumulative_curriculum", "cumulative_anti_curriculum")
CENTRE, RANDOM = INPAINTERS
OURS_HALF, RIGID_HALF, RIGID_ALL = results.EXTRA_DATA
RULE = (
    f"Differences are paired by seed. A verdict needs at least two seeds that agree, each beyond {LEAST:g} dB; "
    f"a lone seed decides only beyond {ALONE:g} dB ({WITHIN:g} dB between two scores of one network), because two "
    f"seeds of one schedule differ by {WITHIN:g} dB."
)


@dataclass(frozen=True)
class Measured:
    """What is on disk for one profile and data set; everything may be empty."""

    runs: dict  # (task, schedule, seed) → Result; for Table 2 the task is "blocks"
    table3: pd.DataFrame  # denoising.table3 of our two systems
    spectrum: pd.DataFrame  # denoising.spectrum of the all-rounder, and of BM3D told the truth and told 25


def load(profile: str, dataset: str, seeds: list[int]) -> Measured:
    """Every result that a claim needs and that is here."""
    names = (*paper.SCHEDULES, *paper.FIXATED)
    ours = denoising.our_systems(profile, f"{datasets.parse(dataset)[0]}-native")
    given = {"dataset": "db11", "profile": profile, "ours": ours, "measure": False}
    runs = {
        (task, schedule, seed): results.load(Experiment.of(task, dataset, schedule, seed, profile))
        for task in paper.TASKS
        for schedule in names
        for seed in seeds
    }
    runs |= load_extra(profile, dataset, seeds) | load_blocks(profile, dataset, seeds)
    return Measured(
        {key: result for key, result in runs.items() if result},
        denoising.table3(["on_demand", "fixated"], **given),
        denoising.spectrum(["on_demand", "bm3d", ("bm3d", 25)], **given),
    )


def load_extra(profile, dataset, seeds) -> dict:
    """The runs of the extra-data test under the names of `results.EXTRA_DATA`."""
    found = {}
    with suppress(datasets.DataError):  # a folder's size is not known where the folder is not
        for name, runs in results.extra_data_runs(extra_data("inpaint", dataset, profile, seeds)).items():
            found |= {("inpaint", name, run.experiment["seed"]): run for run in runs}
    return found


def load_blocks(profile, dataset, seeds) -> dict:
    """The three methods of Table 2."""
    found = {}
    for seed in seeds:
        ours = Experiment.of("inpaint", dataset, "on_demand", seed, profile)
        path = blocks.path_of_blocks(ours)
        content = store.load(path, ours.asdict())
        found["blocks", "on_demand", seed] = content and blocks.as_result(content, path)
        for method in INPAINTERS:
            found["blocks", method, seed] = results.load(context_encoder.run_of(method, ours))
    return found


# From numbers to a verdict


def decide(margins: list[float], least: float = LEAST, alone: float = ALONE) -> str:
    """The verdict on margins in favour of a claim, one per seed: beyond `least` for each, a lone one beyond `alone`."""
    needed = least if len(margins) > 1 else max(least, alone)
    if margins and min(margins) > needed:
        return REPRODUCED
    return FAILED if margins and max(margins) < -needed else UNTESTED


def combine(verdicts: list[str]) -> str:
    """One verdict on a claim with several parts: one part that fails is enough, and all have to hold."""
    if FAILED in verdicts:
        return FAILED
    return REPRODUCED if set(verdicts) == {REPRODUCED} else UNTESTED


def judge(parts, beyond=0.0, sign=1, least=LEAST, alone=ALONE, unit="dB", text=None) -> tuple[str, str]:
    """Value and verdict of a claim that every part lies beyond a bound (below it: sign -1).

    parts: label → values, one per seed. `text` replaces their enumeration; a reason follows where nothing is decided.
    """
    if not any(parts.values()):
        return "not measured", UNTESTED
    margins = [[sign * (value - beyond) for value in values] for values in parts.values()]
    verdicts = [decide(m, least, alone) for m in margins]
    text = f"{text or enumerate_parts(parts, unit)} ({count_seeds(parts)})"
    open_parts = [m for m, verdict in zip(margins, verdicts, strict=True) if m and verdict == UNTESTED]
    if combine(verdicts) != UNTESTED:
        return text, combine(verdicts)
    if not open_parts:
        return f"{text}; not decided: part of it is not measured", UNTESTED
    if any(len(m) == 1 for m in open_parts):
        return f"{text}; not decided: one seed, too close", UNTESTED
    return f"{text}; not decided: the seeds do not carry it", UNTESTED


def enumerate_parts(parts: dict, unit: str) -> str:
    """`easy +1.20 dB, hard –`."""
    return ", ".join(f"{label} {span(values, unit)}".strip() for label, values in parts.items())


def span(values: list[float], unit: str = "dB") -> str:
    """`+0.02 dB`, `+0.01 to +0.03 dB`, or a dash."""
    digits = 2 if unit == "dB" else 0
    ends = [f"{value:+.{digits}f}".replace("-", "−") for value in dict.fromkeys((min(values), max(values)))] if values else []
    return f"{' to '.join(dict.fromkeys(ends))} {unit}" if ends else "–"


def count_seeds(parts: dict) -> str:
    counts = sorted({len(values) for values in parts.values() if values})
    return f"{'–'.join(str(n) for n in (counts if len(counts) < 3 else counts[:: len(counts) - 1]))} " + (
        "seed" if counts == [1] else "seeds"
    )


def score(run, levels=LEVELS, column="psnr") -> float:
    """Mean over trials and some levels: PSNR in dB, or L2 in ‰."""
    return run.evaluation.groupby("level")[column].mean()[list(levels)].mean()


def gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS, column="psnr") -> list[float]:
    """By how many dB `one` is ahead of `other`, for every seed that both have; L2 as 10 log10 of the ratio."""
    pairs = [(run, runs.get((task, other, key[2]))) for key, run in runs.items() if key[:2] == (task, one)]
    scores = [[score(run, levels, column) for run in pair] for pair in pairs if pair[1]]
    return [10 * log10(b / a) if column == "l2" else a - b for a, b in scores]


def plain(task: str) -> str:
    """`Image inpainting` → `inpainting`."""
    return paper.TASKS[task]["title"].split()[-1].lower()


# Fixation


def fixated_behind(m: Measured, task: str):
    """The all-rounder against both fixated models over the whole spectrum."""
    return judge({name: gaps(m.runs, task, "on_demand", f"fixated_{name}") for name in ("easy", "hard")})


def spike(m: Measured, task: str):
    """Each fixated model against the all-rounder at its own severity."""
    return judge({name: gaps(m.runs, task, f"fixated_{name}", "on_demand", [name]) for name in ("easy", "hard")})


def random_places(m: Measured):
    """The all-rounder against fixated inpainters on squares of about their own size, anywhere."""
    return judge(
        {
            "5×5": gaps(m.runs, "inpaint", "on_demand", "fixated_easy", ["1"]),
            "32×32": gaps(m.runs, "inpaint", "on_demand", "fixated_hard", ["6"]),
        }
    )


# Schedules


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
    """On-demand ahead of each of the six others, in PSNR and in L2."""
    psnr, l2 = leads(m, task), leads(m, task, column="l2")
    met = sum(bool(margins) for margins in psnr.values())
    text = f"PSNR {closest(psnr)}, L2 {closest(l2)}, {met} of {len(RIVALS)} rivals measured"
    return judge({("psnr", k): v for k, v in psnr.items()} | {("l2", k): v for k, v in l2.items()}, text=text)


def significant(m: Measured):
    """Paired t-tests over the trials of each seed: on-demand ahead of rigid joint with p < 0.05, or not."""
    parts, words = {}, []
    for task in paper.TASKS:
        parts[task] = []
        for key, run in m.runs.items():
            other = m.runs.get((task, "rigid_joint", key[2]))
            if key[:2] == (task, "on_demand") and other:
                a, b = (overall(r.evaluation).psnr for r in (run, other))
                p, ahead = paired_p_value(a, b), a.mean() > b.mean()
                parts[task].append(1 if ahead and p < 0.05 else -1)
                words.append(f"{plain(task)} {p:.0e} {'ahead' if ahead else 'behind'}")
    return judge(parts, least=0, alone=1, text=", ".join(words))


def level_6(m: Measured):
    """On-demand ahead of each of the six others on the level that nobody trained on."""
    parts = {(task, rival): v for task in paper.TASKS for rival, v in leads(m, task, ["6"]).items()}
    shown = [f"{plain(task)} {closest(leads(m, task, ['6']))}" for task in paper.TASKS]
    return judge(parts, text=", ".join(shown))


def collapse(m: Measured):
    """By how much rigid joint is ahead of the staged curriculum on deblurring: at least half as much as published."""
    published = min(paper_gaps("rigid_joint", "staged_curriculum", ["deblur"]))
    return judge({"": gaps(m.runs, "deblur", "rigid_joint", "staged_curriculum")}, beyond=published / 2)


def last_sub_task(m: Measured):
    """Staged anti-curriculum against rigid joint: more is lost on level 5, seen first, than on level 1, seen last."""
    parts = {}
    for task in paper.TASKS:
        first, last = (gaps(m.runs, task, "rigid_joint", "staged_anti_curriculum", [level]) for level in ("5", "1"))
        parts[plain(task)] = [a - b for a, b in zip(first, last, strict=True)]
    return judge(parts)


def hard_mining(m: Measured):
    return judge({plain(task): gaps(m.runs, task, "on_demand", "hard_mining") for task in paper.TASKS})


def competitive(m: Measured):
    """The worst of the jointly trained schedules against the best of the other three."""
    parts = {}
    for task in paper.TASKS:
        scores = {}
        for (name, schedule, seed), run in m.runs.items():
            if name == task and schedule in RIVALS:
                scores.setdefault(seed, {})[schedule] = score(run)
        parts[plain(task)] = [worst_joint(s) for s in scores.values() if len(s) == len(RIVALS)]
    return judge(parts)


def worst_joint(scores: dict) -> float:
    """How far the worst jointly trained schedule is ahead of the best of the others; scores: schedule → dB."""
    joint = [scores[schedule] for schedule in JOINT]
    return min(joint) - max(scores[schedule] for schedule in RIVALS if schedule not in JOINT)


# Allocation and data


def allocations(m: Measured) -> dict:
    """Task → images per level and epoch, one list per seed."""
    return {
        task: [
            [epoch["allocation"] for epoch in run.history]
            for key, run in m.runs.items()
            if key[:2] == (task, "on_demand")
        ]
        for task in paper.TASKS
    }


# 0.4 dB between two seeds moves a share of 20 images by less than half an image.
COUNTED = {"least": 0, "alone": 0.5, "unit": "images"}


def shifts(m: Measured):
    """Level 5 against level 1 in the last batch."""
    return judge({plain(t): [c[-1][-1] - c[-1][0] for c in runs] for t, runs in allocations(m).items()}, **COUNTED)


def never_abandons(m: Measured):
    """The fewest images that level 1 ever gets: at least half of an equal share."""
    fewest = {plain(t): [min(epoch[0] for epoch in c) for c in runs] for t, runs in allocations(m).items()}
    half = paper.BATCH_SIZE / paper.N_LEVELS / 2
    shown = ", ".join(f"{task} {min(v)}" if v else f"{task} –" for task, v in fewest.items())
    return judge(fewest, beyond=half, **COUNTED, text=f"{shown} images")


def extra_images(m: Measured):
    """What twice the images are worth to rigid joint learning: no more than 0.1 dB."""
    return judge({"": gaps(m.runs, "inpaint", RIGID_ALL, RIGID_HALF)}, beyond=LEAST, sign=-1, least=0)


def half_the_images(m: Measured):
    return judge({"": gaps(m.runs, "inpaint", OURS_HALF, RIGID_ALL)})


# Other systems


def places(m: Measured, method: str) -> list[float]:
    """Central minus arbitrary block (dB) of one method, for every seed."""
    runs = [run for key, run in m.runs.items() if key[:2] == ("blocks", method)]
    return [score(run, ["central"]) - score(run, ["arbitrary"]) for run in runs]


def centre_wins(m: Measured):
    return judge({"": gaps(m.runs, "blocks", CENTRE, "on_demand", ["central"])})


def centre_fails(m: Measured):
    """What the centre encoder loses on an arbitrary block: more than 3 dB, twice the error."""
    return judge({"": places(m, CENTRE)}, beyond=3, alone=WITHIN)


def random_behind(m: Measured):
    return judge({block: gaps(m.runs, "blocks", "on_demand", RANDOM, [block]) for block in blocks.BLOCKS})


def same_in_both(m: Measured):
    """Less than 1 dB between the two places."""
    return judge({"": [abs(gap) for gap in places(m, "on_demand")]}, beyond=1, sign=-1, least=0, alone=WITHIN)


def published_leads(measured: pd.Series) -> pd.Series:
    """By how much PSNRs per image beat the best of the six published systems, largest lead first."""
    best = {image: max(row[system] for system in paper.TABLE3_SYSTEMS[:6]) for image, row in paper.TABLE3.items()}
    return (measured - pd.Series(best)).dropna().sort_values(ascending=False)


def images_won(system: str) -> int:
    """The paper's count of one of its two systems."""
    return int((published_leads(pd.Series({image: row[system] for image, row in paper.TABLE3.items()})) > 0).sum())


def wins(m: Measured, system: str):
    """As many images won as in the paper: the lead on the n-th best image is positive."""
    rows = m.table3[(m.table3.system == system) & m.table3.clipped]
    lead = published_leads(rows.set_index("image").psnr)
    won, n = (lead > 0).sum(), images_won(system)
    parts = {"": [lead.iloc[n - 1]] if len(lead) == len(paper.TABLE3) else []}
    text = f"{won} of {len(paper.TABLE3)}" + (f", the {n}th best lead {span(parts[''])}" if parts[""] else "")
    return judge(parts, least=0, text=text)


def curves(m: Measured) -> pd.DataFrame:
    """PSNR per σ, a column per curve: `on_demand`, `bm3d`, `bm3d25`."""
    name = m.spectrum.system + m.spectrum.told.map(lambda told: "" if pd.isna(told) else f"{told:g}")
    return m.spectrum.assign(name=name).pivot(index="sigma", columns="name", values="psnr").astype(float)


def whole_spectrum(m: Measured):
    """The all-rounder, told nothing, is at every σ at most 0.5 dB behind BM3D, told the truth."""
    gap = curves(m).on_demand - curves(m).bm3d
    met = gap.dropna()
    text = f"{span(list(met))} against BM3D at {len(met)} of {len(gap)} σ"
    return judge({s: [] if pd.isna(v) else [v] for s, v in gap.items()}, beyond=-0.5, least=0, text=text)


def bm3d_collapses(m: Measured):
    """BM3D told 25 against BM3D told the truth: more than 3 dB lost somewhere above 25. No seed is involved."""
    loss = (curves(m).bm3d25 - curves(m).bm3d)[lambda s: s.index > 25].dropna()
    if loss.empty:
        return "not measured", UNTESTED
    return f"{span([loss.min()])} at σ = {loss.idxmin():g}", REPRODUCED if loss.min() < -3 else FAILED


def mlp(m: Measured):
    return "the MLP is not run here", UNTESTED


# The paper's values


def paper_gaps(one: str, other: str, tasks=tuple(paper.TASKS)) -> list[float]:
    """Published differences in PSNR of two schedules on both sets."""
    return [paper.TABLE1[task][one][k][1] - paper.TABLE1[task][other][k][1] for task in tasks for k in (0, 1)]


def paper_margins(task: str) -> str:
    """On-demand against its closest rival in Table 1, on CelebA and SUN397."""
    rows = paper.TABLE1[task]
    psnr = [min(rows["on_demand"][k][1] - rows[rival][k][1] for rival in RIVALS) for k in (0, 1)]
    l2 = [min(10 * log10(rows[rival][k][0] / rows["on_demand"][k][0]) for rival in RIVALS) for k in (0, 1)]
    return " · ".join(f"{name} {a:+.2f}, {b:+.2f} dB" for name, (a, b) in (("PSNR", psnr), ("L2", l2)))


def paper_joint() -> list[float]:
    """`worst_joint` of Table 1, on every task and set."""
    return [worst_joint({s: row[k][1] for s, row in rows.items()}) for rows in paper.TABLE1.values() for k in (0, 1)]


def paper_block(one: str, other: str, block: int) -> list[float]:
    return [paper.TABLE2[one][block][1] - paper.TABLE2[other][block][1]]


# The claims


def claims_of_the_paper() -> list[dict]:
    """Every claim: section, place, claim, paper (its value), test, measure, and what the scale is taken from."""
    table = "Table 1, Supp. E"
    central, arbitrary = ([paper.TABLE2[method][k][1] for method in (CENTRE, "on_demand")] for k in (0, 1))
    number_of_images = len(paper.TABLE3)
    fixation = [
        {
            "place": "Fig. 4, Supp. D",
            "claim": f"{plain(task).capitalize()}: over the whole spectrum, models that train at one severity fall "
            "behind the all-rounder",
            "paper": "curves only",
            "test": "on-demand minus fixated (easy, hard), mean PSNR over levels 1–6",
            "measure": partial(fixated_behind, task=task),
        }
        for task in paper.TASKS
    ]
    fixation += [
        {
            "place": "Fig. 4, Supp. D",
            "claim": f"{plain(task).capitalize()}: at its own severity a fixated model beats the all-rounder",
            "paper": "a spike in the curve",
            "test": f"fixated minus on-demand, PSNR at {paper.severity_text(task, 'easy')} and "
            f"{paper.severity_text(task, 'hard')}",
            "measure": partial(spike, task=task),
        }
        for task in paper.TASKS
        if task != "inpaint"
    ]
    fixation.append(
        {
            "place": "Sec. 6.4, Supp. D",
            "claim": "Inpainting: away from the centre a fixated model fails even at its own size",
            "paper": "curves only",
            "test": "on-demand minus fixated, squares at random places: level 1 for 5×5, level 6 for 32×32",
            "measure": random_places,
        }
    )
    schedules = [
        {
            "place": table,
            "claim": f"{plain(task).capitalize()}: on-demand learning is the best of seven schedules, in L2 and PSNR",
            "paper": f"{paper_margins(task)} (CelebA, SUN397)",
            "test": "on-demand minus each rival, means over levels 1–6; L2 as 10 log₁₀ of the ratio",
            "measure": partial(best_of_seven, task=task),
        }
        for task in paper.TASKS
    ]
    schedules += [
        {
            "place": "Table 1",
            "claim": "The lead is statistically significant",
            "paper": f"p = {paper.TABLE1_P_VALUE:.0e}, pair not named",
            "test": "paired t-test over trials against rigid joint, ahead and p < 0.05 for each of at least two seeds",
            "measure": significant,
        },
        {
            "place": "Sec. 6.6",
            "claim": "On-demand learning is also best on the level that nobody trained on",
            "paper": "no number",
            "test": "on-demand minus each rival, PSNR on level 6, every task",
            "measure": level_6,
        },
        {
            "place": "Table 1",
            "claim": "A staged curriculum collapses on deblurring",
            "paper": f"{span(paper_gaps('staged_curriculum', 'rigid_joint', ['deblur']))} against rigid joint",
            "test": "rigid joint minus staged curriculum, mean PSNR: more than half of the paper's gap",
            "measure": collapse,
        },
        {
            "place": "Sec. 6.6",
            "claim": "A staged anti-curriculum overfits to the sub-task it saw last, the easiest",
            "paper": f"mean {span(paper_gaps('staged_anti_curriculum', 'rigid_joint'))} against rigid joint",
            "test": "loss to rigid joint on level 5 minus that on level 1, every task",
            "measure": last_sub_task,
        },
        {
            "place": "Table 1, Sec. 6.6",
            "claim": "Hard mining is inferior",
            "paper": f"on-demand {span(paper_gaps('on_demand', 'hard_mining'))} ahead",
            "test": "on-demand minus hard mining, mean PSNR, every task",
            "measure": hard_mining,
        },
        {
            "place": "Table 1, Sec. 6.6",
            "claim": "Rigid joint and both cumulative schedules are more competitive than staging and hard mining",
            "paper": f"{span(paper_joint())}",
            "test": "worst of the three minus best of the other three, mean PSNR, every task",
            "measure": competitive,
        },
    ]
    allocation = [
        {
            "place": "Sec. 6.6",
            "claim": "As training goes on the batch shifts to the harder levels",
            "paper": "no number",
            "test": "level 5 minus level 1 in the last batch, every task; from one image on",
            "measure": shifts,
        },
        {
            "place": "Sec. 6.6",
            "claim": "The easiest level is never abandoned",
            "paper": "no number",
            "test": "fewest images of level 1 in any epoch, every task; more than half of an equal share (10)",
            "measure": never_abandons,
        },
        {
            "place": "Sec. 6.6",
            "claim": "Twice the training images do not help rigid joint learning",
            "paper": "no number",
            "test": f"inpainting, rigid joint on all images minus on half: at most {LEAST:g} dB",
            "measure": extra_images,
        },
        {
            "place": "Sec. 6.6",
            "claim": "On-demand learning stays ahead with half as many images as rigid joint learning",
            "paper": "no number",
            "test": "inpainting, on-demand on half of the images minus rigid joint on all, mean PSNR",
            "measure": half_the_images,
        },
    ]
    inpainters = [
        {
            "claim": "A context encoder for the centre beats the all-rounder on the central block",
            "paper": span([central[0] - central[1]]),
            "test": "centre encoder minus on-demand, PSNR inside the central block",
            "measure": centre_wins,
        },
        {
            "claim": "The same encoder fails on a block anywhere",
            "paper": f"{span([arbitrary[0] - central[0]])} from central to arbitrary",
            "test": "central minus arbitrary block: more than 3 dB lost, twice the error",
            "measure": centre_fails,
        },
        {
            "claim": "Random region dropout does not save it: the all-rounder is much better on both blocks",
            "paper": span([gap for k in (0, 1) for gap in paper_block("on_demand", RANDOM, k)]),
            "test": "on-demand minus random-dropout encoder, PSNR inside either block",
            "measure": random_behind,
        },
        {
            "claim": "The all-rounder does about as well in both places",
            "paper": f"{span([arbitrary[1] - central[1]])} from central to arbitrary",
            "test": "central and arbitrary block less than 1 dB apart",
            "measure": same_in_both,
        },
    ]
    denoisers = [
        {
            "place": "Table 3",
            "claim": f"At σ = 25 {name} beats six published denoisers on {images_won(system)} of {number_of_images} "
            "images",
            "paper": f"{images_won(system)} of {number_of_images}",
            "test": f"clipped noise, against the best published number of each image: {images_won(system)} leads",
            "measure": partial(wins, system=system),
            "of": "denoiser",
        }
        for system, name in (("on_demand", "the all-rounder"), ("fixated", "the same network, fixated at 25,"))
    ]
    denoisers += [
        {
            "place": "Fig. 6",
            "claim": "The all-rounder does well at every noise level without being told σ",
            "paper": "curves only",
            "test": "minus BM3D told the true σ, DB11: at no σ more than 0.5 dB behind",
            "measure": whole_spectrum,
            "of": "denoiser",
        },
        {
            "place": "Fig. 6",
            "claim": "BM3D told σ = 25 whatever comes breaks down at other noise levels",
            "paper": "curves only",
            "test": "BM3D told 25 minus told the truth, DB11: more than 3 dB lost at some σ above 25",
            "measure": bm3d_collapses,
            "of": "nothing trained",
        },
        {
            "place": "Fig. 6",
            "claim": "An MLP trained for σ = 25 does well only there",
            "paper": "curves only",
            "test": "none: the authors' MLP is not part of this companion yet",
            "measure": mlp,
            "of": "nothing trained",
        },
    ]
    sections = {
        "Fixation": fixation,
        "Schedules": schedules,
        "Allocation and data": allocation,
        "Inpainters": [{"place": "Table 2, Sec. 6.5"} | claim for claim in inpainters],
        "Denoisers": denoisers,
    }
    return [{"section": section} | claim for section, group in sections.items() for claim in group]


# The table

COLUMNS = ["number", "section", "place", "claim", "paper", "measured", "test", "scale", "verdict"]


def scorecard(profile: str, dataset: str, seeds: list[int]) -> pd.DataFrame:
    """A row per claim: number, section, place, claim, paper, measured, test, scale, verdict."""
    return score_all(load(profile, dataset, seeds), profile, dataset)


def score_all(measured: Measured, profile: str, dataset: str) -> pd.DataFrame:
    rows = []
    for number, claim in enumerate(claims_of_the_paper(), 1):
        value, verdict = claim["measure"](measured)
        scale = "–" if value == "not measured" else scale_of(profile, dataset, claim.get("of"))
        rows.append(claim | {"number": number, "measured": value, "scale": scale, "verdict": verdict})
    return pd.DataFrame(rows)[COLUMNS]


def scale_of(profile: str, dataset: str, of: str | None) -> str:
    """A few words on what the numbers of a claim were measured with."""
    if of == "nothing trained":
        return of
    e = Experiment.of("inpaint", dataset, "on_demand", 0, profile)
    e = denoising.our_systems(profile, f"{datasets.parse(dataset)[0]}-native")["on_demand"] if of == "denoiser" else e
    return f"{datasets.slug(e.dataset)}, width {e.width}, {e.epochs * e.iterations:,} iterations"
