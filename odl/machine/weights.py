"""Trained weights in files of safetensors, checked against their SHA-256."""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from odl.machine import files


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors in a file of safetensors, checked against the SHA-256 in its header where it has one."""
    try:
        weights = load_file(path)
        with safe_open(path, "pt") as file:
            expected = (file.metadata() or {}).get("sha256")
    except SafetensorError as error:
        reason = str(error).splitlines()[0]
        raise files.DamagedFile(f"{path}: not a whole file of safetensors ({reason}); delete it") from None
    if expected and expected != hash_of(weights):
        raise files.DamagedFile(f"{path}: changed since it was written; delete it and train again")
    return weights


def hash_of(weights: dict[str, torch.Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name, t in sorted(weights.items()):
        total.update(f"{name} {t.dtype} {tuple(t.shape)} ".encode() + t.view(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def check_manifest(path: Path) -> None:
    """Raise DamagedFile when shipped weights differ from the manifest."""
    manifest = files.unseal(path.parent / "manifest.json")
    if hashlib.sha256(path.read_bytes()).hexdigest() != manifest.get(path.name):
        raise files.DamagedFile(f"{path}: its SHA-256 is not the one in manifest.json; fetch the file again")
