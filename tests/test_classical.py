"""What learns nothing: each method beside another package's, its stored scores, and the sentence on them."""

import numpy as np
import pytest
import torch
from conftest import tiny
from scipy.interpolate import griddata
from skimage.filters import unsharp_mask
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import inpaint_biharmonic

from companion.data import packs
from companion.judge import LEVELS
from companion.measure import classical
from companion.show import tables
from companion.training.results import evaluate
from odl import paper
from odl.corruptions import TASKS
from odl.evaluation import images_of
from odl.experiment import Experiment


@pytest.fixture
def damaged(demo):
    """Two test crops, and the same at a level of a task."""

    def make(task, level):
        x = images_of(tiny(task), packs.load("demo", "test"), 2, "test")
        return x, TASKS[task].corrupt(x, level, torch.Generator().manual_seed(level))

    return make


def pixels(x) -> np.ndarray:
    return (x.permute(0, 2, 3, 1).double().numpy() + 1) / 2


@pytest.mark.parametrize("level", [1, 4, 6])
def test_linear_interpolation_against_scipy(damaged, level):
    x, y = damaged("interpolate", level)
    mask, found = (x != y).any(1).numpy(), pixels(classical.linear(y, level))
    for image, hole, clean, filled in zip(pixels(y), mask, pixels(x), found, strict=True):
        place = np.nonzero(~hole), np.nonzero(hole)
        inside = griddata(np.transpose(place[0]), image[~hole], np.transpose(place[1]), "linear")
        beyond = griddata(np.transpose(place[0]), image[~hole], np.transpose(place[1]), "nearest")
        expected = np.where(np.isnan(inside), beyond, inside)
        assert np.allclose(filled[hole], expected, atol=1e-5) and np.allclose(filled[~hole], clean[~hole], atol=1e-6)


def test_the_biharmonic_fill_against_scikit_image(damaged):
    x, y = damaged("inpaint", 3)
    mask, found = (x != y).any(1).numpy(), pixels(classical.biharmonic(y, 3))
    for image, hole, filled in zip(pixels(y), mask, found, strict=True):
        assert np.allclose(filled, inpaint_biharmonic(image, hole, channel_axis=-1), atol=1e-5)


@pytest.mark.parametrize(("name", "radius"), [("unsharp", 1.0), ("unsharp_told", 2.5)])
def test_the_unsharp_mask_against_scikit_image(damaged, name, radius):
    _, y = damaged("deblur", 3)
    found = pixels(classical.METHODS["deblur"][name](y, 3))
    channels = [unsharp_mask(image[..., 0], radius, amount=1.0) for image in pixels(y)]
    assert np.allclose(found[:, 12:-12, 12:-12, 0], np.array(channels)[:, 12:-12, 12:-12], atol=1e-5)


@pytest.mark.parametrize("name", ["nlm", "nlm_told"])
def test_non_local_means_removes_noise(damaged, name):
    x, y = damaged("denoise", 2)
    found = classical.METHODS["denoise"][name](y, 2)
    for clean, noisy, denoised in zip(pixels(x), pixels(y), pixels(found), strict=True):
        before, after = (peak_signal_noise_ratio(clean, image, data_range=1) for image in (noisy, denoised))
        assert after > 3 + before


@pytest.mark.parametrize("task", paper.TASKS)
def test_scores_are_stored_once_and_stand_on_the_networks_damage(demo, task):
    assert classical.found(task, "demo", "smoke", train=False) == []
    found = classical.found(task, "demo", "smoke")
    assert [result.experiment["schedule"] for result in found] == list(classical.METHODS[task])
    written = {result.path: result.path.stat().st_mtime_ns for result in found}
    again = classical.found(task, "demo", "smoke", train=False)
    assert {result.path: result.path.stat().st_mtime_ns for result in again} == written
    damage = evaluate(Experiment.of(task, "demo", "on_demand", 0, "smoke"), lambda y: y)[0]
    for result in again:
        rows = result.evaluation
        assert {*rows.level} == {*LEVELS} and {*rows.trial} == set(range(classical.TRIALS))
        assert rows.psnr_kept.isna().all() == (task not in paper.MASKED)
        ours = damage.merge(rows, on=["trial", "level"], suffixes=("", "_there"))
        assert len(ours) == len(rows) and np.allclose(ours.psnr_input, ours.psnr_input_there)
    table = tables.level_table(again[:1], again[1:])
    assert [*table.schedule[table.scored == "all pixels"]] == ["not_restored", *classical.METHODS[task]]
