"""L2, PSNR, means over trials and paired tests against scikit-image and SciPy."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from skimage import metrics

from odl import data, evaluate, paper
from odl.corruptions import TASKS
from odl.experiment import Experiment


def pair(n=6, channels=3, seed=0):
    random = np.random.default_rng(seed)
    x = random.random((n, channels, 64, 64), np.float32) * 2 - 1
    return torch.from_numpy(x), torch.from_numpy(x + random.normal(0, 0.4, x.shape).astype(np.float32))


@pytest.mark.parametrize("channels", [1, 3])
def test_errors_equal_those_of_scikit_image(channels):
    """On the [0, 1] scale, an estimate out of range counting as the nearest value in it."""
    x, x_hat = pair(channels=channels)
    error = evaluate.squared_error(x_hat, x)
    for i in range(len(x)):
        true, test = (x[i].numpy() + 1) / 2, np.clip((x_hat[i].numpy() + 1) / 2, 0, 1)
        assert error[i].item() == pytest.approx(metrics.mean_squared_error(true, test), rel=1e-4)
        expected = metrics.peak_signal_noise_ratio(true, test, data_range=1)
        assert evaluate.psnr(error)[i].item() == pytest.approx(expected, abs=1e-3)


def test_psnr_of_a_perfect_image_is_finite_and_of_nan_is_not():
    assert evaluate.psnr(torch.zeros(1)).item() == 100
    assert math.isnan(evaluate.psnr(torch.tensor([math.nan])).item())


@pytest.fixture
def rows(demo):
    experiment = Experiment.of("denoise", profile="smoke", test_images=6)
    return experiment, evaluate.evaluate(experiment, lambda y: y)


def test_rows_are_trials_by_levels(rows):
    experiment, frame = rows
    levels = ["1", "2", "3", "4", "5", "6", "easy", "hard"]
    assert [(r.trial, r.level) for r in frame.itertuples()] == [(t, v) for t in range(2) for v in levels]


def test_rows_equal_a_plain_loop(rows):
    """L2 in ‰ is the mean over images; PSNR the mean of the PSNRs per image, not the PSNR of the mean."""
    experiment, frame = rows
    x = data.grey(data.fixed_crops(data.load("demo", "test"), 6, "test"))
    for row in frame.itertuples():
        level = row.level if row.level in ("easy", "hard") else int(row.level)
        generator = torch.Generator().manual_seed(data.seed_of("evaluate", row.trial, level))
        bounds = (
            (paper.TASKS["denoise"][level],) * 2
            if isinstance(level, str)
            else paper.TASKS["denoise"]["levels"][level - 1]
        )
        y = TASKS["denoise"].corrupt_between(x, *bounds, generator)
        pairs = [((a.numpy() + 1) / 2, (b.numpy() + 1) / 2) for a, b in zip(x, y, strict=True)]
        assert row.l2 == pytest.approx(1000 * np.mean([metrics.mean_squared_error(*p) for p in pairs]), rel=1e-4)
        scores = [metrics.peak_signal_noise_ratio(*p, data_range=1) for p in pairs]
        assert row.psnr == pytest.approx(np.mean(scores), abs=1e-3)


def test_trials_differ_and_repeat(rows):
    experiment, frame = rows
    graded = frame.set_index(["trial", "level"]).l2
    assert all(graded[0, level] != graded[1, level] for level in ("1", "6", "easy"))
    pd.testing.assert_frame_equal(frame, evaluate.evaluate(experiment, lambda y: y))


def test_every_schedule_is_tested_on_the_same_draws(demo):
    seen = {}
    for schedule in ("on_demand", "fixated_hard"):
        experiment = Experiment.of("inpaint", schedule=schedule, seed=len(seen), profile="smoke")
        evaluate.evaluate(experiment, lambda y, key=schedule: seen.setdefault(key, []).append(y) or y)
    assert all(torch.equal(a, b) for a, b in zip(*seen.values(), strict=True))


@pytest.mark.parametrize("task", paper.TASKS)
def test_the_evaluation_does_not_depend_on_the_batch(task):
    x = torch.rand(10, TASKS[task].channels, 64, 64) * 2 - 1
    whole = evaluate.errors(lambda y: y, TASKS[task], x, 3, torch.Generator().manual_seed(0))
    assert whole.shape == (10,) and (whole > 0).all()


def table(seed=0, trials=20):
    random = np.random.default_rng(seed)
    levels = [*"123456", "easy", "hard"]
    rows = [(t, v, random.random(), random.normal(30, 1)) for t in range(trials) for v in levels]
    return pd.DataFrame(rows, columns=["trial", "level", "l2", "psnr"])


def test_overall_is_the_mean_over_levels_1_to_6_per_trial():
    frame = table()
    overall = evaluate.overall(frame)
    assert list(overall.index) == list(range(20))
    for trial in range(20):
        for column in ("l2", "psnr"):
            values = [getattr(r, column) for r in frame.itertuples() if r.trial == trial and r.level in "123456"]
            assert len(values) == 6 and overall[column][trial] == pytest.approx(sum(values) / 6)


def test_summary_against_scipy():
    overall = evaluate.overall(table())
    summary = evaluate.summarize(overall)
    assert list(summary) == ["l2", "l2_se", "psnr", "psnr_se"]
    for column in ("l2", "psnr"):
        assert summary[column] == pytest.approx(np.mean(overall[column].to_numpy()))
        assert summary[f"{column}_se"] == pytest.approx(stats.sem(overall[column].to_numpy()))


def test_paired_p_value_by_hand():
    """Two-sided, from the t distribution of the mean difference over its standard error."""
    random = np.random.default_rng(0)
    a, b = random.normal(30, 1, 20), random.normal(30.2, 1, 20)
    t = np.mean(a - b) / stats.sem(a - b)
    assert evaluate.paired_p_value(a, b) == pytest.approx(2 * stats.t.sf(abs(t), 19))
    assert evaluate.paired_p_value(a, b) == pytest.approx(evaluate.paired_p_value(b, a))
    assert evaluate.paired_p_value(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_pairs_that_do_not_differ_have_no_p_value():
    assert math.isnan(evaluate.paired_p_value([1.0, 2.0], [1.0, 2.0]))
