"""The one judge: from margins, one per paired seed, to a verdict on a claim of the paper.

A page that ranks anything takes its words from here. The page of the scorecard says how old the rule is, and what was
changed since.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from companion import published
from odl import paper

VERDICTS = ("reproduced", "reversed", "equivalent", "undecided", "to be measured")
REPRODUCED, REVERSED, EQUIVALENT, UNDECIDED, MISSING = VERDICTS
LEVELS = tuple(str(level) for level in range(1, paper.N_LEVELS + 2))
WITHIN = 0.10  # dB: the smallest margin of on-demand learning over rigid joint learning in the paper's tables
ALPHA = 0.05  # both sides together
ENOUGH = 3  # a spread from two seeds is hardly a spread: either of them may be the odd one
LARGE = 3  # dB, as a large effect: twice the squared error
GATED = " (below damaged)"
FEW = 4  # parts: so many stand in the sentence on what is measured
MOST = 50  # seeds: where more would be needed, no number is named
RULE = (
    "The unit is a seed of training, at which both networks start from the same weights and the same random numbers. "
    "A margin above 0 speaks for the claim; it must exceed a bound, which is 0 unless the claim's test names another. "
    f"A claim is *equivalent* when the bound is 0 dB and the 90 % interval of the margin lies within ±{WITHIN:.2f} dB; "
    "else *reproduced* when the 95 % interval lies above the bound, *reversed* when it lies below, and *undecided* "
    f"otherwise. It is always undecided with fewer than {ENOUGH} seeds, or where the output of both networks is below "
    "the damaged images on the level, or on the mean of the levels, that is compared. A system that is not trained "
    "needs no seeds.\n\n"
    "A claim may have several parts, each judged like this, and then all have to hold: it is reproduced when every "
    "part is, and equivalent when every part is reproduced or equivalent. One part that is reversed is enough against "
    "it. But the more parts there are, the likelier it is that one falls behind by chance, so that part has to pass a "
    "stricter test, Holm's correction: 2.5 % divided by the number of parts. In every other case the claim is "
    "undecided."
)


@dataclass(frozen=True)
class Verdict:
    """One of `VERDICTS`; what was measured, in words; what would decide it where it is undecided.

    `parts` has each part's margin in words, and the verdict on it alone.
    """

    word: str
    measured: str = "–"
    needs: str = ""
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __str__(self) -> str:
        """`+0.31 dB [+0.12, +0.50], 3 seeds: **reproduced**`, without the bold where nothing is decided."""
        if self.word == MISSING:
            return MISSING
        word = self.word if self.word == UNDECIDED else f"**{self.word}**"
        return f"{self.measured}: {word}{f' ({self.needs})' if self.needs else ''}"

    @property
    def short(self) -> str:
        """The word, and that both networks are below the damaged images where this is why nothing is decided."""
        return f"{self.word}{GATED}" if "below" in self.needs else self.word


# The rule, on the last axis of an array: seeds in `interval`, `p_below` and `decide`, parts in `holm` and `combine`


def interval(values, level: float = 1 - ALPHA):
    """Student's interval of the mean: (low, high)."""
    x = np.asarray(values, float)
    n = x.shape[-1]
    half = stats.t.ppf((1 + level) / 2, n - 1) * x.std(-1, ddof=1) / np.sqrt(n)
    return x.mean(-1) - half, x.mean(-1) + half


def p_below(margins):
    """One-sided p-value of a mean below 0."""
    x = np.asarray(margins, float)
    error = x.std(-1, ddof=1) / np.sqrt(x.shape[-1])
    return stats.t.cdf(x.mean(-1) / np.maximum(error, 1e-12), x.shape[-1] - 1)


def decide(margins, within: float = WITHIN):
    """The verdict on margins in favour of a claim with one part; nothing is equivalent where `within` is 0."""
    if np.shape(margins)[-1] < ENOUGH:
        return np.full(np.shape(margins)[:-1], UNDECIDED)
    low, high = interval(margins, 1 - 2 * ALPHA)  # two one-sided tests (TOST)
    equivalent = (low > -within) & (high < within)
    low, high = interval(margins)
    return np.select([equivalent, low > 0, high < 0], [EQUIVALENT, REPRODUCED, REVERSED], UNDECIDED)


def holm(p):
    """Which p-values Holm's step-down test rejects at half of `ALPHA`, the lower side of the interval."""
    order = np.argsort(p, -1)
    n = np.shape(p)[-1]
    passed = np.take_along_axis(p, order, -1) <= ALPHA / 2 / (n - np.arange(n))
    rejected = np.logical_and.accumulate(passed, -1)
    return np.take_along_axis(rejected, np.argsort(order, -1), -1)


def combine(words, p):
    """The verdict on a claim from those on its parts and their p-values: intersection–union in favour, Holm against."""
    against = (holm(p) & (words == REVERSED)).any(-1)
    in_favour, even = (words == REPRODUCED).all(-1), np.isin(words, (REPRODUCED, EQUIVALENT)).all(-1)
    return np.select([against, in_favour, even], [REVERSED, REPRODUCED, EQUIVALENT], UNDECIDED)


# A claim


def verdict_on(parts: dict, beyond=0.0, sign=1, below: dict | None = None, unit="dB", text="") -> Verdict:
    """The verdict on a claim whose every part lies beyond a bound, or below it where sign is −1.

    parts: label → values, one per seed. `below` has the parts of which both networks are below the damaged images, with
    the `steps_to_input`: these decide nothing. `text` replaces the parts in words. Only decibels beyond 0 can be
    equivalent.
    """
    measured = {label: np.asarray(values, float) for label, values in parts.items() if len(values)}
    if not measured:
        return Verdict(MISSING)
    below, within = below or {}, WITHIN if unit == "dB" and not beyond else 0.0
    margins = {label: sign * (values - beyond) for label, values in measured.items() if label not in below}
    words = {label: str(decide(margins[label], within)) if label in margins else UNDECIDED for label in parts}
    p = [1.0 if words[label] == UNDECIDED else p_below(margins[label]) for label in parts]
    word = str(combine(np.array(list(words.values())), np.array(p)))
    value = f"{text or in_words(measured, sign, unit)}, {count_seeds(measured)}"
    value += tally(words, margins, word) if word != REPRODUCED else ""
    each = {label: own + GATED * (label in below) if label in measured else MISSING for label, own in words.items()}
    found = {label: (estimate(measured.get(label, []), unit), own) for label, own in each.items()}
    return Verdict(word, value, lacking(words, measured, margins, below, within) if word == UNDECIDED else "", found)


def tally(words: dict, margins: dict, claim: str) -> str:
    """`, 6 parts: 3 for it, 2 alike within ±0.09 dB at 90 %, 1 against it`; of a lone part how alike it is."""
    even = [interval(margins[label], 1 - 2 * ALPHA) for label, word in words.items() if word == EQUIVALENT]
    alike = f"alike within ±{np.abs(even).max():.2f} dB at 90 %" if even else ""
    if len(words) == 1:
        return alike and f", {alike}"
    against = "against it" if claim == REVERSED else "against it, but not by Holm's correction"
    names = (REPRODUCED, "for it"), (EQUIVALENT, alike), (REVERSED, against), (UNDECIDED, "open")
    found = Counter(words.values())
    return f", {len(words)} parts: " + ", ".join(f"{found[word]} {name}" for word, name in names if found[word])


def lacking(words: dict, measured: dict, margins: dict, below: dict, within: float) -> str:
    """What an undecided claim lacks: parts, a length of training, seeds."""
    missing, under = len(words) - len(measured), [label for label in below if label in measured]
    lacks = [f"{missing} part{'s' * (missing > 1)} to be measured"] if missing else []
    if under:
        where = "" if len(under) == len(words) else f"in {len(under)} of {len(words)} parts "
        steps = [below[label] for label in under]
        length = f"about {max(steps):,} steps" if all(steps) else "a longer training"
        lacks.append(f"{where}both networks are below the damaged images: {length} may tell")
    losing = {k: seeds_needed(margins[k], 0, len(words)) for k, word in words.items() if word == REVERSED}
    pending = [margins[label] for label, word in words.items() if word == UNDECIDED and label in margins]
    if losing:
        label = min(losing, key=losing.get)
        lacks.append(
            f"{label} alone would decide against the claim with about {losing[label]} seeds (Holm's correction)"
        )
    elif pending and not missing:
        lacks.append("for the others, " * bool(under) + what_decides(pending, within, len(words)))
    return "; ".join(lacks)


def what_decides(pending: list, within: float, parts: int) -> str:
    """How many seeds an undecided claim lacks."""
    fewest = min(len(margins) for margins in pending)
    if fewest < ENOUGH:
        return "a second and a third seed may tell" if fewest == 1 else "a third seed may tell"
    seeds = max(seeds_needed(margins, within, parts if np.mean(margins) < 0 else 1) for margins in pending)
    return f"about {seeds} seeds at this spread" if seeds < MOST else f"{MOST} seeds at this spread would not do"


def seeds_needed(margins, within: float, parts: int = 1) -> int:
    """How many seeds would decide at this mean and spread, as the first of several parts by Holm; at most `MOST`."""
    mean, n = abs(np.mean(margins)), np.arange(len(margins) + 1, MOST + 1)
    levels = ALPHA, ALPHA / 2 / parts
    narrow, wide = (stats.t.ppf(1 - a, n - 1) * np.std(margins, ddof=1) / np.sqrt(n) for a in levels)
    enough = (mean > wide) | (mean + narrow < within)
    return int(n[enough][0]) if enough.any() else MOST


# In words


def plain(task: str) -> str:
    """`Image inpainting` → `inpainting`."""
    return paper.TASKS[task]["title"].split()[-1].lower()


def in_words(parts: dict, sign=1, unit="dB") -> str:
    """`easy +1.20 dB [+0.90, +1.50]; hard +0.80 dB`; of more than four parts the one that least favours the claim."""
    if len(parts) <= FEW:
        return "; ".join(f"{label} {estimate(values, unit)}".strip() for label, values in parts.items())
    label = min(parts, key=lambda name: sign * parts[name].mean())
    return f"least {estimate(parts[label], unit)} ({label})"


def estimate(values, unit: str = "dB") -> str:
    """The mean, from three seeds on with its 95 % interval: `+0.31 dB [+0.12, +0.50]`."""
    text = signed(np.mean(values), unit) if len(values) else "–"
    return f"{text} [{', '.join(map(number, interval(values)))}]" if len(values) >= ENOUGH else text


def span(values: Iterable[float]) -> str:
    """From the least to the most of published numbers: `+0.02 dB`, `+0.01 to +0.03 dB`."""
    values = list(values)
    return f"{' to '.join(dict.fromkeys(map(number, (min(values), max(values)))))} dB"


def signed(value: float, unit: str = "dB") -> str:
    return f"{number(value)} {unit}"


def number(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace(
        "-", "−"
    )  # −0.00 is a little below 0: an interval that ends there is without 0


def count_seeds(parts: dict) -> str:
    """`1 seed`, `2–3 seeds`."""
    counts = sorted({len(values) for values in parts.values()})
    return "–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) + (" seed" if counts == [1] else " seeds")


# What is measured


def no_rows(*columns: str):
    return field(default_factory=lambda: pd.DataFrame(columns=list(columns)))


@dataclass(frozen=True)
class Measured:
    """What is on disk for one profile and data set; everything may be empty."""

    # (task, schedule, seed) → Result; for the task also "blocks" of Table 2, and what `explanations` puts there
    runs: dict = field(default_factory=dict)
    table3: pd.DataFrame = no_rows("image", "system", "clipped", "psnr", "seed")  # table3.table of our two systems
    spectrum: pd.DataFrame = no_rows("system", "told", "sigma", "psnr", "seed")  # db11_spectrum.table of `CURVES`
    long: dict = field(default_factory=dict)  # (task, seed) → Result of an on-demand network trained longer


def compare(m: Measured, pairs: dict, **how) -> Verdict:
    """The judge on differences of schedules; pairs: label → (task, one, other) and perhaps levels and column."""
    below = {
        label: steps_to_input(m, pair[0], *pair[3:])
        for label, pair in pairs.items()
        if below_input(m.runs, pair[0], pair[1:3], *pair[3:])
    }
    return verdict_on({label: gaps(m.runs, *pair) for label, pair in pairs.items()}, below=below, **how)


def compare_levels(m: Measured, one: str, other: str, more: str, less: str) -> Verdict:
    """The judge on whether `one` is further ahead of `other` on level `more` than on level `less`, on every task."""
    parts, below = {}, {}
    for task in paper.TASKS:
        found = [gaps(m.runs, task, one, other, [level]) for level in (more, less)]
        parts[plain(task)] = np.subtract(*found)
        under = [level for level in (more, less) if below_input(m.runs, task, (one, other), [level])]
        steps = [steps_to_input(m, task, [level]) for level in under]
        if steps:
            below[plain(task)] = max(steps) if all(steps) else None
    return verdict_on(parts, below=below)


def lead(m: Measured, *pair) -> tuple[float, float, float, str]:
    """Mean margin (dB) of a pair, as in `compare`, its 95 % interval, low and high, and the verdict; else NaN."""
    margins = gaps(m.runs, *pair)
    low, high = interval(margins) if len(margins) >= ENOUGH else (np.nan, np.nan)
    return np.mean(margins) if margins else np.nan, low, high, compare(m, {"": pair}).short


def dose_of(run) -> float:
    """Mean over epochs of the share of a batch by which a level is away from its equal share."""
    return float(np.mean([epoch["dose"] for epoch in run.history]))


# Margins of trained networks; runs: (task, schedule, seed) → Result


def keyed(found) -> dict:
    """The runs of a page's own results."""
    return {tuple(run.experiment[name] for name in ("task", "schedule", "seed")): run for run in found}


def score(run, levels=LEVELS, column="psnr") -> float:
    """Mean over trials and some levels of a column of the evaluation, in dB."""
    return run.evaluation.groupby("level")[column].mean()[list(levels)].mean()


def paired(runs: dict, task: str, *schedules: str) -> list[list]:
    """The runs of some schedules, a list for every seed that all of them have."""
    seeds = sorted(key[2] for key in runs if key[:2] == (task, schedules[0]))
    return [[runs[task, s, k] for s in schedules] for k in seeds if all((task, s, k) in runs for s in schedules)]


def gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS, column="psnr") -> list[float]:
    """By how many dB `one` is ahead of `other`, for every seed that both have."""
    return [score(a, levels, column) - score(b, levels, column) for a, b in paired(runs, task, one, other)]


def below_input(runs: dict, task: str, schedules, levels=LEVELS, column="psnr") -> bool:
    """Whether on these levels the mean PSNR of every one of these schedules is below that of the damaged images.

    What is scored inside the hole is compared with the known pixels kept, else an autoencoder's copying counts.
    """
    pairs = paired(runs, task, *schedules)
    if not pairs or "psnr_input" not in pairs[0][0].evaluation:  # Table 2 measures holes, of which nothing is known
        return False
    return bool((gains(pairs, levels, column) < 0).all())


def gains(pairs: list[list], levels, column: str) -> np.ndarray:
    """By how many dB the first, the second… run of pairs gains on the damaged images; means over the pairs."""
    column = "psnr_kept" if column == "psnr_hole" else column
    found = [[score(run, levels, column) - score(run, levels, "psnr_input") for run in pair] for pair in pairs]
    return np.mean(found, axis=0)


def steps_to_input(m: Measured, task: str, levels=LEVELS, column="psnr") -> int | None:
    """After about how many steps on-demand learning reaches the damaged images, to the next 10,000; means over seeds.

    PSNR is taken to rise by as much with every doubling as between the two lengths that are measured. None where
    one is not, where the shorter is above them already, or where this would lead beyond twice the longer one.
    """
    seeds = [seed for name, seed in m.long if name == task and (task, "on_demand", seed) in m.runs]
    pairs = [(m.runs[task, "on_demand", seed], m.long[task, seed]) for seed in seeds]
    if not pairs:
        return None
    gain = gains(pairs, levels, column)
    steps = [run.experiment["epochs"] * run.experiment["iterations"] for run in pairs[0]]
    slope = (gain[1] - gain[0]) / np.log(steps[1] / steps[0])
    reached = steps[0] * np.exp(-gain[0] / slope) if slope > 0 > gain[0] else np.inf
    return int(np.ceil(reached / 1e4) * 1e4) if reached <= 2 * steps[1] else None


def best(runs: dict, task: str, schedules) -> str | None:
    """The schedule that is ahead of every other one by the rule, or None."""
    for one in schedules:
        pairs = {other: (task, one, other) for other in schedules if other != one}
        if compare(Measured(runs), pairs).word == REPRODUCED:
            return one
    return None


# Trials of one network


def paired_p_value(a, b) -> float:
    """Two-sided paired t-test over trials; NaN when the differences do not vary beyond rounding."""
    difference = np.asarray(a, float) - np.asarray(b, float)
    if np.ptp(difference) <= 1e-12 * np.abs(a).max():
        return float("nan")
    return float(stats.ttest_1samp(difference, 0).pvalue)


# How often the rule errs


@cache
def simulate() -> pd.DataFrame:
    """What the rule decides where the true difference is known, in shares of made-up campaigns.

    Columns parts (1, or on-demand against six rivals), apart (dB by which all rivals but the first are truly further
    behind), seeds (3, 5, or `3, then 5`: the other two only where three leave it undecided), spread (dB, standard
    deviation of a paired margin); `false` (reproduced or reversed at a true difference of 0), `even` (equivalent at 0),
    and where every part is truly 0.1 or 0.2 dB further ahead, `even_0.1`, `power_0.1` and `power_0.2` (reproduced).
    """
    rng, rows, rivals = np.random.default_rng(0), [], len(published.SCHEDULES) - 1
    for parts, apart in ((1, 0), (rivals, 0), (rivals, 2)):
        # A network's own noise: on-demand's is in all six margins, which therefore move together.
        noise = rng.normal(0, 0.5**0.5, (120_000 // parts, parts + 1, 5))
        for spread in (0.03, 0.1, 0.3):
            margins, words = spread * (noise[:, :1] - noise[:, 1:]), {}
            margins[:, 1:] += apart
            for d in (0, 0.1, 0.2):
                shifted = [margins[..., :n] + d for n in (3, 5)]
                three, five = words[d, 3], words[d, 5] = [combine(decide(x), p_below(x)) for x in shifted]
                words[d, "3, then 5"] = np.where(three == UNDECIDED, five, three)
            for seeds in (3, 5, "3, then 5"):
                row = {"parts": parts, "apart": apart, "seeds": seeds, "spread": spread}
                row["false"] = np.isin(words[0, seeds], (REPRODUCED, REVERSED)).mean()
                row["even"], row["even_0.1"] = ((words[d, seeds] == EQUIVALENT).mean() for d in (0, 0.1))
                rows.append(row | {f"power_{d}": (words[d, seeds] == REPRODUCED).mean() for d in (0.1, 0.2)})
    return pd.DataFrame(rows)
