"""Measurements side by side with one progress bar; a deadline or Ctrl-C stops them with checkpoints written."""

import math
import os
import shlex
import signal
import sys
import threading
import traceback
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
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
from companion.training.measurement import Measurement, Result, missing
from companion.training.results import measurement_of
from odl import paper
from odl.corruptions import TASKS
from odl.device import pytorch_defaults
from odl.experiment import FOR_NETWORK, Experiment
from odl.network import NETWORKS
from odl.schedules import SCHEDULES

OPEN_TABLES = SCHEDULES, paper.TASKS, TASKS, NETWORKS, FOR_NETWORK  # which a reader may add to; workers are told
RUNS_ON_A_GPU = 4  # side by side: 1.00 ms of an H200 a step, against 1.50 alone and 0.98 by seven (profile gpu)
MIN_WORK_OF_PROCESSES = 600  # batches of work that are not worth starting processes for
MAX_UNWRITTEN_SHARE = 0.999  # share of a measurement whose file is not yet written


class Stopped(Exception):
    """A run was stopped before its end; the same command goes on from its checkpoint."""


def run_many(experiments: list[Experiment], device="auto", train=True, **named) -> list[Result]:
    """Return `results_of` runs on their levels."""
    return results_of([*map(measurement_of, dict.fromkeys(experiments))], device, train, **named)


def results_of(wanted: list[Measurement], device="auto", train=True, workers=None, dataset="", page="") -> list[Result]:
    """Return the results of some measurements in their order; what is missing is measured with one progress bar.

    With `train` false what is missing is left out, and a line says which command measures it: of `dataset`, where its
    runs are on another size of it, as Table 3's are, and for `page`.
    """
    if train:
        run_all(wanted, device, workers)
    found = [one.load() for one in wanted]
    if absent := [one.experiment for one, result in zip(wanted, found, strict=True) if result is None]:
        scale = f"--profile {absent[0].profile} --dataset {shlex.quote(dataset or absent[0].dataset)}"
        ours = [experiment for experiment in absent if experiment.schedule in SCHEDULES] or absent
        seeds = " ".join(str(seed) for seed in sorted({experiment.seed for experiment in ours}))
        command = f", or run python -m companion reproduce {scale}{f' --page {page}' * bool(page)} --seeds {seeds}"
        command *= all(experiment.network == "paper" for experiment in absent)  # no page lists another's runs
        print(f"{len(absent)} of {len(wanted)} runs are missing: set train=True here{command}.")
    return [result for result in found if result is not None]


@pytorch_defaults()
def run_all(wanted: list[Measurement], device="auto", workers: int | None = None, deadline: float = math.inf) -> None:
    """Measure what is missing, `workers` at a time, or as many as wait for nothing at the start.

    By default a process per CPU thread, but one where all of it is quick, or `RUNS_ON_A_GPU` on a GPU. What others need
    comes before them. Past `deadline` (of `time.monotonic()`) or at Ctrl-C every run writes its checkpoint and stops.
    """
    device, todo = check_device(device), missing(wanted)
    if not todo:
        return
    packed = {(one.what.dataset, one.what.train_images) for one in todo if isinstance(one.what, Experiment)}
    for dataset, train_images in sorted(packed):
        load(dataset, "train", train_images)  # packed once, before the workers start
    if workers is None:
        quick = sum(one.work for one in todo) < MIN_WORK_OF_PROCESSES
        workers = 1 if quick else RUNS_ON_A_GPU if device == "cuda" else min(torch.get_num_threads(), cpu_count())
    left = undone(todo, [0] * len(todo))
    workers = min(workers, sum(left.isdisjoint(one.needed) for one in todo))
    run = in_turn if workers == 1 else partial(side_by_side, workers=workers)
    done = [one for one in wanted if one.path not in left]
    before = sum(one.work for one in done)
    with Bar(before + sum(one.work for one in todo), initial=before) as bar:
        run(todo, device, deadline, partial(show, bar, len(done), before, todo, {}))
        bar.refresh()


def undone(todo: list[Measurement], shares) -> set[Path]:
    """Return what others have to wait for: the paths of which less than the whole is done."""
    return {one.path for one, share in zip(todo, shares, strict=True) if share < 1}


def show(bar, n: int, before: float, todo: list[Measurement], resumed: dict, shares) -> None:
    """Move the bar, `n` measurements of which were done before, to the shares of the others.

    What a checkpoint held took no time now and does not count as speed.
    """
    for i, share in enumerate(shares):
        if 0 < share < 1:
            resumed.setdefault(i, share)
    bar.initial = before + sum(todo[i].work * share for i, share in resumed.items())
    finished, every = n + sum(share == 1 for share in shares), n + len(todo)
    bar.set_description_str(todo[0].path.stem if every == 1 else f"{finished} of {every} results", refresh=False)
    bar.n = before + sum(one.work * share for one, share in zip(todo, shares, strict=True))
    bar.update(0)


def in_turn(todo, device, deadline, show) -> None:
    """Measure one after the other in this process; the first error is raised when the others are done."""
    shares, errors = [0.0] * len(todo), []
    for i, one in enumerate(todo):

        def progress(share, i=i):
            shares[i] = min(share, MAX_UNWRITTEN_SHARE)
            show(shares)
            if monotonic() > deadline:
                raise Stopped

        if undone(todo, shares).isdisjoint(one.needed):
            try:
                progress(0)
                one.run(device, progress)
            except Stopped:
                break
            except Exception as error:
                traceback.clear_frames(error.__traceback__)  # its network must not fill the memory of those that follow
                tqdm.write(f"{one.name}: {error}", file=sys.stderr)
                errors.append(error)
                continue
            shares[i] = 1
            show(shares)
    if errors:
        raise errors[0]


def side_by_side(todo, device, deadline, show, workers: int) -> None:
    """Measure several at once: on a CPU in processes of one thread, on a GPU in threads with a stream each."""
    ASKED_TO_END.clear()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shares = np.memmap(Path(folder, "shares"), float, "w+", shape=len(todo))
        if device == "cuda":
            # Each thread makes its stream once, because PyTorch hands out 32 in rotation.
            pool = ThreadPoolExecutor(workers, initializer=lambda: torch.cuda.set_stream(torch.cuda.Stream()))
        else:
            pool = ProcessPoolExecutor(workers, initializer=start_process, initargs=(os.getpid(),))
        waiting, futures, running = [*enumerate(todo)], [], set()
        try:
            while True:
                left = undone(todo, shares)
                ready = [(i, one) for i, one in waiting if left.isdisjoint(one.needed)][: workers - len(running)]
                for i, one in ready:
                    waiting.remove((i, one))
                    futures.append(pool.submit(work, one, device, deadline, i, shares.filename, OPEN_TABLES))
                running |= {*futures[len(futures) - len(ready) :]}
                if not running:
                    break
                running = wait(running, 1.0, FIRST_COMPLETED).not_done
                show(shares)
            for future in futures:
                future.result()  # raises what went wrong there
        except (KeyboardInterrupt, SystemExit):
            for future in futures:
                future.cancel()
            ASKED_TO_END.set()
            for process in [] if device == "cuda" else [*pool._processes.values()]:
                process.terminate()
            raise
        finally:
            pool.shutdown()


# A worker

# Set by a signal in a process of its own, by the main thread for its other threads.
ASKED_TO_END = threading.Event()
WORKER = {"parent": None, "busy": False, "running": False}  # busy: measures; running: a signal may leave its run


def start_process(parent: int) -> None:
    """Set up a worker: one thread, and an end in order at Ctrl-C and at every signal that ends a run."""
    torch.set_num_threads(1)
    WORKER["parent"] = parent
    threading.Thread(target=end_with_parent, daemon=True).start()
    ending.handle(end_worker, [signal.SIGINT, *ending.ENDING])


def end_worker(*_) -> None:
    """Leave the run that this worker is at, once: it writes its checkpoint then. No other is begun."""
    ASKED_TO_END.set()
    if WORKER["running"]:
        WORKER["running"] = False
        raise SystemExit


def orphaned() -> bool:
    """Return True if the process that started this one is gone."""
    return WORKER["parent"] not in (None, os.getppid())


def end_with_parent() -> None:
    """End this process when it measures nothing and its parent is gone."""
    while WORKER["busy"] or not orphaned():
        sleep(1)
    os._exit(1)


def work(one: Measurement, device, deadline: float, i: int, file: str, tables) -> None:
    """Run one measurement in a worker, with its share of work done in place i of a file.

    `tables` has what was added elsewhere.
    """
    shares = np.memmap(file, float, "r+")
    for here, there in zip(OPEN_TABLES, tables, strict=True):
        here |= there

    def progress(share):
        shares[i] = min(share, MAX_UNWRITTEN_SHARE)
        if ASKED_TO_END.is_set() or monotonic() > deadline or orphaned():
            WORKER["running"] = False
            raise Stopped

    try:
        with suppress(Stopped, SystemExit):
            WORKER.update(busy=True, running=True)
            progress(0)
            one.run(device, progress)
            shares[i] = 1.0
            WORKER["running"] = False
    except Exception as error:
        tqdm.write(f"{one.name}: {error}", file=sys.stderr)
        raise
    finally:
        WORKER.update(busy=False, running=False)
