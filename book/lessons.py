"""Measure the steps of book/teaching.md as a class takes them, into data/results/teaching.json.

python book/lessons.py            all of them
python book/lessons.py table1     some of them; what is known of the others stays

Steps run one after the other in a new folder, so that a later one finds what an earlier one has trained. What counts
is processor time: other work on the machine lengthens it little, and the time on the clock, kept beside it, a lot.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import skimage
import torch

from bench import measure
from odl.machine import files
from odl.machine.device import quick_precision

CORES = 2
STEPS = {  # name: the command that the page prints
    "smoke": "papermill notebooks/allocation.ipynb out.ipynb -p profile smoke",
    "restore": "python -m odl restore --task denoise photograph.png restored.png",
    "fixation": "papermill notebooks/fixation.ipynb out.ipynb",
    "allocation": "papermill notebooks/allocation.ipynb out.ipynb",
    "table1": "papermill notebooks/table1.ipynb out.ipynb",
}
FILES = {"out.ipynb", "photograph.png", "restored.png"}  # of a command, in the new folder
PHOTOGRAPH = Path(skimage.__file__).parent / "data" / "chelsea.png"


def run(name: str, folder: Path) -> dict:
    """Processor and clock seconds of a step, and the most memory (GB) that its processes held. Raises RuntimeError."""
    words = [str(folder / word) if word in FILES else word for word in STEPS[name].split()]
    root = {} if name == "restore" else {"ODL_ROOT": str(folder)}  # which reads the weights that ship
    return measure.command(words, {"OMP_NUM_THREADS": str(CORES)} | root)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)} (default: all)")
    names = parser.parse_args().steps or list(STEPS)
    for name in names:
        if name not in STEPS:
            parser.error(f"no step {name!r}; there are {', '.join(STEPS)}")
    torch.set_num_threads(CORES)
    origin = measure.provenance(measure.Options("cpu", CORES, 1, precision=quick_precision("cpu")))
    path = files.results() / "teaching.json"
    steps = json.loads(path.read_text(encoding="utf-8"))["steps"] if path.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "photograph.png").symlink_to(PHOTOGRAPH)
        for name in names:
            try:
                step = run(name, Path(folder))
            except RuntimeError as error:
                sys.exit(f"lessons: {name}: {error}")
            steps[name] = {"command": STEPS[name]} | step | {"provenance": origin}
            content = json.dumps(measure.rounded({"steps": steps}), indent=1)
            files.write_atomically(path, content.encode() + b"\n")
            print(f"{name:10s} {step['cpu_seconds']:7.1f} s of processor  {step['memory_gb']:5.2f} GB", flush=True)


if __name__ == "__main__":
    main()
