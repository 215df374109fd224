"""A measurement is a sealed JSON at a path: what was measured, with what, and the scores."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from companion.data import sets
from companion.disk import files
from companion.disk.provenance import commit
from odl import PROTOCOL
from odl.device import pytorch_defaults
from odl.experiment import Experiment, is_folder


@dataclass(frozen=True)
class Result:
    """What was measured; `path` is its JSON."""

    experiment: dict
    provenance: dict
    history: list[dict]
    evaluation: pd.DataFrame
    path: Path

    @cached_property
    def level_means(self) -> dict[str, dict[str, float]]:
        """Return the mean over trials of each column of the evaluation: column → level → mean."""
        return self.evaluation.groupby("level").mean().to_dict()


def identity(experiment: Experiment) -> dict:
    """Return what a result belongs to: the fields of a run as JSON, and of a reader's own folder what lies in it."""
    own = {"images": sets.fingerprint(experiment.dataset)} if is_folder(experiment.dataset) else {}
    return experiment.asdict() | own


@dataclass(frozen=True, eq=False)
class Measurement:
    """A result that is on disk at `path`, or is measured now; workers receive it pickled.

    `what` is measured: an experiment, or a dict that says so. `make(device, progress)` returns the rest of the file as
    a dict: `provenance` but for the commit, `evaluation` (column → values) and what else there is. `work` is the cost
    in batches passed forward through the network. `needs` are measured first.
    """

    path: Path
    what: Experiment | dict
    make: Callable
    work: float
    needs: tuple["Measurement", ...] = ()

    @property
    def name(self) -> str:
        """Return its place below the results, or below the root where it is a network's weights."""
        above = files.results() if self.path.is_relative_to(files.results()) else files.root()
        return self.path.relative_to(above).with_suffix("").as_posix()

    @property
    def experiment(self) -> Experiment | None:
        """Return the run that is measured, or whose network is."""
        if isinstance(self.what, Experiment):
            return self.what
        return self.needs[0].experiment if self.needs else None

    @property
    def needed(self) -> list[Path]:
        """Return the files of what it needs."""
        return [need.path for need in self.needs]

    def load(self) -> Result | None:
        """Return what was measured of exactly this by this protocol, else None. Raises DamagedFile."""
        content = files.unseal(self.path) if self.path.exists() else {}
        known = content.get("protocol") == PROTOCOL and content.get("experiment") == self.described()
        return as_result(content, self.path) if known else None

    @pytorch_defaults()
    def run(self, device="auto", progress=None) -> Result:
        """Return the result, measured and written where it is missing; a lock lets other processes wait for it."""
        if result := self.load():
            return result
        files.need_writable(self.path.parent)
        with lock_of(self.path, progress):
            if result := self.load():
                return result
            started = {"commit": commit()}  # the code may change meanwhile
            content = {"protocol": PROTOCOL, "experiment": self.described()}
            content |= self.make(device=device, progress=progress)
            content["provenance"] = started | content["provenance"]
            files.write_atomically(self.path, files.seal(content))
            return as_result(files.unseal(self.path), self.path)

    def described(self) -> dict:
        """Return `what` as its file has it."""
        return identity(self.what) if isinstance(self.what, Experiment) else self.what


def as_result(content: dict, path: Path) -> Result:
    """Return a result with the content of its file."""
    rows = content["evaluation"]
    scores = {name: np.array(rows[name], float) for name in rows if name.startswith(("l2", "psnr"))}  # null is NaN
    frame = pd.DataFrame(rows | scores)
    return Result(content["experiment"], content["provenance"], content.get("history", []), frame, path)


def lock_of(path: Path, progress=None):
    """Return the lock under which the result at `path` is measured, held until `with` ends. Raises DiskError."""
    return files.locked(files.runs() / "locks" / f"{'-'.join(path.relative_to(files.results()).parts)}.lock", progress)


def missing(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return what is not measured of these, and of what that needs, each once and behind what it needs."""
    found = {}
    for one in measurements:
        if one.path not in found and one.load() is None:
            found |= {need.path: need for need in missing(one.needs)} | {one.path: one}
    return [*found.values()]
