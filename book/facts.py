"""Every number that a page takes from the results files, by name: `{{ feedback.moved }}`.

A number has digits and a unit, and no sentence.
"""

from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from appendix import GRID, flops, layers, rate, run_flop, step_flop
from measured import DATASET, NOT_MEASURED, PAIR, PROFILE, SEEDS, duration, load, on_disk, wide, worlds
from scipy import stats

from companion import judge, published
from companion.claims.claims import LONG_RUN, NARROW
from companion.disk import files
from companion.judge import COMPOSITE, LEVELS, gaps
from companion.measure import cards
from companion.measure import photographs as measured_photographs
from companion.pages import db11_spectrum, dose, fixation, table1, table2, table3
from companion.pages.today import OF_UNET, removed_shares
from companion.runs import catalogue, plan
from companion.training import results
from odl import paper
from odl.experiment import PROFILES
from odl.schedules import HARD_MINING_WARM_UP

EQUATION3, EQUAL = PAIR
STRONG, EASY = dose.NAMES[4], dose.NAMES[-4]
TOLD = "on_demand_composite"  # Equation 3 with the composite as its score
CURRICULUM, MINIMAX, SECOND_MOMENT = "cumulative_curriculum", "minimax_gap", "second_moment"
LEVEL_5 = str(paper.N_LEVELS)
TEST_PHOTOGRAPHS = 50  # of bsds500: half of what it has for validation
RULES_TODAY = {EQUATION3: "Equation 3", STRONG: "k = 4", SECOND_MOMENT: "√E[L²]", "inverse_mse": "1/MSE"}
RULES_TODAY |= {CURRICULUM: "curriculum"}  # that both networks, or the newer one alone, trained with
TINY = 1e-10  # a p-value that nobody would call chance


class Number(NamedTuple):
    """A value, or the least and the most of several; None where nothing is measured."""

    value: float | tuple[float, float] | None
    digits: int = 0
    unit: str = ""
    signed: bool = False

    def __str__(self):
        """Return `1,500,000`, `+0.02 dB` or `−0.02 to +0.01 dB`, as a page says it."""
        if self.value is None:
            return NOT_MEASURED
        values = self.value if isinstance(self.value, tuple) else [self.value]
        said = dict.fromkeys(f"{x:{'+' * self.signed},.{self.digits}f}" for x in values)
        return " to ".join(said).replace("-", "−") + self.unit


count, share_of = Number, partial(Number, unit=" %")
psnr = partial(Number, digits=2, unit=" dB")
margin = partial(Number, digits=2, unit=" dB", signed=True)


def span(values, make=margin) -> Number:
    """Return one number from the least to the most of those values that are measured."""
    values = [value for value in values if value is not None and np.isfinite(value)]
    return make((min(values), max(values)) if values else None)


def mean(values, make=margin) -> Number:
    return make(np.mean(values) if len(values) else None)


def sets() -> dict[str, judge.Evidence]:
    """Return `scenes`, `faces` and, at the paper's width on a GPU, `wide` → what is measured there."""
    return worlds() | {"wide": wide()}


def runs_on(name: str) -> dict:
    """Return the runs on one of `sets`, none where nothing is measured there."""
    return sets().get(name, judge.Evidence()).runs


def mean_margin(name: str, task: str, one: str, other: str, *how) -> float | None:
    """Return the mean over seeds of a margin (dB) on one of `sets`; `how`: levels, column of the evaluation."""
    found = gaps(runs_on(name), task, one, other, *how)
    return float(np.mean(found)) if found else None


def over(one: str, other: str, names=("scenes", "faces", "wide"), tasks=tuple(paper.TASKS), *how) -> list[float]:
    """Return `mean_margin` of every set and task that is measured."""
    found = [mean_margin(name, task, one, other, *how) for name, task in product(names, tasks)]
    return [value for value in found if value is not None]


def moved(schedule: str, names=("scenes", "faces", "wide")) -> list[float]:
    """Return how many images of 100 a schedule gives to other levels than equal shares would, for each set and task."""
    here = map(runs_on, names)
    runs = [judge.runs_of(of_set, schedule, [task]) for of_set, task in product(here, paper.TASKS)]
    return [moved_by(found) for found in runs if found]


def moved_by(runs: list) -> float | None:
    """Return how many images of 100 some runs of a schedule give to other levels than equal shares would, on average.

    A dose is the mean deviation of a level's share.
    """
    return 100 * paper.N_LEVELS / 2 * np.mean([judge.dose_of(run) for run in runs]) if runs else None


# By chapter


def shipped() -> dict:
    sizes = [path.stat().st_size for path in files.shipped().glob("*.safetensors")]
    return {"networks": count(len(sizes)), "megabytes": Number(sum(sizes) / 1e6, 0, " MB")}


def profile(name: str) -> dict:
    """Return a profile's numbers, and what follows from them."""
    p = PROFILES[name]
    steps = p["epochs"] * p["iterations"]
    return {key: count(value) for key, value in p.items() if isinstance(value, int)} | {
        "steps": count(steps),
        "rate": rate(p),
        "less": Number(step_flop(3, 64, 1) / step_flop(3, p["width"], 1), 1),
        "step": flops(step_flop(3, p["width"], p["batch_size"])),
        "run": flops(run_flop(p)),
        "megabytes": count(plan.STATES * 4 * sum(layer[3] for layer in layers(3, p["width"])) / 1e6),
        "precision": p["precision"],
        "drawn": count(p["batch_size"] * steps * HARD_MINING_WARM_UP / p["pool_images"]),
    }


def problem() -> dict:
    """Return numbers on fixation: what it costs, that equal shares cure it, and by how much they worsen mild damage."""
    tables = [fixation.margins_table(evidence) for evidence in worlds().values()]
    over_levels = [row for table in tables for row in table.itertuples() if not row.comparison.endswith("own severity")]
    differ = [abs(row.on_demand - row.rigid_joint) for table in tables for row in table.itertuples()]
    in_hole = LEVELS, "psnr_hole"
    return {
        "least": psnr(min((row.rigid_joint for row in over_levels), default=None), digits=1),
        "most": psnr(max((row.rigid_joint for row in over_levels), default=None), digits=1),
        "comparisons": count(len(over_levels)),
        "apart": psnr(max(differ, default=None)),
        "on_milder": mean(scores_of("faces", "deblur", "fixated_hard", ["1"]), partial(psnr, digits=0)),
        "harm": span((-x for x in gains_on("1")), partial(psnr, digits=0)),
        "harm_usual": span((-x for x in gains_on("1", ("faces",), ["denoise"])), partial(psnr, digits=1)),
        "harm_wide": span((-x for x in gains_on("1", ("wide",), ["denoise"])), partial(psnr, digits=1)),
        "given_back_severe": mean(removed_shares(sets_faces(), "deblur", "fixated_hard"), share_of),
        "given_back_mild": mean(removed_shares(sets_faces(), "denoise", "fixated_easy"), share_of),
        "anywhere_easy": mean(gaps(runs_on("faces"), "inpaint", EQUAL, "level_1", *in_hole), partial(psnr, digits=1)),
        "anywhere_hard": mean(gaps(runs_on("faces"), "inpaint", EQUAL, "level_5", *in_hole), partial(psnr, digits=1)),
    }


def gained(runs: list, level: str, column="psnr") -> float:
    """Return by how much (dB) networks raise the PSNR of the damaged pictures of a level, mean over seeds."""
    return np.mean([judge.gained(run, [level], column) for run in runs])


def gains_on(
    level: str, names=("scenes", "faces", "wide"), tasks=("inpaint", "deblur", "denoise"), by=EQUAL
) -> list[float]:
    """Return how much (dB) a schedule changes the damaged picture's PSNR on a level, all pixels, per set and task."""
    each = (judge.runs_of(runs_on(name), by, [task]) for name, task in product(names, tasks))
    return [gained(runs, level) for runs in each if runs]


def feedback() -> dict:
    """Return what Equation 3 and four times as much feedback move, and what comes of it by both scores."""
    contests = [gaps(evidence.runs, task, *PAIR) for evidence in sets().values() for task in paper.TASKS]
    contests = [margins for margins in contests if margins]
    cases = [judge.runs_of(evidence.runs, EQUATION3, [t]) for evidence in sets().values() for t in paper.TASKS]
    of_seeds = [[moved_by([run]) for run in runs] for runs in cases if runs]
    reach = [np.abs(judge.narrow_interval(each)).max() for each in contests if len(each) >= judge.MIN_SEEDS]
    printed = np.array([[published.TABLE1[task][schedule] for schedule in PAIR] for task in paper.TASKS])
    ours, equal = np.moveaxis(printed, 1, 0)  # each (4 tasks, 2 data sets, L2 and PSNR)
    late = [dose.early_margins(evidence, task) for evidence in sets().values() for task in paper.TASKS]
    long = dose.load_runs(catalogue.ladder(PROFILE, DATASET, SEEDS))
    long_pair = [name + LONG_RUN for name in PAIR]
    tables = [dose.levels_table(evidence) for evidence in worlds().values()]
    pulls = [norm for table in tables for norm in table.pull[table.level == paper.N_LEVELS]]  # level 1's is 1
    return {
        "moved": mean(moved(EQUATION3), partial(Number, digits=1)),
        "moved_span": span(moved(EQUATION3), count),
        "moved_apart": Number(max(map(np.ptp, of_seeds), default=None), 1),
        "contests": count(len(contests)),
        "within": psnr(max(reach, default=None)),
        "within_most": psnr(sorted(reach)[-2] if reach[1:] else None),
        "paper": span((ours - equal)[..., 1].ravel()),
        "paper_error": Number(100 * (1 - ours / equal)[..., 0].max(), 0, " %"),
        "late": span(np.mean(margins) for margins in late if margins),
        "long_steps": count(60_000),
        "long": mean(gaps(long.runs, "inpaint", *long_pair)),
        "long_moved": Number(moved_by(judge.runs_of(long.runs, long_pair[0], ["inpaint"])), 1),
        "long_moved_usual": Number(moved_by(judge.runs_of(runs_on("scenes"), EQUATION3, ["inpaint"])), 1),
        "strong_moved": span(moved(STRONG), count),
        "strong_most": psnr(max(map(abs, over(STRONG, EQUAL)), default=None)),
        "strong_easy": span(over(STRONG, EQUAL, ("faces",), tuple(paper.TASKS), ["1"])),
        "strong_hard": span(over(STRONG, EQUAL, ("faces",), tuple(paper.TASKS), [LEVEL_5])),
        "noise_hard": psnr(mean_margin("faces", "denoise", STRONG, EQUAL, [LEVEL_5])),
        "hole_inpaint": psnr(mean_margin("faces", "inpaint", STRONG, EQUAL, [LEVEL_5], COMPOSITE)),
        "hole_interpolate": psnr(mean_margin("faces", "interpolate", STRONG, EQUAL, [LEVEL_5], COMPOSITE)),
        "easy_deblur": psnr(mean_margin("faces", "deblur", EASY, EQUAL)),
        "easy_denoise": psnr(mean_margin("faces", "denoise", EASY, EQUAL)),
        "pull": span(pulls, partial(Number, digits=1)),
        "told_inpaint": count(moved_by(judge.runs_of(runs_on("faces"), TOLD, ["inpaint"]))),
        "told_interpolate": count(moved_by(judge.runs_of(runs_on("faces"), TOLD, ["interpolate"]))),
        "told_hard": span(over(TOLD, EQUAL, ("faces",), paper.MASKED, [LEVEL_5], COMPOSITE), psnr),
        "told_mean": margin(mean_margin("faces", "inpaint", TOLD, EQUAL, LEVELS, COMPOSITE)),
        "narrow_loss": psnr(mean_margin("faces", "denoise", EQUAL + NARROW, STRONG + NARROW)),
    }


def contest() -> dict:
    """Return numbers on Table 1 and rules since 2017 by both scores, and on the paper's test of pairs of networks."""
    cases = {*product(published.PARTIAL, paper.TASKS)} - {("staged_curriculum", "inpaint")}
    left_out = [-x for name, task in cases for x in over(name, EQUAL, ("scenes", "faces"), [task])]
    forgets = over("staged_curriculum", EQUAL, ("faces",), ["inpaint"], LEVELS, COMPOSITE)
    joint = [gap for name in (EQUATION3, *published.CUMULATIVE) for gap in over(name, EQUAL)]
    evidence = load()
    test = table1.papers_test(evidence)
    small = test[test.p < TINY]
    pair = [(t, g) for t in paper.TASKS if len(g := gaps(evidence.runs, t, *PAIR)) >= judge.MIN_SEEDS]
    ratios = [stats.sem(g) / stats.sem(photograph_margins(evidence, t)) for t, g in pair]
    scored = product(paper.TASKS, ("psnr", COMPOSITE))
    worst = {(task, c): table1.worst_gap_margins(sets_faces(), task, MINIMAX, EQUATION3, c) for task, c in scored}
    found = {
        "left_out": span(left_out, partial(psnr, digits=1)),
        "forgets_holes": span((-x for x in forgets), partial(psnr, digits=1)),
        "collapse": mean(scores_of("faces", "deblur", "staged_curriculum"), partial(psnr, digits=1)),
        "collapse_equal": mean(scores_of("faces", "deblur", EQUAL), partial(psnr, digits=1)),
        "joint": span(joint),
        "pairs": count(len(test)),
        "small": count(len(small)),
        "apart": psnr(small.ahead.abs().max() if len(small) else None),
        "ahead": count(int((small.ahead > 0).sum())),
        "behind": count(int((small.ahead < 0).sum())),
        "ratio": span(ratios, count),
        "worst": span((np.mean(g) for (_, c), g in worst.items() if g and c == "psnr"), psnr),
        "mse": span(over("inverse_mse", EQUAL, ("faces", "wide"))),
        "mse_composite": mean(gaps(wide().runs, "inpaint", "inverse_mse", EQUAL, LEVELS, COMPOSITE)),
    }
    for name, task in (("", "deblur"), ("_interpolate", "interpolate"), ("_denoise", "denoise")):
        found[f"given_back{name}"] = mean(removed_shares(sets_faces(), task, "staged_curriculum"), share_of)
    told = {"told": (f"{MINIMAX}_composite", EQUATION3), "printed": (EQUATION3, EQUAL), "strong": (STRONG, EQUAL)}
    for name, pair in told.items():
        found[f"worst_{name}"] = mean(table1.worst_gap_margins(sets_faces(), "inpaint", *pair, COMPOSITE), psnr)
    leads = [
        *product(("scenes", "faces", "wide"), ["deblur"]),
        *product(["faces"], paper.MASKED),
        ("scenes", "denoise"),
    ]
    for name, task in leads:
        found[f"{task}_{name}"] = apart(mean_margin(name, task, CURRICULUM, EQUATION3))
    for task in paper.MASKED:
        found[f"{task}_faces_composite"] = apart(mean_margin("faces", task, CURRICULUM, EQUATION3, LEVELS, COMPOSITE))
        found[f"worst_{task}_composite"] = apart(np.mean(worst[task, COMPOSITE]) if worst[task, COMPOSITE] else None)
    return found


def apart(margin: float | None) -> Number:
    """Return a margin without its sign, which the sentence has."""
    return psnr(None if margin is None else abs(margin))


def sets_faces() -> judge.Evidence:
    return worlds().get("faces", judge.Evidence())


def scores_of(name: str, task: str, schedule: str, levels=LEVELS) -> list[float]:
    return [judge.score(run, levels) for run in judge.runs_of(runs_on(name), schedule, [task])]


def photograph_margins(evidence: judge.Evidence, task: str) -> np.ndarray:
    """Return the margin of `PAIR` (dB) on each test photograph, mean over seeds, levels 1…6 and the crops of it."""
    seeds = []
    for both in judge.paired(evidence.runs, task, *PAIR):
        one, other = (results.per_image(run)[: len(LEVELS)].mean(0) for run in both)
        seeds.append((one - other).reshape(-1, TEST_PHOTOGRAPHS))  # `crops.fixed_crops` takes photographs in turn
    return np.mean(seeds, axis=(0, 1))


def others() -> dict:
    """Return numbers on Tables 2 and 3, Figure 6, and the fill that learns nothing."""
    evidence = load()
    table, scratches = measured_photographs.table(measured_photographs.ROWS).set_index("damage"), "mask: scratches"
    curves = db11_spectrum.mean_curves(evidence)[["on_demand", "bm3d", "bm3d25"]].dropna()
    gap = curves.on_demand - curves.bm3d
    ahead = table3.ahead_of_specialist(evidence, clipped=True)  # as in the rest of the chapter
    near = ahead.mean(axis="columns").dropna()  # on each photograph
    smooth = table2.judge_classical(evidence).measured
    return {
        "low": psnr(-gap.iloc[0] if len(gap) else None, digits=1),
        "high": psnr(gap.iloc[-1] if len(gap) else None, digits=1),
        "wrong": psnr((curves.bm3d - curves.bm3d25)[50] if 50 in curves.index else None, digits=1),
        "specialist": psnr(-ahead.mean().mean() if len(near) else None),
        "specialist_paper": psnr(table3.MAX_BEHIND / 2),
        "near": count(int((near > -table3.MAX_BEHIND).sum()) if len(near) else None),
        "photographs": count(len(near) or None),
        "smooth": span((-part.mean for part in smooth.values()), psnr),
        "network": psnr(table.paper.get(scratches), digits=1),
        "biharmonic": psnr(table.rival_psnr.get(scratches), digits=1),
    }


def photographs() -> dict:
    """Return how often networks for photographs are above the damaged one, and above the best classical one."""
    table, noisy = map(measured_photographs.table, (measured_photographs.ROWS, measured_photographs.ON_DB11))
    deblurred = cards.result_of(cards.place_of("photo_deblur"))
    harm = cards.level_means(deblurred).eval("psnr_input - psnr")["1"] if deblurred else None
    return {
        "rows": count(len(table)),
        "improved": count(int((table.photographs > table.damaged).sum())),
        "ahead": count(int((table.photographs > table.rival_psnr).sum())),
        "mild_blur": psnr(harm, digits=1),
        "faint": psnr((table.rival_psnr - table.photographs).set_axis(table.damage).get("noise 5"), digits=1),
        "db11": psnr(noisy.set_index("damage").photographs.get("DB11, noise 25, not clipped")),
        "db11_paper": psnr(np.mean([row["on_demand"] for row in published.TABLE3.values()])),
    }


def today() -> dict:
    """Return numbers on the residual U-Net beside the network of 2017, on faces: equal shares and feedback in both."""
    equal, fed, strong, mse = (name + OF_UNET for name in (EQUAL, EQUATION3, STRONG, "inverse_mse"))
    second, edm = SECOND_MOMENT + OF_UNET, "edm" + OF_UNET
    runs, of_two = sets_faces().runs, ("inpaint", "denoise")
    lead, kept = partial(over, equal, EQUAL, ("faces",)), (LEVELS, COMPOSITE)
    gains = {name: partial(over, name, equal, ("faces",)) for name in (fed, strong, mse)}
    pairs = judge.paired(runs, "inpaint", fed, equal)
    errors = [100 * (1 - judge.score(one, column="l2") / judge.score(other, column="l2")) for one, other in pairs]
    spread = {name: [np.ptp(run.history[-1]["psnr"]) for run in judge.runs_of(runs, name)] for name in (EQUATION3, fed)}
    cases = [fixation.contests(task, own, EQUAL, OF_UNET) for task in paper.TASKS for own in ("easy", "hard")]
    lost, at_home = ([gaps(runs, *pair) for pair in pairs] for pairs in zip(*cases, strict=True))
    return {
        "mild": mean(scores_of("faces", "deblur", equal, ["1"]), partial(psnr, digits=0)),
        "below": span((-x for x in gains_on("1", ("faces",), ["deblur"], equal)), partial(psnr, digits=1)),
        "below_2017": span((-x for x in gains_on("1", ("faces",), ["deblur"])), partial(psnr, digits=1)),
        "ahead": span(lead(), partial(psnr, digits=1)),
        "ahead_interpolate": span(lead(["interpolate"], *kept), partial(psnr, digits=1)),
        "behind_inpaint": span((-x for x in lead(["inpaint"], *kept)), partial(psnr, digits=1)),
        "apart": mean(spread[fed], partial(psnr, digits=0)),
        "apart_2017": mean(spread[EQUATION3], partial(psnr, digits=0)),
        "moved": mean(moved(fed, ("faces",)), partial(Number, digits=1)),
        "moved_2017": mean(moved(EQUATION3, ("faces",)), partial(Number, digits=1)),
        "loss_1": span((-x for x in gains[fed](of_two, ["1"])), psnr),
        "gain_5": psnr(mean_margin("faces", "inpaint", fed, equal, [LEVEL_5])),
        "error": mean(errors, partial(Number, digits=1, unit=" %")),
        "strong_moved": span(moved(strong, ("faces",)), count),
        "strong_inpaint": psnr(mean_margin("faces", "inpaint", strong, equal)),
        "strong_loss": span((-x for x in gains[strong](("deblur", "denoise"))), psnr),
        "strong_loss_1": psnr(min((-x for x in gains[strong](tuple(paper.TASKS), ["1"])), default=None)),
        "strong_gain_5": psnr(max(gains[strong](tuple(paper.TASKS), [LEVEL_5]), default=None)),
        "second_moved": count(moved_by(judge.runs_of(runs, second, ["inpaint"]))),
        "second_inpaint": psnr(mean_margin("faces", "inpaint", second, equal)),
        "edm_1": psnr(mean_margin("faces", "denoise", edm, equal, ["1"]), digits=1),
        "edm_loss": apart(mean_margin("faces", "denoise", edm, equal)),
        "curriculum": span((-x for x in over(CURRICULUM + OF_UNET, equal, ("faces",))), partial(psnr, digits=1)),
        "mse_loss": span((-x for x in gains[mse](("inpaint", "deblur"))), partial(psnr, digits=1)),
        "fixated": span((np.mean(margins) for margins in lost if margins), partial(psnr, digits=1)),
        "at_home": count(int(sum((np.array(margins) > 0).sum() for margins in at_home)) if any(at_home) else None),
        "fixated_networks": count(sum(map(len, at_home)) or None),
    }


def cost() -> dict:
    """Return what the paper's length would cost at the speed of the runs of the book."""
    runs = on_disk(catalogue.grid(PROFILE, DATASET, SEEDS, (*published.SEVEN, *published.FIXATED)))
    speeds = [run_flop(run.experiment) / run.provenance["seconds"]["train"] for run in runs]
    speed = np.median(speeds) if speeds else None
    return {
        "grid": count(GRID),
        "runs": count(len(runs)),
        "device": runs[0].provenance["device"] if runs else None,
        "speed": Number(speed and speed / 1e9, 0, " GFLOP/s"),
        "time": duration(run_flop(PROFILES["paper"]) / speed) if speed else None,
    }


def gpu() -> dict:
    """Return the numbers of profile `gpu`, and on what the runs at the paper's width were trained."""
    found = [run.provenance for run in wide().runs.values()]
    devices, versions = {run["device"] for run in found}, {run["versions"]["torch"] for run in found}
    return profile("gpu") | {
        "device": found and f"one {' and '.join(sorted(devices))}",
        "versions": found and f"PyTorch {' and '.join(sorted(versions))}",
    }


FACTS = {make.__name__: make for make in (shipped, problem, feedback, contest, others, today, photographs)}
FACTS |= {name: partial(profile, name) for name in ("paper", "reference")} | {"cost": cost, "gpu": gpu}
