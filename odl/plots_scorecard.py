"""The scorecard as a table for the page and as a figure: verdicts by colour and by symbol."""

import re
from html import escape

import matplotlib.pyplot as plt
import pandas as pd

from odl.judge import VERDICTS, WITHIN, interval, judge
from odl.plots import show_table
from odl.scorecard import BUILT_IN, KINDS

COLOURS = dict(zip(VERDICTS, ("#00875A", "#C8501E", "#0072B2", "#767676", "#767676"), strict=True))  # on white
IN_THE_DARK = dict(zip(VERDICTS, ("#3DBE8B", "#F08A5D", "#5FB0E5", "#A6A6A6", "#A6A6A6"), strict=True))
SYMBOLS = dict(zip(VERDICTS, "✓✗≈○–", strict=True))
WIDTHS = {"no.": 7, "claim and test": 34, "paper": 15, "measured here": 26, "verdict": 18}  # per cent of the page


def show(table: pd.DataFrame):
    """The claims, core ones first; in small print the place in the paper and the test."""
    from IPython.display import HTML

    columns = "".join(f'<col style="width:{width}%">' for width in WIDTHS.values())
    head = "".join(cell(escape(name), "th") for name in WIDTHS)
    bodies = [body(kind, table[table.kind == kind]) for kind in KINDS]
    return HTML(
        '<table class="odl-table odl-sortable" data-choices="verdict,kind" '
        'style="width:100%; min-width:40rem; table-layout:fixed; font-size:0.85rem">'
        f"<colgroup>{columns}</colgroup><thead><tr>{head}</tr></thead>{''.join(bodies)}</table>"
    )


def body(kind: str, rows: pd.DataFrame) -> str:
    name = f"{kind}, not counted" if kind == BUILT_IN else kind
    title = f'<th colspan="{len(WIDTHS)}" style="text-align:left; padding-top:1rem"><b>{name}</b></th>'
    return f"<tbody><tr class='odl-section'>{title}</tr>{''.join(line(row) for row in rows.itertuples())}</tbody>"


def line(row) -> str:
    """One claim."""
    colour = f"light-dark({COLOURS[row.verdict]}, {IN_THE_DARK[row.verdict]})"
    verdict = f'<b style="color:{colour}">{SYMBOLS[row.verdict]}&nbsp;{row.verdict}</b>'
    parts = [
        str(row.number),
        keep(row.claim) + small(f"{row.place}. {row.test[:1].upper()}{row.test[1:]}."),
        keep(row.paper),
        keep(row.measured),
        verdict,
    ]
    facts = f'data-verdict="{row.verdict}" data-kind="{row.kind}"'
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
    """How many claims of each kind got which verdict."""
    kinds = KINDS[:2]
    numbers = pd.crosstab(table.kind, table.verdict).reindex(index=kinds, columns=VERDICTS, fill_value=0)
    figure, axis = plt.subplots(figsize=(7, 1.7), layout="constrained")
    left = numbers.iloc[:, 0] * 0
    for verdict in VERDICTS:
        look = {"color": COLOURS[verdict], "edgecolor": "white", "label": f"{SYMBOLS[verdict]} {verdict}"}
        bars = axis.barh(kinds, numbers[verdict], left=left, **look)
        labels = [f"{SYMBOLS[verdict]} {n}" if n else "" for n in numbers[verdict]]
        axis.bar_label(bars, labels, label_type="center", color="white", fontsize=9)
        left = left + numbers[verdict]
    figure.legend(loc="outside lower center", ncols=len(VERDICTS), fontsize=9)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set(xlabel="claims")
    return figure


EXAMPLES = {  # margins in dB in favour of a claim, one per seed: no measured numbers
    "three seeds agree": [0.25, 0.35, 0.29],
    "too much spread": [0.05, 0.55, 0.2],
    "no difference": [0.01, -0.02, 0.03],
    "small and sure": [0.05, 0.06, 0.04],
    "against": [-0.5, -0.4, -0.42],
    "a lone seed": [0.6],
}


def rule():
    """Made-up margins with their 95 % intervals, and the verdict that each set gets."""
    figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
    axis.axvspan(-WITHIN, WITHIN, color="0.88", zorder=0, linewidth=0)
    for row, margins in enumerate(EXAMPLES.values()):
        word = judge({"": margins}).word
        if len(margins) > 1:
            axis.plot(interval(margins), [row, row], color=COLOURS[word], linewidth=1.5)
        axis.plot(margins, [row] * len(margins), "o", color=COLOURS[word], markersize=4)
        axis.text(1.05, row, f"{SYMBOLS[word]} {word}", va="center", color=COLOURS[word], fontsize=9)
    axis.axvline(0, color="0.4", linewidth=1)
    axis.set(xlim=(-1, 1), xlabel="margin in favour of the claim (dB), a point per seed", yticks=range(len(EXAMPLES)))
    axis.set_yticklabels(EXAMPLES)
    axis.set_ylim(len(EXAMPLES) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    return figure


def simulation(frame: pd.DataFrame):
    """`judge.simulate` in per cent."""
    names = {"parts": "claim", "seeds": "seeds", "spread": "spread (dB)", "false": "false at 0 dB"}
    names |= {"even": "equivalent at 0 dB", "power_0.1": "reproduced at 0.1 dB", "power_0.2": "at 0.2 dB"}
    names |= {"former": "former rule, false at 0 dB"}
    shown = frame.assign(parts=frame.parts.map({1: "one margin"}).fillna("best of seven"))
    return show_table(shown.rename(columns=names), dict.fromkeys(list(names.values())[3:], "{:.1%}"))
