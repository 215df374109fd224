"""The first screen: the answer in three sentences with the judge's words, and the core claims in one drawing."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import one_gpu
import pandas as pd
from jinja2 import Environment
from measured import NOT_MEASURED, PAIR, SETS, markdown, worlds

from companion import judge, published
from companion.claims import claims, scorecard
from companion.pages import dose, fixation, table3
from odl import paper

TEMPLATE = Path(__file__).with_name("forest.html.j2")
BEND = 0.05  # dB: the axis is linear below, logarithmic above
TICKS = (-1, -0.1, 0, 0.1, 1, 10)
BEST = "Best of seven:"
TITLES = {  # how a claim begins → the question of its row, in the order of the three sentences
    "Fixation:": "Fixation?",
    "Equation 3 at its own dose": "Feedback beats equal shares?",
    "Moving the batch": "Fourfold, half width?",
}
TITLES |= {f"{judge.plain(task).capitalize()}: on-demand": f"{BEST} {judge.plain(task)}?" for task in published.TABLE1}
TITLES |= {"The on-demand network is close": "Near the specialist?"}
MEANINGS = {  # of the judge's words, as briefly as may be
    judge.REPRODUCED: "holds",
    judge.EQUIVALENT: f"thick line within ±{judge.WITHIN:.2f}",
    judge.EXCLUDED: "below paper's gain",
    judge.REVERSED: "refuted",
}

# The three sentences


def answer() -> str:
    """Three sentences of at most 25 words, a paragraph each."""
    found = worlds()
    wide = at_full_width()
    contests = [judge.compare(m, {"": (task, *PAIR)}).word for m in (*found.values(), *wide) for task in paper.TASKS]
    words, cured = ({title: fixation.problem(m, name).word for title, m in found.items()} for name in PAIR)
    if not found or {judge.MISSING} in ({*words.values()}, {*contests}):
        return f"The answer is {NOT_MEASURED}."
    apart = cured_within()
    within = f"{np.ceil(100 * apart) / 100:.2f} dB of feedback's"
    certain = {*words.values()} - {judge.MISSING} == {judge.REPRODUCED}
    real = "Fixation is real" if certain else "Fixation, the paper's problem"
    cure = "Equal shares of all severities cure it"
    if apart >= judge.WITHIN:
        cure = "Equal shares of all severities are not the whole cure"
    head = "Feedback adds no gain over equal shares at our scale"
    if {judge.UNDECIDED, judge.MIXED, judge.MISSING} & {*contests}:
        head = "Feedback shows no gain over equal shares at our scale"
    if judge.REPRODUCED in contests:
        head = "Feedback beats equal shares" if len({*contests}) == 1 else "Feedback adds little to equal shares"
    counts = Counter(contests).most_common()
    each = ", ".join(f"*{word}* in {'all ' * (len(counts) == 1)}{k}" for word, k in counts) + " contests"
    each += f", {len(paper.TASKS)} at full width" * len(wide)
    return "\n\n".join(
        [
            f"**{real}** ({on_sets(words)}): a network trained at one severity falls behind overall.",
            f"**{cure}** ({on_sets(cured)}): margins over a fixated network stay within {within}.",
            f"**{head}** ({each}): one image in {one_in([*found.values(), *wide])} moves.",
        ]
    )


def at_full_width() -> list[judge.Measured]:
    """What is measured on faces at the paper's width, where Equation 3 has a word there, else nothing."""
    m = one_gpu.load() if "faces" in worlds() else judge.Measured()
    return [m] if dose.dose_against_margin(m, k=1).due else []


def cured_within() -> float:
    """By how much (dB) feedback and equal shares differ at most over a fixated network; NaN where none is measured."""
    tables = pd.concat(map(fixation.control, worlds().values()))
    return (tables.on_demand - tables.rigid_joint).abs().max()


def on_sets(words: dict) -> str:
    """`*reproduced*` where all sets agree, else `*reproduced* on scenes`, which alone are measured, and so on."""
    told = {word: [t for t in words if words[t] == word] for word in words.values() if word != judge.MISSING}
    if len(told) == 1 and judge.MISSING not in words.values():
        return f"*{next(iter(told))}*"
    return ", ".join(f"*{word}* on {' and '.join(titles)}" for word, titles in told.items())


def one_in(sets) -> int:
    """Of how many images on-demand learning moves one to another level: half of what all levels are from equal ones."""
    doses = [judge.dose_of(run) for m in sets for run in judge.runs_of(m.runs, PAIR[0])]
    return round(1 / (np.mean(doses) * paper.N_LEVELS / 2))


# The drawing


def place(db: float) -> float:
    return float(np.arcsinh(db / BEND))


def core() -> list[dict]:
    """A row per core claim, and one for Equation 3 itself: title, what the paper says, bound, and per data set the
    paper's margins and the verdict with the marks of its parts."""
    found, rows = worlds(), []
    for start, title in TITLES.items():
        [claim] = [claim for claim in claims.CLAIMS if claim.claim.startswith(start)]
        bound = -table3.NEAR if claim.measure == table3.near_specialist else 0
        verdicts = {name: claim.measure(m) for name, m in found.items()}
        sets = {n: (v, [*v.numbers.values()]) for n, v in verdicts.items() if v.due or n == next(iter(found))}
        papers = {name: printed(claim, name) for name in sets}
        rows.append(
            {"title": title, "claim": claim, "said": claim.paper, "paper": papers, "bound": bound, "sets": sets}
        )
        if title.startswith("Feedback"):
            for m in at_full_width():
                verdict, margins = claim.measure(m), printed(claim, "faces")
                wide = {"title": "at full width?", "again": True, "said": judge.span(margins)}
                wide |= {"paper": {"faces": margins}, "sets": {"faces": (verdict, [*verdict.numbers.values()])}}
                rows.append(rows[-1] | wide)
    for row, before in pairwise(rows[::-1]):
        if row["title"].startswith(BEST) and before["title"].startswith(BEST):  # said once
            row |= {"title": row["title"].removeprefix(BEST), "again": True}
    return rows


def printed(claim: claims.Claim, name: str) -> list[float]:
    """The paper's margins (dB) on photographs of the kind of a data set, where it has some."""
    on = name != "faces"  # else CelebA, its first column
    if claim.measure == table3.near_specialist:  # the paper prints two PSNRs, not a difference
        return [-table3.NEAR / 2]
    if claim.claim.startswith("Equation 3"):
        return [round(claims.paper_gaps(*PAIR, [task])[on], 2) for task in paper.TASKS]
    task = getattr(claim.measure, "keywords", {}).get("task")
    return [claims.paper_margins(task)[on]] if task else []


def forest() -> str:
    """MyST: of each core claim the margin in its favour and the paper's, coloured by the judge's word."""
    rows = core()
    shown = [db for row in rows for _, parts in row["sets"].values() for part in parts for db in part]
    if not shown:
        return f"Every margin is {NOT_MEASURED}."
    shown += [db for row in rows for db in (*sum(row["paper"].values(), []), row["bound"])]
    shown += [-judge.WITHIN, judge.WITHIN]
    low, high = place(min(shown)) - 0.2, place(max(shown)) + 0.2

    def x(db):
        return f"{100 * (place(db) - low) / (high - low):.1f}%"

    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    given = {"rows": rows, "x": x, "within": judge.WITHIN, "light": scorecard.COLOURS, "dark": scorecard.IN_THE_DARK}
    given |= {"ticks": [t for t in TICKS if low <= place(t) <= high], "number": lambda db: f"{db:+g}".replace("-", "−")}
    given["several"] = list(worlds()) if len(worlds()) > 1 else []
    used = {verdict.word for row in rows for verdict, _ in row["sets"].values()}
    used |= {judge.EQUIVALENT} if judge.TIED in used else set()  # explained together
    given["words"] = {word: meaning for word, meaning in MEANINGS.items() if word in used}
    given |= {"even": judge.EQUIVALENT, "tied": judge.TIED if judge.TIED in used else ""}
    html = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(given)
    return f"```{{raw}} html\n{html}\n```"


def numbers() -> str:
    asked = {title: {claim.claim for _, claim in claims.asked_of(name)} for name, title in SETS.items()}
    rows = [
        [row["title"], row["said"]]
        + [spelled(row["sets"], t) if row["claim"].claim in asked[t] else "–" for t in worlds()]
        for row in core()
    ]
    return markdown(["Core claim", "Paper", *(f"Here, {name}" for name in worlds())], rows)


def spelled(sets: dict, title: str) -> str:
    """What is drawn of a data set; a row that leaves scenes out is of faces alone."""
    if title not in sets:
        return "–" if title == "scenes" else NOT_MEASURED
    verdict, _ = sets[title]
    told = [verdict.rests_on] if len(verdict.parts) > judge.FEW else verdict.parts
    margins = "; ".join(f"{label} {verdict.parts[label][0]}".strip() for label in told)
    return f"{margins or verdict.measured}: *{verdict.short}*"


TABLES = {"answer": answer, "forest": forest, "core-claims": numbers}
