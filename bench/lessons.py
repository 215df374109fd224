"""Measure the steps of book/teaching.md as a class takes them, into data/results/teaching.json.

python -m bench.lessons                          all of them
python -m bench.lessons table1                   some of them; what is known of the others stays
python -m bench.lessons --exercises [NAME ...]   what solutions print at the demo profile

Steps run one after the other in a new folder, so that a later one finds what an earlier one has trained. What counts
is processor time: other work on the machine lengthens it little, and the time on the clock, kept beside it, a lot.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import papermill
import psutil
import skimage
import torch

from bench import measure
from companion.disk import files

CORES = 2
NOTEBOOKS = [path for part in ("notebooks", "book/exercises") for path in sorted((measure.ROOT / part).glob("*.ipynb"))]
NOTEBOOKS = [path for path in NOTEBOOKS if "BEGIN SOLUTION" in path.read_text(encoding="utf-8")]
STEPS = {  # name: the command that the page prints
    "smoke": "papermill notebooks/allocation.ipynb out.ipynb -p profile smoke",
    "restore": "python -m odl restore --task denoise photograph.png restored.png",
    "fixation": "papermill notebooks/fixation.ipynb out.ipynb",
    "allocation": "papermill notebooks/allocation.ipynb out.ipynb",
    "table1": "papermill notebooks/table1.ipynb out.ipynb",
}
UNTRAINED = {"dose", "scorecard", "table2"}  # whose exercises need no network
FILES = {"out.ipynb", "photograph.png", "restored.png"}  # of a command, in the new folder
PHOTOGRAPH = Path(skimage.__file__).parent / "data" / "chelsea.png"


def run(name: str, folder: Path) -> dict:
    """Processor and clock seconds of a step, and the most memory (GB) that its processes held.

    Raises RuntimeError with the last line that a failing command says.
    """
    words = [str(folder / word) if word in FILES else word for word in STEPS[name].split()]
    root = {} if name == "restore" else {"ODL_ROOT": str(folder)}  # which reads the weights that ship
    environment = os.environ | {"OMP_NUM_THREADS": str(CORES)} | root
    program = Path(sys.executable).with_name(words[0])
    peak, before, began = 0, os.times(), time.perf_counter()
    with tempfile.TemporaryFile() as stderr:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": stderr}
        process = psutil.Popen([program, *words[1:]], cwd=measure.ROOT, env=environment, **quiet)
        while process.poll() is None:
            peak = max(peak, memory(process))
            time.sleep(1)
        stderr.seek(0)
        said = stderr.read().decode(errors="replace").strip().splitlines()
    if process.returncode:
        raise RuntimeError(said[-1] if said else "no message")
    clock, used = time.perf_counter() - began, sum(os.times()[2:4]) - sum(before[2:4])  # of children that have ended
    return {"cpu_seconds": used, "seconds": clock, "memory_gb": peak / 1e9}


def memory(top: psutil.Popen) -> int:
    """Bytes that a process and those below it hold, shared pages counted once."""
    total = 0
    with suppress(psutil.Error):
        for process in [top, *top.children(recursive=True)]:
            with suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total


def solve(notebook: Path, folder: Path) -> dict:
    """What the solution of a notebook's exercise prints at the demo profile, once it has passed its tests."""
    given = {"train": False} if notebook.stem in UNTRAINED else {}
    done = papermill.execute_notebook(
        notebook, folder / notebook.name, given, kernel_name="python3", cwd=measure.ROOT, progress_bar=False
    )
    [cell] = [cell for cell in done.cells if cell.source.startswith("# BEGIN SOLUTION")]
    return {"prints": "".join(output.text for output in cell.outputs if output.get("name") == "stdout")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a step or an exercise (default: all)")
    parser.add_argument("--exercises", action="store_true", help="measure what solutions print, not what steps take")
    options = parser.parse_args()
    part, known = "steps", dict.fromkeys(STEPS)
    if options.exercises:
        part, known = "exercises", {path.stem: path for path in NOTEBOOKS}
    for name in options.names:
        if name not in known:
            parser.error(f"none of the {part} is {name!r}; there are {', '.join(known)}")
    torch.set_num_threads(CORES)
    origin = measure.provenance(measure.Options("cpu", CORES, 1))
    path = files.results() / "teaching.json"
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "photograph.png").symlink_to(PHOTOGRAPH)
        for name in options.names or known:
            try:
                found = solve(known[name], Path(folder)) if options.exercises else run(name, Path(folder))
            except (RuntimeError, papermill.PapermillExecutionError) as error:
                sys.exit(f"lessons: {name}: {error}")
            command = {} if options.exercises else {"command": STEPS[name]}
            content.setdefault(part, {})[name] = command | found | {"provenance": origin}
            files.write_atomically(path, json.dumps(measure.rounded(content), indent=1).encode() + b"\n")
            print(name, found, flush=True)


if __name__ == "__main__":
    main()
