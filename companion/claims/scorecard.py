"""The scorecard: every claim, what the paper has, what is measured here, and a verdict."""

import re
from functools import partial

import pandas as pd
from jinja2 import Environment

from companion import judge, published
from companion.claims.claims import BUILT_IN, KINDS
from companion.show import sentences, tables
from companion.show.figures import mark_equivalence, subplots
from odl import paper
from odl.experiment import slug


def count_verdicts(table: pd.DataFrame) -> str:
    """Return how many claims got which verdict, the core ones first; those by construction are not counted."""
    counts = pd.crosstab(table.kind, table.verdict).reindex(index=KINDS, columns=judge.VERDICTS, fill_value=0)
    words = {kind: ", ".join(f"{n} {word}" for word, n in counts.loc[kind].items() if n) for kind in KINDS[:-1]}
    titles = dict(zip(KINDS, ("core claims", "secondary claims", "questions of our own"), strict=False))
    return " ".join(f"{counts.loc[kind].sum()} {titles[kind]}: {text}." for kind, text in words.items())


def summarize(table: pd.DataFrame, runs: dict, dataset: str) -> str:
    """Return the count of verdicts, and what limits the scale (Markdown)."""
    said = "No schedule is measured with this profile and data set; `table1.ipynb` and `fixation.ipynb` train them."
    trained = [run for key, run in runs.items() if key[0] in paper.TASKS and key[1] in published.SEVEN]
    if trained:
        told = f"{sentences.scale(trained)[:-1]}, unless told otherwise."
        said = f"{told} What is claimed of CelebA and SUN397 is tried on {slug(dataset)} here."
    return f"{count_verdicts(table)}\n\n{said}"


ON_WHITE = ("#00875A", "#C8501E", "#0072B2", "#0072B2", "#8A4FA3", "#8A6D00", "#767676", "#767676", "#767676")
ON_BLACK = ("#3DBE8B", "#F08A5D", "#5FB0E5", "#5FB0E5", "#C79BDB", "#D6B94C", "#A6A6A6", "#A6A6A6", "#A6A6A6")
COLOURS, DARK_COLOURS = (dict(zip(judge.VERDICTS, colours, strict=True)) for colours in (ON_WHITE, ON_BLACK))
SYMBOLS = dict(zip(judge.VERDICTS, "✓✗==≉±○∅–", strict=True))
BEFORE_UNITS = r"(?<=\d) (?=dB|of \d|seeds?\b|images?\b)| (?=[–=])|(?<==) "  # spaces at which no line breaks
COLUMN_WIDTHS = {"no.": 7, "claim and test": 34, "paper": 15, "measured here": 26, "verdict": 18}  # %


# The style of a cell is its own, because the book's for tables of numbers is stronger.
TABLE_TEMPLATE = """
{%- set cell = "text-align:left; vertical-align:top; padding:0.3rem 0.4rem; white-space:normal; "
               "overflow-wrap:break-word" -%}
<table class="odl-table odl-scorecard"
       style="width:100%; min-width:40rem; table-layout:fixed; font-size:0.85rem">
<colgroup>{% for width in widths.values() %}<col style="width:{{ width }}%">{% endfor %}</colgroup>
<thead><tr>{% for name in widths %}<th style="{{ cell }}">{{ name }}</th>{% endfor %}</tr></thead>
{%- for kind, rows in table.groupby("kind", sort=False) %}
<tbody>
<tr class="odl-section"><th colspan="{{ widths|length }}" style="text-align:left; padding-top:1rem"><b>
  {{- kind }}{{ ", not counted" if kind == not_counted }}</b></th></tr>
{%- for row in rows.itertuples() %}
<tr>
<td style="{{ cell }}">{{ row.number }}</td>
<td style="{{ cell }}">{{ row.claim|keep }}<br><span style="font-size:0.88em; opacity:0.7">
  {{- row.place|keep }}. {{ row.test[:1].upper() }}{{ row.test[1:]|keep }}.</span></td>
<td style="{{ cell }}" data-column="Paper">{{ row.paper|keep }}</td>
<td style="{{ cell }}" data-column="Measured here">{{ row.measured|keep }}
{%- if row.parts %}<details><summary>Each part</summary>
  {%- for part in row.parts.split("; ") %}<div style="margin-top:0.3rem">{{ part|keep }}</div>{% endfor %}
</details>{% endif %}</td>
<td style="{{ cell }}" data-column="Verdict">
  <b style="color:light-dark({{ light[row.verdict] }}, {{ dark[row.verdict] }})">
  {{- symbols[row.verdict] }}&nbsp;{{ row.verdict }}</b>
  {%- if row.told != row.verdict %}<br><span style="font-size:0.88em; opacity:0.7">
  {{- row.told[row.verdict|length + 2:-1] }}</span>{% endif %}
  {%- if row.before and row.before != row.verdict %}<br><span style="font-size:0.88em; opacity:0.7">
  {{- "by rule 2: " }}{{ row.before }}</span>{% endif %}</td>
</tr>
{%- endfor %}
</tbody>
{%- endfor %}
</table>"""


def show_claims(table: pd.DataFrame):
    """Show the claims, core ones first; in small print the place in the paper and the test."""
    from IPython.display import HTML

    page = Environment(autoescape=True)
    page.filters["keep"] = partial(re.sub, BEFORE_UNITS, "\N{NO-BREAK SPACE}")
    given = {"widths": COLUMN_WIDTHS, "not_counted": BUILT_IN, "symbols": SYMBOLS}
    given |= {"light": COLOURS, "dark": DARK_COLOURS}
    return HTML(page.from_string(TABLE_TEMPLATE).render(given, table=table))


def plot_rule(examples: dict):
    """Draw margins (dB, one per seed) with their 95 % intervals and the word that each set gets; name → margins."""
    figure, axis = subplots(figsize=(7, 0.5 + 0.35 * len(examples)), layout="constrained")
    mark_equivalence(axis)
    wide = max(1, 1.05 * max(abs(m) for margins in examples.values() for m in margins))
    for row, margins in enumerate(examples.values()):
        word = judge.decide_claim({"": margins}).word
        if len(margins) > 1:
            axis.plot(judge.interval(margins), [row, row], color=COLOURS[word], linewidth=1.5)
        axis.plot(margins, [row] * len(margins), "o", color=COLOURS[word], markersize=4)
        axis.text(1.05 * wide, row, f"{SYMBOLS[word]} {word}", va="center", color=COLOURS[word], fontsize=9)
    axis.set(xlim=(-wide, wide), xlabel="margin in favour of a claim (dB), a point per seed")
    axis.set_ylim(len(examples) - 0.4, -0.6)
    axis.set_yticks(range(len(examples)), examples)
    axis.grid(axis="y", visible=False)
    return figure


def show_simulation(frame: pd.DataFrame):
    """Show `judge.simulate` in per cent."""
    names = {"seeds": "seeds", "spread": "spread (dB)", "false": "false at 0 dB", "even": "equivalent at 0 dB"}
    names |= {"excluded": "0.19 dB excluded at 0 dB", "even_0.1": "equivalent at 0.1 dB"}
    names |= {"power_0.1": "reproduced at 0.1 dB", "power_0.2": "at 0.2 dB"}
    titles = {(1, 0): "one margin", (6, 0): "best of seven, six close", (6, 2): "best of seven, one close"}
    shown = frame.assign(claim=[titles[case] for case in zip(frame.parts, frame.apart, strict=True)])
    shown = shown[["claim", *names]].rename(columns=names)
    return tables.show_table(shown, dict.fromkeys(list(names.values())[2:], "{:.1%}"))
