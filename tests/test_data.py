"""Packing, splits, crops, downloads: whole or absent, and a bad image is never trained on."""

import hashlib
import io
import os
import shutil
import struct
import subprocess
import tarfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tifffile
import torch
import torchvision
from conftest import found, refused, tiny
from made import (
    BAD,
    GREY,
    ROUGH,
    X,
    chunk,
    cut,
    encoded,
    flip,
    grey,
    jpeg,
    modes,
    photograph,
    tar_with,
    tiff_of,
    zip_with,
)
from page_facts import served
from PIL import Image, ImageFile

from companion.cli import main
from companion.data import download, folders, packs, reader, sets
from companion.data.packs import load
from companion.data.sets import DATASETS
from companion.disk import files
from companion.restore import image_files
from companion.show import pictures, tables
from companion.training import measurement, results
from companion.training.results import path_of
from odl import crops
from odl.experiment import Experiment, slug
from odl.parameters import OneLine

BICUBIC = Image.Resampling.BICUBIC


def files_below(folder: Path) -> set[str]:
    """Every file but locks, relative."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")}


def write(path: Path, pixels, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path, root):
    """Twelve photographs of many sizes in two folders, with a file that is none of them."""
    for k in range(12):
        write(tmp_path / f"album/{k % 2}/{k:02}.png", photograph(k, 60 + 11 * k, 180 - 9 * k))
    (tmp_path / "album/readme.txt").write_text("not an image")
    return tmp_path / "album"


@pytest.fixture
def no_shared_data(monkeypatch):
    monkeypatch.delenv("ODL_DATA", raising=False)


def packs_of(name):
    return [packs.load(name, split) for split in ("train", "validation", "test")]


@pytest.mark.parametrize("name", ["demo", "folder"])
def test_splits_are_disjoint_and_hold_out_whole_images(name, demo, folder):
    packs = packs_of(str(folder) if name == "folder" else name)
    assert len({n for pack in packs for n in pack.names}) == sum(map(len, packs)) == 12 and all(map(len, packs))
    assert len({pack.image(i).tobytes() for pack in packs for i in range(len(pack))}) == 12


@pytest.fixture
def listing(tmp_path, monkeypatch):
    """Splits of n names, without n files; with `codes`, CelebA's official file gives each name's."""

    def of(base, n, codes=""):
        names = [f"{k:06}.jpg" for k in range(1, n + 1)]
        monkeypatch.setattr(sets, "files_in", lambda folder: names)
        if codes:
            lines = [f"{name} {code}" for name, code in zip(names, codes, strict=False)]
            (tmp_path / "list_eval_partition.txt").write_text("\n".join(lines) + "\n")
        splits = sets.list_images(base, tmp_path / "img_align_celeba")
        return [[int(name[:6]) for name in splits[s]] for s in ("train", "validation", "test")]

    return of


def test_celeba_trains_on_the_first_100_000_with_its_partition_or_without(listing):
    limit, every = DATASETS["celeba"]["train_images"], list(range(1, 202_600))
    train, validation, test = listing("celeba", 202_599)
    assert train[:limit] == every[:100_000] and len(train) >= 162_770  # for the extra-data test of Sec. 6.6
    assert validation + test == every[-2000:]
    train, validation, test = listing("celeba", 202_599, "0" * 162_770 + "1" * 19_867 + "2" * 19_962)
    assert train[:limit] == every[:100_000] and (len(train), len(validation), len(test)) == (162_770, 19_867, 19_962)
    assert train + validation + test == every
    refused(lambda: listing("celeba", 9, "01"), "list_eval_partition.txt lacks")
    refused(lambda: listing("celeba", 9, ["<p>Quota exceeded</p>"]), "list_eval_partition.txt: not CelebA's list")


def test_sun397_is_shuffled_by_a_seed(listing):
    train, validation, test = first = listing("sun397", 5000)
    assert first == listing("sun397", 5000) and train != sorted(train)
    assert sorted(train + validation + test) == list(range(1, 5001)) and len(validation) == len(test) == 500


def test_bsds500_keeps_val_out_of_training(root):
    source = found("bsds500")
    train, validation, test = (sets.list_images("bsds500", source)[s] for s in ("train", "validation", "test"))
    assert (len(train), len(validation), len(test)) == (400, 50, 50)
    assert all(name.startswith("val/") for name in validation + test) and not any(n.startswith("val/") for n in train)
    download.check_listing("bsds500", source)


def test_hidden_files_are_left_out_and_what_is_not_read_is_told(folder, capsys):
    for name in ("._00.png", "0/._02.png", ".git/00.png"):
        write(folder / name, photograph(0))
    Image.fromarray(photograph(50)).save(folder / "12.JFIF", "JPEG")
    Image.fromarray(photograph(51)).save(folder / "13.jpe", "JPEG")
    Image.fromarray(photograph(52)).save(folder / "14.pnm", "PPM")
    for name in ("a.HEIC", "b.heic", "c.cr3", "d.raf", "e", "._d.heic", "f.JP2", "notes.md"):
        (folder / name).write_bytes(b"x")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "gone.jpg").symlink_to(folder / "nowhere")
    download.prepare(str(folder))
    names = [n for pack in packs_of(str(folder)) for n in pack.names]
    assert sorted(names) == sorted([*(f"{k % 2}/{k:02}.png" for k in range(12)), "12.JFIF", "13.jpe", "14.pnm"])
    said = capsys.readouterr().out
    assert said.startswith(f"{folder}: 8 files are left out (2 ") and said.count("\n") == 1
    assert all(word in said for word in ("2 .heic", "2 .jpg", "1 .cr3", "1 .raf", "1 .jp2", "1 without a suffix"))


THUMBNAILS = (".thumbnails/a.png", "Thumbs/a.jpg", "0/thumbnails/b/c.png", "1/@eaDir/04.png/SYNOPHOTO_THUMB_M.jpg")
THUMBNAILS += ("Catalogue Previews.lrdata/a/b.lrprev", "Previews/d.jpg", "_thumb/e.png")


def test_what_programs_leave_beside_photographs_is_left_out_and_counted(folder, capsys):
    """Whole folders by name, and by content small copies of a picture, whatever they are called."""
    alone = sets.list_images(str(folder), folder)
    for name in THUMBNAILS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(jpeg(1))
    scenes = sorted((found("bsds500") / "val").glob("*.jpg"))[:8]
    for k, scene in enumerate(scenes):
        with Image.open(scene) as image:
            image.save(folder / f"scene {k}.png")
    packs_of(str(folder))
    [said] = capsys.readouterr().out.splitlines()
    assert said.startswith(f"{folder}: 7 files in folders of thumbnails are left out (")
    named = {".thumbnails", "Thumbs", "thumbnails", "@eaDir", "Catalogue Previews.lrdata", "Previews", "_thumb"}
    assert {*said.rpartition("(")[2].strip(")").split(", ")} == named
    before = sets.list_images(str(folder), folder)
    for k, scene in enumerate(scenes):
        with Image.open(scene) as image:
            side, form = (64, 100, 240)[k % 3], ("JPEG", "PNG", "WEBP")[k % 3]
            image.thumbnail((side, side), resample=(Image.Resampling.NEAREST, Image.Resampling.LANCZOS)[k % 2])
            turned, exif = image.transpose(Image.Transpose.ROTATE_90), Image.Exif()
            exif[274] = 6  # as a camera writes it
            turned.save(folder / f"{k % 2}/IMG_{k}.{form.lower()}", form, exif=exif)
    names = [n for pack in packs_of(str(folder)) for n in pack.names]
    assert capsys.readouterr().out.count(f"{folder}: 8 small copies are left out, as 1/IMG_7.png of scene 7.png") == 1
    assert sets.list_images(str(folder), folder) == before and len(names) == len(set(names)) == 20
    assert [len(alone[split]) for split in alone] == [10, 1, 1]


def test_pages_of_files_are_told_once(tmp_path, root, capsys):
    for k in range(4):
        pages = [Image.fromarray(photograph(50 * k + page, 40, 50)) for page in range(50 - k)]
        pages[0].save(tmp_path / f"stack {k}.tif", save_all=True, append_images=pages[1:])
    write(tmp_path / "single.png", photograph(1))
    assert sum(map(len, packs_of(str(tmp_path)))) == 5
    assert capsys.readouterr().out.startswith(
        "4 files have 194 pages, of which the first of each is taken, as of stack"
    )


def test_what_a_folder_holds_decides_and_not_its_times(folder, capsys):
    """A touched file, as by a copy or an archive, trains nothing anew; another content of the same size does."""
    run = tiny(dataset=str(folder))
    result = results.measurement_of(run).run("cpu")
    capsys.readouterr()
    for file in sets.files_in(folder):
        os.utime(folder / file, (10**9, 10**9))
    for _ in ("this process", "another one"):
        assert results.load_result(run).path == result.path and results.place_of_weights(run)
        assert len(packs.load(str(folder), "train")) == 10 and capsys.readouterr().out == ""
        folders.RECORDS.clear()
    flip(folder / "0/04.png", -30)
    assert results.load_result(run) is None


def test_links_to_folders_are_followed_once(folder, tmp_path):
    """Not upwards, nor around in a ring."""
    for k in range(3):
        write(tmp_path / f"other/{k}.png", photograph(50 + k))
    for link, target in {"a link": "other", "again": "other", "up": ".", "self": "album", "ring": "album/ring"}.items():
        (folder / link).symlink_to(tmp_path / target, target_is_directory=True)
    own = [f"{k % 2}/{k:02}.png" for k in range(12)]
    assert sets.files_in(folder) == sorted(own + [f"a link/{k}.png" for k in range(3)])
    assert len({n for pack in packs_of(str(folder)) for n in pack.names}) == 15


def test_a_folder_that_cannot_be_entered_is_told(folder, monkeypatch):
    """As to a user without rights in it; root has them all."""
    scandir = os.scandir

    def closed(path):
        if str(path).endswith("/1"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    refused(lambda: sets.files_in(folder), f"{folder}/1: Permission denied")


@pytest.mark.parametrize("copies", ["names", "links", "formats"])
def test_no_photograph_is_on_two_sides_of_a_division(folder, capsys, copies):
    """Copies of files stay together, and the division is that of the files alone; the same pixels are told of."""
    alone = sets.list_images(str(folder), folder)
    for k, file in enumerate(sets.files_in(folder)):
        if copies == "formats":
            Image.open(folder / file).save(folder / f"{k}.bmp")
        elif copies == "links":
            (folder / f"{k}.png").symlink_to(folder / file)
        else:
            shutil.copy(folder / file, (folder / file).with_stem(f"{Path(file).stem} (1)"))
    sides = {}
    for side, pack in enumerate(packs_of(str(folder))):
        for i in range(len(pack)):
            sides.setdefault(pack.image(i).tobytes(), []).append(side)
    assert len(sides) == 12 and {len(found) for found in sides.values()} == {2}
    twice = sum(len(set(found)) > 1 for found in sides.values())
    if copies == "formats":
        assert twice and f"{twice} images are on two sides of the division, as " in capsys.readouterr().out
    else:
        test = sets.list_images(str(folder), folder)["test"]
        assert not twice and set(alone["test"]) < set(test) and len(test) == 2
        assert [len(pack) for pack in packs_of(str(folder))] == [20, 2, 2]


CHANGES = {
    "one more": lambda folder: write(folder / "new.png", photograph(99)),
    "one less": lambda folder: (folder / "0/04.png").unlink(),
    "another name": lambda folder: (folder / "0/04.png").rename(folder / "0/99.png"),
    "other pixels": lambda folder: write(folder / "0/04.png", photograph(99)),
    "as many bytes": lambda folder: flip(folder / "0/04.png", -30),
    "nothing": lambda folder: None,
    "no image": lambda folder: (folder / "readme.txt").write_text("changed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_that_changed_is_packed_again(folder, tmp_path, capsys, change):
    before = packs.load(str(folder), "train")
    pixels = before.pixels.clone()
    (folder / "0/04.png").write_bytes((folder / "0/04.png").read_bytes() + bytes(100))  # flips nothing that is decoded
    packs.load(str(folder), "train")
    capsys.readouterr()
    CHANGES[change](folder)
    names = [n for pack in packs_of(str(folder)) for n in pack.names]
    told = f"{folder} has changed since it was packed: packing it again\n"
    assert capsys.readouterr().out == (told if list(CHANGES).index(change) < 5 else "")
    assert set(names) == set(sets.files_in(folder))
    packs.pack(str(folder), folder, tmp_path / "afresh")
    assert sha(next(sets.home(str(folder)).glob("packed-96"))) == sha(tmp_path / "afresh")
    assert torch.equal(before.pixels, pixels)  # a run that goes on keeps the images that it began with


def test_a_pack_of_originals_that_are_gone_is_kept(folder):
    pack = packs.load(str(folder), "train")
    folder.rename(folder.parent / "elsewhere")
    assert packs.load(str(folder), "train").sha256 == pack.sha256


def test_a_home_folder_and_a_missing_one(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert packs.load("~/album", "train").sha256 == packs.load(str(folder), "train").sha256
    assert slug("~/album-native") == slug(f"{folder}-native")
    for name in ("~/albums", "./albums"):
        refused(lambda name=name: packs.load(name, "train"), f"dataset={name!r}: no such folder")
    refused(lambda: packs.load("album", "train"), "'album' is neither a set (demo, ")
    refused(lambda: download.prepare("celeba", "~/nowhere"), "nowhere", "does not exist")
    for name in ("~/album", "demo"):
        refused(lambda name=name: download.prepare(name, "~/album"), "--source", "bsds500, ")
    folder.rename(folder.parent / "my-native")
    assert sets.find("~/my-native") == folder.parent / "my-native" and sets.parse("~/my-native")[1] == 96


def test_with_a_slash_a_name_is_a_folder_s(demo, folder, monkeypatch):
    """As a shell completes it; without one the set is meant."""
    monkeypatch.chdir(folder.parent)
    for name in ("demo/", "demo//", "demo-native/", "bsds500/"):
        refused(lambda name=name: packs.load(name, "train"), f"dataset={name!r}: no such folder")
    folder.rename("demo")
    for name in ("demo/", "./demo", "demo//", str(folder.parent / "demo")):
        assert sorted(packs.load(name, "test").names) != sorted(sets.DEMO["test"])
        assert slug(name) == slug("./demo") != "demo" and sets.parse(name)[1] == 96
        assert measurement.identity(Experiment.of("deblur", name))["images"]
    for name in ("Demo", "BSDS500", "CelebA-native"):
        Path(name).symlink_to("demo")
        nearest = name.lower().removesuffix("-native")
        refused(lambda name=name: Experiment.of("deblur", name), "neither a set", f"nearest: '{nearest}'")


@pytest.mark.parametrize(("name", "own"), [("album", True), ("bsds500", False), ("db11-native", False)])
def test_git_ignores_what_is_measured_on_a_folder_of_ones_own(folder, name, own):
    project = Path(__file__).resolve().parents[1]
    experiment = Experiment.of("inpaint", str(folder) if own else name, profile="reference")
    table = tables.table_path("table1", "reference", experiment.dataset, "inpaint")
    for path in (path_of(experiment), table):
        path = Path("data/results", path.relative_to(files.results()))
        assert subprocess.run(["git", "check-ignore", "-q", path], cwd=project).returncode == (0 if own else 1)


def test_fewer_than_three_images_are_refused(folder):
    for file in sets.files_in(folder)[2:]:
        (folder / file).unlink()
    refused(lambda: packs.load(str(folder), "train"), "2 images", "at least 3")


@pytest.mark.parametrize("native", ["", "-native"])
def test_a_pack_holds_the_images_as_pillow_resizes_them(folder, native):
    """To a shorter side of 96, or in their own size but no less than a crop; odd ones, too."""
    for height, width in ((16, 16), (300, 16), (17, 300), (70, 5000)):
        write(folder / f"{height}.png", photograph(height, height, width))
    for pack in packs_of(f"{folder}{native}"):
        for i, name in enumerate(pack.names):
            with Image.open(folder / name) as original:
                side = max(64, min(original.size)) if native else 96
                size = [max(side, round(length * side / min(original.size))) for length in original.size]
                expected = original if native and side == min(original.size) else original.resize(size, BICUBIC)
                assert np.array_equal(pack.image(i), np.asarray(expected)) and min(size) == side


@pytest.mark.parametrize(("flip", "moved"), [(True, False), (False, True)])
def test_crops_equal_slices_with_the_same_draws(folder, flip, moved):
    pack = packs.load(f"{folder}-native", "train")
    pack = pack.to("cpu") if moved else pack
    index = torch.randint(len(pack), (300,), generator=torch.Generator().manual_seed(1))
    x = crops.crop(pack, index, torch.Generator().manual_seed(0), flip)
    u = torch.rand((300, 3), generator=torch.Generator().manual_seed(0)).double().numpy()
    tops = set()
    for i, picture in enumerate(pack.image(int(k)) for k in index):
        top, left = (int(u[i, k] * (picture.shape[k] - 63)) for k in (0, 1))
        expected = picture[top : top + 64, left : left + 64]
        expected = expected[:, ::-1] if flip and u[i, 2] < 0.5 else expected
        np.testing.assert_allclose(x[i].permute(1, 2, 0).numpy(), expected / 127.5 - 1, atol=1e-6)
        tops |= {top == 0, top == picture.shape[0] - 64 and top > 0}
    assert x.shape == (300, 3, 64, 64) and tops == {True, False}


def test_a_split_moves_to_a_device_with_its_own_bytes_or_stays_in_the_file(folder, monkeypatch):
    pack = packs.load(str(folder), "test")
    moved = pack.to("cpu")
    assert moved.pixels.numel() == sum(3 * int(h) * int(w) for h, w in zip(pack.height, pack.width, strict=True))
    assert all(np.array_equal(pack.image(i), moved.image(i)) for i in range(len(pack)))
    monkeypatch.setattr(crops, "room", lambda device: 0)
    mapped = pack.to("meta")
    assert mapped.pixels.device.type == "cpu" and mapped.offset.device.type == "meta"
    assert torch.equal(mapped.pixels, moved.pixels)


def test_training_images_can_be_limited_but_not_made(folder):
    refused(lambda: packs.load(str(folder), "train", 11), "train_images=11", "nearest: 10")
    whole, part = packs.load(str(folder), "train"), packs.load(str(folder), "train", 4)
    assert part.names == whole.names[:4] and len(whole) == 10 and whole.take(2).names == whole.names[:2]
    assert packs.load(str(folder), "test", 4).names == packs.load(str(folder), "test").names


def test_grey_is_luminance():
    x = torch.rand(2, 3, 4, 4)
    expected = (np.array([299, 587, 114]) / 1000) @ x.numpy().reshape(2, 3, 16)
    np.testing.assert_allclose(crops.grey(x).numpy().reshape(2, 16), expected, atol=1e-6)


def test_fixed_crops_are_fixed_and_take_turns(folder):
    pack = packs.load(str(folder), "train")
    x = crops.fixed_crops(pack, 25, "test")
    torch.manual_seed(4)
    assert torch.equal(x, crops.fixed_crops(pack, 25, "test"))
    assert not torch.equal(x, crops.fixed_crops(pack, 25, "other"))
    assert not torch.equal(x[0], x[10]) and x.shape[0] == 25  # the same image elsewhere
    again = torch.Generator().manual_seed(crops.seed_of("test"))
    assert torch.equal(x, crops.crop(pack, torch.arange(25) % 10, again, flip=False))


def sha(folder):
    return hashlib.sha256((folder / "pixels.bin").read_bytes()).hexdigest()


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (4, 4), (64, packs.MAX_DECODE_THREADS)])
def test_packing_takes_no_more_threads_than_cores_and_memory_have_room_for(folder, monkeypatch, cores, expected):
    """In a container os.cpu_count is the host's."""
    pool, threads = packs.ThreadPoolExecutor, []
    monkeypatch.setattr(packs, "cpu_count", lambda: cores)
    monkeypatch.setattr(packs, "ThreadPoolExecutor", lambda n: threads.append(n) or pool(n))
    packs.load(str(folder), "train")
    assert threads == [expected]


def test_a_packing_that_was_stopped_is_no_pack_and_begins_again(folder, tmp_path, monkeypatch):
    """By Ctrl-C, which leaves nothing, or killed."""
    read, target, seen = reader.read_image, tmp_path / "half", []

    def stopping(*arguments):
        seen.append(arguments)
        if len(seen) > 7:
            raise KeyboardInterrupt
        return read(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(reader, "read_image", stopping)
        packs.pack(str(folder), folder, target)
    assert not any(target.iterdir())
    (target / "pixels.bin").write_bytes(b"half")
    for place in (target, tmp_path / "whole"):
        packs.pack(str(folder), folder, place)
    assert (target / "index.json").read_bytes() == (tmp_path / "whole/index.json").read_bytes()
    assert sha(target) == sha(tmp_path / "whole")


def test_of_many_that_need_a_pack_one_makes_it(folder, monkeypatch):
    read, seen = reader.read_image, []
    monkeypatch.setattr(reader, "read_image", lambda *a: seen.append(a) or read(*a))
    with ThreadPoolExecutor(8) as many:
        found = {pack.sha256 for pack in many.map(lambda _: packs.load(str(folder), "train"), range(8))}
    assert len(seen) == 12 and len(found) == 1


@pytest.mark.parametrize("harm", [lambda x: flip(x, 1000), lambda x: x.write_bytes(x.read_bytes() + b"x"), Path.unlink])
def test_a_pack_is_checked_once_a_process_and_again_when_it_has_changed(folder, harm):
    packs.load(str(folder), "train")
    before = packs.hash_of.cache_info().misses
    assert len(packs_of(str(folder))) == 3 and packs.hash_of.cache_info().misses == before
    harm(next(sets.home(str(folder)).glob("packed-96/pixels.bin")))
    refused(lambda: packs.load(str(folder), "train"), "damaged", "delete it")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("lenient", [False, True])
def test_a_bad_image_stops_packing_by_name_or_is_listed(folder, tmp_path, capsys, monkeypatch, lenient):
    """Never trained on: packing stops, names the file and the command; with it the file is left out and listed.

    Also where a program has told Pillow to fill up what is truncated.
    """
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    for name, content in BAD.items():
        (tmp_path / name).write_bytes(content)
        refused(lambda name=name: reader.read_image(tmp_path / name, 96), name)
    name = "truncated.jpg"
    (folder / name).write_bytes(BAD[name])
    command = f"python -m odl data prepare {folder} --skip-bad"
    refused(lambda: download.prepare(str(folder)), name, command)
    refused(lambda: load(str(folder), "train"), name, command)
    download.prepare(str(folder), skip_bad=True)
    assert capsys.readouterr().out == f"left out, not readable: {name}\n"
    write(folder / "new.png", photograph(99))  # packed again, and what was left out stays out
    packs = packs_of(str(folder))
    assert {pack.skipped for pack in packs} == {(name,)}
    assert f"left out, not readable: {name}" in capsys.readouterr().out
    assert {n for pack in packs for n in pack.names} == {*(f"{k % 2}/{k:02}.png" for k in range(12)), "new.png"}
    assert lenient == ImageFile.LOAD_TRUNCATED_IMAGES


def rgb_16_png(grey=ROUGH) -> bytes:
    """Pillow cannot write one: 16 bits a colour."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in np.dstack([grey, grey[::-1], grey]))
    header = struct.pack(">IIBBBBB", *grey.shape[::-1], 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def png_with_a_clear_colour(bits: int, colours: int) -> bytes:
    """A PNG of which one value is transparent."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 64, 64, bits, colours - 1, 0, 0, 0))]
    parts += [(b"tRNS", struct.pack(">H", 3000) * colours)]
    rows = b"\0".join([b""] + 64 * [bytes(64 * colours * bits // 8)])
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def colour_tiff(array, **options) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, array, photometric="rgb", **options)
    return file.getvalue()


def with_page_inside(**options) -> bytes:
    """A TIFF as a catalogue writes it: a small page, and below it the picture."""
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as pages:
        pages.write(X[::4, ::4], photometric="rgb", subifds=1, **options)
        pages.write(X, photometric="rgb")
    return file.getvalue()


def pyramid() -> bytes:
    """A TIFF whose smaller copies lie below the picture."""
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as pages:
        pages.write(X, photometric="rgb", subifds=1)
        pages.write(X[::4, ::4], photometric="rgb", subfiletype=1)
    return file.getvalue()


def canon() -> bytes:
    """A TIFF with the mark of Canon's raw files, whose first page is a preview."""
    start, strip = (struct.pack("<HHII", 273, 4, 1, place) for place in (146, 154))
    return b"II*\0\x10\0\0\0CR\2\0" + bytes(4) + tiff_of(80, 70, 8, GREY.tobytes())[8:].replace(start, strip)


UNIT = ROUGH.astype(np.float32) / 65535
EVEN, ODD = ROUGH[:, ::2] >> 4, ROUGH[:, 1::2] >> 4  # of 12 bits, two in three bytes
DEEP = np.dstack([ROUGH, ROUGH[::-1], ROUGH])
TWELVE = np.stack([EVEN >> 4, (EVEN & 15) << 4 | ODD >> 8, ODD & 255], -1).astype(np.uint8).tobytes()
FILES = {  # bytes of a file, and the RGB pixels that it shows
    **{name: (encoded(image, "PNG"), shown) for name, image, shown in modes()},
    **{form: (encoded(X, form), X) for form in ("PPM", "BMP")},
    "RGB of 16 bits": (rgb_16_png(), DEEP // 256),  # Pillow cuts the low byte off
    "TIFF of 16 bits": (colour_tiff(DEEP), DEEP // 256),
    "grey TIFF of 16 bits": (encoded(ROUGH), grey(ROUGH / 65535 * 255)),
    "grey PGM of 16 bits": (encoded(ROUGH, "PPM"), grey(ROUGH / 65535 * 255)),
    "grey TIFF of 12 bits": (tiff_of(80, 70, 12, TWELVE), grey((ROUGH >> 4) / 4095 * 255)),
    "floats to 1": (encoded(UNIT), grey(UNIT * 255)),
    "floats a little beyond": (encoded(UNIT * 1.06 - 0.03), grey((UNIT * 1.06 - 0.03) * 255)),
    "with damaged metadata": (encoded(X, "WEBP", lossless=True, exif=b"Exif\0\0MM\0*\0\0\xff\xff"), X),
    "a smaller page below it": (pyramid(), X),
    "animated": (encoded(GREY, "GIF", save_all=True, append_images=[Image.fromarray(255 - GREY)]), grey(GREY)),
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_image_is_read_as_it_shows(tmp_path, name):
    content, expected = FILES[name]
    (tmp_path / "x.jpg").write_bytes(content)  # under any suffix
    image = reader.flat(reader.opened(tmp_path / "x.jpg"))
    pixels = reader.read_image(tmp_path / "x.jpg", 0)
    assert np.array_equal(pixels, expected)
    assert image.mode == ("L" if (expected == expected[..., :1]).all() and name != "P" else "RGB")
    deep = any(word in name for word in ("16", "12 bits", "floats"))
    assert reader.kind(tmp_path / "x.jpg") == (2 if name == "animated" else 1, deep)


REFUSED = {  # bytes of a file, and words of the line that refuses it
    "colours of floats": (
        colour_tiff((DEEP / 65535).astype(np.float32)),
        "a TIFF or raw file of values that are not read",
    ),
    "half floats": (colour_tiff((DEEP / 65535).astype(np.float16)), "a TIFF or raw file of values that are not read"),
    "floats to 255": (encoded(GREY.astype(np.float32)), "TIFF of floats from 0 to 255; save it with 8 or 16 bits"),
    "no numbers": (BAD["nan.tif"], "TIFF of floats from nan to nan"),
    "integers of 32 bits": (encoded(ROUGH.astype(np.int32)), "TIFF of signed values or integers of 32 bits"),
    "signed": (BAD["below.tif"], "TIFF of signed values"),
    "7 bits and a sign": (tiff_of(80, 70, 8, (GREY >> 1).tobytes(), 2), "TIFF of signed values"),
    "0 is white": (
        tiff_of(80, 70, 16, (65535 - ROUGH).tobytes(), black=0),
        "TIFF of more than 8 bits whose 0",
    ),
    "planes": (colour_tiff(DEEP.transpose(2, 0, 1), planarconfig="separate"), "in planes; save them interleaved"),
    "a preview": (tiff_of(80, 70, 8, GREY.tobytes(), page=1), "its first page is a preview"),
    "a raw file": (with_page_inside(subfiletype=1), "its first page is a preview"),
    "an unmarked one": (with_page_inside(), "its first page is a preview"),
    "of Canon": (canon(), "its first page is a preview"),
    "a clear grey": (png_with_a_clear_colour(16, 1), "PNG of 16 bits with one colour that is transparent"),
    "a clear colour": (png_with_a_clear_colour(16, 3), "PNG of 16 bits with one colour that is transparent"),
    "HEIC": (b"\0\0\0\x18ftypheic" + bytes(99), "of kind 'heic', as HEIC, AVIF and raw files are; save it as PNG"),
    "a page": (BAD["page.jpg"], "a web page or SVG"),
    "nothing": (b"", "an empty file"),
    **{kind: (start + bytes(80), f"({kind}; save it as PNG or JPEG)") for start, kind in reader.KINDS.items()},
    "text": (BAD["text.png"], "of no known kind; save it as PNG or JPEG"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_one_line_that_names_the_file_and_what_it_is(tmp_path, capsys, name):
    """In a folder of one's own and for `odl restore`; no value is guessed."""
    content, words = REFUSED[name]
    (file := tmp_path / "x.tif").write_bytes(content)
    refused(lambda: reader.read_image(file, 96), str(file), words)
    assert main(["restore", "--task", "deblur", str(file), str(tmp_path / "out.png")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {file}: ") and words in error and not (tmp_path / "out.png").exists()


@pytest.mark.parametrize(("form", "bits"), [("PNG", 12), ("TIFF", 12), ("PPM", 14), ("colours", 14), ("PNG", 16)])
def test_a_file_that_uses_little_of_its_range_is_told(folder, capsys, form, bits):
    """A maximum of 14 bits is a quarter of 16; training is told once, however many there are."""
    for k in range(3):
        x = photograph(k)[..., 0].astype(np.uint16) * 257 >> 16 - bits
        (folder / f"{k}.png").write_bytes(rgb_16_png(x) if form == "colours" else encoded(x, form))
        told = reader.faint(reader.flat(reader.opened(folder / f"{k}.png")))
        tops = [int(round_(255 / 2 ** (16 - bits))) for round_ in (np.floor, np.ceil)]
        assert told is None if bits == 16 else any(f"above {top} of" in told for top in tops)
    download.prepare(f"{folder}-native")
    printed = capsys.readouterr().out
    assert not printed if bits == 16 else (printed.startswith("3 images use little") and printed.count("\n") == 1)


def test_where_nothing_is_read_what_is_left_out_is_told(tmp_path):
    for k in range(4):
        (tmp_path / f"{k}.cr3").write_bytes(b"x")
    for call in (
        lambda: download.prepare(str(tmp_path)),
        lambda: image_files.todo(str(tmp_path), str(tmp_path / "out"), None, False),
    ):
        refused(call, "4 files are left out (4 .cr3)", kind=OneLine)


@pytest.mark.parametrize("name", ["bsds500", "celeba", "sun397", "db11"])
def test_a_missing_set_says_what_where_how_and_how_large(root, no_shared_data, monkeypatch, name):
    where = {"bsds500": "github.com/BIDS", "celeba": "mmlab.ie", "sun397": "SUN397.tar.gz", "db11": "rhgao"}[name]
    said = f"{name!r}", where, DATASETS[name]["size"], f"data prepare {name}"
    refused(lambda: packs.load(name, "train"), *said)
    monkeypatch.setenv("ODL_DATA", "nowhere")
    refused(lambda: packs.load(name, "train"), *said, "(ODL_DATA='nowhere' has none)")
    assert not files_below(root)


def celeba(folder, n=30):
    for k in range(n):
        write(folder / f"img_align_celeba/{k + 1:06}.jpg", photograph(k, 218, 178))
    return folder


def sun397(folder, n=30):
    """With a greyscale file, an RGBA PNG and a BMP under .jpg names, as in the real set."""
    for k in range(n):
        x = photograph(k, 120, 100)
        kinds = (x, "JPEG"), (x[..., 0], "PNG"), (np.dstack([x, x[..., 0]]), "PNG"), (x, "BMP")
        place = folder / f"SUN397/{'abc'[k % 3]}/{('abbey', 'bar', 'cave')[k % 3]}/sun_{k:04}.jpg"
        write(place, kinds[k % 4][0], format=kinds[k % 4][1])
    return folder


SETS = {"celeba": celeba, "sun397": sun397}
OFFICIAL = "".join(f"{k:06}.jpg {(k > 20) + (k > 26)}\n" for k in range(1, 31))


def sizes(name):
    return [len(pack) for pack in packs_of(name)]


@pytest.mark.parametrize("name", SETS)
def test_torchvision_fetches_the_large_sets_whole_or_not_at_all(root, no_shared_data, monkeypatch, name):
    """A download that fails half unpacked is no set, and is not what the next one starts from."""
    left = [3, 30]  # images that it has unpacked when it ends; a failure first

    def fetch(folder, download):
        folder = Path(folder) / name if name == "celeba" else Path(folder)
        assert download and not list(folder.rglob("*.jpg"))
        n = left.pop(0)
        SETS[name](folder, n)
        (folder / DATASETS[name]["archive"]).write_bytes(b"archive")
        if n == 3:
            raise RuntimeError("Quota exceeded\nfor this file")
        (folder / sets.PARTITION).write_text(OFFICIAL)

    monkeypatch.setattr(torchvision.datasets, DATASETS[name]["torchvision"], fetch)
    command = f"python -m odl data prepare {name} --source FOLDER_OR_ARCHIVE"
    refused(lambda: download.prepare(name), command, "the download failed: Quota exceeded for this file")
    refused(lambda: sets.find(name), "not here")
    download.prepare(name)
    assert sizes(name) == ([20, 6, 4] if name == "celeba" else [24, 3, 3])
    assert {p.name for p in sets.home(name).iterdir() if not p.name.startswith(".")} == {"images", "packed-96"}
    assert not list(root.rglob(DATASETS[name]["archive"]))


@pytest.mark.parametrize(("name", "inner"), [("celeba", False), ("sun397", True)])  # the parent, the folder itself
def test_a_local_copy_of_a_large_set_is_packed(root, no_shared_data, tmp_path, capsys, name, inner):
    source = SETS[name](tmp_path / "copy")
    download.prepare(name, str(next(source.iterdir()) if inner else source))
    assert sizes(name) == [24, 3, 3] and min(packs.load(name, "train").image(0).shape[:2]) == 96
    assert not any(path.suffix == ".jpg" for path in root.rglob("*"))  # nothing is copied but the pack
    moved = source.rename(tmp_path / "elsewhere")
    download.prepare(name, str(moved))
    assert sets.find(name).samefile(next(moved.iterdir()))  # where they lie
    said = capsys.readouterr().out
    assert (sets.PARTITION in said) == (name == "celeba")
    assert f"{name}: 30 images are in" in said and f"and {DATASETS[name]['images']:,} in" in said
    (moved / sets.PARTITION).write_text(OFFICIAL)
    download.prepare(name, str(moved))  # the partition was got later
    assert sizes(name) == ([20, 6, 4] if name == "celeba" else [24, 3, 3])
    if name == "celeba":
        assert packs.load(name, "train").names == tuple(f"{k:06}.jpg" for k in range(1, 21))


@pytest.mark.parametrize(("name", "form"), [("celeba", "zip"), ("sun397", "gztar")])
def test_an_archive_gives_the_same_pack_as_the_folder_in_it(root, no_shared_data, tmp_path, monkeypatch, name, form):
    source = SETS[name](tmp_path / "copy")
    (source / "notes.txt").write_text("not an image")
    archive = shutil.make_archive(str(tmp_path / "set"), form, source)
    monkeypatch.setitem(DATASETS[name], "md5", hashlib.md5(Path(archive).read_bytes()).hexdigest())
    (tmp_path / sets.PARTITION).write_text(OFFICIAL)  # beside the archive
    target = download.prepare(name, archive)
    assert sizes(name) == ([20, 6, 4] if name == "celeba" else [24, 3, 3])
    (source / sets.PARTITION).write_text(OFFICIAL)
    packs.pack(name, next(p for p in source.iterdir() if p.is_dir()), tmp_path / "direct")
    assert sha(target) == sha(tmp_path / "direct")
    unpacked = files_below(sets.home(name) / "images")
    assert len(unpacked) == 31 + (name == "celeba")  # 30 images and the notes
    assert (sets.home(name) / "images").stat().st_mode == sets.home(name).stat().st_mode  # others may read them, too
    download.prepare(name, archive)  # again: nothing is unpacked twice
    assert files_below(sets.home(name) / "images") == unpacked
    assert {p.name for p in sets.home(name).iterdir() if not p.name.startswith(".")} == {"images", "packed-96"}


@pytest.mark.parametrize("given", ["folder", "archive", "archive, and the list later"])
@pytest.mark.parametrize("place", [".", "Eval", "Img"])
def test_celeba_s_list_is_found_near_its_images(root, no_shared_data, tmp_path, monkeypatch, place, given):
    """As the official download has it, also where it is got after the archive was unpacked."""
    official, copy = tmp_path / "official", celeba(tmp_path / "copy")
    source = shutil.copytree(copy, official / "Img")
    if given != "folder":
        source = shutil.make_archive(str(official / "Img/img_align_celeba"), "zip", copy)
        monkeypatch.setitem(DATASETS["celeba"], "md5", hashlib.md5(Path(source).read_bytes()).hexdigest())
    if "later" in given:
        download.prepare("celeba", source)
        assert sizes("celeba") == [24, 3, 3]
    (official / place).mkdir(exist_ok=True)
    (official / place / sets.PARTITION).write_text(OFFICIAL)
    download.prepare("celeba", str(source))
    assert sizes("celeba") == [20, 6, 4]
    if given != "folder":
        shutil.rmtree(official)
        shutil.rmtree(sets.home("celeba") / "packed-96")
        assert sizes("celeba") == [20, 6, 4]


def test_an_archive_s_list_is_not_written_to_a_folder_of_ones_own(root, no_shared_data, tmp_path, monkeypatch):
    source = celeba(tmp_path / "copy/of/mine/deeper")
    archive = shutil.make_archive(str(tmp_path / "got/img_align_celeba"), "zip", source)
    monkeypatch.setitem(DATASETS["celeba"], "md5", hashlib.md5(Path(archive).read_bytes()).hexdigest())
    download.prepare("celeba", str(source))
    before = files_below(source)
    (tmp_path / "got" / sets.PARTITION).write_text(OFFICIAL)
    download.prepare("celeba", archive)
    assert files_below(source) == before


def berkeley(folder):
    """BSDS500 in small."""
    for k in range(12):
        write(folder / f"images/{('train', 'test', 'val', 'val')[k % 4]}/{k}.jpg", photograph(k, 100, 120))
    (folder / "images/train/Thumbs.db").write_bytes(b"of Windows")
    return folder / "images"


def benchmark(folder):
    """Denoising Benchmark 11 in small."""
    for k, name in enumerate(DATASETS["db11"]["files"]):
        write(folder / "DB11" / name, photograph(k, 70, 70))
    return folder / "DB11"


NESTED = [
    ("bsds500", above) for above in ("BSR/BSDS500/data/", "BSDS500-a04b7c6/BSDS500/data/", "a/BSR/BSDS500/data/", "")
]
NESTED += [("db11", above) for above in ("on-demand-learning-master/denoise_anysize/", "denoise_anysize/", "")]


@pytest.mark.parametrize("form", ["gztar", "zip", "folder"])
@pytest.mark.parametrize(("name", "above"), NESTED)
def test_a_set_is_found_as_its_archives_nest_it(root, no_shared_data, tmp_path, monkeypatch, name, above, form):
    copy = tmp_path / "copy"
    images = {"bsds500": berkeley, "db11": benchmark}[name](copy / above)
    monkeypatch.setitem(DATASETS[name], "sha256", download.listing_of(name, images))
    write(copy / "figures/images/result.png", photograph(20, 70, 70))
    write(copy / "__MACOSX/BSR/BSDS500/data/images/train/._1.jpg", photograph(9))
    source = copy if form == "folder" else shutil.make_archive(str(tmp_path / "x"), form, copy)
    download.prepare(name, str(source))
    download.check_listing(name, sets.find(name))
    assert [len(names) for names in sets.list_images(name, sets.find(name)).values()] == {
        "bsds500": [6, 3, 3],
        "db11": [0, 0, 11],
    }[name]
    assert sets.find(name).resolve().is_relative_to(copy if form == "folder" else root)
    if form != "folder":
        flip(next(images.rglob("*.??g")), -30)
        shutil.rmtree(sets.home(name))
        source = shutil.make_archive(str(tmp_path / "x"), form, copy)
        message = refused(lambda: download.prepare(name, str(source)), str(source), "differ", "another copy")
        assert "delete" not in message and not files_below(root)


def test_a_pipe_is_no_source_and_no_image(tmp_path, root):
    os.mkfifo(tmp_path / "pipe.zip")
    refused(lambda: download.prepare("celeba", str(tmp_path / "pipe.zip")), "pipe.zip", "no regular file")
    for place in (tmp_path / "pipe.zip", Path("/dev/zero"), tmp_path):
        refused(lambda place=place: reader.read_image(place, 96), str(place), "no regular file")


@pytest.mark.parametrize("name", [*SETS, "celeba10k"])
def test_a_wrong_archive_is_refused_before_it_is_opened(root, no_shared_data, tmp_path, name):
    shutil.make_archive(str(tmp_path / "set"), "zip", SETS.get(name, celeba)(tmp_path / "copy", 3))
    (tmp_path / "quota.zip").write_text("<html>Quota exceeded</html>")
    archive = DATASETS[name.removesuffix("10k")]["archive"]
    for file, fault in (("set", "checksum"), ("quota", archive), ("nowhere", "does not exist")):
        refused(lambda file=file: download.prepare(name, str(tmp_path / f"{file}.zip")), f"{file}.zip", fault)
    assert not files_below(root)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_nothing_of_an_archive_leads_outside(root, no_shared_data, tmp_path, kind):
    """Links and devices of a tar are refused; those of a zip are files; names that climb do not."""
    (tmp_path / "secret.jpg").write_bytes(jpeg(5))
    tar_with(tmp_path / "x.tar", "train/000002.jpg", kind, str(tmp_path / "secret.jpg"))
    refused(lambda: download.prepare("bsds500", str(tmp_path / "x.tar")), "x.tar: not a readable archive (")
    assert not files_below(root)
    zip_with(tmp_path / "x.zip", "img_align_celeba/000002.jpg", b"/etc/passwd", link=True)
    (out := tmp_path / "out/deeper").mkdir(parents=True)
    download.extract(tmp_path / "x.zip", out)
    for k, name in enumerate(("../../climbed.jpg", "a/../../../climbed.jpg", f"{tmp_path}/absolute.jpg")):
        zip_with(tmp_path / f"{k}.zip", name)
        tar_with(tmp_path / f"{k}.tar", name)
        download.extract(tmp_path / f"{k}.zip", out)
        with suppress(tarfile.FilterError):
            download.extract(tmp_path / f"{k}.tar", out)
    assert not any(path.is_symlink() for path in out.rglob("*"))
    assert {path for path in tmp_path.rglob("*.jpg") if out not in path.parents} == {tmp_path / "secret.jpg"}


def test_a_python_that_unpacks_no_tar_safely_says_so(tmp_path, monkeypatch):
    tar_with(tmp_path / "x.tar", "img_align_celeba/000002.jpg")
    monkeypatch.delattr(tarfile, "data_filter")
    refused(lambda: download.extract(tmp_path / "x.tar", tmp_path / "out"), "x.tar: Python 3.11.4 or newer")
    assert not (tmp_path / "out").exists()


def test_the_archives_are_those_of_torchvision():
    """Its names and checksums, which stand in the table of data sets too."""
    published = {name: md5 for _, md5, name in torchvision.datasets.CelebA.file_list}
    assert published[DATASETS["celeba"]["archive"]] == DATASETS["celeba"]["md5"] and sets.PARTITION in published
    assert DATASETS["sun397"]["md5"] == torchvision.datasets.SUN397._DATASET_MD5
    assert torchvision.datasets.SUN397._DATASET_URL.endswith(DATASETS["sun397"]["archive"])


FAULTS = {"a byte changed": lambda file: flip(file, -30), "cut off": lambda file: cut(file, 100), "gone": Path.unlink}
FAULTS |= {"a page": lambda file: file.write_text("<!DOCTYPE html><title>Quota exceeded</title>")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["db11", "bsds500"])
def test_a_download_is_whole_or_absent(root, no_shared_data, monkeypatch, tmp_path, name, fault):
    """Eleven files or an archive, from a server that has one with a fault, and then the right one."""
    names = DATASETS["db11"]["files"] if name == "db11" else [f"{s}/{k}.jpg" for s in ("train", "val") for k in "abc"]
    images, site = {file: jpeg(k) for k, file in enumerate(names)}, tmp_path / "site"
    inside = site if name == "db11" else tmp_path / "BSDS500-a04b7c6/BSDS500/data/images"
    for file, content in images.items():
        (inside / file).parent.mkdir(parents=True, exist_ok=True)
        (inside / file).write_bytes(content)
    if name == "bsds500":
        shutil.make_archive(str(site / "x"), "zip", tmp_path, "BSDS500-a04b7c6")
    one = site / ("Lena.png" if name == "db11" else "x.zip")
    right = one.read_bytes()
    listing = "".join(f"{hashlib.sha256(images[file]).hexdigest()}  {file}\n" for file in sorted(images))
    monkeypatch.setitem(DATASETS[name], "sha256", hashlib.sha256(listing.encode()).hexdigest())
    with served(site) as address:
        monkeypatch.setitem(DATASETS[name], "url", address + ("" if name == "db11" else "x.zip"))
        FAULTS[fault](one)
        refused(lambda: download.prepare(name))
        assert not (sets.home(name) / "images").exists()
        one.write_bytes(right)
        download.prepare(name)
    found = sets.find(name)
    assert {path.relative_to(found).as_posix(): path.read_bytes() for path in found.rglob("*.*")} == images


def test_db11_from_a_folder_is_checked_and_packed(root, tmp_path):
    shutil.copytree(found("db11"), tmp_path / "copy", copy_function=shutil.copyfile)
    (tmp_path / "copy").chmod(0o755)
    hill = tmp_path / "copy/Hill.png"
    good = hill.read_bytes()
    flip(hill, -30)
    refused(lambda: download.prepare("db11", str(tmp_path / "copy")), "copy", "differ")
    hill.unlink()
    refused(lambda: download.prepare("db11", str(tmp_path / "copy")), "copy", "differ")
    assert not files_below(root)
    hill.write_bytes(good)
    download.prepare("db11-native", str(tmp_path / "copy"))
    pack = packs.load("db11-native", "test")
    refused(lambda: packs.load("db11-native", "train"), "no train images; it is for tests alone")
    assert sets.is_here("db11")
    assert len(pack) == 11 and {pack.image(i).shape[0] for i in range(11)} == {256, 512}


def test_pictures_fall_back_to_the_demo_photographs(demo, folder, no_shared_data, capsys):
    assert pictures.photographs("celeba").names == sets.DEMO["test"]
    assert len(pictures.photographs("celeba", "train", 162_770)) == 9
    assert capsys.readouterr().out.count("demo photographs") == 2
    images = pictures.photographs(str(folder), "train", 8)
    half, rest = images.take(3), images.take(8, 3)
    assert half.names + rest.names == packs.load(str(folder), "train").names[:8] and len(half) == 3


@pytest.mark.parametrize("kind", ["archive", "folder", "folder of as many"])
def test_celeba10k_is_the_first_faces_of_celeba_halved(tmp_path, root, monkeypatch, capsys, no_shared_data, kind):
    numbers = (3, 1, 2) if kind == "folder of as many" else (3, 1, 4, 2)
    faces, source = {f"{k:06}.jpg": jpeg(k, 218, 178) for k in numbers}, tmp_path / "img_align_celeba"
    source.mkdir()
    for name, content in faces.items():
        (source / name).write_bytes(content)
    if kind == "archive":
        source = Path(shutil.make_archive(str(tmp_path / "faces"), "zip", tmp_path, "img_align_celeba"))
        md5 = hashlib.md5(source.read_bytes()).hexdigest()
        monkeypatch.setitem(DATASETS, "celeba", DATASETS["celeba"] | {"md5": md5})
    monkeypatch.setitem(DATASETS, "celeba10k", DATASETS["celeba10k"] | {"images": 3})
    download.prepare("celeba10k-native", str(source))
    assert "differ from those behind the results" in capsys.readouterr().out
    names = [pack.names for pack in packs_of("celeba10k-native")]
    assert names == [("000001.jpg",), ("000002.jpg",), ("000003.jpg",)]  # in their order, the fourth left out
    face = Image.open(io.BytesIO(faces["000001.jpg"])).resize((89, 109), Image.Resampling.LANCZOS)
    expected = np.asarray(Image.open(io.BytesIO(encoded(face, "JPEG", quality=75))))
    assert np.array_equal(load("celeba10k-native", "train").image(0), expected)


def test_celeba10k_here_is_the_published_one(root):
    source = found("celeba10k")
    assert download.listing_of("celeba10k", source) == DATASETS["celeba10k"]["sha256"]
    splits = sets.list_images("celeba10k-native", source)
    assert [len(splits[s]) for s in ("train", "validation", "test")] == [8000, 1000, 1000]
    assert [splits[s][0] for s in splits] == ["000001.jpg", "008001.jpg", "009001.jpg"]


def test_a_name_means_the_same_in_any_folder(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    there = [sets.absolute(name) for name in ("album/", "./album", "~/album", str(folder))]
    monkeypatch.chdir("/")
    there.append(sets.absolute("./album", str(folder.parent)))
    assert set(there) == {str(folder)} and sets.absolute("demo") == "demo"
    assert sets.absolute("bsds500-native") == "bsds500-native" and sets.absolute("demo/") == "/demo"


def test_pictures_show_places_with_something_to_see(tmp_path, root):
    """Photographs flat but for a checked corner: a crop of each that meets it, where one of eight at random does."""
    flat = np.full((200, 200, 3), 128, np.uint8)
    flat[:100, :100] = np.indices((100, 100)).sum(0)[..., None] % 2 * 255
    album = tmp_path / "album"
    for k in range(8):
        flat[150, 150] = k  # else they are one photograph
        write(album / f"{k}.png", flat)
    pack = packs.load(str(album), "train")
    run = Experiment.of("denoise", str(album), "on_demand", 0, "smoke")
    x = pictures.telling(run, pack, 2 * len(pack))
    contrast = x.diff(dim=-1).abs().mean((1, 2, 3))
    alike = crops.fixed_crops(pack, 60, "any").diff(dim=-1).abs().mean((1, 2, 3))
    assert x.shape == (2 * len(pack), 1, 64, 64) and contrast.min() > alike.median() and contrast.mean() > alike.mean()
    assert torch.equal(x, pictures.telling(run, pack, 2 * len(pack)))


def test_the_sets_are_listed_with_what_is_here(demo, no_shared_data, capsys, monkeypatch):
    assert main(["data", "list"]) == 0
    lines = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert lines == {name: "here" if name == "demo" else "missing" for name in DATASETS}
    inside = sets.inside

    def closed(base, place):
        if base == "bsds500":
            raise PermissionError(13, "Permission denied", str(place))
        return inside(base, place)

    monkeypatch.setattr(sets, "inside", closed)  # one set is another user's, and the others are listed
    assert main(["data", "list"]) == 0 and len(capsys.readouterr().out.splitlines()) == len(DATASETS)
