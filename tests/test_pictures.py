"""Kinds of picture, restored and trained on; `python tests/test_pictures.py` writes data/results/pictures.json."""

import io
import os
import tempfile
import time
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest
import tifffile
from made import ROUGH, X, encoded, grey
from PIL import Image
from test_data import FILES

from odl.__main__ import main
from odl.data import reader
from odl.data.sets import DataError
from odl.machine import files, provenance
from odl.restoring import pretrained  # noqa: F401  (imported first, so that no picture's time has it)

DEEP = np.dstack([ROUGH, ROUGH[::-1], ROUGH])
RAMP = np.add.outer(np.arange(70), np.arange(80)).astype(np.uint8)
RAMP = np.dstack([RAMP, RAMP[::-1], 255 - RAMP])  # JPEG keeps it within 8 of 255


def tiff(array, **options) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, array, photometric="rgb", **options)
    return file.getvalue()


def jpeg(image, **options) -> bytes:
    return encoded(image, "JPEG", quality=98, **options)


TURN = Image.Exif()
TURN[274] = 6
KINDS = {  # suffix, bytes, and the pixels that it shows or words of the error
    "PNG, grey of 16 bits": (".png", *FILES["I;16"]),
    "PNG, colours of 16 bits": (".png", *FILES["RGB of 16 bits"]),
    "TIFF, grey of 16 bits": (".tif", *FILES["grey TIFF of 16 bits"]),
    "TIFF, colours of 16 bits": (".tif", tiff(DEEP), DEEP // 256),
    "TIFF, colours of 16 bits in planes": (".tif", tiff(DEEP.transpose(2, 0, 1), planarconfig="separate"), "in planes"),
    "TIFF, grey of floats": (".tif", *FILES["floats to 1"]),
    "TIFF, colours of floats": (".tif", tiff((DEEP / 65535).astype(np.float32)), "floats in colour"),
    "PNG with transparency": (".png", *FILES["RGBA"]),
    "PNG, grey with transparency": (".png", *FILES["LA"]),
    "PNG with a palette": (".png", *FILES["P"]),
    "PNG of 1 bit": (".png", *FILES["1"]),
    "JPEG to be turned": (".jpg", jpeg(RAMP, exif=TURN), np.rot90(RAMP, -1)),
    "JPEG, CMYK": (".jpg", jpeg(Image.fromarray(RAMP).convert("CMYK")), RAMP),
    "JPEG, grey": (".jpg", jpeg(RAMP[..., 0]), grey(RAMP[..., 0])),
}


def large() -> tuple:
    """A JPEG of 12 megapixels, which takes a while."""
    pixels = np.tile(X, (43, 50, 1))[:3000]
    return ".jpg", jpeg(pixels, subsampling=0), pixels


def tried(kind: str) -> dict:
    """A row of the table, from what happens to a picture in the present folder."""
    suffix, content, shown = KINDS[kind]
    files.write_atomically(Path("in" + suffix), content)
    gone = np.zeros(shown.shape[:2] if isinstance(shown, np.ndarray) else (70, 80), bool)
    gone[10:30, 20:50] = True
    Image.fromarray(gone).save("mask.png")
    start = time.process_time()
    with redirect_stderr(io.StringIO()) as said:
        failed = main(["restore", "--task", "inpaint", "--mask", "mask.png", "in" + suffix, "out.png"])
    seconds = time.process_time() - start
    trains = "read"
    try:
        reader.read_image(Path("in" + suffix), 96)
    except DataError:
        trains = "refused"
    error = said.getvalue().strip().splitlines()[-1] if failed else ""
    row = {"Picture": kind, "In": "–", "Out": "–", "Known pixels change by": "–", "Processor time": "–"}
    row |= {"In a training folder": trains, "Error": error.removeprefix(f"error: in{suffix}: ")}
    if failed:
        return row
    before, after = Image.open("in" + suffix), Image.open("out.png")
    change = abs(np.asarray(after.convert("RGB"))[~gone].astype(int) - shown[~gone]).max()
    sizes = {name: f"{image.mode}, {image.width}×{image.height}" for name, image in (("In", before), ("Out", after))}
    return row | sizes | {"Known pixels change by": f"{change} of 255", "Processor time": f"{seconds:.1f} s"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_picture_is_restored_and_read_for_training_or_refused_in_one_line(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row, (*_, shown) = tried(kind), KINDS[kind]
    if isinstance(shown, str):
        assert row["In a training folder"] == "refused" and shown in row["Error"] and not Path("out.png").exists()
    else:
        assert row["In a training folder"] == "read" and row["Out"].endswith(f"{shown.shape[1]}×{shown.shape[0]}")
        assert "transparency" not in kind or row["Out"] == row["In"]
        assert int(row["Known pixels change by"].split()[0]) <= (8 if "JPEG" in kind else 0)


if __name__ == "__main__":
    place = files.results() / "pictures.json"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        KINDS["JPEG of 12 megapixels"] = large()
        rows = [tried(kind) for kind in KINDS]
        files.write_atomically(place, files.seal({"commit": provenance.commit(), "rows": rows}))
        os.chdir("/")
