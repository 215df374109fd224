"""Inject every fault that a promise is about, count what is lost silently, and write data/results/faults.json.

make faults                              all rows; what was measured of the same code is not measured again
python -m tests.faults --only kills      one row, or several
python -m tests.faults --quick           few faults, into runs/faults.json: whether it works
"""

import argparse
import hashlib
import platform
import sys
from importlib import import_module
from pathlib import Path

import torch

from bench.measure import rounded
from companion.cli import Parser
from companion.cli import main as run_command
from companion.disk import files
from companion.disk.provenance import commit, origin, processor
from odl.parameters import choice
from tests.faults import campaign
from tests.faults.campaign import MODULES, ROWS

for module in MODULES:
    import_module(module)
ROOT = Path(__file__).resolve().parents[2]


def main(arguments=None) -> int:
    """Exit status as `companion.cli.main`'s, or 1 when not every fault was recovered from."""
    about, examples = __doc__.split("\n\n")
    raw = argparse.RawDescriptionHelpFormatter
    top = Parser("python -m tests.faults", description=about, epilog=examples, formatter_class=raw)
    top.add_argument("--only", nargs="+", default=[*ROWS], metavar="ROW", help=f"some of {', '.join(ROWS)}")
    top.add_argument("--quick", action="store_true", help="few faults: whether the campaign works")
    top.set_defaults(run=run, kept="the rows listed above are written, and the same command goes on")
    return run_command(arguments, top)


def run(given) -> int:
    path = (files.runs() if given.quick else files.results()) / "faults.json"
    torch.set_num_threads(1)
    for name in given.only:
        choice("only", name, ROWS)
    failed = [name for name in given.only if not done(name, path, given.quick)]
    if failed:
        print(f"faults: promises are not kept: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def done(name: str, path: Path, quick: bool) -> bool:
    """Measure a row unless it is there, print a line, write the file. Returns whether the promise is kept."""
    rows, row = files.unseal(path)["rows"] if path.exists() else {}, ROWS[name]
    if rows.get(name, {}).get("code_sha256") != code():
        measured = campaign.measure(name, row.short if quick else row.injections)
        where = {"commit": commit(ROOT / "tests"), "processor": processor(), "system": platform.system()}
        words = {"promise": row.promise, "fault": row.fault, "code_sha256": code(), "provenance": origin("cpu") | where}
        rows[name] = rounded(words | measured)
        in_order = {key: rows[key] for key in ROWS if key in rows}
        files.write_atomically(path, files.seal({"campaign": "faults", "all": [*ROWS], "rows": in_order}))
    found = rows[name]
    print(
        f"{name:12} {found['recovered']:6,} of {found['injected']:6,} recovered, {found['loud']} loud, "
        f"{found['silent']} silent, worst {found['worst_seconds']:.2f} s; {found['seconds']:.0f} s",
        flush=True,
    )
    return found["injected"] == found["recovered"]


def code() -> str:
    """SHA-256 of what the campaign tries, and of itself."""
    where = ("odl/**/*.py", "companion/**/*.py", "notebooks/*.ipynb", "tests/faults/**/*.py")
    files = [path for pattern in where for path in sorted(ROOT.glob(pattern))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
