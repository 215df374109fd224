"""Packing, splits, crops, downloads: whole or absent, and a bad image is never trained on."""

import hashlib
import io
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import made
import numpy as np
import pytest
import tifffile
import torch
import torchvision
from conftest import refused, tiny
from made import BAD, GREY, ROUGH, X, encoded, flip, grey, jpeg, modes, photograph, png_of, tar_with, tiff_of, zip_with
from page_facts import served
from PIL import Image

from companion.cli import main, program
from companion.data import download, folders, packs, reader, sets
from companion.data.sets import DATASETS
from companion.disk import files
from companion.restore import image_files
from companion.show import pictures, tables
from companion.training import measurement, results
from companion.training.results import path_of
from odl import crops
from odl.experiment import Experiment, slug

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


def test_hidden_files_are_left_out_and_what_is_not_read_is_told(folder, capsys):
    for name in ("._00.png", "0/._02.png", ".git/00.png"):
        write(folder / name, photograph(0))
    for k, (name, form) in enumerate({"12.JFIF": "JPEG", "13.jpe": "JPEG", "14.pnm": "PPM"}.items()):
        write(folder / name, photograph(50 + k), format=form)
    for name in ("a.HEIC", "b.heic", "c.cr3", "d.raf", "e", "._d.heic", "f.JP2", "notes.md"):
        (folder / name).write_bytes(b"x")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "gone.jpg").symlink_to(folder / "nowhere")
    names = [n for pack in packs_of(str(folder)) for n in pack.names]
    assert sorted(names) == sorted([*(f"{k % 2}/{k:02}.png" for k in range(12)), "12.JFIF", "13.jpe", "14.pnm"])
    said = capsys.readouterr().out
    assert said.startswith(f"{folder}: files left out: 8 (2 ") and said.count("\n") == 1
    assert all(word in said for word in ("2 .heic", "2 .jpg", "1 .cr3", "1 .raf", "1 .jp2", "1 without a suffix"))
    refused(lambda: sets.files_in(folder / "closed"), "closed: No such file")  # or a folder of another user


def test_pages_that_are_left_out_are_counted(folder, capsys):
    """Of every kind of file that has some; a telephone's second picture is none."""
    first, *others = (Image.fromarray(photograph(50 + k)) for k in range(5))
    for name, form in {"a.tif": "TIFF", "b.gif": "GIF", "c.webp": "WEBP", "d.png": "PNG", "e.jpg": "MPO"}.items():
        first.save(folder / name, form, save_all=True, append_images=others)
    packs_of(str(folder))
    assert capsys.readouterr().out == f"{folder}: pages left out: 16, all but the first of each file\n"


THUMBNAILS = (".thumbnails/a.png", "Thumbs/a.jpg", "0/thumbnails/b/c.png", "1/@eaDir/04.png/SYNOPHOTO_THUMB_M.jpg")
THUMBNAILS += ("Catalogue Previews.lrdata/a/b.lrprev", "Previews/d.jpg", "_thumb/e.png")


def test_what_programs_leave_beside_photographs_is_left_out_and_counted(folder, capsys):
    """Whole folders by name, and by content small copies of a picture, whatever they are called."""
    for name in THUMBNAILS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(jpeg(1))
    scenes = [sets.find("demo") / name for names in sets.DEMO.values() for name in names[:5]]
    for k, scene in enumerate(scenes):
        shutil.copy(scene, folder / f"scene {k}{scene.suffix}")
    packs_of(str(folder))
    [said] = capsys.readouterr().out.splitlines()
    named = {".thumbnails", "Thumbs", "thumbnails", "@eaDir", "Catalogue Previews.lrdata", "Previews", "_thumb"}
    assert said.startswith(f"{folder}: files left out in folders of thumbnails: 7 (")
    assert {*said.rpartition("(")[2].strip(")").split(", ")} == named
    before = sets.list_images(str(folder), folder)
    for k, scene in enumerate(scenes):
        side, form = (64, 100, 240)[k % 3], ("JPEG", "PNG", "WEBP")[k % 3]
        (image := Image.open(scene)).thumbnail((side, side), resample=(Image.Resampling.NEAREST, BICUBIC)[k % 2])
        turned, exif = image.transpose(Image.Transpose.ROTATE_90), Image.Exif()
        exif[274] = 6  # as a camera writes it
        turned.save(folder / f"{k % 2}/IMG_{k}.{form.lower()}", form, exif=exif)
    names = [n for pack in packs_of(str(folder)) for n in pack.names]
    assert capsys.readouterr().out.count(f"{folder}: small copies left out: 8, as 1/IMG_7.png of scene 7.png") == 1
    assert sets.list_images(str(folder), folder) == before and len(names) == len(set(names)) == 20


def test_what_a_folder_holds_decides_and_not_its_times(folder, capsys):
    """A touched file, as by a copy or an archive, trains nothing anew."""
    experiment = tiny(dataset=str(folder))
    result = results.measurement_of(experiment).run("cpu")
    capsys.readouterr()
    for file in sets.files_in(folder):
        os.utime(folder / file, (10**9, 10**9))
    for _ in ("this process", "another one"):
        assert results.load_result(experiment).path == result.path and results.place_of_weights(experiment)
        assert len(packs.load(str(folder), "train")) == 10 and capsys.readouterr().out == ""
        folders.RECORDS.clear()


def test_links_to_folders_are_followed_once(folder, tmp_path):
    """Not upwards, nor around in a ring."""
    write(tmp_path / "other/0.png", photograph(50))
    for link, target in {"a link": "other", "again": "other", "up": ".", "ring": "album/ring"}.items():
        (folder / link).symlink_to(tmp_path / target, target_is_directory=True)
    assert sets.files_in(folder) == sorted([*(f"{k % 2}/{k:02}.png" for k in range(12)), "a link/0.png"])


def test_copies_of_a_file_are_on_one_side_of_a_division(folder):
    """And the division is that of the files alone."""
    alone = sets.list_images(str(folder), folder)
    for file in sets.files_in(folder):
        shutil.copy(folder / file, (folder / file).with_stem(f"{Path(file).stem} (1)"))
    sides = {}
    for side, pack in enumerate(packs_of(str(folder))):
        for i in range(len(pack)):
            sides.setdefault(pack.image(i).tobytes(), []).append(side)
    assert len(sides) == 12 and all(len(found) == 2 and len(set(found)) == 1 for found in sides.values())
    assert set(alone["test"]) < set(sets.list_images(str(folder), folder)["test"])


CHANGES = {
    "one more": lambda folder: write(folder / "new.png", photograph(99)),
    "another name": lambda folder: (folder / "0/04.png").rename(folder / "0/99.png"),
    "other pixels": lambda folder: write(folder / "0/04.png", photograph(99)),
    "as many bytes": lambda folder: flip(folder / "0/04.png", -30),
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
    assert capsys.readouterr().out == (told if change != "no image" else "")
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
    for name in ("~/album", "demo"):
        refused(lambda name=name: download.prepare(name, "~/album"), "--source", "bsds500, ")


def test_with_a_slash_a_name_is_a_folder_s(demo, folder, monkeypatch):
    """As a shell completes it; without one the set is meant."""
    monkeypatch.chdir(folder.parent)
    for name in ("demo/", "demo-native/", "bsds500/"):
        refused(lambda name=name: packs.load(name, "train"), f"dataset={name!r}: no such folder")
    folder.rename("demo")
    for name in ("demo/", "./demo", str(folder.parent / "demo")):
        assert sorted(packs.load(name, "test").names) != sorted(sets.DEMO["test"])
        assert slug(name) == slug("./demo") != "demo" and sets.parse(name)[1] == 96
        assert measurement.identity(Experiment.of("deblur", name))["images"]
    refused(lambda: Experiment.of("deblur", "CelebA-native"), "neither a set", "nearest: 'celeba'")
    Path("demo").rename("own-native")
    assert sets.parse("./own-native") == ("./own-native", 96) and len(packs.load("./own-native", "test")) == 1


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
    refused(lambda: packs.load(str(folder), "train"), "has 2 of at least 3 images")


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
    assert part.names == whole.names[:4] and len(whole) == 10
    assert packs.load(str(folder), "test", 4).names == packs.load(str(folder), "test").names


def test_grey_is_luminance():
    x = torch.rand(2, 3, 4, 4)
    expected = (np.array([299, 587, 114]) / 1000) @ x.numpy().reshape(2, 3, 16)
    np.testing.assert_allclose(crops.grey(x).numpy().reshape(2, 16), expected, atol=1e-6)


def test_fixed_crops_are_of_their_stream_and_take_turns(folder):
    pack, drawn = packs.load(str(folder), "train"), torch.Generator().manual_seed(crops.seed_of("test"))
    expected = crops.crop(pack, torch.arange(25) % 10, drawn, flip=False)
    assert torch.equal(crops.fixed_crops(pack, 25, "test"), expected)


def sha(folder):
    return hashlib.sha256((folder / "pixels.bin").read_bytes()).hexdigest()


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


def test_a_pack_is_hashed_once_a_process(folder):
    packs.load(str(folder), "train")
    before = packs.hash_of.cache_info().misses
    assert len(packs_of(str(folder))) == 3 and packs.hash_of.cache_info().misses == before


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bad_image_stops_packing_by_name_or_is_listed(folder, tmp_path, capsys):
    """Never trained on: packing stops, names the file and the command; with it the file is left out and listed."""
    for name, content in BAD.items():
        (tmp_path / name).write_bytes(content)
        refused(lambda name=name: reader.read_image(tmp_path / name, 96), name)
    name = "truncated.jpg"
    (folder / name).write_bytes(BAD[name])
    refused(lambda: packs.load(str(folder), "train"), name, f"python -m odl data prepare {folder} --skip-bad")
    download.prepare(str(folder), skip_bad=True)
    write(folder / "new.png", photograph(99))  # packed again, and what was left out stays out
    packed = packs_of(str(folder))
    assert {pack.skipped for pack in packed} == {(name,)}
    assert capsys.readouterr().out.count(f"left out, not readable: {name}") == 2
    assert {n for pack in packed for n in pack.names} == {*(f"{k % 2}/{k:02}.png" for k in range(12)), "new.png"}


def test_a_file_that_nobody_may_read_stops_packing_by_name_or_is_left_out(folder, monkeypatch):
    def guarded(file, *how, real=open, **more):
        if str(file).endswith("04.png"):
            raise PermissionError(13, "Permission denied", str(file))
        return real(file, *how, **more)

    monkeypatch.setattr("builtins.open", guarded)
    refused(lambda: packs.load(str(folder), "train"), "0/04.png: not a readable image (Permission den", "--skip-bad")
    download.prepare(str(folder), skip_bad=True)
    assert packs.load(str(folder), "train").skipped == ("0/04.png",)


def colour_tiff(array, **options) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, array, photometric="rgb", **options)
    return file.getvalue()


def two_pages(first, second, **options) -> bytes:
    """A TIFF of a page and, below it, another one."""
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as pages:
        pages.write(first, photometric="rgb", subifds=1, **options)
        pages.write(second, photometric="rgb")
    return file.getvalue()


UNIT = ROUGH.astype(np.float32) / 65535
EVEN, ODD = ROUGH[:, ::2] >> 4, ROUGH[:, 1::2] >> 4  # of 12 bits, two in three bytes
DEEP = np.dstack([ROUGH, ROUGH[::-1], ROUGH])
ROWS = b"".join(b"\0" + row.astype(">u2").tobytes() for row in DEEP)  # of a PNG
TWELVE = np.stack([EVEN >> 4, (EVEN & 15) << 4 | ODD >> 8, ODD & 255], -1).astype(np.uint8).tobytes()
FILES = {  # bytes of a file, and the RGB pixels that it shows
    **{name: (encoded(image, "PNG"), shown) for name, image, shown in modes()},
    **{form: (encoded(X, form), X) for form in ("PPM", "BMP")},
    "RGB of 16 bits": (png_of(80, 70, ROWS, 16, 2), DEEP // 256),  # Pillow cuts the low byte off
    "TIFF of 16 bits": (colour_tiff(DEEP), DEEP // 256),
    "grey TIFF of 16 bits": (encoded(ROUGH), grey(ROUGH / 65535 * 255)),
    "grey PGM of 16 bits": (encoded(ROUGH, "PPM"), grey(ROUGH / 65535 * 255)),
    "grey TIFF of 12 bits": (tiff_of(80, 70, 12, TWELVE), grey((ROUGH >> 4) / 4095 * 255)),
    "floats to 1": (encoded(UNIT), grey(UNIT * 255)),
    "floats a little beyond": (encoded(UNIT * 1.06 - 0.03), grey((UNIT * 1.06 - 0.03) * 255)),
    "with damaged metadata": (encoded(X, "WEBP", lossless=True, exif=b"Exif\0\0MM\0*\0\0\xff\xff"), X),
    "a smaller page below it": (two_pages(X, X[::4, ::4]), X),
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


UNREAD = "as floats of 16 or 64 bits or in colour; save it as PNG or JPEG"
PREVIEW, BROKEN = "its first page is a preview", "TIFF of values that are not finite; save it with"
REFUSED = {  # bytes of a file, and words of the line that refuses it
    "colours of floats": (colour_tiff((DEEP / 65535).astype(np.float32)), UNREAD),
    "half floats": (colour_tiff((DEEP / 65535).astype(np.float16)), UNREAD),
    "grey half floats": (tiff_of(80, 70, 16, UNIT.astype(np.float16).tobytes(), 3), UNREAD),
    "grey doubles": (tiff_of(80, 70, 64, UNIT.astype(float).tobytes(), 3), UNREAD),
    "no number": (encoded(np.where(GREY > 0, UNIT, np.float32(np.nan))), BROKEN),
    "infinite": (encoded(np.where(GREY > 0, UNIT, np.float32(np.inf))), BROKEN),
    "floats to 255": (encoded(GREY.astype(np.float32)), "TIFF of floats from 0 to 255; save it with 8 or 16 bits"),
    "integers of 32 bits": (encoded(ROUGH.astype(np.int32)), "TIFF of signed values or integers of 32 bits"),
    "7 bits and a sign": (tiff_of(80, 70, 8, (GREY >> 1).tobytes(), 2), "TIFF of signed values"),
    "0 is white": (tiff_of(80, 70, 16, (65535 - ROUGH).tobytes(), black=0), "TIFF of more than 8 bits whose 0"),
    "planes": (colour_tiff(DEEP.transpose(2, 0, 1), planarconfig="separate"), "in planes; save them interleaved"),
    "a preview": (tiff_of(80, 70, 8, GREY.tobytes(), page=1), PREVIEW),
    "a raw file": (two_pages(X[::4, ::4], X, subfiletype=1), PREVIEW),
    "an unmarked one": (two_pages(X[::4, ::4], X), PREVIEW),
    "HEIC": (b"\0\0\0\x18ftypheic" + bytes(99), "of kind 'heic', as HEIC, AVIF and raw files are; save it as PNG"),
    "a page": (BAD["page.jpg"], "(a web page or SVG; get the picture itself as PNG or JPEG)"),
    "nothing": (b"", "(an empty file; get it again)"),
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


@pytest.mark.parametrize(("name", "size"), {"large.png": "10001×10000", "bomb.png": "60000×60000"}.items())
def test_of_too_many_pixels_the_command_says_one_line(tmp_path, monkeypatch, capsys, recwarn, name, size):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1)
    monkeypatch.setattr(warnings, "formatwarning", None)  # both as they were, after the test
    (tmp_path / name).write_bytes(BAD[name])
    monkeypatch.setattr(sys, "argv", ["odl", "restore", "--task", "deblur", str(tmp_path / name), f"{tmp_path}/out/"])
    with pytest.raises(SystemExit):
        program()
    said = f"error: {tmp_path / name}: not a readable image ({size} pixels are more than 100,000,000)\n"
    assert capsys.readouterr().err == said and not recwarn.list


@pytest.mark.parametrize("given", ["gone\nhere.png", "text\r\x1b\u2028.png", "folder\n", f"{255 * 'a'}\n.png"])
def test_a_name_that_would_break_the_line_is_escaped(tmp_path, capsys, given):
    (tmp_path / "folder\n").mkdir()
    for name in ("text\r\x1b\u2028.png", "folder\n/text\n.png"):
        (tmp_path / name).write_bytes(BAD["text.png"])
    assert main(["restore", "--task", "deblur", str(tmp_path / given), f"{tmp_path}/out/"]) > 0
    error = capsys.readouterr().err.splitlines()[0]
    assert error.startswith(f"error: {tmp_path}/" + repr(given)[1:-1])
    assert error.count(str(tmp_path)) == 1 and error.isprintable()


@pytest.mark.parametrize("name", ["input", "output", "mask"])
def test_an_address_is_no_file(tmp_path, name):
    given = dict.fromkeys(("input", "output", "mask"), str(tmp_path)) | {name: "https://a.b/x.png"}
    said = f"{name}='https://a.b/x.png' names no file and no folder; download what is on the web first"
    refused(lambda: image_files.todo(*given.values(), False), said)


def test_where_no_size_is_known_no_disk_is_full(tmp_path, monkeypatch):
    """As of /proc, where Linux then says what is wrong."""
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(0, 0, 0))
    files.write_atomically(tmp_path / "x", b"1")
    assert (tmp_path / "x").read_bytes() == b"1"


COLOURS = {b"gAMA": struct.pack(">I", 55_000), b"cHRM": struct.pack(">8I", *range(30_000, 38_000, 1000))}
COLOURS |= {b"cICP": bytes([9, 16, 0, 1]), b"sRGB": b"\0"}
USUAL = {b"gAMA": struct.pack(">I", 45_455)}  # as many programs write it
USUAL[b"cICP"] = bytes([1, 13, 0, 1])
USUAL[b"cHRM"] = struct.pack(">8I", 31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000)


def test_a_colour_tag_that_says_srgb_in_numbers_is_not_missed(tmp_path):
    head, rest = encoded(X, "PNG")[:33], encoded(X, "PNG")[33:]
    (tmp_path / "x.png").write_bytes(head + b"".join(made.chunk(*tag) for tag in USUAL.items()) + rest)
    assert image_files.kept(reader.opened(tmp_path / "x.png"), tmp_path / "o.png")[1] == []


@pytest.mark.parametrize("tags", [(), *((tag,) for tag in COLOURS), (b"gAMA", b"sRGB"), (b"cICP", b"sRGB")])
@pytest.mark.parametrize("suffix", ["png", "jpg", "tif"])
def test_a_colour_tag_of_a_png_that_says_something_else_is_told(tmp_path, tags, suffix):
    """As one that says sRGB does not: it is what is taken where nothing is said."""
    head, rest = encoded(X, "PNG")[:33], encoded(X, "PNG")[33:]
    (tmp_path / "x.png").write_bytes(head + b"".join(made.chunk(tag, COLOURS[tag]) for tag in tags) + rest)
    _, told = image_files.kept(reader.opened(tmp_path / "x.png"), tmp_path / f"o.{suffix}")
    lost = b"cICP" in tags or tags in ((b"gAMA",), (b"cHRM",))
    assert told == [f"o.{suffix} does not keep the colour tag"] * lost


def test_what_a_tiff_loses_is_told(tmp_path):
    tags = {33723: b"\x1c\x02\x05\0\x01a", 34377: b"8BIM\x04\x04\0\0\0\0\0\0", 700: b"<x:xmpmeta/>"}
    (tmp_path / "x.tif").write_bytes(encoded(X, tiffinfo=tags))
    _, told = image_files.kept(reader.opened(tmp_path / "x.tif"), tmp_path / "o.tif")
    assert told == ["o.tif does not keep the XMP, IPTC, data of Photoshop"]


def test_where_nothing_is_read_what_is_left_out_is_told(tmp_path, root):
    (tmp_path / "a.cr3").write_bytes(b"x")
    for call in (
        lambda: packs.load(str(tmp_path), "train"),
        lambda: image_files.todo(str(tmp_path), str(tmp_path / "out"), None, False),
    ):
        refused(call, "files left out: 1 (1 .cr3)")


def test_a_missing_set_says_how_to_get_it(root, no_shared_data, monkeypatch):
    refused(lambda: packs.load("celeba", "train"), "'celeba'", "mmlab.ie", DATASETS["celeba"]["size"])
    monkeypatch.setenv("ODL_DATA", "nowhere")
    refused(lambda: packs.load("celeba", "train"), "data prepare celeba", "(ODL_DATA='nowhere' has none)")
    assert not files_below(root)


def copy_of(name, folder, n=30) -> Path:
    """CelebA or SUN397 in small, as the archive nests it."""
    for k in range(n):
        place = f"img_align_celeba/{k + 1:06}.jpg" if name == "celeba" else f"SUN397/{'abc'[k % 3]}/bar/sun_{k:04}.jpg"
        write(folder / place, photograph(k, 120, 100))
    return folder


OFFICIAL = "".join(f"{k:06}.jpg {(k > 20) + (k > 26)}\n" for k in range(1, 31))


def sizes(name):
    return [len(pack) for pack in packs_of(name)]


@pytest.mark.parametrize("name", ["celeba", "sun397"])
def test_torchvision_fetches_the_large_sets_whole_or_not_at_all(root, no_shared_data, monkeypatch, name):
    """A download that fails half unpacked is no set, and is not what the next one starts from."""
    left = [3, 30]  # images that it has unpacked when it ends; a failure first

    def fetch(folder, download):
        folder = Path(folder) / name if name == "celeba" else Path(folder)
        assert download and not list(folder.rglob("*.jpg"))
        n = left.pop(0)
        copy_of(name, folder, n)
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
    source = copy_of(name, tmp_path / "copy")
    download.prepare(name, str(next(source.iterdir()) if inner else source))
    assert sizes(name) == [24, 3, 3] and min(packs.load(name, "train").image(0).shape[:2]) == 96
    assert not any(path.suffix == ".jpg" for path in root.rglob("*"))  # nothing is copied but the pack
    moved = source.rename(tmp_path / "elsewhere")
    (moved / sets.PARTITION).write_text(OFFICIAL)  # which was got later
    download.prepare(name, str(moved))
    assert sets.find(name).resolve().parent == moved  # where they lie
    said = capsys.readouterr().out
    assert (sets.PARTITION in said) == (name == "celeba")
    assert f"{name}: 30 images are in" in said and f"and {DATASETS[name]['images']:,} in" in said
    assert sizes(name) == ([20, 6, 4] if name == "celeba" else [24, 3, 3])
    if name == "celeba":
        assert packs.load(name, "train").names == tuple(f"{k:06}.jpg" for k in range(1, 21))


def archived(path, form, name, monkeypatch, *content) -> Path:
    """An archive of a folder, as the published one of a set."""
    archive = Path(shutil.make_archive(str(path), form, *content))
    monkeypatch.setitem(DATASETS[name], "md5", hashlib.md5(archive.read_bytes()).hexdigest())
    return archive


@pytest.mark.parametrize(("name", "form"), [("celeba", "zip"), ("sun397", "gztar")])
def test_an_archive_gives_the_same_pack_as_the_folder_in_it(root, no_shared_data, tmp_path, monkeypatch, name, form):
    source = copy_of(name, tmp_path / "copy")
    archive = archived(tmp_path / "set", form, name, monkeypatch, source)
    (tmp_path / sets.PARTITION).write_text(OFFICIAL)  # beside the archive
    target = download.prepare(name, str(archive))
    assert sizes(name) == ([20, 6, 4] if name == "celeba" else [24, 3, 3])
    (source / sets.PARTITION).write_text(OFFICIAL)
    packs.pack(name, next(p for p in source.iterdir() if p.is_dir()), tmp_path / "direct")
    assert sha(target) == sha(tmp_path / "direct")
    unpacked = files_below(sets.home(name) / "images")
    assert len(unpacked) == 30 + (name == "celeba")
    assert (sets.home(name) / "images").stat().st_mode == sets.home(name).stat().st_mode  # others may read them, too
    download.prepare(name, str(archive))  # again: nothing is unpacked twice
    assert files_below(sets.home(name) / "images") == unpacked
    assert {p.name for p in sets.home(name).iterdir() if not p.name.startswith(".")} == {"images", "packed-96"}


def images_of(name) -> dict[str, bytes]:
    """BSDS500 or Denoising Benchmark 11 in small: file → content."""
    berkeley = [f"{split}/{k}.jpg" for split, n in {"train": 3, "test": 3, "val": 6}.items() for k in range(n)]
    return {file: jpeg(k) for k, file in enumerate(DATASETS["db11"]["files"] if name == "db11" else berkeley)}


def laid(name, folder, monkeypatch) -> Path:
    """The same in a folder, as what the published set is."""
    images = images_of(name)
    for file, content in images.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    listing = "".join(f"{hashlib.sha256(images[file]).hexdigest()}  {file}\n" for file in sorted(images))
    monkeypatch.setitem(DATASETS[name], "sha256", hashlib.sha256(listing.encode()).hexdigest())
    return folder


@pytest.mark.parametrize("form", ["gztar", "zip", "folder"])
@pytest.mark.parametrize(
    ("name", "nested"),
    [("bsds500", nested) for nested in ("BSR/BSDS500/data/images", "a/BSR/BSDS500/data/images", "images")]
    + [("db11", nested) for nested in ("on-demand-learning-master/denoise_anysize/DB11", "DB11")],
)
def test_a_set_is_found_as_its_archives_nest_it(root, no_shared_data, tmp_path, monkeypatch, name, nested, form):
    copy = tmp_path / "copy"
    images = laid(name, copy / nested, monkeypatch)
    write(copy / "figures/images/result.png", photograph(20, 70, 70))
    write(copy / "__MACOSX/BSR/BSDS500/data/images/train/._1.jpg", photograph(9))
    source = copy if form == "folder" else shutil.make_archive(str(tmp_path / "x"), form, copy)
    download.prepare(name, str(source))
    download.check_listing(name, sets.find(name))
    listed = sets.list_images(name, sets.find(name))
    assert [*map(len, listed.values())] == {"bsds500": [6, 3, 3], "db11": [0, 0, 11]}[name]
    assert not [file for file in listed["train"] if "val/" in file]  # on which nothing here trains
    assert sets.find(name).resolve().is_relative_to(copy if form == "folder" else root)
    if form != "folder":
        flip(next(images.rglob("*.??g")), -30)
        shutil.rmtree(sets.home(name))
        source = shutil.make_archive(str(tmp_path / "x"), form, copy)
        refused(lambda: download.prepare(name, str(source)), str(source), "differ", "another copy")
        assert not files_below(root)


@pytest.mark.parametrize("name", ["celeba", "sun397", "celeba10k"])
def test_a_wrong_archive_is_refused_before_it_is_opened(root, no_shared_data, tmp_path, name):
    archive = DATASETS[name.removesuffix("10k")]["archive"]
    (tmp_path / "quota.zip").write_text("<html>Quota exceeded</html>")
    os.mkfifo(tmp_path / "pipe.zip")
    for file, fault in (("quota", f"checksum differs from the published {archive}"), ("nowhere", "does not exist")):
        refused(lambda file=file: download.prepare(name, str(tmp_path / f"{file}.zip")), f"{file}.zip", fault)
    refused(lambda: download.prepare(name, str(tmp_path / "pipe.zip")), "pipe.zip", "no regular file")
    assert not files_below(root)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_nothing_of_an_archive_leads_outside(root, no_shared_data, tmp_path, kind):
    """Links and devices of a tar are refused; those of a zip are files; names that climb do not."""
    (tmp_path / "secret.jpg").write_bytes(jpeg(5))
    tar_with(tmp_path / "x.tar", "train/000002.jpg", kind, str(tmp_path / "secret.jpg"))
    refused(lambda: download.prepare("bsds500", str(tmp_path / "x.tar")), "x.tar: not unpacked (")
    assert not files_below(root)
    (out := tmp_path / "out/deeper").mkdir(parents=True)
    zip_with(tmp_path / "x.zip", "img_align_celeba/000002.jpg", b"/etc/passwd", link=True)
    zip_with(tmp_path / "y.zip", "../../climbed.jpg")
    tar_with(tmp_path / "y.tar", "../../climbed.jpg")
    for archive in ("x.zip", "y.zip", "y.tar"):
        with suppress(tarfile.FilterError):
            download.extract(tmp_path / archive, out)
    assert not any(path.is_symlink() for path in out.rglob("*"))
    assert {path for path in tmp_path.rglob("*.jpg") if out not in path.parents} == {tmp_path / "secret.jpg"}


def test_the_archives_are_those_of_torchvision():
    """Its names and checksums, which stand in the table of data sets too."""
    published = {name: md5 for _, md5, name in torchvision.datasets.CelebA.file_list}
    assert published[DATASETS["celeba"]["archive"]] == DATASETS["celeba"]["md5"] and sets.PARTITION in published
    assert DATASETS["sun397"]["md5"] == torchvision.datasets.SUN397._DATASET_MD5
    assert torchvision.datasets.SUN397._DATASET_URL.endswith(DATASETS["sun397"]["archive"])


FAULTS = {"a byte changed": lambda file: flip(file, -30), "gone": Path.unlink}
FAULTS |= {"a page": lambda file: file.write_text("<!DOCTYPE html><title>Quota exceeded</title>")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["db11", "bsds500"])
def test_a_download_is_whole_or_absent(root, no_shared_data, monkeypatch, tmp_path, name, fault):
    """Eleven files or an archive, from a server that has one with a fault, and then the right one."""
    site = tmp_path / "site"
    if name == "db11":
        laid(name, site, monkeypatch)
    else:
        laid(name, tmp_path / "BSDS500-a04b7c6/BSDS500/data/images", monkeypatch)
        shutil.make_archive(str(site / "x"), "zip", tmp_path, "BSDS500-a04b7c6")
    one = site / ("Lena.png" if name == "db11" else "x.zip")
    right = one.read_bytes()
    with served(site) as address:
        monkeypatch.setitem(DATASETS[name], "url", address + ("" if name == "db11" else "x.zip"))
        FAULTS[fault](one)
        refused(lambda: download.prepare(name))
        assert not (sets.home(name) / "images").exists()
        one.write_bytes(right)
        download.prepare(name)
    place = sets.find(name)
    assert {file.relative_to(place).as_posix(): file.read_bytes() for file in place.rglob("*.*")} == images_of(name)


def test_pictures_fall_back_to_the_demo_photographs(demo, folder, no_shared_data, capsys):
    assert pictures.photographs("celeba").names == sets.DEMO["test"]
    assert len(pictures.photographs("celeba", "train", 162_770)) == 9
    assert capsys.readouterr().out.count("demo photographs") == 2
    assert pictures.photographs(str(folder), "train", 8).names == packs.load(str(folder), "train").names[:8]


@pytest.mark.parametrize("kind", ["archive", "folder"])
def test_celeba10k_is_the_first_faces_of_celeba_halved(tmp_path, root, monkeypatch, capsys, no_shared_data, kind):
    faces, source = {f"{k:06}.jpg": jpeg(k, 218, 178) for k in (3, 1, 4, 2)}, tmp_path / "img_align_celeba"
    source.mkdir()
    for name, content in faces.items():
        (source / name).write_bytes(content)
    if kind == "archive":
        source = archived(tmp_path / "faces", "zip", "celeba", monkeypatch, tmp_path, source.name)
    monkeypatch.setitem(DATASETS["celeba10k"], "images", 3)
    download.prepare("celeba10k-native", str(source))
    assert "differ from those behind the results" in capsys.readouterr().out
    names = [pack.names for pack in packs_of("celeba10k-native")]
    assert names == [("000001.jpg",), ("000002.jpg",), ("000003.jpg",)]  # in their order, the fourth left out
    face = Image.open(io.BytesIO(faces["000001.jpg"])).resize((89, 109), Image.Resampling.LANCZOS)
    expected = np.asarray(Image.open(io.BytesIO(encoded(face, "JPEG", quality=75))))
    assert np.array_equal(packs.load("celeba10k-native", "train").image(0), expected)


def test_the_sets_are_listed_with_what_is_here(demo, no_shared_data, capsys, monkeypatch):
    assert main(["data", "list"]) == 0
    said = capsys.readouterr().out.splitlines()
    lines = {line.split()[0]: line.split()[1] for line in said}
    assert lines == {name: "here" if name == "demo" else "missing" for name in DATASETS}
    assert len({line.index(" images ") for line in said}) == 1

    def closed(base, place):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(sets, "inside", closed)  # the others are another user's
    assert main(["data", "list"]) == 0 and len(capsys.readouterr().out.splitlines()) == len(DATASETS)
