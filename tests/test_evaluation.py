"""L2, PSNR, means over trials and paired tests against scikit-image and SciPy."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from skimage import metrics

from companion.data import packs
from companion.training import results
from odl import corruptions, crops, evaluation, paper
from odl.corruptions import TASKS
from odl.experiment import Experiment


def test_psnr_of_a_perfect_image_is_finite_and_without_a_number_there_is_none():
    assert evaluation.psnr(torch.zeros(1)).item() == 100
    assert math.isnan(evaluation.psnr(torch.tensor([math.nan])).item())


def restored(y):
    """Out of range here and there, as an estimate may be."""
    return 1.1 * y.flip(-1) + 0.1


def plain_scores(task, x, trial, level):
    """L2 (‰) and PSNR (dB, at most 100) per image by scikit-image: of the estimate, y, known pixels kept, the hole."""
    generator, numbers = torch.Generator().manual_seed(crops.seed_of("evaluate", trial, level)), paper.TASKS[task]
    bounds = (numbers[level],) * 2 if isinstance(level, str) else numbers["levels"][level - 1]
    low, high = (torch.full((len(x),), float(bound)) for bound in bounds)
    severity = TASKS[task].draw(low, high, 64, generator, isinstance(level, str))
    same = generator.clone_state()
    y = TASKS[task].apply(x, severity, generator)
    mask = corruptions.square_mask(severity, 64) if task == "inpaint" else None
    if task == "interpolate":
        mask = torch.rand((len(x), 1, 64, 64), generator=same) < severity.view(-1, 1, 1, 1) / 100
    scores = {name: [] for name in ("l2", "psnr", "l2_input", "psnr_input", "psnr_kept", "psnr_hole")}
    for i, images in enumerate(zip(x, y, restored(y), strict=True)):
        true, given, test = (np.clip((image.double().numpy() + 1) / 2, 0, 1) for image in images)
        for suffix, image in (("", test), ("_input", given)):
            scores["l2" + suffix].append(1000 * metrics.mean_squared_error(true, image))
            scores["psnr" + suffix].append(min(100, metrics.peak_signal_noise_ratio(true, image, data_range=1)))
        if mask is not None:
            kept, hole = np.where(mask[i], test, true), np.broadcast_to(mask[i], true.shape)
            scores["psnr_kept"].append(metrics.peak_signal_noise_ratio(true, kept, data_range=1))
            scores["psnr_hole"].append(metrics.peak_signal_noise_ratio(true[hole], test[hole], data_range=1))
    return scores


@pytest.mark.parametrize("task", paper.TASKS)
def test_scores_equal_a_plain_loop(demo, task):
    """PSNR is the mean of the PSNRs per image, not the PSNR of the mean; trials differ, and repeat for every run."""
    experiment = Experiment.of(task, schedule="fixated_hard", seed=1, profile="smoke", test_images=4)
    frame, images = results.evaluate(experiment, restored)
    pd.testing.assert_frame_equal(frame, results.evaluate(experiment, restored)[0])
    x = crops.fixed_crops(packs.load("demo", "test"), 4, "test")
    x = crops.grey(x) if task == "denoise" else x
    levels, sums = [1, 2, 3, 4, 5, 6, "easy", "hard"], {}
    assert [(row.trial, row.level) for row in frame.itertuples()] == [(t, str(v)) for t in range(2) for v in levels]
    for row in frame.itertuples():
        scores = plain_scores(task, x, row.trial, levels[row.Index % 8])
        sums.setdefault(row.level, []).append((scores["l2"], scores["psnr"]))
        for name, values in scores.items():
            expected = np.mean(values) if values else math.nan
            assert getattr(row, name) == pytest.approx(expected, rel=1e-4, nan_ok=True), (row.trial, row.level, name)
    for level, trials in sums.items():
        for name, expected in zip(("l2", "psnr"), np.mean(trials, 0), strict=True):
            np.testing.assert_allclose(images[level][name].numpy(), expected, rtol=1e-4)
    assert not np.allclose(*sums["6"])
