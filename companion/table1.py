"""Table 1 and its twin for denoising: seven schedules, four tasks (Sec. 6.3, Supp. E)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion import judge
from companion.figures import COLOURS, GREY, KEPT, LEVEL_COLOURS, TITLES, level_names
from companion.judge import (
    FAR,
    Measured,
    Verdict,
    below_input,
    compare,
    estimate,
    gaps,
    keyed,
    number,
    paired,
    paired_p_value,
    plain,
    score,
    verdict_on,
)
from companion.prose import dose, page, swamped
from companion.tables import NOT_RESTORED, baselines, over_seeds, show_table
from odl import paper
from odl.evaluation import overall
from odl.results import Result
from odl.schedules import SCHEDULES, allocate


def table(results: list[Result], task: str) -> pd.DataFrame:
    """Table 1 of one task, the damaged images and the paper's rows: means over seeds and trials, the paper's numbers.

    Columns schedule (first `not_restored`), seeds (how many), l2 (‰), l2_sd, psnr (dB), psnr_sd (standard deviations
    over seeds), psnr_kept and psnr_hole (known pixels kept, and inside the missing ones, where pixels are missing);
    then ahead (dB by which on-demand is, over the seeds that both have), low and high (its 95 % interval), and verdict;
    then the paper's l2 and psnr on CelebA and SUN397.
    """
    runs, damaged = judge.keyed(results), baselines(results)
    rows = [{"schedule": NOT_RESTORED, "l2": damaged.l2_input, "psnr": damaged.psnr_input}]
    rows[0] |= {"psnr_hole": damaged.hole_input, "verdict": ""}
    for schedule in paper.SCHEDULES:
        celeba, sun397 = paper.TABLE1[task][schedule]
        found = [r for r in results if r.experiment["schedule"] == schedule]
        row = {"schedule": schedule} | over_seeds(found)
        row |= baselines(found)[["psnr_kept", "psnr_hole"]].to_dict()
        margins = judge.gaps(runs, task, "on_demand", schedule) if schedule != "on_demand" else []
        low, high = judge.interval(margins) if len(margins) > 1 else (float("nan"),) * 2
        row |= {"ahead": np.mean(margins) if margins else float("nan"), "low": low, "high": high}
        below = [""] if judge.below_input(runs, task, "on_demand", schedule) else []
        row["verdict"] = judge.verdict_on({"": margins}, below=below).word if schedule != "on_demand" else ""
        for name, (l2, psnr) in (("celeba", celeba), ("sun397", sun397)):
            row |= {f"paper_{name}_l2": l2, f"paper_{name}_psnr": psnr}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(rows[-1])).astype({"seeds": "Int64"})


RIVALS = tuple(schedule for schedule in paper.SCHEDULES if schedule != "on_demand")
JOINT = ("rigid_joint", "cumulative_curriculum", "cumulative_anti_curriculum")


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
    return verdict_on(
        {"": np.maximum(behind - FAR, damage)}, below=both_swamped(m, "staged_curriculum", {"": "deblur"}), text=text
    )


def last_sub_task(m: Measured, schedule: str, first: str, last: str) -> Verdict:
    """A staged schedule against rigid joint: more is lost on the level seen first than on the level seen last."""
    parts = {}
    for task in paper.TASKS:
        lost = [gaps(m.runs, task, "rigid_joint", schedule, [level]) for level in (first, last)]
        parts[plain(task)] = [a - b for a, b in zip(*lost, strict=True)]
    return verdict_on(parts, below=both_swamped(m, schedule, {plain(task): task for task in paper.TASKS}))


def both_swamped(m: Measured, schedule: str, tasks: dict) -> list:
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
    return verdict_on(parts, below=[plain(task) for task in paper.TASKS if below_input(m.runs, task, *RIVALS)])


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


def verdict(results, task: str) -> str:
    """On-demand minus each other schedule, and the claim that it leads all of them."""
    m, title = Measured(keyed(results)), paper.SCHEDULES
    lines = {f"On-demand − {title[r].lower()}": compare(m, {"": (task, "on_demand", r)}) for r in RIVALS}
    lines |= {"The paper's claim, all six together": best_of_seven(m, task)}
    return page(lines, results, swamped(m, task, paper.SCHEDULES), dose(results))


def plot_schedules():
    """Images per level in a batch over training, for the schedules that are fixed beforehand."""

    names = [name for name in paper.SCHEDULES if name not in ("hard_mining", "on_demand")]
    figure, axes = plt.subplots(1, len(names), figsize=(8.6, 2.2), sharey=True, layout="constrained")
    done = np.linspace(0, 1, 200, endpoint=False)
    for axis, name in zip(axes, names, strict=True):
        shares = [allocate(SCHEDULES[name](d, None, paper.N_LEVELS), paper.BATCH_SIZE) for d in done]
        axis.stackplot(done, np.transpose(shares), colors=LEVEL_COLOURS, labels=range(1, paper.N_LEVELS + 1))
        axis.set(xlim=(0, 1), ylim=(0, paper.BATCH_SIZE), xticks=[0, 0.5, 1])
        axis.set_title(
            TITLES[name].replace(" Anti-Curriculum", "\nanti-curriculum").replace(" Curriculum", "\ncurriculum"),
            fontsize=9,
        )
        axis.set_xlabel("share of training", fontsize=8)
    axes[0].set_ylabel("images per batch")
    figure.legend(*axes[0].get_legend_handles_labels(), title="level", loc="outside right center", fontsize=8)
    return figure


def plot_levels(table: pd.DataFrame, task: str):
    """PSNR against level of `tables.level_table`: beside what is not restored, and the schedules closer up."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    levels = list(range(1, paper.N_LEVELS + 2))
    rows = table.set_index(["scored", "schedule"])[[f"level_{level}" for level in levels]]
    for (scored, schedule), psnr in rows.iterrows():
        look = {"color": COLOURS.get(schedule), "linewidth": 2.2 if schedule == "on_demand" else 1.3}
        if (scored, schedule) == ("all pixels", "not_restored"):
            axes[0].plot(levels, psnr, **GREY)
        elif scored == "all pixels":
            for axis in axes:
                axis.plot(levels, psnr, "o-", label=TITLES[schedule], markersize=4, **look)
        elif (scored, schedule) == ("known pixels kept", "on_demand"):
            axes[0].plot(levels, psnr, **KEPT)
    for axis, title in zip(axes, ("beside the damaged images", "the schedules alone"), strict=True):
        axis.axvspan(5.5, 6.5, color="0.92", zorder=0)
        axis.set(xticks=levels, xlabel=f"level: {paper.TASKS[task]['severity']}", xlim=(0.5, 6.5))
        axis.set_xticklabels(level_names(task))
        axis.set_title(title, fontsize=10)
        axis.text(6, axis.get_ylim()[0], "not trained", ha="center", va="bottom", fontsize=8, color="0.4")
    axes[0].set_ylabel("PSNR (dB)")
    if len(table):
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def plot_margins(table: pd.DataFrame):
    """Mean PSNR of on-demand learning minus that of every other schedule (dB), here and in the paper's Table 1."""
    rows = table.set_index("schedule")
    rivals = rows.index.drop(["not_restored", "on_demand"])
    looks = {"psnr": ("here", "o", "#D55E00"), "paper_celeba_psnr": ("paper, CelebA", "s", "#0072B2")}
    looks |= {"paper_sun397_psnr": ("paper, SUN397", "D", "#56B4E9")}
    figure, axis = plt.subplots(figsize=(8, 2.8), layout="constrained")
    for column, (label, marker, color) in looks.items():
        gap = rows.ahead[rivals] if column == "psnr" else rows.loc["on_demand", column] - rows.loc[rivals, column]
        axis.plot(gap, range(len(rivals)), marker, color=color, label=label, alpha=0.9)
    axis.axvline(0, color="0.4", linewidth=1)
    axis.set_xscale("symlog", linthresh=1)  # margins of a tenth and of ten dB in one picture
    axis.set_xticks([-1, -0.5, 0, 0.5, 1, 2, 5, 10], ["−1", "−0.5", "0", "0.5", "1", "2", "5", "10"])
    axis.xaxis.set_minor_locator(plt.NullLocator())
    axis.set_yticks(range(len(rivals)), [TITLES[name] for name in rivals])
    axis.set(ylim=(len(rivals) - 0.5, -0.5), xlabel="on-demand learning is ahead by (dB)")
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def show(table: pd.DataFrame, best: str | None = None):
    """Table 1 with ± standard deviations over seeds, and the verdict on every margin; bold where the judge decides.

    What only tasks with missing pixels have stands only there.

    best: the schedule that leads all others by the rule, None where none does.
    """

    def pm(value, error):
        return "–" if pd.isna(value) else f"{value:.2f}" + ("" if pd.isna(error) else f" ± {error:.2f}")

    def margin(row):
        known = "" if pd.isna(row.low) else f" [{number(row.low)}, {number(row.high)}]"
        return "–" if pd.isna(row.ahead) else f"{number(row.ahead)}{known}"

    shown = pd.DataFrame(
        {
            ("", "schedule"): table.schedule.map(TITLES),
            ("ours", "seeds"): table.seeds,
            ("ours", "L2 (‰)"): [pm(*row) for row in zip(table.l2, table.l2_sd, strict=True)],
            ("ours", "PSNR (dB)"): [pm(*row) for row in zip(table.psnr, table.psnr_sd, strict=True)],
            ("ours", "known pixels kept"): table.psnr_kept,
            ("ours", "missing pixels"): table.psnr_hole,
            ("ours", "on-demand − it (dB)"): [margin(row) for row in table.itertuples()],
            ("ours", "verdict"): table.verdict,
        }
        | {
            (f"paper, {title}", unit): table[f"paper_{name}_{key}"]
            for name, title in (("celeba", "CelebA"), ("sun397", "SUN397"))
            for key, unit in (("l2", "L2 (‰)"), ("psnr", "PSNR (dB)"))
        }
    )
    shown = shown.drop(columns=[c for c in list(shown)[4:6] if shown[c].isna().all()])
    style = shown.style.format(precision=2, na_rep="–").hide(axis="index")
    bold = pd.DataFrame("", index=shown.index, columns=shown.columns)
    bold.loc[table.schedule == best, [("ours", "PSNR (dB)")]] = "font-weight: bold"
    return style.apply(lambda _: bold, axis=None).set_table_attributes('class="odl-table odl-numbers"')


def show_papers_test(table: pd.DataFrame):
    """The paper's test, a row per seed: `table1.papers_test`."""
    names = {"ahead": "on-demand − it (dB)", "p": "p"}
    return show_table(table.rename(columns=names), digits={names["ahead"]: number, "p": "{:.0e}"})
