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
from companion.disk.progress import Bar
from companion.training.device import check_device
from companion.training.measurement import Job, job_of
from companion.training.results import Result
from odl import paper
from odl.corruptions import TASKS
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

    A second Ctrl-C does not wait for what the first one has told to stop.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shares = np.memmap(Path(folder, "shares"), float, "w+", shape=len(todo) + 1)  # the last one tells all to stop
        if device == "cuda":
            pool, leave = ThreadPoolExecutor(workers, initializer=start_thread), {"wait": False, "cancel_futures": True}
        else:
            given = {"initializer": start_process, "initargs": (os.getpid(), shares.filename)}
            pool, leave = ProcessPoolExecutor(workers, **given), {"kill_workers": True}
        futures = [pool.submit(work, job, device, i, shares.filename, TABLES) for i, job in enumerate(todo)]
        try:
            while wait(futures, timeout=1.0).not_done:
                show(shares[:-1])
                if monotonic() > deadline:
                    shares[-1] = STOP
            show(shares[:-1])
            for future in futures:
                future.result()
        finally:
            shares[-1] = INTERRUPTED
            try:
                pool.shutdown()
            except KeyboardInterrupt:
                pool.shutdown(**leave)
                raise


def start_thread() -> None:
    """Set up a worker on a GPU: a stream of its own, made once, because PyTorch hands out 32 in rotation."""
    torch.cuda.set_stream(torch.cuda.Stream())


STOP, INTERRUPTED = 1, 2  # what `shares` ends with: stop when you next say how far you are; or else in `GRACE` seconds
GRACE = 5  # for what does not say: it waits for another process, or for a denoiser


class Worker:
    """What a process that works for another is at, and whether it has been asked to end."""

    at, asked = "rest", None  # "work"; "leave": an exception is on its way out of the run; time of the asking


def start_process(parent: int, file: str) -> None:
    """Set up a worker: one thread, Ctrl-C left to the parent, and an end when the parent is gone or asks for it.

    Not only a cluster does: a notebook's kernel that is shut down terminates its children.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end_worker)
    threading.Thread(target=end_with, args=(parent, file), daemon=True).start()


def end_with(parent: int, file: str) -> None:
    """End this worker when the process that started it is gone, however it went, was interrupted, or asks for it.

    While the parent lives, not at once: the death of one worker makes it kill the others, which may be writing.
    """
    shares, interrupted = np.memmap(file, float, "r"), None
    while True:
        sleep(0.2)
        alive = os.getppid() == parent
        if shares[-1] == INTERRUPTED:
            interrupted = interrupted or monotonic()
        if not alive or interrupted and monotonic() > interrupted + GRACE:
            os.kill(os.getpid(), signal.SIGTERM)
        if Worker.asked and Worker.at == "rest" and not (alive and monotonic() < Worker.asked + GRACE):
            os._exit(1)


def end_worker(*_) -> None:
    """Leave the run that this worker is at, which then keeps its last whole epoch, and begin no other."""
    Worker.asked = Worker.asked or monotonic()
    if Worker.at == "work":
        Worker.at = "leave"  # once: what is being written now has to become whole
        raise SystemExit


def work(job: Job, device, i: int, file: str, tables) -> None:
    """Run one job in a worker, reporting its share in place i of a file; `tables` has what was added elsewhere."""
    shares = np.memmap(file, float, "r+")
    for here, there in zip(TABLES, tables, strict=True):
        here |= there

    def progress(share):
        shares[i] = min(share, 0.999)
        if shares[-1] or Worker.asked:
            Worker.at = "leave"
            raise Stopped

    try:
        with suppress(Stopped, SystemExit):
            Worker.at = "work"
            progress(0)
            measure(job, device, progress)
            shares[i] = 1.0
    except Exception as error:
        tqdm.write(f"{job.name}: {error}", file=sys.stderr)
        raise
    finally:
        Worker.at = "rest"
    if Worker.asked and not shares[-1]:  # else the others would seem to be all
        raise Ended("a worker was ended from outside; the same command goes on from the checkpoints")


def measure(job: Job, device, progress) -> None:
    """What is missing of a job, in its order."""
    missing, done = job.missing(), 0.0
    total = sum(m.work for m in missing)
    for m in missing:
        m.measure(device=device, progress=lambda s, m=m, done=done: progress((done + s * m.work) / total))
        done += m.work
