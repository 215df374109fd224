"""Inpainters on a central and on an arbitrary 32×32 block, measured inside the block only (Sec. 6.5)."""

from dataclasses import asdict
from functools import partial

from companion.comparators.check import Run
from companion.comparators.holes import BLOCKS, evaluate, measure, smoothest, work_of
from companion.data import packs, sets
from companion.disk.provenance import origin, processor
from companion.training.measurement import Measurement, Result
from companion.training.results import measurement_beside, path_of
from odl.experiment import Experiment, slug

BIHARMONIC = "biharmonic"  # the fill that learns nothing


def measurement_of(experiment) -> Measurement:
    """Return the measurement of one of our inpainters on the blocks."""
    return measurement_beside(experiment, "blocks", evaluate, work_of(experiment))


def not_restored(experiment) -> list[Result]:
    """Return what the grey filling scores on the same blocks; nothing where the photographs are not here."""
    try:
        rows = measure(experiment, lambda y, mask: y)
    except sets.DataError:
        return []
    return [Result({"schedule": "not_restored"}, {}, [], rows, path_of(experiment))]


class Fill(Run):
    """The run of a fill that learns nothing: its scores depend on neither a seed nor a training."""

    def asdict(self) -> dict:
        """Return what its scores depend on."""
        own = {name: getattr(self, name) for name in ("task", "schedule", "seed", "test_images", "trials")}
        return own | {"dataset": slug(self.dataset)}


def fill_of(ours: Experiment) -> Fill:
    """Return the run of the biharmonic fill on the crops of one of ours."""
    return Fill(**(asdict(ours) | {"schedule": BIHARMONIC, "seed": 0}))


def measurement_of_fill(experiment: Fill) -> Measurement:
    """Return the measurement of the biharmonic equation on the blocks; a crop takes it as long as a network a batch."""
    work = experiment.trials * len(BLOCKS) * experiment.test_images
    return Measurement(path_of(experiment), experiment, partial(measure_fill, experiment), work)


def measure_fill(experiment: Fill, device="auto", progress=None) -> dict:
    """Score the biharmonic equation, on the CPU whatever the device."""
    source = origin("cpu", "scikit-image") | {"processor": processor()}
    source |= {"data_sha256": packs.load(experiment.dataset, "test").sha256}
    rows = measure(experiment, smoothest, progress=progress)
    return {"provenance": source, "history": [], "evaluation": rows.to_dict("list")}
