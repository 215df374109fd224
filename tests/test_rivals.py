"""What came after the paper: each rival against an independent computation, and end to end."""

import math
import shlex
from dataclasses import replace

import conftest
import numpy as np
import pytest
from conftest import refused

from companion import judge
from companion.cli import main
from companion.pages import table1
from companion.runs import sweep
from companion.show import figures
from companion.training import results
from odl.experiment import Experiment
from odl.parameters import ParameterError
from odl.rivals import SPECIALISTS, GroupDRO, MinimaxGap, edm, inverse_mse, second_moment, static_easy
from odl.schedules import SCHEDULES, allocate_batches, cumulative_curriculum, on_demand_l2

PSNR = [30.0, 28.0, 26.0, 24.0, 22.0]


def tiny(schedule, **numbers):
    return conftest.tiny("interpolate", schedule, **({"width": 4, "epochs": 4, "batch_size": 20} | numbers))


def shares(weights):
    return np.asarray(weights) / np.sum(weights)


def test_every_row_has_a_title_and_the_specialists_one_level():
    assert {*SCHEDULES} <= {*figures.TITLES}
    drawn = {name for name in SCHEDULES if table1.planned(name)}
    assert {"staged_curriculum", "static_easy", "level_1"} <= drawn
    assert not {"fixated_easy", "hard_mining", "on_demand", "minimax_gap", "replay"} & drawn
    for level in range(1, 6):
        assert SCHEDULES[f"level_{level}"](0.5, PSNR, 5).tolist() == [float(k == level) for k in range(1, 6)]


@pytest.mark.parametrize("n", [2, 5, 8])
def test_static_shares_are_the_mean_of_the_cumulative_curriculum(n):
    moving = [shares(cumulative_curriculum(done, None, n)) for done in np.linspace(0, 1, 1000 * n, endpoint=False)]
    np.testing.assert_allclose(shares(static_easy(0, None, n)), np.mean(moving, 0), atol=1e-9)
    if n == 5:
        assert (100 * shares(static_easy(0.9, PSNR, n))).round().tolist() == [46, 26, 16, 9, 4]


def test_the_metric_weights_a_level_by_the_inverse_of_its_error():
    """The derivative of the mean PSNR by a level's error, by finite differences."""
    error, step = 10 ** (-np.array(PSNR) / 10), 1e-9

    def mean_psnr(e):
        return np.mean(-10 * np.log10(e))

    slope = [(mean_psnr(error) - mean_psnr(error + step * np.eye(5)[i])) / step for i in range(5)]
    np.testing.assert_allclose(shares(inverse_mse(0.5, PSNR, 5)), shares(slope), rtol=1e-4)
    assert inverse_mse(0, None, 5).tolist() == [1] * 5


def test_feedback_by_l2_has_the_shares_of_the_errors():
    error = np.array([0.001, 0.002, 0.004, 0.008, 0.016])
    np.testing.assert_allclose(shares(on_demand_l2(0.5, -10 * np.log10(error), 5)), np.array([1, 2, 4, 8, 16]) / 31)
    assert on_demand_l2(0, None, 5).tolist() == [1] * 5


def test_shares_by_the_second_moment_have_the_objective_of_equal_shares_and_less_variance():
    """Over many batches every level's factors sum to a fifth of the images; losses vary less than with equal shares."""
    losses = np.random.default_rng(0).gamma(2.0, [[0.001], [0.004], [0.01], [0.03], [0.1]], (5, 20_000))
    rms = np.sqrt((losses**2).mean(1))
    weights, factors = second_moment(0.5, rms.tolist(), 5)
    np.testing.assert_allclose(shares(weights), rms / rms.sum())
    counts = allocate_batches(weights, 100, 1000)[0].sum(0)
    np.testing.assert_allclose(counts * factors, 20_000, rtol=5e-3)  # a level of 0.7 images a batch

    def drawn(share, factor, rng):
        level = rng.choice(5, 50_000, p=share)
        return factor[level] * losses[level, rng.integers(0, 20_000, 50_000)]

    ours = drawn(shares(weights), factors, np.random.default_rng(1))
    equal = drawn(np.full(5, 0.2), np.ones(5), np.random.default_rng(1))
    assert ours.mean() == pytest.approx(equal.mean(), rel=0.05) and ours.var() < 0.5 * equal.var()
    assert second_moment(0, None, 5).tolist() == [[1] * 5] * 2


def test_the_weights_of_edm_at_the_middle_of_each_level():
    """λ(σ) = (σ² + σ_d²) / (σ σ_d)² on the scale of ±127.5, of mean 1: level 1 weighs 28 times as much as level 5."""
    expected = [(sigma**2 + 63.75**2) / (sigma * 63.75) ** 2 for sigma in (10, 30, 50, 70, 90)]
    for psnr in (None, PSNR):
        given, weights = edm(0.5, psnr, 5)
        np.testing.assert_allclose(weights, np.array(expected) * 5 / sum(expected))
        assert given.tolist() == [1] * 5
    assert weights[0] / weights[4] == pytest.approx(27.7, abs=0.1)


@pytest.mark.parametrize(
    ("schedule", "task"), [("edm", "inpaint"), ("on_demand_composite", "deblur"), ("minimax_gap_composite", "denoise")]
)
def test_a_rule_for_some_tasks_is_refused_on_another(schedule, task):
    refused(lambda: Experiment.of(task, schedule=schedule), schedule, task, kind=ParameterError)


def test_group_weights_are_the_exponential_of_what_each_level_has_lost():
    """Equal shares; the log of a weight grows by the rate times the time integral of the level's relative error."""
    rival, scores = GroupDRO(), [None, PSNR, [31, 30, 24, 24, 25], [32, 27, 26, 21, 20]]
    given = [rival(k / 4, psnr, 5) for k, psnr in enumerate(scores)]
    assert all((one[0] == 1).all() and one[1].mean() == pytest.approx(1) for one in given)
    lost = np.zeros(5)
    for psnr in scores[1:]:
        error = [10 ** (-p / 10) for p in psnr]
        lost += [e / (sum(error) / 5) / 4 for e in error]
    expected = [math.exp(GroupDRO.RATE * value) for value in lost]
    np.testing.assert_allclose(shares(given[-1][1]), shares(expected), rtol=1e-9)
    assert rival(0, None, 5).tolist() == [[1] * 5] * 2  # forgotten where there is no score


def specialists(psnr):
    """Histories of five networks with these PSNRs at their own levels, (5,) or an epoch a row."""
    return [[{"psnr": [0.0] * i + [now[i]] + [0.0] * (4 - i)} for now in np.atleast_2d(psnr)] for i in range(5)]


def test_minimax_training_ends_with_equal_gaps():
    """On a model of levels whose gap falls with their share, from unequal gaps."""
    best, ease, rival = np.full(5, 30.0), np.array([0.5, 0.7, 1.0, 1.2, 1.6]), None
    rival, psnr = MinimaxGap(*specialists(best)), None
    for k in range(4000):
        now = rival(k / 100, psnr, 5)
        psnr = best - ease * (1.2 - now)
    gap = ease * (1.2 - now)
    assert np.ptp(gap[now > 0]) < 1e-3 and (gap[now == 0] <= gap.max()).all() and now[4] > now[0]


def test_minimax_training_compares_with_what_a_specialist_had_in_the_same_epoch():
    """Half a decibel behind on every level moves nothing, though one level has more to learn than another."""
    learnt = 25 + np.outer(1 - np.exp(-np.arange(1, 51) / 10), [9, 6, 4, 3, 2])
    rival = MinimaxGap(*specialists(learnt))
    given = [rival(epoch / 50, learnt[epoch - 1] - 0.5 if epoch else None, 5) for epoch in range(50)]
    np.testing.assert_allclose(given, 0.2)


def test_a_rival_says_which_run_it_needs_and_how_to_make_it(demo):
    experiment = tiny("replay", iterations=25)
    wanted = results.measurement_of(experiment)
    said = refused(lambda: wanted.run("cpu"), "'replay' needs", "sharpness=4", kind=ParameterError)
    command = shlex.split(said.partition(": ")[2])
    assert main(command[3:]) == 0
    replayed = wanted.run("cpu").history
    recording = replace(experiment, schedule="on_demand", sharpness=4.0, seed=experiment.seed + 1)
    recorded = results.load_result(recording).history
    for epoch, record in zip(replayed, recorded, strict=True):
        assert epoch["allocation"] == pytest.approx(record["allocation"], abs=0.2)  # an image of an epoch's 500
    assert recorded[3]["dose"] > 0.001


def test_a_sweep_trains_the_specialists_first(demo):
    experiment = tiny("minimax_gap")
    [found] = sweep.run_many([experiment], "cpu", workers=1)
    [row] = table1.schedules_table([found], "interpolate", ["minimax_gap"]).to_dict("records")[1:]
    assert row["worst_gap"] == pytest.approx(max_gap(experiment, "minimax_gap"))
    folder = experiment.asdict() | {"dataset": "own", "images": "ab12"}  # whose place is not kept
    changes = [{"experiment": e} for e in (replace(experiment, seed=experiment.seed + 5).asdict(), folder)]
    changes += [{"provenance": found.provenance | {"arithmetic": "bf16 native"}}]
    for change in changes:
        assert "worst_gap" not in table1.schedules_table([replace(found, **change)], "interpolate", ["minimax_gap"])
    other = sweep.run_many([replace(experiment, schedule="on_demand")], "cpu", workers=1)
    alone = [results.load_result(replace(experiment, schedule=name, seed=0)) for name in SPECIALISTS]
    evidence = judge.Evidence(judge.keyed([found, *other, *alone]))
    ahead = table1.judge_worst_gap(evidence, "minimax_gap", "on_demand").parts["interpolation"].mean
    assert ahead == pytest.approx(max_gap(experiment, "on_demand") - max_gap(experiment, "minimax_gap"))
    rows = table1.schedules_table([found, *other], "interpolate", ["on_demand", "minimax_gap"]).set_index("schedule")
    assert rows.gap_ahead["minimax_gap"] == pytest.approx(-ahead) and np.isnan(rows.gap_ahead["on_demand"])


def max_gap(experiment, schedule):
    """By hand, of what is on disk."""
    ours, gaps = results.load_result(replace(experiment, schedule=schedule)).evaluation, []
    for level in "12345":
        alone = results.load_result(replace(experiment, schedule=f"level_{level}", seed=0)).evaluation
        gaps.append(alone[alone.level == level].psnr.mean() - ours[ours.level == level].psnr.mean())
    return max(gaps)
