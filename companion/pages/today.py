"""Does it matter today? The paper's questions asked of a residual U-Net, and what fixation is made of."""

from itertools import product

from companion import judge, published
from companion.judge import COMPOSITE, Decision, Evidence, compare, plain, score
from companion.measure.recalibration import STAGED_TASKS
from companion.pages import table1
from odl import paper

OF_UNET = ", unet"  # what `dose.name` puts behind the schedule of a run with today's network
HALF_OF_DEFICIT = 50  # per cent
FIXATED_CASES = {
    f"{plain(task)}, {name.removeprefix('fixated_')}": (task, name)
    for task, name in product(paper.AS_SHIPPED, published.FIXATED)
}
STAGED_CASES = {plain(task): (task, "staged_curriculum") for task in STAGED_TASKS}


def judge_above_damaged(evidence: Evidence) -> Decision:
    """Judge today's network on equal shares against the damaged images, on level 1 of every task."""

    def gains(column: str, tasks) -> dict:
        runs = {task: judge.runs_of(evidence.runs, f"rigid_joint{OF_UNET}", [task]) for task in tasks}
        return {plain(task): [judge.gained(run, ["1"], column) for run in found] for task, found in runs.items()}

    return judge.decide_claim(gains("psnr", paper.AS_SHIPPED), gains(COMPOSITE, paper.MASKED))


def judge_fixated(evidence: Evidence) -> Decision:
    """Judge on-demand learning in today's network against both fixated models of every task, over all levels."""
    pairs = {part: (task, f"on_demand{OF_UNET}", name + OF_UNET) for part, (task, name) in FIXATED_CASES.items()}
    return compare(evidence, pairs, harm=True)


def removed_shares(evidence: Evidence, task: str, schedule: str, column="psnr") -> list[float]:
    """Return, seed by seed, the share in per cent of a network's deficit that recalibration alone removes.

    The deficit is that to the on-demand network of the same seed, in the mean of `column` over levels 1 to 6.
    """
    shares = []
    for ours, fixated in judge.paired(evidence.runs, task, "on_demand", schedule):
        moved = evidence.runs.get(("recalibrated", f"{task} {schedule}", fixated.experiment["seed"]))
        if moved is not None:
            best, after, before = (score(run, column=column) for run in (ours, moved, fixated))
            shares.append(100 * (after - before) / (best - before))
    return shares


def judge_statistics(evidence: Evidence, cases: dict) -> Decision:
    """Judge whether BatchNorm statistics of the severity remove half of what each network lacks.

    `cases` has the task and the schedule of each part: `FIXATED_CASES` or `STAGED_CASES`.
    """
    parts = {part: removed_shares(evidence, *case) for part, case in cases.items()}
    masked = {part: case for part, case in cases.items() if case[0] in paper.MASKED}
    composite = {part: removed_shares(evidence, *case, COMPOSITE) for part, case in masked.items()}
    return judge.decide_claim(parts, composite, beyond=HALF_OF_DEFICIT, unit="%")


def judge_composite_feedback(evidence: Evidence) -> Decision:
    """Judge Equation 3 told the composite against equal shares, by the composite."""
    pair = "on_demand_composite", "rigid_joint"
    margins = {plain(task): judge.gaps(evidence.runs, task, *pair, column=COMPOSITE) for task in paper.MASKED}
    return judge.decide_claim(margins)


def judge_composite_worst_gap(evidence: Evidence) -> Decision:
    """Judge the worst gap by the composite: minimax training told the composite against Equation 3."""
    case = "minimax_gap_composite", "on_demand", COMPOSITE
    return judge.decide_claim({plain(task): table1.worst_gap_margins(evidence, task, *case) for task in paper.MASKED})
