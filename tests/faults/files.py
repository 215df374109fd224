"""Faults of files that lie on disk: weights, results and packs that were changed, and files made to harm."""

import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import zipfile
from functools import cache
from pathlib import Path

import torch

from companion.gpu import ship
from odl.data import sets
from odl.data.packs import load as load_pack
from odl.experiment import Experiment
from odl.learn import build
from odl.machine import checkpoint, files
from odl.machine.files import root, runs, write_atomically
from odl.results import load, network_of, path_of, run_or_load, weights_of

from .campaign import DAMAGES, SILENT, broken_by, digest, fresh_root, judged, packed_demo, row
from .training import TINY, payload_of, saved_by, state_of, tiny

# Files made to harm


class Harm:
    """Unpickled, it runs code; the code leaves a mark."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def touch(mark) -> Harm:
    return Harm(exec, f"open({str(mark)!r}, 'w').close()")


@cache
def bomb() -> bytes:
    """A ZIP with far more inside than outside."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", b"\x80\x02]" + b"N0" * 5_000_000)
    return buffer.getvalue()


def header(content: dict | bytes, size: int | None = None) -> bytes:
    """A file of safetensors with any header."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + bytes(64)


def tensor(*shape, end=16) -> dict:
    return {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}


def hostile_files(mark, state) -> dict[str, list[bytes]]:
    """Files made from where a mark would be left and from a good checkpoint's state."""
    call = Harm(getattr, mark, "touch"), Harm(mark.touch)
    by_opcodes = b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR."  # GLOBAL os.system, called
    return {
        "checkpoint.pt": [
            payload_of(state | {"history": touch(mark)}),
            payload_of(state | {"history": Harm(os.system, f"touch {mark}")}),
            payload_of(state | {"network": touch(mark)}, _use_new_zipfile_serialization=False),
            pickle.dumps(touch(mark), protocol=2),
            by_opcodes,
            payload_of([state, *call]),
            bomb(),
            payload_of(state | {"network": {"weight": torch.zeros(3)}}),  # of another network
        ],
        "weights.safetensors": [
            pickle.dumps(touch(mark)),
            header({"weight": tensor(4)}, size=2**62),
            header({"weight": tensor(2**40, end=2**42)}),  # past the end
            header({"a": tensor(4), "b": tensor(4)}),  # over each other
            header(b"{" * 200_000),
            header({"weight": tensor(16, end=64)}),  # of another network
        ],
    }


@row(14, 14, "Loading weights runs no code", "8 checkpoints with a good hash and 6 files of weights, made to harm")
@broken_by(
    "checkpoints are unpickled whole",
    ("odl.machine.checkpoint.read_checkpoint", "weights_only=True", "weights_only=False"),
)
def hostile(i, chance):
    """In the place of a checkpoint or of weights: refused in one line, and nothing is run."""
    experiment, mark = tiny(), root() / "mark"
    files = hostile_files(mark, state_of(1, experiment))
    name, content = [(name, content) for name, contents in files.items() for content in contents][i]
    path = runs() / experiment.run_id / name
    seal = hashlib.sha256(content).digest() if name == "checkpoint.pt" else b""  # whoever wrote it can hash
    write_atomically(path, seal + content)

    def refused():
        """What a run does with its files."""
        if name == "weights.safetensors":
            return network_of(experiment) is None
        state = saved_by(experiment)
        return state is None or checkpoint.put_back(state, *build(experiment, "cpu"), runs()) is None

    outcome, seconds = judged(refused, bool)
    return (SILENT if mark.exists() else outcome), seconds


# Files that were changed


TRAINED = Experiment.of("denoise", **(TINY | {"epochs": 1}))


@cache
def contents() -> dict[str, bytes]:
    """All that a run leaves, with its weights as they ship: path below the root → content."""
    with fresh_root() as root:
        run_or_load(TRAINED, "cpu")
        ship(TRAINED.run_id)
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def put(part: str) -> Path:
    """Those files of the run whose name has this part, in the present root. Returns the last."""
    for name, content in sorted(contents().items()):
        if part in name:
            path = files.root() / name
            files.write_atomically(path, content)
    return path


def damaged(i, chance, path, found):
    """Bits turned and files cut off in turn; what `found` returns has to be what it was."""
    right = digest(found())
    path.write_bytes(DAMAGES[i % 2](path.read_bytes(), chance))
    return judged(found, lambda answer: digest(answer) == right)


NOT_SEALED = ("odl.machine.files.unseal", "written and written != seal_of(content)", "False")


@row(400, 40, "Damaged weights are never used", "bits turned and files cut off, of a run's and of those that ship")
@broken_by(
    "neither hash is compared",
    ("odl.results.read_weights", "expected and expected != hash_of(weights)", "False"),
    ("odl.results.check_manifest", "hashlib.sha256(path.read_bytes()).hexdigest()", "manifest[path.name]"),
)
def weights(i, chance):
    path = put(("weights.safetensors", "data/models")[i // 2 % 2])
    return damaged(i, chance, path, lambda: weights_of(TRAINED))


@row(400, 40, "A damaged result is never shown", "bits turned and files cut off")
@broken_by("the seal is not compared", NOT_SEALED)
def results(i, chance):
    def found():
        result = load(TRAINED)
        return result.experiment, result.provenance, result.history, result.evaluation.to_dict("list")

    return damaged(i, chance, put("data/results"), found)


@row(400, 40, "A damaged pack is never trained on", "bits turned and files cut off, of pixels and of index")
@broken_by(
    "neither hash is compared",
    ("odl.data.packs.load", 'hashlib.sha256(pixels.numpy()).hexdigest() != index["sha256"]', "False"),
    NOT_SEALED,
)
def packs(i, chance):
    folder = sets.home("demo") / packed_demo().name
    folder.unlink()  # the link to it
    shutil.copytree(packed_demo(), folder)

    def found():
        pack = load_pack("demo", "train")
        return pack.pixels, pack.offset, pack.height, pack.width, pack.names, pack.sha256, pack.skipped

    return damaged(i, chance, folder / ("pixels.bin", "index.json")[i // 2 % 2], found)


# Numbers of another run


OTHER = {"seed": 1, "width": 9, "epochs": 2, "iterations": 3, "learning_rate": 1e-4, "decay": 0.1, "precision": "bf16"}
OTHER |= {"batch_size": 21, "pool_images": 501, "validation_images": 5, "test_images": 5, "trials": 3}
OTHER |= {"train_images": 4, "variant": "released", "schedule": "rigid_joint", "task": "inpaint", "profile": "demo"}


@row(
    17, 17, "No result and no checkpoint of another run", "one parameter changed, the files of the run before it there"
)
@broken_by(
    "the experiment in the file is not compared",
    ("odl.machine.store.load", ' or content.get("experiment") != experiment', ""),
)
def stale(i, chance):
    name, value = list(OTHER.items())[i]
    experiment = Experiment.of(**(TINY | {"epochs": 1, "task": "denoise", name: value}))
    files.write_atomically(path_of(experiment), put("data/results").read_bytes())
    files.write_atomically(files.runs() / experiment.run_id / "checkpoint.pt", put("checkpoint.pt").read_bytes())
    return judged(lambda: (load(experiment), saved_by(experiment)), lambda answer: answer == (None, None))
