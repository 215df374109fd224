"""Checkpoints: written whole, read without executing anything, the previous one kept."""

import copy
import hashlib
import io
import json
import math
from pathlib import Path

import numpy as np
import torch

from odl import PROTOCOL
from odl.machine import files


class TrainingError(files.OneLine, RuntimeError):
    """A number was not finite; the message is one line."""


def finite(entry: dict, network, optimizer, epoch: int) -> None:
    """Raise TrainingError when a number of an epoch, a weight or a moment of Adam is not finite."""
    moments = [t for slot in optimizer.state.values() for t in slot.values() if torch.is_tensor(t)]
    numbers = [t for t in (*network.state_dict().values(), *moments) if t.is_floating_point()]
    norms = torch.stack(torch._foreach_norm(numbers, math.inf))  # one question to a GPU
    if not (norms.isfinite().all() and np.isfinite([entry["loss"], *entry["psnr"]]).all()):
        where = f"loss {entry['loss']}, validation PSNR {entry['psnr']}, a weight or a moment of Adam"
        raise TrainingError(f"epoch {epoch + 1}: {where} is not finite; stopped")


def identity(experiment) -> dict:
    """What a checkpoint belongs to."""
    return experiment.asdict() | {"protocol": PROTOCOL}


def owner_of(experiment) -> str:
    """SHA-256 of the `identity`; 25 and 25.0 are the same."""
    known = {name: float(value) if isinstance(value, int) else value for name, value in identity(experiment).items()}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def take_snapshot(owner: dict, state) -> dict:
    """A copy of everything that an exact resume of the owner, an `identity`, needs at the end of an epoch."""
    kept = {"network": state.network.state_dict(), "optimizer": state.optimizer.state_dict(), "history": state.history}
    return copy.deepcopy(kept) | {"experiment": owner, "seconds": state.seconds}


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
        elif state["experiment"] == identity(experiment):
            return state
    return None


def read_checkpoint(path: Path) -> dict | None:
    """What a checkpoint holds, None where it is damaged or not one of ours; nothing in it is executed."""
    content = path.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    try:
        state = torch.load(io.BytesIO(content[32:]), map_location="cpu", weights_only=True)
        state = {"seconds": [0.0, 0.0]} | state  # older ones have none
        state = {key: state[key] for key in ("network", "optimizer", "history", "experiment", "seconds")}
        state["seconds"] = [float(s) for s in state["seconds"]]
        kinds = isinstance(state["experiment"], dict) and isinstance(state["history"], list)
        return state if kinds and len(state["seconds"]) == 2 else None
    except Exception:  # a file made to harm raises anything
        return None


def put_back(state: dict, network, optimizer, folder: Path) -> list[dict]:
    """Load a checkpoint's state into the network and its optimizer. Returns the history."""
    settings = optimizer.state_dict()["param_groups"]  # this device's own: a GPU keeps its state where a graph can
    try:
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"] | {"param_groups": settings})
    except Exception as error:  # a file made to harm raises anything
        reason = str(error).splitlines()[0]
        raise TrainingError(f"{folder}: the checkpoint does not fit the network ({reason}); delete it") from None
    return state["history"]
