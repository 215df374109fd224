"""Faults of a training run: kills, damaged checkpoints, signals, a full disk."""

import errno
import io
import os
import resource
import shutil
import signal
import time
from functools import cache

import torch

from companion.cli import main
from companion.disk import files
from companion.training import checkpoint, results
from odl import PROTOCOL
from odl.corruptions import TASKS
from odl.experiment import Experiment
from odl.learn import build
from odl.parameters import OneLine
from odl.schedules import SCHEDULES

from . import campaign
from .campaign import LOUD, RECOVERED, SILENT, digest, ended, in_a_child, judged, killed, number, row

TINY = {"profile": "smoke", "width": 8, "epochs": 5, "iterations": 2, "batch_size": 20}
TINY |= {"validation_images": 4, "test_images": 4}


def tiny(i: int = 0, **numbers) -> Experiment:
    """One of the schedules, each with a task."""
    names = list(SCHEDULES)[: list(SCHEDULES).index("level_1")]  # no other run comes before these
    k = i % len(names)
    return Experiment.of(list(TASKS)[k % len(TASKS)], schedule=names[k], **(TINY | numbers))


def saved_by(experiment) -> dict | None:
    """The state in a run's checkpoint, but for how long it took."""
    state = checkpoint.load_checkpoint(files.runs() / experiment.run_id, experiment)
    return state and {key: value for key, value in state.items() if key != "seconds"}


def run(experiment) -> str:
    """Digest of everything a finished run leaves: weights, Adam's state, history, evaluation."""
    measured = results.run_or_load(experiment, "cpu")
    kept = (files.runs() / experiment.run_id / "weights.safetensors").read_bytes()
    return digest([saved_by(experiment), measured.history, measured.evaluation.to_dict("list"), kept.hex()])


@cache
def uninterrupted(experiment) -> str:
    """The digest of the run in one piece, kept."""
    with campaign.fresh_root():
        return run(experiment)


def train_in_child(share, experiment, death=None):
    """Checkpoint every epoch; `death` is a call of `os` at which the process dies."""
    checkpoint.CHECKPOINT_SECONDS = 0
    if death:
        campaign.deadly(*death)
    results.run_or_load(experiment, "cpu", lambda done: setattr(share, "value", done))


# A save calls fsync once and replace once, where a file was there already twice.
DEATHS = [("replace", k, when) for k in range(1, 8) for when in ("before", "after")]
DEATHS += [("fsync", k, when) for k in range(1, 5) for when in ("before", "after")]


@row(50, 3, "Exact resume", "kill -9 at a random time, every other one inside a save, for every schedule of the paper")
def kills(i, chance):
    experiment = tiny(i)
    expected = uninterrupted(experiment)
    while not kill_once(experiment, chance, inside=i % 2):
        shutil.rmtree(files.runs(), ignore_errors=True)  # it had ended before: from the start again
        shutil.rmtree(files.results(), ignore_errors=True)
    return judged(lambda: run(experiment), lambda found: found == expected)


def kill_once(experiment, chance, inside: bool) -> bool:
    share = number()
    child = in_a_child(train_in_child, experiment, chance.choice(DEATHS) if inside else None, shared=share)
    if inside:
        return ended(child) == -signal.SIGKILL
    wait_for(child, share, chance.uniform(0.05, 0.9))
    time.sleep(chance.uniform(0, 0.02))
    return killed(child)


def wait_for(child, share, wanted) -> None:
    while child.is_alive() and share.value < wanted:
        time.sleep(0.002)


@cache
def state_of(k: int, experiment) -> dict:
    """A checkpoint's state that says it is number k."""
    network, optimizer = build(experiment, "cpu")
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "history": [k]}
    return state | {"seconds": [1.0, 2.0], "experiment": experiment.asdict() | {"protocol": PROTOCOL}}


@row(400, 20, "A damaged checkpoint is never used", "200 bits turned, 200 files cut off")
def checkpoints(i, chance):
    experiment, folder = tiny(), files.root()
    states = [state_of(k, experiment) for k in (1, 2)]
    for state in states:
        checkpoint.save_checkpoint(folder, state)
    path = folder / "checkpoint.pt"
    path.write_bytes(campaign.DAMAGES[i % 2](path.read_bytes(), chance))
    right = [digest(state) for state in states]
    return judged(
        lambda: checkpoint.load_checkpoint(folder, experiment), lambda state: state and digest(state) in right
    )


def command(done, arguments):
    """The command line; `done` counts whole epochs."""
    check = checkpoint.finite

    def counted(entry, network, optimizer, epoch):
        check(entry, network, optimizer, epoch)
        done.value = epoch + 1

    checkpoint.finite = counted
    raise SystemExit(main(arguments))


@row(20, 2, "Ctrl-C and SIGTERM keep every whole epoch", "SIGINT or SIGTERM at a random time, no checkpoint due")
def signals(i, chance):
    experiment, done = tiny(6, epochs=9999), number("l")  # on-demand
    numbers = [f"--set={name}={value}" for name, value in experiment.overrides.items()]
    arguments = ["train", "--task", experiment.task, "--profile", "smoke", "--device", "cpu", *numbers]
    child = in_a_child(command, arguments, shared=done)
    wait_for(child, done, chance.randrange(1, 6))
    time.sleep(chance.uniform(0, 0.05))
    start, (sent, status) = time.perf_counter(), ((signal.SIGINT, 130), (signal.SIGTERM, 143))[i % 2]
    os.kill(child.pid, sent)
    ending = ended(child)
    seconds, state = time.perf_counter() - start, saved_by(experiment)
    # The last epoch counts as whole a moment before it is kept.
    lost = (len(state["history"]) if state else 0) < done.value - 1
    return SILENT if lost else RECOVERED if ending == status else LOUD, seconds


def fill_disk(saved, experiment, after, room, check_first):
    """After some saves the disk takes `room` bytes more of a file, known beforehand or found out by writing."""
    checkpoint.CHECKPOINT_SECONDS, save = 0, checkpoint.save_checkpoint

    def counted(folder, snapshot):
        if saved.value == after and check_first:
            files.shutil.disk_usage = lambda _: shutil._ntuple_diskusage(10**9, 10**9 - room, room)
        elif saved.value == after:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        save(folder, snapshot)
        saved.value += 1

    checkpoint.save_checkpoint = counted
    try:
        results.run_or_load(experiment, "cpu")
    except OSError as error:
        known = isinstance(error, OneLine) or error.errno in (errno.EFBIG, errno.ENOSPC)
        raise SystemExit(2 if known and "\n" not in str(error) else 1) from None


@row(20, 2, "A full disk loses nothing", "the disk is full at a random save, at a random byte")
def disk(i, chance):
    experiment, after, saved = tiny(i), chance.randrange(1, 4), number("l")
    expected = uninterrupted(experiment)
    torch.save(state_of(0, experiment), whole := io.BytesIO())
    room = chance.randrange(len(whole.getvalue()))
    ending = ended(in_a_child(fill_disk, experiment, after, room, i % 2 == 0, shared=saved))
    start, state = time.perf_counter(), saved_by(experiment)
    if not state or len(state["history"]) < saved.value:
        return SILENT, time.perf_counter() - start
    if ending != 2:
        return LOUD, time.perf_counter() - start
    return judged(lambda: run(experiment), lambda found: found == expected)
