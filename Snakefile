"""Every run of the paper as a graph: run → notebook → book.

snakemake --cores 2                                                         the smoke profile, on this machine
snakemake --cores 2 --config profile=demo
snakemake --executor slurm --jobs 64 --config profile=paper dataset=celeba gpu=1

--config takes profile, dataset, seeds and device as `python -m companion reproduce` does, and task: that task's
runs alone, and the pages that need no others. gpu is what a run asks the cluster for; --default-resources mem_mb=…
runtime=… (minutes) limits every job. A run is made again with another protocol, a page with other code or parameters.
Checkpoints are no outputs: a job that is queued again goes on.
"""

import hashlib
import os
import re
import sys
from shlex import join, quote

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

START = os.environ.setdefault("ODL_START", os.getcwd())  # of the jobs, too, which begin in the root

sys.path[:0] = [workflow.basedir, f"{workflow.basedir}/book"]
import build
from companion.data import sets
from companion.data.sets import DataError
from companion.disk import files
from companion.notebook import check_seeds, meant
from companion.runs import catalogue
from companion.training.device import DEVICES
from odl import PROTOCOL, paper
from odl.experiment import PROFILES
from odl.parameters import ParameterError, choice, integer

min_version("9.0")
workdir: files.root()


GIVEN = {"profile": "smoke", "dataset": "", "seeds": [0], "task": "", "device": "auto", "gpu": 0}


def options():
    """Return the configuration. Raises ParameterError."""
    for name in config:
        choice("config", name, GIVEN)
    given = GIVEN | config
    choice("profile", given["profile"], PROFILES)
    choice("task", given["task"], ("", *paper.TASKS))
    choice("device", given["device"], DEVICES)
    integer("gpu", given["gpu"], 0, 64)
    dataset = meant("dataset", given["dataset"] or build.DATASETS[given["profile"]])
    seeds = check_seeds(meant("seeds", str(given["seeds"]).replace("'", "")))  # of [0,1] Snakemake makes two texts
    return given | {"dataset": sets.absolute(dataset, START), "seeds": seeds}


def below_root(paths):
    """Return paths as Snakemake has them."""
    return [str(path.relative_to(files.root())) for path in paths]


def hash_of(*names):
    """Return the SHA-256 over files of the repository, and over every file in folders of it."""
    places, total = [BASE / name for name in names], hashlib.sha256()
    for file in [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]:
        if file.is_file() and "__pycache__" not in file.parts:
            total.update(f"{file.relative_to(BASE)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


try:
    O = options()
    SCALE = O["profile"], O["dataset"], O["seeds"]
    EVERY = catalogue.measurements(*SCALE)
except (ParameterError, DataError) as error:
    raise WorkflowError(str(error)) from None

BASE = Path(workflow.basedir)
PYTHON = f"PYTHONPATH={quote(str(BASE))} OMP_NUM_THREADS=1 {quote(sys.executable)}"
GIVE = join(["--dataset", O["dataset"], "--seeds", *map(str, O["seeds"])])
MEASURE = f"{PYTHON} -m companion reproduce --profile {O['profile']} {GIVE} --workers 1 --device {quote(O['device'])}"
BUILD = f"{PYTHON} {quote(str(BASE / 'book' / 'build.py'))} {O['profile']} {GIVE}"
LISTED = [one for one in EVERY if not O["task"] or one.experiment and one.experiment.task == O["task"]]
FILES = below_root(one.path for one in LISTED)
NEEDED = {  # each results file → those that have to be there first
    file: [other for other in below_root(one.needed) if other in FILES] for file, one in zip(FILES, LISTED)
}
SHOWN = {}  # page of the book all of whose results are in this sweep → these
for page in build.plan(*SCALE):
    results = below_root(one.path for one in catalogue.shown_on(page.name, EVERY, *SCALE))
    if (results or not O["task"]) and {*results} <= NEEDED.keys():
        SHOWN[page.name] = page, results
NOTEBOOKS, INDEX = below_root([build.BUILD / "notebooks", build.BUILD / "html" / "index.html"])
EXECUTED = {name: f"{NOTEBOOKS}/{name}.ipynb" for name in SHOWN}
BOOK = [] if O["task"] else [INDEX]


rule all:
    input:
        [*NEEDED, *EXECUTED.values(), *BOOK],


rule run:
    input:
        lambda wildcards: NEEDED[wildcards.file],
    output:
        "{file}",
    wildcard_constraints:
        file="|".join(map(re.escape, NEEDED)),
    params:
        protocol=PROTOCOL,
    resources:
        gpu=O["gpu"],
    log:
        "runs/logs/{file}.log",
    shell:
        "{MEASURE} --only {output} > {log} 2>&1"


rule notebook:
    input:
        lambda wildcards: SHOWN[wildcards.page][1],
        # The last page judges the tables of the others.
        lambda wildcards: [file for page, file in EXECUTED.items() if wildcards.page == build.LAST != page],
    output:
        NOTEBOOKS + "/{page}.ipynb",
    wildcard_constraints:
        page="|".join(map(re.escape, SHOWN)),
    params:
        code=lambda wildcards: hash_of("odl", "companion", SHOWN[wildcards.page][0].template.relative_to(BASE)),
        parameters=lambda wildcards: SHOWN[wildcards.page][0].parameters,
    log:
        text="runs/logs/notebooks/{page}.log",
        notebook="runs/logs/notebooks/{page}.ipynb",  # what is kept of one that failed
    shell:
        "{BUILD} --page {wildcards.page} > {log.text} 2>&1 || {{ cp {output} {log.notebook}; exit 1; }}"


rule book:
    input:
        [*EXECUTED.values()],
    output:
        INDEX,
    params:
        code=hash_of("book", "odl", "companion", "_toc.yml", "_config.yml"),
    log:
        "runs/logs/book.log",
    shell:
        "{BUILD} --pages > {log} 2>&1"
