"""Faults of files that lie on disk: weights, results and packs that were changed."""

import shutil
from functools import cache
from pathlib import Path

from companion.data import sets
from companion.data.packs import load as load_pack
from companion.disk import files
from companion.training.results import load, network_of, run_or_load, ship
from odl.experiment import Experiment

from .campaign import DAMAGES, digest, fresh_root, judged, packed_demo, row
from .training import TINY

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


@row(400, 40, "Damaged weights are never used", "bits turned and files cut off, of a run's and of those that ship")
def weights(i, chance):
    path = put(("weights.safetensors", "data/models")[i // 2 % 2])
    return damaged(i, chance, path, lambda: network_of(TRAINED).state_dict())


@row(400, 40, "A damaged result is never shown", "bits turned and files cut off")
def results(i, chance):
    def found():
        result = load(TRAINED)
        return result.experiment, result.provenance, result.history, result.evaluation.to_dict("list")

    return damaged(i, chance, put("data/results"), found)


@row(400, 40, "A damaged pack is never trained on", "bits turned and files cut off, of pixels and of index")
def packs(i, chance):
    folder = sets.home("demo") / packed_demo().name
    folder.unlink()  # the link to it
    shutil.copytree(packed_demo(), folder)

    def found():
        pack = load_pack("demo", "train")
        return pack.pixels, pack.offset, pack.height, pack.width, pack.names, pack.sha256, pack.skipped

    return damaged(i, chance, folder / ("pixels.bin", "index.json")[i // 2 % 2], found)
