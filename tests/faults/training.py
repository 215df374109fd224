"""Faults of a training run: kills, damaged checkpoints, numbers that are not finite, signals, a full disk."""

import errno
import io
import math
import os
import random
import resource
import shutil
import signal
import threading
import time

import numpy as np
import torch

from odl import PROTOCOL, paths, results, schedules, train
from odl.__main__ import main
from odl.corruptions import TASKS
from odl.experiment import Experiment
from odl.schedules import SCHEDULES
from odl.train import TrainingError

from .campaign import (
    DAMAGES,
    DIRECT,
    LOUD,
    PATIENCE,
    RECOVERED,
    SILENT,
    Edit,
    Row,
    deadly,
    digest,
    ended,
    fresh_root,
    in_a_child,
    judged,
    killed,
    number,
    quiet,
)

TINY = {"profile": "smoke", "width": 8, "epochs": 5, "iterations": 2, "batch_size": 20}
TINY |= {"validation_images": 4, "test_images": 4}


def tiny(i: int = 0, **numbers) -> Experiment:
    """One of the nine schedules, each with a task."""
    schedule = list(SCHEDULES)[i % len(SCHEDULES)]
    return Experiment.of(list(TASKS)[i % len(SCHEDULES) % len(TASKS)], schedule=schedule, **(TINY | numbers))


def all_of(experiment) -> str:
    """Digest of everything a finished run leaves: weights, Adam's state, history, evaluation."""
    state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
    measured = results.load(experiment)
    weights = (paths.runs() / experiment.run_id / "weights.safetensors").read_bytes()
    return digest([state, measured.history, measured.evaluation.to_dict("list"), weights.hex()])


def run(experiment) -> str:
    with quiet():
        results.run_or_load(experiment, "cpu")
        return all_of(experiment)


WHOLE = {}


def uninterrupted(experiment) -> str:
    """The digest of the run in one piece, in a process where nothing is broken."""
    if experiment not in WHOLE:
        with fresh_root():
            WHOLE[experiment] = run(experiment)
    return WHOLE[experiment]


def train_in_child(share, experiment, death=None):
    """Checkpoint every epoch; `death` is a call of `os` at which the process dies."""
    train.CHECKPOINT_SECONDS = 0
    if death:
        deadly(*death)
    results.run_or_load(experiment, "cpu", lambda done: setattr(share, "value", done))


# A save calls fsync once and replace once, where a file was there already twice; the trunk is one more.
DEATHS = [("replace", k, when) for k in range(1, 8) for when in ("before", "after")]
DEATHS += [("fsync", k, when) for k in range(1, 5) for when in ("before", "after")]


def kills(n):
    """kill -9, every other time inside a save; then the same command again."""
    chance = random.Random(0)
    for i in range(n):
        experiment = tiny(i)
        expected = uninterrupted(experiment)
        with fresh_root():
            while not kill_once(experiment, chance, inside=i % 2):
                shutil.rmtree(paths.runs(), ignore_errors=True)  # it had ended before: from the start again
                shutil.rmtree(paths.results(), ignore_errors=True)
            yield judged(lambda e=experiment: run(e), lambda answer, expected=expected: answer == expected)


def kill_once(experiment, chance, inside: bool) -> bool:
    share = number()
    child = in_a_child(train_in_child, experiment, chance.choice(DEATHS) if inside else None, shared=share)
    if inside:
        return ended(child) == -signal.SIGKILL
    until = chance.uniform(0.05, 0.9)
    while child.is_alive() and share.value < until:
        time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.02))
    return killed(child)


# Checkpoints


def state_of(k: int, experiment, megabytes=0) -> dict:
    """A checkpoint's state that says it is number k."""
    network, optimizer = train.build(experiment, "cpu")
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "history": [k]}
    filler = torch.zeros(megabytes * 250_000)
    return state | {"experiment": experiment.asdict() | {"protocol": PROTOCOL}, "filler": filler}


def payload_of(state) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def save_and_die(saved, experiment, folder, last, share):
    """Save so many times, and die in the midst of writing once more: at a share of what the last writing took."""
    state, write, seconds = state_of(0, experiment, megabytes=4), paths.write_atomically, 0.0

    def timed(path, content):
        nonlocal seconds
        start = time.perf_counter()
        if saved.value == last:
            threading.Timer(share * seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        write(path, content)
        seconds = time.perf_counter() - start

    paths.write_atomically = timed  # of this process alone
    for k in range(1, last + 2):
        train.save_checkpoint(folder, state | {"history": [k]})
        saved.value = k
    time.sleep(PATIENCE)


def kills_inside_saves(n):
    """A process dies in the midst of a save; what lies there has to be a whole checkpoint, the last one or the next."""
    chance, experiment = random.Random(1), tiny()
    for _ in range(n):
        with fresh_root(demo=False) as folder:
            saved = number("l")
            chosen = chance.randrange(2, 5), chance.uniform(0, 0.9)
            assert ended(in_a_child(save_and_die, experiment, folder, *chosen, shared=saved)) == -signal.SIGKILL
            last = saved.value
            whole = not (folder / "checkpoint.pt").exists() or train.read_checkpoint(folder / "checkpoint.pt")

            def load(folder=folder, whole=whole):
                state = train.load_checkpoint(folder, experiment)
                return state["history"][0] if whole and state else None

            yield judged(load, lambda k, last=last: k in (last, last + 1))


def damaged_checkpoints(n):
    """Bits turned and files cut off, in turn; the checkpoint before has to be used."""
    chance, experiment = random.Random(2), tiny()
    states = [state_of(k, experiment) for k in (1, 2)]
    right = [digest({key: s[key] for key in ("network", "optimizer", "history", "experiment")}) for s in states]
    for i in range(n):
        with fresh_root(demo=False) as folder:
            for state in states:
                train.save_checkpoint(folder, state)
            path = folder / "checkpoint.pt"
            path.write_bytes(DAMAGES[i % 2](path.read_bytes(), chance))
            yield judged(lambda f=folder: train.load_checkpoint(f, experiment), lambda s: s and digest(s) in right)


# Numbers


POISONS = (math.nan, math.inf, -math.inf)
PLACES = ("x", "y", "weight", "running variance", "first moment", "second moment", "loss", "psnr")


def poisons(n):
    """One number of a run becomes NaN or infinite in the second epoch; it has to stop, its last checkpoint finite."""
    for i in range(n):
        experiment, place, value = tiny(i, epochs=3), PLACES[i % len(PLACES)], POISONS[i % 3]
        with fresh_root():
            start = time.perf_counter()
            try:
                with poisoned(place, value), quiet():
                    train.train(experiment)
                outcome = SILENT
            except TrainingError as error:
                state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
                good = state and len(state["history"]) == 1 and "\n" not in str(error) and is_finite(state)
                outcome = RECOVERED if good else SILENT
            except Exception:
                outcome = LOUD
            yield outcome, time.perf_counter() - start


def is_finite(state: dict) -> bool:
    moments = [t for slot in state["optimizer"]["state"].values() for t in slot.values()]
    return all(torch.isfinite(t).all() for t in (*state["network"].values(), *moments))


class poisoned:
    """While this holds, the second epoch of a run has a bad number in that place."""

    def __init__(self, place, value):
        self.place, self.value = place, value

    def __enter__(self):
        self.kept = train.train_epoch, train.validate, train.CHECKPOINT_SECONDS
        epochs, place, value = [], self.place, self.value
        run_epoch, validate, _ = self.kept

        def epoch_with_poison(step, epoch, *rest):
            epochs.append(epoch)
            draw = step.draw

            def draw_poison():
                x, y = draw()
                if epoch == 1 and place in "xy":
                    (x if place == "x" else y)[3, 0, 5, 5] = value
                return x, y

            step.draw = draw_poison
            loss = run_epoch(step, epoch, *rest)
            step.draw = draw
            if epoch == 1:
                with torch.no_grad():
                    self.spoil(step)
            return value if epoch == 1 and place == "loss" else loss

        def validate_with_poison(*arguments):
            scores = validate(*arguments)
            return [*scores[:4], value] if epochs[-1] == 1 and place == "psnr" else scores

        train.train_epoch, train.validate, train.CHECKPOINT_SECONDS = epoch_with_poison, validate_with_poison, 0

    def spoil(self, step):
        moments = list(step.optimizer.state.values())[2]
        tensors = {
            "weight": list(step.network.parameters())[3],
            "running variance": next(b for name, b in step.network.named_buffers() if "running_var" in name),
            "first moment": moments["exp_avg"],
            "second moment": moments["exp_avg_sq"],
        }
        if self.place in tensors:
            tensors[self.place][(0,) * tensors[self.place].dim()] = self.value

    def __exit__(self, *_):
        train.train_epoch, train.validate, train.CHECKPOINT_SECONDS = self.kept


def psnr_vectors(n):
    """PSNR of all sizes, also negative, infinite and NaN: counts are whole, not negative, and sum to the batch."""
    chance = np.random.default_rng(3)
    odd = [math.nan, math.inf, -math.inf, 0.0, -1e9, 1e300, 5e-324]
    for i in range(n):
        psnr = chance.normal(25, 10 ** chance.uniform(-3, 4), 5).tolist()
        if i % 3 == 0:
            psnr[chance.integers(5)] = odd[i // 3 % len(odd)]
        size = int(chance.integers(1, 300))

        def right(counts, size=size):
            return counts.dtype.kind == "i" and (counts >= 0).all() and (counts.sum(1) == size).all()

        yield judged(lambda p=psnr, size=size: schedules.allocate_batches(weights(p), size, 4)[0], right)


def weights(psnr):
    return schedules.on_demand(0.5, psnr, 5)


# Signals


def command(done, arguments):
    """The command line; `done` counts whole epochs."""
    check = train.finite

    def counted(entry, network, optimizer, epoch):
        check(entry, network, optimizer, epoch)
        done.value = epoch + 1

    train.finite = counted
    raise SystemExit(main(arguments))


def signals(n):
    """SIGINT and SIGTERM in turn at random times, no checkpoint due: status 130 or 143, and no whole epoch lost."""
    chance = random.Random(4)
    experiment = tiny(6, epochs=9999)  # on-demand
    numbers = [f"--set={name}={value}" for name, value in experiment.overrides.items()]
    arguments = ["train", "--task", experiment.task, "--profile", "smoke", "--device", "cpu", *numbers]
    for i in range(n):
        sent, status = ((signal.SIGINT, 130), (signal.SIGTERM, 143))[i % 2]
        with fresh_root():
            done = number("l")
            child = in_a_child(command, arguments, shared=done)
            wanted = chance.randrange(1, 6)
            while child.is_alive() and done.value < wanted:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.05))
            start = time.perf_counter()
            os.kill(child.pid, sent)
            ending = ended(child)
            seconds, epochs = time.perf_counter() - start, done.value
            state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
            kept = len(state["history"]) if state else 0
            # The last epoch counts as whole a moment before it is kept.
            outcome = SILENT if kept < epochs - 1 else RECOVERED if ending == status else LOUD
            yield outcome, seconds


# A full disk


def fill_disk(saved, experiment, after, room, check_first):
    """After some saves the disk takes `room` bytes more of a file, known beforehand or found out by writing."""
    train.CHECKPOINT_SECONDS = 0
    save = train.save_checkpoint

    def counted(folder, snapshot, *name):
        if saved.value == after:
            if check_first:
                paths.shutil.disk_usage = lambda _: shutil._ntuple_diskusage(10**9, 10**9 - room, room)
            else:
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        save(folder, snapshot, *name)
        saved.value += not name  # a trunk is no checkpoint

    train.save_checkpoint = counted
    try:
        results.run_or_load(experiment, "cpu")
    except OSError as error:
        known = isinstance(error, paths.OneLine) or error.errno in (errno.EFBIG, errno.ENOSPC)
        raise SystemExit(2 if known and "\n" not in str(error) else 1) from None


def full_disks(n):
    """The disk is full at a random save: one line, the last save is there, and with room the run ends the same."""
    chance = random.Random(5)
    for i in range(n):
        experiment, after = tiny(i), chance.randrange(1, 4)
        expected = uninterrupted(experiment)
        size = len(payload_of(state_of(0, experiment)))
        with fresh_root():
            saved = number("l")
            child = in_a_child(fill_disk, experiment, after, chance.randrange(size), i % 2 == 0, shared=saved)
            ending = ended(child)
            start = time.perf_counter()
            with quiet():
                state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
            if not state or len(state["history"]) < saved.value:
                yield SILENT, time.perf_counter() - start
            elif ending != 2:
                yield LOUD, time.perf_counter() - start
            else:
                yield judged(lambda e=experiment: run(e), lambda answer, expected=expected: answer == expected)


ROWS = {
    "kills": Row(
        "Exact resume",
        "kill -9 at a random time, every other one inside a save, for all nine schedules",
        50,
        kills,
        "Adam's moments are not put back",
        (
            Edit(
                "odl.train.put_back",
                'optimizer.load_state_dict(state["optimizer"] | {"param_groups": settings})',
                "pass",
            ),
        ),
        3,
    ),
    "saves": Row(
        "A checkpoint is old or new, never half",
        "kill -9 at a random instant of a save",
        200,
        kills_inside_saves,
        "files are written in place instead of renamed",
        (DIRECT,),
        12,
    ),
    "checkpoints": Row(
        "A damaged checkpoint is never used",
        "200 bits turned, 200 files cut off",
        400,
        damaged_checkpoints,
        "the SHA-256 of a checkpoint is not compared",
        (Edit("odl.train.read_checkpoint", "hashlib.sha256(content[32:]).digest() != content[:32]", "False"),),
        20,
    ),
    "numbers": Row(
        "A number that is not finite stops the run",
        "NaN or ±∞ in images, weights, Adam's moments, loss or PSNR",
        40,
        poisons,
        "nothing is checked after an epoch",
        (Edit("odl.train.fit", "finite(entry, state.network, state.optimizer, len(state.history))", "pass"),),
        8,
    ),
    "allocation": Row(
        "The allocation is whole, not negative, and sums to the batch",
        "random PSNR, also negative, infinite and NaN",
        10_000,
        psnr_vectors,
        "what rounding leaves over is not given out",
        (Edit("odl.schedules.allocate_batches", "row[extra] += 1", "pass"),),
        500,
    ),
    "signals": Row(
        "Ctrl-C and SIGTERM keep every whole epoch",
        "SIGINT or SIGTERM at a random time, no checkpoint due",
        20,
        signals,
        "no checkpoint on the way out",
        (Edit("odl.train.fit", "        if snapshot:\n", "        if False:\n"),),
        2,
    ),
    "disk": Row(
        "A full disk loses nothing",
        "the disk is full at a random save, at a random byte",
        20,
        full_disks,
        "files are written in place, and no checkpoint is kept",
        (DIRECT, Edit("odl.train.save_checkpoint", 'path.replace(folder / "previous.pt")', "pass")),
        2,
    ),
}
