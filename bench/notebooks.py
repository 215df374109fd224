"""What people wait for, as they start it: Table 1 of one task in `demo` from nothing, and the book.

One measurement each: what is started here takes minutes, and a reader asks how many. The book's is `make book` once
everything is installed; it shows the results that are here.
"""

import os
import tempfile
from pathlib import Path

from odl.machine import files

from . import measure

LIMITS = {"Table 1 of one task": 180}  # seconds on two cores


def run(options: measure.Options) -> dict:
    profiles = options.sizes({"table1": "demo", "book": "reference"}, {"table1": "smoke", "book": None})
    rows, threads = [], {"OMP_NUM_THREADS": str(options.threads)}
    with tempfile.TemporaryDirectory(prefix="odl-notebooks-") as folder:
        words = ["papermill", "notebooks/table1.ipynb", f"{folder}/out.ipynb", "-p", "profile", profiles["table1"]]
        rows.append(row("Table 1 of one task", profiles["table1"], words, threads | {"ODL_ROOT": folder}))
    if profiles["book"]:
        with tempfile.TemporaryDirectory(prefix="odl-book-") as folder:
            Path(folder, "data").symlink_to(files.results().parent)
            words = ["python", "book/build.py", profiles["book"]]
            rows.append(row("the book", profiles["book"], words, threads | {"ODL_ROOT": folder}))
    cores = os.cpu_count()
    note = f"Notebooks train two runs side by side where there are two cores; here are {cores}."
    return {"rounds": 1, "scale": profiles | {"cores": cores}, "rows": rows, "notes": [note]}


def row(what: str, profile: str, words: list[str], environment: dict) -> dict:
    """Start a command, and a row of the table; the limit is None where nobody set one."""
    used = measure.command(words, environment)
    return {
        "what": what,
        "scale": f"profile {profile}",
        "time (s)": used["seconds"],
        "processor time (s)": used["cpu_seconds"],
        "memory (GB)": used["memory_gb"],
        "at most (s)": LIMITS.get(what),
    }
