"""The tables of the chapters, one for each: what a figure shows, and the words of the small vocabulary."""

import re
from itertools import product

import numpy as np
import yaml
from facts import EQUAL, EQUATION3, RULES_TODAY, STRONG, gained, sets, sets_faces
from measured import DATASET, NOT_MEASURED, ROOT, SETS, load, markdown, worlds

from companion import judge, published
from companion.claims import claims, predictions
from companion.disk.provenance import commit
from companion.judge import COMPOSITE, LEVELS, gaps, plain
from companion.measure import photographs as measured_photographs
from companion.pages import db11_spectrum, fixation, table1
from companion.pages.today import OF_UNET, removed_shares
from companion.runs import catalogue
from companion.words import estimate, from_to, number, qualify
from odl import paper

TITLES = {"scenes": "Scenes", "faces": "Faces", "wide": "Faces, full width"}
WORDS = {  # the judge's → the one that the chapters use
    judge.REPRODUCED: "confirmed", judge.EQUIVALENT: "no difference", judge.TIED: "no difference",
    judge.REVERSED: "opposite", judge.NOT_TESTABLE: "cannot be tested here", judge.MISSING: judge.MISSING,
} | dict.fromkeys((judge.EXCLUDED, judge.MIXED, judge.UNDECIDED), "undecided")  # fmt: skip
AGAINST = {"confirmed": "ahead", "opposite": "behind"}  # of a schedule against equal shares


def cell(margins: list[float]) -> str:
    """Return `+0.31 [+0.12, +0.50]`, in dB."""
    return estimate(margins, "").replace(", ", ",\u00a0") if margins else NOT_MEASURED


def fixated() -> str:
    """Return what a fixated network loses against equal shares over all levels, and gains at its own severity."""
    found = fixated_in({name.capitalize(): (evidence.runs, "") for name, evidence in worlds().items()})
    cases = [(task, f"fixated_{own}") for task, own in product(paper.TASKS, ("easy", "hard"))]
    back = [[number(x, 0) for x in judge.spread(removed_shares(sets_faces(), *case))] for case in cases]
    cells = ["–" if "nan" in mean else f"{mean} [{low}, {high}]" for mean, low, high in back]
    heads = "Faces: given back (%)", "---"
    return "\n".join(f"{row} {cell} |" for row, cell in zip(found.splitlines(), (*heads, *cells), strict=True))


def fixated_today() -> str:
    """Return the same on faces, in the network of 2017 and in the residual U-Net."""
    runs = sets_faces().runs
    return fixated_in({"2017": (runs, ""), "U-Net": (runs, OF_UNET)})


def fixated_in(columns: dict) -> str:
    """Return a row for each fixated network: what it loses and gains in each column, title → (runs, network)."""
    rows = []
    for task, own in product(paper.TASKS, ("easy", "hard")):
        cells = []
        for runs, network in columns.values():
            cells += [cell(gaps(runs, *pair)) for pair in fixation.contests(task, own, EQUAL, network)]
        rows.append([plain(task).capitalize(), f"{own}, {paper.TASKS[task][own]}", *cells])
    heads = product(columns, ("lost over all levels", "gained at home"))
    return markdown(["Task", "Trained on", *map(": ".join, heads)], rows)


def harmed() -> str:
    """Return on which levels the network of equal shares is below the damaged picture, and by how much on level 1."""
    rows = []
    for task, (name, evidence) in product(paper.TASKS, sets().items()):
        runs = judge.runs_of(evidence.runs, EQUAL, [task])
        below = fixation.levels_below(evidence.runs, EQUAL).get(plain(task), ["none"])
        cells = [", ".join(below), number(gained(runs, "1"), 1)] if runs else [NOT_MEASURED] * 2
        kept = number(gained(runs, "1", COMPOSITE), 1) if runs and task in paper.MASKED else "–"
        rows.append([plain(task).capitalize(), TITLES[name], *cells, kept])
    heads = [f"Level 1, {what} (dB)" for what in ("all pixels", "known pixels kept")]
    return markdown(["Task", "Trained on", "Levels below the damaged picture", *heads], rows)


def shares() -> str:
    """Return for each task the last PSNRs that Equation 3 was told, and its shares: on faces, means over seeds."""
    rows = []
    for task in paper.TASKS:
        runs = judge.runs_of(sets_faces().runs, EQUATION3, [task])
        if runs:
            before, last = np.array([run.history[-2:] for run in runs]).T
            scores = np.mean([epoch["psnr"] for epoch in before], axis=0)
            given = np.mean([epoch["allocation"] for epoch in last], axis=0)
            cells = [f"{p:.1f} dB → {s:.1f}" for p, s in zip(scores, given, strict=True)]
            rows.append([plain(task).capitalize(), *cells])
    return markdown(["Task", *(f"Level {i}" for i in range(1, paper.N_LEVELS + 1))], rows)


def scored(task: str) -> list[tuple[str, str]]:
    """Return the two scores of a task that has known pixels, else one: column of the evaluation, title."""
    return [("psnr", "all pixels"), (COMPOSITE, "composite")] if task in paper.MASKED else [("psnr", "all pixels")]


def margins() -> str:
    """Return Equation 3 and four times as much feedback, minus equal shares, by both scores."""
    rows = []
    for task, (name, evidence) in product(paper.TASKS, sets().items()):
        for column, title in scored(task):
            found = [cell(gaps(evidence.runs, task, one, EQUAL, LEVELS, column)) for one in (EQUATION3, STRONG)]
            rows.append([plain(task).capitalize(), TITLES[name], title, *found])
    return markdown(["Task", "Trained on", "Score", "Equation 3 (dB)", "1/PSNR⁴ (dB)"], rows)


def word_of(margins: list[float]) -> str:
    """Return how a schedule stands to equal shares, by the rule of the scorecard without its second score."""
    word = WORDS[str(judge.decide(margins))]
    return AGAINST.get(word, word)


def contest() -> str:
    """Return a tab for each task: every schedule minus equal shares, in the paper and here, by both scores."""
    tabs = []
    for task in paper.TASKS:
        rows = []
        for schedule in (*(s for s in published.SEVEN if s != EQUAL), *catalogue.NEWER):
            for column, title in scored(task):
                found = [gaps(evidence.runs, task, schedule, EQUAL, LEVELS, column) for evidence in sets().values()]
                cells = [f"{cell(g)}, *{word_of(g)}*" if g else "–" for g in found]
                printed = "–"
                if schedule in published.SEVEN and column == "psnr":
                    printed = from_to(claims.paper_gaps(schedule, EQUAL, [task]), number)
                named = (published.SEVEN | published.LATER)[schedule].replace("Cumulative", "Cumul.")
                rows.append([named, title, printed, *cells])
        table = markdown(["Minus equal shares (dB)", "Score", "Paper", *map(TITLES.get, sets())], rows)
        tabs.append(f":::{{tab-item}} {plain(task).capitalize()}\n{table}\n:::")
    return "\n".join(["::::{tab-set}", *tabs, "::::"])


def worst_gaps() -> str:
    """Return, on faces, how far equal shares, feedback and minimax gap are behind a specialist by level and score."""
    rows, evidence = [], sets_faces()
    named = {EQUAL: "Equal shares", EQUATION3: "Equation 3", STRONG: "Four times as strong"}
    named |= {name: published.LATER[name] for name in ("minimax_gap", "minimax_gap_composite")}
    for task in paper.TASKS:
        for (column, title), schedule in product(scored(task), named):
            runs = [run for *_, run in judge.paired(evidence.runs, task, "minimax_gap", EQUAL, schedule)]
            if runs:
                behind = np.mean([table1.gaps_in(evidence, task, run, column) for run in runs], axis=0)
                rows.append([plain(task).capitalize(), title, named[schedule], *(f"{db:.2f}" for db in behind)])
    return markdown(["Task", "Score", "Shares", *(f"Level {i}" for i in range(1, paper.N_LEVELS + 1))], rows)


def denoisers() -> str:
    """Return PSNR over the paper's eleven photographs, a row a system, a column a strength of the noise."""
    curves = db11_spectrum.mean_curves(load())
    named = {"on_demand": "On-demand network, told nothing", "bm3d": "BM3D, told σ", "bm3d25": "BM3D, told 25"}
    named["tnrd"] = "TNRD, 5×5 filters, trained at 25"
    rows = [[title, *(f"{db:.2f}" for db in curves[name])] for name, title in named.items() if len(curves)]
    return markdown(["PSNR (dB)", *(f"σ = {sigma:g}" for sigma in curves.index)], rows)


def photographs() -> str:
    """Return PSNR of whole photographs, a row a kind of damage: damaged, two networks, the best that learns nothing."""
    rows = []
    for row in measured_photographs.table(measured_photographs.ROWS).itertuples():
        scores = [f"{db:.1f}" for db in (row.damaged, row.paper, row.photographs, row.rival_psnr)]
        best = max(map(float, scores))
        cells = [f"**{score}**" if float(score) == best else score for score in scores]
        rows.append([row.damage[0].upper() + row.damage[1:], *cells])
    return markdown(["Damage", "Damaged", "Paper's", "Newer", "Classical"], rows)


def photographs_db11() -> str:
    """Return PSNR of two networks under noise on the paper's eleven photographs, clipped or not, beside BM3D told σ."""
    curves, rows = db11_spectrum.mean_curves(load()), []
    for sigma in sorted({sigma for sigma, _ in measured_photographs.ON_DB11.values()}):
        names = [name for name, (own, _) in measured_photographs.ON_DB11.items() if own == sigma]
        found = measured_photographs.table(names).set_index("damage").reindex(names)
        bm3d = curves.bm3d[sigma] if len(curves) else np.nan
        cells = [*found.photographs, *found.paper, bm3d]
        rows.append([f"σ = {sigma}", *(NOT_MEASURED if np.isnan(db) else f"{db:.2f}" for db in cells)])
    kinds = [f"{network}, {noise}" for network in ("Newer", "Paper's") for noise in ("clipped", "not")]
    return markdown(["PSNR (dB)", *kinds, "BM3D, told σ, clipped"], rows)


def today() -> str:
    """Return, on faces, the residual U-Net against the network of 2017, level 1 of both, and other rules in it."""
    rows, runs = [], sets_faces().runs
    for task in paper.TASKS:
        nets = [judge.runs_of(runs, EQUAL + network, [task]) for network in ("", OF_UNET)]
        for column, title in scored(task):
            first = [number(gained(found, "1", column), 1) if found else NOT_MEASURED for found in nets]
            ahead = cell(gaps(runs, task, EQUAL + OF_UNET, EQUAL, LEVELS, column))
            pairs = [(rule + OF_UNET, EQUAL + OF_UNET) for rule in RULES_TODAY]
            fed = [gaps(runs, task, *pair, LEVELS, column) for pair in pairs]
            said = [f"{cell(margins)}, *{word_of(margins)}*" if margins else NOT_MEASURED for margins in fed]
            rows.append([plain(task).capitalize(), title, *first, ahead, *said])
    heads = ["Level 1, 2017", "Level 1, U-Net", "U-Net − 2017"]
    heads += [f"{rule}, U-Net" for rule in RULES_TODAY.values()]
    return markdown(["Task", "Score", *heads], rows)


def verdicts() -> str:
    """Return the core claims and our own question on Equation 3, in the chapters' words and in the registered ones."""
    rows, asked = [], {name: {claim.claim for _, claim in claims.asked_of(data)} for data, name in SETS.items()}
    for _, claim in claims.asked_of(DATASET):
        if claim.kind == claims.CORE or claim.claim.startswith("Equation 3 at"):
            found = [
                claim.decide(evidence) if claim.claim in asked[name] else None for name, evidence in worlds().items()
            ]
            rows.append([claim.claim, *(f"{WORDS[v.published_word]} ({qualify(v)})" if v else "–" for v in found)])
    return markdown(["Claim", *map(TITLES.get, worlds())], rows)


def predicted() -> str:
    """Return what was predicted of faces before the first contrast there, beside what came."""
    table = predictions.predictions_table(claims.judge_claims(sets_faces())).dropna(subset="hit")
    rows = table.loc[table.part == "", ["claim", "word", "found"]].replace({"word": WORDS, "found": WORDS})
    return markdown(["Claim, on faces", "Predicted", "Found"], rows.to_numpy().tolist())


def cite() -> str:
    """Return BibTeX of this companion, with its commit, and of the paper."""
    known = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    bibliography, code = (ROOT / "book" / "references.bib").read_text(encoding="utf-8"), commit()
    version = known["version"] + (f", commit {code}" if re.fullmatch(r"[0-9a-f]+", code) else "")
    return f"""\
```bibtex
@software{{ondemandcompanion,
  title   = {{{known["title"]}}},
  author  = {{{{{known["authors"][0]["name"]}}}}},
  version = {{{version}}},
  year    = {{{known["date-released"].year}}},
  license = {{{known["license"]}}},
}}

{re.search(r"(?ms)^@inproceedings.gao2017ondemand,.*?^.$", bibliography)[0]}
```"""


CHAPTERS = fixated, harmed, shares, margins, contest, worst_gaps
CHAPTERS += denoisers, today, fixated_today, verdicts, predicted, photographs, photographs_db11
TABLES = {f"table-{make.__name__.replace('_', '-')}": make for make in CHAPTERS} | {"cite": cite}
