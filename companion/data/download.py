"""Getting a data set: downloads, local folders and archives, checked before they are used (Sec. 6.1)."""

import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from PIL import Image

from companion.data import sets
from companion.data.folders import files_in, hash_of
from companion.data.packs import folder_of, pack
from companion.data.reader import DataError, reason
from companion.data.sets import DATASETS, find, home, parse
from companion.disk import files
from companion.disk.progress import Bar
from odl.parameters import OneLine

HALF_SIZE = (89, 109)  # pixels of a face of celeba10k


def prepare(name: str, source: str | None = None, skip_bad: bool = False) -> Path:
    """Get a data set by name (or from a local folder or archive), check it, and pack it. Returns the pack's folder."""
    base, _ = parse(name)
    source = Path(os.path.expanduser(source)).resolve() if source else None
    if (images := home(base) / "images").is_symlink() and (source or not images.exists()):
        images.unlink()  # to the folder of an earlier call, or to one that was moved
    if source and (base not in DATASETS or base == "demo"):  # which comes with scikit-image
        known = ", ".join(set_ for set_ in DATASETS if set_ != "demo")
        raise DataError(f"--source belongs to a set by name ({known}), not to {name!r}")
    if source:
        folder = halved(base, source) if "of" in DATASETS[base] else unpack(base, source)
    else:
        folder = download(base) if base in DATASETS and not sets.is_here(base) else find(name)
    if "sha256" in DATASETS.get(base, {}):
        check_listing(base, folder)
    pack(name, folder, folder_of(name), skip_bad)
    if source and not sets.is_here(base):  # a folder: its images stay there, and are found from here
        try:
            images.symlink_to(source, target_is_directory=True)
        except OSError as error:  # Windows asks for a privilege
            print(f"{base} is packed, but not found for Table 3 and its denoisers: set ODL_DATA ({reason(error)})")
    return folder_of(name)


def download(base: str) -> Path:
    """Fetch a set into `data/<set>/images`, whole or not at all. Raises DataError with the way to do it by hand."""
    import pooch
    import torchvision

    entry, cache = DATASETS[base], home(base) / "download"
    if "of" in entry:
        return halved(base, find(entry["of"]))
    pooch.get_logger().setLevel("WARNING")  # else it prints the SHA-256 of every file
    try:
        if "torchvision" in entry:
            shutil.rmtree(cache / entry["folders"][0], ignore_errors=True)  # half unpacked, if a run was killed
            getattr(torchvision.datasets, entry["torchvision"])(cache, download=True)
            for archive in cache.rglob(entry["archive"]):
                archive.unlink()
        else:
            shutil.rmtree(cache, ignore_errors=True)  # of a download that was killed or that differed
            address, _, archive = entry["url"].rpartition("/")
            site = pooch.create(cache, f"{address}/", registry=dict.fromkeys(entry.get("files", [archive])))
            for file in site.registry:
                site.fetch(file, pooch.Unzip() if file == archive else None, progressbar=True)
            check_listing(base, sets.inside(base, cache) or cache)
            if archive:
                (cache / archive).unlink()
        cache.replace(home(base) / "images")
        return find(base)
    except OneLine:
        raise
    except Exception as error:  # of a server, a quota, a disk
        by_hand = f"{sets.missing(base)} --source FOLDER_OR_ARCHIVE"
        raise DataError(f"{by_hand} — the download failed: {reason(error)}") from None


def unpack(base: str, source: Path) -> Path:
    """Return the folder of images in a local folder or archive, which is unpacked whole or not at all."""
    if source.is_dir():
        return sets.inside(base, source) or source
    entry, target = DATASETS[base], home(base) / "images"
    check_archive(entry, source)
    if target.is_dir() and any(target.iterdir()):  # unpacked before, and whole: it is renamed when complete
        return find(base)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        unpacked = Path(temporary) / "images"
        unpacked.mkdir()  # `temporary` itself is for its owner alone
        try:
            extract(source, unpacked)
        except OneLine:
            raise
        except Exception as error:  # zipfile, tarfile and zlib raise anything on damaged archives
            raise DataError(f"{source}: not unpacked ({reason(error)})") from None
        if base == "celeba" and (official := sets.partition_file(source.parent)):
            shutil.copy(official, unpacked)
        if "sha256" in entry:
            check_listing(base, sets.inside(base, unpacked) or unpacked, source)
        unpacked.replace(target)
    return find(base)


def halved(base: str, source: Path) -> Path:
    """Return the folder of the first 10,000 faces at half their size, made of CelebA's archive or folder."""
    entry, target = DATASETS[base], home(base) / "images"
    if target.is_dir() and any(target.iterdir()):
        return find(base)
    if not source.is_dir():
        check_archive(DATASETS[entry["of"]], source)
    place = unpack(entry["of"], source) if source.is_dir() else zipfile.Path(source, "img_align_celeba/")
    faces = sorted((file for file in place.iterdir() if file.name.endswith(".jpg")), key=lambda file: file.name)
    if len(faces) < entry["images"]:
        raise DataError(f"{source}: {len(faces):,} faces; {base} is made of {entry['images']:,}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        made = Path(temporary) / "images"
        made.mkdir()
        with Bar(entry["images"], f"halving {source.name}") as bar:
            for face in faces[: entry["images"]]:
                with face.open("rb") as file, Image.open(file) as image:
                    image.resize(HALF_SIZE, Image.Resampling.LANCZOS).save(made / face.name, quality=75)
                bar.update()
        made.replace(target)
    return target


def check_archive(entry: dict, source: Path) -> None:
    """Raise DataError when an archive is no file, or not the published one."""
    from torchvision.datasets.utils import check_md5

    if not source.is_file():  # a pipe would be waited for
        raise DataError(f"source={str(source)!r} " + ("is no regular file" if source.exists() else "does not exist"))
    if "md5" in entry and not check_md5(source, entry["md5"]):
        why = f"checksum differs from the published {entry['archive']}"
        raise DataError(f"{source}: {why}; of other archives give the folder that they are unpacked to")


def extract(archive: Path, target: Path) -> None:
    """Unpack a zip or tar below `target`: nothing outside of it, no devices, no links that lead outside."""
    print(f"unpacking {archive.name}")
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            files.need_room(target, sum(info.file_size for info in file.infolist()))
            file.extractall(target)
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as file:
            file.extractall(target, filter="data")
    else:
        raise DataError(f"{archive}: neither a zip nor a tar archive")


def listing_of(base: str, folder: Path) -> str:
    """Return the SHA-256 over the names and contents of a set's files."""
    total, there = hashlib.sha256(), files_in(folder)
    for file in sorted(set(there) & set(DATASETS[base].get("files", there))):
        total.update(f"{hash_of(folder / file)}  {file}\n".encode())
    return total.hexdigest()


def check_listing(base: str, folder: Path, archive: Path | None = None) -> None:
    """Raise DataError when a set's files differ from the published ones; of faces that were halved here it is said."""
    if listing_of(base, folder) == DATASETS[base]["sha256"]:
        return
    if "of" in DATASETS[base]:
        print(f"{folder}: its faces differ from those behind the results here: another source, or JPEG library")
        return
    raise DataError(f"{archive or folder}: its files differ from the published {base}; put another copy in its place")
