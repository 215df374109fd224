"""Data sets by name, packed once to uint8, and random 64×64 crops on the device (Sec. 6.1).

A pack is one flat file of pixels with an index: images resized so that their shorter side is 96 (the released
code's size; `NAME-native` keeps the resolution), RGB, training images first. Packs live in `data/<set>/packed-<side>/`.
"""

import hashlib
import json
import os
import shlex
import shutil
import tarfile
import tempfile
import zipfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from tqdm.auto import tqdm

from odl import datasets, paths
from odl.corruptions import constant
from odl.datasets import DATASETS, DataError, find, home, parse

CROP = 64
SMALLEST = 16  # pixels of a side; what is smaller is taken for a bad image, not enlarged
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
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
        columns = {key: getattr(self, key)[start:n] for key in ("offset", "height", "width", "names")}
        return replace(self, **columns)


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


def pictures(name: str, split: str = "test", train_images: int = 0) -> Pack:
    """Images to show: the set's, or the demo photographs where it is not here, with a line that says so."""
    try:
        return load(name, split, train_images)
    except DataError as error:
        print(f"Pictures below are the demo photographs: {error}")
        return load("demo", split)


def halves(name: str, half: int, whole: int) -> tuple[Pack, Pack]:
    """The first `half` training images and the rest up to `whole`; where they are not here, the demo photographs."""
    train = pictures(name, "train", whole)
    half = half if len(train) == whole else len(train) // 2
    return train.take(half), train.take(len(train), half)


def seed_of(*parts) -> int:
    """A generator's seed from whatever names a stream of randomness."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:7])


# Packing


def folder_of(name: str) -> Path:
    """Where a set's pack lies."""
    return home(name) / f"packed-{parse(name)[1] or 'native'}"


def load(name: str, split: str, train_images: int = 0) -> Pack:
    """One split of a data set, packed first if it is not yet or has changed; `train_images` limits the training images.

    Raises DataError when the originals are not here, too few, or the pack is damaged.
    """
    folder = folder_of(name)
    index = index_of(folder)
    if index is None or changed(name, index):
        pack(name, find(name), folder)
        index = index_of(folder)
    file, damaged = folder / "pixels.bin", DataError(f"the pack {folder} is damaged: delete it and run again")
    if not file.exists() or file.stat().st_size != index["bytes"]:
        raise damaged
    pixels = torch.from_file(str(file), size=index["bytes"], dtype=torch.uint8)
    if index["bytes"] < 1 << 30 and hashlib.sha256(pixels.numpy()).hexdigest() != index["sha256"]:
        raise damaged
    images = [image for image in index["images"] if image["split"] == split]
    if split == "train" and train_images > len(images):
        raise DataError(f"train_images={train_images} is more than {name!r} has; nearest: {len(images)}")
    limit = train_images or DATASETS.get(parse(name)[0], {}).get("train_images")
    images = images[: limit if split == "train" else None]
    if not images:
        raise DataError(f"data set {name!r} has no {split} images")
    columns = (torch.tensor([image[key] for image in images]) for key in ("offset", "height", "width"))
    names = tuple(image["name"] for image in images)
    return Pack(pixels, *columns, names, index["sha256"], tuple(index["skipped"]))


def index_of(folder: Path) -> dict | None:
    """The index of a pack, None where there is no pack. Raises DataError when it is damaged."""
    try:
        return paths.unseal(folder / "index.json") if (folder / "index.json").exists() else None
    except paths.DamagedFile:
        raise DataError(f"the pack {folder} is damaged: delete it and run again") from None


def changed(name: str, index: dict) -> bool:
    """Whether the originals are no longer those that were packed; where they are many or gone, False."""
    if DATASETS.get(parse(name)[0], {}).get("images", 0) > datasets.FEW:
        return False
    try:
        source = find(name)
    except DataError:
        return False
    listing = datasets.fingerprint(name, source, datasets.list_images(name, source))
    return index.get("listing", listing) != listing


def pack(name: str, source: Path, folder: Path, skip_bad: bool = False) -> None:
    """Decode, resize and append every image of `source`, unless that was done; goes on where it was killed.

    Raises DataError naming the first image that cannot be read, unless `skip_bad`.
    """
    with paths.locked(folder.parent / f".{folder.name}.lock"):
        splits, there = datasets.list_images(name, source), index_of(folder)
        listing = datasets.fingerprint(name, source, splits)
        if there and there.get("listing", listing) == listing:
            return
        if there:
            print(f"{source} has changed since it was packed: packing it again")
            skip_bad = skip_bad or bool(there["skipped"])
            for file in ("index.json", "pixels.bin"):  # removed, not emptied: a run may have the pixels mapped
                (folder / file).unlink(missing_ok=True)
        for line in datasets.remarks(name, source):
            print(line)
        folder.mkdir(exist_ok=True)
        journal = Journal(folder, listing)
        append_all(journal, name, source, splits, skip_bad)
        journal.finish()


def append_all(journal: "Journal", name: str, source: Path, splits: dict[str, list[str]], skip_bad: bool) -> None:
    """Append every image that the journal lacks, decoded side by side."""
    entries = [(split, file) for split, files in splits.items() for file in files]
    todo, cores = entries[len(journal.entries) :], os.cpu_count() or 1
    shown = {"desc": f"packing {name}", "initial": len(journal.entries), "total": len(entries), "unit": "image"}
    with ThreadPoolExecutor(cores) as pool:  # decoding and resizing leave Python's lock to others
        images = in_order(pool, lambda entry: image_or_error(source / entry[1], parse(name)[1]), todo, 2 * cores)
        for (split, file), image in tqdm(zip(todo, images, strict=True), **shown):
            if not isinstance(image, DataError):
                journal.append(split, file, image)
            elif skip_bad:
                journal.write({"skipped": file})
            else:
                given = f" --source {shlex.quote(str(source))}" if parse(name)[0] in DATASETS else ""
                command = f"python -m odl data prepare {shlex.quote(name)}{given} --skip-bad"
                raise DataError(f"{image}; to leave such images out: {command}")


def in_order(pool, function, items, ahead: int):
    """What `function` returns for each item, in their order; at most `ahead` answers wait in memory."""
    waiting = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def image_or_error(path: Path, shorter_side: int) -> np.ndarray | DataError:
    """`read_image`, or what it raises."""
    try:
        return read_image(path, shorter_side)
    except DataError as error:
        return error


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
            entry = json.loads(line) if line.endswith(b"\n") else None
            end = self.bytes + 3 * entry.get("height", 0) * entry.get("width", 0) if entry else there + 1
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
        paths.write_atomically(self.folder / "index.json", paths.seal(index))
        (self.folder / "journal.jsonl").unlink()


# Reading images


def open_image(path: Path) -> Image.Image:
    """The first frame of an image file, upright, of 8 bits: mode L if it is grey, else RGB; alpha is dropped.

    16 bits a value and floats are scaled as `eight_bits` says. Raises DataError naming the file.
    """
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"{image.width}×{image.height} pixels are more than {MAX_PIXELS:,}")
            image.load()  # verify() lets truncated files pass
            form = image.format
            with suppress(Exception):  # damaged metadata are no damaged picture
                image = ImageOps.exif_transpose(image)
            if image.mode.startswith(("I", "F")):
                image = eight_bits(image, image.mode.startswith("I;16") or form in ("PNG", "PPM"))
            return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")
    except Exception as error:  # decoders raise anything on damaged files
        raise DataError(f"{path}: not a readable image ({reason(error)})") from None


def eight_bits(image: Image.Image, whole: bool) -> Image.Image:
    """Mode L of integers of 16 bits (`whole`), or of 32 bits or floats on the least usual range that has them all.

    These are [0, 1] for floats, [0, 255] and [0, 65535], with 5 % for what filters overshoot. Raises ValueError.
    """
    x = np.asarray(image).astype(np.float32)
    low, high = float(x.min()), float(x.max())
    ranges = (65535,) if whole else (255, 65535) if image.mode == "I" else (1, 255, 65535)
    top = next((top for top in ranges if high <= 1.05 * top), None)
    if top is None or not low >= -0.05 * top:
        raise ValueError(f"values from {low:g} to {high:g} have no range that is known; save them on [0, 1]")
    return Image.fromarray((x * (255 / top)).clip(0, 255).round().astype(np.uint8))


def read_image(path: Path, shorter_side: int) -> np.ndarray:
    """An image resized to that shorter side, aspect kept, 0 for its own if that is a crop's or more: (H, W, 3) uint8.

    Raises DataError naming the file when it cannot be read, or is under 16 pixels or too long.
    """
    image = open_image(path).convert("RGB")
    shorter = min(image.size)
    if shorter < SMALLEST:
        raise DataError(f"{path}: {image.width}×{image.height} pixels; both sides must have {SMALLEST} or more")
    side = shorter_side or max(shorter, CROP)
    if side != shorter:
        from torchvision.transforms.v2.functional import InterpolationMode, resize  # takes a second or two

        width, height = (max(side, round(length * side / shorter)) for length in image.size)
        if width * height > MAX_PIXELS:
            raise DataError(f"{path}: {image.width}×{image.height} pixels would become {width}×{height}")
        image = resize(image, [height, width], InterpolationMode.BICUBIC)
    return np.asarray(image)


def reason(error: Exception) -> str:
    """What an exception says, on one line."""
    return getattr(error, "strerror", None) or " ".join(str(error).split())[:300] or type(error).__name__


# Downloads


def prepare(name: str, source: str | None = None, skip_bad: bool = False) -> Path:
    """Get a data set by name (or from a local folder or archive), check it, and pack it. Returns the pack's folder."""
    base, _ = parse(name)
    try:
        folder = unpack(base, Path(source).expanduser()) if source else find(name)
    except DataError:
        if source or base not in DATASETS:
            raise
        folder = download(base)
    if base == "bsds500":
        check_listing(base, folder)
    if base == "db11":
        check_files(folder, DATASETS["db11"]["files"])
    pack(name, folder, folder_of(name), skip_bad)
    return folder_of(name)


def download(base: str) -> Path:
    """Fetch a set into `data/<set>/images`, whole or not at all. Raises DataError with the way to do it by hand."""
    import pooch
    import torchvision

    entry, cache = DATASETS[base], home(base) / "download"
    try:
        if "torchvision" in entry:
            shutil.rmtree(cache / entry["folders"][0], ignore_errors=True)  # half unpacked, if a run was killed
            getattr(torchvision.datasets, entry["torchvision"])(cache, download=True)
            for archive in cache.rglob(entry["archive"]):
                archive.unlink()
        elif "files" in entry:
            for file, digest in entry["files"].items():
                pooch.retrieve(entry["url"] + file, f"sha256:{digest}", file, cache, progressbar=True)
            for left_over in {path.name for path in cache.iterdir()} - set(entry["files"]):
                (cache / left_over).unlink()  # of a download that was killed
        else:
            archive = Path(pooch.retrieve(entry["url"], None, f"{base}.zip", cache, progressbar=True))
            try:
                return unpack(base, archive)
            finally:
                archive.unlink()  # else a bad one would be found again next time
        cache.replace(home(base) / "images")
        return find(base)
    except paths.OneLine:
        raise
    except Exception as error:  # of a server, a quota, a disk
        raise DataError(f"{datasets.missing(base, manual=True)} — the download failed: {reason(error)}") from None


def unpack(base: str, source: Path) -> Path:
    """The folder of images in a local folder or archive; archives give regular image files only."""
    if not source.exists():
        raise DataError(f"source={str(source)!r} does not exist")
    entry = DATASETS.get(base, {})
    folders = entry.get("folders", ("",))
    if source.is_dir():
        return next(source / f for f in folders if (source / f).is_dir())
    if "md5" in entry:
        from torchvision.datasets.utils import check_md5

        if not check_md5(source, entry["md5"]):
            raise DataError(f"{source}: checksum differs from the published {entry['archive']}")
    target = home(base) / "images"
    if target.is_dir() and any(target.iterdir()):  # unpacked before, and whole: it is renamed when complete
        return find(base)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        try:
            extract(source, Path(temporary))
        except paths.OneLine:
            raise
        except Exception as error:  # zipfile, tarfile and zlib raise anything on damaged archives
            fault = "could not be unpacked" if getattr(error, "errno", None) else "not a readable archive"
            raise DataError(f"{source}: {fault} ({reason(error)})") from None
        if base == "celeba" and (source.parent / datasets.PARTITION).is_file():
            shutil.copy(source.parent / datasets.PARTITION, temporary)
        inside = next(Path(temporary).glob("BSDS500*"), Path(temporary))
        if "sha256" in entry:
            check_listing(base, next(inside / f for f in folders if (inside / f).is_dir()))
        inside.replace(target)
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
        if place.suffix.lower() in datasets.SUFFIXES:
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
    for file in datasets.files_in(folder, (".jpg",)):
        total.update(f"{hashlib.sha256((folder / file).read_bytes()).hexdigest()}  {file}\n".encode())
    if total.hexdigest() != DATASETS[base]["sha256"]:
        raise DataError(f"{folder}: its files differ from the published {base}; delete that folder and run again")
