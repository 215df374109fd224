"""What is measured at the scale of the book, read once, and how its numbers are written."""

from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd

from companion import judge
from companion.claims import claims
from companion.pages import dose
from companion.runs import catalogue
from companion.show import tables
from companion.training import results

ROOT = Path(__file__).resolve().parents[1]
DATASET, PROFILE = "bsds500", "reference"  # what the book shows
FACES = f"{catalogue.FACES}-native"
SETS = {DATASET: "scenes", FACES: "faces"}  # shown beside each other where they are measured
SEEDS = list(range(20))
PAIR = "on_demand", "rigid_joint"
NOT_MEASURED = judge.MISSING


@cache
def load(name: str = DATASET) -> judge.Evidence:
    """Return what is measured on a data set, read once."""
    return claims.load_evidence(PROFILE, name, SEEDS if name == DATASET else catalogue.SEEDS_OF_FACES)


@cache
def wide() -> judge.Evidence:
    """Return what a GPU has measured on faces, at the paper's width and batch."""
    scale = "gpu", FACES, catalogue.SEEDS_OF_FACES
    schedules = (*PAIR, "cumulative_curriculum", "group_dro", "inverse_mse")
    return dose.load_runs(catalogue.grid(*scale, schedules) + catalogue.doses(*scale, [4]))


@cache
def worlds() -> dict[str, judge.Evidence]:
    """Return `scenes`, `faces` → what is measured on that data set, faces when a block of their campaign is whole."""
    return {title: load(name) for name, title in SETS.items() if name == DATASET or load(name).runs}


def on_disk(experiments) -> list[results.Result]:
    return [run for run in map(results.load_result, experiments) if run]


def written(notebook: str, task: str, dataset: str = DATASET) -> pd.DataFrame | None:
    """Return the table that a notebook has written, None where it has not."""
    path = tables.table_path(notebook, PROFILE, dataset, task)
    return pd.read_csv(path) if path.exists() else None


# How things are written


def markdown(header: list[str], rows: list[list]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def duration(amount: float) -> str:
    """Return seconds as a person says them."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if amount >= 2 * length:
            return f"{amount / length:.2g} {unit}" if amount < 10 * length else f"{amount / length:,.0f} {unit}"
    return f"{amount:.0f} s"


def listed(values) -> str:
    """Return `a, b and c`, each once, the most frequent first."""
    *most, last = [str(value) for value, _ in Counter(values).most_common()]
    return f"{', '.join(most)} and {last}" if most else last
