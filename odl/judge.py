"""From differences, one per seed, to a verdict on a claim of the paper."""

from math import log10

from odl import paper

REPRODUCED, FAILED, UNTESTED = VERDICTS = ("reproduced", "not reproduced", "not tested at this scale")
NOT_MEASURED = "not measured"
LEVELS = tuple(str(level) for level in range(1, paper.N_LEVELS + 2))
LEAST = 0.1  # dB: no smaller difference is called one
WITHIN = 0.4  # dB: what a lone seed must show between two scores of one network
ALONE = 1.0  # dB: what a lone seed must show between two networks
RULE = (
    f"Differences are paired by seed. A verdict needs at least two seeds that agree, each beyond {LEAST:g} dB. "
    f"A lone seed decides only beyond {ALONE:g} dB, and beyond {WITHIN:g} dB between two scores of one network: "
    f"bounds chosen wide, because a lone seed says nothing of its own spread. "
    f"A margin that does not pass counts as not tested."
)


def decide(margins: list[float], least: float = LEAST, alone: float = ALONE) -> str:
    """The verdict on margins in favour of a claim, one per seed: beyond `least` for each, a lone one beyond `alone`."""
    needed = least if len(margins) > 1 else max(least, alone)
    if margins and min(margins) > needed:
        return REPRODUCED
    return FAILED if margins and max(margins) < -needed else UNTESTED


def combine(verdicts: list[str]) -> str:
    """One verdict on a claim with several parts: one part that fails is enough, and all have to hold."""
    if FAILED in verdicts:
        return FAILED
    return REPRODUCED if set(verdicts) == {REPRODUCED} else UNTESTED


def judge(parts, beyond=0.0, sign=1, least=LEAST, alone=ALONE, unit="dB", text=None) -> tuple[str, str]:
    """Value and verdict of a claim that every part lies beyond a bound (below it: sign -1).

    parts: label → values, one per seed. `text` replaces their enumeration; a reason follows where nothing is decided.
    """
    if not any(parts.values()):
        return NOT_MEASURED, UNTESTED
    margins = [[sign * (value - beyond) for value in values] for values in parts.values()]
    verdicts = [decide(m, least, alone) for m in margins]
    verdict = combine(verdicts)
    undecided = [m for m, v in zip(margins, verdicts, strict=True) if m and v == UNTESTED]
    value = f"{text or enumerate_parts(parts, unit)} ({count_seeds(parts)})"
    return (f"{value}; {reason(undecided)}" if verdict == UNTESTED else value), verdict


def reason(undecided: list[list[float]]) -> str:
    """Why a measured claim is not decided."""
    if not undecided:
        return "not decided, parts are not measured"
    if any(len(margins) == 1 for margins in undecided):
        return "not decided with one seed"
    return "not decided, the seeds do not carry it"


def enumerate_parts(parts: dict, unit: str = "dB") -> str:
    """`easy +1.20 dB, hard –`."""
    return ", ".join(f"{label} {span(values, unit)}".strip() for label, values in parts.items())


def span(values, unit: str = "dB") -> str:
    """`+0.02 dB`, `+0.01 to +0.03 dB`, or a dash."""
    values = list(values)
    if not values:
        return "–"
    digits = 2 if unit == "dB" else 0
    ends = dict.fromkeys(f"{value:+.{digits}f}".replace("-", "−") for value in (min(values), max(values)))
    return f"{' to '.join(ends)} {unit}"


def count_seeds(parts: dict) -> str:
    """`1 seed`, `1–2 seeds`."""
    counts = sorted({len(values) for values in parts.values() if values})
    return "–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) + (" seed" if counts == [1] else " seeds")


def score(run, levels=LEVELS, column="psnr") -> float:
    """Mean over trials and some levels: PSNR in dB, or L2 in ‰."""
    return run.evaluation.groupby("level")[column].mean()[list(levels)].mean()


def gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS, column="psnr") -> list[float]:
    """By how many dB `one` is ahead of `other`, for every seed that both have; L2 as 10 log10 of the ratio.

    runs: (task, schedule, seed) → Result.
    """
    seeds = sorted(k[2] for k in runs if k[:2] == (task, one) and (task, other, k[2]) in runs)
    pairs = [[score(runs[task, name, seed], levels, column) for name in (one, other)] for seed in seeds]
    return [10 * log10(b / a) if column == "l2" else a - b for a, b in pairs]
