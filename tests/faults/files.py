"""Faults of files that lie on disk: weights, results and packs that were changed, and files made to harm."""

import hashlib
import io
import json
import os
import pickle
import random
import struct
import zipfile

import torch

from odl import data, datasets, paths, results, train
from odl.experiment import Experiment

from .campaign import DAMAGES, SILENT, Edit, Row, digest, fresh_root, judged, quiet
from .training import TINY, payload_of, state_of, tiny

# Files made to harm


class Harm:
    """Unpickled, it runs code; the code leaves a mark."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def touch(mark) -> Harm:
    return Harm(exec, f"open({str(mark)!r}, 'w').close()")


def legacy(state) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def by_opcodes(mark) -> bytes:
    """A pickle written by hand: GLOBAL os.system, called."""
    return b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR."


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


def tensor(kind="F32", shape=(4,), offsets=(0, 16)) -> dict:
    return {"dtype": kind, "shape": list(shape), "data_offsets": list(offsets)}


# name → content of the file, made from where a mark would be left and from a good checkpoint's state
CHECKPOINTS = {
    "exec": lambda mark, state: payload_of(state | {"history": touch(mark)}),
    "a shell": lambda mark, state: payload_of(state | {"history": Harm(os.system, f"touch {mark}")}),
    "the old format": lambda mark, state: legacy(state | {"network": touch(mark)}),
    "a bare pickle": lambda mark, state: pickle.dumps(touch(mark), protocol=2),
    "opcodes by hand": lambda mark, state: by_opcodes(mark),
    "a method of a class": lambda mark, state: payload_of([state, Harm(getattr, mark, "touch"), Harm(mark.touch)]),
    "a bomb": lambda mark, state: bomb(),
    "another network": lambda mark, state: payload_of(state | {"network": {"weight": torch.zeros(3)}}),
}
WEIGHTS = {
    "a pickle": lambda mark, state: pickle.dumps(touch(mark)),
    "an endless header": lambda mark, state: header({"weight": tensor()}, size=2**62),
    "tensors past the end": lambda mark, state: header({"weight": tensor(shape=(2**40,), offsets=(0, 2**42))}),
    "tensors over each other": lambda mark, state: header({"a": tensor(), "b": tensor()}),
    "no JSON": lambda mark, state: header(b"{" * 200_000),
    "another network": lambda mark, state: header({"weight": tensor(shape=(16,), offsets=(0, 64))}),
}
HOSTILE = [("checkpoint.pt", make) for make in CHECKPOINTS.values()]
HOSTILE += [("weights.safetensors", make) for make in WEIGHTS.values()]


def hostile_files(n):
    """Files made to harm in the place of a checkpoint or of weights: refused in one line, and nothing is run."""
    experiment = tiny()
    state = state_of(1, experiment)
    for name, make in (HOSTILE[i % len(HOSTILE)] for i in range(n)):
        with fresh_root() as root:
            mark, path = root / "mark", paths.runs() / experiment.run_id / name
            path.parent.mkdir(parents=True)
            content = make(mark, state)
            seal = hashlib.sha256(content).digest() if name == "checkpoint.pt" else b""  # whoever wrote it can hash
            path.write_bytes(seal + content)
            outcome, seconds = judged(lambda name=name: use(name, experiment), lambda answer: answer == "refused")
            yield (SILENT if mark.exists() else outcome), seconds


def use(name: str, experiment) -> str:
    """What a run does with its files."""
    if name == "weights.safetensors":
        results.network_of(experiment)
        return "used"
    state = train.load_checkpoint(paths.runs() / experiment.run_id, experiment)
    if state is None:
        return "refused"
    train.put_back(state, *train.build(experiment, "cpu"), paths.runs())
    return "used"


# Files that were changed


def damaged(n, make, load, digest_of, seed):
    """Bits turned and files cut off in turn, one of the files that `make` makes; what is loaded has to be right."""
    chance = random.Random(seed)
    with fresh_root():
        with quiet():
            files = make()
            right = digest_of(load())
        contents = {path: path.read_bytes() for path in files}
        for i in range(n):
            path = files[i // 2 % len(files)]
            path.write_bytes(DAMAGES[i % 2](contents[path], chance))
            yield judged(load, lambda answer: digest_of(answer) == right)
            path.write_bytes(contents[path])


TRAINED = Experiment.of("denoise", **(TINY | {"epochs": 1}))


def damaged_weights(n):
    """Weights of a run in `runs/`; then those that ship, with their manifest."""

    def make():
        results.run_or_load(TRAINED, "cpu")
        return [paths.runs() / TRAINED.run_id / "weights.safetensors"]

    def make_shipped():
        (own,) = make()
        path = results.ship(TRAINED)
        own.unlink()
        return [path, path]

    def load():
        return results.weights_of(TRAINED)

    yield from damaged(n // 2, make, load, digest, 6)
    yield from damaged(n - n // 2, make_shipped, load, digest, 7)


def damaged_results(n):
    def make():
        return [results.run_or_load(TRAINED, "cpu").path]

    def digest_of(result):
        return digest([result.experiment, result.provenance, result.history, result.evaluation.to_dict("list")])

    yield from damaged(n, make, lambda: results.load(TRAINED), digest_of, 8)


def damaged_packs(n):
    """The pixels of a pack and its index."""

    def make():
        home = datasets.home("demo")
        (link,) = [path for path in home.iterdir() if path.is_symlink()]
        link.unlink()
        data.prepare("demo")
        return [home / link.name / name for name in ("pixels.bin", "index.json")]

    def digest_of(pack):
        return digest([pack.pixels, pack.offset, pack.height, pack.width, pack.names, pack.sha256, pack.skipped])

    yield from damaged(n, make, lambda: data.load("demo", "train"), digest_of, 9)


# Numbers of another run


OTHER = {
    "seed": 1,
    "width": 9,
    "epochs": 2,
    "iterations": 3,
    "learning_rate": 1e-4,
    "decay": 0.1,
    "precision": "bf16",
    "batch_size": 21,
    "pool_images": 501,
    "validation_images": 5,
    "test_images": 5,
    "trials": 3,
    "train_images": 4,
    "variant": "released",
    "schedule": "rigid_joint",
    "task": "inpaint",
    "profile": "demo",
}


def other_runs(n):
    """A results file and a checkpoint under the name of a run with one parameter changed: neither may be used."""
    with fresh_root():
        with quiet():
            measured = results.run_or_load(TRAINED, "cpu").path.read_bytes()
        checkpoint = (paths.runs() / TRAINED.run_id / "checkpoint.pt").read_bytes()
        for name, value in (list(OTHER.items())[i % len(OTHER)] for i in range(n)):
            numbers = TINY | {"epochs": 1, "task": "denoise", name: value}
            experiment = Experiment.of(**numbers)
            path = results.path_of(experiment)
            folder = paths.runs() / experiment.run_id
            for place in (path.parent, folder):
                place.mkdir(parents=True, exist_ok=True)
            path.write_bytes(measured)
            (folder / "checkpoint.pt").write_bytes(checkpoint)

            def load(experiment=experiment, folder=folder):
                return results.load(experiment), train.load_checkpoint(folder, experiment)

            yield judged(load, lambda answer: answer == (None, None))


ROWS = {
    "hostile": Row(
        "Loading weights runs no code",
        "8 checkpoints with a good hash and 6 files of weights, made to harm",
        len(HOSTILE),
        hostile_files,
        "checkpoints are unpickled whole",
        (Edit("odl.train.read_checkpoint", "weights_only=True", "weights_only=False"),),
        len(HOSTILE),
    ),
    "weights": Row(
        "Damaged weights are never used",
        "bits turned and files cut off, of a run's weights and of those that ship",
        400,
        damaged_weights,
        "neither hash is compared",
        (
            Edit("odl.results.read_weights", "expected and expected != hash_of(weights)", "False"),
            Edit("odl.results.check_manifest", "hashlib.sha256(path.read_bytes()).hexdigest()", "manifest[path.name]"),
        ),
        40,
    ),
    "results": Row(
        "A damaged result is never shown",
        "bits turned and files cut off",
        400,
        damaged_results,
        "the seal is not compared",
        (Edit("odl.paths.unseal", "written and written != seal_of(content)", "False"),),
        40,
    ),
    "packs": Row(
        "A damaged pack is never trained on",
        "bits turned and files cut off, of pixels and of index",
        400,
        damaged_packs,
        "neither hash is compared",
        (
            Edit("odl.data.load", 'hashlib.sha256(pixels.numpy()).hexdigest() != index["sha256"]', "False"),
            Edit("odl.paths.unseal", "written and written != seal_of(content)", "False"),
        ),
        40,
    ),
    "stale": Row(
        "No result and no checkpoint of another run",
        "one parameter changed, the files of the run before in its place",
        len(OTHER),
        other_runs,
        "the experiment in the file is not compared",
        (Edit("odl.store.load", ' or content.get("experiment") != experiment', ""),),
        len(OTHER),
    ),
}
