"""One JSON per measurement: what was measured, with what, and the rows."""

from pathlib import Path

from odl import paths


def load(path: Path, experiment: dict) -> dict | None:
    """The content of `path` when it was measured for exactly this experiment, else None. Raises DamagedFile."""
    content = paths.unseal(path) if path.exists() else None
    return content if content and content.get("experiment") == experiment else None


def run_or_load(path: Path, experiment: dict, measure) -> dict:
    """What is on disk, else what `measure()` answers (provenance and evaluation, as a dict), written to `path`.

    A lock lets one of several processes measure and the others load.
    """
    found = load(path, experiment)
    if found:
        return found
    lock = paths.runs() / "locks" / f"{'-'.join(path.relative_to(paths.results()).parts)}.lock"
    paths.need_writable(path.parent)
    with paths.locked(lock):
        found = load(path, experiment)
        if not found:
            content = {"experiment": experiment} | measure()
            paths.write_atomically(path, paths.seal(content))
    return load(path, experiment)
