"""What training leaves: checkpoints, of which the previous one is kept, and weights. Reading them executes nothing."""

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
from companion.training.store import identity
from odl import PROTOCOL
from odl.parameters import OneLine

CHECKPOINT_SECONDS = 60


@contextmanager
def resumed(run):
    """The `Log` of a run, which no other process trains meanwhile; when left, its last whole epoch is on disk."""
    folder = files.runs() / run.run_id
    files.need_writable(folder)
    with files.locked(files.runs() / "locks" / f"{run.run_id.replace('/', '-')}.lock"):
        for left_over in folder.glob(".*.tmp"):
            left_over.unlink()  # of a process that was killed while it wrote
        log = Log(run, folder)
        try:
            yield log
        finally:  # Ctrl-C, a deadline, a number that is not finite
            log.save()


class Log:
    """What is kept of a run: `history`, a dict an epoch, and `seconds`, of the clock and of the processor."""

    def __init__(self, run, folder: Path):
        self.run, self.folder, self.snapshot = run, folder, None
        self.owner = owned(run)  # before the images are read: a folder may change meanwhile
        self.saved = load_checkpoint(folder, run)
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
        if len(self.history) == self.run.epochs or time.monotonic() - self.written > CHECKPOINT_SECONDS:
            self.save()

    def save(self) -> None:
        """Write what is not yet written."""
        if self.snapshot:
            save_checkpoint(self.folder, self.snapshot)
            self.snapshot, self.written = None, time.monotonic()


def clocks() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


class TrainingError(OneLine, RuntimeError):
    """A number was not finite; the message is one line."""


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
    """SHA-256 of what is `owned`; 25 and 25.0 are the same."""
    known = {name: float(value) if isinstance(value, int) else value for name, value in owned(experiment).items()}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def save_checkpoint(folder: Path, snapshot: dict) -> None:
    """Replace the checkpoint atomically, keeping the one before: SHA-256 of the payload, then the payload."""
    path, buffer = folder / "checkpoint.pt", io.BytesIO()
    torch.save(snapshot, buffer)
    if path.exists():
        path.replace(folder / "previous.pt")
    files.write_atomically(path, hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue())


def load_checkpoint(folder: Path, experiment) -> dict | None:
    """The newest whole checkpoint of this experiment and protocol, None without one; a damaged one is named."""
    for path in filter(Path.exists, (folder / "checkpoint.pt", folder / "previous.pt")):
        state = read_checkpoint(path)
        if state is None:
            print(f"{path}: damaged checkpoint, going back to the one before, or to the start where there is none")
            path.replace(path.with_suffix(".damaged"))  # else the next save would keep it as the previous one
        elif state["experiment"] == owned(experiment):
            return state
    return None


def read_checkpoint(path: Path) -> dict | None:
    """What a checkpoint holds, None where it is damaged or not one of ours; nothing in it is executed."""
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
    """Return the tensors in a file of safetensors, read once.

    They are checked against the manifest where they ship, else against the SHA-256 in the header where it has one.
    """
    content = path.read_bytes()
    shipped = path.parent in (files.models(), files.shipped())
    if shipped and hashlib.sha256(content).hexdigest() != files.unseal(path.parent / "manifest.json").get(path.name):
        raise files.DamagedFile(f"{path}: its SHA-256 is not the one in manifest.json; fetch the file again")
    try:
        weights = load(content)
    except SafetensorError as error:
        reason = str(error).splitlines()[0]
        raise files.DamagedFile(f"{path}: not a whole file of safetensors ({reason}); delete it") from None
    if not shipped and (expected := header(path)[0]) and expected != hash_of(weights):
        raise files.DamagedFile(f"{path}: changed since it was written; delete it and train again")
    return weights


def encoded(weights: dict[str, torch.Tensor], owner: str) -> bytes:
    """A file of weights. In its header, as one word because the order of several differs: SHA-256 and `owner`."""
    return save(weights, {"sha256": f"{hash_of(weights)} {owner}"})


def header(path: Path) -> tuple[str, str]:
    """The SHA-256 of a file's weights, and their owner; empty where it has none. Raises SafetensorError."""
    with safe_open(path, "pt") as file:
        sha256, _, owner = (file.metadata() or {}).get("sha256", "").partition(" ")
    return sha256, owner


def is_of(path: Path, owner: str) -> bool:
    """Whether weights are this owner's; a damaged file is not told from them, and is refused when it is read."""
    try:
        return header(path)[1] == owner
    except SafetensorError:
        return True


def hash_of(weights: dict[str, torch.Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name, t in sorted(weights.items()):
        total.update(f"{name} {t.dtype} {tuple(t.shape)} ".encode() + t.view(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
