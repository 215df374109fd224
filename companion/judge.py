"""The one judge: from margins, one per paired seed, to a verdict on a claim of the paper.

A page that ranks anything takes its words from here. They are those of rule 3, which was fixed before two schedules
were compared with the residual U-Net, and after every result of the paper's network was known. Each verdict keeps that
by rule 2, which was fixed before two schedules were compared on faces, but for what the page of the scorecard names,
and after every result on bsds500 was known.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from companion import published
from companion.disk.provenance import arithmetic_of
from odl import paper

VERDICTS = (
    "reproduced", "reversed", "tied", "equivalent", "excluded", "mixed", "undecided", "not testable", "to be measured",
)  # fmt: skip
REPRODUCED, REVERSED, TIED, EQUIVALENT, EXCLUDED, MIXED, UNDECIDED, NOT_TESTABLE, MISSING = VERDICTS
COMPOSITE = "psnr_kept"  # the column of PSNR with the known pixels put back
LEVELS = tuple(str(level) for level in range(1, paper.N_LEVELS + 2))
WITHIN = 0.10  # dB: the smallest margin of on-demand learning over rigid joint learning in the paper's tables
NARROW = 0.05  # dB: equivalence is reported within this, too
ALPHA = 0.05  # both sides together
ENOUGH = 3  # a spread from two seeds is hardly a spread: either of them may be the odd one
LARGE = 3  # dB, as a large effect: twice the squared error
GATED = " (below doing nothing)"
SLOPE = "dB for each %"
ERROR_SLOPE = "‰ for each %"
DIGITS = dict.fromkeys((SLOPE, ERROR_SLOPE), 3)  # of a unit in which two are too few
FEW = 4  # parts: so many stand in the sentence on what is measured
RULE = (
    "The unit is a seed of training, at which both networks start from the same weights and the same random numbers "
    "and are computed in the same kind of arithmetic. The score is PSNR, its mean over levels 1 to 6 unless the test "
    "names others; the PSNR of an image counts as 100 dB at most. A margin above 0 speaks for the claim; it must "
    "exceed a bound, which is 0 unless the test names another.\n\n"
    f"A claim is *equivalent* when the bound is 0 dB and the 90 % interval of the margin lies within ±{WITHIN:.2f} dB "
    f"(whether it lies within ±{NARROW:.2f} dB is said, too); of a claim to be the best the word is *tied*. Else it is "
    "*reproduced* when the 95 % interval lies above the bound, *reversed* when it lies below. A claim that neither "
    "decides is *excluded* when the interval lies below the margin that the paper has. Everything else is *undecided*, "
    f"and so is whatever has fewer than {ENOUGH} seeds. The mean squared error, the paper's other score, confirms: "
    "where its interval is decided the other way, the word is *mixed*. It is not asked where the bound is not 0, where "
    "levels, pools or photographs are told apart, whose errors differ in size, and inside the holes of a level. To be "
    f"good at one's own severity is to be at most {WITHIN:.2f} dB behind. A system that is not trained needs no "
    "seeds.\n\n"
    "A claim may have several parts, each judged like this, and then all have to hold: it is reproduced when every "
    "part is, and equivalent or tied when every part is reproduced or equivalent. One part that is reversed is enough "
    "against it. But the more parts there are, the likelier it is that one falls behind by chance, so that part has to "
    "pass a stricter test, Holm's correction: 2.5 % divided by the number of parts, and once a part has passed, by one "
    "fewer for the next.\n\n"
    "Where a claim to be ahead or alike is decided, and both networks are below the damaged images by PSNR and by mean "
    "squared error, the word is kept and *below doing nothing* is added."
)
RULE3 = (
    "Rule 3 is rule 2 with four additions. It was committed before two schedules were compared with the residual "
    "U-Net. For every network and data set measured before, it is a second reading: the results were known when it was "
    "written, so rule 2's word stands beside its own where the two differ.\n\n"
    "**Both scores.** In inpainting and interpolation the known pixels can be put back, and nobody needs a network for "
    "them. So whatever is scored there over all pixels is scored by the *composite*, too: PSNR with the known pixels "
    "put back, with the same bound and a word of its own. The word of the claim is that of all pixels; it is *mixed* "
    "where the composite contradicts it, that is, where the composite's 95 % interval lies on the other side of the "
    "bound, or where a part is *equivalent* and its composite *reproduced* or *reversed*.\n\n"
    f"**±{NARROW:.2f} dB first.** Of what is alike it is said first whether the 90 % interval lies within "
    f"±{NARROW:.2f} dB, and then how far it reaches. ±{WITHIN:.2f} dB stays the margin of *equivalent*; it is the "
    "smallest gain that the paper reports, and not too little to matter.\n\n"
    "**L2.** The change of the mean squared error against equal shares, in per cent beside the paper's, has a claim of "
    "its own. Nothing is equivalent there; the word is *excluded* where the paper's change lies beyond every "
    "interval.\n\n"
    "***Not testable.*** A claim on an absolute PSNR, or against a system that is trained much shorter here than in "
    "the paper, gets no word for or against; what was measured stands there. Networks that have seen one image for "
    "fifty or more of the paper's neither confirm nor refute what the paper's reach."
)


@dataclass(frozen=True)
class Verdict:
    """One of `VERDICTS`, and what was measured, in words.

    `parts` has each part's margin in words, and the verdict on it alone; `numbers` the mean margin of each that is
    measured, in `unit`, and from three seeds on the ends of its 95 % interval. `gated`: both networks are below
    the damaged images. `kept` and `kept_numbers` have the same of the parts that the composite score judges, too;
    `before` is the verdict by rule 2.
    """

    word: str
    measured: str = "–"
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    numbers: dict[str, tuple[float, ...]] = field(default_factory=dict)
    unit: str = "dB"
    gated: bool = False
    narrow: dict[str, tuple[float, float]] = field(default_factory=dict)
    rests_on: str = ""
    kept: dict[str, tuple[str, str]] = field(default_factory=dict)
    kept_numbers: dict[str, tuple[float, ...]] = field(default_factory=dict)
    before: "Verdict | None" = None

    def __str__(self) -> str:
        """`+0.31 dB [+0.12, +0.50], 3 seeds: **reproduced**`, without the bold where nothing is decided."""
        if self.word == MISSING:
            return MISSING
        word = self.word if self.word == UNDECIDED else f"**{self.word}**{GATED * self.gated}"
        return f"{self.measured}: {word}"

    @property
    def by_rule2(self) -> "Verdict":
        return self.before or self

    @property
    def short(self) -> str:
        """The word, and that both networks are below the damaged images."""
        return f"{self.word}{GATED * self.gated}"

    @property
    def due(self) -> bool:
        """Whether a word is due: while parts are to be measured, none is but that one of them speaks against it."""
        return self.word == REVERSED or MISSING not in (self.word, *(word for _, word in self.parts.values()))

    @property
    def said(self) -> str:
        """The word, where one is due."""
        return self.word if self.due else MISSING

    @property
    def told(self) -> str:
        """`said`; of a claim that is equivalent because one part holds and another is alike, the words of its parts; of
        an undecided one how many of them are decided."""
        words = {label: word.removesuffix(GATED) for label, (_, word) in self.parts.items()}
        decided = Counter(word for word in words.values() if word != UNDECIDED)
        if self.said == UNDECIDED and decided:
            counts = ", ".join(f"{n} {word}" for word, n in decided.most_common())
            return f"{UNDECIDED} (of {len(words)} parts {counts})"
        if self.said != EQUIVALENT or len(decided) < 2:
            return self.said
        return f"{EQUIVALENT} ({', '.join(f'{word} on {label}' for label, word in words.items())})"


# The rule, on the last axis of an array: seeds in `interval`, `p_below` and `decide`, parts in `holm` and `combine`


def interval(values, level: float = 1 - ALPHA):
    """Student's interval of the mean: (low, high)."""
    x = np.asarray(values, float)
    n = x.shape[-1]
    half = quantile((1 + level) / 2, n - 1) * x.std(-1, ddof=1) / np.sqrt(n)
    return x.mean(-1) - half, x.mean(-1) + half


quantile = cache(stats.t.ppf)  # of Student's distribution, with so many degrees of freedom


def spread(margins) -> tuple[float, float, float]:
    """The mean, and from three seeds on the ends of its 95 % interval; NaN where there are none."""
    ends = interval(margins) if len(margins) >= ENOUGH else (np.nan, np.nan)
    return np.mean(margins) if len(margins) else np.nan, *ends


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


def verdict_on(parts: dict, kept: dict | None = None, **how) -> Verdict:
    """The verdict on a claim by rule 3, with that by rule 2; see `judged`."""
    return replace(judged(parts, kept, **how), before=judged(parts, **how))


def judged(
    parts: dict, kept=None, beyond=0.0, sign=1, below=(), unit="dB", text="", confirm=None, best=False, printed=None
) -> Verdict:
    """The verdict on a claim whose every part lies beyond a bound, or below it where sign is −1.

    parts: label → values, one per seed, and `kept` the same of some parts by the composite score; `beyond` is one bound
    or a dict of those that are not 0. `below` has the labels of parts of which both networks are below the damaged
    images. `confirm` has margins of the other score, above 0 where they agree; it counts where the bound is 0. `best`:
    a claim to be the best. `printed` has the paper's margins of some labels. `text` replaces the parts in words. Only
    decibels beyond 0 can be equivalent.
    """
    measured = {label: np.asarray(values, float) for label, values in parts.items() if len(values)}
    if not measured:
        return Verdict(MISSING)
    bounds = dict.fromkeys(parts, 0) | beyond if isinstance(beyond, dict) else dict.fromkeys(parts, beyond)
    margins = {label: sign * (values - bounds[label]) for label, values in measured.items()}
    kept = {label: np.asarray(kept[label], float) for label in measured if len((kept or {}).get(label, ()))}
    kept_margins = {label: sign * (values - bounds[label]) for label, values in kept.items()}
    within = {label: 0 if bounds[label] or unit != "dB" else WITHIN for label in parts}
    plain_words = {label: str(decide(margins.get(label, ()), within[label])) for label in parts}
    kept_words = {label: str(decide(values, within[label])) for label, values in kept_margins.items()}
    p = [1.0 if plain_words[label] == UNDECIDED else p_below(margins[label]) for label in parts]
    other = {label: values for label, values in (confirm or {}).items() if not bounds[label]}
    words = {label: confirmed(word, other.get(label, ())) for label, word in plain_words.items()}
    words |= {k: agreed(words[k], kept_margins[k], kept_words[k]) for k in kept}
    word, plain_word = (str(combine(np.array(list(each.values())), np.array(p))) for each in (words, plain_words))
    if word == UNDECIDED != plain_word:
        word = MIXED
    told = min(measured, key=lambda k: sign * measured[k].mean())
    if word == REVERSED:  # by the part that is most certainly against it
        told = min((k for k in measured if words[k] == REVERSED), key=dict(zip(parts, p, strict=True)).get)
    effect, excluded = against_paper(measured, sign, printed or {}, told, unit)
    if word == UNDECIDED and excluded and not any(bounds.values()):
        word = EXCLUDED
    word = TIED if best and word == EQUIVALENT else word
    value = f"{text or in_words(measured, told, unit)}, {count_seeds(measured)}"
    value += (tally(words, margins, word) if word != REPRODUCED else "") + effect
    composite = {label: (estimate(values, unit), kept_words[label]) for label, values in kept.items()}
    value += composite_in_words(composite)
    each = {label: own + GATED * (label in below) if label in measured else MISSING for label, own in words.items()}
    found = {label: (estimate(measured.get(label, []), unit), own) for label, own in each.items()}
    gated = word in (REPRODUCED, TIED, EQUIVALENT) and bool(set(below) & set(measured))
    narrow = {k: interval(x, 1 - 2 * ALPHA) for k, x in measured.items() if len(x) >= ENOUGH}
    # An excluded claim rests on what the paper prints, another on its weakest part, of those beyond 0 where some are.
    asked = printed if word == EXCLUDED else [k for k in measured if not bounds[k]] or measured
    weakest = min((k for k in asked if k in measured), key=lambda k: margins[k].mean())
    rests_on = told if word == REVERSED else weakest
    numbers, kept_numbers = ({k: ends_of(x) for k, x in each.items()} for each in (measured, kept))
    return Verdict(word, value, found, numbers, unit, gated, narrow, rests_on, composite, kept_numbers)


def ends_of(values) -> tuple[float, ...]:
    """The mean, and from three seeds on the ends of its 95 % interval."""
    return values.mean(), *(interval(values) if len(values) >= ENOUGH else ())


def agreed(word: str, kept, kept_word: str) -> str:
    """The word on a part, `MIXED` where its composite contradicts it; kept: margins beyond the same bound."""
    if word == EQUIVALENT:
        return MIXED if kept_word in (REPRODUCED, REVERSED) else word
    return confirmed(word, kept)


def absolute(m: "Measured", measure: Callable) -> Verdict:
    """The verdict on a claim on an absolute PSNR, which is not testable with networks trained much shorter."""
    found = measure(m)
    testable = not m.short or found.word == MISSING
    return found if testable else replace(found, word=NOT_TESTABLE, before=found.by_rule2)


def confirmed(word: str, other) -> str:
    """The word on a part, `MIXED` where the other score is decided the other way."""
    if word not in (REPRODUCED, REVERSED) or len(other) < ENOUGH:
        return word
    low, high = interval(other)
    return MIXED if (high < 0 if word == REPRODUCED else low > 0) else word


def against_paper(measured: dict, sign: int, printed: dict, least: str, unit: str) -> tuple[str, bool]:
    """`; −16 % of the paper's +0.19 dB, which lies above the interval`, and whether that is so of every part; with
    sign −1 the paper's is below 0 and lies below the interval.

    A part whose margin `in_words` does not tell is named, with that margin.
    """
    known = {label: sign * measured[label] for label in printed if label in measured}
    if not known:
        return "", False
    shares = [values.mean() / printed[label] for label, values in known.items()]
    out = all(k in known and len(known[k]) >= ENOUGH and interval(known[k])[1] < printed[k] for k in printed)
    share = from_to(shares, lambda one: number(100 * one, 0))
    told = {least} if len(measured) > FEW else {*measured}
    part = "".join(f"{label} {estimate(values, unit)}, " for label, values in known.items() if label not in told)
    beyond = "above" if sign > 0 else "below"
    where = f", each {beyond} its interval" if len(known) > 1 else f", which lies {beyond} the interval"
    paper_has = span((sign * printed[k] for k in known), unit)
    return f"; {part}{share} % of the paper's {paper_has}{where * out}", out


def tally(words: dict, margins: dict, claim: str) -> str:
    """`, 6 parts: 3 for it, 2 alike within ±0.05 dB (at 90 % ±0.03), 1 to be measured`; of a lone part how alike."""
    even = [interval(margins[label], 1 - 2 * ALPHA) for label, word in words.items() if word == EQUIVALENT]
    reach = np.abs(even).max() if even else 0
    alike = f"alike within ±{NARROW if reach < NARROW else WITHIN:.2f} dB (at 90 % ±{reach:.2f})" * bool(even)
    if len(words) == 1:
        return alike and f", {alike}"
    against = "against it" if claim == REVERSED else "against it on its own, too little among so many"
    names = {REPRODUCED: "for it", EQUIVALENT: alike, REVERSED: against}
    names |= {MIXED: "mixed", UNDECIDED: "open", MISSING: MISSING}
    found = Counter(word if label in margins else MISSING for label, word in words.items())
    return f", {len(words)} parts: " + ", ".join(f"{found[word]} {name}" for word, name in names.items() if found[word])


# In words


def plain(task: str) -> str:
    """`Image inpainting` → `inpainting`."""
    return paper.TASKS[task]["title"].split()[-1].lower()


def in_words(parts: dict, least: str, unit="dB") -> str:
    """`easy +1.20 dB [+0.90, +1.50]; hard +0.80 dB`; of more than four parts the one that favours the claim least."""
    if len(parts) <= FEW:
        return "; ".join(f"{label} {estimate(values, unit)}".strip() for label, values in parts.items())
    return f"least {estimate(parts[least], unit)} ({least})"


def estimate(values, unit: str = "dB") -> str:
    """The mean, from three seeds on with its 95 % interval: `+0.31 dB [+0.12, +0.50]`."""
    text = signed(np.mean(values), unit) if len(values) else "–"
    ends = [number(end, DIGITS.get(unit, 2)) for end in interval(values)] if len(values) >= ENOUGH else []
    return f"{text} [{', '.join(ends)}]" if ends else text


def span(values: Iterable[float], unit: str = "dB") -> str:
    """From the least to the most of published numbers: `+0.02 dB`, `+0.01 to +0.03 dB`."""
    return f"{from_to(values, number)} {unit}"


def composite_in_words(kept: dict) -> str:
    """`; known pixels put back: inpainting −0.93 dB [−1.11, −0.74], reversed`; of more than four parts the words."""
    if len(kept) <= FEW:
        each = "; ".join(f"{label} {margin}, {word}".strip() for label, (margin, word) in kept.items())
    else:
        counts = Counter(word for _, word in kept.values()).most_common()
        each = f"{len(kept)} parts, " + ", ".join(f"{n} {word}" for word, n in counts)
    return f"; known pixels put back: {each}" if kept else ""


def from_to(values: Iterable, say: Callable, to: str = " to ") -> str:
    """What is said of the least and of the most, once where it is the same."""
    values = list(values)
    return to.join(dict.fromkeys(map(say, (min(values), max(values)))))


def signed(value: float, unit: str = "dB") -> str:
    return f"{number(value, DIGITS.get(unit, 2))} {unit}".rstrip()


def number(value: float, digits: int = 2) -> str:
    """`+0.31`; −0.00 is a little below 0, and an interval that ends there is without 0."""
    return f"{value:+.{digits}f}".replace("-", "−")


def count_seeds(parts: dict) -> str:
    """`1 seed`, `2–3 seeds`."""
    counts = {len(values) for values in parts.values()}
    return from_to(counts, str, "–") + (" seed" if counts == {1} else " seeds")


# What is measured


def no_rows(*columns: str):
    return field(default_factory=lambda: pd.DataFrame(columns=list(columns)))


@dataclass(frozen=True)
class Measured:
    """What is on disk for one profile and data set; everything may be empty."""

    # (task, schedule, seed) → Result; for the task also "blocks" of Table 2, and what `gradients_and_pool` measures
    runs: dict = field(default_factory=dict)
    table3: pd.DataFrame = no_rows("image", "system", "clipped", "psnr", "seed")  # table3.table of our two systems
    spectrum: pd.DataFrame = no_rows("system", "told", "sigma", "psnr", "seed")  # db11_spectrum.table of `CURVES`
    long: dict = field(default_factory=dict)  # (task, seed) → Result of an on-demand network trained longer
    short: bool = False  # trained so much shorter than in the paper that no claim on an absolute PSNR is testable


def compare(m: Measured, pairs: dict, harm: bool = False, **how) -> Verdict:
    """The judge on differences of schedules; pairs: label → (task, one, other) and perhaps levels and column.

    `harm`: a claim that the other one scores badly, which scoring below the damaged images does not weaken. What is
    measured ends with the GPU's name, where one trained.
    """
    below = [k for k, pair in pairs.items() if not harm and below_input(m.runs, pair[0], pair[1:3], *pair[3:])]
    by_error = {k: error_gaps(m.runs, *pair[:4]) for k, pair in pairs.items() if not pair[4:]}
    kept = {k: composite_gaps(m.runs, *pair) for k, pair in pairs.items()}
    margins = {k: gaps(m.runs, *pair) for k, pair in pairs.items()}
    found = verdict_on(margins, kept, below=below, confirm=by_error, **how)
    runs = [run for pair in pairs.values() for both in paired(m.runs, *pair[:3]) for run in both]
    devices = sorted({conditions_of(run)[1] for run in runs})
    return replace(found, measured=found.measured + f"; on {' and '.join(devices)}" * (devices not in ([], ["CPU"])))


def on_tasks(one: str, other: str, tasks=tuple(paper.TASKS)) -> dict:
    """Two schedules on every task, or on some: `pairs` of `compare`."""
    return {plain(task): (task, one, other) for task in tasks}


def compare_levels(m: Measured, one: str, other: str, more: str, less: str) -> Verdict:
    """The judge on whether `one` is further ahead of `other` on level `more` than on level `less`, on every task."""

    def leads(task: str, gaps_of) -> np.ndarray:
        return np.subtract(*(gaps_of(m.runs, task, one, other, [level]) for level in (more, less)))

    margins, kept = ({plain(task): leads(task, of) for task in paper.TASKS} for of in (gaps, composite_gaps))
    return verdict_on(margins, kept)


def lead(m: Measured, *pair) -> tuple[float, float, float, str]:
    """Mean margin (dB) of a pair, as in `compare`, its 95 % interval, low and high, and the verdict; else NaN."""
    return *spread(gaps(m.runs, *pair)), compare(m, {"": pair}).short


def printed(m: Measured, task: str, schedule: str) -> tuple[float, float]:
    """The paper's L2 (‰) and PSNR (dB) of a schedule: CelebA's where the runs are of faces, else SUN397's."""
    faces = any(run.experiment.get("dataset", "").startswith("celeba") for run in m.runs.values())
    return published.TABLE1[task][schedule][not faces]


def printed_margin(m: Measured, task: str, one: str = "on_demand", other: str = "rigid_joint") -> float:
    """The paper's margin (dB) of two schedules."""
    return round(printed(m, task, one)[1] - printed(m, task, other)[1], 2)


def dose_of(run) -> float:
    """Mean over epochs of the share of a batch by which a level is away from its equal share."""
    return float(np.mean([epoch["dose"] for epoch in run.history]))


# Margins of trained networks; runs: (task, schedule, seed) → Result


def keyed(found) -> dict:
    """The runs of a page's own results."""
    return {tuple(run.experiment[name] for name in ("task", "schedule", "seed")): run for run in found}


def score(run, levels=LEVELS, column="psnr") -> float:
    """Mean over trials and some levels of a column of the evaluation, in dB."""
    means = run.level_means[column]
    return float(np.mean([means[level] for level in levels]))


def paired(runs: dict, task: str, *schedules: str) -> list[list]:
    """The runs of some schedules, a list for every seed that all of them have under the same conditions."""
    seeds = sorted(key[2] for key in runs if key[:2] == (task, schedules[0]))
    found = [[runs[task, s, k] for s in schedules] for k in seeds if all((task, s, k) in runs for s in schedules)]
    return [pair for pair in found if len({conditions_of(run) for run in pair}) == 1]


def runs_of(runs: dict, schedule: str, tasks=tuple(paper.TASKS)) -> list:
    """The runs of a schedule on some tasks."""
    return [runs[key] for key in runs if key[0] in tasks and key[1] == schedule]


def conditions_of(run) -> tuple:
    """What the runs of a pair share: the kind of arithmetic, the GPU's name or "CPU", and the photographs' SHA-256."""
    device = run.provenance.get("device", "CPU")
    whose = "CPU" if device.startswith("CPU") else device
    return arithmetic_of(run.provenance, run.experiment), whose, run.provenance.get("data_sha256")


def gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS, column="psnr") -> list[float]:
    """By how many dB `one` is ahead of `other`, for every seed that both have."""
    return [score(a, levels, column) - score(b, levels, column) for a, b in paired(runs, task, one, other)]


def composite_gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS, column="psnr") -> list[float]:
    """`gaps` with the known pixels put back; empty on tasks without any, and of what is not scored over all pixels."""
    if task not in paper.MASKED or column != "psnr":
        return []
    pairs = [pair for pair in paired(runs, task, one, other) if all(COMPOSITE in run.evaluation for run in pair)]
    return [score(a, levels, COMPOSITE) - score(b, levels, COMPOSITE) for a, b in pairs]


def error_gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS) -> list[float]:
    """By how much the mean squared error (‰) of `one` is below that of `other`; empty where it was not measured."""
    pairs = [pair for pair in paired(runs, task, one, other) if all("l2" in run.evaluation for run in pair)]
    return [score(b, levels, "l2") - score(a, levels, "l2") for a, b in pairs]


def below_input(runs: dict, task: str, schedules, levels=LEVELS, column="psnr") -> bool:
    """Whether on these levels every one of these schedules is below the damaged images, by PSNR and by squared error.

    What is scored inside the hole is compared with the known pixels kept, else an autoencoder's copying counts; that
    has no squared error of its own.
    """
    pairs = paired(runs, task, *schedules)
    if not pairs or "psnr_input" not in pairs[0][0].evaluation:  # Table 2 measures holes, of which nothing is known
        return False

    def below(one: str, other: str) -> bool:  # of every schedule, in the mean over the pairs
        gaps = [[score(run, levels, one) - score(run, levels, other) for run in pair] for pair in pairs]
        return bool((np.mean(gaps, axis=0) < 0).all())

    by_psnr = below("psnr_kept" if column == "psnr_hole" else column, "psnr_input")
    if column != "psnr" or "l2_input" not in pairs[0][0].evaluation:
        return by_psnr
    return by_psnr and below("l2_input", "l2")


def levels_below(runs: dict, schedule: str) -> dict[str, list[str]]:
    """Plain name of a task → levels on which a schedule is below the damaged images by PSNR, in the mean over seeds."""
    found = {}
    for task in paper.TASKS:
        own = [run for run in runs_of(runs, schedule, [task]) if "psnr_input" in run.evaluation]
        gain = {i: np.mean([score(r, [i]) - score(r, [i], "psnr_input") for r in own] or [0]) for i in LEVELS}
        found[plain(task)] = [level for level in LEVELS if gain[level] < 0]
    return {task: levels for task, levels in found.items() if levels}


# Trials of one network


def paired_p_value(a, b) -> float:
    """Two-sided paired t-test over trials; NaN when the differences do not vary beyond rounding."""
    difference = np.asarray(a, float) - np.asarray(b, float)
    if np.ptp(difference) <= 1e-12 * np.abs(a).max():
        return float("nan")
    return float(stats.ttest_1samp(difference, 0).pvalue)


# How often the rule errs


def simulate() -> pd.DataFrame:
    """What the rule decides where the true difference is known, in shares of made-up campaigns.

    Columns parts (1, or on-demand against six rivals), apart (dB by which all rivals but the first are truly
    further behind), seeds (3, 5, `5 and 3`: five for the three rivals that train on all levels, three for the
    others, as planned, where several are close; or `3, then 5`: the other two only where three leave it undecided),
    spread (dB, standard deviation of a paired margin); `false` (reproduced or reversed at a true difference of 0),
    `even` (equivalent or tied at 0), `excluded` (of a margin of 0 that 0.19 dB, the paper's, is excluded), and
    where every part is truly 0.1 or 0.2 dB further ahead, `even_0.1`, `power_0.1` and `power_0.2` (reproduced).
    """
    rng, rows, rivals = np.random.default_rng(0), [], len(published.SEVEN) - 1
    for parts, apart in ((1, 0), (rivals, 0), (rivals, 2)):
        # A network's own noise: on-demand's is in all six margins, which therefore move together.
        noise = rng.normal(0, 0.5**0.5, (120_000 // parts, parts + 1, 5))
        for spread in (0.03, 0.1, 0.3):
            margins, words = spread * (noise[:, :1] - noise[:, 1:]), {}
            margins[:, 1:] += apart
            for d in (0, 0.1, 0.2):
                three, five = ((decide(x), p_below(x)) for x in (margins[..., :n] + d for n in (3, 5)))
                planned = [np.concatenate([b[:, :3], a[:, 3:]], 1) for a, b in zip(three, five, strict=True)]
                words[d, 3], words[d, 5], words[d, "5 and 3"] = (combine(*case) for case in (three, five, planned))
                words[d, "3, then 5"] = np.where(words[d, 3] == UNDECIDED, words[d, 5], words[d, 3])
            for seeds in (3, 5, *["5 and 3"] * (parts > 1 and not apart), "3, then 5"):
                row = {"parts": parts, "apart": apart, "seeds": seeds, "spread": spread}
                row["false"] = np.isin(words[0, seeds], (REPRODUCED, REVERSED)).mean()
                row["even"], row["even_0.1"] = ((words[d, seeds] == EQUIVALENT).mean() for d in (0, 0.1))
                row["excluded"] = (interval(margins[:, 0, : 3 if seeds == 3 else 5])[1] < 0.19).mean()
                rows.append(row | {f"power_{d}": (words[d, seeds] == REPRODUCED).mean() for d in (0.1, 0.2)})
    return pd.DataFrame(rows, columns=list(rows[-1]))
