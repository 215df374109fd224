"""Data sets by name: where they come from, where they lie, and how they are divided (Sec. 6.1)."""

import hashlib
import os
import re
from pathlib import Path

import numpy as np

from odl import paths

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")

DATASETS = {
    "demo": {
        "title": "photographs inside scikit-image",
        "size": "offline",
        "images": 12,
        "shorter_side": 192,  # not 96: a dozen photographs give too few different crops there
        "terms": "ship with scikit-image, whose docstrings give their origins; read on this machine, never copied here",
    },
    "bsds500": {
        "title": "Berkeley Segmentation Data Set, 500 photographs",
        "size": "about 70 MB",
        "images": 500,
        "pixels": (481, 321),
        "url": "https://github.com/BIDS/BSDS500/archive/a04b7c6.zip",
        "folders": ("BSDS500/data/images", "images", ""),
        "sha256": "eaae4240cb921a9a77b3a87ade9a6a517588996ac105d7fb25c57c21256f856c",  # of the list of files
        "terms": "non-commercial research and education",
    },
    "celeba": {
        "title": "CelebA, 202,599 aligned faces",
        "size": "1.4 GB",
        "images": 202_599,
        "pixels": (178, 218),
        "where": "mmlab.ie.cuhk.edu.hk/projects/CelebA.html, file img_align_celeba.zip",
        "archive": "img_align_celeba.zip",
        "md5": "00d2c5bc6d35e252742224ab0c1e8fcb",
        "folders": ("img_align_celeba", "celeba/img_align_celeba", ""),
        "train_images": 100_000,
        "terms": "non-commercial research, no redistribution of any portion",
    },
    "sun397": {
        "title": "SUN397 scenes, 108,754 photographs",
        "size": "39 GB",
        "images": 108_754,
        "where": "vision.princeton.edu/projects/2010/SUN (or a mirror), file SUN397.tar.gz",
        "archive": "SUN397.tar.gz",
        "md5": "8ca2778205c41d23104230ba66911c7a",
        "folders": ("SUN397", ""),
        "train_images": 100_000,
        "terms": "non-commercial research",
    },
    "db11": {
        "title": "Denoising Benchmark 11, grey",
        "size": "1.5 MB",
        "images": 11,
        "url": "https://raw.githubusercontent.com/rhgao/on-demand-learning/master/denoise_anysize/DB11/",
        "folders": ("",),
        "terms": "no licence stated: never redistribute",
        "files": {
            "Barbara.png": "764b8a2748cc7ad381cccc047c5e512cb528c197ba86adb83aa339e8932e66c0",
            "Boat.png": "18bea4de1634456f5791d16301863fc974401d144cd6afb86f09a6be4620fe54",
            "C.man.png": "0da05a64c5090d4f49a021e884451788a5ae0b7ecf3b565be8afd5bf1cc1c2e2",
            "Couple.png": "f6acd12953db8c1f5a0dda53fef4233be37a61702cd22d5be742cf7c039021f2",
            "F.print.png": "da7daa343256aa187cf36161e3113b382eb7bb37f3ba23d3dfc99e15697619ab",
            "Hill.png": "f181874584ca31e209ee4e78ed836f742bd6692fb268fa3de1b3c861ed56c3b3",
            "House.png": "576b2b3b6ff4d7e6c8ddccb0df645774f9b986c81219c28e16ba1935990a0b29",
            "Lena.png": "614176830c78cf7ef2c6119f9750877abe96736358492d6d299e2589feac2524",
            "Man.png": "a8791afbd2af4f977f30c3a9a72a50204264440c27b1f4bb282a085eb680abe1",
            "Montage.png": "9315f18ec482a6678586f795be04beda3e3680e9facbcaadd6e547d83c65218e",
            "Peppers.png": "92de94d7b8ef9e645546821150eff5c765d0d29666f9bc7d20b61063f35c3305",
        },
    },
}
DEMO = {  # whole photographs are held out
    "train": (
        *(
            "astronaut.png",
            "motorcycle_left.png",
            "motorcycle_right.png",
            "hubble_deep_field.jpg",
            "camera.png",
        ),
        *("brick.png", "grass.png", "gravel.png", "coins.png"),
    ),
    "validation": ("rocket.jpg",),
    "test": ("chelsea.png", "coffee.png"),
}


class DataError(paths.OneLine):
    """A data set is missing or damaged; the message is one line that says what to do."""


def parse(name: str) -> tuple[str, int]:
    """Split `bsds500-native` into the set and its shorter side, 0 for native resolution."""
    base = name.removesuffix("-native")
    return base, 0 if name.endswith("-native") else DATASETS.get(base, {}).get("shorter_side", 96)


def slug(name: str) -> str:
    """The name of a data set in paths: itself, or the last part of a folder and a hash of where it is."""
    if parse(name)[0] in DATASETS:
        return name
    folder = Path(name).resolve()
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]  # two folders may share their last part
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', folder.name)}-{digest}"


def home(name: str) -> Path:
    """The folder in `data/` that holds a set's images and packs."""
    base, _ = parse(name)
    return paths.root() / "data" / (base if base in DATASETS else Path("folders", slug(base)))


def find(name: str) -> Path:
    """The folder with a set's original images: under `ODL_DATA`, in `data/`, or the folder itself."""
    base, _ = parse(name)
    if base == "demo":
        import skimage

        return Path(skimage.__file__).parent / "data"
    if base not in DATASETS:
        if Path(base).is_dir():
            return Path(base)
        raise DataError(f"dataset={name!r} is neither a set ({', '.join(DATASETS)}) nor a folder")
    shared = [Path(os.environ["ODL_DATA"]) / base] if os.environ.get("ODL_DATA") else []
    for place in (*shared, home(base) / "images"):
        for folder in DATASETS[base]["folders"]:
            if (place / folder).is_dir() and any((place / folder).iterdir()):
                return place / folder
    raise DataError(missing(base))


def missing(base: str) -> str:
    """One line: what is missing, where it comes from, the command, its size."""
    entry = DATASETS[base]
    source = " --source FOLDER_OR_ARCHIVE" if "where" in entry else ""
    return (
        f"data set {base!r} ({entry['title']}) is not here; it comes from {entry.get('where') or entry['url']} "
        f"({entry['size']}): python -m odl data prepare {base}{source}"
    )


def list_images(name: str, folder: Path) -> dict[str, list[str]]:
    """The names of a set's images, relative to `folder`, divided into train, validation and test."""
    base, _ = parse(name)
    if base == "demo":
        return {split: list(files) for split, files in DEMO.items()}
    if base == "bsds500":
        files = {s: sorted(f"{s}/{p.name}" for p in (folder / s).glob("*.jpg")) for s in ("train", "val", "test")}
        half = len(files["val"]) // 2
        return {
            "train": files["train"] + files["test"],
            "validation": files["val"][:half],
            "test": files["val"][half:],
        }
    names = sorted(
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file()
    )
    if base == "db11":
        return {"train": [], "validation": [], "test": names}
    if len(names) < 3:
        raise DataError(f"dataset={name!r} has {len(names)} images in {folder}; at least 3 are needed")
    if base != "celeba":  # a seeded shuffle of the sorted list
        names = [names[i] for i in np.random.default_rng(0).permutation(len(names))]
    held = max(1, min(1000, len(names) // 10))
    return {"train": names[: -2 * held], "validation": names[-2 * held : -held], "test": names[-held:]}
