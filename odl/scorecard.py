"""The scorecard: every claim of the paper, what the paper has, what is measured here, and a verdict.

Nothing is trained: what is not on disk reads "not measured".
"""

from contextlib import suppress
from functools import partial
from math import log10

import pandas as pd

from odl import blocks, claims, datasets, denoising, measures, paper, results
from odl.comparators import INPAINTERS, context_encoder
from odl.experiment import Experiment, extra_data
from odl.judge import FAILED, NOT_MEASURED, REPRODUCED, UNTESTED, VERDICTS, span
from odl.measures import CENTRE, JOINT, RANDOM, RIVALS, Measured, images_won, paper_gaps, plain, worst_joint

COLUMNS = ["number", "section", "place", "claim", "paper", "measured", "test", "scale", "verdict"]
SECTIONS = ("Fixation", "Schedules", "Allocation and data", "Inpainters", "Denoisers")


def scorecard(profile: str, dataset: str, seeds: list[int]) -> pd.DataFrame:
    """A row per claim; columns as in `COLUMNS`, verdict one of `judge.VERDICTS`."""
    return score_all(load(profile, dataset, seeds), profile, dataset)


def score_all(measured: Measured, profile: str, dataset: str) -> pd.DataFrame:
    """The rows of what is measured."""
    rows = []
    for number, (section, place, claim, published, test, measure) in enumerate(claims_of_the_paper(), 1):
        value, verdict = measure(measured)
        scale = "–" if value == NOT_MEASURED else scale_of(section, measure, profile, dataset)
        rows.append((number, section, place, claim, published, value, test, scale, verdict))
    return pd.DataFrame(rows, columns=COLUMNS)


def scale_of(section: str, measure, profile: str, dataset: str) -> str:
    """A few words on what the numbers of a claim were measured with."""
    if measure is measures.bm3d_collapses:
        return "nothing is trained"
    denoiser = denoising.our_systems(profile, native(dataset))["on_demand"]
    e = denoiser if section == "Denoisers" else Experiment.of("inpaint", dataset, "on_demand", 0, profile)
    return f"{datasets.slug(e.dataset)}, f = {e.width}, {e.epochs * e.iterations:,} steps"


def native(dataset: str) -> str:
    return f"{datasets.parse(dataset)[0]}-native"


# What is on disk


def load(profile: str, dataset: str, seeds: list[int]) -> Measured:
    """Every result that a claim needs and that is here."""
    given = {"dataset": "db11", "profile": profile, "ours": denoising.our_systems(profile, native(dataset))}
    runs = {
        (task, schedule, seed): results.load(Experiment.of(task, dataset, schedule, seed, profile))
        for task in paper.TASKS
        for schedule in (*paper.SCHEDULES, *paper.FIXATED)
        for seed in seeds
    }
    runs |= load_extra(profile, dataset, seeds) | load_blocks(profile, dataset, seeds)
    return Measured(
        {key: result for key, result in runs.items() if result},
        denoising.table3(["on_demand", "fixated"], measure=False, **given),
        denoising.spectrum(["on_demand", "bm3d", ("bm3d", 25)], measure=False, **given),
    )


def load_extra(profile: str, dataset: str, seeds: list[int]) -> dict:
    """The runs of the extra-data test under the names of `results.EXTRA_DATA`."""
    found = {}
    with suppress(datasets.DataError):  # the size of a folder is not known where the folder is not
        for name, runs in results.extra_data_runs(extra_data("inpaint", dataset, profile, seeds)).items():
            found |= {("inpaint", name, run.experiment["seed"]): run for run in runs}
    return found


def load_blocks(profile: str, dataset: str, seeds: list[int]) -> dict:
    """The three methods of Table 2."""
    found = {}
    for seed in seeds:
        ours = Experiment.of("inpaint", dataset, "on_demand", seed, profile)
        found["blocks", "on_demand", seed] = blocks.load(ours)
        for method in INPAINTERS:
            found["blocks", method, seed] = results.load(context_encoder.run_of(method, ours))
    return found


# The claims: section, place in the paper, claim, the paper's value, test, measure


def claims_of_the_paper():
    """All of them, in the paper's order."""
    for section, group in zip(SECTIONS, (fixation, schedules, allocation, inpainters, denoisers), strict=True):
        for claim in group():
            yield section, *claim


def fixation():
    for task in paper.TASKS:
        yield (
            "Fig. 4, Supp. D",
            f"{plain(task).capitalize()}: trained at one severity, a model falls behind the all-rounder over the "
            "whole spectrum.",
            "curves only",
            "on-demand − fixated (easy, hard), mean PSNR, levels 1–6",
            partial(measures.fixated_behind, task=task),
        )
    for task in [task for task in paper.TASKS if task != "inpaint"]:
        own = " and ".join(paper.severity_text(task, name) for name in ("easy", "hard"))
        yield (
            "Fig. 4, Supp. D",
            f"{plain(task).capitalize()}: at its own severity the fixated model is the better one.",
            "curves only",
            f"fixated − on-demand, PSNR at {own}",
            partial(measures.spike, task=task),
        )
    yield (
        "Sec. 6.4, Supp. D",
        "Inpainting: a fixated model fails even at its own size once the square is not in the centre.",
        "curves only",
        "on-demand − fixated, squares anywhere: level 1 for 5×5 (easy), level 6 for 32×32 (hard)",
        measures.random_places,
    )


def schedules():
    for task in paper.TASKS:
        yield (
            "Supp. E" if task == "denoise" else "Table 1",
            f"{plain(task).capitalize()}: on-demand learning is the best of seven schedules in PSNR and L2.",
            paper_margins(task),
            "on-demand − each of six rivals, means over levels 1–6; L2 as 10 log₁₀ of its ratio",
            partial(measures.best_of_seven, task=task),
        )
    yield (
        "Table 1",
        "The lead of on-demand learning is statistically significant.",
        f"p = {paper.TABLE1_P_VALUE:.0e}",
        "paired t-test over trials against rigid joint (the paper names no rival), every task: ahead and p < 0.05 for "
        "each of two or more seeds",
        measures.significant,
    )
    yield (
        "Sec. 6.6",
        "On-demand learning is the best on the level on which nobody trained, too.",
        "no number",
        "on-demand − each of six rivals, PSNR on level 6, every task",
        measures.level_6,
    )
    yield (
        "Table 1",
        "A staged curriculum collapses on deblurring.",
        span(paper_gaps("rigid_joint", "staged_curriculum", ["deblur"])),
        "rigid joint − staged curriculum, mean PSNR: more than half of the paper's gap",
        measures.collapse,
    )
    yield (
        "Sec. 6.6",
        "A staged anti-curriculum overfits to what it saw last, the easiest level.",
        f"over all levels {span(paper_gaps('rigid_joint', 'staged_anti_curriculum'))}",
        "rigid joint − staged anti-curriculum: on level 5 more than on level 1, every task",
        measures.last_sub_task,
    )
    yield (
        "Table 1, Sec. 6.6",
        "Hard mining is inferior.",
        span(paper_gaps("on_demand", "hard_mining")),
        "on-demand − hard mining, mean PSNR, every task",
        measures.hard_mining,
    )
    yield (
        "Table 1, Sec. 6.6",
        "Rigid joint and both cumulative schedules are stronger rivals than the staged ones and hard mining.",
        span(worst_joint({s: row[k][1] for s, row in rows.items()}) for rows in paper.TABLE1.values() for k in (0, 1)),
        f"worst of the {len(JOINT)} − best of the others, mean PSNR, every task",
        measures.competitive,
    )


def allocation():
    yield (
        "Sec. 6.6",
        "During training the batch shifts to the harder levels.",
        "no number",
        "level 5 − level 1 in the last batch, every task; a whole image counts, also with one seed",
        measures.shifts,
    )
    yield (
        "Sec. 6.6",
        "The easiest level is never abandoned.",
        "no number",
        "fewest images of level 1 in any epoch, every task: more than 10, half of an equal share",
        measures.never_abandons,
    )
    yield (
        "Sec. 6.6",
        "Twice the images do not help rigid joint learning.",
        "no number",
        "inpainting, rigid joint: all images − half of them, mean PSNR: at most 0.1 dB",
        measures.extra_images,
    )
    yield (
        "Sec. 6.6",
        "On-demand learning with half as many images stays ahead of rigid joint learning.",
        "no number",
        "inpainting, on-demand with half of the images − rigid joint with all, mean PSNR",
        measures.half_the_images,
    )


def inpainters():
    psnr = {method: [cell[1] for cell in cells] for method, cells in paper.TABLE2.items()}
    ours, centre, random = psnr["on_demand"], psnr[CENTRE], psnr[RANDOM]
    yield (
        "Table 2",
        "A context encoder for the centre beats the all-rounder on the central block.",
        span([centre[0] - ours[0]]),
        "centre encoder − on-demand, PSNR inside the central block",
        measures.centre_wins,
    )
    yield (
        "Table 2",
        "The context encoder for the centre fails on a block anywhere else.",
        span([centre[0] - centre[1]]),
        "centre encoder, central − arbitrary block: more than 3 dB, twice the error",
        measures.centre_fails,
    )
    yield (
        "Table 2",
        "With random region dropout, a context encoder is still far behind the all-rounder.",
        span(a - b for a, b in zip(ours, random, strict=True)),
        "on-demand − that encoder, PSNR inside either block",
        measures.random_behind,
    )
    yield (
        "Table 2",
        "The all-rounder does about as well in both places.",
        span([ours[0] - ours[1]]),
        "on-demand, central and arbitrary block: less than 1 dB apart",
        measures.same_in_both,
    )


def denoisers():
    for system, name in (("on_demand", "the all-rounder"), ("fixated", "the same network trained for it")):
        won = images_won(system)
        yield (
            "Table 3",
            f"At σ = 25 {name} beats six published denoisers on {won} of {len(paper.TABLE3)} images.",
            f"{won} of {len(paper.TABLE3)}",
            f"DB11, clipped noise − the best published number of an image: the {won}th best lead is above 0",
            partial(measures.wins, system=system),
        )
    yield (
        "Fig. 6",
        "The all-rounder does well at every noise level without knowing σ.",
        "curves only",
        "DB11, − BM3D told the true σ: nowhere more than 0.5 dB behind",
        measures.whole_spectrum,
    )
    yield (
        "Fig. 6",
        "BM3D told 25 whatever comes breaks down at other noise levels.",
        "curves only",
        "DB11, BM3D told 25 − told the truth: more than 3 dB lost at some σ above 25; no seed is involved",
        measures.bm3d_collapses,
    )
    yield (
        "Fig. 6",
        "An MLP trained at σ = 25 does well only there.",
        "curves only",
        "none: the authors' MLP is not run here",
        measures.mlp,
    )


def paper_margins(task: str) -> str:
    """On-demand against its closest rival in Table 1, on CelebA and SUN397."""
    rows = paper.TABLE1[task]
    psnr = [min(rows["on_demand"][k][1] - rows[rival][k][1] for rival in RIVALS) for k in (0, 1)]
    l2 = [min(10 * log10(rows[rival][k][0] / rows["on_demand"][k][0]) for rival in RIVALS) for k in (0, 1)]
    return f"PSNR {span(psnr)}; L2 {span(l2)}"


# In plain words


def summary(table: pd.DataFrame, runs: dict, dataset: str) -> str:
    """How many claims hold, which do not, and what limits the scale (Markdown)."""
    counts, missing = table.verdict.value_counts(), (table.measured == NOT_MEASURED).sum()
    held, failed, untested = (int(counts.get(verdict, 0)) for verdict in VERDICTS)
    lines = [
        f"Of {len(table)} claims {held} are **reproduced**, {failed} are **not reproduced**, and {untested} are **not "
        f"tested at this scale**: {missing} are not measured at all, {untested - missing} are measured in part or too "
        "closely to call.",
        listed("Reproduced", table[table.verdict == REPRODUCED]),
        listed("Not reproduced", table[table.verdict == FAILED]),
        "**What limits this.** " + limits(runs, dataset),
    ]
    return "\n\n".join(line for line in lines if line)


def listed(title: str, rows: pd.DataFrame) -> str:
    """A bulleted list of claims by their numbers; empty when there are none."""
    return (
        "\n".join([f"**{title}**\n", *(f"- No. {r.number}: {r.claim}" for r in rows.itertuples())]) if len(rows) else ""
    )


def limits(runs: dict, dataset: str) -> str:
    """Scale, seeds and data set."""
    trained = [run for (task, schedule, _), run in runs.items() if task in paper.TASKS and schedule in paper.SCHEDULES]
    if not trained:
        return "No schedule is measured with this profile and data set; `table1.ipynb` and `fixation.ipynb` train them."
    seeds = {}
    for task, schedule, seed in runs:
        seeds.setdefault((task, schedule), set()).add(seed)
    alone = sum(len(s) == 1 for s in seeds.values())
    words = f"{claims.scale(trained)} {alone} of {len(seeds)} runs have one seed only. "
    if datasets.parse(dataset)[0] not in ("celeba", "sun397"):
        words += (
            f"These are not the photographs of CelebA and SUN397: what the paper claims of them is tested as the same "
            f"claim on {datasets.slug(dataset)}, and none of its numbers there is tested. "
        )
    return words + (
        "What the paper sees after 1,500,000 iterations may be absent here and still be true there: "
        f'"{FAILED}" means at this scale, and "{UNTESTED}" is no evidence either way.'
    )
