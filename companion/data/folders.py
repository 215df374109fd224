"""A folder of photographs: which files are read, what each holds, and which are small copies of others."""

import hashlib
import os
import re
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
from loky import cpu_count
from PIL import Image

from companion.data import reader
from companion.data.reader import DataError
from companion.disk import files

SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pnm")
TEXTS = (".txt", ".md", ".csv", ".json", ".xml", ".xmp", ".html", ".pdf", ".ini", ".db")  # no photographs
PREVIEWS = re.compile(r"[\W_]*(thumb(nail)?s?|previews?|eadir)|.*\.lrdata", re.IGNORECASE)  # folders that programs make
MAX_DECODE_THREADS = 8  # each image that is decoded waits in memory
# RMS difference of a small copy from its original, in standard deviations of the original: on BSDS500 it is at most 0.2
# for copies of 64 pixels and more, by any filter and JPEG, and at least 0.5 for other photographs.
COPY_ERROR = 0.25
RECORDS = {}  # path of a record → its content, once read


def files_in(folder: Path) -> list[str]:
    """Return the images below a folder by their suffixes, sorted and relative to it, without hidden ones (`._*`)."""
    return walk(folder)[0]


def walk(folder: Path) -> tuple[list[str], list[str], Counter]:
    """Return images and other files below a folder, relative to it and sorted, and files by folder of thumbnails.

    Links to folders are followed, each folder once, and none that leads upwards. Raises DataError.
    """
    images, others, previews = [], [], Counter()
    seen = {os.fspath(place) for place in Path(os.path.realpath(folder)).parents}
    for place, folders, names in os.walk(folder, onerror=stop, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        for name in filter(PREVIEWS.fullmatch, folders):
            previews[name] += sum(len(inside) for *_, inside in os.walk(os.path.join(place, name)))
        folders[:] = sorted(name for name in folders if not (name.startswith(".") or PREVIEWS.fullmatch(name)))
        above = "".join(f"{part}/" for part in Path(place).relative_to(folder).parts)
        for name in (name for name in names if not name.startswith(".")):
            read = name.lower().endswith(SUFFIXES) and os.path.isfile(os.path.join(place, name))
            (images if read else others).append(above + name)
    return sorted(images), sorted(others), +previews


def stop(error: OSError):
    """Raise DataError for a folder that cannot be entered, which `os.walk` would leave out."""
    raise DataError(f"{error.filename}: {error.strerror}")


def unread(folder: Path) -> list[str]:
    """Return a line on files of kinds that are not read, and one on thumbnails; [] where nothing is left out."""
    if not folder.is_dir():
        return []
    _, others, previews = walk(folder)
    others = [file for file in others if not file.lower().endswith(TEXTS)]
    counts = Counter(Path(file).suffix.lower() or "without a suffix" for file in others).most_common()
    kinds = ", ".join(f"{n} {kind}" for kind, n in counts[:8]) + ", …" * (len(counts) > 8)
    told = f"{folder}: files left out: {len(others)} ({kinds}); save photographs among them as JPEG or PNG"
    thumbnails = f"{folder}: files left out in folders of thumbnails: {previews.total()} ({', '.join(previews)})"
    return [told] * bool(others) + [thumbnails] * bool(previews)


# What a folder's files hold


def record_of(folder: Path, place: Path) -> dict:
    """Return what a folder's images hold: `files`, name → [size and time, SHA-256], and `copies`, small → large.

    The record is kept in the folder `place`. A file whose size and time are unchanged is not read again. Raises
    DamagedFile.
    """
    path = place / "contents.json"
    known = RECORDS.get(path) or (files.unseal(path) if path.exists() else {"files": {}, "copies": {}})
    found = {}
    for name in files_in(folder):
        status, before = (folder / name).stat(), known["files"].get(name)
        state = f"{status.st_size} {status.st_mtime_ns}"
        try:
            found[name] = before if before and before[0] == state else [state, hash_of(folder / name)]
        except OSError:  # which packing tells or leaves out
            found[name] = ["", ""]
    if found != known["files"]:
        known = {"files": found, "copies": small_copies(folder, [*found])}
        with suppress(OSError):  # where the root is another user's, it is made anew in each process
            files.need_writable(place)
            files.write_atomically(path, files.seal(known))
    RECORDS[path] = known
    return known


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def small_copies(folder: Path, names: list[str]) -> dict[str, str]:
    """Return each image that is a smaller copy of another one, and that one: of the same shape, and alike."""
    by_size, copies, pairs = defaultdict(list), {}, []
    with ThreadPoolExecutor(min(cpu_count(), MAX_DECODE_THREADS)) as pool:
        for name, size in zip(names, pool.map(reader.size_of, (folder / name for name in names)), strict=True):
            by_size[size].append(name)
        sizes = np.array([size for size in by_size if min(size)]).reshape(-1, 2)
        for w, h in sizes:  # larger ones of the same shape, up to rounding
            alike = (sizes > (w, h)).all(1) & (np.abs(sizes[:, 0] * h - sizes[:, 1] * w) <= sizes.sum(1))
            if larges := [name for size in sizes[alike] for name in by_size[tuple(size)]]:
                pairs.append((by_size[w, h], larges))
        needed = sorted({name for pair in pairs for part in pair for name in part})
        seen = dict(zip(needed, pool.map(appearance, (folder / name for name in needed)), strict=True))
    for smalls, larges in pairs:
        originals = np.stack([seen[name] for name in larges])
        for name in smalls:
            error = np.sqrt(np.mean((originals - seen[name]) ** 2, axis=1))
            if (close := np.flatnonzero(error < COPY_ERROR * originals.std(axis=1))).size:
                copies[name] = larges[close[0]]
    return copies


def appearance(path: Path) -> np.ndarray:
    """Return the colours of an image in 8×8 cells, (192,) on [0, 255]; of one that cannot be read NaN."""
    try:
        image = reader.flat(reader.opened(path)).convert("RGB")
    except (DataError, ValueError):
        return np.full(192, np.nan, np.float32)
    return np.asarray(image.resize((8, 8), Image.Resampling.BILINEAR), np.float32).ravel()
