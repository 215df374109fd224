"""Whether feedback helps at all: the margin over rigid joint learning against dose and against scale (Eq. 3, Sec. 6.6).

Level i of PSNR P_i gets a share of the batch in proportion to 1/P_i^k: k = 0 is rigid joint learning, k = 1 Equation 3,
and a negative k favours the easy levels. A run is compared with rigid joint learning of its own seed, width and length.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion import judge, published
from companion.judge import Decision, Evidence, compare, compare_levels, dose_of, gaps, paired, plain, score
from companion.runs import catalogue
from companion.runs.catalogue import LADDER
from companion.show import figures
from companion.show.figures import minus, subplots
from companion.show.sentences import page
from companion.show.tables import show_table, with_interval
from companion.training import results
from companion.words import ERROR_SLOPE, SLOPE, estimate, number, signed
from odl import paper, schedules
from odl.experiment import PROFILES, Experiment

NAMES = {-4: "on_demand, k = -4", -1: "on_demand, k = -1", 0: "rigid_joint", 1: "on_demand", 4: "on_demand, k = 4"}
COLOURS = dict(zip(NAMES, ("#6A3D9A", "#B39DDB", "#0072B2", "#D55E00", "#7F2704"), strict=True))  # 0, 1 as in Table 1
LADDER_LOOKS = (("#56B4E9", "o"), ("#0072B2", "s"))  # narrow, wide
OPEN_MARK = {"markersize": 5, "markerfacecolor": "none", "linestyle": "none"}
PAPERS_STEPS = 1_500_000
COLUMNS = ["task", "k", "width", "steps", "seeds", "dose", "psnr", "margin", "low", "high", "verdict"]
COLUMNS += ["kept", "kept_low", "kept_high", "kept_verdict"]  # with the known pixels put back
PER_SEED = ["doses", "margins"]


def name(e: Experiment) -> str:
    """Return a run's schedule, k and network, and what is not the profile's: decay, batch, width and steps."""
    other = {*e.overrides} - {"sharpness", "decay", "batch_size", "network"}
    differs = {
        f"k = {e.sharpness:g}": e.sharpness != 1,
        e.network: e.network != "paper",
        f"decay {e.decay:g}": "decay" in e.overrides,
        f"batch {e.batch_size}": "batch_size" in e.overrides,
        f"width {e.width}, {e.epochs * e.iterations:,} steps": other,
    }
    return ", ".join([e.schedule, *(said for said, shown in differs.items() if shown)])


def load_runs(experiments: list[Experiment], load=None) -> Evidence:
    """Return what is on disk of some runs, which go by `name`."""
    found = {(e.task, name(e), e.seed): (load or results.load_result)(e) for e in experiments}
    return Evidence({key: run for key, run in found.items() if run})


def doses_table(experiments: list[Experiment]) -> pd.DataFrame:
    """Return a row for every on-demand setting: means over the seeds that it shares with rigid joint learning.

    `COLUMNS` and, seed by seed, `PER_SEED`: dose in %, psnr in dB, margin in dB (see `judge.lead`), and where pixels
    are missing the margin by the composite with a word of its own.
    """
    evidence, rows = load_runs(experiments), []
    settings = {replace(e, seed=0) for e in experiments if e.schedule == "on_demand"}
    for e in sorted(settings, key=lambda e: (list(paper.AS_SHIPPED).index(e.task), e.width, e.epochs, e.sharpness)):
        pair = e.task, name(e), name(replace(e, schedule="rigid_joint", sharpness=1.0))
        ours = [run for run, _ in paired(evidence.runs, *pair)]
        doses = [100 * dose_of(run) for run in ours]
        means = [np.mean(values) if values else np.nan for values in (doses, [score(run) for run in ours])]
        setting = e.task, e.sharpness, e.width, e.epochs * e.iterations, len(ours)
        kept = judge.composite_gaps(evidence.runs, *pair)
        composite = *judge.spread(kept), str(judge.decide(kept)) if kept else ""
        rows.append((*setting, *means, *judge.lead(evidence, *pair), *composite, doses, gaps(evidence.runs, *pair)))
    return pd.DataFrame(rows, columns=COLUMNS + PER_SEED)


# Judged claims


def judge_dose(evidence: Evidence, k: int = 4) -> Decision:
    """Judge B_i ∝ 1/P_i^k against equal shares, on every task; k = 4 is about four times Equation 3's dose."""
    pair = NAMES[k], "rigid_joint"
    asked = paper.AS_SHIPPED if k == 1 else ()  # the paper's own k
    printed = {plain(task): judge.printed_margin(evidence, task, *pair) for task in asked}
    found = compare(evidence, judge.on_tasks(*pair), printed=printed)
    if found.word == judge.MISSING:
        return found
    doses = [100 * dose_of(run) for run in judge.runs_of(evidence.runs, NAMES[k])]
    return found.with_note(f", dose {np.mean(doses):.2f} %")


def judge_slope(evidence: Evidence) -> Decision:
    """Judge how the margin over equal shares changes with the dose to the hard levels: the four tasks' mean.

    In dB for each per cent of a batch that a level is away from its equal share, by least squares through no margin at
    no dose; a dose to the easy levels counts as negative. The same of the squared error, which should rise, confirms.
    """
    by_psnr, by_error, kept = (slopes(evidence, column) for column in ("psnr", "l2", judge.COMPOSITE))
    text = "; mean squared error ".join([estimate(by_psnr, SLOPE), estimate(by_error, ERROR_SLOPE)])
    return judge.decide_claim({"": by_psnr}, {"": kept}, sign=-1, unit=SLOPE, text=text, confirm={"": by_error})


def slopes(evidence: Evidence, asked: str) -> list[float]:
    """Return the slope of one score for every seed with all doses on every task.

    The composite's is that of PSNR on the tasks without known pixels.
    """
    ks, of_seeds = (-4, 1, 4), {}  # seed → a slope for each task
    for task in paper.AS_SHIPPED:
        column = "psnr" if asked == judge.COMPOSITE and task not in paper.MASKED else asked
        for equal, *others in paired(evidence.runs, task, "rigid_joint", *map(NAMES.get, ks)):
            if all(column in run.evaluation for run in (equal, *others)):
                margins = [score(run, column=column) - score(equal, column=column) for run in others]
                doses = [np.sign(k) * 100 * dose_of(run) for k, run in zip(ks, others, strict=True)]
                of_seeds.setdefault(equal.experiment["seed"], []).append(slope_of(doses, margins))
    return [np.mean(each) for each in of_seeds.values() if len(each) == len(paper.AS_SHIPPED)]


def slope_of(doses, margins) -> float:
    """Return dB for each per cent by least squares through no margin at no dose; NaN where no dose differs from 0."""
    x, y = np.array(doses), np.array(margins)
    return x @ y / (x @ x or np.nan)


def judge_decay(evidence: Evidence) -> Decision:
    """Judge how much of the cumulative curriculum's lead over on-demand learning is lost if the rate falls earlier."""
    schedules = ("cumulative_curriculum", "on_demand")
    four = (*schedules, *(f"{schedule}, decay 0.4" for schedule in schedules))

    def lost(column: str) -> dict:
        found = {}
        for task in catalogue.CONFOUNDED:
            scores = [[score(run, column=column) for run in runs] for runs in paired(evidence.runs, task, *four)]
            found[plain(task)] = np.array([(a - b) - (c - d) for a, b, c, d in scores])
        return found

    return judge.decide_claim(lost("psnr"), confirm={task: -values for task, values in lost("l2").items()})


def judge_replay(evidence: Evidence) -> Decision:
    """Judge a network's own feedback against recorded shares, and say how little the two shares differ."""
    found = compare(evidence, judge.on_tasks(NAMES[4], "replay", catalogue.CONFOUNDED))
    moved = {}  # task → per cent of a batch that recorded shares give to other levels, mean of epochs and seeds
    for task in catalogue.CONFOUNDED:
        pairs = paired(evidence.runs, task, NAMES[4], "replay")
        both = [[np.array([epoch["allocation"] for epoch in run.history]) for run in pair] for pair in pairs]
        changes = [np.abs(own - other).sum(1).mean() / 2 for own, other in both if own.size]
        if any(changes):
            moved[task] = np.mean(changes)
    if found.word == judge.MISSING or not moved:
        return found
    each = " and ".join(f"{share:.2f} % of a batch on {plain(task)}" for task, share in moved.items())
    images = " to ".join(dict.fromkeys(f"{100 / share:.0f}" for share in sorted(moved.values(), reverse=True)))
    note = f"; recorded and own shares differ by {each}, one image in {images}, so this carries no contrast"
    return found.with_note(note)


# Tables


CONTROLS = {  # what may make the cumulative curriculum win: contrast → one run and another, by `name`
    "cumulative curriculum − on-demand": ("cumulative_curriculum", "on_demand"),
    "the same, rate falling over the last 2/5": ("cumulative_curriculum, decay 0.4", "on_demand, decay 0.4"),
    "the same, constant rate": ("cumulative_curriculum, decay 0", "on_demand, decay 0"),
    "its mean shares alone − equal shares": ("static_easy", "rigid_joint"),
    "its mean shares alone − the curriculum": ("static_easy", "cumulative_curriculum"),
    "k = 4 − another seed's shares under k = 4": (NAMES[4], "replay"),
}


def controls_table(evidence: Evidence) -> pd.DataFrame:
    """Return rate, share, order and feedback apart: contrast, task, seeds, margin, low and high (dB), verdict."""
    rows = []
    for task in catalogue.CONFOUNDED:
        for contrast, pair in CONTROLS.items():
            seeds = len(gaps(evidence.runs, task, *pair))
            rows.append((contrast, plain(task), seeds, *judge.lead(evidence, task, *pair)))
    return pd.DataFrame(rows, columns=["contrast", "task", "seeds", "margin", "low", "high", "verdict"])


def levels_table(evidence: Evidence) -> pd.DataFrame:
    """Return for each task, k and level how hard it pulls, what feedback gives it, and what came of it.

    Columns task, k, level; pull: the norm of its gradient under equal shares, level 1's is 1; share: per cent of the
    images in the last epoch; seeds, margin (dB over equal shares) and its 95 % interval, low and high.
    """
    rows, each = [], range(1, paper.N_LEVELS + 1)
    for task in paper.AS_SHIPPED:
        norms = [run.level_means["norm"] for [run] in paired(evidence.runs, "gradients", f"{task} rigid_joint")]
        pull = np.mean([[norm[str(i)] / norm["1"] for i in each] for norm in norms] or [[np.nan] * len(each)], axis=0)
        for k in (k for k in NAMES if k and paired(evidence.runs, task, NAMES[k], "rigid_joint")):
            pair = task, NAMES[k], "rigid_joint"
            shares = np.mean([run.history[-1]["allocation"] for run, _ in paired(evidence.runs, *pair)], axis=0)
            for level, strength, share in zip(each, pull, shares, strict=True):
                margins = gaps(evidence.runs, *pair, [str(level)])
                rows.append((task, k, level, strength, share, len(margins), *judge.spread(margins)))
    columns = ["task", "k", "level", "pull", "share", "seeds", "margin", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


# Sentences


def describe_doses(experiments: list[Experiment]) -> str:
    """Say every k against equal shares, on all tasks together, and Equation 3 while the learning rate is constant."""
    evidence = load_runs(experiments)
    notes = {k: ", towards the easy levels" if k < 0 else ", Equation 3" * (k == 1) for k in exponents(experiments)}
    lines = {f"k = {minus(k)}{note}": judge_dose(evidence, k) for k, note in notes.items()}
    early = {plain(task): margins for task in paper.AS_SHIPPED if (margins := early_margins(evidence, task))}
    each = "; ".join(f"{task} {estimate(margins)}" for task, margins in early.items())
    text = f"While the learning rate is constant, from 50 to 80 % of the epochs, Equation 3 − equal shares is {each}, "
    return page(lines, list(evidence.runs.values()), f"{text}by the validation PSNR of levels 1 to 5." if each else "")


def early_margins(evidence: Evidence, task: str) -> list[float]:
    """Return by how many dB Equation 3 is ahead of equal shares before the learning rate falls, for every seed.

    By the mean validation PSNR of levels 1 to 5 from 50 to 80 % of the epochs.
    """

    def early(run) -> float:
        n = len(run.history)
        return np.mean([epoch["psnr"] for epoch in run.history[n // 2 : 8 * n // 10]])

    pairs = [pair for pair in paired(evidence.runs, task, "on_demand", "rigid_joint") if len(pair[0].history) >= 10]
    return [early(ours) - early(equal) for ours, equal in pairs]


def exponents(experiments: list[Experiment]) -> list[float]:
    """Return the k of some runs, from the easy levels to the hard ones."""
    return sorted({e.sharpness for e in experiments if e.schedule == "on_demand"})


def describe_levels(experiments: list[Experiment]) -> str:
    """Say of every k whether the level that gets more images gains more than the one that gets fewer."""
    evidence, lines = load_runs(experiments), {}
    for k in exponents(experiments):
        more, fewer = ("1", "5") if k < 0 else ("5", "1")
        found = compare_levels(evidence, NAMES[k], "rigid_joint", more, fewer)
        lines[f"k = {minus(k)}, level {more} − level {fewer}"] = found
    return page(lines, [])


def describe_strongest_rival(ladder: list[Experiment]) -> str:
    """Say on-demand learning against the long run's rival, at the profile's length and at the ladder's longest."""
    task, rival = catalogue.LONG_RUN_RIVAL
    longest = [e for e in ladder if (e.task, e.schedule) == (task, rival)]
    lines = {}
    for epochs in sorted({n for e in longest for n in (PROFILES[e.profile]["epochs"], e.epochs)}):
        pair = [[replace(e, schedule=s, epochs=epochs) for e in longest] for s in ("on_demand", rival)]
        evidence = load_runs(sum(pair, []))
        title = f"{plain(task).capitalize()}, {epochs * longest[0].iterations:,} steps"
        lines[title] = compare(evidence, {"": (task, *(name(runs[0]) for runs in pair))})
    return page(lines, [])


# On the page


def shares(psnr, k: float) -> np.ndarray:
    """Return the share of the batch of each level from its PSNR in dB, as training has it."""
    weights = schedules.on_demand(0, psnr, len(psnr)) ** float(k)
    return weights / weights.sum()


def show_doses(table: pd.DataFrame, *differ: str):
    """Show the settings of a table by the columns in which they differ."""
    tasks = table.task.map(plain).where(~table.task.duplicated(), "")
    kept = [with_interval(row.kept, row.kept_low, row.kept_high) for row in table.itertuples()]
    shown = table.assign(task=tasks, margins=table.margins.map(estimate), kept=kept)
    composite = ["kept", "kept_verdict"] if table.kept.notna().any() else []
    shown = shown[["task", *differ, "seeds", "dose", "psnr", "margins", "verdict", *composite]]
    names = {"dose": "dose (%)", "psnr": "PSNR (dB)", "margins": "− rigid joint"}
    names |= {"kept": "known pixels kept", "kept_verdict": "its verdict"}
    return show_table(shown.rename(columns=names), {"k": minus, "steps": "{:,}"})


def show_levels(table: pd.DataFrame):
    """Show for each task and level its pull, then what each k gives it, and what came of that."""
    each = table.drop_duplicates(["task", "level"])
    shown = {("", "task"): each.task.map(plain).where(~each.task.duplicated(), "").to_list()}
    shown |= {("", "level"): each.level.to_list(), ("", "pull"): [f"{pull:.2f}" for pull in each.pull]}
    for k, rows in table.groupby("k"):
        rows = each[["task", "level"]].merge(rows, "left", ["task", "level"])  # where this k is to be measured: –
        shown[f"k = {minus(k)}", "share (%)"] = ["–" if pd.isna(share) else f"{share:.1f}" for share in rows.share]
        shown[f"k = {minus(k)}", "− rigid joint (dB)"] = [*map(with_interval, rows.margin, rows.low, rows.high)]
    return show_table(pd.DataFrame(shown)).set_table_attributes('class="odl-table odl-numbers"')


def show_controls(table: pd.DataFrame):
    """Show the measured rows of `controls_table`."""
    shown, numbers = table[table.seeds > 0], dict.fromkeys(("difference (dB)", "low", "high"), number)
    return show_table(shown.rename(columns={"margin": "difference (dB)"}), numbers)


def frame_panel(axis, task: str, corners) -> None:
    """Draw a panel's title and the margins that count as equal; it shows its corners at least."""
    axis.set_title(plain(task), fontsize=10)
    figures.mark_equivalence(axis, along="y")
    axis.update_datalim(corners)


def plot_margins(table: pd.DataFrame):
    """Draw the margin over rigid joint learning against dose, for each task; left of 0 the easy levels get it."""
    label = "to the easy levels  ←  dose (% of a batch)  →  to the hard levels"
    figure, axes = subplots(2, 2, figsize=(8.6, 5.6), sharex=True, sharey=True, layout="constrained")
    figure.supxlabel(label, fontsize=10)
    figure.supylabel("margin over rigid joint learning (dB)", fontsize=10)
    for task, axis in zip(paper.AS_SHIPPED, axes.flat, strict=True):
        frame_panel(axis, task, [(-2, -0.15), (5, 0.15)])
        rows = table[table.task == task]
        axis.axvline(0, color="0.4", linewidth=1)
        axis.plot(0, 0, "x", color=COLOURS[0], label="k = 0, rigid joint")
        signed_doses = [np.sign(row.k) * np.array(row.doses) for row in rows.itertuples()]
        for row, doses in zip(rows.itertuples(), signed_doses, strict=True):
            draw_setting(axis, doses, row, COLOURS[row.k], "o", f"k = {minus(row.k)}")
        slope = slope_of(sum(map(list, signed_doses), []), sum(rows.margins, []))
        if (rows.seeds > 0).sum() > 1 and np.isfinite(slope):
            axis.axline((0, 0), slope=slope, color="0.4", linestyle=":", linewidth=1, zorder=1)
            axis.text(0.02, 0.03, signed(slope, SLOPE), transform=axis.transAxes, color="0.4", fontsize=8)
        absent = ", ".join(minus(k) for k in rows.k[rows.seeds == 0])
        if absent or rows.empty:
            text = f"k = {absent}: {judge.MISSING}" if absent else judge.MISSING
            axis.text(0.98, 0.03, text, transform=axis.transAxes, ha="right", color="0.4", fontsize=8)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=9)
    return figure


def plot_ladder(table: pd.DataFrame):
    """Draw margin and dose of Equation 3 against the number of steps, for each task, beside the paper's margins."""
    figure, axes = subplots(2, len(LADDER), figsize=(8.6, 5.6), sharex=True, sharey="row", layout="constrained")
    lengths = [*sorted({*table.steps}), PAPERS_STEPS]
    for (above, below), task in zip(axes.T, LADDER, strict=True):
        rows = table[table.task == task]
        frame_panel(above, task, [(lengths[0] / 1.5, 0), (1.5 * PAPERS_STEPS, 0)])
        for (colour, mark), (width, part) in zip(LADDER_LOOKS, rows.groupby("width"), strict=False):
            for i, row in enumerate(part.itertuples()):
                places = row.steps * (0.9 if mark == "o" else 1.1) * np.ones(row.seeds)  # beside each other
                draw_setting(above, places, row, colour, mark, None if i else f"width {width}")
                below.plot(places, row.doses, mark, color=colour, **OPEN_MARK)
        margins = np.subtract(published.TABLE1[task]["on_demand"], published.TABLE1[task]["rigid_joint"])[:, 1]
        above.plot([PAPERS_STEPS] * 2, margins, "D", color="0.35", markersize=5, label="the paper's, width 64")
        for steps in {*lengths[:-1]} - {*rows.steps[rows.seeds > 0]}:
            place = {"transform": below.get_xaxis_transform(), "ha": "center", "va": "center", "rotation": 90}
            below.text(steps, 0.5, judge.MISSING, color="0.4", fontsize=8, **place)
        below.set(xscale="log", xlabel="training steps")
        below.set_xticks(lengths, [f"{steps:,}" if steps < 1e6 else f"{steps / 1e6:g} M" for steps in lengths])
        below.xaxis.set_minor_locator(plt.NullLocator())
    axes[0, 0].set_ylabel("margin (dB)")
    axes[1, 0].set(ylabel="dose (% of a batch)", ylim=(0, 1.2 * max(sum(table.doses, [1]))))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=9)
    return figure


def draw_setting(axis, places, row, colour, mark, label) -> None:
    """Draw an open mark for every seed's margin, the mean with its 95 % interval, and thick the 90 % one."""
    axis.plot(places, row.margins, mark, color=colour, label=label, **OPEN_MARK)
    if row.seeds >= judge.MIN_SEEDS:
        place, ends = np.mean(places), [[row.margin - row.low], [row.high - row.margin]]
        axis.errorbar(place, row.margin, ends, fmt="_", color=colour, markersize=9, capsize=3)
        axis.vlines(place, *judge.narrow_interval(row.margins), color=colour, linewidth=6, alpha=0.3)
