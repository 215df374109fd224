"""Severities, places and moments of the four tasks against SciPy and plain loops."""

import numpy as np
import pytest
import torch
from conftest import refused
from scipy import ndimage, stats

from odl import paper
from odl.corruptions import TASKS, WIDEST
from odl.parameters import ParameterError

LEVELS = range(1, 7)
FILL = torch.tensor([117, 104, 123]).view(3, 1, 1) / 255 * 2 - 1


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(n, channels=3, seed=9):
    return torch.rand((n, channels, 64, 64), generator=generator(seed)) * 2 - 1


def drawn(task, level, n=2000, seed=0):
    bounds = (b.expand(n) for b in task.bounds(torch.tensor([level])))
    return task.draw(*bounds, 64, generator(seed))


@pytest.mark.parametrize("level", LEVELS)
def test_sides_are_whole_and_uniform_and_the_square_is_inside_anywhere(level):
    low, high = paper.TASKS["inpaint"]["levels"][level - 1]
    side, top, left = drawn(TASKS["inpaint"], level, 12_000).numpy().T
    values, counts = np.unique(side, return_counts=True)
    assert values.tolist() == list(range(low, high + 1))
    assert stats.chisquare(counts).pvalue > 1e-3
    for corner in (top, left):
        assert (corner == np.floor(corner)).all() and corner.min() >= 0 and (corner + side).max() <= 64
        for s in values:  # every place equally likely, given the side
            counts = np.bincount(corner[side == s].astype(int), minlength=65 - int(s))
            assert len(counts) == 65 - s and stats.chisquare(counts).pvalue > 1e-5
    assert abs(stats.pearsonr(top, left).statistic) < 0.05 or level > 4  # a large side ties both to the middle


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("task", ["interpolate", "deblur", "denoise"])
def test_severities_are_uniform_within_the_level_and_independent(task, level):
    """The two widths of a blur, and the only amount of the others."""
    low, high = paper.TASKS[task]["levels"][level - 1]
    severities = drawn(TASKS[task], level).T
    for severity in severities:
        assert low <= severity.min() and severity.max() <= high
        assert stats.kstest(severity.numpy(), stats.uniform(low, high - low).cdf).pvalue > 1e-3
    assert len(severities) == 1 or abs(stats.pearsonr(*severities.numpy()).statistic) < 0.1


@pytest.mark.parametrize("level", LEVELS)
def test_one_square_is_missing_and_the_rest_is_untouched(level):
    x = images(50)
    y = TASKS["inpaint"].corrupt(x, level, generator())
    for i, (side, top, left) in enumerate(drawn(TASKS["inpaint"], level, 50).int().tolist()):
        expected = x[i].clone()
        expected[:, top : top + side, left : left + side] = FILL
        torch.testing.assert_close(y[i], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("side", "first"), [(5, 29), (32, 16)])
def test_the_fixated_square_is_in_the_middle(side, first):
    x = images(3)
    y = TASKS["inpaint"].corrupt_between(x, side, side, generator(), centred=True)
    expected = x.clone()
    expected[:, :, first : first + side, first : first + side] = FILL
    torch.testing.assert_close(y, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("level", LEVELS)
def test_deleted_pixels_are_binomial_and_independent(level):
    low, high = paper.TASKS["interpolate"]["levels"][level - 1]
    percentage = (low + high) / 2
    x = images(300)
    y = TASKS["interpolate"].corrupt_between(x, percentage, percentage, generator())
    gone = (y != x).any(1)
    filled = (y - FILL).abs().amax(1) < 1e-6
    assert torch.equal(gone, filled)  # all channels together, with the fill colour
    counts = gone.flatten(1).sum(1).numpy()
    p, n = percentage / 100, 64 * 64
    assert counts.mean() == pytest.approx(n * p, abs=5 * np.sqrt(n * p * (1 - p) / 300))
    assert counts.var() / (n * p * (1 - p)) == pytest.approx(1, abs=0.4)
    per_pixel = gone.float().mean(0).numpy()
    assert np.abs(per_pixel - p).max() < 6 * np.sqrt(p * (1 - p) / 300)  # no place is preferred
    neighbours = (gone[:, :, 1:] & gone[:, :, :-1]).float().mean().item()
    assert neighbours == pytest.approx(p * p, abs=0.005)


@pytest.mark.parametrize("sigma", [0.0, 0.1, 0.3, 0.99, 1.0, 2.5, 3.3, 4.7, 5.99, 6.0])
def test_blur_equals_scipy_along_each_axis(sigma):
    x = images(2)[0].double().numpy()
    other = 6.0 - sigma
    severity = torch.tensor([[sigma, other]])
    y = TASKS["deblur"].apply(torch.tensor(x[None], dtype=torch.float32), severity, generator())[0].numpy()
    expected = x
    for axis, width in ((1, sigma), (2, other)):
        if width > 0:
            expected = ndimage.gaussian_filter1d(expected, width, axis, mode="mirror", truncate=4)
    np.testing.assert_allclose(y, expected, atol=2e-6)


def test_a_blur_that_is_wider_than_its_kernel_is_refused():
    x = images(2)
    TASKS["deblur"].corrupt_between(x, WIDEST, WIDEST, generator())
    refused(lambda: TASKS["deblur"].corrupt_between(x, 2, 12, generator()), "wider than the kernel; nearest: 6")
    refused(lambda: TASKS["deblur"].corrupt(x[..., :24, :24], 5, generator()), "24 pixels a side", "nearest: 25")
    assert TASKS["deblur"].corrupt(x[..., :25, :25], 5, generator()).isfinite().all()


@pytest.mark.parametrize("task", TASKS)
def test_images_of_other_numbers_are_refused(task):
    for dtype in (torch.float64, torch.float16, torch.uint8):
        x = images(2, TASKS[task].channels).to(dtype)
        refused(lambda x=x: TASKS[task].corrupt(x, 3, generator()), f"{dtype}", "32-bit floats")
    refused(lambda: TASKS[task].corrupt(images(0, TASKS[task].channels), 3, generator()), "(0, ", "32-bit floats")


@pytest.mark.parametrize("level", [0, -1, 7, [0, 1], [5, 7], 2.5, [2.5, 3]])
def test_a_level_that_no_task_has_is_refused_alone_and_in_a_vector(level):
    named = f"level={next(n for n in np.ravel(level) if n not in LEVELS)}"
    given = level if np.isscalar(level) else torch.tensor(level)
    acts = [lambda: TASKS["inpaint"].corrupt(images(2), given, generator())]
    acts += [lambda: TASKS["inpaint"].bounds(torch.tensor(np.atleast_1d(level)))]
    for act in acts:
        refused(act, named, "from 1 to 6", kind=ParameterError)


@pytest.mark.parametrize("sigma", [1, 10, 25, 70, 120])
def test_noise_is_gaussian_before_clipping_and_clipped_to_the_range(sigma):
    x = torch.zeros(20, 1, 64, 64)
    y = TASKS["denoise"].corrupt_between(x, sigma, sigma, generator())
    noise = y.flatten().numpy() * 127.5
    assert np.abs(noise).max() <= 127.5 + 1e-4
    inside = np.abs(noise) < 127
    normal = stats.norm(0, sigma)
    truncated = stats.truncnorm(-127 / sigma, 127 / sigma, 0, sigma)
    assert stats.kstest(noise[inside][::10], truncated.cdf).pvalue > 1e-3
    assert (np.abs(noise) >= 127.5 - 1e-3).mean() == pytest.approx(2 * normal.sf(127.5), abs=0.01)


@pytest.mark.parametrize("name", TASKS)
def test_same_seed_same_output_and_the_input_is_kept(name):
    task = TASKS[name]
    x = images(8, task.channels)
    before = x.clone()
    once, again, other = (task.corrupt(x, 3, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(once, again) and not torch.equal(once, other) and torch.equal(x, before)
    torch.manual_seed(3)  # global random state is not read
    assert torch.equal(once, task.corrupt(x, 3, generator(0)))
