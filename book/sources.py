"""The line under what is measured: where its results files are, and the command that makes them."""

import os
import re
import shlex
from functools import cache
from itertools import chain, groupby
from pathlib import Path

from measured import DATASET, FACES, PROFILE

from companion.disk import files
from companion.runs import catalogue
from companion.runs.catalogue import SEEDS_OF_FACES
from odl import PROTOCOL

MARK = re.compile(r"(?m)^(?:# |<!-- )(?:BEGIN|END) SOLUTION.*\n?")  # of nbgrader and Otter


def seeds() -> list[int]:
    """The seeds of on-demand learning that are measured at the scale of the book, 0 where none is."""
    names = " ".join(file.name for file in files.results().glob("reference/bsds500/*/*.json"))
    return sorted({int(seed) for seed in re.findall(r"\bon_demand-seed(\d+)\.json", names)}) or [0]


SCENES, FACES_TOO, GPU_TOO = 1, 2, 3  # how many of the campaigns a chapter shows
CHAPTERS = {  # chapter → the pages whose runs it shows, and of how many campaigns
    "problem": (("fixation",), FACES_TOO),
    "idea": (("allocation",), SCENES),
    "feedback": (("dose",), GPU_TOO),
    "lab": (("dose",), SCENES),
    "contest": (("table1",), GPU_TOO),
    "others": (("table2", "table3", "db11_spectrum"), SCENES),
}
EVERYTHING = "honest", "introduction", "paper_scale", "references", "reproducibility", "results"
CHAPTERS |= dict.fromkeys(EVERYTHING, (("scorecard",), GPU_TOO))
FILES = {  # chapter → results files, and the command that makes them
    "method": ("colour.json", "EVERY=10 python tests/test_damage.py colour"),
    "speed": ("benchmarks/*/[ct]*.json", "make bench"),  # corruptions and training
}


def command(profile: str = PROFILE, dataset: str = DATASET) -> str:
    return f"python -m companion reproduce --profile {profile} --dataset {dataset}"


def of_chapter(chapter: str, scale: str = "") -> str:
    """The line under a chapter, for every campaign that it shows."""
    if chapter in FILES:
        pattern, made_by = FILES[chapter]
        return line([([*files.results().glob(pattern)], made_by)], scale)
    campaigns = [(PROFILE, DATASET, seeds()), (PROFILE, FACES, SEEDS_OF_FACES), ("gpu", FACES, SEEDS_OF_FACES)]
    campaigns = [(profile, dataset, tuple(each)) for profile, dataset, each in campaigns]
    pages, shown = CHAPTERS.get(chapter, ((), 0))
    found = [({*chain(*(files_of(page, *one) for page in pages))}, command(*one[:2])) for one in campaigns[:shown]]
    return line(found, scale)


@cache
def files_of(page: str, profile: str, dataset: str, seeds: tuple) -> list[Path]:
    return catalogue.files_of(page, profile, dataset, [*seeds])


def line(found: list[tuple], scale: str = "") -> str:
    """The line in MyST, empty where nothing is measured; found: results files, and the command that makes them."""
    said = []
    for paths, made_by in ((paths, made_by) for paths, made_by in found if paths):
        names = sorted(path.relative_to(files.results().parents[1]) for path in paths)
        groups = [[*group] for _, group in groupby(names, key=lambda name: name.parts[:4])]
        folders = [f"`{os.path.commonpath([name.parent for name in g])}/` ({count(len(g))})" for g in groups]
        said.append(f"{', '.join(folders)}; `{made_by}`.")
    text = " ".join(filter(None, [scale, *(f"From {one}" for one in said)]))
    return f":::{{container}} odl-source\n{text}\n:::" if said else ""


def count(n: int) -> str:
    return f"{n} file{'s' * (n > 1)}"


def papermill(notebook: str, parameters: dict) -> str:
    given = " ".join(f"-p {name} {word(value)}" for name, value in parameters.items())
    return f"papermill notebooks/{notebook}.ipynb out.ipynb {given}"


def word(value) -> str:
    """A value as a shell takes it; a list as text without quotes of its own."""
    return f'"[{", ".join(map(str, value))}]"' if isinstance(value, list) else shlex.quote(str(value))


def fault_of(path: Path) -> str | None:
    """Why a results file is not one to publish: its protocol, or its commit; None where it is, or is no experiment."""
    content = files.unseal(path) if path.suffix == ".json" else {}
    if not {"experiment", "provenance"} <= content.keys():
        return None
    commit = content["provenance"]["commit"]
    faults = {
        "of another protocol": content.get("protocol") != PROTOCOL,
        "of an unknown commit": commit == "unknown",
        "of code with uncommitted changes": commit.endswith("-dirty"),
    }
    return next((fault for fault, found in faults.items() if found), None)
