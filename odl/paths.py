"""Where files live: `data/` for sets, results and models, `runs/` for checkpoints, under one root."""

import os
from pathlib import Path


def root() -> Path:
    """The project's folder, or `ODL_ROOT` when that is set."""
    return Path(os.environ.get("ODL_ROOT") or Path(__file__).resolve().parents[1])


def results() -> Path:
    return root() / "data" / "results"


def models() -> Path:
    return root() / "data" / "models"


def runs() -> Path:
    return root() / "runs"


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` so that `path` is the old file or the new one, never a half (POSIX rename)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
