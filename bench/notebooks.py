"""What people wait for, as they start it: Table 1 of one task in `demo` from nothing, and the book.

One measurement each: what is started here takes minutes, and a reader asks how many. The book's is `make book` once
everything is installed; it shows the results that are here.
"""

import os
import tempfile
from pathlib import Path

from odl import paths

from . import measure

LIMITS = {"Table 1 of one task": 180}  # seconds on two cores


def run(options: measure.Options) -> dict:
    profiles = options.sizes({"table1": "demo", "book": "reference"}, {"table1": "smoke", "book": None})
    with tempfile.TemporaryDirectory(prefix="odl-notebooks-") as folder:
        given = {"ODL_ROOT": folder, "OMP_NUM_THREADS": str(options.threads)}
        words = ["papermill", "notebooks/table1.ipynb", f"{folder}/out.ipynb", "-p", "profile", profiles["table1"]]
        found = {"Table 1 of one task": (f"profile {profiles['table1']}", measure.command(words, given))}
    if profiles["book"]:
        with tempfile.TemporaryDirectory(prefix="odl-book-") as folder:
            Path(folder, "data").symlink_to(paths.results().parent)
            words = ["python", "book/build.py", profiles["book"]]
            found["the book"] = (f"profile {profiles['book']}", measure.command(words, given | {"ODL_ROOT": folder}))
    return {
        "rounds": 1,
        "scale": profiles | {"cores": os.cpu_count(), "precision_of_ours": options.precision},
        "rows": [row(what, *measured) for what, measured in found.items()],
        "comparisons": [],
    }


def row(what: str, scale: str, used: dict) -> dict:
    """A row of the table; the limit is None where nobody set one."""
    times = {"time (s)": used["seconds"], "processor time (s)": used["cpu_seconds"]}
    return {"what": what, "scale": scale} | times | {"memory (GB)": used["memory_gb"], "at most (s)": LIMITS.get(what)}
