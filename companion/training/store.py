"""One JSON per measurement: what was measured, with what, and the rows."""

from pathlib import Path

from companion.data import sets
from companion.disk import files
from odl import PROTOCOL
from odl.device import pytorch_defaults
from odl.experiment import is_folder


def identity(experiment) -> dict:
    """Return what a result belongs to: the fields of a run as JSON, and of a reader's own folder what lies in it."""
    own = {"images": sets.fingerprint(experiment.dataset)} if is_folder(experiment.dataset) else {}
    return experiment.asdict() | own


def load(path: Path, experiment: dict) -> dict | None:
    """The content of `path` if it was measured for this experiment by this protocol, else None. Raises DamagedFile."""
    content = files.unseal(path) if path.exists() else None
    if not content or content.get("protocol") != PROTOCOL or content.get("experiment") != experiment:
        return None
    return content


@pytorch_defaults()
def run_or_load(path: Path, experiment: dict, measure) -> dict:
    """What is on disk, else what `measure()` returns (provenance and evaluation, as a dict), written to `path`.

    A lock lets one of several processes measure and the others load.
    """
    if not load(path, experiment):
        files.need_writable(path.parent)
        with lock_of(path):
            if not load(path, experiment):
                content = {"protocol": PROTOCOL, "experiment": experiment} | measure()
                files.write_atomically(path, files.seal(content))
    return load(path, experiment)


def lock_of(path: Path):
    """The lock under which the result at `path` is measured, held until `with` ends. Raises DiskError."""
    return files.locked(files.runs() / "locks" / f"{'-'.join(path.relative_to(files.results()).parts)}.lock")
