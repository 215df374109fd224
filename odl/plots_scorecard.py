"""The scorecard as a table for the page and as a figure: verdicts by colour and by symbol."""

import re
from html import escape

import matplotlib.pyplot as plt
import pandas as pd

from odl.judge import ALONE, FAILED, LEAST, REPRODUCED, UNTESTED, VERDICTS, decide
from odl.scorecard import SECTIONS

COLOURS = {REPRODUCED: "#00875A", FAILED: "#C8501E", UNTESTED: "#767676"}  # on white
IN_THE_DARK = {REPRODUCED: "#3DBE8B", FAILED: "#F08A5D", UNTESTED: "#A6A6A6"}
SYMBOLS = {REPRODUCED: "✓", FAILED: "✗", UNTESTED: "○"}
WIDTHS = {"no.": 7, "claim and test": 34, "paper": 15, "measured here": 26, "verdict": 18}  # per cent of the page


def show(table: pd.DataFrame):
    """The claims grouped by section; in small print the place in the paper and the test, and the scale."""
    from IPython.display import HTML

    columns = "".join(f'<col style="width:{width}%">' for width in WIDTHS.values())
    head = "".join(cell(escape(name), "th") for name in WIDTHS)
    bodies = [body(section, table[table.section == section]) for section in SECTIONS]
    return HTML(
        '<table class="odl-table odl-sortable" data-choices="verdict,section" '
        'style="width:100%; min-width:40rem; table-layout:fixed; font-size:0.85rem">'
        f"<colgroup>{columns}</colgroup><thead><tr>{head}</tr></thead>{''.join(bodies)}</table>"
    )


def body(section: str, rows: pd.DataFrame) -> str:
    title = f'<th colspan="{len(WIDTHS)}" style="text-align:left; padding-top:1rem"><b>{escape(section)}</b></th>'
    return f"<tbody><tr class='odl-section'>{title}</tr>{''.join(line(row) for row in rows.itertuples())}</tbody>"


def line(row) -> str:
    """One claim."""
    colour = f"light-dark({COLOURS[row.verdict]}, {IN_THE_DARK[row.verdict]})"
    verdict = f'<b style="color:{colour}">{SYMBOLS[row.verdict]}&nbsp;{row.verdict}</b>'
    parts = [
        str(row.number),
        keep(row.claim) + small(f"{row.place}. {row.test[:1].upper()}{row.test[1:]}."),
        keep(row.paper),
        keep(row.measured) + (small(row.scale) if row.scale != "–" else ""),
        verdict,
    ]
    facts = f'data-verdict="{row.verdict}" data-section="{escape(row.section)}"'
    return f"<tr {facts}>{''.join(map(cell, parts))}</tr>"


def cell(content: str, tag: str = "td") -> str:
    style = "text-align:left; vertical-align:top; padding:0.3rem 0.4rem; white-space:normal; overflow-wrap:break-word"
    return f'<{tag} style="{style}">{content}</{tag}>'


def small(text: str) -> str:
    return f'<br><span style="font-size:0.88em; opacity:0.7">{keep(text)}</span>'


def keep(text: str) -> str:
    """HTML in which a number stays with its unit on one line."""
    return re.sub(r"(?<=\d) (?=dB|of \d|seeds?\b|images?\b)| (?=[–=])|(?<==) ", "&nbsp;", escape(text))


def counts(table: pd.DataFrame):
    """How many claims of each section got which verdict."""
    numbers = pd.crosstab(table.section, table.verdict).reindex(index=SECTIONS, columns=VERDICTS, fill_value=0)
    figure, axis = plt.subplots(figsize=(7, 2.4), layout="constrained")
    left = numbers.iloc[:, 0] * 0
    for verdict in VERDICTS:
        bars = axis.barh(
            SECTIONS, numbers[verdict], left=left, color=COLOURS[verdict], edgecolor="white", label=verdict
        )
        labels = [f"{SYMBOLS[verdict]} {n}" if n else "" for n in numbers[verdict]]
        axis.bar_label(bars, labels, label_type="center", color="white", fontsize=9)
        left = left + numbers[verdict]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[verdict]) for verdict in VERDICTS]
    names = [f"{SYMBOLS[verdict]} {verdict}" for verdict in VERDICTS]
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=9)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set(xlabel="claims")
    return figure


EXAMPLES = {  # margins in dB in favour of a claim, one per seed: no measured numbers
    "two seeds agree": [0.25, 0.35],
    "two seeds, too close": [0.05, 0.3],
    "two seeds disagree": [-0.3, 0.4],
    "a lone seed, close": [0.6],
    "a lone seed, far": [1.5],
    "two seeds against": [-0.5, -0.4],
}


def rule():
    """Made-up margins, and the verdict that each gets."""
    figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
    axis.axvspan(-ALONE, ALONE, color="0.94", zorder=0, linewidth=0)
    axis.axvspan(-LEAST, LEAST, color="0.82", zorder=0, linewidth=0)
    for row, margins in enumerate(EXAMPLES.values()):
        verdict = decide(margins)
        axis.plot(margins, [row] * len(margins), "o", color=COLOURS[verdict])
        axis.text(1.85, row, f"{SYMBOLS[verdict]} {verdict}", va="center", color=COLOURS[verdict], fontsize=9)
    axis.axvline(0, color="0.4", linewidth=1)
    axis.set(
        xlim=(-1.8, 1.8), xlabel="margin in favour of the claim (dB), a point per seed", yticks=range(len(EXAMPLES))
    )
    axis.set_yticklabels(EXAMPLES)
    axis.set_ylim(len(EXAMPLES) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    return figure
