"""Every table and figure of the paper with results: its page, the paper's numbers and ours."""

import pandas as pd
import sources
from measured import DATASET, NOT_MEASURED, PAIR, PROFILE, ROOT, SEEDS, SETS, markdown, on_disk, written
from papermill import inspect_notebook

from companion import published
from companion.claims import claims
from companion.judge import plain
from companion.measure import denoising
from companion.runs import catalogue
from companion.words import signed, span
from odl import paper


def decibels(*values: float) -> str:
    numbers = ["–" if pd.isna(value) else f"{value:.2f}" for value in values]
    return "\u00a0/\u00a0".join(numbers)  # not broken over lines


# Rows: place in the paper, notebook, parameters, the paper's number, ours


def here(notebook: str, key: str, names, *columns: str, task="inpaint", dataset=DATASET, only="") -> str:
    """Return the means of some columns, for each of the names in column `key` of a notebook's table."""
    rows = written(notebook, task, dataset)
    if rows is None:
        return NOT_MEASURED
    rows = rows.query(only) if only else rows
    return decibels(*rows.groupby(key)[[*columns]].mean().reindex(names).to_numpy().ravel())


def fixation_row(task: str) -> tuple:
    figure = "Supp. D" if task == "denoise" else "Fig. 4"
    place = f"{figure}, {plain(task)}: on-demand / fixated on easy / fixated on hard / not restored"
    shown = ["on_demand", *published.FIXATED, "not_restored"]
    means = here("fixation", "schedule", shown, "mean", task=task, only="scored == 'all pixels'")
    return place, "fixation", {"task": task}, "curves only", means


def table1_row(task: str) -> tuple:
    place = f"{'Supp. E' if task == 'denoise' else 'Table 1'}, {plain(task)}: on-demand / rigid joint / not restored"
    celeba, sun397 = (decibels(*(published.TABLE1[task][s][k][1] for s in PAIR)) for k in (0, 1))
    each = {name: here("table1", "schedule", [*PAIR, "not_restored"], "psnr", task=task, dataset=name) for name in SETS}
    means = "<br>".join(f"{SETS[name]} {values}" for name, values in each.items() if values != NOT_MEASURED)
    printed = f"CelebA {celeba}<br>SUN397 {sun397}"
    return place, "table1", {"task": task}, printed, means


def allocation_row() -> tuple:
    runs = on_disk(catalogue.runs("allocation", "inpaint", DATASET, PROFILE, SEEDS[:1]))  # as its command has it
    shares = [share for run in runs for share in run.history[-1]["allocation"]]  # of the last epoch
    last = f"{min(shares):.1f} to {max(shares):.1f} % a level" if shares else NOT_MEASURED
    return "Sec. 6.6: allocation at the end, 20 % each at first", "allocation", {}, "more to harder levels", last


def dose_row() -> tuple:
    rows = written("dose", "all")
    every_k = {} if rows is None else rows[rows.task == "inpaint"].set_index("k").margin
    margins = "; ".join(signed(every_k[k]) if k in every_k else NOT_MEASURED for k in (1, 4))
    printed = span(claims.paper_gaps(*PAIR, ["inpaint"]))
    place = "Dose, inpainting: margin over equal shares of Equation 3; of 1/P⁴"
    return place, "dose", {"task": "inpaint"}, printed, margins


def table3_row() -> tuple:
    long, systems = denoising.our_systems(PROFILE)["on_demand"], ["on_demand", "fixated", "bm3d"]
    steps = f"both after {long.epochs * long.iterations:,} steps"
    place = f"Table 3, mean of eleven: on-demand / fixated at 25 ({steps}) / BM3D"
    printed = decibels(*pd.DataFrame(published.TABLE3).mean(axis=1)[systems])
    only = "sigma == 25 and not clipped"
    means = here("table3", "system", systems, "psnr", task="denoise", dataset="db11", only=only)
    return place, "table3", {"photographs": "db11"}, printed, means


def result_rows() -> list[tuple]:
    papers_holes = decibels(*(psnr for _, psnr in published.TABLE2["on_demand"]))
    holes = here("table2", "method", ["on_demand"], "central_psnr", "arbitrary_psnr")
    halves = here("extra_data", "run", ["on-demand, half", "rigid joint, all"], "psnr")
    db11 = {"photographs": "db11"}
    # fmt: off
    return [
        *map(fixation_row, paper.TASKS), *map(table1_row, paper.TASKS), allocation_row(), dose_row(),
        ("Fig. 2 and 5, Supp. C and G: restored images", "qualitative", {}, "pictures", "pictures"),
        ("Sec. 6.6, inpainting: on-demand on half / rigid joint on all images",
         "extra_data", {"task": "inpaint"}, "first ahead", halves),
        ("Table 2, on-demand inside the hole: centre / anywhere", "table2", {}, papers_holes, holes),
        table3_row(),
        ("Fig. 6: PSNR against σ", "db11_spectrum", db11, "curves only", "curves"),
        ("Supp. H: Lena and all photographs", "gallery", db11, "pictures", "pictures"),
        ("Supp. F: scars and objects removed", "applications", {}, "pictures", "pictures"),
        ("every claim, one by one", "scorecard", {}, "–", "verdicts"),
    ]
    # fmt: on


def results_table() -> str:
    """Return a row for each table and figure of the paper, with a link to its page and the parameters of the row."""
    rows = []
    for place, notebook, given, printed, ours in result_rows():
        page = f"{notebook}-{given['task']}" if notebook == "table1" else notebook
        declared = inspect_notebook(ROOT / "notebooks" / f"{notebook}.ipynb")
        values = (given | {"seeds": sources.seeds()}).items()
        own = [f"<br>`-p {name} {sources.word(value)}`" for name, value in values if name in declared]
        rows.append([place, f"{{doc}}`{notebook} </notebooks/{page}>`{''.join(own)}", printed, ours])
    return markdown(["In the paper", "Notebook and parameters", "Paper", "Here"], rows)
