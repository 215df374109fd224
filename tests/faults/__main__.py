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
from pathlib import Path

import torch

from bench.measure import processor, rounded, version_of
from odl import paths
from odl.__main__ import Parser
from odl.experiment import ParameterError, choice
from odl.results import commit

from . import campaign, files, parameters, sources, training

ROWS = training.ROWS | files.ROWS | sources.ROWS | parameters.ROWS
COMPARISON = "comparison"
EACH = 5  # injections of each fault for each way to train
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "numpy", "pillow", "pooch", "safetensors", "deepinv")


def main(arguments=None) -> int:
    """Exit status: 0, 1 when something was lost silently or a broken promise went unnoticed, 2, 130 for Ctrl-C."""
    given = parser().parse_args(arguments)
    path = (paths.runs() if given.quick else paths.results()) / "faults.json"
    torch.set_num_threads(1)
    try:
        names = given.only or [*ROWS, COMPARISON]
        for name in names:
            choice("only", name, [*ROWS, COMPARISON])
        if COMPARISON in names:
            campaign.PROCESSES.set_forkserver_preload([*campaign.PRELOADED, "tests.faults.others"])
        failed = [name for name in names if not done(name, path, given.quick, given.again)]
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
    first, *rest = __doc__.split("\n\n")
    look = {"epilog": "\n\n".join(rest), "formatter_class": argparse.RawDescriptionHelpFormatter}
    top = Parser("python -m tests.faults", description=first, **look)
    top.add_argument(
        "--only", nargs="+", metavar="ROW", help=f"some of {', '.join([*ROWS, COMPARISON])} (default: all)"
    )
    top.add_argument("--again", action="store_true", help="measure also what is measured already")
    top.add_argument("--quick", action="store_true", help="few faults: whether the campaign works")
    return top


def done(name: str, path: Path, quick: bool, again: bool) -> bool:
    """Measure a row unless it is there, print a line, write the file. Returns whether the promise is kept."""
    written = paths.unseal(path) if path.exists() else {"rows": {}}
    found = written["rows"].get(name)
    if again or not found or found["code_sha256"] != code_of(name):
        measured = compared(quick) if name == COMPARISON else row_of(name, quick)
        found = rounded(measured | {"code_sha256": code_of(name), "provenance": provenance()})
        rows = written["rows"] | {name: found}
        in_order = {key: rows[key] for key in (*ROWS, COMPARISON) if key in rows}
        paths.write_atomically(path, paths.seal({"campaign": "faults", "all": [*ROWS, COMPARISON], "rows": in_order}))
    for line in lines_of(name, found):
        print(line, flush=True)
    return all(row["odl"]["silent"] == 0 for row in found["faults"]) if name == COMPARISON else kept(found)


def compared(quick: bool) -> dict:
    """Eight faults for deepinv's Trainer, a torch.save loop and odl."""
    from . import others

    each = 1 if quick else EACH
    return {"each": each, "ways": list(others.WAYS), "faults": others.compare(each)}


def row_of(name: str, quick: bool) -> dict:
    """What a row measured, with the promise kept and broken."""
    row = ROWS[name]
    n, few = (row.short, row.short) if quick else (row.injections, row.broken_injections)
    counted = campaign.measure(row, n, name)
    broken = campaign.measure(row, few, f"{name}, promise broken", row.edits)
    words = {"promise": row.promise, "fault": row.fault, "mutation": row.mutation}
    return words | counted | {"broken": broken}


def kept(row: dict) -> bool:
    """Nothing silent and everything recovered, and the broken promise was noticed."""
    return row["injected"] == row["recovered"] and row["broken"]["silent"] > 0


def lines_of(name: str, row: dict) -> list[str]:
    if name == COMPARISON:
        counts = "recovered / loud / silent"
        return [
            f"{fault['fault']:22} "
            + ", ".join(f"{way} {'/'.join(map(str, fault[way].values()))}" for way in row["ways"])
            + f" ({counts})"
            for fault in row["faults"]
        ]
    broken = row["broken"]
    return [
        f"{name:12} {row['recovered']:6,} of {row['injected']:6,} recovered, {row['loud']} loud, "
        f"{row['silent']} silent, worst {row['worst_seconds']:.2f} s; with the promise broken: "
        f"{broken['silent']} of {broken['injected']} silent; {row['seconds'] + broken['seconds']:.0f} s"
    ]


def provenance() -> dict:
    """What the rows are measured with; no date and no host."""
    versions = {"python": platform.python_version()} | {name: version_of(name) for name in PACKAGES}
    return {
        "commit": commit(ROOT / "tests"),
        "processor": processor(),
        "system": platform.system(),
        "versions": versions,
    }


def code_of(name: str) -> str:
    """SHA-256 of odl without its plots, of the row's module and of what the rows share."""
    module = Path(__file__).with_name("others.py")
    if name in ROWS:
        module = Path(sys.modules[ROWS[name].inject.__module__].__file__)
    total = hashlib.sha256()
    odl = [path for path in sorted((ROOT / "odl").rglob("*.py")) if not path.name.startswith("plots")]
    for path in [*odl, module, module.with_name("campaign.py")]:
        total.update(path.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
