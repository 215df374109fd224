"""Allocations for any validation PSNR, and every schedule over its epochs against the paper's text."""

import math
from fractions import Fraction

import numpy as np
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from odl.rivals import SCHEDULES
from odl.sampler import Sampler
from odl.schedules import allocate, allocate_batches, begin, dose, on_demand

weights = st.lists(st.floats(0, 1e6), min_size=1, max_size=8).filter(lambda w: sum(w) > 1e-6)


@settings(max_examples=150)
@given(weights, st.integers(1, 200), st.integers(1, 40))
def test_batches_follow_the_shares_and_carry_their_fractions(w, batch, batches):
    """What was given and is owed is Equation 3's share to 1e-9 of a batch, and no batch is off by a whole image."""
    counts, owed = allocate_batches(w, batch, batches)
    shares = np.array([float(Fraction(weight) / sum(map(Fraction, w)) * batch) for weight in w])
    assert counts.dtype.kind == "i" and counts.shape == (batches, len(w))
    assert (counts.sum(1) == batch).all() and (counts >= 0).all()
    np.testing.assert_allclose((counts.sum(0) + owed) / batches, shares, atol=1e-9 * batch, rtol=0)
    assert np.abs(counts - shares).max() < 1 + 1e-9
    assert not counts[:, np.equal(w, 0)].any()
    order = sorted(zip(w, counts[0].tolist(), strict=True))
    for (a, few), (b, many) in zip(order, order[1:], strict=False):
        assert few <= many or b <= a * (1 + 1e-9)  # more weight never means fewer images


@pytest.mark.parametrize(
    ("shares", "expected"), [([20] * 5, 0), ([7, 0, 0, 0, 0], 0.32), ([18, 19, 20, 21, 22], 0.012), ([3, 1], 0.25)]
)
def test_the_dose_is_the_mean_distance_from_equal_shares(shares, expected):
    assert dose(shares) == pytest.approx(expected) == dose(np.array(shares) / 1000)


def test_equation_3_by_hand():
    """1/20 … 1/100 = 10 : 8 : 5 : 4 : 2, of 29 parts of 100 images: 34.48, 27.59, 17.24, 13.79, 6.90."""
    assert allocate(on_demand(0.1, [20, 25, 40, 50, 100], 5), 100).tolist() == [34, 28, 17, 14, 7]
    assert allocate(on_demand(0.1, [10, 20, 20, 20, 20], 5), 60).tolist() == [20, 10, 10, 10, 10]
    assert allocate(np.ones(3), 100).tolist() == [34, 33, 33]


@given(st.lists(st.floats(), min_size=5, max_size=5), st.integers(1, 300))
def test_equation_3_fills_the_batch_whatever_the_scores(psnr, batch):
    """Also when training has diverged: negative, infinite, not a number."""
    counts = allocate(on_demand(0.5, psnr, 5), batch)
    assert counts.dtype.kind == "i" and (counts >= 0).all() and counts.sum() == batch


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    "bad",
    [[0, 0], [1, -1], [1, math.nan], [1, math.inf], [1e308] * 5, 1],
    ids=["zero", "negative", "nan", "inf", "sum", "one"],
)
def test_impossible_weights_are_refused(bad):
    refused(lambda: allocate(bad, 100), "weights=", kind=ValueError)


def levels_of(schedule, epoch, epochs):
    """Levels that get images in this epoch, checked to be equal shares of the whole batch."""
    counts = allocate(SCHEDULES[schedule](epoch / epochs, [30, 28, 26, 24, 22], 5), 100)
    got = [level for level, count in enumerate(counts.tolist(), 1) if count]
    assert counts.sum() == 100 and np.ptp(counts[counts > 0]) <= 1
    return got


@pytest.mark.parametrize("epochs", [1500, 1495])
def test_stages_are_fifths_of_training(epochs):
    """Sec. 6.3: staged takes one level a stage, cumulative adds one; anti-curricula begin with the hardest."""
    for epoch in range(epochs):
        k = epoch * 5 // epochs + 1  # integers: 1…5
        assert levels_of("staged_curriculum", epoch, epochs) == [k]
        assert levels_of("staged_anti_curriculum", epoch, epochs) == [6 - k]
        assert levels_of("cumulative_curriculum", epoch, epochs) == list(range(1, k + 1))
        assert levels_of("cumulative_anti_curriculum", epoch, epochs) == list(range(6 - k, 6))


@pytest.mark.parametrize("name", ["on_demand", "cumulative_curriculum", "inverse_mse", "group_dro", "second_moment"])
def test_a_sampler_divides_batches_as_training_does(name):
    """In a loop that is not ours: the same counts and factors as `allocate_batches` of the schedule's weights."""
    scores, row = [30.0, 28.0, 26.0, 24.0, 22.0], SCHEDULES[name]
    sampler = Sampler(name, batch_size=23)
    schedule = begin(row)
    for done, told in ((0.0, None), (0.5, scores)):
        sampler.tell(done, told)
        given = np.asarray(schedule(done, told, 5), float)
        weights, factors = given if given.ndim == 2 else (given, np.ones(5))
        expected = allocate_batches(weights, 23, 40)[0]
        for counts in expected:
            level, factor = sampler.batch()
            assert np.bincount(level, minlength=6)[1:].tolist() == counts.tolist()
            np.testing.assert_allclose(factor, factors[level - 1])


def test_a_sampler_takes_a_function_and_refuses_what_needs_more_than_scores():
    level, factor = Sampler(lambda done, scores, n: np.arange(n), 30, n_levels=3).batch()
    assert np.bincount(level, minlength=4)[1:].tolist() == [0, 10, 20] and (factor == 1).all()
    for bad in ("hard_mining", "fixated_easy", "replay", "minimax_gap"):
        refused(lambda bad=bad: Sampler(bad), bad)
    refused(lambda: Sampler("ondemand"), "nearest: 'on_demand'")
    refused(lambda: Sampler("staged_curriculum").tell(20, [30.0] * 5), "done=20", "from 0 to 1")
    for bad in ("a", None, [0.5], np.nan):
        refused(lambda bad=bad: Sampler().tell(bad), f"done={bad!r} is not a number from 0")
    for name, n in (("level_4", 3), ("edm", 7)):
        refused(lambda name=name, n=n: Sampler(name, n_levels=n), f"schedule={name!r} with n_levels={n}")


@pytest.mark.parametrize("name, scores, said", [
    ("on_demand", [30.0, 28.0], "not 5 finite numbers"),
    ("group_dro", [30.0, 28.0, np.nan, 24.0, 22.0], "not 5 finite numbers"),
    ("inverse_mse", [30.0, 28.0, np.nan, 24.0, 22.0], "weights="),
    ("second_moment", [0.1, 0.2, 0.3, 0.4, -10.0], "no factors of a loss"),
])  # fmt: skip
def test_a_sampler_refuses_scores_that_divide_nothing_when_it_is_told_them(name, scores, said):
    sampler = Sampler(name)
    refused(lambda: sampler.tell(0.5, scores), said)
    sampler.tell(0.6, [30.0, 28.0, 26.0, 24.0, 22.0])  # a memory has none of it
