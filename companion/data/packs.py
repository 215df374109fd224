"""Data sets packed once to uint8: one flat file of pixels with an index, in `data/<set>/packed-<side>/` (Sec. 6.1).

Images are RGB, resized so that their shorter side is 96 (the released code's size; 192 for demo; `NAME-native` keeps
its own where that is a crop's or more), training images first.
"""

import hashlib
import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import torch
from loky import cpu_count

from companion.data import folders, reader, sets
from companion.data.reader import DataError
from companion.data.sets import DATASETS, find, home, parse
from companion.disk import files
from companion.disk.progress import Bar
from odl.crops import Pack


def folder_of(name: str) -> Path:
    """Return the folder of a set's pack."""
    return home(name) / f"packed-{parse(name)[1] or 'native'}"


def load(name: str, split: str, train_images: int = 0) -> Pack:
    """Return one split of a data set, packed first where it is not yet or has changed; `train_images` limits it.

    Raises DataError when the originals are not here, too few, or the pixels are damaged; DamagedFile when the index is.
    """
    folder = folder_of(name)
    index = index_of(folder)
    if index is None or changed(name, index):
        pack(name, find(name), folder)
        index = index_of(folder)
    file, size = folder / "pixels.bin", index["bytes"]
    whole = file.exists() and file.stat().st_size == size
    if not whole or size < 1 << 30 and hash_of(file, size, file.stat().st_mtime_ns) != index["sha256"]:
        raise DataError(f"the pack {folder} is damaged: delete it and run again")
    images = [image for image in index["images"] if image["split"] == split]
    if split == "train" and train_images > len(images):
        raise DataError(f"train_images={train_images} is more than {name!r} has; nearest: {len(images)}")
    limit = train_images or DATASETS.get(parse(name)[0], {}).get("train_images")
    images = images[: limit if split == "train" else None]
    if not images:
        raise DataError(f"data set {name!r} has no {split} images")
    pixels = torch.from_file(str(file), size=size, dtype=torch.uint8)
    columns = (torch.tensor([image[key] for image in images]) for key in ("offset", "height", "width"))
    names = tuple(image["name"] for image in images)
    return Pack(pixels, *columns, names, index["sha256"], tuple(index["skipped"]))


@cache
def hash_of(path: Path, size: int, changed: int) -> str:
    """Return the SHA-256 of a file, read again where its size or its time of change is another."""
    return folders.hash_of(path)


def index_of(folder: Path) -> dict | None:
    """Return the index of a pack, None where there is no pack. Raises DamagedFile."""
    path = folder / "index.json"
    return files.unseal(path) if path.exists() else None


def changed(name: str, index: dict) -> bool:
    """Return True if the originals are no longer those that were packed; large sets by name are not looked through."""
    if DATASETS.get(parse(name)[0], {}).get("images", 0) > sets.RECHECK_LIMIT or not sets.is_here(name):
        return False
    listing = sets.fingerprint(name)
    return index.get("listing", listing) != listing


def pack(name: str, source: Path, folder: Path, skip_bad: bool = False) -> None:
    """Decode, resize and append every image of `source`, unless that was done; the index is written when all are there.

    Raises DataError naming the first image that cannot be read, unless `skip_bad`.
    """
    with files.locked(folder.parent / f".{folder.name}.lock"):
        splits, there = sets.list_images(name, source), index_of(folder)
        listing = sets.fingerprint(name, source, splits)
        if there and there.get("listing", listing) == listing:
            return
        if there:
            print(f"{source} has changed since it was packed: packing it again")
            skip_bad = skip_bad or bool(there["skipped"])
        for line in sets.remarks(name, source):
            print(line)
        folder.mkdir(exist_ok=True)
        for file in ("index.json", "pixels.bin"):  # removed, not emptied: a run may have the pixels mapped
            (folder / file).unlink(missing_ok=True)
        try:
            index = write_pixels(folder / "pixels.bin", name, source, splits, skip_bad)
        except BaseException:
            (folder / "pixels.bin").unlink(missing_ok=True)
            raise
        if index["skipped"]:
            print(f"left out, not readable: {', '.join(index['skipped'])}")
        files.write_atomically(folder / "index.json", files.seal(index | {"listing": listing}))


def write_pixels(path: Path, name: str, source: Path, splits: dict[str, list[str]], skip_bad: bool) -> dict:
    """Append every image to a file, decoded side by side. Returns what the index says of them."""
    entries = [(split, file) for split, files in splits.items() for file in files]
    images, skipped, offset, digest, cores = [], [], 0, hashlib.sha256(), min(cpu_count(), folders.MAX_DECODE_THREADS)
    bar, side = Bar(len(entries), f"packing {name}"), parse(name)[1]
    with open(path, "wb") as pixels, ThreadPoolExecutor(cores) as pool, bar:  # decoding leaves Python's lock to others
        for start in range(0, len(entries), 2 * cores):  # so many wait in memory at most
            some = entries[start : start + 2 * cores]
            read = [pool.submit(reader.read_image, source / file, side) for _, file in some]
            for (split, file), image in zip(some, read, strict=True):
                try:
                    content, (height, width, _) = image.result().tobytes(), image.result().shape
                    images.append({"name": file, "split": split, "offset": offset, "height": height, "width": width})
                    offset += pixels.write(content)
                    digest.update(content)
                except DataError as error:
                    if not skip_bad:
                        given = f" --source {shlex.quote(str(source))}" if parse(name)[0] in DATASETS else ""
                        command = f"python -m odl data prepare {shlex.quote(name)}{given} --skip-bad"
                        raise DataError(f"{error}; to leave such images out: {command}") from None
                    skipped.append(file)
                bar.update()
        pixels.flush()
        os.fsync(pixels.fileno())
    return {"bytes": offset, "sha256": digest.hexdigest(), "images": images, "skipped": skipped}
