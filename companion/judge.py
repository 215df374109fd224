"""The one judge: from margins, one per paired seed, to a decision on a claim of the paper.

A page that ranks anything takes its words from here. They are those of rule 3, which was fixed before two schedules
were compared with the residual U-Net, and after nearly every result of the paper's network was known. Each decision
keeps that by rule 2, which was fixed before two schedules were compared on faces, but for what the page of the
scorecard names, and after nearly every result on bsds500 was known. That page has both rules in words;
`companion/words.py` says each decision in English.
"""

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
BELOW_INPUT = " (below doing nothing)"  # behind a word: both networks are below the damaged images
COMPOSITE = "psnr_kept"  # the column of PSNR with the known pixels put back
LEVELS = tuple(str(level) for level in range(1, paper.N_LEVELS + 2))
EQUIVALENCE = 0.10  # dB, the smallest margin of on-demand learning over rigid joint learning in the paper's tables
NARROW_EQUIVALENCE = 0.05  # dB, which is reported, too
ALPHA = 0.05  # both sides together
MIN_SEEDS = 3  # a spread from two seeds is hardly a spread: either of them may be the odd one
LARGE_EFFECT = 3  # dB, twice the squared error


@dataclass(frozen=True, eq=False)
class Part:
    """One comparison of a claim: its values, one per seed, and the word on it; nothing where it is to be measured.

    `margins` are the values in favour of the claim, beyond its bound, and `own_word` is the word on them alone, before
    other scores were asked. `composite` has the values by the composite score, empty where it is not asked, and
    `composite_word` the word on them. `below` is true if both networks are below the damaged images.
    """

    values: np.ndarray = ()
    margins: np.ndarray = ()
    own_word: str = MISSING
    word: str = MISSING
    composite: np.ndarray = ()
    composite_word: str = ""
    below: bool = False

    @property
    def mean(self) -> float:
        return spread(self.values)[0]

    @property
    def full_word(self) -> str:
        return self.word + BELOW_INPUT * self.below


@dataclass(frozen=True, eq=False)
class Decision:
    """The word on a claim, one of `VERDICTS`, and the numbers behind it, which `words.describe` says.

    `least` names the part that favours the claim least, or, if the claim is `refuted`, the one that is most certainly
    against it. `below` is true if the claim is decided and both networks of a part are below the damaged images.
    `printed` has the paper's margins of some parts; `text` replaces the parts in words, and `note` follows all words.
    `before` is the decision by rule 2.
    """

    word: str
    parts: dict[str, Part] = field(default_factory=dict)
    unit: str = "dB"
    sign: int = 1
    refuted: bool = False
    below: bool = False
    least: str = ""
    printed: dict[str, float] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    text: str = ""
    note: str = ""
    before: "Decision | None" = None

    @property
    def measured(self) -> dict[str, Part]:
        return {label: part for label, part in self.parts.items() if len(part.values)}

    @property
    def composites(self) -> dict[str, Part]:
        """Return the parts that the composite score judges, too."""
        return {label: part for label, part in self.parts.items() if len(part.composite)}

    @property
    def full_word(self) -> str:
        return self.word + BELOW_INPUT * self.below

    @property
    def published_word(self) -> str:
        """Return the word when all parts are measured, or a measured part already refutes the claim; else `MISSING`."""
        unmeasured = any(part.word == MISSING for part in self.parts.values())
        return MISSING if unmeasured and self.word != REVERSED else self.word

    @property
    def by_rule2(self) -> "Decision":
        return self.before or self

    def with_note(self, note: str) -> "Decision":
        return replace(self, note=self.note + note)


# The rule, on the last axis of an array: seeds in `interval`, `p_below` and `decide`, parts in `holm` and `combine`


def interval(values, level: float = 1 - ALPHA):
    """Return Student's interval of the mean: (low, high)."""
    x = np.asarray(values, float)
    n = x.shape[-1]
    half = quantile((1 + level) / 2, n - 1) * x.std(-1, ddof=1) / np.sqrt(n)
    return x.mean(-1) - half, x.mean(-1) + half


quantile = cache(stats.t.ppf)  # of Student's distribution, with so many degrees of freedom


def narrow_interval(values):
    """Return the 90 % interval, by which two one-sided tests (TOST) find equivalence."""
    return interval(values, 1 - 2 * ALPHA)


def spread(margins) -> tuple[float, float, float]:
    """Return the mean, and from three seeds on the ends of its 95 % interval; NaN where there are none."""
    ends = interval(margins) if len(margins) >= MIN_SEEDS else (np.nan, np.nan)
    return np.mean(margins) if len(margins) else np.nan, *ends


def p_below(margins):
    """Return the one-sided p-value of a mean below 0."""
    x = np.asarray(margins, float)
    error = x.std(-1, ddof=1) / np.sqrt(x.shape[-1])
    return stats.t.cdf(x.mean(-1) / np.maximum(error, 1e-12), x.shape[-1] - 1)


def decide(margins, within: float = EQUIVALENCE):
    """Return the word on margins in favour of a claim with one part; nothing is equivalent where `within` is 0."""
    if np.shape(margins)[-1] < MIN_SEEDS:
        return np.full(np.shape(margins)[:-1], UNDECIDED)
    low, high = narrow_interval(margins)
    equivalent = (low > -within) & (high < within)
    low, high = interval(margins)
    return np.select([equivalent, low > 0, high < 0], [EQUIVALENT, REPRODUCED, REVERSED], UNDECIDED)


def holm(p):
    """Return which p-values Holm's step-down test rejects at half of `ALPHA`, the lower side of the interval."""
    order = np.argsort(p, -1)
    n = np.shape(p)[-1]
    passed = np.take_along_axis(p, order, -1) <= ALPHA / 2 / (n - np.arange(n))
    rejected = np.logical_and.accumulate(passed, -1)
    return np.take_along_axis(rejected, np.argsort(order, -1), -1)


def combine(words, p):
    """Return the word on a claim from those on its parts: intersection–union in favour, Holm on p-values against."""
    against = (holm(p) & (words == REVERSED)).any(-1)
    in_favour, even = (words == REPRODUCED).all(-1), np.isin(words, (REPRODUCED, EQUIVALENT)).all(-1)
    return np.select([against, in_favour, even], [REVERSED, REPRODUCED, EQUIVALENT], UNDECIDED)


# A claim


def decide_claim(parts: dict, composite: dict | None = None, **how) -> Decision:
    """Return the decision on a claim by rule 3, with that by rule 2; `how` as in `decide_by_rule`."""
    return replace(decide_by_rule(parts, composite or {}, **how), before=decide_by_rule(parts, {}, **how))


def decide_by_rule(
    parts, composite, beyond=0.0, sign=1, below=(), unit="dB", text="", confirm=None, best=False, printed=None
) -> Decision:
    """Return the decision on a claim whose every part lies beyond a bound, or below it where sign is −1.

    parts: label → values, one per seed, and `composite` the same of some parts by that score, none for rule 2; `beyond`
    is one bound or a dict of those that are not 0. `below` has the labels of parts of which both networks are below the
    damaged images. `confirm` has margins of the other score, above 0 where they agree; it counts where the bound is 0.
    `best`: a claim to be the best. `printed` has the paper's margins of some labels. `text` replaces the parts in
    words. Only decibels beyond 0 can be equivalent.
    """
    bounds = dict.fromkeys(parts, 0) | beyond if isinstance(beyond, dict) else dict.fromkeys(parts, beyond)
    printed, confirm, found = printed or {}, confirm or {}, dict.fromkeys(parts, Part())
    for label in (label for label, values in parts.items() if len(values)):
        bound, kept = bounds[label], composite.get(label, ())
        other = () if bound else confirm.get(label, ())
        within = 0 if bound or unit != "dB" else EQUIVALENCE
        found[label] = decide_part(parts[label], kept, other, bound, sign, within, label in below)
    measured = {label: part for label, part in found.items() if len(part.values)}
    if not measured:
        return Decision(MISSING)
    p = {k: 1.0 if part.own_word in (UNDECIDED, MISSING) else p_below(part.margins) for k, part in found.items()}
    words, own_words = (np.array([getattr(part, name) for part in found.values()]) for name in ("word", "own_word"))
    word, own_word = (str(combine(each, np.array([*p.values()]))) for each in (words, own_words))
    refuted = word == REVERSED
    against = [label for label, part in measured.items() if part.word == REVERSED]
    least = min(against, key=p.get) if refuted else min(measured, key=lambda k: sign * measured[k].values.mean())
    if word == UNDECIDED != own_word:
        word = MIXED
    elif word == UNDECIDED and excludes(measured, sign, printed) and not any(bounds.values()):
        word = EXCLUDED
    elif word == EQUIVALENT and best:
        word = TIED
    is_below = word in (REPRODUCED, TIED, EQUIVALENT) and any(part.below for part in measured.values())
    return Decision(word, found, unit, sign, refuted, is_below, least, printed, text=text)


def decide_part(values, composite, other, bound: float, sign: int, within: float, below: bool) -> Part:
    """Return the part with its word: that on its own score, unless another score contradicts it."""
    values, composite = np.asarray(values, float), np.asarray(composite, float)
    margins, kept = sign * (values - bound), sign * (composite - bound)
    own_word, kept_word = str(decide(margins, within)), str(decide(kept, within)) if len(kept) else ""
    word = MIXED if contradicted(own_word, other) else own_word
    alone = word == EQUIVALENT and kept_word in (REPRODUCED, REVERSED)
    word = MIXED if alone or contradicted(word, kept) else word
    return Part(values, margins, own_word, word, composite, kept_word, below)


def contradicted(word: str, other) -> bool:
    """Return whether margins of another score are decided the other way."""
    if word not in (REPRODUCED, REVERSED) or len(other) < MIN_SEEDS:
        return False
    low, high = interval(other)
    return bool(high < 0 if word == REPRODUCED else low > 0)


def excludes(measured: dict[str, Part], sign: int, printed: dict[str, float]) -> bool:
    """Return whether each margin that the paper prints lies above its part's interval."""
    values = {label: sign * part.values for label, part in measured.items()}
    known = [label for label in printed if len(values.get(label, ())) >= MIN_SEEDS]
    return 0 < len(known) == len(printed) and all(interval(values[k])[1] < printed[k] for k in known)


def absolute(evidence: "Evidence", found: Decision) -> Decision:
    """Return a decision on an absolute PSNR, which is not testable with networks trained much shorter."""
    testable = not evidence.short or found.word == MISSING
    return found if testable else replace(found, word=NOT_TESTABLE, before=found.by_rule2)


# What the judge is given


def no_rows(*columns: str):
    return field(default_factory=lambda: pd.DataFrame(columns=list(columns)))


@dataclass(frozen=True)
class Evidence:
    """The results of one profile and data set that are on disk; everything may be empty."""

    # (task, schedule, seed) → Result; for the task also "blocks" of Table 2, and what else `companion.measure` adds
    runs: dict = field(default_factory=dict)
    table3: pd.DataFrame = no_rows("image", "system", "clipped", "psnr", "seed")  # table3.denoisers_table, ours
    spectrum: pd.DataFrame = no_rows("system", "told", "sigma", "psnr", "seed")  # db11_spectrum.curves_table
    short: bool = False  # trained so much shorter than in the paper that no claim on an absolute PSNR is testable


def compare(evidence: Evidence, pairs: dict, harm: bool = False, **how) -> Decision:
    """Judge differences of schedules; pairs: label → (task, one, other) and perhaps levels and column.

    `harm`: a claim that the other one scores badly, which scoring below the damaged images does not weaken.
    """
    margins = {k: gaps(evidence.runs, *pair) for k, pair in pairs.items()}
    composite = {k: composite_gaps(evidence.runs, *pair) for k, pair in pairs.items()}
    of_psnr = {k: pair for k, pair in pairs.items() if not pair[4:]}
    by_error = {k: np.negative(gaps(evidence.runs, *pair, column="l2")) for k, pair in of_psnr.items()}
    below = [k for k, pair in pairs.items() if not harm and below_input(evidence.runs, pair[0], pair[1:3], *pair[3:])]
    found = decide_claim(margins, composite, below=below, confirm=by_error, **how)
    runs = [run for pair in pairs.values() for both in paired(evidence.runs, *pair[:3]) for run in both]
    return replace(found, devices=tuple(sorted({conditions_of(run)[1] for run in runs})))


def plain(task: str) -> str:
    """Return the task in a word: `Image inpainting` → `inpainting`."""
    return paper.TASKS[task]["title"].split()[-1].lower()


def on_tasks(one: str, other: str, tasks=tuple(paper.AS_SHIPPED)) -> dict:
    """Return the `pairs` of `compare` for two schedules on every task, or on some."""
    return {plain(task): (task, one, other) for task in tasks}


def compare_levels(evidence: Evidence, one: str, other: str, more: str, less: str) -> Decision:
    """Judge whether `one` is further ahead of `other` on level `more` than on level `less`, on every task."""

    def leads(task: str, gaps_of) -> np.ndarray:
        return np.subtract(*(gaps_of(evidence.runs, task, one, other, [level]) for level in (more, less)))

    margins, composite = ({plain(task): leads(task, of) for task in paper.AS_SHIPPED} for of in (gaps, composite_gaps))
    return decide_claim(margins, composite)


def lead(evidence: Evidence, *pair) -> tuple[float, float, float, str]:
    """Return a pair's mean margin (dB), as in `compare`, its 95 % interval, low and high, and the word; else NaN."""
    return *spread(gaps(evidence.runs, *pair)), compare(evidence, {"": pair}).full_word


def printed(evidence: Evidence, task: str, schedule: str) -> tuple[float, float]:
    """Return the paper's L2 (‰) and PSNR (dB) of a schedule: CelebA's where the runs are of faces, else SUN397's."""
    faces = any(run.experiment.get("dataset", "").startswith("celeba") for run in evidence.runs.values())
    return published.TABLE1[task][schedule][not faces]


def printed_margin(evidence: Evidence, task: str, one: str, other: str) -> float:
    """Return the paper's margin (dB) of two schedules."""
    return round(printed(evidence, task, one)[1] - printed(evidence, task, other)[1], 2)


def dose_of(run) -> float:
    """Return the mean over epochs of the share of a batch by which a level is away from its equal share."""
    return float(np.mean([epoch["dose"] for epoch in run.history]))


# Margins of trained networks; runs: (task, schedule, seed) → Result


def keyed(found) -> dict:
    """Return a page's own results as runs."""
    return {tuple(run.experiment[name] for name in ("task", "schedule", "seed")): run for run in found}


def score(run, levels=LEVELS, column="psnr") -> float:
    """Return the mean over trials and some levels of a column of the evaluation, in dB."""
    means = run.level_means[column]
    return float(np.mean([means[level] for level in levels]))


def gained(run, levels=LEVELS, column="psnr") -> float:
    """Return by how much (dB) a network raises the PSNR of the damaged pictures; by `column` of what it restores."""
    return score(run, levels, column) - score(run, levels, "psnr_input")


def paired(runs: dict, task: str, *schedules: str) -> list[list]:
    """Return the runs of some schedules, a list for every seed that all of them have under the same conditions."""
    seeds = sorted(key[2] for key in runs if key[:2] == (task, schedules[0]))
    found = [[runs[task, s, k] for s in schedules] for k in seeds if all((task, s, k) in runs for s in schedules)]
    return [pair for pair in found if len({conditions_of(run) for run in pair}) == 1]


def runs_of(runs: dict, schedule: str, tasks=tuple(paper.AS_SHIPPED)) -> list:
    """Return the runs of a schedule on some tasks."""
    return [runs[key] for key in runs if key[0] in tasks and key[1] == schedule]


def conditions_of(run) -> tuple:
    """Return what the runs of a pair share: the arithmetic, the GPU's name or "CPU", the photographs' SHA-256."""
    device = run.provenance.get("device", "CPU")
    whose = "CPU" if device.startswith("CPU") else device
    return arithmetic_of(run.provenance, run.experiment), whose, run.provenance.get("data_sha256")


def gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS, column="psnr") -> list[float]:
    """Return by how much `one` is above `other` (dB) for every seed that both have; empty without that column."""
    pairs = [pair for pair in paired(runs, task, one, other) if all(column in run.evaluation for run in pair)]
    return [score(a, levels, column) - score(b, levels, column) for a, b in pairs]


def composite_gaps(runs: dict, task: str, one: str, other: str, levels=LEVELS, column="psnr") -> list[float]:
    """Return `gaps` with the known pixels put back; empty where no pixel is known or not all are scored."""
    asked = task in paper.MASKED and column == "psnr"
    return gaps(runs, task, one, other, levels, COMPOSITE) if asked else []


def below_input(runs: dict, task: str, schedules, levels=LEVELS, column="psnr") -> bool:
    """Return whether all these schedules are below the damaged images on these levels, by PSNR and by squared error.

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


# How often the rule errs


def simulate() -> pd.DataFrame:
    """Return what the rule decides where the true difference is known, in shares of made-up campaigns.

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
