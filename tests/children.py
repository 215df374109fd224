"""Processes that a test starts, waits for, or kills; a server that has imported the code makes one in milliseconds."""

import multiprocessing
import os
import signal
import sys

import torch

from companion.cli import main
from companion.training import checkpoint, results

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["companion.runs.sweep", "companion.claims.scorecard", "torch._dynamo", "children"])


def in_a_child(target, *arguments):
    """Start `target(*arguments)` in a process of its own, with this one's environment; it prints nothing."""
    child = SERVER.Process(target=quietly, args=(dict(os.environ), target, arguments))
    child.start()
    return child


def quietly(environment: dict, target, arguments) -> None:
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    target(*arguments)


def ended(child, seconds: float = 120) -> int | None:
    """The exit status of a child; one that hangs is killed, and its status is None."""
    child.join(seconds)
    hangs = child.is_alive()
    child.kill()
    child.join()
    return None if hangs else child.exitcode


def train(experiment, steps, death=None) -> None:
    """Train with a checkpoint after every epoch, and count the steps; `death` is a call of `os` that kills."""
    checkpoint.CHECKPOINT_SECONDS = 0
    if death:
        deadly(*death)
    results.train(experiment, progress=lambda _: setattr(steps, "value", steps.value + 1))


def command(arguments: list[str], epochs) -> None:
    """Run `python -m odl`, and count the whole epochs that it trains."""
    add = checkpoint.Log.add

    def counted(log, entry):
        add(log, entry)
        epochs.value += 1

    checkpoint.Log.add = counted
    raise SystemExit(main(arguments))


def deadly(name: str, count: int, after: bool) -> None:
    """From now on this process dies at the given call of a function of `os`, before or after it."""
    call, calls = getattr(os, name), iter(range(1, count + 1))

    def dying(*arguments):
        last = next(calls) == count
        if last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        returned = call(*arguments)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return returned

    setattr(os, name, dying)
