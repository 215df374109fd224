"""Trained weights in files of safetensors, checked against their SHA-256."""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from odl.machine import files


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors in a file of safetensors, checked against the SHA-256 in its header where it has one."""
    try:
        weights = load_file(path)
        expected, _ = header(path)
    except SafetensorError as error:
        reason = str(error).splitlines()[0]
        raise files.DamagedFile(f"{path}: not a whole file of safetensors ({reason}); delete it") from None
    if expected and expected != hash_of(weights):
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


def check_manifest(path: Path) -> None:
    """Raise DamagedFile when shipped weights differ from the manifest."""
    manifest = files.unseal(path.parent / "manifest.json")
    if hashlib.sha256(path.read_bytes()).hexdigest() != manifest.get(path.name):
        raise files.DamagedFile(f"{path}: its SHA-256 is not the one in manifest.json; fetch the file again")
