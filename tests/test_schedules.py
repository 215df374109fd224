"""Allocations for any validation PSNR, and every schedule over its epochs against the paper's text."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odl import paper
from odl.schedules import SCHEDULES, allocate, on_demand

weights = st.lists(st.floats(0, 1e6), min_size=1, max_size=8).filter(lambda w: sum(w) > 1e-6)


@settings(max_examples=500)
@given(weights, st.integers(1, 500))
def test_allocations_are_a_proportional_division(w, batch):
    counts = allocate(w, batch)
    assert counts.sum() == batch and (counts >= 0).all() and counts.dtype.kind == "i"
    total = sum(map(Fraction, w))
    for count, weight in zip(counts.tolist(), w, strict=True):
        assert abs(count - Fraction(weight) / total * batch) < 1 + 1e-9
    order = sorted(zip(w, counts.tolist(), strict=True))
    for (a, few), (b, many) in zip(order, order[1:], strict=False):
        assert few <= many or b <= a * (1 + 1e-9)  # more weight never means fewer images


@settings(max_examples=500)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=5, max_size=5))
def test_on_demand_sums_to_the_batch_for_any_psnr(psnr):
    counts = allocate(on_demand(0.5, psnr, 5), 100)
    assert counts.sum() == 100 and (counts >= 0).all()


def test_on_demand_sums_to_the_batch_for_10_000_random_psnrs():
    random = np.random.default_rng(0)
    special = np.array([0, -1, 1e-300, 1e300, 100, np.inf, -np.inf, np.nan])
    for _ in range(10_000):
        psnr = np.where(random.random(5) < 0.2, random.choice(special, 5), random.normal(25, 20, 5))
        batch = int(random.integers(1, 300))
        counts = allocate(on_demand(0.5, psnr.tolist(), 5), batch)
        assert counts.sum() == batch and (counts >= 0).all()


@settings(max_examples=200)
@given(st.lists(st.floats(1, 100), min_size=5, max_size=5))
def test_on_demand_gives_no_fewer_images_where_psnr_is_lower(psnr):
    counts = allocate(on_demand(0.5, psnr, 5), 100)
    order = sorted(zip(psnr, counts.tolist(), strict=True))
    assert all(many >= few or b - a < 1e-7 for (a, many), (b, few) in zip(order, order[1:], strict=False))


def test_equation_3_by_hand():
    """1/20 … 1/100 = 10 : 8 : 5 : 4 : 2, of 29 parts of 100 images: 34.48, 27.59, 17.24, 13.79, 6.90."""
    assert allocate(on_demand(0.1, [20, 25, 40, 50, 100], 5), 100).tolist() == [34, 28, 17, 14, 7]
    assert allocate(on_demand(0.1, [10, 20, 20, 20, 20], 5), 60).tolist() == [20, 10, 10, 10, 10]


def test_equal_weights_that_do_not_divide_fill_the_batch():
    assert allocate(np.ones(3), 100).tolist() == [34, 33, 33]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    "bad", [[0, 0], [1, -1], [1, math.nan], [1, math.inf], [1e308] * 5], ids=["zero", "negative", "nan", "inf", "sum"]
)
def test_impossible_weights_are_refused(bad):
    with pytest.raises(ValueError, match="weights="):
        allocate(bad, 100)


def levels_of(schedule, epoch, epochs=1500):
    """Levels that get images in this epoch, checked to be equal shares of the whole batch."""
    counts = allocate(SCHEDULES[schedule](epoch / epochs, [30, 28, 26, 24, 22], 5), 100)
    got = [level for level, count in enumerate(counts.tolist(), 1) if count]
    assert counts.sum() == 100 and np.ptp(counts[counts > 0]) <= 1
    return got


@pytest.mark.parametrize("epoch", range(0, 1500, 50))
@pytest.mark.parametrize("epochs", [1500, 1495, 5])
def test_stages_last_300_epochs_each(epoch, epochs):
    """Sec. 6.3: staged takes one level a stage, cumulative adds one; anti-curricula begin with the hardest."""
    epoch = epoch * epochs // 1500
    k = epoch * 5 // epochs + 1  # integers: 1…5
    assert levels_of("staged_curriculum", epoch, epochs) == [k]
    assert levels_of("staged_anti_curriculum", epoch, epochs) == [6 - k]
    assert levels_of("cumulative_curriculum", epoch, epochs) == list(range(1, k + 1))
    assert levels_of("cumulative_anti_curriculum", epoch, epochs) == list(range(6 - k, 6))


def test_stages_end_where_the_next_one_begins():
    for epochs in (5, 10, 1500, 1495):
        stages = [levels_of("staged_curriculum", epoch, epochs)[0] for epoch in range(epochs)]
        assert stages == [1 + epoch * 5 // epochs for epoch in range(epochs)]


@pytest.mark.parametrize("schedule", ["rigid_joint", "hard_mining"])
@pytest.mark.parametrize("epoch", [0, 1, 700, 1499])
def test_equal_shares_always(schedule, epoch):
    assert allocate(SCHEDULES[schedule](epoch / 1500, [9, 8, 7, 6, 5], 5), 100).tolist() == [20] * 5


def test_on_demand_begins_equal_and_forgets_the_epoch():
    assert allocate(on_demand(0, None, 5), 100).tolist() == [20] * 5
    assert np.array_equal(on_demand(0.1, [20, 21, 22, 23, 24], 5), on_demand(0.9, [20, 21, 22, 23, 24], 5))


def test_every_schedule_of_the_paper_is_there():
    assert set(SCHEDULES) == set(paper.SCHEDULES) | {"fixated_easy", "fixated_hard"} and len(SCHEDULES) == 9
    assert {name for name, schedule in SCHEDULES.items() if schedule is None} == {"fixated_easy", "fixated_hard"}
