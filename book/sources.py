"""The line under what is measured: its results files, to download, and the command that makes them."""

import re
import shlex
from itertools import groupby
from pathlib import Path, PurePosixPath

from odl import PROTOCOL
from odl.machine import files

MARK = re.compile(r"(?m)^(?:# |<!-- )(?:BEGIN|END) SOLUTION.*\n?")  # of nbgrader and Otter


def seeds() -> list[int]:
    """The seeds of on-demand learning that are measured at the scale of the book, 0 where none is."""
    names = " ".join(file.name for file in files.results().glob("reference/bsds500/*/*.json"))
    return sorted({int(seed) for seed in re.findall(r"\bon_demand-seed(\d+)\.json", names)}) or [0]


def line(used: dict[str, list], scale: str = "") -> str:
    """A dropdown in MyST, empty without files; used: command → the results files that it makes, in data/results.

    Its title is the page's one line of provenance, with the sentence on the scale where a page has one.
    """
    if not (found := {file for made in used.values() for file in made}):
        return ""
    edited = sum(fault_of(files.results() / file) is not None for file in found)
    count = f"{len(found)} results file{'s' * (len(found) > 1)}" + f", {edited} of uncommitted code" * bool(edited)
    lines = [f":::{{dropdown}} {scale} From {count}.", ":class-container: odl-source"]
    for command, made in used.items():
        lines += ["", f"`{command}`:", ""] if made else []
        for folder, group in groupby(sorted(map(PurePosixPath, made)), key=lambda file: file.parent):
            links = [f"{{download}}`{file.name} </data/results/{file}>`" for file in group]
            lines.append(f"- `data/results/{folder}/`: {', '.join(links)}")
    return "\n".join([*lines, ":::"])


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
