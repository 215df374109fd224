"""Inject every fault that a promise is about, count what is lost silently, and write data/results/faults.json.

make faults                              all rows; what was measured of the same code is not measured again
python -m tests.faults --only kills      one row, or several; `comparison` is eight faults for other ways to train
python -m tests.faults --again           also what was measured already
python -m tests.faults --quick           few faults, into runs/faults.json: whether it works
"""

import argparse
import hashlib
import platform
import sys
from importlib import import_module
from pathlib import Path

import torch

from bench.measure import processor, rounded, version_of
from odl.__main__ import Parser
from odl.machine import files
from odl.machine.provenance import commit
from odl.parameters import ParameterError, choice
from tests.faults import campaign
from tests.faults.campaign import MODULES, PRELOADED, PROCESSES, ROWS

for module in MODULES:
    import_module(module)
COMPARISON = "comparison"
ALL = [*ROWS, COMPARISON]
BROKEN = 20  # injections with a promise broken
EACH = 5  # injections of each fault for each way to train
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "numpy", "pillow", "pooch", "safetensors", "deepinv")


def main(arguments=None) -> int:
    """Exit status: 0, 1 when something was lost silently or a broken promise went unnoticed, 2, 130 for Ctrl-C."""
    given = parser().parse_args(arguments)
    path = (files.runs() if given.quick else files.results()) / "faults.json"
    torch.set_num_threads(1)
    try:
        for name in given.only:
            choice("only", name, ALL)
        if COMPARISON in given.only:
            PROCESSES.set_forkserver_preload([*PRELOADED, "tests.faults.others"])
        failed = [name for name in given.only if not done(name, path, given.quick, given.again)]
    except ParameterError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nfaults: stopped; the rows listed above are written, the same command goes on", file=sys.stderr)
        return 130
    if failed:
        print(f"faults: promises are not kept: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def parser() -> argparse.ArgumentParser:
    first, rest = __doc__.split("\n\n")
    look = {"epilog": rest, "formatter_class": argparse.RawDescriptionHelpFormatter}
    top = Parser("python -m tests.faults", description=first, **look)
    top.add_argument("--only", nargs="+", default=ALL, metavar="ROW", help=f"some of {', '.join(ALL)} (default: all)")
    top.add_argument("--again", action="store_true", help="measure also what is measured already")
    top.add_argument("--quick", action="store_true", help="few faults: whether the campaign works")
    return top


def done(name: str, path: Path, quick: bool, again: bool) -> bool:
    """Measure a row unless it is there, print a line, write the file. Returns whether the promise is kept."""
    rows = files.unseal(path)["rows"] if path.exists() else {}
    if again or rows.get(name, {}).get("code_sha256") != code():
        measured = compared(quick) if name == COMPARISON else row_of(name, quick)
        rows[name] = rounded(measured | {"code_sha256": code(), "provenance": provenance()})
        in_order = {key: rows[key] for key in ALL if key in rows}
        files.write_atomically(path, files.seal({"campaign": "faults", "all": ALL, "rows": in_order}))
    found = rows[name]
    if name == COMPARISON:
        for fault in found["faults"]:  # recovered / loud / silent
            counts = (f"{way} {'/'.join(map(str, fault[way].values()))}" for way in found["ways"])
            print(f"{fault['fault']:22}", ", ".join(counts), flush=True)
        return all(fault["odl"]["silent"] == 0 for fault in found["faults"])
    broken = found["broken"]
    print(
        f"{name:12} {found['recovered']:6,} of {found['injected']:6,} recovered, {found['loud']} loud, "
        f"{found['silent']} silent, worst {found['worst_seconds']:.2f} s; with the promise broken: "
        f"{broken['silent']} of {broken['injected']} silent; {found['seconds'] + broken['seconds']:.0f} s",
        flush=True,
    )
    return found["injected"] == found["recovered"] and broken["silent"] > 0


def compared(quick: bool) -> dict:
    """Eight faults for deepinv's Trainer, a torch.save loop and odl."""
    from . import others

    each = 1 if quick else EACH
    return {"each": each, "ways": list(others.WAYS), "faults": others.compare(each)}


def row_of(name: str, quick: bool) -> dict:
    """What a row measured, with the promise kept and broken."""
    row = ROWS[name]
    n = few = row.short if quick else row.injections
    if BROKEN < n < 400:  # where each takes processes, a few are enough to see the promise break
        few = BROKEN
    words = {"promise": row.promise, "fault": row.fault, "mutation": row.mutation}
    return words | campaign.measure(name, n) | {"broken": campaign.measure(name, few, row.edits)}


def provenance() -> dict:
    """What the rows are measured with; no date and no host."""
    versions = {"python": platform.python_version()} | {name: version_of(name) for name in PACKAGES}
    where = {"processor": processor(), "system": platform.system()}
    return {"commit": commit(ROOT / "tests")} | where | {"versions": versions}


def code() -> str:
    """SHA-256 of odl and of the campaign."""
    files = [path for folder in ("odl", "tests/faults") for path in sorted((ROOT / folder).rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
