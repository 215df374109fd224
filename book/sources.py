"""The line under a page that is a notebook: where its results files are, and the command that makes them."""

import os
import re
import shlex
from itertools import groupby
from pathlib import Path

from companion.disk import files
from odl import PROTOCOL

MARK = re.compile(r"(?m)^(?:# |<!-- )(?:BEGIN|END) SOLUTION.*\n?")  # of nbgrader and Otter


def seeds() -> list[int]:
    """Return the seeds of on-demand learning that are measured at the scale of the book, 0 where none is."""
    names = " ".join(file.name for file in files.results().glob("reference/bsds500/*/*.json"))
    return sorted({int(seed) for seed in re.findall(r"\bon_demand-seed(\d+)\.json", names)}) or [0]


def line(paths: list[Path], command: str) -> str:
    """Return folders with how many files of each, and the command, in MyST; empty where nothing is measured."""
    names = sorted(path.relative_to(files.results().parents[1]) for path in paths)
    groups = [[*group] for _, group in groupby(names, key=lambda name: name.parts[:4])]
    folders = [f"`{os.path.commonpath([n.parent for n in g])}/` ({len(g)} file{'s' * (len(g) > 1)})" for g in groups]
    return f":::{{container}} odl-source\nFrom {', '.join(folders)}; `{command}`.\n:::" if folders else ""


def word(value) -> str:
    """Return a value as a shell takes it; a list as text without quotes of its own."""
    return f'"[{", ".join(map(str, value))}]"' if isinstance(value, list) else shlex.quote(str(value))


def fault_of(path: Path) -> str | None:
    """Return what bars a results file from publication: its protocol or commit; None if nothing, or no experiment."""
    content = files.unseal(path) if path.suffix == ".json" else {}
    if not {"experiment", "provenance"} <= content.keys():
        return None
    commit = content["provenance"]["commit"]
    if content.get("protocol") != PROTOCOL:
        return "of another protocol"
    if commit == "unknown":
        return "of an unknown commit"
    return "of code with uncommitted changes" if commit.endswith("-dirty") else None
