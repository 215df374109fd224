"""What every row of the campaign shares: rows, outcomes, roots, processes that are killed."""

import atexit
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
from tqdm.auto import tqdm

from companion.data import download, sets
from odl.parameters import OneLine

MODULES = ["tests.faults.training", "tests.faults.files", "tests.faults.parameters"]
PRELOADED = ["companion.runs.sweep", "companion.claims.scorecard", "skimage.metrics", "torch._dynamo", *MODULES]
PROCESSES = multiprocessing.get_context("forkserver")  # a server with torch imported makes children in milliseconds
PROCESSES.set_forkserver_preload(PRELOADED)
RECOVERED, LOUD, SILENT = "recovered", "loud", "silent"
PATIENCE = 120  # seconds after which a process counts as hanging
ROWS: dict[str, SimpleNamespace] = {}


def row(injections: int, short: int, promise: str, fault: str):
    """Make a row of the table, named as the function is: `inject(i, chance)` returns an outcome and its seconds."""

    def add(inject):
        known = {"injections": injections, "short": short, "promise": promise, "fault": fault}
        ROWS[inject.__name__] = SimpleNamespace(inject=inject, **known)
        return inject

    return add


def measure(name: str, n: int) -> dict:
    """Inject n faults: how many of each outcome, and the worst recovery time."""
    ended(in_a_child(nothing))  # starting the server of processes is no part of a recovery
    outcomes, worst, start, chance = Counter(), 0.0, time.perf_counter(), random.Random(name)
    with tqdm(total=n, desc=name, leave=False, unit="fault", disable=None) as bar:
        for i in range(n):
            with fresh_root(), quiet():
                outcome, seconds = ROWS[name].inject(i, chance)
            outcomes[outcome] += 1
            worst = max(worst, seconds if outcome == RECOVERED else 0.0)
            bar.set_postfix(outcomes, refresh=False)
            bar.update()
    counts = {kind: outcomes[kind] for kind in (RECOVERED, LOUD, SILENT)}
    return {"injected": n} | counts | {"worst_seconds": worst, "seconds": time.perf_counter() - start}


def judged(act: Callable, right: Callable) -> tuple[str, float]:
    """Recovered when the answer is right or the error is one line for the user; silent when a wrong answer is given."""
    start = time.perf_counter()
    try:
        outcome = RECOVERED if right(act()) else SILENT
    except Exception as error:
        outcome = RECOVERED if isinstance(error, OneLine) and "\n" not in str(error) else LOUD
    return outcome, time.perf_counter() - start


@contextmanager
def quiet():
    """Without what the code prints: messages and progress bars of odl, in a campaign that has its own."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def flipped(content: bytes, chance: random.Random) -> bytes:
    """With one bit turned."""
    k = chance.randrange(len(content))
    return content[:k] + bytes([content[k] ^ 1 << chance.randrange(8)]) + content[k + 1 :]


def truncated(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


DAMAGES = (flipped, truncated)


def digest(value) -> str:
    """SHA-256 of nested dicts, lists, numbers and tensors, every bit of them."""

    def bits(tensor):
        return [str(tensor.dtype), *tensor.shape, tensor.contiguous().numpy().tobytes().hex()]

    return hashlib.sha256(json.dumps(value, sort_keys=True, default=bits).encode()).hexdigest()


@cache
def packed_demo() -> Path:
    """The demo photographs, packed once for all roots; they are kept until this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="odl-faults-")
    atexit.register(folder.cleanup)
    with rooted(folder.name), quiet():
        return download.prepare("demo")


@contextmanager
def rooted(folder):
    """ODL_ROOT is `folder`, and ODL_DATA is nowhere."""
    with mock.patch.dict(os.environ, ODL_ROOT=str(folder)):
        os.environ.pop("ODL_DATA", None)
        yield Path(folder)


@contextmanager
def fresh_root():
    """A root of its own, with the demo pack linked into it."""
    pack = packed_demo()
    with tempfile.TemporaryDirectory(prefix="odl-fault-") as folder, rooted(folder):
        sets.home("demo").mkdir(parents=True)
        (sets.home("demo") / pack.name).symlink_to(pack)
        yield Path(folder)


def files_below(folder: Path) -> set[str]:
    """Every file but locks, relative."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")}


def in_a_child(target: Callable, *arguments, shared=None):
    """Start `target(shared, *arguments)` in a process of its own, with the same root."""
    child = PROCESSES.Process(target=child_main, args=(dict(os.environ), target, shared, arguments))
    child.start()
    return child


def nothing(_):
    """A process that ends at once."""


def child_main(environment, target, shared, arguments):
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    target(shared, *arguments)


def number(kind="d", value=0):
    """A number shared with a child."""
    return PROCESSES.Value(kind, value, lock=False)


def ended(child, seconds=PATIENCE) -> int | None:
    """The exit status of a child, None where it hangs; such a child is killed."""
    child.join(seconds)
    return None if killed(child) else child.exitcode


def killed(child) -> bool:
    """kill -9; whether the child was still at work."""
    working = child.is_alive()
    child.kill()
    child.join()
    return working and child.exitcode == -signal.SIGKILL


def deadly(name: str, count: int, when: str) -> None:
    """From now on this process dies at the given call of a function of `os`, before or after it."""
    original, left = getattr(os, name), count

    def call(*arguments):
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        returned = original(*arguments)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return returned

    setattr(os, name, call)
