"""Data sets packed once to uint8: one flat file of pixels with an index, in `data/<set>/packed-<side>/` (Sec. 6.1).

Images are RGB, resized so that their shorter side is 96 (the released code's size; 192 for demo; `NAME-native` keeps
its own where that is a crop's or more), training images first.
"""

import hashlib
import json
import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from tqdm.auto import tqdm

from odl.crops import Pack
from odl.data import reader, sets
from odl.data.sets import DATASETS, DataError, find, home, parse
from odl.machine import files


def folder_of(name: str) -> Path:
    """Where a set's pack lies."""
    return home(name) / f"packed-{parse(name)[1] or 'native'}"


def load(name: str, split: str, train_images: int = 0) -> Pack:
    """One split of a data set, packed first if it is not yet or has changed; `train_images` limits the training images.

    Raises DataError when the originals are not here, too few, or the pixels are damaged; DamagedFile when the index is.
    """
    folder = folder_of(name)
    index = index_of(folder)
    if index is None or changed(name, index):
        pack(name, find(name), folder)
        index = index_of(folder)
    file, damaged = folder / "pixels.bin", DataError(f"the pack {folder} is damaged: delete it and run again")
    if not file.exists() or file.stat().st_size != index["bytes"]:
        raise damaged
    images = [image for image in index["images"] if image["split"] == split]
    if split == "train" and train_images > len(images):
        raise DataError(f"train_images={train_images} is more than {name!r} has; nearest: {len(images)}")
    limit = train_images or DATASETS.get(parse(name)[0], {}).get("train_images")
    images = images[: limit if split == "train" else None]
    if not images:
        raise DataError(f"data set {name!r} has no {split} images")
    pixels = torch.from_file(str(file), size=index["bytes"], dtype=torch.uint8)
    if index["bytes"] < 1 << 30 and hashlib.sha256(pixels.numpy()).hexdigest() != index["sha256"]:
        raise damaged
    columns = (torch.tensor([image[key] for image in images]) for key in ("offset", "height", "width"))
    names = tuple(image["name"] for image in images)
    return Pack(pixels, *columns, names, index["sha256"], tuple(index["skipped"]))


def index_of(folder: Path) -> dict | None:
    """The index of a pack, None where there is no pack. Raises DamagedFile."""
    path = folder / "index.json"
    return files.unseal(path) if path.exists() else None


def changed(name: str, index: dict) -> bool:
    """Whether the originals are no longer those that were packed; where a named set is large, or gone, False."""
    if DATASETS.get(parse(name)[0], {}).get("images", 0) > sets.COMPARED or not sets.is_here(name):
        return False
    listing = sets.fingerprint(name)
    return index.get("listing", listing) != listing


def pack(name: str, source: Path, folder: Path, skip_bad: bool = False) -> None:
    """Decode, resize and append every image of `source`, unless that was done; goes on where it was killed.

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
            for file in ("index.json", "pixels.bin"):  # removed, not emptied: a run may have the pixels mapped
                (folder / file).unlink(missing_ok=True)
        for line in sets.remarks(name, source):
            print(line)
        folder.mkdir(exist_ok=True)
        journal = Journal(folder, listing)
        append_all(journal, name, source, splits, skip_bad)
        journal.finish()


def append_all(journal: "Journal", name: str, source: Path, splits: dict[str, list[str]], skip_bad: bool) -> None:
    """Append every image that the journal lacks, decoded side by side."""
    entries = [(split, file) for split, files in splits.items() for file in files]
    todo, cores, faint = entries[len(journal.entries) :], os.cpu_count() or 1, []
    seen, twice = {}, []  # pixels: (split, file)
    shown = {"desc": f"packing {name}", "initial": len(journal.entries), "total": len(entries), "unit": "image"}
    with ThreadPoolExecutor(cores) as pool, tqdm(**shown) as bar:  # decoding and resizing leave Python's lock to others
        for start in range(0, len(todo), 2 * cores):  # so many wait in memory at most
            some = todo[start : start + 2 * cores]
            images = [pool.submit(reader.read_image, source / file, parse(name)[1]) for _, file in some]
            for (split, file), image in zip(some, images, strict=True):
                try:
                    journal.append(split, file, image.result())
                    first = seen.setdefault(hashlib.sha256(image.result()).digest(), (split, file))
                    twice += [(first[1], file)] if first[0] != split else []
                    faint += [(file, said)] if (said := reader.faint(image.result())) else []
                except DataError as error:
                    if not skip_bad:
                        given = f" --source {shlex.quote(str(source))}" if parse(name)[0] in DATASETS else ""
                        command = f"python -m odl data prepare {shlex.quote(name)}{given} --skip-bad"
                        raise DataError(f"{error}; to leave such images out: {command}") from None
                    journal.write({"skipped": file})
                bar.update()
    if twice:
        print(f"{len(twice)} images are on two sides of the division, as {' and '.join(twice[-1])}: delete the copies")
    if faint:
        print(f"{len(faint)} images use little of their range, as {': '.join(faint[-1])}")


class Journal:
    """Appends images to `pixels.bin` and a line for each to `journal.jsonl`, whose first line says of what listing.

    A packing of the same listing that was killed goes on after the last full line that has its pixels.
    """

    def __init__(self, folder: Path, listing: str):
        self.folder, self.listing, self.entries, self.bytes = folder, listing, [], 0
        path, pixels = folder / "journal.jsonl", folder / "pixels.bin"
        head, *lines = (path.read_bytes() if path.exists() else b"").splitlines(keepends=True) or [b""]
        there = pixels.stat().st_size if pixels.exists() else 0
        first = json.dumps({"listing": listing}).encode() + b"\n"
        for line in lines if head == first else []:
            try:
                entry = json.loads(line)
                end = self.bytes + 3 * entry.get("height", 0) * entry.get("width", 0)
            except (ValueError, AttributeError, TypeError):  # half a line, or a damaged one
                break
            if end > there:
                break
            self.entries.append(entry)
            self.bytes = end
        self.journal = open(path, "wb")  # noqa: SIM115
        self.journal.write(first + b"".join(json.dumps(entry).encode() + b"\n" for entry in self.entries))
        self.pixels = open(pixels, "ab")  # noqa: SIM115
        self.pixels.truncate(self.bytes)

    def append(self, split, file, image):
        self.pixels.write(image.tobytes())
        self.pixels.flush()
        height, width, _ = image.shape
        self.write({"name": file, "split": split, "offset": self.bytes, "height": height, "width": width})
        self.bytes += image.size

    def write(self, entry):
        self.entries.append(entry)
        self.journal.write(json.dumps(entry).encode() + b"\n")
        self.journal.flush()

    def finish(self):
        os.fsync(self.pixels.fileno())
        self.pixels.close()
        self.journal.close()
        with open(self.folder / "pixels.bin", "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        images = [entry for entry in self.entries if "offset" in entry]
        skipped = [entry["skipped"] for entry in self.entries if "skipped" in entry]
        if skipped:
            print(f"left out, not readable: {', '.join(skipped)}")
        index = {"bytes": self.bytes, "sha256": digest, "images": images, "skipped": skipped, "listing": self.listing}
        files.write_atomically(self.folder / "index.json", files.seal(index))
        (self.folder / "journal.jsonl").unlink()
