"""The same eight faults for three ways to train: deepinv's Trainer, a plain torch.save loop, and odl.

Each is asked for what its user would expect: to go on as if nothing had happened, or to say what is wrong.
"""

import hashlib
import io
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from unittest import mock

import deepinv
import torch
from tqdm.auto import tqdm

from odl import learn, results
from odl.experiment import Experiment
from odl.machine import checkpoint, files
from odl.network import EncoderDecoder, initialize

from . import campaign
from .campaign import LOUD, RECOVERED, SILENT, digest, ended, flipped, fresh_root, in_a_child, number, quiet, truncated
from .files import touch
from .training import payload_of

EPOCHS, BATCHES, BATCH, WIDTH = 4, 2, 20, 8


def photographs(bad=False) -> torch.Tensor:
    """(images, 3, 64, 64) in [0, 1]; with one number that is NaN where `bad`."""
    x = torch.rand(BATCHES * BATCH, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    x[3, 0, 5, 5] *= torch.nan if bad else 1
    return x


# Ways to train: `run(folder, bad, epoch_done)` trains or goes on, and returns the network.


def network() -> EncoderDecoder:
    """With the same initial weights every time."""
    return initialize(EncoderDecoder(3, WIDTH), torch.Generator().manual_seed(0))


def plain(folder: Path, bad, epoch_done):
    """What one would write first: torch.save once an epoch, torch.load at the start."""
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    path, first = folder / "checkpoint.pt", 0
    if path.exists():
        state = torch.load(path)
        model.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
    x = photographs(bad)
    for epoch in range(first, EPOCHS):
        for part in x[torch.randperm(len(x))].split(BATCH):
            loss = (model(part + 0.1 * torch.randn_like(part)) - part).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save({"network": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, path)
        epoch_done(epoch + 1)
    return model


class Model(torch.nn.Module):
    """The network as deepinv calls it."""

    def __init__(self):
        super().__init__()
        self.network = network()

    def forward(self, y, physics, **_):
        return self.network(y)


def with_deepinv(folder: Path, bad, epoch_done):
    """deepinv's Trainer with its checkpoints, given its newest one at the start."""
    if any(folder.iterdir()):
        time.sleep(1)  # it names its folder by the second, and nobody starts again within one
    torch.manual_seed(0)

    class Counting(deepinv.Trainer):
        def save_model(self, filename, epoch, state=None):
            super().save_model(filename, epoch, state)
            epoch_done(epoch + 1)

    saved, model = checkpoints(folder), Model()
    trainer = Counting(
        model,
        deepinv.physics.Denoising(deepinv.physics.GaussianNoise(0.1)),
        torch.optim.Adam(model.parameters(), 2e-3),
        torch.utils.data.DataLoader(list(photographs(bad)), BATCH, shuffle=True),
        **{"epochs": EPOCHS, "online_measurements": True, "device": "cpu", "save_path": folder},
        **{"ckpt_pretrained": saved[-1] if saved else None, "verbose": False, "show_progress_bar": False},
    )
    trainer.train()
    return model


def ours(folder: Path, bad, epoch_done):
    """odl's training of the same network, with a checkpoint every epoch."""
    sizes = {"width": WIDTH, "epochs": EPOCHS, "iterations": BATCHES, "batch_size": BATCH, "validation_images": 4}
    experiment = Experiment.of("deblur", profile="smoke", **sizes)
    save, draw = checkpoint.save_checkpoint, learn.Step.draw

    def saved(folder, snapshot, *name):
        save(folder, snapshot, *name)
        epoch_done(len(checkpoint.load_checkpoint(folder, experiment)["history"]))

    def poisoned(step, *which):
        x, y = draw(step, *which)
        return (x * torch.nan if bad else x), y

    with (
        mock.patch.object(checkpoint, "save_checkpoint", saved),
        mock.patch.object(checkpoint, "CHECKPOINT_SECONDS", 0),
        mock.patch.object(learn.Step, "draw", poisoned),
    ):
        return results.train(experiment).network


WAYS = {"odl": ours, "deepinv Trainer": with_deepinv, "torch.save loop": plain}


# What becomes of a fault


def checkpoints(folder: Path) -> list[Path]:
    """Newest last."""
    names = [*folder.rglob("checkpoint.pt"), *files.runs().rglob("checkpoint.pt"), *folder.rglob("ckp_*.pth.tar")]
    return sorted(names, key=lambda path: path.stat().st_mtime_ns)


STRIKES = {"kill -9": signal.SIGKILL, "SIGTERM": signal.SIGTERM}


def dying_inside(save, epochs, when):
    """`torch.save` in pieces, as a disk does it; the process is killed after the first half of one."""

    def slowly(state, place, **rest):
        if isinstance(place, io.BytesIO):
            return save(state, place, **rest)
        content = payload_of(state, **rest)
        with open(place, "wb", buffering=0) as file:
            file.write(content[: len(content) // 2])
            if epochs.value >= when:
                os.kill(os.getpid(), signal.SIGKILL)
            file.write(content[len(content) // 2 :])

    return slowly


def run_in_child(shared, way, folder, bad, action, when, delay):
    """Train; `action` strikes after `when` epochs are saved, or at a call of `os`."""
    epochs, code = shared
    if action == "kill -9 inside a save":
        torch.save = dying_inside(torch.save, epochs, when)
        if WAYS[way] is ours:
            campaign.deadly("fsync", when + 1, "before")

    def epoch_done(n):
        epochs.value = n
        if action == "disk full" and n >= when:  # deepinv does not save its first epoch
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        if action in STRIKES and n >= when:
            threading.Timer(delay, os.kill, (os.getpid(), STRIKES[action])).start()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    try:
        weights = dict(WAYS[way](folder, bad, epoch_done).state_dict())
        assert bad or all(part.isfinite().all() for part in weights.values())
        code.value = digest(weights)[:15].encode()
    except Exception as error:
        clear = isinstance(error, files.OneLine) or getattr(error, "filename", None)  # it names the file
        code.value = b"one line" if clear else b"traceback"
        sys.exit(1)


def attempt(way, folder, bad=False, action="", when=0, delay=0.0) -> tuple[int, str]:
    """Exit status, and what it said."""
    shared = number("l"), campaign.PROCESSES.Array("c", 16, lock=False)
    status = ended(in_a_child(run_in_child, way, folder, bad, action, when, delay, shared=shared))
    return status, shared[1].value.decode()


def outcome(way: str, fault: str, chance: random.Random, expected: str) -> str:
    """Recovered: the end is right, or one line says what is wrong; silent: a wrong end without a word; else loud."""
    with fresh_root() as root, quiet():
        folder, bad, mark = root / "training", fault == "NaN in the images", root / "mark"
        folder.mkdir()
        if fault in DAMAGES:  # to the newest of two checkpoints
            attempt(way, folder, action="kill -9", when=2)
            path = checkpoints(folder)[-1]
            path.write_bytes(DAMAGES[fault](path.read_bytes(), chance, way, mark))
        elif not bad:
            when, delay = chance.randrange(1, EPOCHS - 1), chance.uniform(0, 0.01)
            assert attempt(way, folder, False, fault, when, delay)[0] != 0, f"{way}, {fault}: not struck"
        status, said = attempt(way, folder, bad)
        right = status == 0 and said == expected and not bad or status != 0 and said == "one line"
        return SILENT if mark.exists() or status == 0 and not right else RECOVERED if right else LOUD


def hostile(content, chance, way, mark) -> bytes:
    """A checkpoint that runs code; with a good hash, where there is one."""
    content = payload_of({"history": touch(mark), "epoch": 1, "state_dict": {}, "network": {}})
    return (hashlib.sha256(content).digest() if way == "odl" else b"") + content


DAMAGES = {
    "a bit turned": lambda content, chance, *_: flipped(content, chance),
    "cut off": lambda content, chance, *_: truncated(content, chance),
    "made to run code": hostile,
}
FAULTS = ("kill -9", "kill -9 inside a save", *DAMAGES, "NaN in the images", "disk full", "SIGTERM")


def clean(way: str) -> str:
    """How a run ends that no fault meets."""
    with fresh_root() as root, quiet():
        (root / "training").mkdir()
        status, said = attempt(way, root / "training")
        assert status == 0, f"{way} does not train"
        return said


def compare(n: int) -> list[dict]:
    """A row per fault: of n injections, how many each way recovered from, how many were loud, how many silent."""
    expected = {way: clean(way) for way in WAYS}
    assert expected == {way: clean(way) for way in WAYS}, "one does not train alike twice"
    rows = [{"fault": fault} | {way: dict.fromkeys((RECOVERED, LOUD, SILENT), 0) for way in WAYS} for fault in FAULTS]
    for row in tqdm(rows, desc="comparison", leave=False, disable=None):
        for way in WAYS:
            chance = random.Random(row["fault"])
            for _ in range(n):
                row[way][outcome(way, row["fault"], chance, expected[way])] += 1
    return rows
