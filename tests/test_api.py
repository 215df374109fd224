"""`import odl`: what a script uses, and photographs and masks as people have them."""

import io
import json
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import skimage
import torch
from conftest import refused, tiny
from made import photograph
from PIL import Image

import odl
from companion.restore import pretrained
from companion.restore.image_files import DamageWarning, marked
from companion.training import results
from odl import paper
from odl.device import pytorch_defaults, set_rate
from odl.network import EncoderDecoder
from odl.parameters import ParameterError
from odl.windows import restore_image


def square(height=80, width=100) -> np.ndarray:
    mask = np.zeros((height, width), bool)
    mask[20:40, 30:60] = True
    return mask


def test_what_is_imported_is_what_is_needed():
    """`import odl` no torch, training and planning no matplotlib; each before what would import it after all."""
    code = """import sys
def absent(*names): assert not {*names} & {*sys.modules}, {*names} & {*sys.modules}
import odl; absent("torch")
import odl.learn; absent("matplotlib", "scipy.stats", "git")
import companion.runs.sweep, companion.runs.catalogue; absent("matplotlib")
print([getattr(odl, name) for name in odl.__all__])"""
    rows = """from odl import {0}
assert len({0}.SCHEDULES) > 20  # complete, whichever module is imported first"""
    for each in (rows.format("schedules"), rows.format("rivals"), code):
        subprocess.run([sys.executable, "-c", each], cwd=Path(__file__).parents[1], timeout=120, check=True)


@pytest.mark.parametrize(
    "code", ["import companion", "import runpy; runpy.run_module('companion', run_name='__main__')"]
)
def test_another_package_of_our_name_is_told_in_one_line(code, tmp_path):
    """The Operator Discretization Library, say, installed beside ours."""
    (tmp_path / "odl").mkdir()
    (tmp_path / "odl/__init__.py").write_text('__version__ = "1.0.0"')
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(Path(__file__).parents[1])!r}]; {code}"
    done = subprocess.run([sys.executable, "-c", path], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{tmp_path}/odl/__init__.py is another package named odl")


@contextmanager
def set_to(get, put, value):
    """Within `with`, something that PyTorch keeps for the whole process has another value."""
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


ONEDNN = torch.backends.mkldnn
STATES = {
    "doubles": lambda: set_to(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "halves": lambda: set_to(torch.get_default_dtype, torch.set_default_dtype, torch.bfloat16),
    "oneDNN": lambda: set_to(lambda: ONEDNN.enabled, lambda value: setattr(ONEDNN, "enabled", value), False),
    "device": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "gradients": torch.no_grad,
    "inference": torch.inference_mode,
}


def test_threads_that_overlap_leave_the_process_as_it_was(monkeypatch):
    """The first in is the first out, so that each alone would put back what the other had set."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    torch.set_default_dtype(torch.float64)
    first, second, seen = pytorch_defaults(), pytorch_defaults(), []
    leave = [partial(one.__exit__, None, None, None) for one in (first, second)]
    try:
        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
            for thread, step in zip((one, other) * 2, (first.__enter__, second.__enter__, *leave), strict=True):
                thread.submit(step).result()
                seen.append((torch.get_default_dtype(), torch.backends.cudnn.benchmark))
    finally:
        torch.set_default_dtype(torch.float32)
    assert seen == [(torch.float32, False)] * 3 + [(torch.float64, True)]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("task", "precision"), [("inpaint", "fp32"), ("deblur", "bf16"), ("denoise", "fp32")])
def test_what_a_caller_has_set_in_pytorch_changes_no_number_and_is_put_back(state, task, precision, demo, elsewhere):
    """Neither in what is stored nor in what training, validation and tests return."""
    experiment, found = tiny(task, epochs=2, iterations=2, precision=precision), []
    for context in (nullcontext, STATES[state]):
        with elsewhere() if found else nullcontext():
            with context():
                before = torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()
                stored = json.loads(results.measurement_of(experiment).run("cpu").path.read_bytes())
                trained = odl.train(experiment, "cpu")
                rows, _ = odl.evaluate(experiment, trained.network, "cpu")
                after = torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()
            assert before == after
            weights = {name: t.tolist() for name, t in trained.network.state_dict().items()}
        found.append((stored["history"], stored["evaluation"], stored["per_image"], rows.to_csv(), weights))
    assert found[0] == found[1]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("network", ["photographs", "paper"])
def test_nor_does_it_change_a_restored_picture_or_the_network_that_is_kept_for_the_next(state, network, photo_networks):
    def restored():
        how = {"network": network, "stride": 32 if network == "paper" else None}
        return [odl.restore(x, task, square() if task in paper.MASKED else None, **how) for task in paper.TASKS]

    x = photograph(0, 80, 100)
    expected = restored()
    for cache in (pretrained.read, pretrained.read_unet):
        cache.cache_clear()
    with STATES[state]():
        pretrained.load_for_photographs("deblur")
        within = restored()
    assert np.array_equal(within, expected) and np.array_equal(restored(), expected)


@pytest.mark.parametrize("shape", [(80, 90), (80, 90, 3)])
def test_a_module_from_anywhere_restores_an_image(shape):
    x = np.random.default_rng(0).random(shape, np.float32)
    np.testing.assert_allclose(restore_image(torch.nn.Identity(), x, stride=32), x, atol=1e-6)


def test_products_are_whole_whatever_their_precision_was_set_to():
    """A GPU's, above all: there is no product in the networks' way on a CPU that this changes."""
    layer, x = torch.nn.Linear(512, 512), torch.rand(256, 512)
    right = layer(x)
    with set_to(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"):
        with pytorch_defaults():
            assert torch.equal(layer(x), right) and torch.backends.cuda.matmul.fp32_precision == "ieee"
        assert torch.get_float32_matmul_precision() == "medium"


def test_any_optimizer_takes_a_rate_and_a_network_is_tested_where_it_is(demo, monkeypatch):
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], 0.5)
    for factor in (1, 0.5, 0.25):
        set_rate(optimizer, factor)
    assert optimizer.param_groups[0]["lr"] == 0.125
    network, experiment = EncoderDecoder(3, 4).eval(), tiny("deblur")
    here = odl.evaluate(experiment, network)[0]
    monkeypatch.setattr(results, "check_device", lambda device: "meta" if device == "auto" else device)
    assert odl.evaluate(experiment, network)[0].equals(here)  # also where other work would go to a GPU


@pytest.mark.parametrize("task", odl.TASKS)
def test_what_ships_is_loaded_and_restores_whatever_the_root(task, root):
    network = odl.load(task)
    assert isinstance(network, EncoderDecoder) and not network.training
    x = np.full((70, 70, 3), 0.5, np.float32)
    mask = square(70, 70) if task in paper.MASKED else None
    for how in ({"stride": 32, "network": "paper"}, {}):
        assert np.abs(odl.restore(x, task, mask, **how) - x).mean() < 0.1
    assert not root.exists()


def test_masks_as_people_draw_them():
    x, gone = photograph(0, 80, 100), square()
    red = np.where(gone[..., None], np.uint8([255, 0, 0]), x // 2)
    erased = np.dstack([x, np.where(gone, 0, 255).astype(np.uint8)])
    layer = np.dstack([np.full_like(x, 255), np.where(gone, 255, 0).astype(np.uint8)])
    black_and_white = Image.fromarray(np.uint8(gone) * 255)
    drawn = [*map(Image.fromarray, (red, erased, layer)), black_and_white, black_and_white.convert("1")]
    values = np.uint8(gone), np.uint16(gone), np.dstack([np.uint8(gone)] * 3), np.uint16(gone) * 65535, np.float32(gone)
    drawn += map(Image.fromarray, values)
    drawn += [Image.fromarray(np.dstack([np.uint8(gone)] * n + [np.full(gone.shape, 255, np.uint8)])) for n in (1, 3)]
    for mask in (gone, np.uint8(gone), red, erased, np.asarray(black_and_white.convert("RGB")), *drawn):
        np.testing.assert_array_equal(marked(mask), gone)
    turned, exif = black_and_white.transpose(Image.Transpose.ROTATE_90), Image.Exif()
    exif[274] = 6  # by a quarter
    turned.info["exif"] = exif.tobytes()
    np.testing.assert_array_equal(marked(turned), gone)
    for ground in (0, 255):
        saved = io.BytesIO()
        drawing = np.where(gone[..., None], np.uint8([255, 0, 0]), np.uint8(ground))
        Image.fromarray(drawing).save(saved, "JPEG", quality=75)
        assert np.mean(marked(Image.open(saved)) != gone) < 0.02
    for bad in (x, x / 255, x[..., :2], Image.fromarray(x)):
        refused(lambda bad=bad: marked(bad), kind=ParameterError)
    refused(lambda: marked(Image.fromarray(np.int32(gone))), "mask: a picture of signed values or integers")
    refused(lambda: marked(x), "is pure red and saved as PNG, because JPEG blurs colours")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: odl.restore(x, "deblur", device="gpu"), "device='gpu'"),
        (lambda x: odl.restore(x, "deblur", network="papers"), "network='papers' is not one of photographs, paper"),
        (lambda x: odl.restore(x[..., :2], "deblur"), "shape"),
        (lambda x: odl.restore(x[:0], "deblur"), "shape"),
        (lambda x: odl.restore(x[:1], "deblur"), "at least 2×2"),
        (lambda x: odl.restore(x * np.nan, "deblur"), "not finite"),
        (lambda x: odl.restore(x.astype(int), "deblur"), "[0, 1]"),
        (lambda x: odl.restore(np.uint16(x // 25), "deblur"), "image has type uint16"),
        (lambda x: odl.restore(x // 4 / 127.5 - 1, "denoise"), "the [0, 1] scale is needed"),  # a dark picture
        (lambda x: odl.restore(x.astype(np.uint16), "denoise"), "as image / 65535"),
        (lambda x: odl.restore("x.jpg", "deblur"), "image='x.jpg' is a path; nearest: PIL.Image.open('x.jpg')"),
        (lambda x: odl.restore(x, "inpaint", mask=Path("m.png")), "mask='m.png' is a path"),
        (lambda x: odl.restore(x, "inpaint", mask=[[1], [1, 2]]), "mask is no array of numbers"),
        (lambda x: odl.restore(Image.fromarray(np.float32(x[..., 0])), "deblur"), "image: a picture of floats from"),
        (lambda x: odl.restore(x, "inpaint", mask=square(81)), "100×81"),
        (lambda x: odl.restore(x, "inpaint", mask=square(100, 80)), "turned upright by its EXIF orientation"),
        (lambda x: odl.TASKS["deblur"].corrupt(x, 7, None), "nearest: 6"),
        (
            lambda x: odl.TASKS["inpaint"].corrupt(torch.zeros(3, 64, 64), 1, None),
            "x is torch.float32 (3, 64, 64); 32-bit floats",
        ),
        (
            lambda x: odl.TASKS["deblur"].corrupt(torch.zeros(2, 3, 64, 80), "easy", None),
            "(images, channels, side, side)",
        ),
        (lambda x: odl.TASKS["denoise"].corrupt(torch.zeros(2, 1, 64, 64).byte(), 1, None), "x is torch.uint8 (2, 1, "),
        (lambda x: odl.TASKS["interpolate"].corrupt(x, 1, None), "x is ndarray; 32-bit floats"),
        (lambda x: odl.TASKS["denoise"].corrupt(Image.fromarray(x), 1, None), "x is Image; 32-bit floats"),
        (lambda x: odl.TASKS["deblur"].corrupt(x, 2.0, None), "level=2.0 is not a whole number"),
    ],
)
def test_a_mistake_is_one_line(call, expected):
    refused(lambda: call(photograph(0, 80, 100)), expected)


def test_a_mask_that_seems_inverted_is_told(noise):
    with pytest.warns(DamageWarning, match="invert the mask"):
        odl.restore(photograph(0, 80, 100), "inpaint", ~square(), stride=32)


def test_a_dark_photograph_is_told_for_its_range_alone(noise, recwarn):
    """12 bits in 16: nothing is of one colour there. What stands in the hole, white or not a number, is nothing."""
    warnings.simplefilter("always")  # also what was said before
    x, hole = photograph(0, 80, 100), square()
    twelve = x[..., 0].astype(np.uint16) * 16
    for image in (x // 16, Image.fromarray(twelve), Image.fromarray(np.where(hole, np.uint16(65535), twelve))):
        odl.restore(image, "inpaint", hole, stride=32)
        [told] = recwarn.list
        assert "no value is above 1" in str(told.message) and told.filename == __file__
        recwarn.clear()
    for image, dark in ((twelve / 65535, True), (np.where(hole, np.nan, twelve / 65535), True), (x / 255, False)):
        odl.restore(image, "inpaint", hole, stride=32)
        assert ["no value is above 16 of 255" in str(told.message) for told in recwarn.list] == [True] * dark
        recwarn.clear()


@pytest.mark.parametrize(
    ("task", "shape", "stride"),
    [
        ("deblur", (1000, 1000, 3), 8),
        ("denoise", (3000, 4000, 3), 32),  # a channel at a time
        ("deblur", (30_000, 40_000, 3), 32),  # the widest, whatever it takes
        ("inpaint", (3000, 4000, 3), 8),  # of which windows with the hole alone are looked at
    ],
)
def test_the_stride_that_nobody_names_keeps_a_cpu_to_minutes(task, shape, stride):
    missing = np.zeros(shape[:2], bool)
    missing[1000:1100, 2000:2100] = True
    image = np.broadcast_to(np.float32(0), shape)
    assert pretrained.stride_for(image, task, missing if task == "inpaint" else None) == stride


@pytest.mark.parametrize("task", paper.MASKED)
@pytest.mark.parametrize("stride", [8, 20, 64])
@pytest.mark.parametrize("corner", [False, True])
def test_what_lies_far_from_the_holes_is_not_looked_at(task, stride, corner, noise, monkeypatch):
    """And they are filled as they are in the whole image, one of them in a corner."""
    x, mask = photograph(0, 700, 900), np.zeros((700, 900), bool)
    mask[300:310, 200:290] = True
    mask[(slice(690, None), slice(880, None)) if corner else (slice(330, 333), slice(300, 304))] = True
    seen = []
    for name in ("inpaint_image", "restore_image"):
        whole = getattr(pretrained, name)
        spy = lambda network, y, *a, whole=whole, **k: seen.append(y.shape[:2]) or whole(network, y, *a, **k)  # noqa: E731
        monkeypatch.setattr(pretrained, name, spy)
    part = odl.restore(x, task, mask, stride)
    monkeypatch.setattr(pretrained, "around", lambda mask, stride: (slice(0, 700), slice(0, 900)))
    assert np.abs(odl.restore(x, task, mask, stride).astype(int) - part).max() <= 1
    assert (part != x).any(-1)[mask].mean() > 0.9 and (part == x)[~mask].all()
    [near, every] = [height * width / mask.size for height, width in seen]
    assert near < (0.75 if corner else 0.15) and every == 1


@pytest.mark.parametrize("task", paper.TASKS)
def test_a_folder_reads_its_network_once_and_none_can_change_it(tmp_path, monkeypatch, task):
    reads, read_bytes = [], Path.read_bytes
    counting = lambda path: reads.append(path) if path.suffix == ".safetensors" else None  # noqa: E731
    monkeypatch.setattr(Path, "read_bytes", lambda path: counting(path) or read_bytes(path))
    pretrained.read.cache_clear()
    one, other = odl.load(task), odl.load(task)
    assert len(reads) == 1 and one is not other
    with torch.no_grad():
        next(one.parameters()).zero_()
    assert next(odl.load(task).parameters()).any() and next(other.parameters()).any() and len(reads) == 1


@pytest.mark.parametrize("task", paper.TASKS)
def test_a_grey_photograph_is_restored_by_the_paper_as_its_three_equal_channels(task):
    """Of the networks that ship, which know what is missing by its tint."""
    x, mask = skimage.data.camera()[200:290, 190:300], np.random.default_rng(0).random((90, 110)) < 0.5
    given = {"mask": mask} if task in paper.MASKED else {}
    y = np.where(mask, 0, x).astype(np.uint8) if given else x
    grey, colour = (odl.restore(z / 255, task, **given, stride=16, network="paper") for z in (y, np.dstack([y] * 3)))
    np.testing.assert_allclose(grey, colour.mean(2), atol=1e-6)
    if task == "interpolate":
        assert np.sqrt(np.mean((grey - x / 255)[mask] ** 2)) < 0.06


@pytest.mark.parametrize("colours", [b"RGB ", b"CMYK"])
def test_a_photograph_comes_back_upright_with_its_profile_unless_that_is_of_other_colours(colours, noise):
    image, exif, profile = Image.new("CMYK", (90, 64)), Image.Exif(), 16 * b"x" + colours
    exif[274] = 6  # turned by a quarter
    image.info |= {"exif": exif.tobytes(), "icc_profile": profile}
    restored = odl.restore(image, "deblur", stride=32)
    assert restored.size == (64, 90) and 274 not in restored.getexif()
    assert restored.info.get("icc_profile") == (profile if colours == b"RGB " else None)
