"""The first screen: the answer in three sentences with the judge's words, and the core claims in one drawing."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
from jinja2 import Environment
from measured import NOT_MEASURED, PAIR, markdown, worlds

from companion.pages import dose, fixation, scorecard, table1, table3
from companion.verdicts import claims, judge
from companion.verdicts.judge import plain
from odl import paper

TEMPLATE = Path(__file__).with_name("forest.html.j2")
NUMBER = re.compile(r"[+−]\d+\.\d+")
BEND = 0.05  # dB: the axis is linear below, logarithmic above
TICKS = (-1, -0.1, 0, 0.1, 1, 10)
TITLES = {
    table1.best_of_seven: "Best of seven",
    fixation.problem: "Fixation",
    table3.near_specialist: "Near the specialist",
    dose.dose_against_margin: "Fourfold dose helps",
}
BOUNDS = {table3.near_specialist: -table3.NEAR}
PAPERS = {table3.near_specialist: [-table3.NEAR / 2]}  # printed as two PSNRs, not as a difference


# The three sentences


def answer() -> str:
    """Three sentences of at most 25 words, a paragraph each."""
    found = worlds()
    contests = [judge.compare(m, {"": (task, *PAIR)}).word for m in found.values() for task in paper.TASKS]
    if not found or {*contests} == {judge.MISSING}:
        return f"The answer is {NOT_MEASURED}."
    words, cured = ({t: fixation.problem(m, s).word for t, m in found.items()} for s in PAIR)
    apart = max(fixation.control(m).eval("(on_demand - rigid_joint).abs().max()") for m in found.values())
    real, said = "Fixation", "that training at one severity is not enough"
    if {*words.values()} == {judge.REPRODUCED}:
        real, said = "Fixation is real", "trained at one severity, a network falls behind elsewhere; the claim"
    cure = "Mixing the levels cures it" if apart < judge.WITHIN else "Mixing the levels is not the whole cure"
    gains = {judge.REPRODUCED: "Feedback beats equal shares"}
    head = gains.get(*{*contests}) if len({*contests}) == 1 else None
    head = (
        head or "Feedback adds " + ("little to" if judge.REPRODUCED in contests else "no gain over") + " equal shares"
    )
    n, (first, *rest) = len(contests), Counter(contests).most_common()
    counts = ", ".join([f"{first[1]} of {n} contests *{first[0]}*", *(f"{k} *{word}*" for word, k in rest)])
    return "\n\n".join(
        [
            f"**{real}:** {said} is {on_sets(words)}.",
            f"**{cure}:** equal shares without feedback keep these margins within {np.ceil(100 * apart) / 100:.2f} dB, "
            f"{on_sets(cured)}.",
            f"**{head}** ({counts}), because it moves one image in {one_in(found.values())}.",
        ]
    )


def on_sets(words: dict) -> str:
    return ", ".join(f"*{word}* on {title}" for title, word in words.items())


def one_in(found) -> int:
    """Of how many images on-demand learning moves one to another level: half of what all levels are from equal ones."""
    doses = [
        judge.dose_of(run) for m in found for key, run in m.runs.items() if key[1] == PAIR[0] and key[0] in paper.TASKS
    ]
    return round(1 / (np.mean(doses) * paper.N_LEVELS / 2))


# The drawing


def place(db: float) -> float:
    return float(np.arcsinh(db / BEND))


def core() -> list[dict]:
    """A row per core claim: title, paper's margins, bound, and per data set the verdict with the marks of its parts."""
    found, rows = worlds(), []
    for claim in claims.CLAIMS:
        if claim.kind != claims.CORE:
            continue
        judge_of = getattr(claim.measure, "func", claim.measure)
        task = getattr(claim.measure, "keywords", {}).get("task")
        title = TITLES.get(judge_of, claim.claim) + (f": {plain(task)}" if task else "")
        printed = [float(n.replace("−", "-")) for n in NUMBER.findall(claim.paper)] or PAPERS.get(judge_of, [])
        verdicts = {name: claim.measure(m) for name, m in found.items()}
        row = {"title": title, "claim": claim, "bound": BOUNDS.get(judge_of, 0), "paper": printed}
        rows.append(row | {"sets": {name: (v, [*v.numbers.values()]) for name, v in verdicts.items()}})
    return rows


def forest() -> str:
    """MyST: of each core claim the margin in its favour and the paper's, coloured by the judge's word."""
    rows = core()
    shown = [db for row in rows for _, parts in row["sets"].values() for part in parts for db in part]
    if not shown:
        return f"Every margin is {NOT_MEASURED}."
    shown += [db for row in rows for db in (*row["paper"], row["bound"])] + [-judge.WITHIN, judge.WITHIN]
    low, high = place(min(shown)) - 0.2, place(max(shown)) + 0.2

    def x(db):
        return f"{100 * (place(db) - low) / (high - low):.1f}%"

    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    given = {"rows": rows, "x": x, "within": judge.WITHIN, "light": scorecard.COLOURS, "dark": scorecard.IN_THE_DARK}
    given |= {"ticks": [t for t in TICKS if low <= place(t) <= high], "number": lambda db: f"{db:+g}".replace("-", "−")}
    html = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(given)
    return f"```{{raw}} html\n{html}\n```"


def numbers() -> str:
    """The core claims in numbers."""
    rows = [
        [row["title"], row["claim"].paper, *(f"{v.measured}: *{v.short}*" for v, _ in row["sets"].values())]
        for row in core()
    ]
    return markdown(["Core claim", "Paper", *(f"Here, {name}" for name in worlds())], rows)


TABLES = {"answer": answer, "forest": forest, "core-claims": numbers}
