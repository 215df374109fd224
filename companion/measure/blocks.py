"""Inpainters on a central and on an arbitrary 32×32 block, measured inside the block only (Sec. 6.5)."""

from functools import partial

from companion.comparators.holes import (
    BLOCKS,
    evaluate,
    measure,
    smoothest,
    work_of,
)
from companion.data import packs, sets
from companion.disk.provenance import origin, processor
from companion.training import measurement, results, store
from companion.training.results import Result
from companion.training.store import identity


def not_restored(experiment) -> list[Result]:
    """What the grey filling scores on the blocks that every inpainter meets; empty where the photographs are not."""
    try:
        rows = measure(experiment, lambda y, mask: y)
    except sets.DataError:
        return []
    return [Result({"schedule": "not_restored"}, {}, [], rows, path_of(experiment))]


# The fill that learns nothing

CLASSICAL = "biharmonic"


def classical_job(run) -> measurement.Job:
    """The job that measures the biharmonic equation on the blocks that every inpainter of this scale meets."""
    load, now = partial(load_classical, run), partial(run_classical, run)
    work = run.trials * len(BLOCKS) * run.test_images  # a crop takes about as long as a batch of a network
    return measurement.Job(run.run_id, (measurement.Measurement(load, now, work, results.path_of(run)),), run)


def asked_of_classical(run) -> dict:
    """What its scores depend on; it has no seed."""
    data = {name: value for name, value in identity(run).items() if name in ("dataset", "images")}
    own = {"task": run.task, "schedule": CLASSICAL, "seed": 0, "test_images": run.test_images, "trials": run.trials}
    return own | data


def load_classical(run) -> Result | None:
    """What it scored, or None."""
    content = store.load(results.path_of(run), asked_of_classical(run))
    return results.as_result(content, results.path_of(run)) if content else None


def run_classical(run, device="auto", progress=None) -> Result:
    """What it scores, measured where it is not on disk: on the CPU, whatever the device."""

    def now():
        pixels = packs.load(run.dataset, "test").sha256
        source = origin("cpu", "scikit-image") | {"processor": processor(), "data_sha256": pixels}
        rows = measure(run, smoothest, progress=progress)
        return {"provenance": source, "history": [], "evaluation": rows.to_dict("list")}

    path = results.path_of(run)
    return results.as_result(store.run_or_load(path, asked_of_classical(run), now), path)


# A trained inpainter of ours


def path_of(experiment):
    return measurement.path_beside(experiment, "blocks")


def load(experiment) -> Result | None:
    """What was measured of this inpainter on the blocks, or None."""
    return results.load(experiment, path_of(experiment))


def job_of(experiment) -> measurement.Job:
    """The job that trains one of our inpainters and measures it on the levels and on the blocks."""
    return measurement.job_of(experiment, measurement.of_network(experiment, "blocks", evaluate, work_of(experiment)))
