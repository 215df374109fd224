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

import deepinv
import torch
from tqdm.auto import tqdm

from odl import paths, train
from odl.experiment import Experiment
from odl.network import EncoderDecoder, initialize

from .campaign import (
    LOUD,
    PATIENCE,
    PROCESSES,
    RECOVERED,
    SILENT,
    deadly,
    digest,
    ended,
    flipped,
    fresh_root,
    in_a_child,
    number,
    quiet,
    truncated,
)
from .files import touch

EPOCHS, BATCHES, BATCH, WIDTH = 4, 2, 20, 8


def photographs(bad=False) -> torch.Tensor:
    """(batches, images, 3, 64, 64) in [0, 1]; with one number that is NaN where `bad`."""
    x = torch.rand(BATCHES * BATCH, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    if bad:
        x[3, 0, 5, 5] = torch.nan
    return x


# Ways to train: `run(folder, bad, epoch_done)` trains or goes on, and answers the weights.


def network() -> EncoderDecoder:
    """With the same initial weights every time."""
    return initialize(EncoderDecoder(3, WIDTH), torch.Generator().manual_seed(0))


def plain(folder: Path, bad=False, epoch_done=lambda n: None) -> dict:
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
    return dict(model.state_dict())


def with_deepinv(folder: Path, bad=False, epoch_done=lambda n: None) -> dict:
    """deepinv's Trainer with its checkpoints, given its newest one at the start."""
    if any(folder.iterdir()):
        time.sleep(1)  # it names its folder by the second, and nobody starts again within one
    torch.manual_seed(0)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network()

        def forward(self, y, physics, **_):
            return self.network(y)

    class Images(torch.utils.data.Dataset):
        x = photographs(bad)

        def __len__(self):
            return len(self.x)

        def __getitem__(self, i):
            return self.x[i]

    class Counting(deepinv.Trainer):
        def save_model(self, filename, epoch, state=None):
            super().save_model(filename, epoch, state)
            epoch_done(epoch + 1)

    saved = sorted(folder.rglob("ckp_*.pth.tar"), key=lambda path: path.stat().st_mtime_ns)
    model = Model()
    trainer = Counting(
        model,
        deepinv.physics.Denoising(deepinv.physics.GaussianNoise(0.1)),
        torch.optim.Adam(model.parameters(), 2e-3),
        torch.utils.data.DataLoader(Images(), BATCH, shuffle=True),
        epochs=EPOCHS,
        online_measurements=True,
        device="cpu",
        save_path=folder,
        ckpt_pretrained=saved[-1] if saved else None,
        verbose=False,
        show_progress_bar=False,
    )
    trainer.train()
    return dict(model.state_dict())


def ours(folder: Path, bad=False, epoch_done=lambda n: None) -> dict:
    """odl's training of the same network, with a checkpoint every epoch."""
    sizes = {"width": WIDTH, "epochs": EPOCHS, "iterations": BATCHES, "batch_size": BATCH, "validation_images": 4}
    experiment = Experiment.of("deblur", profile="smoke", **sizes)
    save, run_epoch, train.CHECKPOINT_SECONDS = train.save_checkpoint, train.train_epoch, 0

    def saved(*arguments):
        save(*arguments)
        epoch_done(train.load_checkpoint(arguments[0], experiment)["history"].__len__())

    def poisoned(step, epoch, *rest):
        draw = step.draw
        step.draw = lambda: (draw()[0] * torch.nan, draw()[1]) if bad else draw()
        return run_epoch(step, epoch, *rest)

    train.save_checkpoint, train.train_epoch = saved, poisoned
    try:
        model = train.train(experiment).network
    finally:
        train.save_checkpoint, train.train_epoch = save, run_epoch
    return dict(model.state_dict())


WAYS = {"odl": ours, "deepinv Trainer": with_deepinv, "torch.save loop": plain}


# What becomes of a fault


def checkpoints(folder: Path) -> list[Path]:
    """Newest last."""
    names = [*folder.rglob("checkpoint.pt"), *paths.runs().rglob("checkpoint.pt"), *folder.rglob("ckp_*.pth.tar")]
    return sorted(set(names), key=lambda path: path.stat().st_mtime_ns)


STRIKES = {"kill -9": signal.SIGKILL, "SIGTERM": signal.SIGTERM}


def run_in_child(shared, way, folder, bad, action, when, delay):
    """Train; `action` strikes after `when` epochs are saved, or at a call of `os`."""
    epochs, code = shared
    if action == "kill -9 inside a save":
        torch_save = torch.save

        def slowly(state, place, **rest):
            """In pieces, as a disk does it; killed after the first half of one."""
            buffer = io.BytesIO()
            torch_save(state, buffer, **rest)
            if isinstance(place, io.BytesIO):
                return place.write(buffer.getvalue())
            with open(place, "wb") as file:
                file.write(buffer.getvalue()[: buffer.tell() // 2])
                file.flush()
                if epochs.value >= when:
                    os.kill(os.getpid(), signal.SIGKILL)
                file.write(buffer.getvalue()[buffer.tell() // 2 :])

        torch.save = slowly
        if WAYS[way] is ours:
            deadly("fsync", when + 1, "before")

    def epoch_done(n):
        epochs.value = n
        if action == "disk full" and n >= when:  # deepinv does not save its first epoch
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        if action in STRIKES and n >= when:
            threading.Timer(delay, os.kill, (os.getpid(), STRIKES[action])).start()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weights = WAYS[way](folder, bad, epoch_done)
            assert bad or all(part.isfinite().all() for part in weights.values())
            code.value = digest(weights)[:15].encode()
    except Exception as error:
        clear = isinstance(error, paths.OneLine) or getattr(error, "filename", None)  # it names the file
        code.value = b"one line" if clear else b"traceback"
        sys.exit(1)


def attempt(way, folder, bad=False, action="", when=0, delay=0.0) -> tuple[int, str]:
    """Exit status, and what it said."""
    epochs, code = number("l"), PROCESSES.Array("c", 16, lock=False)
    child = in_a_child(run_in_child, way, folder, bad, action, when, delay, shared=(epochs, code))
    return ended(child, PATIENCE), code.value.decode()


def outcome(way: str, fault: str, chance: random.Random, expected: str) -> str:
    """Recovered: the end is right, or one line says what is wrong; silent: a wrong end without a word; else loud."""
    with fresh_root() as root, quiet():
        folder, when = root / "training", chance.randrange(1, EPOCHS - 1)
        folder.mkdir()
        if fault == "NaN in the images":
            status, said = attempt(way, folder, bad=True)
            return SILENT if status == 0 else RECOVERED if said == "one line" else LOUD
        if fault in ("a bit turned", "cut off", "made to run code"):
            return with_bad_checkpoint(way, folder, fault, chance, expected)
        struck, _ = attempt(way, folder, False, fault, when, chance.uniform(0, 0.01))
        assert struck != 0, f"{way}, {fault}: not struck"
        return ending(*attempt(way, folder), expected)


def ending(status: int, said: str, expected: str) -> str:
    if status == 0:
        return RECOVERED if said == expected[:15] else SILENT
    return RECOVERED if said == "one line" else LOUD


def with_bad_checkpoint(way, folder, fault, chance, expected) -> str:
    """A run of which two epochs are saved, and the newest checkpoint then harmed."""
    attempt(way, folder, action="kill -9", when=2)
    path, mark = checkpoints(folder)[-1], folder / "mark"
    content = path.read_bytes()
    if fault == "made to run code":
        buffer = io.BytesIO()
        torch.save({"history": touch(mark), "epoch": 1, "state_dict": {}, "network": {}}, buffer)
        seal = hashlib.sha256(buffer.getvalue()).digest() if way == "odl" else b""
        path.write_bytes(seal + buffer.getvalue())
    else:
        path.write_bytes({"a bit turned": flipped, "cut off": truncated}[fault](content, chance))
    status, said = attempt(way, folder)
    return SILENT if mark.exists() else ending(status, said, expected)


FAULTS = (
    "kill -9",
    "kill -9 inside a save",
    "a bit turned",
    "cut off",
    "made to run code",
    "NaN in the images",
    "disk full",
    "SIGTERM",
)


def clean(way: str) -> str:
    """How a run ends that no fault meets."""
    with fresh_root() as root, quiet():
        (root / "training").mkdir()
        status, said = attempt(way, root / "training")
        assert status == 0, f"{way} does not train"
        return said


def compare(n: int) -> list[dict]:
    """A row per fault: of n injections, how many each way recovered from, how many were loud, how many silent."""
    expected = {}
    for way in WAYS:
        expected[way], again = clean(way), clean(way)
        assert expected[way] == again, f"{way} does not train alike twice"
    rows = []
    with tqdm(total=n * len(FAULTS) * len(WAYS), desc="comparison", leave=False, disable=None) as bar:
        for fault in FAULTS:
            row = {"fault": fault}
            for way in WAYS:
                chance = random.Random(fault)
                found = []
                for _ in range(n):
                    found.append(outcome(way, fault, chance, expected[way]))
                    bar.update()
                row[way] = {kind: found.count(kind) for kind in (RECOVERED, LOUD, SILENT)}
            rows.append(row)
    return rows
