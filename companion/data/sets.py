"""Data sets by name: where they come from, where they lie, and how they are divided (Sec. 6.1)."""

import hashlib
import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np

from companion.data.folders import files_in, record_of, unread
from companion.data.reader import DataError, kind
from companion.disk import files
from odl.experiment import check_dataset, is_folder, slug
from odl.parameters import ParameterError

PARTITION = "list_eval_partition.txt"  # CelebA's own: a name and 0, 1 or 2 a line, for training, validation and test
RECHECK_LIMIT = 1000  # sets up to this size are compared with their pack on every load

DB11 = "Barbara Boat C.man Couple F.print Hill House Lena Man Montage Peppers"

# fmt: off
DATASETS = {
    "demo": {
        "title": "photographs inside scikit-image", "size": "offline", "images": 12,
        "shorter_side": 192,  # not 96: a dozen photographs give too few different crops there
    },
    "bsds500": {
        "title": "Berkeley Segmentation Data Set, 500 photographs", "size": "about 70 MB", "images": 500,
        "url": "https://github.com/BIDS/BSDS500/archive/a04b7c6.zip",
        "folders": ("BSDS500/data/images", "images", ""),
        "sha256": "eaae4240cb921a9a77b3a87ade9a6a517588996ac105d7fb25c57c21256f856c",  # of the list of files
    },
    "celeba": {
        "title": "CelebA, 202,599 aligned faces", "size": "1.4 GB", "images": 202_599, "train_images": 100_000,
        "where": "mmlab.ie.cuhk.edu.hk/projects/CelebA.html, file img_align_celeba.zip",
        "torchvision": "CelebA",  # its class there
        "archive": "img_align_celeba.zip", "md5": "00d2c5bc6d35e252742224ab0c1e8fcb",
        "folders": ("celeba/img_align_celeba", "img_align_celeba", ""),  # torchvision's first
    },
    "celeba10k": {
        "title": "CelebA, its first 10,000 aligned faces, halved to 89×109", "size": "28 MB", "images": 10_000,
        "where": "img_align_celeba.zip of celeba, which it is made of",
        "of": "celeba",
        "folders": ("",),
        "sha256": "bd2bef49f0a7d3d7c952e182be7ab93377e7e241cf0a96214e51f02c361f32ca",
    },
    "sun397": {
        "title": "SUN397 scenes, 108,754 photographs", "size": "39 GB", "images": 108_754, "train_images": 100_000,
        "where": "vision.princeton.edu/projects/2010/SUN (or a mirror), file SUN397.tar.gz",
        "torchvision": "SUN397",
        "archive": "SUN397.tar.gz", "md5": "8ca2778205c41d23104230ba66911c7a",
        "folders": ("SUN397", ""),
    },
    "db11": {
        "title": "Denoising Benchmark 11, grey", "size": "1.5 MB", "images": 11,
        "url": "https://raw.githubusercontent.com/rhgao/on-demand-learning/master/denoise_anysize/DB11/",
        "folders": ("DB11", ""),
        "files": tuple(f"{name}.png" for name in DB11.split()),
        "sha256": "e33924b3b769e7181c5826a0b34ae65579bd8997e695a46dda8194e2e847032e",
    },
}
DEMO = {  # whole photographs are held out
    "train": (
        "astronaut.png", "motorcycle_left.png", "motorcycle_right.png", "hubble_deep_field.jpg", "camera.png",
        "brick.png", "grass.png", "gravel.png", "coins.png",
    ),
    "validation": ("rocket.jpg",),
    "test": ("chelsea.png", "coffee.png"),
}
# fmt: on


def parse(name: str) -> tuple[str, int]:
    """Split `bsds500-native` into the set, or a folder with `~` expanded, and its shorter side, 0 for native.

    A folder is a name with a slash in it, also one that a set has; one that exists is taken as it is named.
    """
    if is_folder(name):
        name = os.path.expanduser(name)
    base = name if is_folder(name) and os.path.isdir(name) else name.removesuffix("-native")
    return base, 0 if base != name else DATASETS.get(base, {}).get("shorter_side", 96)


def absolute(name: str, start: str = "") -> str:
    """Return a name that means the same in any working folder: a folder's whole path, `start` being where it began."""
    return os.path.abspath(os.path.join(start, os.path.expanduser(name))) if is_folder(name) else name


def home(name: str) -> Path:
    """Return the folder in `data/` that holds a set's images and packs."""
    base, _ = parse(name)
    return files.root() / "data" / (Path("folders", slug(base)) if is_folder(name) else base)


def find(name: str) -> Path:
    """Return the folder with a set's original images: under `ODL_DATA`, in `data/`, or the folder itself."""
    base, _ = parse(name)
    if base == "demo":
        import skimage

        return Path(skimage.__file__).parent / "data"
    check_dataset(name)
    if is_folder(name):
        if os.path.isfile(base):
            raise DataError(f"dataset={name!r} is a file, a folder is needed; nearest: '{os.path.dirname(base)}/'")
        if not os.path.isdir(base):
            raise DataError(f"dataset={name!r}: no such folder")
        return Path(base)
    given = os.environ.get("ODL_DATA")
    shared = [Path(os.path.expanduser(given), base)] if given else []
    for place in (*shared, home(base) / "images"):
        if folder := inside(base, place):
            return folder
    raise DataError(missing(base) + f" (ODL_DATA={given!r} has none)" * bool(given))


def inside(base: str, place: Path) -> Path | None:
    """Return the folder with a set's images in a copy of it, as torchvision and the archives nest it, or deeper."""
    for folder in filter(None, DATASETS[base]["folders"]):
        for pattern in (folder, f"*/{folder}", f"*/*/{folder}"):
            for found in sorted(place.glob(pattern)):
                if found.is_dir() and "__MACOSX" not in found.parts and any(found.iterdir()):
                    return found
    return place if "" in DATASETS[base]["folders"] and place.is_dir() and any(place.iterdir()) else None


def is_here(name: str) -> bool:
    """Return True if a set's original images are here."""
    try:
        return bool(find(name))
    except (DataError, OSError):  # not here, or another user's
        return False


def need_training_images(name: str) -> None:
    """Raise ParameterError for a set of test images alone."""
    if parse(name)[0] == "db11":
        raise ParameterError(f"dataset={name!r} has no training images; nearest: 'bsds500'")


def missing(base: str) -> str:
    """Return a line: what is missing, where it comes from, its size, and at its end the command to get it."""
    entry = DATASETS[base]
    where = f"it comes from {entry.get('where') or entry['url']} ({entry['size']})"
    return f"data set {base!r} ({entry['title']}) is not here; {where}: python -m odl data prepare {base}"


def list_images(name: str, folder: Path) -> dict[str, list[str]]:
    """Return the names of a set's images, relative to `folder`, divided into train, validation and test."""
    base, _ = parse(name)
    if base == "demo":
        return {split: list(files) for split, files in DEMO.items()}
    names = files_in(folder)
    if base == "db11":
        return {"train": [], "validation": [], "test": names}
    if base == "bsds500":
        train, val, test = ([n for n in names if n.startswith(f"{split}/")] for split in ("train", "val", "test"))
        return {"train": train + test, "validation": val[: len(val) // 2], "test": val[len(val) // 2 :]}
    groups = [[name] for name in names]
    if is_folder(name):  # files of equal content in one group, so that no copy of one tests; small copies in none
        record, alike = record_of(folder, home(name)), defaultdict(list)
        for file in names:
            alike[record["files"][file][1]] += [file] if file not in record["copies"] else []
        groups = [group for group in alike.values() if group]
    if len(groups) < 3:
        few = f"dataset={name!r}: {folder} has {len(groups)} of at least 3 images that are needed, all different"
        raise DataError("; ".join([few, *remarks(name, folder)]))
    if base == "celeba" and (official := partition(folder)):
        given = [official.get(Path(name).name) for name in names]
        if None in given:
            raise DataError(f"{folder}: {PARTITION} lacks some of its images; get both from one place")
        codes = {"train": "0", "validation": "1", "test": "2"}
        return {split: [n for n, at in zip(names, given, strict=True) if at == code] for split, code in codes.items()}
    if base not in ("celeba", "celeba10k"):  # a seeded shuffle of the sorted list
        groups = [groups[i] for i in np.random.default_rng(0).permutation(len(groups))]
    held = max(1, min(1000, len(groups) // 10))
    divided = {"train": groups[: -2 * held], "validation": groups[-2 * held : -held], "test": groups[-held:]}
    return {split: [name for group in part for name in group] for split, part in divided.items()}


def partition_file(folder: Path) -> Path | None:
    """Return CelebA's official list, if it lies with the images or up to three folders above."""
    folder = folder.resolve()
    return next((file for place in (folder, *folder.parents[:3]) if (file := place / PARTITION).is_file()), None)


def partition(folder: Path) -> dict[str, str]:
    """Return CelebA's official division, name to 0, 1 or 2; {} where its list is not here."""
    file = partition_file(folder)
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file else []
        return dict(line.split() for line in lines if line.strip())
    except ValueError:
        raise DataError(f"{file}: not CelebA's list of a name and 0, 1 or 2 a line; fetch it again") from None


def remarks(name: str, folder: Path) -> list[str]:
    """Return lines to print when a set is packed: how much is here, how it is divided, what is left out."""
    base, _ = parse(name)
    if is_folder(name):
        record, pages = record_of(folder, home(name)), 0
        for file in record["files"]:
            with suppress(DataError):  # which packing tells
                pages += kind(folder / file)[0] - 1
        copies, more = record["copies"], f"{folder}: pages left out: {pages}, all but the first of each file"
        small = f"{folder}: small copies left out: {len(copies)}, as {' of '.join(max(copies.items(), default=()))}"
        return unread(folder) + [small] * bool(copies) + [more] * bool(pages)
    lines, whole, here = [], DATASETS[base]["images"], len(files_in(folder))
    if "torchvision" in DATASETS[base] and here != whole:  # the other sets have a checksum
        lines.append(f"{base}: {here:,} images are in {folder}, and {whole:,} in the published set")
    if base == "celeba" and not partition(folder):
        lines.append(f"celeba: no {PARTITION} with the images, so the last of them validate and test")
    return lines


def fingerprint(name: str, folder: Path | None = None, listing: dict[str, list[str]] | None = None) -> str:
    """Return the SHA-256 of what a pack is made of: a set's division, names and sizes; a folder's names, contents.

    Times of change do not count.
    """
    folder = folder or find(name)
    if is_folder(name):
        lines = [f"{sha} {file}\n" for file, (_, sha) in record_of(folder, home(name))["files"].items()]
    else:
        listing = listing or list_images(name, folder)
        entries = [(split, file) for split, names in listing.items() for file in names]
        lines = [f"{split}/{file} {os.stat(os.path.join(folder, file)).st_size} \n" for split, file in entries]
    return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()
