"""Checkpoints, of which the previous one is kept, and trained weights. Reading them executes nothing."""

import copy
import hashlib
import io
import json
import math
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save

from companion.disk import files
from companion.training.measurement import identity
from odl import PROTOCOL
from odl.parameters import OneLine

CHECKPOINT_SECONDS = 60


@contextmanager
def resumed(experiment, progress=None):
    """Yield the `Log` of a run, which no other process trains meanwhile; afterwards its last epoch is on disk."""
    folder = files.runs() / experiment.run_id
    files.need_writable(folder)
    with files.locked(files.runs() / "locks" / f"{experiment.run_id.replace('/', '-')}.lock", progress):
        for left_over in folder.glob(".*.tmp"):
            left_over.unlink()  # of a process that was killed while it wrote
        log = Log(experiment, folder)
        try:
            yield log
        finally:  # Ctrl-C, a deadline, a number that is not finite
            log.save()


class Log:
    """The record of a run: `history`, a dict for each epoch, and `seconds` of the clock and of the process."""

    def __init__(self, experiment, folder: Path):
        self.experiment, self.folder, self.snapshot = experiment, folder, None
        self.owner = owned(experiment)  # before the images are read: a folder may change meanwhile
        self.saved = load_checkpoint(folder, experiment)
        self.history, self.seconds = [], self.saved["seconds"] if self.saved else [0.0, 0.0]
        self.start = np.subtract(clocks(), self.seconds)

    def put_back(self, network, optimizer) -> None:
        """Set the network and its optimizer to the newest checkpoint, where there is one. Raises TrainingError."""
        self.network, self.optimizer, self.written = network, optimizer, time.monotonic()
        weights = sum(t.nbytes for t in network.state_dict().values())
        files.need_room(self.folder, 2 * 3 * weights)  # two checkpoints, of weights and Adam's two moments
        if not self.saved:
            return
        settings = optimizer.state_dict()["param_groups"]  # this device's own: a GPU keeps its state where a graph can
        try:
            network.load_state_dict(self.saved["network"])
            optimizer.load_state_dict(self.saved["optimizer"] | {"param_groups": settings})
        except Exception as error:  # a file made to harm raises anything
            reason = str(error).splitlines()[0]
            where = f"{self.folder}: the checkpoint does not fit the network"
            raise TrainingError(f"{where} ({reason}); delete it") from None
        self.history = self.saved["history"]

    def add(self, entry: dict) -> None:
        """Check an epoch and keep it; a checkpoint is written a minute after the last one, and at the end."""
        finite(entry, self.network, self.optimizer, len(self.history))
        self.history.append(entry)
        self.seconds = np.subtract(clocks(), self.start).tolist()
        now = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict(), "history": self.history}
        self.snapshot = copy.deepcopy(now) | {"experiment": self.owner, "seconds": self.seconds}
        if len(self.history) == self.experiment.epochs or time.monotonic() - self.written > CHECKPOINT_SECONDS:
            self.save()

    def save(self) -> None:
        """Write what is not yet written."""
        if self.snapshot:
            save_checkpoint(self.folder, self.snapshot)
            self.snapshot, self.written = None, time.monotonic()


def clocks() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


class TrainingError(OneLine, RuntimeError):
    """A number was not finite, or a checkpoint does not fit its network; the message is one line."""


def finite(entry: dict, network, optimizer, epoch: int) -> None:
    """Raise TrainingError when a number of an epoch, a weight or a moment of Adam is not finite."""
    moments = [t for slot in optimizer.state.values() for t in slot.values() if torch.is_tensor(t)]
    numbers = [t for t in (*network.state_dict().values(), *moments) if t.is_floating_point()]
    norms = torch.stack(torch._foreach_norm(numbers, math.inf))  # one question to a GPU
    if not (norms.isfinite().all() and np.isfinite([entry["loss"], *entry["psnr"]]).all()):
        where = f"loss {entry['loss']}, validation PSNR {entry['psnr']}, a weight or a moment of Adam"
        raise TrainingError(f"epoch {epoch + 1}: {where} is not finite; stopped")


def owned(experiment) -> dict:
    """Return what a checkpoint belongs to."""
    return identity(experiment) | {"protocol": PROTOCOL}


def owner_of(experiment) -> str:
    """Return the SHA-256 of what is `owned`; 25 and 25.0 are the same."""
    return hash_of_owner(owned(experiment))


def hash_of_owner(own: dict) -> str:
    """Return the same of what a result's file says that it belongs to."""
    known = {name: float(value) if isinstance(value, int) else value for name, value in own.items()}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def save_checkpoint(folder: Path, snapshot: dict) -> None:
    """Replace the checkpoint atomically, keeping the one before: SHA-256 of the payload, then the payload."""
    path, buffer = folder / "checkpoint.pt", io.BytesIO()
    torch.save(snapshot, buffer)
    if path.exists():
        path.replace(folder / "previous.pt")
    files.write_atomically(path, hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue())


def load_checkpoint(folder: Path, experiment) -> dict | None:
    """Return the newest whole checkpoint of this experiment and protocol, or None; name a damaged one."""
    for path in filter(Path.exists, (folder / "checkpoint.pt", folder / "previous.pt")):
        state = read_checkpoint(path)
        if state is None:
            print(f"{path}: damaged checkpoint, going back to the one before, or to the start where there is none")
            path.replace(path.with_suffix(".damaged"))  # else the next save would keep it as the previous one
        elif state["experiment"] == owned(experiment):
            return state
    return None


def read_checkpoint(path: Path) -> dict | None:
    """Return what a checkpoint holds, None if it is damaged or none of ours; execute nothing in it."""
    content = path.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    try:
        state = torch.load(io.BytesIO(content[32:]), map_location="cpu", weights_only=True)
        return {key: state[key] for key in ("network", "optimizer", "history", "experiment", "seconds")}
    except Exception:  # a file made to harm raises anything
        return None


# Trained weights, in files of safetensors


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors in a file; one that ships is checked against its manifest. Raises DamagedFile."""
    content = path.read_bytes()
    shipped = path.parent in (files.models(), files.shipped())
    if shipped and hashlib.sha256(content).hexdigest() != files.unseal(path.parent / "manifest.json").get(path.name):
        raise files.DamagedFile(f"{path}: its SHA-256 is not the one in manifest.json; fetch the file again")
    try:
        return load(content)
    except SafetensorError as error:
        reason = str(error).splitlines()[0]
        raise files.DamagedFile(f"{path}: not a whole file of safetensors ({reason}); delete it") from None


def encoded(weights: dict[str, torch.Tensor], owner: str) -> bytes:
    """Return a file of weights whose header names their owner."""
    return save(weights, {"owner": owner})


def owner_in(path: Path) -> str | None:
    """Return whose weights a file has; None where its header cannot be read, so that reading the weights says why."""
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
    except SafetensorError:
        return None
    return header.get("owner", "")
