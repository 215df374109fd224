"""What the chapters take from the results files: numbers by name, for `{{ feedback.dose }}`, and a few tables."""

import re
from functools import partial
from itertools import product

import numpy as np
import one_gpu
import reasons
import yaml
from answer import at_full_width, cured_within, one_in
from appendix import GRID, flops, layers, rate, run_flop, step_flop
from lab_page import fills
from measured import (
    DATASET,
    NOT_MEASURED,
    PAIR,
    PROFILE,
    ROOT,
    SEEDS,
    duration,
    listed,
    load,
    markdown,
    tab_set,
    worlds,
)
from results_table import book_runs, scorecards
from scipy import stats

from companion import judge, published
from companion.claims import claims
from companion.claims.predictions import beside
from companion.disk import files
from companion.disk.provenance import commit
from companion.judge import plain, signed, span
from companion.measure import gradients_and_pool
from companion.pages import db11_spectrum, dose, fixation, table1, table2, table3
from companion.runs import catalogue, plan
from companion.training import results
from odl import paper
from odl.experiment import PROFILES
from odl.schedules import HARD_MINING_WARM_UP

SHARP, LAST = dose.NAMES[4], str(paper.N_LEVELS)
TEST_PHOTOGRAPHS = 50  # of bsds500: half of what it has for validation
AGAINST = {judge.REPRODUCED: "ahead", judge.REVERSED: "behind", judge.EQUIVALENT: "alike", judge.UNDECIDED: "open"}
LITTLE = 1e-10  # a p-value that nobody would call chance
NONE = "no task"


def of(values, say) -> str:
    """What `say` makes of some values, or that there are none."""
    values = list(values)
    return say(values) if values else NOT_MEASURED


def ends(values, unit="", digits=1) -> str:
    """From the least to the most: `0.4 to 0.9 %`."""
    return of(values, lambda v: " to ".join(dict.fromkeys(f"{e(v):.{digits}f}" for e in (min, max))) + unit)


def mean_margins(m, one: str, other: str, levels=judge.LEVELS) -> list[float]:
    """Mean margin (dB) of each task where it is measured."""
    found = [judge.gaps(m.runs, task, one, other, levels) for task in paper.TASKS]
    return [np.mean(margins) for margins in found if margins]


def on_each(say) -> str:
    """What `say` makes of what is measured on a data set: `+0.01 dB on scenes and +0.02 dB on faces`; once where it is
    the same, and without a set of which there is nothing to tell where there is of the other."""
    said = {title: text for title, m in worlds().items() if (text := say(m)) != NOT_MEASURED}
    said = {title: text for title, text in said.items() if text != NONE} or said
    if len(said) > 1 and len({*said.values()}) == 1:
        return f"{next(iter(said.values()))} on both {' and '.join(said)}"
    return " and ".join(f"{text} on {title}" for title, text in said.items()) or NOT_MEASURED


def words(m) -> str:
    """`equivalent on denoising; undecided on inpainting`: the verdicts on `PAIR`."""
    found = {plain(task): judge.compare(m, {"": (task, *PAIR)}).word for task in paper.TASKS}
    if {*found.values()} == {NOT_MEASURED}:
        return NOT_MEASURED
    tasks = {word: listed([task for task in found if found[task] == word]) for word in found.values()}
    return "; ".join(f"{word} on {tasks[word] if len(tasks) > 1 else 'all four tasks'}" for word in tasks)


def fixated_margins(m) -> list[list]:
    """On-demand's margins (dB) over the levels of each fixated model measured, and the model's at its own severity."""
    kinds = zip(*(fixation.contests(task, own) for task in paper.TASKS for own in ("easy", "hard")), strict=True)
    return [[gaps for c in kind if (gaps := judge.gaps(m.runs, *c))] for kind in kinds]


def photograph_margins(m, task: str) -> np.ndarray:
    """The margin of `PAIR` on each test photograph, mean over seeds, levels 1…6 and the crops of it."""
    seeds = []
    for pair in judge.paired(m.runs, task, *PAIR):
        one, other = (results.per_image(run)[: len(judge.LEVELS)].mean(0) for run in pair)
        seeds.append((one - other).reshape(-1, TEST_PHOTOGRAPHS))  # `crops.fixed_crops` takes photographs in turn
    return np.mean(seeds, axis=(0, 1))


def steps_of(run) -> int:
    return run.experiment["epochs"] * run.experiment["iterations"]


def certain(m, one: str, other: str, sign: int) -> str:
    """The tasks on which the whole interval of the mean margin lies above 0, or with sign −1 below."""
    found = {task: judge.gaps(m.runs, task, one, other) for task in paper.TASKS}
    found = {task: margins for task, margins in found.items() if len(margins) >= judge.ENOUGH}
    tasks = [plain(task) for task, margins in found.items() if judge.interval(sign * np.array(margins))[0] > 0]
    return (listed(tasks) if tasks else NONE) if found else NOT_MEASURED


def traded(m) -> dict[str, tuple[float, float]]:
    """By how much four times the feedback changes level 5 and level 1 of each task (dB), against equal shares."""
    found = {task: [judge.gaps(m.runs, task, SHARP, PAIR[1], [level]) for level in (LAST, "1")] for task in paper.TASKS}
    return {plain(task): tuple(map(np.mean, both)) for task, both in found.items() if all(both)}


def each_traded(m) -> str:
    """`inpainting −0.02 and −0.09; … dB`: level 5 and level 1."""
    found = "; ".join(f"{task} {' and '.join(map(judge.number, both))}" for task, both in traded(m).items())
    return f"{found} dB" if found else NOT_MEASURED


def no_gain(m) -> str:
    """On how many tasks level 5 gains no more than level 1 loses."""
    return of(traded(m).values(), lambda v: f"{sum(hard + easy <= 0 for hard, easy in v)} of {len(v)} tasks")


def hard_loss(m) -> str:
    """What levels 4 and 5 have of the squared error of equal shares over levels 1 to 5, from task to task."""
    shares = []
    for task in paper.TASKS:
        for [run] in judge.paired(m.runs, task, PAIR[1]):
            error = [judge.score(run, [str(level)], "l2") for level in range(1, paper.N_LEVELS + 1)]
            shares.append(100 * sum(error[-2:]) / sum(error))
    return ends(shares, " %", 0)


def pulls(m) -> list[np.ndarray]:
    """Of each task the gradient norms of levels 1 to 5 under equal shares, means over seeds."""
    found = [judge.paired(m.runs, "gradients", f"{task} {PAIR[1]}") for task in paper.TASKS]
    return [np.mean([[*gradients_and_pool.norms(run).values()] for [run] in runs], axis=0) for runs in found if runs]


def growth(m) -> np.ndarray:
    """Doses of Equation 3 (%) in the last epoch: after our length, after a longer one, and on to the paper's."""
    pairs = [(m.runs.get((task, PAIR[0], seed)), long) for (task, seed), long in m.long.items()]
    pairs = [pair for pair in pairs if pair[0]]
    if not pairs:
        return np.empty((3, 0))
    short, long = np.transpose([[100 * run.history[-1]["dose"] for run in pair] for pair in pairs])
    steps = [steps_of(run) for run in pairs[0]]
    each = (long - short) / np.log(steps[1] / steps[0])
    return np.array([short, long, long + each * np.log(dose.PAPERS_STEPS / steps[1])])


def long_gain() -> str:
    """The margin of Equation 3 over equal shares after the longest training; on scenes with the judge's word."""
    pair = [f"{name}{claims.LONGEST}" for name in PAIR]
    m, said = dose.load(catalogue.ladder(PROFILE, DATASET, SEEDS)), []
    for task in catalogue.LADDER:
        if margins := judge.gaps(m.runs, task, *pair):
            word = judge.compare(m, {"": (task, *pair)}).word
            count = judge.count_seeds({"": margins})
            said.append(f"{judge.estimate(margins)} on {plain(task)} ({count}, *{word}*)")
    return "on scenes by " + of(said, " and ".join) + long_on_faces(worlds().get("faces", judge.Measured()), pair)


def long_on_faces(m, pair) -> str:
    """`; on faces, trained on one NVIDIA H200, by …`, where that is measured."""
    found = {task: margins for task in paper.TASKS if (margins := judge.gaps(m.runs, task, *pair))}
    devices = [f"one {run.provenance['device']}" for run in judge.runs_of(m.runs, pair[0])]
    each = [f"{judge.estimate(margins)} on {plain(task)}" for task, margins in found.items()]
    return f"; on faces, trained on {listed(devices)}, by {listed(each)} ({judge.count_seeds(found)})" if found else ""


# Numbers by name


def numbers_of(profile: str) -> dict:
    """A profile's numbers, and what follows from them."""
    p, full = PROFILES[profile], PROFILES["paper"]
    steps, step = p["epochs"] * p["iterations"], step_flop(3, p["width"], p["batch_size"])
    parameters = sum(layer[3] for layer in layers(3, p["width"]))
    return {name: f"{number:,}" for name, number in p.items() if isinstance(number, int)} | {
        "steps": f"{steps:,}",
        "rate": rate(p),
        "precision": p["precision"],
        "step": flops(step),
        "run": flops(run_flop(p)),
        "less": f"{step_flop(3, full['width'], 1) / step_flop(3, p['width'], 1):.1f}",
        "drawn": f"{p['batch_size'] * steps * HARD_MINING_WARM_UP / p['pool_images']:.0f}",
        "megabytes": f"{plan.STATES * 4 * parameters / 1e6:.0f}",
    }


def cost() -> dict:
    """What the paper's length would cost at the speed of the runs of the book."""
    runs = book_runs()
    speeds = [run_flop(run.experiment) / run.provenance["seconds"]["train"] for run in runs]
    return {
        "grid": GRID,
        "runs": len(runs),
        "device": of(runs, lambda found: found[0].provenance["device"]),
        "speed": of(speeds, lambda v: f"{np.median(v) / 1e9:.0f} GFLOP/s"),
        "time": of(speeds, lambda v: duration(run_flop(PROFILES["paper"]) / np.median(v))),
    }


def scale() -> dict:
    """On what the core claims are measured."""
    sets = {}
    for title, m in worlds().items():
        pairs = {task: found for task in paper.TASKS if (found := judge.paired(m.runs, task, *PAIR))}
        if pairs:
            run = next(iter(pairs.values()))[0][0]
            fixated = product(paper.TASKS, published.FIXATED)
            pairs |= {case: found for case in fixated if (found := judge.paired(m.runs, *case, PAIR[0]))}
            sets[f"{run.provenance['train_images']:,} {title}"] = f" ({judge.count_seeds(pairs)})"
    return {
        "photographs": of(sets, " and ".join),
        "sets": of(map(str.__add__, sets.keys(), sets.values()), " and ".join),
    }


def shipped() -> dict:
    sizes = [path.stat().st_size for path in files.shipped().glob("*.safetensors")]
    return {"networks": len(sizes), "megabytes": f"{sum(sizes) / 1e6:.0f}"}


def problem() -> dict:
    """Fixation: the verdict, and what it costs elsewhere and gains at home."""
    apart = cured_within()
    return {
        "word": on_each(lambda m: fixation.problem(m).word),
        "below": below(),
        "kept": on_each(kept),
        "for_it": on_each(for_fixation),
        "over": on_each(lambda m: of(map(np.mean, fixated_margins(m)[0]), span)),
        "there": on_each(lambda m: of(map(np.mean, fixated_margins(m)[1]), span)),
        "apart": f"{np.ceil(100 * apart) / 100:.2f} dB" if np.isfinite(apart) else NOT_MEASURED,
        "milder_word": on_each(lambda m: fixation.milder(m).said),
        "milder": on_each(lambda m: of(fixation.milder(m).numbers.items(), lost_on_milder)),
    }


def lost_on_milder(means) -> str:
    """`+1.65 dB for inpainting and +6.34 dB for interpolation`."""
    return listed(f"{judge.signed(mean)} for {task}" for task, (mean, *_) in means)


def for_fixation(m) -> str:
    """How many comparisons with a fixated network came out on the side of the claim, by the mean margin."""
    return of(map(np.mean, sum(fixated_margins(m), [])), lambda v: f"{sum(db > 0 for db in v)} of {len(v)} comparisons")


def tasks_below(m, levels, numbers: bool = False) -> str:
    """The tasks on which equal shares are below the damaged images on these levels, in the mean over their seeds."""
    found = []
    for task in paper.TASKS:
        runs = [run for run, _ in judge.paired(m.runs, task, *PAIR[::-1])]
        scores = [[judge.score(run, levels, column) for run in runs] for column in ("psnr", "psnr_input")]
        ours, damaged = map(np.mean, scores) if runs else (0, 0)
        if ours < damaged:
            found.append(plain(task) + f" ({ours:.2f} dB against {damaged:.2f})" * numbers)
    return of(found, listed)


def below() -> str:
    """Where equal shares are below the damaged images: `denoising on scenes; in the mean over all levels on …`."""
    mean = on_each(lambda m: tasks_below(m, judge.LEVELS, numbers=True))
    mildest = on_each(lambda m: tasks_below(m, ["1"]))
    return mildest + f"; in the mean over all levels on {mean}" * (mean != NOT_MEASURED)


def kept(m) -> str:
    """What equal shares have on level 1 of inpainting with the known pixels put back, and the damaged images."""
    runs = [run for run, _ in judge.paired(m.runs, "inpaint", *PAIR[::-1])]
    scores = [np.mean([judge.score(run, ["1"], name) for run in runs]) for name in ("psnr_kept", "psnr_input") if runs]
    return of(scores, lambda v: f"{v[0]:.2f} dB against {v[1]:.2f}")


def limit() -> str:
    where = f"equal shares have a lower PSNR than the damaged picture on {below()}"
    return f"The cure has a limit: over all pixels, on level 1, the mildest, {where}."


def feedback() -> dict:
    """The dose of Equation 3, and what it and four times as much of it move."""
    m, sets = load(), worlds().values()
    mild, strong = ([run for each in sets for run in judge.runs_of(each.runs, s)] for s in (PAIR[0], SHARP))
    doses, sharp = ([100 * judge.dose_of(run) for run in runs] for runs in (mild, strong))
    short, long, far = growth(m)
    (whose, whose_margins), (lean, lean_margins) = reasons.whose(), reasons.lean()
    last = [100 * run.history[-1]["dose"] for run in strong]
    return {
        "dose": ends(doses, " %"),
        "one_in": of(doses, lambda _: one_in(sets)),
        "one_in_all": of(doses, lambda _: one_in([*sets, *at_full_width()])),
        "one_in_wide": one_in(at_full_width()) if at_full_width() else NOT_MEASURED,
        "gain": on_each(lambda m: of(mean_margins(m, *PAIR), span)),
        "paper": span(claims.paper_gaps(*PAIR)),
        "words": on_each(words),
        "sharp_dose": ends(sharp, " %"),
        "sharp_last": ends(last, " %"),
        "sharp_gain": on_each(lambda m: of(mean_margins(m, SHARP, PAIR[1]), span)),
        "sharp_easy": on_each(lambda m: of(mean_margins(m, SHARP, PAIR[1], ["1"]), span)),
        "sharp_hard": on_each(lambda m: of(mean_margins(m, SHARP, PAIR[1], [LAST]), span)),
        "traded": on_each(each_traded),
        "no_gain": on_each(no_gain),
        "lower": on_each(lambda m: certain(m, *PAIR, -1)),
        "sharp_lower": on_each(lambda m: certain(m, SHARP, PAIR[1], -1)),
        "lean_higher": on_each(lambda m: certain(m, dose.NAMES[-4], PAIR[1], 1)),
        "reverse_gain": on_each(lambda m: of(mean_margins(m, dose.NAMES[-1], PAIR[1]), span)),
        "hardest": on_each(
            lambda m: of(pulls(m), lambda v: f"{sum(n.argmax() + 1 == len(n) for n in v)} of {len(v)} tasks")
        ),
        "pull": on_each(lambda m: ends(n[-1] / n[0] for n in pulls(m))),
        "whose": whose,
        "whose_margins": whose_margins,
        "lean": lean,
        "lean_margins": lean_margins,
        "loss": on_each(hard_loss),
        "last_dose": ends(short, " %"),
        "long_dose": ends(long, " %"),
        "far_dose": ends(far, " %"),
        "long_gain": long_gain(),
        "long_steps": of(m.long.values(), lambda runs: f"{steps_of(runs[0]):,}"),
    }


def lost(m) -> str:
    """The rivals that are ahead of on-demand learning by the judge's word, with the tasks and by how much."""
    behind = {}
    for rival, task in product(table1.RIVALS, paper.TASKS):
        if judge.compare(m, {"": (task, PAIR[0], rival)}).word == judge.REVERSED:
            margin = judge.estimate(judge.gaps(m.runs, task, rival, PAIR[0]))
            behind.setdefault(rival, []).append(f"{plain(task)} ({margin})")
    names = [f"the {published.SEVEN[rival].lower()} on {' and '.join(on)}" for rival, on in behind.items()]
    return listed(names) if names else "nobody"


def put_back(m) -> str:
    """Inpainting with the known pixels put back: on-demand learning minus each of `published.JOINT`."""
    margins = [judge.gaps(m.runs, "inpaint", PAIR[0], rival, column="psnr_kept") for rival in published.JOINT]
    return listed(map(judge.estimate, margins)) if all(margins) else NOT_MEASURED


def turned(m) -> str:
    """Those of `published.JOINT` that it certainly leads by one of the two scores and trails by the other."""
    names = []
    for rival in published.JOINT:
        both = [judge.gaps(m.runs, "inpaint", PAIR[0], rival, column=column) for column in ("psnr", "psnr_kept")]
        (low, high), (low_kept, high_kept) = (judge.spread(margins)[1:] for margins in both)
        if low > 0 > high_kept or low_kept > 0 > high:
            names.append(f"the {published.SEVEN[rival].lower()}")
    return listed(names) if names else NONE


def refuted(m) -> str:
    """The tasks on which a rival is ahead of on-demand learning with the correction for six, too."""
    words = {task: table1.best_of_seven(m, task).word for task in paper.TASKS}
    if {*words.values()} == {judge.MISSING}:
        return NOT_MEASURED
    lost = [plain(task) for task, word in words.items() if word == judge.REVERSED]
    return listed(lost) if lost else NONE


def forgets(m) -> str:
    """The tasks on which a staged curriculum certainly loses more on level 1 than on level 5, against equal shares."""
    [claim] = [claim for claim in claims.CLAIMS if claim.claim.startswith("A staged curriculum overfits")]
    parts = claim.measure(m).parts
    certainly = [part for part, (_, word) in parts.items() if word.startswith(judge.REPRODUCED)]
    every = len(certainly) == len(paper.TASKS)
    return of(parts, lambda _: "of " + ("every task" if every else listed(certainly) if certainly else NONE))


def closest(m) -> str:
    """On-demand's margin over its closest rival, from task to task, where all six are measured."""
    each = [[judge.gaps(m.runs, task, PAIR[0], rival) for rival in table1.RIVALS] for task in paper.TASKS]
    return of((min(map(np.mean, margins)) for margins in each if all(margins)), span)


def won(m) -> str:
    """In how many pairs on-demand learning is certainly ahead of a schedule that leaves levels or images out."""
    pairs = [judge.gaps(m.runs, task, PAIR[0], name) for task, name in product(paper.TASKS, published.PARTIAL)]
    pairs = [margins for margins in pairs if margins]
    ahead = [np.mean(each) for each in pairs if len(each) >= judge.ENOUGH and judge.interval(each)[0] > 0]
    return of(ahead, lambda v: f"ahead in {len(v)} of {len(pairs)} pairs, by {span(v)}")


def collapse(m) -> str:
    """To what the staged curriculum falls on deblurring, and what equal shares have there."""
    both = judge.paired(m.runs, "deblur", "staged_curriculum", PAIR[1])
    if not both:
        return NOT_MEASURED
    staged, equal = np.mean([[*map(judge.score, pair)] for pair in both], axis=0)
    return f"to {staged:.2f} dB, where equal shares have {equal:.2f} dB"


def contest() -> dict:
    """Table 1: who is ahead of whom, what collapses, and what the paper's test says of single pairs of networks."""
    m = load()
    printed = [db for _, db in published.TABLE1["deblur"]["staged_curriculum"]]
    test = table1.papers_test(m)
    small = test[test.p < LITTLE]
    pair = [(t, g) for t in paper.TASKS if len(g := judge.gaps(m.runs, t, *PAIR)) >= judge.ENOUGH]
    signs = small.groupby("task").ahead.agg(["min", "max"])
    ratios = [stats.sem(g) / stats.sem(photograph_margins(m, t)) for t, g in pair]
    other = f"; by all pixels its sign is certainly the other one against {on_each(turned)}"
    return {
        "least": on_each(closest),
        "paper": span([margin for task in paper.TASKS for margin in claims.paper_margins(task)]),
        "lost": "; ".join(f"on {title} {lost(m)}" for title, m in worlds().items()),
        "put_back": on_each(put_back) + other * any(turned(each) != NONE for each in worlds().values()),
        "refuted": on_each(refuted),
        "forgets": on_each(forgets),
        "partial": on_each(won),
        "collapse": on_each(collapse),
        "staged_paper": " and ".join(
            f"{db:.2f} dB on {on}" for db, on in zip(printed, ("faces", "scenes"), strict=True)
        ),
        "pairs": len(test),
        "small": len(small),
        "apart": of(small.ahead.abs(), lambda v: f"{max(v):.2f} dB"),
        "ahead": int((small.ahead > 0).sum()),
        "behind": int((small.ahead < 0).sum()),
        "turned": of(signs.index[(signs["min"] < 0) & (signs["max"] > 0)], listed),
        "half": ends((np.ptp(judge.interval(g)) / 2 for _, g in pair), " dB", 2),
        "ratio": ends(ratios, digits=0),
        "why": reasons.why(),
    }


def others() -> dict:
    """Tables 2 and 3, Figure 6, and the fill that learns nothing."""
    m, fill = load(), fills()
    curves = db11_spectrum.curves(m)[["on_demand", "bm3d"]].dropna()
    gap = curves.on_demand - curves.bm3d
    near, image, smooth = table3.near_specialist(m), table3.by_image(m), table2.classical_wins(m)
    centre = table2.on_block(m, table2.CENTRE, ["on_demand"], "central")
    arbitrary = table2.on_block(m, "on_demand", [table2.CENTRE, table2.RANDOM], "arbitrary")
    return {
        "centre": centre.word,
        "centre_by": centre.measured,
        "arbitrary": arbitrary.word,
        "specialist": near.word,
        "specialist_by": of(table3.behind_specialist(m), judge.estimate),
        "specialist_paper": signed(-table3.NEAR / 2),
        "near": of(
            [] if image is None else image,
            lambda v: (
                f"{sum(db > -table3.NEAR for db in v)} of the {len(v)} photographs they are close{table3.unsure(m)}"
            ),
        ),
        "spectrum": db11_spectrum.whole_spectrum(m).word,
        "classical_at_50": of(gap[gap.index == 50], lambda v: signed(-v[0])),
        "low": of(gap.items(), lambda v: f"{signed(v[0][1])} at σ = {v[0][0]:g}"),
        "high": of(gap.items(), lambda v: f"{signed(v[-1][1])} at σ = {v[-1][0]:g}"),
        "classical": of([f"{margin} in {block} blocks" for block, (margin, _) in smooth.parts.items()], " and ".join),
        "network": f"{fill['network'][1]:.1f} dB",
        "biharmonic": f"{fill['biharmonic'][1]:.1f} dB",
    }


def on_gpu() -> dict:
    """Profile gpu on faces, at the paper's width."""
    m = one_gpu.load()
    lower = tasks_below(m, ["1"])
    return one_gpu.facts() | {"below": NONE if m.runs and lower == NOT_MEASURED else lower}


FACTS = {make.__name__: make for make in (cost, scale, shipped, problem, feedback, contest, others)}
FACTS |= {name: partial(numbers_of, name) for name in ("paper", "reference")} | {"gpu": on_gpu, "later": reasons.facts}


# Tables


def contest_tabs() -> str:
    """A tab per task: every schedule minus equal shares in the paper and on each data set, with the word."""
    sets, tabs = worlds(), {}
    for task in paper.TASKS:
        rows = []
        for name in (s for s in published.SEVEN if s != PAIR[1]):
            here = [judge.gaps(m.runs, task, name, PAIR[1]) for m in sets.values()]
            words = [AGAINST.get(w := judge.compare(m, {"": (task, name, PAIR[1])}).word, w) for m in sets.values()]
            cells = [f"{judge.estimate(g, '')}, *{w}*" if g else NOT_MEASURED for g, w in zip(here, words, strict=True)]
            printed = judge.from_to(claims.paper_gaps(name, PAIR[1], [task]), judge.number)
            rows.append([published.SEVEN[name].replace("Cumulative", "Cumul."), printed, *cells])
        tabs[plain(task)] = markdown(["− equal shares (dB)", "Paper", *map(str.capitalize, sets)], rows)
    return tab_set(tabs)


def predictions() -> str:
    """What was predicted of faces before the first contrast there, beside what came of the blocks that are whole."""
    faces = worlds().get("faces")
    if not faces:
        return (
            "For faces a word and a size were predicted before two schedules were compared there "
            "(`companion/claims/predictions.csv`); each finding will stand beside its prediction when its runs are "
            "complete."
        )
    table, card = beside(faces), scorecards()["faces"].set_index("claim")
    count, table = table.claim.nunique(), table[table.hit.notna()]
    whole, parts = table[table.part == ""], table[table.part != ""]
    rows = [[row.claim, f"*{row.word}*", f"*{card.told[row.claim]}*"] for row in whole.itertuples()]
    known = (
        f"Of {count} predicted claims {table.claim.nunique()} are measured so far: {whole.hit.sum()} of {len(whole)} "
        f"words came as predicted, and {parts.hit.sum()} of {len(parts)} intervals predicted for a part hold its "
        "margin; "
        "the margins of Equation 3 over equal shares are among them twice, in the contest and as a question of their "
        "own. "
        "One of them, on equal shares and fixation, was predicted when Equation 3 had been compared with equal shares. "
        "{doc}`The scorecard </notebooks/scorecard>` has every size, and when each prediction was written."
    )
    return markdown(["Claim, on faces", "Predicted", "Found"], rows) + f"\n\n{known}"


def cite() -> str:
    """BibTeX of this companion, with its commit, and of the paper."""
    known = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    bibliography, code = (ROOT / "book" / "references.bib").read_text(encoding="utf-8"), commit()
    version = known["version"] + (f", commit {code}" if re.fullmatch(r"[0-9a-f]+", code) else "")
    return f"""\
```bibtex
@software{{ondemandcompanion,
  title   = {{{known["title"]}}},
  author  = {{{{{known["authors"][0]["name"]}}}}},
  version = {{{version}}},
  year    = {{{known["date-released"].year}}},
  license = {{{known["license"]}}},
}}

{re.search(r"(?ms)^@inproceedings.gao2017ondemand,.*?^.$", bibliography)[0]}
```"""


TABLES = {"cite": cite, "contest-tabs": contest_tabs, "predictions": predictions} | one_gpu.TABLES
