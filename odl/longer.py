"""Longer training: what becomes of the differences in Table 1 when every run goes on for longer (Sec. 6.4).

The paper trains 1,500,000 iterations. Runs here are far shorter, and so are these, but they show a direction.
"""

from dataclasses import replace

import pandas as pd

from odl import judge, paper, results
from odl.claims import scale
from odl.experiment import Experiment
from odl.judge import FAILED, REPRODUCED, UNTESTED
from odl.results import Result

RIVALS = ("rigid_joint", "staged_curriculum")  # the closest in the paper, and the one that is ahead when runs are short
EPOCHS, RATE = 5, 1 / 4  # of a longer run, as multiples of the profile's
LENGTHS = ("short", "long")
MEANINGS = {
    REPRODUCED: "on-demand is ahead, as in the paper",
    FAILED: "on-demand is behind, unlike the paper",
    UNTESTED: "not decided",
}


def runs(task: str, dataset: str, profile: str, seeds: list[int]) -> dict[str, list[Experiment]]:
    """On-demand learning and its rivals: `short` as Table 1 has them, `long` with more epochs at a lower rate."""
    short = [Experiment.of(task, dataset, name, seed, profile) for seed in seeds for name in ("on_demand", *RIVALS)]
    long = [replace(e, epochs=EPOCHS * e.epochs, learning_rate=RATE * e.learning_rate) for e in short]
    return dict(zip(LENGTHS, (short, long), strict=True))


def load(runs: dict[str, list[Experiment]]) -> dict[str, list[Result]]:
    """What is measured of `runs`."""
    return {length: [r for r in map(results.load, runs[length]) if r] for length in LENGTHS}


def gaps(measured: dict[str, list[Result]], task: str) -> dict[str, dict[str, list[float]]]:
    """length → rival → dB by which on-demand learning is ahead of it, one per seed that has both."""
    keyed = {length: {(task, *key): r for key, r in by_run(measured[length]).items()} for length in LENGTHS}
    return {
        length: {rival: judge.gaps(keyed[length], task, "on_demand", rival) for rival in RIVALS} for length in LENGTHS
    }


def gains(measured: dict[str, list[Result]]) -> dict[str, list[float]]:
    """schedule → dB that the longer training brought, one per seed that has both lengths."""
    short, long = (by_run(measured[length]) for length in LENGTHS)
    both = [key for key in long if key in short]
    names = ("on_demand", *RIVALS)
    return {n: [judge.score(long[k]) - judge.score(short[k]) for k in both if k[0] == n] for n in names}


def by_run(found: list[Result]) -> dict[tuple[str, int], Result]:
    """(schedule, seed) → result."""
    return {(r.experiment["schedule"], r.experiment["seed"]): r for r in found}


def table(measured: dict[str, list[Result]], task: str) -> pd.DataFrame:
    """A row per schedule: columns schedule; psnr_short and psnr_long, dB, means over seeds and levels 1 to 6;
    ahead_short and ahead_long, dB by which on-demand learning is; paper_celeba and paper_sun397, the paper's margins.
    """
    tables = {length: results.table1(measured[length], task).set_index("schedule") for length in LENGTHS}
    rows = []
    for name in ("on_demand", *RIVALS):
        row = {"schedule": name}
        row |= {f"psnr_{length}": tables[length].psnr[name] for length in LENGTHS}
        row |= {f"ahead_{length}": tables[length].ahead[name] for length in LENGTHS}
        pairs = zip(("celeba", "sun397"), paper.TABLE1[task]["on_demand"], paper.TABLE1[task][name], strict=True)
        theirs = {f"paper_{where}": ours[1] - other[1] for where, ours, other in pairs}
        rows.append(row | (theirs if name in RIVALS else dict.fromkeys(theirs, float("nan"))))
    return pd.DataFrame(rows)


def statements(measured: dict[str, list[Result]], runs: dict[str, list[Experiment]]) -> list[str]:
    """What more training made of each margin, by the rule of the scorecard; empty where nothing is measured."""
    found, parts = gaps(measured, runs["short"][0].task), []
    when = {length: f"after {e.epochs * e.iterations:,} iterations" for length, (e, *_) in runs.items()}
    for rival in RIVALS:
        known = {length: found[length][rival] for length in LENGTHS if found[length][rival]}
        words = [f"{when[k]} {MEANINGS[judge.decide(margins)]} ({judge.span(margins)})" for k, margins in known.items()]
        parts += [f"Against {paper.SCHEDULES[rival].lower()}: {'; '.join(words)}."] if words else []
    gained = {paper.SCHEDULES[name].lower(): values for name, values in gains(measured).items() if values}
    return [*parts, *([f"More training brought {judge.enumerate_parts(gained)}."] if gained else [])]


def verdict(measured: dict[str, list[Result]], runs: dict[str, list[Experiment]]) -> str:
    """`statements` with the rule, the scale and what is missing."""
    parts = [f"- {s}" for s in statements(measured, runs)] or ["Nothing is measured at this scale: no verdict."]
    parts += ["", judge.RULE] if any(measured.values()) else []
    parts += ["", scale(measured["long"])] if measured["long"] else []
    absent = [e.run_id.rpartition("/")[2] for length in LENGTHS for e in runs[length] if not results.load(e)]
    return "\n".join([*parts, *(["", f"Not measured at this scale: {', '.join(absent)}."] if absent else [])])
