"""What the first page and "What we found" take from the results files: a function for each table or text."""

import re
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import yaml
from scipy import stats
from snippets import DATASET, NOT_MEASURED, PROFILE, PROFILES, ROOT, SEEDS, markdown
from statement import listed

from companion import (
    catalogue,
    db11_spectrum,
    denoising,
    dose,
    explanations,
    fixation,
    judge,
    prose,
    published,
    scorecard,
    table1,
    table3,
)
from companion.judge import plain, span
from odl import paper, results
from odl.machine.provenance import commit
from odl.schedules import HARD_MINING_KEEP, HARD_MINING_WARM_UP

PAIR = "on_demand", "rigid_joint"
CASE = PROFILE, DATASET, SEEDS
TEST_PHOTOGRAPHS = 50  # of bsds500: half of what it has for validation
LITTLE = 1e-10  # a p-value that nobody would call chance


def judged(m, pair=PAIR) -> dict:
    """Task → the verdict on the first schedule of a pair, on-demand, against the second, rigid joint learning."""
    return {plain(task): judge.compare(m, {"": (task, *pair)}) for task in paper.TASKS}


def by_word(verdicts: dict) -> str:
    """`equivalent on denoising; undecided on inpainting`; verdicts: task → verdict."""
    tasks = {v.word: listed([task for task in verdicts if verdicts[task].word == v.word]) for v in verdicts.values()}
    return "; ".join(f"{word} on {tasks[word] if len(tasks) > 1 else 'all four tasks'}" for word in tasks)


def verdict() -> str:
    """What the method gains here, what fixation costs, how near the specialist is, and how much feedback there was."""
    m = scorecard.load(*CASE)
    margins = {plain(task): judge.gaps(m.runs, task, *PAIR) for task in paper.TASKS}
    models = sum(fixated_margins(m), [])
    if not models or not all(margins.values()):
        return prose.NOTHING
    runs = [run for task in paper.TASKS for run, _ in judge.paired(m.runs, task, *PAIR)]
    e, doses = PROFILES[PROFILE], [100 * judge.dose_of(run) for run in runs]
    return f"""\
- {problem(m)}
- **The gain of feedback: {by_word(judged(m))}.** The mean PSNR of on-demand learning minus that of equal shares \
(*rigid joint learning*, the simplest rival) is {span(map(np.mean, margins.values()))}; the paper reports \
{span(scorecard.paper_gaps(*PAIR))}.
- **The dose of feedback: {min(doses):.1f} to {max(doses):.1f} % of a batch.** Equal shares are 20 % of a batch for \
each of the five levels, and Equation 3 moved a level by this much on average. On-demand learning and equal shares \
were nearly the same training, so at this length the paper's claim is hardly put to the test.{sharper(m)}
{ends(m)}\
{seven(m)}\
{specialist(m)}\

All this was measured at half the paper's width, after {e["epochs"] * e["iterations"]:,} steps of {e["batch_size"]} \
images (the paper: 1,500,000 of 100) and on {runs[0].provenance["train_images"]} photographs (100,000); the \
specialist's line is after a longer training and on crops at native resolution.
On-demand learning against equal shares has {judge.count_seeds(margins)}, all six rivals have \
{judge.count_seeds(rivals_margins(m))} and each fixated model has {judge.count_seeds(dict(enumerate(models)))}; a \
verdict takes {judge.ENOUGH}.
{below(m)}"""


def fixated_margins(m, judged_only=False) -> list[list]:
    """On-demand's margins (dB) over the levels of each fixated model measured, and the model's at its own severity.

    With `judged_only` without those contests in which both networks are below the damaged images.
    """
    kinds = zip(*(fixation.contests(task, own) for task in paper.TASKS for own in ("easy", "hard")), strict=True)
    if judged_only:
        kinds = [[c for c in kind if not judge.below_input(m.runs, c[0], c[1:3], *c[3:])] for kind in kinds]
    return [[gaps for c in kind if (gaps := judge.gaps(m.runs, *c))] for kind in kinds]


def problem(m) -> str:
    """What fixation costs where it is judged, and how many parts of that claim are decided."""
    claim, (over, there) = fixation.problem(m), fixated_margins(m, judged_only=True)
    words = Counter(word for _, word in claim.parts.values())
    counts = [f"{words[word]} {text}" for word, text in PARTS.items() if words[word]]
    sides = [np.mean(gaps) > 0 for kind in fixated_margins(m) for gaps in kind]
    text = f"**Fixation: {claim.word}.** Of {len(claim.parts)} comparisons: {listed(counts)}. "
    text += f"The mean margin is on the claim's side in {sum(sides)} of {len(sides)}."
    if over and there:
        text += (
            f" Where it can be judged, the on-demand network's margin over a fixated model is "
            f"{span(map(np.mean, over))} on average over all six levels, and the model's margin over the on-demand "
            f"network at the severity of its own training is {span(map(np.mean, there))} (inpainting: inside the "
            "missing square)."
        )
    return " ".join(filter(None, (text, fixation.without_feedback(m))))


PARTS = {  # verdict on a part of a claim → what is said of so many
    judge.REPRODUCED: "for the claim",
    judge.EQUIVALENT: "alike",
    judge.REVERSED: "against it",
    judge.UNDECIDED: "open",
    judge.UNDECIDED + judge.GATED: "not judged, because both networks score below the damaged images",
    judge.MISSING: judge.MISSING,
}


def unsupported(m) -> str:
    """The comparisons of fixation that are not reproduced, with their margins."""
    parts = fixation.problem(m).parts
    rows = [[label, *found] for label, found in parts.items() if found[1] not in (judge.REPRODUCED, judge.MISSING)]
    table = markdown(["Comparison that is not *reproduced*", "Margin in favour of the claim", "Verdict"], rows)
    return f"\n\n{table}" if rows else ""


def rivals_margins(m) -> dict:
    """(task, rival of Table 1) → on-demand's margins (dB)."""
    return {(t, rival): judge.gaps(m.runs, t, PAIR[0], rival) for t in paper.TASKS for rival in table1.RIVALS}


def seven(m) -> str:
    """The line on the best of seven schedules; empty where a rival is not measured."""
    found = rivals_margins(m)
    if not all(found.values()):
        return ""
    least = [min(np.mean(gaps) for (one, _), gaps in found.items() if one == task) for task in paper.TASKS]
    return f"""\
- **Best of seven: {by_word({plain(task): table1.best_of_seven(m, task) for task in paper.TASKS})}.** \
On each task the margin of on-demand learning over its strongest rival, judged or not, is {span(least)}; the paper \
reports \
{span([margin for task in paper.TASKS for margin in scorecard.paper_margins(task)])}.
{one_by_one(m)}\
"""


def one_by_one(m) -> str:
    """The line on single rivals: whom on-demand learning is behind, and by how much it leads those of `PARTIAL`."""
    won, lost, chosen = [], [], {judge.REPRODUCED: [], judge.REVERSED: []}
    for task, rival in product(paper.TASKS, table1.RIVALS):
        under = judge.below_input(m.runs, task, PAIR)
        how, score = above(m, task) if under else ("", (judge.LEVELS,))
        margins = judge.gaps(m.runs, task, PAIR[0], rival, *score) if score[0] else []
        word = judge.compare(m, {"": (task, PAIR[0], rival, *score)}).word if margins else judge.MISSING
        name = f"{published.SCHEDULES[rival].lower()} on {plain(task)}"
        if under and rival in published.CUMULATIVE and word in chosen:
            chosen[word].append(f"{name} {how} ({judge.estimate(margins)})")
        elif not under and word == judge.REVERSED:
            lost.append(f"{name} ({judge.estimate(margins)})")
        elif not under and word == judge.REPRODUCED and rival in published.PARTIAL:
            won.append((plain(task), np.mean(margins)))
    parts = [f"On-demand learning is behind the {listed(lost)}."] if lost else []
    if won:
        tasks, margins = zip(*won, strict=True)
        parts.append(f"It is ahead of the staged schedules and hard mining by {span(margins)} on {listed(tasks)}.")
    if any(chosen.values()):
        words = {judge.REVERSED: "behind", judge.REPRODUCED: "ahead of"}
        cases = "; ".join(f"{words[word]} the {listed(found)}" for word, found in chosen.items() if found)
        parts.append(f"By scores above the damaged images, chosen when the results were known, it is {cases}.")
    return f"- **One rival at a time.** {' '.join(parts)}\n" if parts else ""


def sharper(m) -> str:
    """What the same feedback does at a larger dose; empty where that is not measured."""
    verdicts, runs = judged(m, (SHARP, PAIR[1])), [run for key, run in m.runs.items() if key[1] == SHARP]
    if not runs or any(verdict.word == judge.MISSING for verdict in verdicts.values()):
        return ""
    doses = [100 * judge.dose_of(run) for run in runs]
    return (
        f" With shares by 1/PSNR⁴ in place of 1/PSNR the dose is {min(doses):.1f} to {max(doses):.1f} %, and the gain "
        f"is {by_word(verdicts)}."
    )


def specialist(m) -> str:
    """The line on the on-demand denoiser beside the network trained for one noise alone; empty without either."""
    if not (margins := table3.behind_specialist(m)):
        return ""
    ours = denoising.our_systems(PROFILE)["on_demand"]
    return f"""\
- **Near the specialist: {table3.near_specialist(m).word}.** At σ = 25 the PSNR of the on-demand denoiser minus that \
of the same network trained for that noise alone, both after {ours.epochs * ours.iterations:,} steps, is \
{judge.signed(np.mean(margins))} on the eleven photographs of Table 3; the paper reports \
{judge.signed(-table3.NEAR / 2)}, and we count up to {table3.NEAR:.2f} dB as near.{photographs(m)}
"""


def photographs(m) -> str:
    """On how many of the photographs that line holds; empty where one is missing."""
    gap = table3.by_image(m)
    if gap is None:
        return ""
    near, (low, high) = int((gap > -table3.NEAR).sum()), judge.interval(gap)
    unsure = low < -table3.NEAR < high
    return (
        f" On {near} of the eleven it is near{'; with other photographs the verdict could be another' * int(unsure)}."
    )


def below(m) -> str:
    """Where neither network of the pair gains on the damaged images, and the margin by a score that is above them."""
    under = [task for task in paper.TASKS if judge.below_input(m.runs, task, PAIR)]
    if not under:
        return ""
    where = f"On {listed([*map(plain, under)])} the raw output of both networks is on average below the damaged images"
    margins = []
    for task in under:
        how, score = above(m, task)
        if score[0]:
            margin = judge.estimate(judge.gaps(m.runs, task, *PAIR, *score))
            word = judge.compare(m, {"": (task, *PAIR, *score)}).short
            margins.append(f"{margin} on {plain(task)} {how}: *{word}*")
    other = f" By scores that are above them the gain is {'; '.join(margins)}." if margins else ""
    gains = []
    for task in under:
        if runs := [run for key, run in m.long.items() if key[0] == task]:
            scores = [np.mean([judge.score(run, column=name) for run in runs]) for name in ("psnr", "psnr_input")]
            seeds = judge.count_seeds({"": runs})
            raw, damaged = scores
            gains.append(f"{raw:.2f} dB on {plain(task)}, where the damaged images have {damaged:.2f} ({seeds})")
            steps = runs[0].experiment["epochs"] * runs[0].experiment["iterations"]
    longer = f" After {steps:,} steps the on-demand network reaches {listed(gains)}." if gains else ""
    return f"{where}, so the gain is not judged there.{other}{longer}"


def above(m, task: str) -> tuple[str, tuple]:
    """A score of a task by which networks are above the damaged images: in words, and (levels, column)."""
    if task in paper.MASKED:
        return "with the known pixels kept", (judge.LEVELS, "psnr_kept")
    levels = [level for level in judge.LEVELS if not judge.below_input(m.runs, task, PAIR, [level])]
    if not levels:
        return "", ([],)
    from_one_on = (*levels,) == judge.LEVELS[-len(levels) :]
    return f"on levels {f'{levels[0]} to {levels[-1]}' if from_one_on else listed(levels)}", (levels,)


SHARP, LAST = dose.NAMES[4], str(paper.N_LEVELS)


def ends(m) -> str:
    """The line on what a stronger feedback does to the easiest and the hardest level; empty where not measured."""
    found = [[judge.gaps(m.runs, task, SHARP, PAIR[1], [level]) for task in paper.TASKS] for level in ("1", LAST)]
    if not all(map(all, found)):
        return ""
    easy, hard = (span(map(np.mean, margins)) for margins in found)
    exchange = judge.compare_levels(m, SHARP, PAIR[1], LAST, "1")
    return f"""\
- **Level by level: {easy} on level 1, {hard} on level {LAST}.** These are the margins over equal shares with that \
larger dose, which the mean over the levels hides. {exchanged(exchange)}
"""


def exchanged(exchange) -> str:
    """On which tasks the hard end gains on the easy one by the judge's rule."""
    tasks = [task for task, (_, word) in exchange.parts.items() if word == judge.REPRODUCED]
    where = f"; that it does is decided on {listed(tasks)} alone" if 0 < len(tasks) < len(exchange.parts) else ""
    return f"Whether level {LAST} gains on level 1 on all four tasks is *{exchange.word}*{where}."


def levels() -> str:
    """Margins over rigid joint learning on levels 1 and 5 of the schedules that favour one end; * few seeds."""
    m, rows = scorecard.load(*CASE), []
    favour = {SHARP: "$k = 4$", PAIR[0]: "$k = 1$, Equation 3", dose.NAMES[-1]: "$k = -1$"}
    favour |= {name: published.SCHEDULES[name] for name in published.CUMULATIVE}
    for name, title in favour.items():
        cells = []
        for task in paper.TASKS:
            margins = [judge.gaps(m.runs, task, name, PAIR[1], [level]) for level in ("1", LAST)]
            means = [judge.number(np.mean(found)) if found else "–" for found in margins]
            cells.append("\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}".join(means) + "\\*" * (len(margins[0]) < judge.ENOUGH))
        rows.append([title, *cells])
    table = markdown(["− rigid joint", *(plain(task).capitalize() for task in paper.TASKS)], rows)
    pair = "inpaint", published.CUMULATIVE[0], PAIR[1], ["1"]
    easy = [judge.gaps(m.runs, *pair, column) for column in ("psnr", "psnr_kept")]
    if not all(easy):
        return table
    whole, kept = map(judge.estimate, easy)
    return (
        f"{table}\n\nThe easy end of inpainting depends on what is scored. On level 1 the cumulative curriculum's "
        f"margin over rigid joint learning is {whole} by the whole output, and {kept} once the known pixels are put "
        "back."
    )


def allocations() -> str:
    """What Equation 3 gives levels 1 and 5 after the first validation and in the last epoch; means over seeds."""
    m, rows = scorecard.load(*CASE), []
    for task in paper.TASKS:
        if runs := [run for run, _ in judge.paired(m.runs, task, *PAIR)]:
            shares = np.mean([[run.history[epoch]["allocation"] for epoch in (1, -1)] for run in runs], axis=0)
            cells = [*shares[:, [0, -1]].ravel(), 100 * np.mean([judge.dose_of(run) for run in runs])]
            rows.append([plain(task).capitalize(), *map("{:.1f}".format, cells)])
    header = ["Task", "Epoch 2: level 1", "Epoch 2: level 5", "Last: level 1", "Last: level 5", "Dose, mean"]
    return markdown(header, rows) if rows else f"This is {NOT_MEASURED}."


def tests() -> str:
    """The paper's test, a row for each task and seed, beside the judge's word; and what the p-values say together."""
    m = scorecard.load(*CASE)
    found, verdicts = table1.papers_test(m), judged(m)
    rows = [
        [r.task.capitalize(), r.seed, judge.number(r.ahead, 3), f"{r.p:.0e}", verdicts[r.task].short]
        for r in found.itertuples()
    ]
    header = ["Task", "Seed", "On-demand − rigid joint (dB)", "p, paired over trials", "Our verdict, over seeds"]
    table = markdown(header, rows) if rows else f"This is {NOT_MEASURED}."
    small = found[found.p < LITTLE]
    if small.empty:
        return table
    ends = small.groupby("task", sort=False).ahead.agg(["min", "max"])
    turned = ends.index[(ends["min"] < 0) & (ends["max"] > 0)]
    text = (
        f"Of these {len(found)} pairs of networks {len(small)} have a p-value below {LITTLE:g}, "
        f"though they are at most {small.ahead.abs().max():.2f} dB apart.\n"
        f"Among these, on-demand learning is ahead in {(small.ahead > 0).sum()} "
        f"and behind in {(small.ahead < 0).sum()}."
    )
    if len(turned):
        text += f"\nOn {listed(turned)} the sign turns with the seed, and only the seed has changed."
    return f"{table}\n\n{text}"


def power() -> str:
    """How sure the mean margin of on-demand over rigid joint learning is on each task, beside the paper's margin."""
    m, rows, seen, ratios = scorecard.load(*CASE), [], 0, []
    for task in paper.TASKS:
        if len(margins := judge.gaps(m.runs, task, *PAIR)) >= judge.ENOUGH:
            low, high = judge.interval(margins)
            half, published_margin = (high - low) / 2, np.mean(scorecard.paper_gaps(*PAIR, [task]))
            by_seed, by_photograph = stats.sem(margins), stats.sem(photograph_margins(m, task))
            seen += half < published_margin
            ratios.append(by_seed / by_photograph)
            numbers = f"{half:.2f}", f"{published_margin:.2f}", f"{by_seed:.3f}", f"{by_photograph:.3f}"
            rows.append([plain(task).capitalize(), len(margins), *numbers])
    header = ["Task", "Seeds", "Half-width (dB)", "The paper's margin (dB)"]
    header += ["Standard error over seeds (dB)", "Standard error over photographs (dB)"]
    trained = (
        span(
            np.mean(margins) for task in paper.TASKS if (margins := judge.gaps(m.runs, task, *PAIR, judge.LEVELS[:-1]))
        )
        if rows
        else ""
    )
    if not rows:
        return f"This is {NOT_MEASURED}."
    return (
        f"{markdown(header, rows)}\n\n"
        f"These half-widths are narrow enough to tell a margin as large as the paper's from 0 on {seen} of {len(rows)} "
        f"tasks, whatever the clause on damaged images makes of the verdict.\n{wider(m)}"
        f"The last column asks instead what {TEST_PHOTOGRAPHS} other test photographs would have changed, the trained "
        "networks being the same.\n"
        f"The error over seeds is {min(ratios):.0f} to {max(ratios):.0f} times as large"
        f"{': another seed moves these margins more than other test photographs would' if min(ratios) > 1 else ''}.\n"
        f"Averaged over levels 1 to {paper.N_LEVELS} alone, on which the networks train, the margins are {trained}."
    )


def wider(m) -> str:
    """The widest of these intervals among the schedules that end with all levels, in a line."""
    margins = {(t, s): judge.gaps(m.runs, t, PAIR[0], s) for t, s in product(paper.TASKS, published.CUMULATIVE)}
    half = {key: np.ptp(judge.interval(found)) / 2 for key, found in margins.items() if len(found) >= judge.ENOUGH}
    if not half:
        return ""
    task, schedule = max(half, key=half.get)
    return (
        f"Schedules that differ more scatter more: the widest half-width is {half[task, schedule]:.2f} dB, for the "
        f"{published.SCHEDULES[schedule].lower()} on {plain(task)}.\n"
    )


def photograph_margins(m, task: str) -> np.ndarray:
    """The margin of `PAIR` on each test photograph, mean over seeds, levels 1…6 and the crops of it."""
    seeds = []
    for pair in judge.paired(m.runs, task, *PAIR):
        one, other = (results.per_image(run)[: len(judge.LEVELS)].mean(0) for run in pair)
        seeds.append((one - other).reshape(-1, TEST_PHOTOGRAPHS))  # `crops.fixed_crops` takes photographs in turn
    return np.mean(seeds, axis=(0, 1))


def rivals() -> str:
    """On-demand learning's margin over each schedule of Table 1, every task, here and in the paper; * few seeds."""
    m, rows = scorecard.load(*CASE), []
    for name in table1.RIVALS:
        margins, cells = {task: judge.gaps(m.runs, task, PAIR[0], name) for task in paper.TASKS}, []
        for task, found in margins.items():
            here = judge.number(np.mean(found)) + "\\*" * (len(found) < judge.ENOUGH) if found else "–"
            cells.append(f"{here} ({judge.number(np.mean(scorecard.paper_gaps(PAIR[0], name, [task])))})")
        rows.append([published.SCHEDULES[name], *cells])
    table = markdown(["On-demand −", *(plain(task).capitalize() for task in paper.TASKS)], rows)
    longer = (
        "One of these rivals was trained longer, too: the cumulative curriculum on denoising, where all networks are "
        "on average above the damaged images, as long as the longest rung of {doc}`the ladder </notebooks/dose>`. "
        "On-demand learning minus this rival, judged on whether on-demand learning is ahead:"
    )
    verdicts = dose.strongest(catalogue.ladder(*CASE))
    return "\n\n".join(filter(None, [table, *lost(m), longer, verdicts, mining(m)]))


def mining(m) -> str:
    """Where hard mining falls behind: its validation PSNR minus that of rigid joint learning along the training."""
    e, gaps = PROFILES[PROFILE], []
    first = int(np.ceil(HARD_MINING_WARM_UP * e["epochs"]))  # epoch that steps on the worst images alone
    for task in paper.TASKS:
        pairs = judge.paired(m.runs, task, "hard_mining", PAIR[1])
        mined, joint = ([[np.mean(epoch["psnr"]) for epoch in pair[k].history] for pair in pairs] for k in (0, 1))
        if pairs:
            gaps.append(np.subtract(mined, joint).mean(0))
    if not gaps:
        return ""
    start, soon, end = (span(gap[epoch] for gap in gaps) for epoch in (first - 1, first + 4, -1))
    kept = round(HARD_MINING_KEEP * e["batch_size"])
    return (
        f"Hard mining has a handicap of our scale: after its warm-up it steps on the worst tenth of a batch, here "
        f"{kept} of {e['batch_size']} images (the paper: 10 of 100), at a rate that was chosen for all of them. Its "
        f"validation PSNR minus rigid joint learning's is {start} when the warm-up ends, {soon} five epochs later and "
        f"{end} in the end: it falls behind when its batch shrinks."
    )


def lost(m) -> list[str]:
    """The margins of on-demand learning that lie below 0 with their whole interval, and the judge's word on each."""
    lines = []
    for task in paper.TASKS:
        for rival in table1.RIVALS:
            _, _, high, word = judge.lead(m, task, PAIR[0], rival)
            if high < 0:
                margin = judge.estimate(judge.gaps(m.runs, task, PAIR[0], rival))
                lines.append(f"- {plain(task).capitalize()}, {published.SCHEDULES[rival].lower()}: {margin}, {word}.")
    return ["Below 0 with their whole 95 % interval are:", "\n".join(lines)] if lines else []


def forgotten() -> str:
    """PSNR on the level that each staged schedule saw first, beside that of rigid joint learning with the same seed."""
    m, rows, first = scorecard.load(*CASE), [], {"1": "staged_curriculum", "5": "staged_anti_curriculum"}
    for task in paper.TASKS:
        cells = []
        for level, name in first.items():
            pairs = judge.paired(m.runs, task, name, PAIR[1])
            scores = [[judge.score(run, [level]) for run in pair] for pair in pairs]
            cells += map("{:.1f}".format, np.mean(scores, axis=0)) if pairs else ["–", "–"]
        rows.append([plain(task).capitalize(), *cells])
    names = [f"Level {level}: {published.SCHEDULES[name].lower()}" for level, name in first.items()]
    return markdown(["Task", names[0], "Rigid joint there", names[1], "Rigid joint there"], rows)


def pulls() -> str:
    """The norm of each level's gradient in rigid joint learning's trained networks, that of level 1 being 1."""
    m, rows, hardest = scorecard.load(*CASE), [], 0
    for task in paper.TASKS:
        if runs := judge.paired(m.runs, "gradients", f"{task} {PAIR[1]}"):
            found = [explanations.norms(run) for [run] in runs]
            norms = np.mean([norm / norm["1"] for norm in found], axis=0)
            rows.append([plain(task).capitalize(), len(runs), *map("{:.2f}".format, norms)])
            hardest += norms.argmax() + 1 == paper.N_LEVELS
    if not rows:
        return f"This is {NOT_MEASURED}."
    table = markdown(["Task", "Seeds", *(f"Level {i}" for i in range(1, paper.N_LEVELS + 1))], rows)
    return f"{table}\n\nThe strongest gradient is that of level {paper.N_LEVELS} on {hardest} of {len(rows)} tasks."


def doses() -> str:
    """The settings of dose and ladder that are measured: dose, margin over equal shares, and the judge's word."""
    every_k = dose.table(catalogue.every_k(*CASE))
    table = pd.concat([every_k, dose.table(catalogue.ladder(*CASE))]).drop_duplicates(["task", "k", "width", "steps"])
    rows = []
    for r in table[table.seeds > 0].itertuples():
        setting = plain(r.task).capitalize(), dose.minus(r.k), r.width, f"{r.steps:,}"
        rows.append([*setting, r.seeds, f"{r.dose:.2f}", judge.estimate(r.margins), r.verdict])
    header = ["Task", "k", "Width", "Steps", "Seeds", "Dose (%)", "This k − rigid joint", "Verdict"]
    counts = table.seeds.value_counts().sort_index(ascending=False)
    seeds = listed([f"{n} {'have' if n > 1 else 'has'} {k or 'no'} seed{'s' * (k != 1)}" for k, n in counts.items()])
    text = f"{markdown(header, rows)}\n\nOf the {len(table)} planned settings {seeds} so far."
    both = every_k[every_k.k.isin([1, 4])].pivot_table("dose", "task", "k").dropna()
    if both.columns.size == 2:
        sharp = span(np.concatenate(every_k[every_k.k == 4].margins.to_list()))
        times = (both[4] / both[1]).mean()
        text += f"\nWith $k = 4$ the dose is {times:.1f} times that of Equation 3, "
        text += f"and the margin over rigid joint learning of the same seed is {sharp}"
        lower = [np.mean(margins) < 0 for margins in every_k[every_k.k == 4].margins if margins]
        text += f"; its mean is below 0 on {sum(lower)} of {len(lower)} tasks."
        m = scorecard.load(*CASE)
        lines = [f"- $k = {k}$: {by_word(judged(m, (dose.NAMES[k], PAIR[1])))}." for k in (-1, 1, 4)]
        text = "\n".join([text, "\nIs this feedback ahead of equal shares?\n", *lines])
    return text


def papers_dose() -> str:
    """The dose of Equation 3 in the last epoch of two lengths, and what it would grow to in the paper's."""
    m, doses = scorecard.load(*CASE), []
    for (task, seed), long in m.long.items():
        if short := m.runs.get((task, PAIR[0], seed)):
            steps = [run.experiment["epochs"] * run.experiment["iterations"] for run in (short, long)]
            doses.append([100 * run.history[-1]["dose"] for run in (short, long)])
    sharp = [100 * judge.dose_of(run) for key, run in m.runs.items() if key[1] == SHARP]
    if not (doses and sharp):
        return f"How it grows with the length is {NOT_MEASURED}."
    short, long = np.transpose(doses)
    far = long + (long - short) * np.log(dose.PAPERS_STEPS / steps[1]) / np.log(steps[1] / steps[0])
    ends = [f"{found.min():.1f} to {found.max():.1f} %" for found in (short, long, far)]
    return (
        f"In the last epoch the dose was {ends[0]} of a batch after {steps[0]:,} steps and {ends[1]} after "
        f"{steps[1]:,}. If it went on to grow by as much with every doubling, it would be {ends[2]} after the paper's "
        f"{dose.PAPERS_STEPS:,}; the mean dose of $k = 4$ was {min(sharp):.1f} to {max(sharp):.1f} % in our short "
        f"runs. That is an extrapolation, not a measurement."
    )


def spectrum() -> str:
    """PSNR on the paper's eleven photographs at every σ: what is told nothing, the truth, and 25 whatever comes."""
    shown = {"on_demand": "On-demand, told nothing", "bm3d": "BM3D, told σ", "bm3d25": "BM3D, told 25"}
    m = scorecard.load(*CASE)
    found = db11_spectrum.curves(m)[[*shown]].dropna()
    if found.empty:
        return f"This is {NOT_MEASURED}."
    rows = [[f"{sigma:g}", *map("{:.1f}".format, row)] for sigma, *row in found.itertuples()]
    table = markdown(["σ", *(f"{title} (dB)" for title in shown.values())], rows)
    low = [f"{sigma:g}" for sigma, row in found.iterrows() if row.on_demand < row.bm3d25]
    wrong = f"At σ = {listed(low)} the network is below BM3D told 25, too.\n\n" if low else ""
    return f"""{table}

{wrong}Judged over seeds:

- On-demand − fixated at 25, where σ is 25 and noise is not clipped, above {judge.signed(-table3.NEAR)}: \
{table3.near_specialist(m)}.
- On-demand − BM3D, told σ, nowhere below −0.5 dB: {db11_spectrum.whole_spectrum(m)}."""


def found_fixation() -> str:
    m = scorecard.load(*CASE)
    return problem(m) + unsupported(m) if any(fixated_margins(m)) else prose.NOTHING


def found_gate() -> str:
    """Where the clause on damaged images decides nothing, the rule without it, and what scores above them say."""
    m, lines = scorecard.load(*CASE), []
    for task in [task for task in paper.TASKS if judge.below_input(m.runs, task, PAIR)]:
        under = [level for level in judge.LEVELS if judge.below_input(m.runs, task, PAIR, [level])]
        free = judge.verdict_on({published.SCHEDULES[s]: judge.gaps(m.runs, task, PAIR[0], s) for s in table1.RIVALS})
        where = f"on level{'s' * (len(under) > 1)} {listed(under)} and on average" if under else "on average"
        would = "would decide nothing either" if free.word == judge.UNDECIDED else f"would read **{free.word}**"
        lines.append(f"- {plain(task).capitalize()}: below the damaged images {where}.")
        lines.append(f"  - Without the clause the rule {would} on the best of seven: {free.measured}.")
        lines += [f"  - {name}: {found}." for name, found in by_another_score(m, task).items()]
    return "\n".join(lines) or "No task is in this case here."


def by_another_score(m, task: str) -> dict:
    """What is compared by a score above the damaged images, in words → the verdict; empty where there is none."""
    how, score = above(m, task)
    if not score[0]:
        return {}
    rivals = {published.SCHEDULES[s]: (task, PAIR[0], s, *score) for s in table1.RIVALS}
    found = {f"On-demand minus rigid joint learning {how}": judge.compare(m, {"": (task, *PAIR, *score)})}
    rungs = [e for e in catalogue.ladder(*CASE) if e.task == task and "width" not in e.overrides]
    if rungs:
        long = max(rungs, key=lambda e: e.epochs)
        pair = [dose.name(replace(long, schedule=schedule)) for schedule in PAIR]
        name = f"The same after {long.epochs * long.iterations:,} steps"
        found[name] = judge.compare(dose.load(rungs), {"": (task, *pair, *score)})
    found[f"Best of seven {how}"] = judge.compare(m, rivals)
    for rival in published.CUMULATIVE:
        title = published.SCHEDULES[rival]
        raw = judge.estimate(judge.gaps(m.runs, task, PAIR[0], rival))
        found[f"On-demand minus {title.lower()} {how} (whole output: {raw})"] = judge.compare(m, {"": rivals[title]})
    return found


def sentence() -> str:
    """The first comparison with its scope, for whoever quotes it."""
    m = scorecard.load(*CASE)
    words = judged(m)
    runs = [run for task in paper.TASKS for run, _ in judge.paired(m.runs, task, *PAIR)]
    even = {plain(t): judge.gaps(m.runs, t, *PAIR) for t in paper.TASKS if words[plain(t)].word == judge.EQUIVALENT}
    if not even:
        return ""
    within = max(np.abs(judge.interval(margins, 1 - 2 * judge.ALPHA)).max() for margins in even.values())
    rest = [task for task in words if words[task].word in (judge.UNDECIDED, judge.MISSING)]
    others = {task: v for task, v in words.items() if task not in even and task not in rest}
    e = PROFILES[PROFILE]
    text = (
        f"At half the paper's width and after {e['epochs'] * e['iterations']:,} of its 1,500,000 training steps, on "
        f"{runs[0].provenance['train_images']} photographs, on-demand learning and equal shares train networks whose "
        f"mean PSNR is alike within ±{within:.2f} dB on {listed([*even])} ({judge.count_seeds(even)}), while the "
        f"feedback moved at most {100 * max(map(judge.dose_of, runs)):.1f} % of a batch from or to a level"
    )
    more = [f"on {listed(rest)} nothing is decided"] * bool(rest)
    more += [f"that on-demand learning is ahead is {by_word(others)}"] * bool(others)
    return "; ".join([text, *more]) + "."


def cite() -> str:
    """How to cite: what one sentence may say, and BibTeX of this companion and of the paper."""
    known = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    quoted, code = sentence(), commit()
    version = known["version"] + (f", commit {code}" if re.fullmatch(r"[0-9a-f]+", code) else "")
    return f"""\
Cite the paper for its claims, and this companion, with its commit, for what is measured here.
{f"In one sentence: {quoted}" if quoted else ""}

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


SNIPPETS = {
    "verdict": verdict,
    "cite": cite,
    "found-allocations": allocations,
    "found-tests": tests,
    "found-doses": doses,
}
SNIPPETS |= {"found-levels": levels, "found-rivals": rivals, "found-forgotten": forgotten, "found-pulls": pulls}
SNIPPETS["found-spectrum"] = spectrum
SNIPPETS |= {
    "found-papers-dose": papers_dose,
    "found-fixation": found_fixation,
    "found-gate": found_gate,
    "found-power": power,
}
