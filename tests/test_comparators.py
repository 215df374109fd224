"""The systems the paper compares with: they denoise, refuse bad input, and are measured where they should be."""

import copy
import tomllib
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
import skimage.data
import torch
from conftest import link, refused
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import inpaint_biharmonic

from companion import published
from companion.comparators import DENOISERS, classical, context_encoder, holes, trained
from companion.data import packs
from companion.disk import files
from companion.measure import blocks, denoising
from companion.pages import db11_spectrum, gallery, table2, table3
from companion.runs import catalogue
from companion.training import results
from companion.training.measurement import Result
from odl import crops
from odl.corruptions import FILL, delete
from odl.experiment import Experiment
from odl.parameters import ParameterError

ROOT = files.PACKAGE.parent
ENCODERS = ("context_encoder_center", "context_encoder_random")


def installed(system):
    missing = system == "bm3d" and not classical.has_bm3d()
    return pytest.param(system, marks=pytest.mark.skipif(missing, reason=classical.NO_BM3D))


ALL = [installed(system) for system in DENOISERS if system not in trained.LEARNERS]  # these need weights
PHOTOGRAPH = skimage.data.camera()[100:196, 200:312]


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory, demo_pack):
    """A root with the demo pack, for all tests here: it is packed at full size once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODL_ROOT", str(tmp_path_factory.mktemp("root")))
        link(demo_pack)
        yield


def noisy(sigma, clip=True, image=PHOTOGRAPH, name="test"):
    return denoising.add_awgn(image, name, sigma, clip)


@pytest.mark.parametrize("system", ALL)
def test_a_denoiser_improves_a_photograph(system):
    image = PHOTOGRAPH[:64, :64]
    for sigma, clip, margin in ((10, False, 1.5), (50, True, 4)):
        y = noisy(sigma, clip, image)
        x_hat = np.clip(DENOISERS[system].denoise(y, sigma), 0, 1)
        assert x_hat.shape == y.shape
        before, after = db(image, y), db(image, x_hat)
        assert after > before + margin, f"{system} at σ={sigma}: {before:.2f} → {after:.2f} dB"


GREY = np.zeros((64, 64))
BAD_INPUT = [(GREY, sigma, "sigma") for sigma in (0, -1, np.nan, 256, "25", True, [25, 25])]
BAD_INPUT += [(np.zeros((64, 64, 3)), 25, "shape"), (GREY.astype(np.uint8), 25, "floats"), (GREY[:, :4], 25, "4×64")]
BAD_INPUT += [(GREY[:0, :0], 25, "0×0"), (GREY + np.nan, 25, "not finite"), (GREY + 128, 25, "image / 255")]


@pytest.mark.parametrize("system", [installed(system) for system in DENOISERS])
def test_bad_input_is_one_clear_line(system):
    own = (GREY, None, "sigma=None") if DENOISERS[system].knows_sigma else (GREY[:16, :16], 25, "at least 17×17")
    for y, sigma, words in [*BAD_INPUT, own]:
        refused(lambda y=y, sigma=sigma: DENOISERS[system].denoise(y, sigma), words, kind=ParameterError)


def test_an_unknown_system_or_a_bad_number_is_named():
    words = "system='bm3' is not one of bm3d, ", "nearest: 'bm3d'"
    refused(lambda: denoising.measurement_of("bm3"), *words, kind=ParameterError)
    unknown = partial(table3.denoisers_table, ["nlm", "fixatd"], dataset="demo")
    refused(unknown, "'fixatd' is not one of ", "nearest: 'fixated'", kind=ParameterError)
    refused(lambda: run("context_encoder_center", width=-3), "width=-3", kind=ParameterError)


def test_noise_is_the_same_clipped_or_not_and_has_its_sigma():
    image = np.full((256, 256), 128, np.uint8)
    free, clipped = (denoising.add_awgn(image, "flat", 60, clip) for clip in (False, True))
    np.testing.assert_allclose(np.clip(free, 0, 1), clipped, atol=1e-6)
    assert (free - 128 / 255).std() == pytest.approx(60 / 255, rel=0.01)
    assert free.min() < 0 and clipped.min() == 0
    assert not np.array_equal(free, denoising.add_awgn(image, "other", 60, False))


def db(image, x_hat):
    return peak_signal_noise_ratio(image / 255, x_hat.astype(float), data_range=1)


def test_table3_measures_noise_and_systems():
    systems = [denoising.NOISY, "nlm"]
    table = table3.denoisers_table(systems, dataset="demo", profile="once")
    psnr = table.set_index(["system", "clipped", "image"]).psnr.sort_index()
    assert list(table.clipped) == 2 * ([False] * 3 + [True] * 3)
    for name, image in denoising.grey_photographs("demo"):
        for clip in (False, True):
            y = noisy(25, clip, image, name)
            assert psnr[denoising.NOISY, clip, name] == pytest.approx(db(image, y), abs=1e-3)
            x_hat = np.clip(DENOISERS["nlm"].denoise(y, 25), 0, 1)
            assert psnr["nlm", clip, name] == pytest.approx(db(image, x_hat), abs=1e-3)
    assert psnr[denoising.NOISY, False].mean() == pytest.approx(20 * np.log10(255 / 25), abs=0.05)
    shown = table3.show_means(table).data.set_index("system")
    assert list(shown.index) == ["noisy, not restored", "Non-local means"]


def test_a_system_told_25_is_told_25_in_curves_and_pictures(monkeypatch, tmp_path):
    told, image = [], PHOTOGRAPH[:64, :64]
    monkeypatch.setattr(files, "shipped", lambda: tmp_path)
    listens = replace(DENOISERS["nlm"], denoise=lambda y, sigma: told.append(sigma) or y)
    monkeypatch.setitem(denoising.SYSTEMS, "nlm", listens)
    frame = db11_spectrum.curves_table([("nlm", None), ("nlm", 25)], [50], dataset="demo", profile="told")
    assert len(frame) == 2 and frame.psnr[0] == frame.psnr[1] < 20
    denoisers = denoising.denoisers(["nlm", "tnrd", "on_demand"], denoising.our_systems("paper"))
    shown = gallery.pictures(denoisers, [10, 75], "x", image)
    assert told == [50] * 3 + [25] * 3 + [25, 25]
    assert list(shown.system) == ["noisy", "nlm"] * 2  # the others are not trained here
    expected = db(image, noisy(75, True, image, "x"))
    assert shown[shown.sigma == 75].psnr.tolist() == pytest.approx([expected] * 2, abs=1e-4)


@pytest.mark.parametrize("here", [["bm3d", "nlm"], ["nlm"], ["bm3d"]])
def test_pictures_show_what_is_told_a_wrong_noise_level(here):
    """Whichever of the packages is installed."""
    denoisers = {name: lambda y, sigma: y * (sigma / 50) for name in here}
    axes = gallery.plot_spectrum(gallery.pictures(denoisers, [10], "x", PHOTOGRAPH[:64, :64], told=25)).axes
    assert [axis.get_ylabel() for axis in axes] == ["noisy", *(DENOISERS[name].short for name in here)]
    y = noisy(10, True, PHOTOGRAPH[:64, :64], "x")
    assert all(np.allclose(axis.images[0].get_array(), y / 2) for axis in axes[1:])


def test_what_was_trained_on_another_set_has_results_of_its_own(tmp_path):
    ours, other = (denoising.our_systems(dataset=name)["on_demand"] for name in ("bsds500", "demo"))
    names = [denoising.measurement_of("on_demand", ours=experiment).path.name for experiment in (ours, other)]
    assert names == ["on_demand-sigma25.json", "on_demand-demo-native-sigma25.json"]
    assert denoising.our_systems(dataset=f"{tmp_path}/") == denoising.our_systems(dataset=str(tmp_path))


def test_without_its_package_a_row_says_so(monkeypatch):
    monkeypatch.setattr(classical, "find_spec", lambda name: None)
    assert not DENOISERS["bm3d"].here() and DENOISERS["nlm"].here()
    refused(lambda: DENOISERS["bm3d"].denoise(noisy(25), 25), 'pip install -e ".[bm3d]"', "non-commercial")
    table = table3.denoisers_table(["bm3d"], dataset="demo", profile="nobm3d")
    assert table.psnr.isna().all() and table.note.str.contains("bm3d is not installed").all()
    assert not (files.results() / "nobm3d").exists()
    monkeypatch.delenv("ODL_ROOT")  # for the results that come with the repository
    assert table3.denoisers_table(["bm3d"]).psnr.notna().all()
    assert db11_spectrum.curves_table([("bm3d", None), ("bm3d", 25)]).psnr.notna().all()


def test_only_its_extra_brings_bm3d():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name for name, needs in project["optional-dependencies"].items() if any("bm3d" in n for n in needs)}
    assert extras == {"bm3d"} and not any("bm3d" in need for need in project["dependencies"])
    for file in ("requirements.txt", "environment.yml", "Makefile"):
        assert "bm3d" not in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("notebook", ["table3", "db11_spectrum"])
def test_a_page_with_fewer_systems_covers_no_more_than_its_rows(tmp_path, notebook):
    """The tracked table is written over by one that has all its numbers alone."""
    path = files.PACKAGE.parent / f"data/results/reference/tables/{notebook}-db11-denoise.csv"
    stored = pd.read_csv(path)
    some = stored[stored.system.isin(["nlm", "bm3d"])]
    assert denoising.covers(stored.assign(psnr=12.5), path) and denoising.covers(some, tmp_path / "none.csv")
    unmeasured = stored.assign(psnr=stored.psnr.mask(stored.system == "nlm"))
    for less in (some, stored.assign(sigma=60), stored.assign(trained_on="mine"), unmeasured):
        assert not denoising.covers(less, path)


@pytest.mark.parametrize(
    ("system", "clip", "tolerance"),
    [("bm3d", True, 0.1), ("bm3d", False, 0.1), ("ksvd", True, 0.3), ("wnnm", True, 0.3)],
)
def test_a_measured_mean_agrees_with_the_published_column(monkeypatch, system, clip, tolerance):
    monkeypatch.delenv("ODL_ROOT")
    frame = denoising.measurement_of(system, clip=clip).load().evaluation
    assert set(frame.image) == set(published.TABLE3)
    printed = [row[system] for row in published.TABLE3.values()]
    assert frame.psnr.mean() == pytest.approx(np.mean(printed), abs=tolerance)


def run(method, **overrides):
    return context_encoder.run_of(method, Experiment.of(profile="smoke", **overrides))


def test_random_regions_cover_a_fifth_to_three_tenths_everywhere():
    mask = context_encoder.random_regions(500, torch.Generator().manual_seed(0))
    area = mask.float().mean((1, 2, 3))
    assert area.min() >= 0.199 and area.max() <= 0.301
    assert area.mean().item() == pytest.approx(0.25, abs=0.005) and area.std().item() == pytest.approx(0.029, abs=0.004)
    place = mask.float().mean((0, 1))  # no place is missing much more often than another
    assert place.min() > 0.15 and place.max() < 0.35
    change = (mask[..., 1:] != mask[..., :-1]).float().mean().item()
    assert change < 0.06  # blobs: independent pixels would change in 37 of 100 places
    assert not torch.equal(mask[0], mask[1])


@pytest.mark.parametrize("method", ENCODERS)
def test_a_step_has_the_gradients_of_both_losses(method):
    """Against autograd: the discriminator learns to tell, the encoder from 0.999 L2 and 0.001 of its verdict."""
    experiment, seen = run(method), []
    network = context_encoder.build(experiment, "cpu")[0].train()
    twin, optimizer = copy.deepcopy(network), torch.optim.SGD(network.parameters(), 0.0)
    x = crops.fixed_crops(packs.load("demo", "train"), 12, "step")
    mask = context_encoder.masks_of(experiment, 12, torch.Generator().manual_seed(0))
    optimizer.register_step_pre_hook(
        lambda *_: seen.append({n: p.grad.clone() for n, p in network.named_parameters() if p.grad is not None})
    )
    squared = context_encoder.step(experiment, network, optimizer, x, mask)

    x_hat = twin(delete(x, mask))
    edge = (64 - x_hat.shape[-1]) // 2
    real = x[..., edge : 64 - edge, edge : 64 - edge]

    def told(images, truth):
        logits = twin.discriminator(images)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.full((12, 1), truth))

    filled = torch.nn.functional.pad(x_hat, [edge] * 4)
    error = torch.stack([((a - b) ** 2)[:, hole[0]].mean() for a, b, hole in zip(filled, x, mask, strict=True)]).mean()
    losses = told(real, 1.0) + told(x_hat.detach(), 0.0), 0.999 * error + 0.001 * told(x_hat, 1.0)
    assert squared.item() == pytest.approx(error.item(), rel=1e-5)
    for judge, loss, found in zip((True, False), losses, seen, strict=True):
        own = {n: p for n, p in twin.named_parameters() if n.startswith("discriminator") == judge}
        assert set(found) == set(own)
        for name, gradient in zip(own, torch.autograd.grad(loss, own.values(), retain_graph=True), strict=True):
            torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", ENCODERS)
def test_a_context_encoder_resumes_exactly(method, resumes_exactly):
    resumes_exactly(context_encoder.train, run(method, epochs=3, batch_size=10), 0.5, 2 * 3)


class Constant(torch.nn.Module):
    """Answers the same grey everywhere."""

    def __init__(self, value, side):
        super().__init__()
        self.value, self.side = value, side

    def forward(self, y):
        return torch.full((len(y), 3, self.side, self.side), self.value)


def check_blocks(frame, n, fill, tolerance):
    """Two trials of n crops are scored inside their blocks as by a plain loop of what `fill(image, missing)` makes."""
    rows = frame.set_index(["trial", "level"])
    for trial, level in product(range(2), holes.BLOCKS):
        x = (crops.fixed_crops(packs.load("demo", "test"), n, f"blocks/{trial}").numpy() + 1) / 2
        masks = holes.block_masks(level, n, torch.Generator().manual_seed(crops.seed_of("blocks", trial, level)))
        pairs = zip(x.transpose(0, 2, 3, 1), masks.numpy()[:, 0], strict=True)
        error = [np.mean((fill(image, missing) - image)[missing] ** 2) for image, missing in pairs]
        assert rows.l2[trial, level] == pytest.approx(1000 * np.mean(error), rel=tolerance)
        assert rows.psnr[trial, level] == pytest.approx(np.mean(-10 * np.log10(error)), abs=10 * tolerance)


@pytest.mark.parametrize(("side", "value"), [(64, 0.25), (32, -0.5)])
def test_blocks_are_measured_inside_the_block_only(side, value):
    experiment = Experiment.of(profile="smoke", test_images=6, trials=2)
    filled, edge = np.full((64, 64, 3), np.array(FILL) / 255), (64 - side) // 2
    filled[edge : 64 - edge, edge : 64 - edge] = (value + 1) / 2
    check_blocks(holes.evaluate(experiment, Constant(value, side)), 6, lambda image, missing: filled, 1e-4)


def test_blocks_are_32_wide_in_the_middle_or_anywhere():
    generator = torch.Generator().manual_seed(0)
    central, anywhere = (holes.block_masks(block, 400, generator)[:, 0] for block in holes.BLOCKS)
    assert central[:, 16:48, 16:48].all() and central.sum() == 400 * 32 * 32
    assert (anywhere.sum((1, 2)) == 32 * 32).all()
    top, left = (anywhere.any(axis).float().argmax(1) for axis in (2, 1))
    assert set(top.tolist()) == set(left.tolist()) == set(range(33))


def test_known_pixels_are_untouched_and_a_centre_network_leaves_the_rest():
    y = torch.rand(3, 3, 64, 64) * 2 - 1
    mask = holes.block_masks("arbitrary", 3, torch.Generator().manual_seed(3))
    whole, centre = (holes.inpaint(Constant(0.1, side), y, mask) for side in (64, 32))
    inside = torch.zeros_like(mask)
    inside[:, :, 16:48, 16:48] = True
    assert torch.equal(whole, torch.where(mask, torch.tensor(0.1), y))
    assert torch.equal(centre, torch.where(mask & inside, torch.tensor(0.1), y))


def test_the_classical_fill_is_measured_on_the_same_blocks(root):
    """The measurement is a plain loop, kept on disk."""
    experiment = replace(catalogue.inpainters("smoke", "demo", [5])[-1], test_images=3, trials=2)
    fill = blocks.measurement_of_fill(experiment)
    assert (experiment.schedule, experiment.seed) == (blocks.BIHARMONIC, 0) and fill.load() is None
    found, again = fill.run(), fill.load()
    assert again.path == results.path_of(experiment) and again.evaluation.equals(found.evaluation)
    check_blocks(found.evaluation, 3, partial(inpaint_biharmonic, channel_axis=-1), 1e-3)


def test_table2_is_in_per_cent_beside_the_papers_numbers():
    def result(schedule, offset):
        rows = [(t, b, 10 + offset + t, 20 - offset + 0.1 * t) for t in range(3) for b in holes.BLOCKS]
        frame = pd.DataFrame(rows, columns=["trial", "level", "l2", "psnr"])
        return Result({"schedule": schedule}, {}, [], frame, None)

    ours = [result("on_demand", offset) for offset in (-0.5, 0.5)]
    table = table2.blocks_table([*ours, result("context_encoder_center", 5)]).set_index("method")
    assert list(table.index) == ["context_encoder_center", "on_demand"]
    assert table.central_l2.to_dict() == pytest.approx({"context_encoder_center": 1.6, "on_demand": 1.1})
    assert table.arbitrary_psnr.to_dict() == pytest.approx({"context_encoder_center": 15.1, "on_demand": 20.1})
    assert table.arbitrary_psnr_sd["on_demand"] == pytest.approx(np.sqrt(0.5))
    assert np.isnan(table.arbitrary_psnr_sd["context_encoder_center"])  # of one seed
    assert table.loc["context_encoder_center", ["central_paper_psnr", "arbitrary_paper_l2"]].tolist() == [22.16, 6.84]
