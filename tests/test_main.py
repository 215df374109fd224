"""The command line: what a user types, and what a user gets wrong."""

import argparse
import json
import os
import runpy
import shlex
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import build
import numpy as np
import pytest
from conftest import refused
from made import BAD, album, encoded, photograph
from PIL import Image, ImageCms, PngImagePlugin

from bench.__main__ import main as bench
from companion import cli
from companion.cli import companion, main
from companion.data import reader
from companion.disk import files
from companion.restore import image_files
from companion.training import results
from odl.experiment import Experiment
from odl.parameters import ParameterError

SMOKE, DEMO = ["--profile", "smoke"], {"profile": "demo"}


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_train_then_evaluate_then_list(capsys):
    assert main(["train", "--task", "deblur", *SMOKE]) == 0
    printed = capsys.readouterr().out
    path = results.path_of(Experiment.of("deblur", profile="smoke"))
    assert str(path) in printed and json.loads(path.read_text())["experiment"]["task"] == "deblur"
    assert cli.SMOKE in printed
    assert main(["train", "--task", "deblur", *SMOKE]) == 0
    again = "on_demand was measured before; a schedule that has changed since is trained anew\n"
    assert capsys.readouterr().out == again + printed
    assert main(["evaluate", "--task", "deblur", *SMOKE]) == 0
    assert f"{(said := capsys.readouterr().out)}{path}\n" == printed and "PSNR (dB)" in said
    cli.print_evaluation(replace(results.load_result(Experiment.of("deblur", profile="smoke")), experiment=DEMO))
    assert capsys.readouterr().out == said.replace(f"{cli.SMOKE}\n", "")
    assert main(["results"]) == 0
    assert "on_demand-seed0" in capsys.readouterr().out
    assert main(["results", "smoke/demo", "seed0"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["profile", "dataset", "task", "run", "l2", "psnr", "device"]
    assert row.split()[:4] == ["smoke", "demo", "deblur", "on_demand-seed0"]
    assert main(["results", "seed0", "denoise"]) == 0
    assert capsys.readouterr().out == "nothing measured yet whose name has seed0 and denoise\n"
    bad = [path.with_name(f"{name}.json") for name in ("half", "other")]
    bad[0].write_bytes(path.read_bytes()[:100])
    bad[1].write_text('{"protocol": 2, "history": [{}], "evaluation": {"psnr_input": 3}}')
    assert main(["results"]) == 1  # the others are listed, and the bad ones named
    said = capsys.readouterr()
    assert "on_demand-seed0" in said.out
    assert all(f"error: {file}: " in line for file, line in zip(bad, said.err.splitlines(), strict=True))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "--dataset", "nowhere"], "dataset='nowhere'"),
        (["train", "--set", "epochs=three"], "epochs='three'"),
        (["train", "--set", "epochs"], "NAME=VALUE"),
        (["evaluate", "--task", "deblur"], "python -m odl train --task deblur"),
        (["data", "prepare", "celebb"], "nearest: 'celeba'"),
        (["restore", "--task", "inpaint", "in.png", "out.png"], "--mask"),
        (["restore", "--task", "denoise", "--mask", "in.png", "in.png", "out.png"], "--mask"),
        (["restore", "--task", "denoise", "in.png", "in.png"], "--overwrite"),
        (["restore", "--task", "denoise", "in.png", "text.png"], "'text.png' exists; --overwrite"),  # a shell's *
        (["restore", "--task", "denoise", "album", "own"], "output='own': 2 files exist, as 'own/a.png'; --overwrite"),
        (["restore", "--task", "denoise", "--device", "gpu", "in.png", "out.png"], "device='gpu'"),
        (["restore", "--task", "inpaint", "--mask", "in.png", "in.png", "out.png"], "no pixel is missing"),
        (["restore", "--task", "inpaint", "--mask", "white.png", "in.png", "o.png"], "in.png: white.png: by the mask"),
        (["restore", "--task", "deblur", "text.png", "out.png"], "error: text.png: not a readable image"),
        (["restore", "--task", "deblur", "--skip-existing", "--overwrite", "album", "own"], "neither with --overwrite"),
        (["restore", "--task", "deblur", "--skip-existing", "album", "album/"], "where input and output are one"),
        (["restore", "--task", "deblur", 300 * "a", "out.png"], "aa: File name too long"),
        (["data", "prepare", "./in.png"], "'./in.png' is a file, a folder is needed; nearest: './'"),
        (["restore", "--task", "deblur", "in.pngg", "out.png"], "in.pngg: no such file or folder"),
        (["restore", "--task", "inpaint", "--mask", "masks", "in.png", "out.png"], "masks: no such file or folder"),
        (["restore", "--task", "deblur", "--overwrite", "pages.tif", "pages.tif"], "of its 2 pages"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(arguments, expected, root, capsys):
    Image.fromarray(np.zeros((70, 70), np.uint8)).save(root / "in.png")
    Image.new("L", (70, 70), 255).save(root / "white.png")
    pages = [Image.new("L", (70, 70), grey) for grey in (50, 90)]
    pages[0].save(root / "pages.tif", save_all=True, append_images=pages[1:])
    (root / "text.png").write_text("not an image")
    for name in ("album/a.png", "album/b.png", "album/c.png", "own/a.png", "own/c.png"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes((root / "in.png").read_bytes())
    before = sorted(root.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ") and expected in error
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    ("run", "arguments", "words"),
    [
        (main, "", "required: command (see python -m odl --help)"),
        (main, "data prepar x", "nearest: 'prepare' (see python -m odl data --help)"),
        (main, "train --sed=1", "unknown option --sed; nearest: '--seed' (see python -m odl train --help)"),
        (main, "train --seed 1.5", "seed=1.5 is not a whole number from 0 to 2147483648"),
        (main, "train --dataset db11-native", "dataset='db11-native' has no training images; nearest: 'bsds500'"),
        (main, "evaluate --device cpu", "unknown option --device (see"),
        (main, "evaluate --dataset './no such'", "error: dataset='./no such': no such folder\n"),
        (main, "restore --task deblur --stride a in.png out.png", "stride='a' is not a whole number from 1 to 64"),
        (main, "restore --task denoise --sigma 25 in.png out.png", "unknown option --sigma (see"),
        (main, "restore --task denoise a.png b.png c.png out", "c.png out is too much; one photograph or one folder"),
        (companion, "reproduce --budget '10 minutes'", "'10 minutes' is not a time such as 90s, 10min, 8h or 2d"),
        (companion, "reproduce --workers 0", "workers=0 is not from 1 to 1024; nearest: 1"),
        (companion, "reproduce --workers a", "workers='a' is not a whole number from 1 to 1024"),
        (companion, "reproduce --profile papr", "nearest: 'paper'"),
        (companion, "reproduce --dataset nowhere", "dataset='nowhere' is neither a set"),
        (companion, "reproduce --dataset db11", "dataset='db11' has no training images; nearest: 'bsds500'"),
        (companion, "reproduce --seeds -1", "seeds=-1 is not from 0"),
        (companion, "reproduce --seeds [0,1]", "seeds='[0,1]' is no number; a list is written 0 1 2"),
        (companion, "reproduce --block N1", "block='N1' belongs to --dataset celeba10k-native, not to 'bsds500'"),
        (companion, "reproduce --block E2 --profile demo --dataset demo", "'E2' belongs to --dataset celeba10k-native"),
        (companion, "reproduce --block table2 --dataset celeba10k", "'table2' belongs to --dataset bsds500, not to"),
        (companion, "reproduce --profile smoke --dataset demo --page table1-deblr", "nearest: 'table1-deblur'"),
        (companion, "reproduce --profile smoke --dataset demo --only x", "only='x' is none of these runs"),
        (companion, "plan --gpu-ms-per-step nan", "gpu-ms-per-step=nan is not a number"),
        (companion, "plan --gpu-ms-per-step a", "gpu-ms-per-step='a' is not a number from 0.001 to 1000000"),
        (companion, "plan --seeds 0 1.5", "seeds=1.5 is not a whole number from 0 to 2147483648"),
        (companion, "plan --gpu-ms-per-step 1 --dataset celebb", "nearest: 'celeba'"),
        (companion, "photographs --task photo_fill", "--task photo_fill belongs to --train"),
        (companion, "train tnrdd", "name='tnrdd' is not one of mlp, csf, tnrd, dncnn, dncnn_25; nearest: 'tnrd'"),
        (companion, "ship inpaint", "run='inpaint' has no trained network"),
        (bench, "trainig", "nearest: 'training'"),
        (bench, "--threads a", "threads='a' is not a whole number from 1"),
    ],
)
def test_a_wrong_option_is_one_line(run, arguments, words, root, capsys):
    with pytest.raises(SystemExit) as stopped:
        sys.exit(run(shlex.split(arguments)))
    assert stopped.value.code == 2
    printed = capsys.readouterr().err
    assert words in printed and printed.count("\n") == 1 and not list(root.iterdir())


@pytest.mark.parametrize("below", ["", "deeper"])
@pytest.mark.parametrize("run, arguments", [
    (main, "results"), (main, "data list"), (main, "evaluate"), (main, "train"), (companion, "reproduce --list"),
])  # fmt: skip
def test_a_file_as_the_root_is_refused(run, arguments, below, root, monkeypatch, capsys):
    (root / "file").touch()
    monkeypatch.setenv("ODL_ROOT", str(root / "file" / below))
    assert run(arguments.split()) == 2
    assert capsys.readouterr().err == f"error: {root / 'file'}: not writable, it is a file; {files.ROOT_ADVICE}\n"


@pytest.mark.parametrize("arguments, words", [
    ("nope", "profile='nope' is not one of smoke, demo"),
    ("demo --dataset nope", "dataset='nope' is neither a set"),
    ("demo --dataset ./nope", "dataset='./nope': no such folder"),
    ("demo --dataset ./file", "dataset='./file' is a file"),
    ("demo --seeds 0 -1", "seeds=-1 is not from 0"),
    ("demo --seeds [0,1]", "a list is written 0 1 2"),
])  # fmt: skip
def test_a_book_of_what_is_not_there_is_one_line_and_removes_nothing(arguments, words, root, monkeypatch, capsys):
    (root / "notebooks").mkdir()
    (root / "file").touch()
    monkeypatch.setattr(build, "BUILD", root)
    monkeypatch.setattr(build, "execute_all", lambda pages: pytest.fail("executed"))
    monkeypatch.setattr(sys, "argv", ["build.py", *arguments.split()])
    with pytest.raises(SystemExit) as stopped:
        build.main()
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and words in error and error.count("\n") == 1 and (root / "notebooks").is_dir()


@pytest.mark.parametrize("run, command", [(main, "train"), (main, "evaluate"), (companion, "reproduce")])
def test_the_help_says_that_smoke_means_nothing(run, command, capsys):
    with pytest.raises(SystemExit):
        run([command, "--help"])
    assert cli.SMOKE in " ".join(capsys.readouterr().out.split())


def test_a_list_of_runs_names_the_damaged_ones_and_goes_on(root, capsys):
    path = results.path_of(Experiment.of("deblur", profile="smoke"))
    path.parent.mkdir(parents=True)
    path.write_text("{")
    listing = "reproduce --profile smoke --dataset demo --seeds 0 --page table1-deblur --list"
    assert companion(listing.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 6 and [f"damaged: {path}: not a whole JSON file" in line for line in lines].count(True) == 1
    width = max(len(line.split()[0]) for line in lines)
    assert {line[width:].partition(":")[0] for line in lines} == {" to do", " damaged"}


def saved(restored, source, output) -> list[str]:
    """What is told of a restored image's file before it is written."""
    stored = reader.opened(source)
    options, lost = image_files.kept(stored, output)
    image_files.save(restored, output, options)
    return lost


def test_an_image_that_a_format_cannot_hold_is_one_line(tmp_path):
    image = Image.new("L", (17_000, 2))
    image.save(tmp_path / "in.png")
    refused(lambda: saved(image, tmp_path / "in.png", tmp_path / "out.webp"), "out.webp: not written (")
    assert not (tmp_path / "out.webp").exists()


def full(form: str, **odd) -> bytes:
    """A file with all that a format may have beside its pixels, or other pieces of it."""
    exif, info = Image.Exif(), PngImagePlugin.PngInfo()
    exif[271], exif[274] = "Camera", 6
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    info.add_itxt(image_files.TEXT_XMP, "<x:xmpmeta/>")
    info.add_text("Author", "Köpy")
    given = {"exif": exif, "icc_profile": profile, "dpi": (300, 300), "xmp": b"<x:xmpmeta/>"} | odd
    given |= {"JPEG": {"comment": b"a word"}, "PNG": {"pnginfo": info}}.get(form, {})
    if form == "TIFF":
        exif[700] = given.pop("xmp")
    return encoded(photograph(0, 70, 90), form, **given)


LOST = {"JPEG": {"XMP", "comment"}, "PNG": {"XMP", "text"}, "TIFF": {"XMP"}, "WEBP": {"XMP"}}
HELD = {".bmp": {"resolution"}, ".ppm": set(), ".webp": {"EXIF", "colour profile"}}  # the others hold all three


@pytest.mark.parametrize("form", LOST)
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", *HELD])
def test_exif_profile_and_resolution_are_kept_and_what_is_not_is_one_line(tmp_path, form, suffix):
    (tmp_path / "in").write_bytes(full(form))
    told = saved(reader.flat(stored := reader.opened(tmp_path / "in")), tmp_path / "in", tmp_path / f"out{suffix}")
    after = Image.open(tmp_path / f"out{suffix}")
    there = {"EXIF", "colour profile"} | ({"resolution"} if form != "WEBP" else set())
    held = HELD.get(suffix, {*image_files.CARRIED}) & there
    assert after.size == (70, 90) and set(image_files.metadata(stored, reader.upright(stored))) == there | LOST[form]
    assert [set(line.rpartition(" the ")[2].split(", ")) for line in told] == [there - held | LOST[form]]
    if "EXIF" in held:
        assert after.getexif()[271] == "Camera" and 274 not in after.getexif()
    assert (after.info.get("icc_profile") == stored.info["icc_profile"]) == ("colour profile" in held)
    if "resolution" in held:
        assert after.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
    assert not {"xmp", "comment", "photoshop", "Author"} & set(after.info)


MUCH = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x0e\x01\x02\0\0\0\x01\0\x1a\0\0\0\0\0\0\0" + 65536 * b"x"  # for a PNG
ODD = {  # name → a piece that does not fit a grey or colour JPEG, and the one beside it that does
    "garbage": ({"exif": b"Exif\0\0garbage"}, "EXIF", "colour profile"),
    "much": ({"exif": MUCH}, "EXIF", "colour profile"),
    "other colours": ({"icc_profile": 16 * b"x" + b"CMYK" + bytes(200)}, "colour profile", "EXIF"),
}


@pytest.mark.parametrize("name", ODD)
def test_a_piece_that_does_not_fit_costs_no_other(tmp_path, name):
    odd, gone, left = ODD[name]
    (tmp_path / "in.png").write_bytes(full("PNG", **odd))
    told = saved(reader.flat(reader.opened(tmp_path / "in.png")), tmp_path / "in.png", tmp_path / "out.jpg")
    after = Image.open(tmp_path / "out.jpg")
    assert bool(after.getexif()) == (left == "EXIF") and ("icc_profile" in after.info) == (left == "colour profile")
    assert not any(left in line for line in told) and (name == "garbage" or gone in told[0])


def test_a_plain_file_loses_nothing_and_what_hides_in_one_is_told(tmp_path):
    """IPTC of a JPEG, and a telephone's second picture."""
    image = Image.new("RGB", (70, 90), "grey")
    iptc = b"\xff\xed\0\x26Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0\x0a" + bytes(10)
    plain = encoded(image, "JPEG")
    image.save(tmp_path / "two.jpg", "MPO", save_all=True, append_images=[image])
    (tmp_path / "iptc.jpg").write_bytes(plain[:2] + iptc + plain[2:])
    cases = {"two.jpg": ["second picture in its file"], "iptc.jpg": ["IPTC"], "plain.tif": [], "plain.jpg": []}
    image.save(tmp_path / "plain.tif")
    (tmp_path / "plain.jpg").write_bytes(plain)
    for name, lost in cases.items():
        told = saved(image, tmp_path / name, tmp_path / "out.png")
        assert [line.rpartition(" the ")[2] for line in told] == lost, name
    for suffix in (".jpg", ".tif"):  # for which Pillow makes up 1 dpi
        saved(image, tmp_path / "plain.tif", tmp_path / f"out{suffix}")
        written = Image.open(tmp_path / f"out{suffix}")
        assert "dpi" not in written.info or 282 not in getattr(written, "tag_v2", {282})


@pytest.mark.parametrize("suffix", [".png", ".webp", ".tif", ".bmp", ".ppm"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P"])
def test_every_pixel_outside_the_mask_stays_in_every_format_but_jpeg(root, noise, suffix, mode, capsys):
    Image.fromarray(np.dstack([photograph(0, 70, 90), photograph(1, 70, 90)])[..., :4]).convert(mode).save("in.png")
    gone = np.zeros((70, 90), bool)
    gone[20:30, 20:40] = True
    Image.fromarray(gone).save("m.png")
    assert main(["restore", "--task", "inpaint", "--mask", "m.png", "in.png", f"out{suffix}"]) == 0
    before, after = Image.open("in.png"), Image.open(f"out{suffix}")
    keeps = after.has_transparency_data or not before.has_transparency_data
    form = "RGBA" if keeps else "RGB"
    x, y = (np.asarray(image.convert("RGBA").convert(form)) for image in (before, after))
    assert (x[~gone] == y[~gone]).all() and (x[gone] != y[gone]).any()
    assert keeps == ("transparency" not in capsys.readouterr().err)
    assert keeps or suffix in (".bmp", ".ppm")


@pytest.mark.parametrize("suffix", [".gif", ".avif", ".mpo", ".heic", ""])
def test_formats_that_do_not_keep_photographs_are_refused_before_the_work(root, suffix, capsys):
    Image.new("RGB", (70, 70)).save("in.png")
    assert main(["restore", "--task", "deblur", "in.png", f"out{suffix}"]) == 2
    why = f"ends in {suffix}, which is not written here" if suffix else "has no suffix of an image"
    assert capsys.readouterr().err.endswith(f"{why}; nearest: '.png'\n") and not Path(f"out{suffix}").exists()


@pytest.mark.parametrize("mode", ["L", "RGB", "P"])
def test_one_colour_that_is_transparent_stays_so(root, noise, mode):
    image = Image.effect_noise((70, 70), 40).convert(mode)
    image.save(root / "in.png", transparency=(128, 128, 128) if mode == "RGB" else 128)
    assert main(["restore", "--task", "deblur", "--stride", "32", "in.png", "out.png"]) == 0
    before, after = (Image.open(root / name).convert("RGBA").getchannel("A") for name in ("in.png", "out.png"))
    assert after.tobytes() == before.tobytes() and before.getextrema() == (0, 255)


def test_a_photograph_takes_the_mask_of_its_own_folder(root):
    for name in ("in/a/x.png", "in/b/x.png", "in/c/x.jpg", "masks/a/x.png", "masks/b/x.gif", "masks/x.png"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for name in ("masks/y.png", "masks/y.gif"):  # which no photograph uses
        (root / name).touch()
    found = image_files.todo("in", "out", "masks", False)
    given = {path.as_posix(): mask.as_posix() for path, mask, _ in found}
    expected = {"in/a/x.png": "masks/a/x.png", "in/b/x.png": "masks/b/x.gif", "in/c/x.jpg": "masks/x.png"}
    assert given == expected
    (root / "masks/b/x.png").touch()
    refused(lambda: image_files.todo("in", "out", "masks", False), "both b/x.", kind=ParameterError)
    (root / "masks/b/x.png").unlink()
    for wrong in (("in", "masks", "masks"), ("in/a/x.png", "masks/x.png", "masks/x.png")):
        refused(lambda wrong=wrong: image_files.todo(*wrong, True), "is a mask", kind=ParameterError)
    for wrong in (("", "out"), ("in", "")):
        refused(lambda wrong=wrong: image_files.todo(*wrong, None, False), "names no file", kind=ParameterError)
    for name in ("twice/a.gif", "twice/a.gif.png"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    refused(lambda: image_files.todo("twice", "out", None, True), "a.gif.png' would come of 2", kind=ParameterError)
    (root / "masks").rename(root / "in/masks")  # where they lie among the image_files, they are none
    assert {path.as_posix() for path, *_ in image_files.todo("in", "out", "in/masks", False)} == {*expected}


@pytest.mark.parametrize(("one", "other"), ["CD", "DC"])
def test_masks_are_found_in_either_form_of_unicode(root, one, other):
    """As a telephone, macOS and an archive write the same name."""
    photograph, mask = (Path(unicodedata.normalize(f"NF{form}", "naïve/Köln")) for form in (one, other))
    for path in (photograph := "in" / photograph.with_suffix(".jpg"), mask := "masks" / mask.with_suffix(".png")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert image_files.todo("in", "out", "masks", False) == [(photograph, mask, "out" / photograph.relative_to("in"))]


def test_pipes_and_devices_are_refused_at_once(root, noise, capsys):
    os.mkfifo("pipe.png")
    Image.fromarray(photograph(0, 70, 70)).save("in.png")
    for names in (("pipe.png", "out.png"), ("in.png", "pipe.png"), ("/dev/null", "out.png")):
        assert main(["restore", "--overwrite", "--task", "denoise", *names]) == 2
        assert "no regular file" in capsys.readouterr().err
    assert Path("pipe.png").is_fifo()


def test_a_folder_gives_a_folder_and_names_what_failed(root, noise, capsys):
    name = "Köln"
    for file in ("a.png", "deeper/b.jpg"):
        (root / name / file).parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((70, 70), 40).save(root / name / file)
    (root / name / "c.png").write_text("not an image")
    for bad in (odd := [file for file in BAD if file.endswith(".tif")]):  # of a range that nobody knows
        (root / name / bad).write_bytes(BAD[bad])
    Image.new("RGB", (70, 70)).save(f"{name}/d.gif")  # which is read and not written
    arguments = ["restore", "--task", "denoise", "--stride", "32", name, f"{name}/out"]
    for again in ([], ["--overwrite"]):  # what was restored is not restored again
        assert main(arguments + again) == 1
        said = capsys.readouterr().err
        assert "c.png: not a readable image" in said
        assert all(f"error: {name}/{bad}: " in said for bad in odd)
        found = {path.relative_to(root / name / "out").as_posix() for path in (root / name / "out").glob("**/*.*")}
        assert found == {"a.png", "deeper/b.jpg", "d.gif.png"}
    (root / name / "out/a.png").unlink()
    assert main([*arguments, "--skip-existing"]) == 1
    assert f"2 of {4 + len(odd)} photographs are left out, because" in (said := capsys.readouterr()).err
    assert said.out == f"{name}/out/a.png\n"
    assert main(arguments) == 2 and "exist, as" in capsys.readouterr().err
    assert main([*arguments[:-1], "o.png"]) == 2
    assert "output='o.png' is a file, or named like one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "stop", "said"),
    [
        ("in out", "0.png", "nothing was restored"),
        ("in out", "1.png", "is restored; the same command with --skip-existing restores the rest"),
        ("--overwrite in out", "1.png", "is restored; the same command restores all of it again"),
        ("--overwrite in in", "1.png", "is restored and must not be restored again"),
    ],
)
def test_ctrl_c_says_what_is_restored_and_what_to_do(root, noise, monkeypatch, capsys, arguments, stop, said):
    def restore(source, *_):
        if source.name == stop:
            raise KeyboardInterrupt

    album(root / "in", 2)
    monkeypatch.setattr(cli, "restore_file", restore)
    assert main(["restore", "--task", "denoise", *arguments.split()]) == 130
    assert capsys.readouterr().err.endswith(f"{said}\n")


@pytest.mark.parametrize("package", ["odl", "companion"])
def test_ctrl_c_while_the_command_is_imported_is_no_traceback(package, monkeypatch):
    class Stopped:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "companion.cli", Stopped())
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module(package, run_name="__main__")
    assert stopped.value.code == 130


NO_ROOM = ("CUDA out of memory. Tried", "Allocator: can't allocate memory: you", "perhaps by an excessive memory usage")


@pytest.mark.parametrize("said", NO_ROOM)
def test_no_room_in_memory_is_one_line_and_another_error_stays(said, capsys):
    def fails(options):
        raise RuntimeError(options.said + "\nmore")

    parser = argparse.ArgumentParser()
    parser.add_argument("said")
    parser.set_defaults(run=fails)
    assert main([said], parser) == 2 and capsys.readouterr().err == f"error: {said}\n"
    with pytest.raises(RuntimeError):
        main(["shapes differ"], parser)


@pytest.mark.parametrize("error, status", [(MemoryError(), 1), (BrokenPipeError(32, "Broken pipe"), 0)])
def test_no_memory_for_one_photograph_leaves_the_others_and_a_reader_who_left_is_no_error(
    root, noise, monkeypatch, capfd, error, status
):
    made = []

    def fails(source, *others):
        made.append(source.name)
        if source.name == "a.png":
            raise error

    (root / "in").mkdir()
    for name in ("a.png", "b.png"):
        Image.fromarray(photograph(0)).save(root / "in" / name)
    monkeypatch.setattr(cli, "restore_file", fails)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    assert main(["restore", "--task", "denoise", "in", "out"]) == status
    assert ("a.png: too little memory" in capfd.readouterr().err) == (made == ["a.png", "b.png"]) == bool(status)


def test_a_misspelt_task_is_refused_without_torch(root):
    code = "import sys; sys.modules['torch'] = None; from companion.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "restore", "--task", "debler", "in.png", "out.png"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "nearest: 'deblur'" in done.stderr


def test_the_module_runs_without_the_book_s_packages(root):
    """A GPU machine has torch, pandas and scikit-image, and neither papermill nor jupyter-book."""
    code = """
import sys
for name in ("papermill", "jupyter_book", "bm3d", "nbformat", "IPython", "pooch"):
    sys.modules[name] = None
from companion.runs import sweep
from companion.cli import main
sys.exit(main(["train", "--profile", "smoke"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, env=os.environ)
    assert done.returncode == 0, done.stderr
