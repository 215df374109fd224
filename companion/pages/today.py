"""Does it matter today? The paper's questions asked of a residual U-Net, and what fixation is made of."""

import numpy as np

from companion import judge
from companion.judge import COMPOSITE, Decision, Measured, compare, on_tasks, plain, score
from companion.pages import table1
from odl import paper

OF_UNET = ", unet"  # what `dose.name` puts behind the schedule of a run with today's network
LEVEL_1 = ["1"]
HALF = 50  # per cent of a deficit
FIXATED = {"easy": "fixated_easy", "hard": "fixated_hard"}


def above_damaged(m: Measured) -> Decision:
    """Today's network on equal shares is above the damaged images on level 1 of every task."""

    def gained(column: str, tasks) -> dict:
        runs = {task: judge.runs_of(m.runs, f"rigid_joint{OF_UNET}", [task]) for task in tasks}
        return {
            plain(task): [score(run, LEVEL_1, column) - score(run, LEVEL_1, "psnr_input") for run in found]
            for task, found in runs.items()
        }

    return judge.decide_claim(gained("psnr", paper.TASKS), gained(COMPOSITE, paper.MASKED))


def ahead_of_the_paper_s(m: Measured) -> Decision:
    """Today's network is ahead of the paper's on every task, both trained on equal shares."""
    return compare(m, on_tasks(f"rigid_joint{OF_UNET}", "rigid_joint"))


def fixated_is_behind(m: Measured) -> Decision:
    """In today's network both fixated models of every task are behind on-demand learning over all levels."""
    pairs = {
        f"{plain(task)}, {own}": (task, f"on_demand{OF_UNET}", name + OF_UNET)
        for task in paper.TASKS
        for own, name in FIXATED.items()
    }
    return compare(m, pairs, harm=True)


def removed(m: Measured, task: str, schedule: str) -> list[float]:
    """Return, seed by seed, the share in per cent of a network's deficit that recalibration alone removes.

    The deficit is that to the on-demand network of the same seed, in mean PSNR over levels 1 to 6.
    """
    shares = []
    for ours, fixated in judge.paired(m.runs, task, "on_demand", schedule):
        moved = m.runs.get(("recalibrated", f"{task} {schedule}", fixated.experiment["seed"]))
        if moved is not None:
            shares.append(100 * (score(moved) - score(fixated)) / (score(ours) - score(fixated)))
    return shares


def by_statistics(m: Measured) -> Decision:
    """BatchNorm statistics of the severity remove at least half of what each fixated network lacks."""
    parts = {f"{plain(task)}, {own}": removed(m, task, name) for task in paper.TASKS for own, name in FIXATED.items()}
    return judge.decide_claim(parts, beyond=HALF, unit="%")


def told_the_composite(m: Measured) -> Decision:
    """Equation 3 told the composite beats equal shares by the composite."""
    parts = {
        plain(task): judge.gaps(m.runs, task, "on_demand_composite", "rigid_joint", column=COMPOSITE)
        for task in paper.MASKED
    }
    return judge.decide_claim(parts)


def narrower_by_composite(m: Measured) -> Decision:
    """Minimax training told the composite has a smaller worst gap by the composite than Equation 3."""
    parts = {
        plain(task): table1.nearer(m, task, "minimax_gap_composite", "on_demand", COMPOSITE) for task in paper.MASKED
    }
    return judge.decide_claim(parts)


def at_the_plateau(m: Measured) -> Decision:
    """At 300,000 steps of the narrow network Equation 3 beats equal shares."""
    longest = ", width 8, 300,000 steps"
    return compare(m, on_tasks(f"on_demand{longest}", f"rigid_joint{longest}", ("denoise", "inpaint")))


def dose_of_today(m: Measured) -> dict[str, float]:
    """Return for each task the mean dose of Equation 3 in today's network, in per cent of a batch."""
    runs = {task: judge.runs_of(m.runs, f"on_demand{OF_UNET}", [task]) for task in paper.TASKS}
    return {plain(task): 100 * np.mean([judge.dose_of(run) for run in found]) for task, found in runs.items() if found}
