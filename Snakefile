"""Every run of the paper as a graph: data → train → evaluate → notebook → book.

snakemake --cores 2                                                         the smoke profile, on this machine
snakemake --cores 2 --config profile=demo
snakemake --executor slurm --jobs 64 --config profile=paper dataset=celeba gpu=1

--config takes profile, dataset, seeds and device as `python -m companion reproduce` does, and task: that task's
runs alone, and the pages that need no others. gpu is what a run asks the cluster for; bundle=4 trains four runs side
by side in one job; mem_mb and runtime (minutes) are the limits of a job. What runs again follows from hashes of the
code and of the configuration (profiles/default). Checkpoints are no outputs: a job that is queued again goes on.
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
from companion.runs import catalogue
from companion.notebook import check_seeds, check_text, listed, word_or_number
from odl import paper
from companion.data import packs, sets
from companion.data.sets import DataError
from odl.experiment import PROFILES, short
from companion.disk import files
from odl.parameters import ParameterError, choice, integer

min_version("9.0")
workdir: files.root()


GIVEN = {"profile": "smoke", "dataset": "", "seeds": [0], "task": "", "device": "auto"}
GIVEN |= {"gpu": 0, "bundle": 1, "mem_mb": 8000, "runtime": 1440}


def options():
    """The configuration. Raises ParameterError."""
    for name in config:
        choice("config", name, GIVEN)
    given = GIVEN | config
    choice("profile", given["profile"], PROFILES)
    choice("task", given["task"], ("", *paper.TASKS))
    for name, low, high in (("gpu", 0, 64), ("bundle", 1, 64), ("mem_mb", 1, 10**7), ("runtime", 1, 10**6)):
        integer(name, given[name], low, high)
    dataset = check_text("dataset", given["dataset"] or build.DATASETS[given["profile"]])
    dataset = sets.absolute(dataset, START)
    seeds = listed(given["seeds"])
    seeds = [word_or_number(str(seed)) for seed in (seeds if isinstance(seeds, list) else [seeds])]  # [0,1] is text
    return given | {"dataset": dataset, "seeds": check_seeds(seeds)}


def pages():
    """The pages of the book all of whose runs are in this sweep."""
    names = {job.name for job in JOBS}
    shown = [(page, {job.name for job in catalogue.shown_on(page.name, EVERY, *SCALE)}) for page in build.plan(*SCALE)]
    return [page for page, needed in shown if needed <= names and (needed or not O["task"])]


def path_of(file):
    """A path as Snakemake has it: below the root."""
    return str(file.relative_to(files.root()))


def name_of(rule, what):
    return short(re.sub(r"\W", "_", f"{rule}_{what}"), 200).replace("-", "_")


def pack_of(dataset):
    return path_of(packs.folder_of(dataset) / "index.json")


def results_of(measurements):
    return [path_of(m.path) for m in measurements]


def hash_of(*names):
    """SHA-256 over files of the repository, and over every file in folders of it."""
    places, total = [BASE / name for name in names], hashlib.sha256()
    for file in [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]:
        if file.is_file() and "__pycache__" not in file.parts:
            total.update(f"{file.relative_to(BASE)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


try:
    O = options()
    SCALE = O["profile"], O["dataset"], O["seeds"]
    EVERY = catalogue.jobs(*SCALE)
except (ParameterError, DataError) as error:
    raise WorkflowError(str(error)) from None

BASE = Path(workflow.basedir)
CODE, PACKING = hash_of("odl", "companion"), hash_of("companion/data")
LIMITS = {"mem_mb": O["mem_mb"], "runtime": O["runtime"]}
# Every rule's command is made of these: a shell directive is read when the job runs, and sees no variable of a loop.
PYTHON = f"PYTHONPATH={quote(str(BASE))} OMP_NUM_THREADS=1 {quote(sys.executable)}"
GIVE = join(["--dataset", O["dataset"], "--seeds", *map(str, O["seeds"])])
MEASURE = f"{PYTHON} -m companion reproduce --profile {O['profile']} {GIVE}"
MEASURE += " " + join(["--device", O["device"], "--only"])
BUILD = f"{PYTHON} {quote(str(BASE / 'book' / 'build.py'))} {O['profile']} {GIVE}"
JOBS = [job for job in EVERY if not O["task"] or job.experiment and job.experiment.task == O["task"]]
TRAINED = [job for job in JOBS if job.experiment]
BUNDLES = [TRAINED[i : i + O["bundle"]] for i in range(0, len(TRAINED), O["bundle"])]
MADE = {m.path for job in JOBS for m in job.measurements}
REST = {job.name: job.measurements[bool(job.experiment) :] for job in JOBS}
PAGES = pages()
BOOK = [] if O["task"] else [path_of(build.BUILD / "html" / "index.html")]


rule all:
    input:
        [path_of(page.executed) for page in PAGES],
        results_of(m for job in JOBS for m in job.measurements),
        BOOK,


for dataset in sorted({job.experiment.dataset for job in TRAINED}):

    rule:
        name:
            name_of("data", dataset)
        output:
            pack_of(dataset),
        params:
            code=PACKING,
            dataset=dataset,
        resources:
            **LIMITS,
        log:
            f"runs/logs/{name_of('data', dataset)}.log",
        shell:
            "{PYTHON} -m odl data prepare {params.dataset:q} > {log} 2>&1"


for bundle in BUNDLES:
    first = [job.measurements[0] for job in bundle]
    here = all(m.path.exists() for m in first)
    needed = {m.path for job in bundle for m in job.needs} & MADE - {m.path for m in first}
    packs_of_bundle = sorted({pack_of(job.experiment.dataset) for job in bundle})

    rule:
        name:
            name_of("train", first[0].name)
        input:
            [] if here else packs_of_bundle,  # a set packed anew by the same code is the same
            sorted(map(path_of, needed)),
        output:
            results_of(first),
        params:
            code=CODE,
        threads: len(bundle)
        resources:
            gpu=O["gpu"],
            **LIMITS,
        log:
            f"runs/logs/{first[0].name}.log",
        shell:
            "{MEASURE} {output} --workers {threads} > {log} 2>&1"


for job in (job for job in JOBS if REST[job.name]):

    rule:
        name:
            name_of("evaluate", job.name)
        input:
            results_of(job.measurements[:1]) if job.experiment else [],
        output:
            results_of(REST[job.name]),
        params:
            code=CODE,
        resources:
            gpu=O["gpu"],
            **LIMITS,
        log:
            f"runs/logs/{job.name}-evaluate.log",
        shell:
            "{MEASURE} {output} --workers 1 > {log} 2>&1"


for page in PAGES:
    rule:
        name:
            name_of("notebook", page.name)
        input:
            results_of(m for job in catalogue.shown_on(page.name, JOBS, *SCALE) for m in job.measurements),
            [path_of(p.executed) for p in PAGES if page.name == build.LAST != p.name],  # whose tables it judges
        output:
            path_of(page.executed),
        params:
            code=CODE,
            notebook=hash_of(page.template.relative_to(BASE)),
            page=page.name,
            parameters=page.parameters,
        resources:
            **LIMITS,
        log:
            text=f"runs/logs/notebooks/{page.name}.log",
            notebook=f"runs/logs/notebooks/{page.name}.ipynb",  # what is kept of one that failed
        shell:
            "{BUILD} --page {params.page} > {log.text} 2>&1 || {{ cp {output} {log.notebook}; exit 1; }}"


rule book:
    input:
        [path_of(page.executed) for page in PAGES],
    output:
        BOOK or "runs/logs/no-book-of-one-task",
    params:
        code=hash_of("book", "odl", "companion", "_toc.yml", "_config.yml"),
    resources:
        **LIMITS,
    log:
        "runs/logs/book.log",
    shell:
        "{BUILD} --pages > {log} 2>&1"
