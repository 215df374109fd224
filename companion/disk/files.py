"""Where files live: `data/` for sets, results and models, `runs/` for checkpoints, under one root; whole or absent."""

import hashlib
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from odl.experiment import short
from odl.parameters import OneLine

PACKAGE = Path(__file__).resolve().parents[2] / "odl"
ROOT_ADVICE = "set ODL_ROOT to a folder of your own"


class DamagedFile(OneLine, ValueError):
    """A file does not hold what was written to it."""


class DiskError(OneLine, OSError):
    """A folder cannot be written: it is full, read-only, or another user's."""


def root() -> Path:
    """Return the folder for data, results and runs: `ODL_ROOT`, else the checkout, else the user's data."""
    named, checkout = os.environ.get("ODL_ROOT"), PACKAGE.parent
    if not named and (checkout / "pyproject.toml").exists():
        return checkout
    if not named:
        from platformdirs import user_data_path  # not needed in a checkout

        named = user_data_path("on-demand-learning", appauthor=False)
    place = os.path.expanduser(named)
    if place.startswith("~"):
        raise DiskError(f"ODL_ROOT={os.fspath(named)!r}: no such home folder is known; give the whole path")
    return Path(place)


def results() -> Path:
    return root() / "data" / "results"


def models() -> Path:
    return root() / "data" / "models"


def shipped() -> Path:
    """Return the folder of the weights that ship, whatever `ODL_ROOT` is: in a wheel, else in the checkout."""
    inside = PACKAGE / "models"
    return inside if inside.is_dir() else PACKAGE.parent / "data" / "models"


def runs() -> Path:
    return root() / "runs"


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` so that `path` is the old file or the new one, never a half (POSIX rename).

    Raises DiskError, with nothing written, when the disk has no room for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    need_room(path.parent, len(content))
    temporary = path.with_name(f".{short(path.name, 40)}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def need_room(folder: Path, size: int) -> None:
    """Raise DiskError when fewer than `size` bytes are free where `folder` lies, or will lie, if that is known."""
    total, _, free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists()))
    if size > free and total:  # which is 0 in /proc and on some drives of a network
        raise DiskError(f"{folder}: disk full, {size / 1e6:,.1f} MB are needed and {free / 1e6:,.1f} MB are free")


def locked(path: Path, progress=None):
    """Return a lock against other processes, held until `with` ends. Raises DiskError where it is not writable.

    While another process has it `progress(0)` is called every second, and may raise what ends the wait.
    """
    need_writable(path.parent)
    path = path.with_name(short(path.name))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with suppress(Timeout):
            return FileLock(path).acquire(timeout=0)
        print(f"waiting for another process, which has {path.stem}", file=sys.stderr)
        while True:
            with suppress(Timeout):
                return FileLock(path).acquire(timeout=1)
            if progress:
                progress(0)
    except (OSError, NotImplementedError) as error:  # the file of another user, or a disk that locks none
        raise DiskError(f"{path}: not writable, {getattr(error, 'strerror', None) or error}; {ROOT_ADVICE}") from None


def need_writable(folder: Path, advice: str = ROOT_ADVICE) -> None:
    """Raise DiskError when files cannot be made in `folder`, or it cannot be made: before work, not after it."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    why = "a file" if there.is_file() else "read-only or another user's"
    if there.is_file() or not os.access(there, os.W_OK):
        raise DiskError(f"{there}: not writable, it is {why}; {advice}")


def seal(content: dict) -> bytes:
    """Return `content` as JSON with a seal, the SHA-256 of everything else in it, which tells when it was changed."""
    return json.dumps(content | {"seal": seal_of(content)}).encode() + b"\n"


def unseal(path: Path) -> dict:
    """Return the content of a sealed JSON; one without a seal is taken as it is. Raises DamagedFile."""
    try:
        content = json.loads(path.read_bytes())
        written = content.pop("seal", None)
    except (ValueError, AttributeError, TypeError):
        raise DamagedFile(f"{path}: not a whole JSON file; delete it and run again") from None
    if written and written != seal_of(content):
        raise DamagedFile(f"{path}: changed since it was written; delete it and run again")
    return content


def seal_of(content: dict) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
