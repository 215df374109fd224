"""Table 1 and its twin for denoising: seven schedules, four tasks (Sec. 6.3, Supp. E).

Runs: every schedule of one task, paired by seed. A schedule that a reader adds to `odl.schedules.SCHEDULES` has a row,
a colour and a margin like the paper's; where the paper has no number there is a dash.
"""

from dataclasses import replace
from functools import partial
from itertools import cycle, product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from companion import judge, published
from companion.judge import Decision, Evidence, compare, plain
from companion.notebook import several
from companion.show import sentences, tables
from companion.show.figures import COLOURS, LEVEL_COLOURS, mark_equivalence, minus, subplots, title_of
from companion.training import results
from companion.training.measurement import Result
from companion.words import count_seeds, estimate, number
from odl import paper
from odl.evaluation import overall
from odl.experiment import Experiment
from odl.parameters import choice
from odl.rivals import SPECIALISTS, seed_of_specialists
from odl.schedules import SCHEDULES, Schedule, allocate

WORST_GAPS = {"psnr": "worst_gap", judge.COMPOSITE: "worst_gap_kept"}  # score → column of the table
RIVALS = tuple(schedule for schedule in published.SEVEN if schedule != "on_demand")


def check_schedules(schedules, where_none) -> list[str]:
    """Return a list of schedules, `where_none` where it is empty. Raises ParameterError."""
    schedules = [*where_none] if schedules == [] else schedules
    return several("schedules", schedules, partial(choice, options=SCHEDULES))


# The table


def schedules_table(found: list[Result], task: str, schedules=published.SEVEN) -> pd.DataFrame:
    """Return Table 1 of one task: the damaged images, then a row per schedule; means over seeds, trials, levels 1 to 6.

    Columns schedule (first `not_restored`), seeds (how many), l2 (‰), l2_sd, psnr (dB), psnr_sd (standard deviations
    over seeds), psnr_kept and psnr_hole (known pixels put back, and inside the missing ones, where pixels are missing);
    `worst_gap` and `worst_gap_kept`, by either score and over the seeds that all of them have, where any specialist is
    on disk; ahead, low, high and verdict of `judge.lead`; kept_ahead and gap_ahead, by how many dB on-demand is better
    with the known pixels put back, and in its worst gap, each with _low and _high, and kept_verdict; then the paper's
    l2 and psnr on CelebA and SUN397.
    """
    damaged, evidence = tables.means(found).mean(), with_specialists(found)
    seeds = [{r.experiment["seed"] for r in found if r.experiment["schedule"] == s} for s in schedules]
    common = set.intersection(*filter(None, seeds)) if any(seeds) else set()
    first = {"schedule": "not_restored", "l2": damaged.l2_input, "psnr": damaged.psnr_input}
    rows = [first | {"psnr_hole": damaged.hole_input, "verdict": ""}]
    for schedule in schedules:
        own = [run for run in found if run.experiment["schedule"] == schedule]
        row = {"schedule": schedule} | tables.over_seeds(own)
        row |= tables.means(own)[["psnr_kept", "psnr_hole"]].mean().to_dict()
        for column, name in WORST_GAPS.items():
            each = [gaps_in(evidence, task, run, column).max() for run in own if run.experiment["seed"] in common]
            row[name] = pd.Series(each, dtype=float).mean()
        rival, pair = schedule != "on_demand", (task, "on_demand", schedule)
        lead = judge.lead(evidence, *pair) if rival else (*judge.spread([]), "")
        row |= zip(("ahead", "low", "high", "verdict"), lead, strict=True)
        kept = judge.composite_gaps(evidence.runs, *pair) if rival else []
        row["kept_verdict"] = str(judge.decide(kept)) if kept else ""
        nearer = worst_gap_margins(evidence, *pair) if rival else []
        for name, margins in (("kept", kept), ("gap", nearer)):
            row |= zip((f"{name}_ahead", f"{name}_low", f"{name}_high"), judge.spread(margins), strict=True)
        printed = published.TABLE1.get(task, {}).get(schedule, ((np.nan, np.nan), (np.nan, np.nan)))
        for name, (l2, psnr) in zip(("celeba", "sun397"), printed, strict=True):
            row |= {f"paper_{name}_l2": l2, f"paper_{name}_psnr": psnr}
        rows.append(row)
    frame = pd.DataFrame(rows, columns=list(rows[-1])).astype({"seeds": "Int64"})
    return frame if frame.worst_gap.notna().any() else frame.drop(columns=[*frame.filter(regex="(^|_)gap")])


def with_specialists(found: list[Result]) -> Evidence:
    """Return runs, and the networks on disk that were trained as they were, on level 1 to 5 alone.

    A folder of images has none, because no result keeps its place.
    """
    own = [Experiment(**run.experiment) for run in found if "images" not in run.experiment]
    usual = {"sharpness": 1.0, "severity": 0.0}
    alone = {replace(e, schedule=s, seed=seed_of_specialists(e.seed), **usual) for e in own for s in SPECIALISTS}
    return Evidence(judge.keyed([*filter(None, map(results.load_result, alone)), *found]))


def gaps_in(evidence: Evidence, task: str, run: Result, column="psnr") -> np.ndarray:
    """Return how far a network is behind those trained on one of levels 1 to 5 alone, level by level (dB).

    It is NaN where one of the five is missing or was trained under other conditions.
    """
    seed = seed_of_specialists(run.experiment["seed"])
    alone = [evidence.runs.get((task, name, seed)) for name in SPECIALISTS]
    if not all(alone) or len({judge.conditions_of(each) for each in (run, *alone)}) > 1:
        return np.full(paper.N_LEVELS, np.nan)
    pairs = zip(alone, judge.LEVELS, strict=False)
    return np.array([judge.score(other, level, column) - judge.score(run, level, column) for other, level in pairs])


def worst_gap_margins(evidence: Evidence, task: str, one: str, other: str, column="psnr") -> list[float]:
    """Return by how much the worst gap of `one` is smaller than that of `other` (dB), for every seed that both have.

    Minimax training (Gnanasambandam and Chan, ICML 2020) asks for the smallest worst gap.
    """
    pairs = judge.paired(evidence.runs, task, one, other)
    worst = [[gaps_in(evidence, task, run, column).max() for run in pair] for pair in pairs]
    return [theirs - ours for ours, theirs in worst if not np.isnan([ours, theirs]).any()]


GLANCE_COLUMNS = {  # column at a glance → of the whole table: numbers, their spread, and which of them is best
    ("here", "PSNR (dB)"): ("psnr", "psnr_sd", pd.Series.max),
    ("here", "L2 (‰)"): ("l2", "l2_sd", pd.Series.min),
    ("paper, PSNR (dB)", "CelebA"): ("paper_celeba_psnr", None, pd.Series.max),
    ("paper, PSNR (dB)", "SUN397"): ("paper_sun397_psnr", None, pd.Series.max),
}


def show_schedules(table: pd.DataFrame, aside: pd.DataFrame | None = None):
    """Show Table 1 at a glance: a row per schedule, the best number of a column bold.

    Below them stands in grey what is no schedule: the damaged images, and the rows of `aside` (schedule, psnr, l2).
    """
    own = table[table.schedule != "not_restored"]
    rows = pd.concat([own, table[table.schedule == "not_restored"], aside], ignore_index=True)
    shown = {("", "schedule"): [title_of(schedule) for schedule in rows.schedule]}
    for name, (column, spread, _) in GLANCE_COLUMNS.items():
        shown[name] = tables.with_spread(rows[column], rows[spread] if spread else rows[column] * np.nan)
    style = pd.DataFrame(shown).style.hide(axis="index")
    for name, (column, _, best) in GLANCE_COLUMNS.items():
        values = own[column].round(2).reset_index(drop=True)
        style = style.set_properties(subset=(values.index[values == best(values)], [name]), **{"font-weight": "bold"})
    style = style.set_properties(subset=(rows.index[len(own) :], slice(None)), opacity="0.65")
    return style.set_table_attributes('class="odl-table odl-glance"')


# Figures


def batch(schedule: str, done: float, psnr=None) -> np.ndarray | None:
    """Return images per level in a batch of 100, as a schedule asks for them.

    It is None where every image has one severity, where the schedule is told errors in the place of PSNRs, and where it
    is made for a run, from what others measured or with a memory.
    """
    row = SCHEDULES[schedule]
    told_errors = getattr(row, "feedback", "psnr") == "rms_error"
    if isinstance(row, type) or getattr(row, "fixated_on", None) is not None or told_errors:
        return None
    return allocate(np.atleast_2d(row(done, psnr, paper.N_LEVELS))[0], paper.BATCH_SIZE)


def planned(schedule: str) -> bool:
    """Return whether its shares follow from the share of training alone: not from scores, not from single images."""
    if isinstance(SCHEDULES[schedule], Schedule | type):
        return False
    return np.array_equal(batch(schedule, 0.5), batch(schedule, 0.5, np.linspace(40, 10, paper.N_LEVELS)))


def plot_schedules():
    """Draw images per level in a batch over training, for those of the seven schedules that are `planned`."""
    names = [name for name in published.SEVEN if planned(name)]
    size = (1.1 + 1.5 * len(names), 2.2)
    figure, axes = subplots(1, len(names), figsize=size, sharey=True, layout="constrained")
    done = np.linspace(0, 1, 200, endpoint=False)
    look = {"colors": LEVEL_COLOURS, "labels": range(1, paper.N_LEVELS + 1)}
    for axis, name in zip(axes, names, strict=True):
        axis.stackplot(done, np.transpose([batch(name, d) for d in done]), **look)
        axis.set(xlim=(0, 1), ylim=(0, paper.BATCH_SIZE), xticks=[0, 0.5, 1])
        axis.set_title("\n".join(title_of(name).split(maxsplit=1)), fontsize=9)
        axis.set_xlabel("share of training", fontsize=8)
    axes[0].set_ylabel("images per batch")
    figure.legend(*axes[0].get_legend_handles_labels(), title="level", loc="outside right center", fontsize=8)
    return figure


REACH = 1.0  # dB, how far figures of differences go
PAPER_MARKS = {"celeba": ("s", "paper, CelebA", 0.22), "sun397": ("D", "paper, SUN397", 0.42)}  # marker, title, place


def plot_differences(gaps: dict, table: pd.DataFrame | None = None):
    """Draw PSNR minus that of equal shares: a stroke for each seed, a point for their mean with its 95 % interval.

    gaps: schedule → `judge.gaps` over equal shares; the paper's stand beside them where `schedules_table` has them.
    """
    figure, axis = subplots(figsize=(7, 0.9 + 0.45 * len(gaps)), layout="constrained")
    mark_equivalence(axis, label="no difference")
    axis.plot([], [], "o", color="black", label="here")
    for place, (schedule, values) in enumerate(gaps.items()):
        look, (mean, low, high) = {"color": COLOURS.get(schedule, "0.3")}, judge.spread(values)
        near = [value for value in values if abs(value) < REACH]
        axis.plot(near, [place] * len(near), "|", markersize=11, **look)
        if abs(mean) < REACH:
            axis.hlines(place, *np.clip([low, high], -REACH, REACH), **look)
        put(axis, mean, place, "o", **look)
    for name, (marker, title, shift) in PAPER_MARKS.items() if table is not None else ():
        psnr = table.set_index("schedule")[f"paper_{name}_psnr"]
        for place, margin in enumerate(psnr.reindex(list(gaps)) - psnr.get("rigid_joint", np.nan)):
            put(axis, margin, place + shift, marker, color="0.5")
        axis.plot([], [], marker, color="0.5", label=title)
    axis.set_yticks(range(len(gaps)), [title_of(name) for name in gaps])
    axis.set(xlim=(-1.1 * REACH, 1.1 * REACH), ylim=(len(gaps) - 0.3, -0.5), xlabel="PSNR − equal shares (dB)")
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return figure


def put(axis, value: float, place: float, marker: str, **look) -> None:
    """Draw a value, or beyond `REACH` an arrow at the edge with its number."""
    if abs(value) > REACH:
        side = 1 if value > 0 else -1
        text = {"xytext": (-8 * side, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axis.annotate(number(value), (side * REACH, place), ha="right" if side > 0 else "left", **text, **look)
        value, marker = side * REACH, ">" if side > 0 else "<"
    axis.plot(value, place, marker, markersize=5, **look)


def plot_scores(table: pd.DataFrame):
    """Draw mean PSNR of every schedule (higher is better) against its worst gap to the specialists (lower is better).

    Where pixels are missing a second panel has the same with the known pixels put back.
    """
    panels = {"over all pixels": ("worst_gap", "psnr"), "known pixels kept": ("worst_gap_kept", "psnr_kept")}
    panels = {title: columns for title, columns in panels.items() if table[columns[0]].notna().any()}
    size = (3.4 + 4.2 * len(panels), 3.8)
    figure, axes = subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
    for axis, (title, (gap, mean)) in zip(axes[0], panels.items(), strict=True):
        for row, mark in zip(table.dropna(subset=gap).to_dict("records"), cycle("osD^vP*X<>hp"), strict=False):
            look = {"color": COLOURS.get(row["schedule"], "0.4"), "label": title_of(row["schedule"])}
            axis.plot(row[gap], row[mean], mark, markersize=7, alpha=0.8, **look)
        axis.set_xscale("symlog", linthresh=1)
        within = axis.get_xlim()
        axis.set_xticks(ticks := [-0.5, 0, 0.5, 1, 2, 5, 10, 20], [*map(minus, ticks)])
        axis.xaxis.set_minor_locator(plt.NullLocator())
        axis.set(title=title if len(panels) > 1 else "", xlim=within)
    axes[0, 0].set_ylabel("mean PSNR, levels 1–6 (dB)")
    figure.supxlabel("worst gap to the specialists (dB, logarithmic beyond 1)", fontsize=10)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=9)
    return figure


def plot_levels(table: pd.DataFrame, task: str):
    """Draw PSNR per level of `tables.level_table` minus that of equal shares, a line per schedule.

    A line that leaves the picture is further than `REACH` away.
    """
    figure, axis = subplots(figsize=(6, 4.2), layout="constrained")
    levels = list(range(1, paper.N_LEVELS + 2))
    rows = table[table.scored == "all pixels"].set_index("schedule")[[f"level_{level}" for level in levels]]
    if "rigid_joint" in rows.index:
        equal = rows.loc["rigid_joint"]
        for schedule, psnr in rows.drop(["not_restored", "rigid_joint"]).iterrows():
            look = {"color": COLOURS.get(schedule), "linewidth": 2.2 if schedule == "on_demand" else 1.3}
            axis.plot(levels, psnr - equal, "o-", label=title_of(schedule), markersize=4, **look)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    axis.axhline(0, color="0.4", linewidth=1)
    axis.axvspan(5.5, 6.5, color="0.92", zorder=0)
    axis.set(xlabel=f"level: {paper.TASKS[task]['severity']}", ylabel="PSNR − equal shares (dB)", xlim=(0.5, 6.5))
    axis.set_ylim(-REACH, REACH)
    axis.set_xticks(levels, [f"{i}\n{low}–{high}" for i, (low, high) in enumerate(paper.TASKS[task]["levels"], 1)])
    return figure


# Sentences


def describe_schedules(results: list[Result], task: str, schedules=published.SEVEN) -> str:
    """Say on-demand minus each other schedule, and the claim that it leads the paper's six."""
    evidence, rivals = Evidence(judge.keyed(results)), [schedule for schedule in schedules if schedule != "on_demand"]
    titles = {rival: title_of(rival).lower() for rival in rivals}
    lines = {f"On-demand − {titles[rival]}": compare(evidence, {"": (task, "on_demand", rival)}) for rival in rivals}
    if {*RIVALS} <= {*rivals} and task in published.TABLE1:
        lines["The paper's claim, all six together"] = judge_best_of_seven(evidence, task)
    return sentences.page(lines, results, sentences.dose(results))


def papers_test(evidence: Evidence) -> pd.DataFrame:
    """Return the paper's test, which asks about two networks and not two schedules: a row per task and seed.

    Columns task, seed, ahead (dB by which on-demand is ahead of rigid joint learning, mean over trials), its 95 %
    interval, low and high, and p (paired t-test over the trials of these networks).
    """
    rows = []
    for task in paper.AS_SHIPPED:
        for runs in judge.paired(evidence.runs, task, "on_demand", "rigid_joint"):
            a, b = (overall(run.evaluation).psnr for run in runs)  # dB, one for every trial
            rows.append((plain(task), runs[0].experiment["seed"], *judge.spread(a - b), stats.ttest_rel(a, b).pvalue))
    return pd.DataFrame(rows, columns=["task", "seed", "ahead", "low", "high", "p"])


# Judged claims


def judge_worst_gap(evidence: Evidence, one: str, other: str) -> Decision:
    """Judge whether the worst gap to the specialists is smaller with one schedule than with another, on every task."""

    def by(column: str, tasks) -> dict:
        return {plain(task): worst_gap_margins(evidence, task, one, other, column) for task in tasks}

    return judge.decide_claim(by("psnr", paper.AS_SHIPPED), by(judge.COMPOSITE, paper.MASKED))


def judge_best_of_seven(evidence: Evidence, task: str) -> Decision:
    """Judge on-demand against each of the six others; the paper's margin is that over its closest rival."""
    pairs = {published.SEVEN[rival]: (task, "on_demand", rival) for rival in RIVALS}
    printed = {title: judge.printed_margin(evidence, task, *pair) for title, (_, *pair) in pairs.items()}
    closest = min(printed, key=printed.get)
    return compare(evidence, pairs, best=True, printed={closest: printed[closest]})


def judge_error(evidence: Evidence) -> Decision:
    """Judge by how many per cent Equation 3 changes L2 against equal shares, on every task; below 0 it is lower."""
    parts, papers = {}, {}
    for task in paper.AS_SHIPPED:
        pairs = judge.paired(evidence.runs, task, "on_demand", "rigid_joint")
        pairs = [[judge.score(run, column="l2") for run in pair] for pair in pairs if "l2" in pair[0].evaluation]
        parts[plain(task)] = [100 * (ours / equal - 1) for ours, equal in pairs]
        ours, equal = (judge.printed(evidence, task, schedule)[0] for schedule in ("on_demand", "rigid_joint"))
        papers[plain(task)] = round(100 * (1 - ours / equal), 1)
    return judge.decide_claim(parts, sign=-1, unit="%", printed=papers)


def judge_joint_schedules(evidence: Evidence) -> Decision:
    """Judge each jointly trained schedule against each of the other three, on every task."""
    names = {rival: title.lower() for rival, title in published.SEVEN.items()}
    pairs = {
        f"{plain(task)}, {names[one]} − {names[other]}": (task, one, other)
        for task in paper.AS_SHIPPED
        for one, other in product(published.JOINT, published.PARTIAL)
    }
    return compare(evidence, pairs)


def judge_hard_mining(evidence: Evidence) -> Decision:
    """Judge on-demand against hard mining on every task; beside it stands the control with the paper's batches."""
    found = compare(evidence, judge.on_tasks("on_demand", "hard_mining"), harm=True)
    control = judge.paired(evidence.runs, "deblur", "on_demand", "hard_mining, batch 100")
    if not control:
        return found
    margins = [judge.score(ours) - judge.score(mined) for ours, mined in control]
    note = f"; to deblurring with batches of 100, of which 10 count, three times the images, {estimate(margins)}"
    return found.with_note(f"{note} ({count_seeds([margins])})")
