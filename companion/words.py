"""What the judge says, in English: numbers with their units, and a decision in words."""

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from companion import judge
from companion.judge import EQUIVALENCE, EQUIVALENT, MIN_SEEDS, MISSING, NARROW_EQUIVALENCE, UNDECIDED, Decision

SLOPE = "dB for each %"
ERROR_SLOPE = "‰ for each %"
DIGITS = dict.fromkeys((SLOPE, ERROR_SLOPE), 3)  # of a unit in which two are too few
MAX_NAMED_PARTS = 4  # so many stand in the sentence on what is measured


# Numbers


def number(value: float, digits: int = 2) -> str:
    """Return `+0.31`; −0.00 is a little below 0, and an interval that ends there is without 0."""
    return f"{value:+.{digits}f}".replace("-", "−")


def signed(value: float, unit: str = "dB") -> str:
    return f"{number(value, DIGITS.get(unit, 2))} {unit}".rstrip()


def estimate(values, unit: str = "dB") -> str:
    """Return the mean, from three seeds on with its 95 % interval: `+0.31 dB [+0.12, +0.50]`."""
    text = signed(np.mean(values), unit) if len(values) else "–"
    ends = [number(end, DIGITS.get(unit, 2)) for end in judge.interval(values)] if len(values) >= MIN_SEEDS else []
    return f"{text} [{', '.join(ends)}]" if ends else text


def from_to(values: Iterable, say: Callable, to: str = " to ") -> str:
    """Return what is said of the least and of the most, once where it is the same."""
    values = list(values)
    return to.join(dict.fromkeys(map(say, (min(values), max(values)))))


def span(values: Iterable[float], unit: str = "dB") -> str:
    """Return the least to the most of published numbers: `+0.02 dB`, `+0.01 to +0.03 dB`."""
    return f"{from_to(values, number)} {unit}"


def count_seeds(values: Iterable) -> str:
    """Return `1 seed`, `2–3 seeds`, from lists that each have a value per seed."""
    counts = {len(each) for each in values}
    return from_to(counts, str, "–") + (" seed" if counts == {1} else " seeds")


# A decision


def conclude(decision: Decision) -> str:
    """Return `+0.31 dB [+0.12, +0.50], 3 seeds: **reproduced**`, without the bold where nothing is decided."""
    if decision.word == MISSING:
        return MISSING
    word = decision.word if decision.word == UNDECIDED else f"**{decision.word}**{judge.BELOW_INPUT * decision.below}"
    return f"{describe(decision)}: {word}"


def describe(decision: Decision) -> str:
    """Return what was measured, in words, without the decision's own word."""
    if not decision.parts:
        return decision.text or "–"
    seeds = count_seeds(part.values for part in decision.measured.values())
    said = [f"{decision.text or describe_parts(decision)}, {seeds}", tally(decision), beside_paper(decision)]
    devices = f"; on {' and '.join(decision.devices)}" * (decision.devices not in ((), ("CPU",)))
    return "".join([*said, describe_composite(decision), devices, decision.note])


def qualify(decision: Decision) -> str:
    """Return the published word, of parts that differ with their words, or with how many of them are decided."""
    words = {label: part.word for label, part in decision.parts.items()}
    decided = Counter(word for word in words.values() if word != UNDECIDED)
    if decision.published_word == UNDECIDED and decided:
        counts = ", ".join(f"{n} {word}" for word, n in decided.most_common())
        return f"{UNDECIDED} (of {len(words)} parts {counts})"
    if decision.published_word != EQUIVALENT or len(decided) < 2:
        return decision.published_word
    return f"{EQUIVALENT} ({', '.join(f'{word} on {label}' for label, word in words.items())})"


def describe_parts(decision: Decision) -> str:
    """Return `easy +1.20 dB [+0.90, +1.50]; hard +0.80 dB`, of more than four parts the one that says most."""
    if len(decision.measured) <= MAX_NAMED_PARTS:
        parts = decision.measured.items()
        return "; ".join(f"{label} {estimate(part.values, decision.unit)}".strip() for label, part in parts)
    return f"least {estimate(decision.parts[decision.least].values, decision.unit)} ({decision.least})"


def tally(decision: Decision) -> str:
    """Return `, 6 parts: 3 for it, 2 alike within ±0.05 dB (at 90 % ±0.03), 1 to be measured`.

    Of a lone part it is how alike the two are, and where every part is for the claim nothing.
    """
    found = Counter(part.word for part in decision.parts.values())
    even = [judge.narrow_interval(part.margins) for part in decision.measured.values() if part.word == EQUIVALENT]
    reach = np.abs(even).max() if even else 0
    within = NARROW_EQUIVALENCE if reach < NARROW_EQUIVALENCE else EQUIVALENCE
    alike = f"alike within ±{within:.2f} dB (at 90 % ±{reach:.2f})" * bool(even)
    if len(decision.parts) == 1:
        return alike and f", {alike}"
    against = "against it" if decision.refuted else "against it on its own, too little among so many"
    names = {judge.REPRODUCED: "for it", EQUIVALENT: alike, judge.REVERSED: against}
    names |= {judge.MIXED: "mixed", UNDECIDED: "open", MISSING: MISSING}
    counts = ", ".join(f"{found[word]} {name}" for word, name in names.items() if found[word])
    return f", {found.total()} parts: {counts}" if {*found} != {judge.REPRODUCED} else ""


def beside_paper(decision: Decision) -> str:
    """Return `; −16 % of the paper's +0.19 dB, which lies above the interval`, or below it where the sign is −1.

    A part whose margin `describe_parts` does not tell is named, with that margin.
    """
    known = {label: decision.parts[label] for label in decision.printed if label in decision.measured}
    if not known:
        return ""
    shares = [(decision.sign * part.values).mean() / decision.printed[label] for label, part in known.items()]
    share = from_to(shares, lambda one: number(100 * one, 0))
    told = {decision.least} if len(decision.measured) > MAX_NAMED_PARTS else {*decision.measured}
    untold = [(label, part) for label, part in known.items() if label not in told]
    named = "".join(f"{label} {estimate(decision.sign * part.values, decision.unit)}, " for label, part in untold)
    side = "above" if decision.sign > 0 else "below"
    where = f", each {side} its interval" if len(known) > 1 else f", which lies {side} the interval"
    where *= judge.excludes(decision.measured, decision.sign, decision.printed)
    papers = span((decision.sign * decision.printed[label] for label in known), decision.unit)
    return f"; {named}{share} % of the paper's {papers}{where}"


def describe_composite(decision: Decision) -> str:
    """Return `; known pixels put back: inpainting −0.93 dB [−1.11, −0.74], reversed`, of many parts the words alone."""
    found = decision.composites
    if not found:
        return ""
    if len(found) <= MAX_NAMED_PARTS:
        each = [f"{k} {estimate(part.composite, decision.unit)}, {part.composite_word}" for k, part in found.items()]
        return f"; known pixels put back: {'; '.join(map(str.strip, each))}"
    counts = Counter(part.composite_word for part in found.values()).most_common()
    return f"; known pixels put back: {len(found)} parts, " + ", ".join(f"{n} {word}" for word, n in counts)
