"""Data sets by name, packed once to uint8, and random 64×64 crops on the device (Sec. 6.1).

A pack is one flat file of pixels with an index: images resized so that their shorter side is 96 (the released
code's size; `NAME-native` keeps the resolution), RGB, training images first. Packs live in `data/<set>/packed-<side>/`.
"""

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tqdm.auto import tqdm

from odl import paths
from odl.corruptions import constant
from odl.datasets import DATASETS, SUFFIXES, DataError, find, home, list_images, missing, parse

CROP = 64
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP")
MAX_PIXELS = 100_000_000
MAX_ARCHIVE = 64 << 30  # bytes of files; the largest set, SUN397, has 39 GB
RESERVED = 4 << 30  # bytes of a GPU that training wants beside the images


@dataclass(frozen=True)
class Pack:
    """Images of one split: `pixels` is flat uint8, image i is pixels[offset[i]:].view(height[i], width[i], 3)."""

    pixels: torch.Tensor  # (bytes,)
    offset: torch.Tensor  # (n,) int64
    height: torch.Tensor  # (n,) int64
    width: torch.Tensor  # (n,) int64
    names: tuple[str, ...]
    sha256: str
    skipped: tuple[str, ...] = ()

    def __len__(self):
        return len(self.names)

    def to(self, device) -> "Pack":
        """The same images on `device`, this split's bytes only; pixels that do not fit there stay in the file."""
        first = int(self.offset[0])
        last = int(self.offset[-1] + 3 * self.height[-1] * self.width[-1])
        pixels, index = self.pixels[first:last], (self.offset - first, self.height, self.width)
        pixels = pixels.to(device) if len(pixels) < room(device) else pixels
        return Pack(pixels, *(t.to(device) for t in index), self.names, self.sha256, self.skipped)

    def image(self, i: int) -> np.ndarray:
        """Image i as (height, width, 3) uint8."""
        h, w, start = int(self.height[i]), int(self.width[i]), int(self.offset[i])
        return self.pixels[start : start + 3 * h * w].view(h, w, 3).cpu().numpy()

    def take(self, n: int, start: int = 0) -> "Pack":
        """Images start … n - 1."""
        return Pack(
            self.pixels,
            self.offset[start:n],
            self.height[start:n],
            self.width[start:n],
            self.names[start:n],
            self.sha256,
            self.skipped,
        )


def room(device) -> float:
    """Bytes that a pack may take on a device; on a CPU any number, because its file is mapped into memory."""
    if torch.device(device).type == "cpu":
        return float("inf")
    return torch.cuda.mem_get_info(device)[0] - RESERVED


def crop(pack: Pack, index: torch.Tensor, generator: torch.Generator, flip: bool = True) -> torch.Tensor:
    """A random 64×64 crop of each image in `index` (B,), flipped with probability ½: (B, 3, 64, 64) in [-1, 1].

    One gather of rows where the pixels are, without a loop, channels_last.
    """
    u = torch.rand((len(index), 3), generator=generator, device=generator.device)
    height, width = pack.height[index], pack.width[index]
    top, left = ((u[:, k] * (side - CROP + 1)).long() for k, side in enumerate((height, width)))
    row = torch.arange(CROP, device=index.device)
    start = pack.offset[index, None] + ((top[:, None] + row) * width[:, None] + left[:, None]) * 3  # (B, 64)
    pixels = pack.pixels.unfold(0, 3 * CROP, 1)[start.to(pack.pixels.device)].to(start.device)  # (B, 64, 192)
    x = pixels.view(-1, CROP, CROP, 3).permute(0, 3, 1, 2).float() / 127.5 - 1
    return torch.where((u[:, 2] < 0.5).view(-1, 1, 1, 1), x.flip(-1), x) if flip else x


def grey(x: torch.Tensor, variant: str = "paper") -> torch.Tensor:
    """(B, 3, H, W) to (B, 1, H, W): luminance, or the released code's red channel."""
    # Released code: 0.9999·R, by a slip; here: luminance, because the paper says grey-scale.
    weights = (0.299, 0.587, 0.114) if variant == "paper" else (1.0, 0.0, 0.0)
    return (x * constant(weights, x.device).view(1, 3, 1, 1)).sum(1, keepdim=True)


def fixed_crops(pack: Pack, n: int, stream: str) -> torch.Tensor:
    """The same n crops in every run: crop i is of image i modulo the number of images, never flipped."""
    generator = torch.Generator().manual_seed(seed_of(stream))
    index = torch.arange(n) % len(pack)
    return crop(pack.to("cpu"), index, generator, flip=False)


def pictures(name: str, split: str = "test") -> Pack:
    """Images to show: the set's, or the demo photographs where it is not here, with a line that says so."""
    try:
        return load(name, split)
    except DataError as error:
        print(f"Pictures below are the demo photographs: {error}")
        return load("demo", split)


def halves(name: str, half: int, whole: int) -> tuple[Pack, Pack]:
    """The first `half` training images and the rest up to `whole`; where they are not here, the demo photographs."""
    try:
        train = load(name, "train", whole)
    except DataError as error:
        print(f"Pictures below are the demo photographs: {error}")
        train, half, whole = load("demo", "train"), 4, 9
    return train.take(half), train.take(whole, half)


def seed_of(*parts) -> int:
    """A generator's seed from whatever names a stream of randomness."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:7])


# Packing


def folder_of(name: str) -> Path:
    """Where a set's pack lies."""
    return home(name) / f"packed-{parse(name)[1] or 'native'}"


def load(name: str, split: str, train_images: int = 0) -> Pack:
    """One split of a data set, packed first if it is not yet; `train_images` limits the training images.

    Raises DataError when the originals are not here or the pack is damaged.
    """
    folder = folder_of(name)
    if not (folder / "index.json").exists():
        pack(name, find(name), folder)
    file = folder / "pixels.bin"
    damaged = DataError(f"the pack {folder} is damaged: delete it and run again")
    try:
        index = paths.unseal(folder / "index.json")
    except paths.DamagedFile:
        raise damaged from None
    if not file.exists() or file.stat().st_size != index["bytes"]:
        raise damaged
    pixels = torch.from_file(str(file), size=index["bytes"], dtype=torch.uint8)
    if index["bytes"] < 1 << 30 and hashlib.sha256(pixels.numpy()).hexdigest() != index["sha256"]:
        raise damaged
    limit = train_images or DATASETS.get(parse(name)[0], {}).get("train_images") or len(index["images"])
    images = [image for image in index["images"] if image["split"] == split][: limit if split == "train" else None]
    if not images:
        raise DataError(f"data set {name!r} has no {split} images")
    columns = (torch.tensor([image[key] for image in images]) for key in ("offset", "height", "width"))
    names = tuple(image["name"] for image in images)
    return Pack(pixels, *columns, names, index["sha256"], tuple(index["skipped"]))


def pack(name: str, source: Path, folder: Path, skip_bad: bool = False) -> None:
    """Decode, resize and append every image of `source`; a run that was killed goes on where it stopped."""
    with paths.locked(folder.parent / f".{folder.name}.lock"):
        if (folder / "index.json").exists():
            return
        folder.mkdir(exist_ok=True)
        listing = [(split, file) for split, files in list_images(name, source).items() for file in files]
        journal = Journal(folder, listing)
        shown = {"desc": f"packing {name}", "initial": journal.done, "total": len(listing), "unit": "image"}
        todo = listing[journal.done :]
        with closing(in_order(lambda entry: image_or_error(source / entry[1], parse(name)[1]), todo)) as images:
            for (split, file), image in tqdm(zip(todo, images, strict=True), **shown):
                if not isinstance(image, DataError):
                    journal.append(split, file, image)
                elif skip_bad:
                    journal.skip(file)
                else:
                    raise image
        journal.finish()


def in_order(function, items):
    """What `function` answers for each item, in their order, on all cores; a few answers at most wait in memory."""
    cores, waiting = os.cpu_count() or 1, deque()
    with ThreadPoolExecutor(cores) as pool:  # decoding and resizing leave Python's lock to others
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def image_or_error(path: Path, shorter_side: int) -> np.ndarray | DataError:
    """`read_image`, or what it raises."""
    try:
        return read_image(path, shorter_side)
    except DataError as error:
        return error


class Journal:
    """Appends images to `pixels.bin` and a line for each to `journal.jsonl`.

    A packing that was killed goes on after the last full line that has its pixels and is of the same listing.
    """

    def __init__(self, folder: Path, listing: list[tuple[str, str]]):
        self.folder = folder
        path = folder / "journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        there = (folder / "pixels.bin").stat().st_size if (folder / "pixels.bin").exists() else 0
        self.entries, self.bytes = [], 0
        for (split, file), line in zip(listing, lines, strict=False):
            entry = json.loads(line) if line.endswith(b"\n") else {}
            end = self.bytes + 3 * entry.get("height", 0) * entry.get("width", 0)
            if end > there or (entry.get("split"), entry.get("name")) != (split, file) and entry.get("skipped") != file:
                break
            self.entries.append(entry)
            self.bytes = end
        self.images = [entry for entry in self.entries if "offset" in entry]
        self.journal = open(path, "wb")  # noqa: SIM115
        self.journal.write(b"".join(json.dumps(entry).encode() + b"\n" for entry in self.entries))
        self.pixels = open(folder / "pixels.bin", "ab")  # noqa: SIM115
        self.pixels.truncate(self.bytes)

    @property
    def done(self) -> int:
        return len(self.entries)

    def append(self, split, file, image):
        self.pixels.write(image.tobytes())
        self.pixels.flush()
        entry = {
            "name": file,
            "split": split,
            "offset": self.bytes,
            "height": image.shape[0],
            "width": image.shape[1],
        }
        self.images.append(entry)
        self.bytes += image.size
        self.write(entry)

    def skip(self, file):
        self.write({"skipped": file})

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
        skipped = [entry["skipped"] for entry in self.entries if "skipped" in entry]
        index = {"bytes": self.bytes, "sha256": digest, "images": self.images, "skipped": skipped}
        paths.write_atomically(self.folder / "index.json", paths.seal(index))
        (self.folder / "journal.jsonl").unlink()


def read_image(path: Path, shorter_side: int) -> np.ndarray:
    """Decode an image fully and resize it, aspect kept: (height, width, 3) uint8. Raises DataError naming the file."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise DataError(f"{path}: {image.width}×{image.height} pixels are more than {MAX_PIXELS:,}")
            image.load()  # verify() lets truncated files pass
            if image.mode.startswith("I;16") or (image.mode, image.format) == ("I", "PNG"):
                image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
            if image.mode in ("I", "F"):  # convert() would cut them off at 255
                raise ValueError(f"mode {image.mode} has no range that is known")
            image = image.convert("RGB")
    except DataError:
        raise
    except Exception as error:  # decoders raise anything on damaged files
        raise DataError(f"{path}: not a readable image ({error or type(error).__name__})") from None
    shorter = min(image.size)
    side = shorter_side or max(shorter, CROP)
    if side != shorter:
        size = tuple(max(side, round(length * side / shorter)) for length in image.size)
        if size[0] * size[1] > MAX_PIXELS:
            raise DataError(f"{path}: {image.width}×{image.height} pixels would become {size[0]}×{size[1]}")
        image = image.resize(size, Image.Resampling.BICUBIC)
    return np.asarray(image)


# Downloads


def prepare(name: str, source: str | None = None, skip_bad: bool = False) -> Path:
    """Get a data set by name (or from a local folder or archive), check it, and pack it. Returns the pack's folder."""
    base, _ = parse(name)
    if source:
        folder = unpack(base, Path(source))
    else:
        try:
            folder = find(name)
        except DataError:
            folder = download(base)
    if base == "bsds500" and not source:
        check_listing(base, folder)
    if base == "db11":
        check_files(folder, DATASETS["db11"]["files"])
    target = folder_of(name)
    pack(name, folder, target, skip_bad)
    return target


def download(base: str) -> Path:
    """Fetch a set into `data/<set>/images`; whole or not at all."""
    entry = DATASETS.get(base, {})
    if "url" not in entry:
        raise DataError(missing(base) if entry else f"dataset={base!r} is neither a set nor a folder")
    import pooch

    images = home(base) / "images"
    cache = home(base) / "download"
    try:
        if "files" in entry:
            for file, digest in entry["files"].items():
                pooch.retrieve(entry["url"] + file, f"sha256:{digest}", file, cache, progressbar=True)
            for left_over in {path.name for path in cache.iterdir()} - set(entry["files"]):
                (cache / left_over).unlink()  # of a download that was killed
            return cache.replace(images)
        archive = Path(pooch.retrieve(entry["url"], None, f"{base}.zip", cache, progressbar=True))
        try:
            return unpack(base, archive)
        finally:
            archive.unlink()  # else a bad one would be found again next time
    except (OSError, ValueError) as error:
        raise DataError(f"{missing(base)} — the download failed: {str(error).splitlines()[0]}") from None


def unpack(base: str, source: Path) -> Path:
    """The folder of images in a local folder or archive; archives give regular image files only."""
    if not source.exists():
        raise DataError(f"source={str(source)!r} does not exist")
    folders = DATASETS.get(base, {}).get("folders", ("",))
    if source.is_dir():
        return next(source / f for f in folders if (source / f).is_dir())
    entry = DATASETS.get(base, {})
    if "md5" in entry:
        with open(source, "rb") as file:
            if hashlib.file_digest(file, "md5").hexdigest() != entry["md5"]:
                raise DataError(f"{source}: checksum differs from the published {entry['archive']}")
    target = home(base) / "images"
    if target.is_dir() and any(target.iterdir()):  # unpacked before, and whole: it is renamed when complete
        return find(base)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        try:
            extract(source, Path(temporary))
        except (DataError, paths.DiskError):
            raise
        except Exception as error:  # zipfile, tarfile and zlib raise anything on damaged archives
            disk = isinstance(error, OSError) and error.errno
            fault = "could not be unpacked" if disk else "not a readable archive"
            raise DataError(f"{source}: {fault} ({error or type(error).__name__})") from None
        tops = list(Path(temporary).iterdir())
        inside = tops[0] if len(tops) == 1 and tops[0].is_dir() and tops[0].name.startswith("BSDS500") else temporary
        if "sha256" in entry:
            check_listing(base, next(Path(inside, f) for f in folders if Path(inside, f).is_dir()))
        Path(inside).replace(target)
    return find(base)


def extract(archive: Path, target: Path, limit: int = 400_000) -> None:
    """Write the image files of a zip or tar below `target`: no links, no absolute or climbing names, no bombs."""

    def members():
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                for info in file.infolist():
                    if not info.is_dir() and (info.external_attr >> 28) in (0, 8):
                        yield info.filename, info.file_size, lambda info=info: file.open(info)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as file:
                for info in file:
                    if info.isreg():
                        yield info.name, info.size, lambda info=info: file.extractfile(info)
        else:
            raise DataError(f"{archive}: neither a zip nor a tar archive")

    total = 0
    for count, (name, size, open_member) in enumerate(tqdm(members(), desc=f"extracting {archive.name}", unit="file")):
        place, total = (target / name).resolve(), total + size
        too_large = count >= limit or size > MAX_PIXELS or total > MAX_ARCHIVE
        if too_large or not place.is_relative_to(target.resolve()):
            raise DataError(f"{archive}: refused member {name!r}")
        paths.need_room(target, size)
        if place.suffix.lower() in SUFFIXES:
            place.parent.mkdir(parents=True, exist_ok=True)
            with open_member() as source, open(place, "wb") as file:
                shutil.copyfileobj(source, file)


def check_files(folder: Path, files: dict[str, str]) -> None:
    """Raise DataError naming the first file whose SHA-256 differs."""
    for file, digest in files.items():
        path = folder / file
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise DataError(f"{path}: missing, or its checksum differs from the published file")


def check_listing(base: str, folder: Path) -> None:
    """Raise DataError when the SHA-256 over all file names and contents differs."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.jpg"), key=lambda p: str(p.relative_to(folder))):
        total.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n".encode())
    if total.hexdigest() != DATASETS[base]["sha256"]:
        raise DataError(f"{folder}: its files differ from the published {base}; delete that folder and run again")
