"""A measurement is a file, a description and the function that makes it; a job is measurements in their order."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

from companion.disk import files
from companion.training import results, store
from companion.training.device import check_device
from companion.training.results import Result, train
from odl.evaluation import TESTED
from odl.experiment import Experiment


@dataclass(frozen=True)
class Measurement:
    """`load()` returns what is on disk or None, `measure(device, progress)` measures and writes `path`; both pickle.

    `work` says how long it takes: batches passed forward through the network.
    """

    load: Callable
    measure: Callable
    work: float
    path: Path | None = None

    @property
    def name(self) -> str:
        """Its place below the results, or below the root where it is a network's weights."""
        above = files.results() if self.path.is_relative_to(files.results()) else files.root()
        return self.path.relative_to(above).with_suffix("").as_posix()


@dataclass(frozen=True)
class Job:
    """Measurements in an order in which each may use what those before it left on disk.

    `needs` are results of other runs, which have jobs of their own; what of them is missing is measured first.
    """

    name: str
    measurements: tuple[Measurement, ...]
    experiment: Experiment | None = None  # whose images are packed before it starts
    needs: tuple[Measurement, ...] = ()

    @property
    def work(self) -> float:
        return sum(m.work for m in self.measurements)

    def missing(self) -> list[Measurement]:
        return [m for m in (*self.needs, *self.measurements) if m.load() is None]


def job_of(experiment: Experiment, *later: Measurement) -> Job:
    """The job that trains and evaluates one run, then measures what else is to be known."""
    e = experiment
    training = 3 * e.epochs * e.iterations  # backward costs twice forward
    evaluation = e.trials * len(TESTED) * math.ceil(e.test_images / e.batch_size)
    run = partial(results.load, e), partial(results.run_or_load, e)
    own = Measurement(*run, training + evaluation, results.path_of(e))
    needed = map(job_of, results.needed_by(e))
    return Job(e.run_id, (own, *later), e, tuple(m for job in needed for m in (*job.needs, *job.measurements)))


def path_beside(experiment, name: str) -> Path:
    """Where something more that was measured of a run's network lies."""
    return files.results() / f"{experiment.run_id}-{name}.json"


def of_network(experiment, name: str, evaluate: Callable, work: float) -> Measurement:
    """Something more to be measured of a run's network: `evaluate(experiment, network, device, progress)` has rows."""
    path = path_beside(experiment, name)
    measure = partial(measure_network, experiment, path, evaluate)
    return Measurement(partial(results.load, experiment, path), measure, work, path)


def measure_network(experiment, path: Path, evaluate: Callable, device="auto", progress=None) -> Result:
    """The result at `path`, measured now where it is not on disk; the network is trained again where it is lost."""

    def measure():
        where = check_device(device)
        training = 0.9 * (results.place_of_weights(experiment) is None)  # share of the work
        with store.lock_of(results.path_of(experiment)):  # of several processes that lack the network one trains it
            if results.place_of_weights(experiment) is None:
                train(experiment, where, progress and (lambda share: progress(training * share)))
        network, start = results.network_of(experiment), monotonic()
        rows = evaluate(experiment, network, where, progress and (lambda s: progress(training + (1 - training) * s)))
        origin = results.provenance(experiment, where) | {"seconds": {"evaluate": round(monotonic() - start, 1)}}
        return {"provenance": origin, "history": [], "evaluation": rows.to_dict("list")}

    return results.as_result(store.run_or_load(path, store.identity(experiment), measure), path)
