"""Many runs side by side with one progress bar; a deadline or Ctrl-C stops them with their checkpoints written."""

import math
import os
import shlex
import signal
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import numpy as np
import torch
from loky import ProcessPoolExecutor, cpu_count
from tqdm import tqdm

from companion.data.packs import load
from companion.disk import ending
from companion.disk.progress import Bar
from companion.training.device import check_device
from companion.training.measurement import Job, job_of
from companion.training.results import Result
from odl import paper
from odl.corruptions import TASKS
from odl.device import pytorch_defaults
from odl.experiment import Experiment
from odl.network import NETWORKS
from odl.parameters import OneLine
from odl.schedules import SCHEDULES

TABLES = SCHEDULES, paper.TASKS, TASKS, NETWORKS  # which a script or a notebook may add to; workers are told
ON_GPU = 4  # runs that share a GPU: 1.00 ms of an H200 a step, against 1.50 alone and 0.98 by seven (profile gpu)
QUICK = 600  # batches of work that are not worth starting processes for


class Stopped(Exception):
    """A run was stopped before its end; the same command goes on from its checkpoint."""


class Ended(OneLine, RuntimeError):
    """A worker was told to end, and nobody else to stop; the message is one line."""


def run_many(experiments: list[Experiment], device="auto", train=True, workers=None, **named) -> list[Result]:
    """`results_of` runs that are trained and tested on their levels."""
    jobs = [job_of(experiment) for experiment in dict.fromkeys(experiments)]
    return results_of(jobs, device, train, workers, **named)


def results_of(jobs: list[Job], device="auto", train=True, workers=None, dataset="", page="") -> list[Result]:
    """What the last measurement of every job found, in order; what is missing is measured with one progress bar.

    With `train` false nothing is measured: what is not there is left out, and a line says how much that is, and which
    command measures it: of `dataset`, where its runs are on another size of it, as Table 3's are, and for `page`.
    """
    if train:
        run_jobs(jobs, device, workers)
    found = [job.measurements[-1].load() for job in jobs]
    if absent := [job.experiment for job, result in zip(jobs, found, strict=True) if result is None]:
        scale = f"--profile {absent[0].profile} --dataset {shlex.quote(dataset or absent[0].dataset)}"
        ours = [experiment for experiment in absent if experiment.schedule in SCHEDULES] or absent
        seeds = " ".join(str(seed) for seed in sorted({experiment.seed for experiment in ours}))
        command = f"python -m companion reproduce {scale}{f' --page {page}' * bool(page)} --seeds {seeds}"
        print(f"{len(absent)} of {len(jobs)} runs are missing: set train=True here, or run {command}.")
    return [result for result in found if result is not None]


@pytorch_defaults()
def run_jobs(jobs: list[Job], device="auto", workers: int | None = None, deadline: float = math.inf) -> None:
    """Measure what is missing, `workers` jobs at a time: by default a process per CPU thread, or `ON_GPU` on a GPU.

    Past `deadline` (of `time.monotonic()`) or at Ctrl-C every run writes its checkpoint and stops.
    """
    device = check_device(device)
    todo = [job for job in jobs if job.missing()]
    if not todo:
        return
    packs = {(job.experiment.dataset, job.experiment.train_images) for job in todo if job.experiment}
    for dataset, train_images in sorted(packs):
        load(dataset, "train", train_images)  # packed once, before the workers start
    if workers is None:
        quick = sum(m.work for job in todo for m in job.missing()) < QUICK
        workers = 1 if quick else ON_GPU if device == "cuda" else min(torch.get_num_threads(), cpu_count())
    run = in_turn if min(workers, len(todo)) == 1 else partial(side_by_side, workers=min(workers, len(todo)))
    done = sum(job.work for job in jobs if job not in todo)
    with Bar(sum(job.work for job in jobs), initial=done) as bar:
        run(todo, device, deadline, partial(show, bar, len(jobs), todo, {}, done))
        bar.refresh()


def show(bar, n: int, todo: list[Job], resumed: dict, done: float, shares) -> None:
    """Move the bar to the shares of the jobs; what a checkpoint held took no time now and does not count as speed."""
    for i, share in enumerate(shares):
        if 0 < share < 1:
            resumed.setdefault(i, share)
    bar.initial = done + sum(todo[i].work * share for i, share in resumed.items())
    finished = n - len(todo) + sum(share == 1 for share in shares)
    one = todo[0].experiment.schedule if todo[0].experiment else todo[0].name.split("/")[-1]
    bar.set_description_str(one if n == 1 else f"{finished} of {n} runs", refresh=False)
    bar.n = done + sum(job.work * share for job, share in zip(todo, shares, strict=True))
    bar.update(0)


def in_turn(todo, device, deadline, show) -> None:
    """One job after the other, in this process; those after one that fails run, too, and its error is raised last."""
    shares, failed = [0.0] * len(todo), None
    for i, job in enumerate(todo):

        def progress(share, i=i):
            shares[i] = share
            show(shares)
            if monotonic() > deadline:
                raise Stopped

        try:
            measure(job, device, progress)
        except Stopped:
            break
        except Exception as error:
            traceback.clear_frames(error.__traceback__)  # its network must not fill the memory of those that follow
            tqdm.write(f"{job.name}: {error}", file=sys.stderr)
            failed = failed or error
            continue
        shares[i] = 1
        show(shares)
    if failed:
        raise failed


def side_by_side(todo, device, deadline, show, workers: int) -> None:
    """Several jobs at once: on a CPU a process each with one thread, on a GPU a thread each with its own stream.

    A second Ctrl-C does not wait for what the first one has told to stop. Raises Ended.
    """
    ASKED.clear()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shares = np.memmap(Path(folder, "shares"), float, "w+", shape=len(todo))
        if device == "cuda":
            pool, leave = ThreadPoolExecutor(workers, initializer=start_thread), {"wait": False, "cancel_futures": True}
        else:
            given = {"initializer": start_process, "initargs": (os.getpid(),)}
            pool, leave = ProcessPoolExecutor(workers, **given), {"kill_workers": True}
        futures = [pool.submit(work, job, device, deadline, i, shares.filename, TABLES) for i, job in enumerate(todo)]
        try:
            while wait(futures, timeout=1.0).not_done:
                show(shares)
            show(shares)
            ended = [future.result() for future in futures]
        except (KeyboardInterrupt, SystemExit):
            for future in futures:
                future.cancel()
            ASKED.set()
            for process in [] if device == "cuda" else [*pool._processes.values()]:
                process.terminate()
            raise
        finally:
            try:
                pool.shutdown()
            except KeyboardInterrupt:
                pool.shutdown(**leave)
                raise
    if any(ended):  # else the others would seem to be all
        raise Ended("a worker was ended from outside; the same command goes on from the checkpoints")


# A worker

ASKED = threading.Event()  # to end: set by a signal in a process of its own, by the main thread for its other threads
WORKER = {"parent": None, "busy": False, "running": False}  # busy: has a job; running: a signal may leave its run


def start_thread() -> None:
    """Set up a worker on a GPU: a stream of its own, made once, because PyTorch hands out 32 in rotation."""
    torch.cuda.set_stream(torch.cuda.Stream())


def start_process(parent: int) -> None:
    """Set up a worker: one thread, and an end in order at Ctrl-C and at every signal that ends a run."""
    torch.set_num_threads(1)
    WORKER["parent"] = parent
    threading.Thread(target=end_with_parent, daemon=True).start()
    ending.handle(end_worker, [signal.SIGINT, *ending.ENDING])


def end_worker(*_) -> None:
    """Leave the run that this worker is at, once: it writes its checkpoint then. No other is begun."""
    ASKED.set()
    if WORKER["running"]:
        WORKER["running"] = False
        raise SystemExit


def orphaned() -> bool:
    """True if the process that started this one is gone."""
    return WORKER["parent"] not in (None, os.getppid())


def end_with_parent() -> None:
    """End this process when it has no job and nobody to ask for one."""
    while WORKER["busy"] or not orphaned():
        sleep(1)
    os._exit(1)


def work(job: Job, device, deadline: float, i: int, file: str, tables) -> bool:
    """Run one job in a worker, with its share of work done in place i of a file; True if the worker was asked to end.

    `tables` has what was added elsewhere.
    """
    shares = np.memmap(file, float, "r+")
    for here, there in zip(TABLES, tables, strict=True):
        here |= there

    def progress(share):
        shares[i] = min(share, 0.999)
        if ASKED.is_set() or monotonic() > deadline or orphaned():
            WORKER["running"] = False
            raise Stopped

    try:
        with suppress(Stopped, SystemExit):
            WORKER.update(busy=True, running=True)
            progress(0)
            measure(job, device, progress)
            shares[i] = 1.0
            WORKER["running"] = False
    except Exception as error:
        tqdm.write(f"{job.name}: {error}", file=sys.stderr)
        raise
    finally:
        WORKER.update(busy=False, running=False)
    return ASKED.is_set()


def measure(job: Job, device, progress) -> None:
    """What is missing of a job, in its order."""
    missing, done = job.missing(), 0.0
    total = sum(m.work for m in missing)
    for m in missing:
        m.measure(device=device, progress=lambda s, m=m, done=done: progress((done + s * m.work) / total))
        done += m.work
