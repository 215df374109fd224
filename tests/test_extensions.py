"""Beyond the paper: densities, sub-tasks, sharpness, mixtures, and that the paper's own case comes out bit for bit."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, ndimage, stats

from companion import extensions
from companion.extensions import MIXTURE, Extension, MixedStep
from odl import paper, results, training
from odl.corruptions import FILL, TASKS
from odl.data import packs
from odl.experiment import Experiment
from odl.machine import files
from odl.parameters import ParameterError
from odl.results import Result
from odl.training import Step
from tests.faults.campaign import digest

GAP = [40, 33, 26, 18, 10]  # dB of levels 1 to 5
TINY = {"profile": "smoke", "width": 4, "epochs": 3, "iterations": 2, "batch_size": 100}
TINY |= {"validation_images": 4, "test_images": 4}


def tiny(task="interpolate", **numbers):
    return Extension.of(task, **(TINY | numbers))


def inverse(severity, task, psnr, k=1):
    """P(s)^-k on straight lines between the middles of the levels."""
    low, high = (paper.TASKS[task]["levels"][i][i and 1] for i in (0, 4))
    width = (high + (task == "inpaint") - low) / len(psnr)
    place = min(max((severity - low) / width - 0.5, 0), len(psnr) - 1)  # in sub-tasks, from the middle of the first
    i = min(int(place), len(psnr) - 2)
    return (psnr[i] + (place - i) * (psnr[i + 1] - psnr[i])) ** -k


def cumulative(task, psnr, k=1):
    """The distribution function of continuous levels, by quadrature."""
    low, high = extensions.severity_range(task)
    whole = integrate.quad(inverse, low, high, (task, psnr, k), limit=200)[0]
    return lambda s: integrate.quad(inverse, low, s, (task, psnr, k), limit=200)[0] / whole


# Continuous levels


@pytest.mark.parametrize("k", [0, 1, 4])
@pytest.mark.parametrize("task", TASKS)
def test_the_density_integrates_to_one_and_follows_the_inverse(task, k):
    severity, p = extensions.density(GAP, task, k)
    assert integrate.simpson(p, x=severity) == pytest.approx(1, abs=1e-5)
    expected = np.array([inverse(s, task, GAP, k) for s in severity])
    np.testing.assert_allclose(p / p[0], expected / expected[0], rtol=1e-9)


def drawn(task, psnr, times):
    """Severities of so many batches, with a number for each image."""
    bounds = torch.tensor(extensions.divide(tiny(task, continuous=True), psnr)[0][0, :, 1:], dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    return torch.cat([TASKS[task].draw(*bounds.T, 64, generator)[:, 0] for _ in range(times)]).double().numpy()


@pytest.mark.parametrize("task", ["interpolate", "denoise"])
def test_draws_follow_the_density(task):
    """Kolmogorov and Smirnov accept the draws of whole batches, and refuse those of equal levels."""
    grid = np.linspace(*extensions.severity_range(task), 41)
    table = [cumulative(task, GAP)(s) for s in grid]
    fits, refused = (stats.kstest(drawn(task, psnr, 20), np.interp, (grid, table)).pvalue for psnr in (GAP, None))
    assert fits > 0.01 and refused < 1e-6


def assert_sides(sides, expected, atol):
    """Of whole squares of 1 to 30 pixels, as many as expected."""
    counts = np.bincount(sides.astype(int))
    assert (sides == np.floor(sides)).all() and counts[0] == 0 and len(counts) == 31
    np.testing.assert_allclose(counts[1:], expected, atol=atol)


def test_sides_of_squares_follow_the_density():
    """Whole pixels: a side s has the mass of [s, s + 1)."""
    sides, f = drawn("inpaint", GAP, 200), cumulative("inpaint", GAP)
    expected = np.diff([f(s) for s in range(1, 32)]) * len(sides)
    assert_sides(sides, expected, 4 * np.sqrt(expected.max()))


def test_a_uniform_density_before_the_first_validation():
    batch, counts = extensions.divide(tiny(continuous=True))
    np.testing.assert_allclose(batch[0, :, 1], np.arange(100) * 0.75, atol=1e-9)
    assert counts.tolist() == [20] * 5


# Sub-tasks and sharpness


@pytest.mark.parametrize("task", TASKS)
def test_five_sub_tasks_are_the_papers_levels(task):
    assert extensions.intervals(task, 5) == [tuple(map(float, bounds)) for bounds in paper.TASKS[task]["levels"][:5]]


@pytest.mark.parametrize("n", range(2, 21))
def test_squares_of_any_number_of_sub_tasks_have_every_side(n):
    """Together n equal sub-tasks are uniform over whole sides 1 to 30."""
    draws = 20_000
    bounds = torch.tensor(extensions.intervals("inpaint", n)).repeat_interleave(-(-draws // n), 0)
    sides = TASKS["inpaint"].draw(*bounds.T, 64, torch.Generator().manual_seed(n))[:, 0].numpy()
    assert_sides(sides, len(sides) / 30, 5 * np.sqrt(draws / 30))


@settings(max_examples=40)
@given(st.integers(2, 20), st.floats(0, 64), st.booleans(), st.sampled_from(["levels", "tasks"]), st.data())
def test_every_batch_is_full(n, k, mixed, feedback, rest):
    run = tiny("inpaint", levels=n, sharpness=k, mixture="+".join(MIXTURE) if mixed else "", feedback=feedback)
    size = n * len(run.tasks)
    psnr = rest.draw(st.lists(st.floats(-5, 100), min_size=size, max_size=size))
    batches, counts = extensions.divide(run, psnr)
    assert batches.shape == (2, 100, 3) and np.isfinite(batches).all()
    assert counts.sum() == 100 and counts.min() >= 0 and len(counts) == size
    np.testing.assert_allclose(counts, extensions.shares_of(run, psnr), atol=1)


def test_sharpness_by_hand():
    """20 and 10 dB at k = 2: weights 1 to 4."""
    assert extensions.shares_of(tiny(levels=2, sharpness=2), [20, 10]) == pytest.approx([20, 80])
    assert extensions.shares_of(tiny(sharpness=0), GAP) == pytest.approx([20] * 5)
    assert extensions.shares_of(tiny(schedule="rigid_joint"), GAP) == pytest.approx([20] * 5)
    moved = [20 - extensions.shares_of(tiny(sharpness=k), GAP)[0] for k in (-1, 0, 1, 2, 4)]
    assert moved == sorted(set(moved))


def test_feedback_over_tasks_divides_each_part_equally():
    run = tiny("inpaint", levels=2, mixture="inpaint+deblur", feedback="tasks")
    assert extensions.shares_of(run, [30, 50, 5, 15]) == pytest.approx([10, 10, 40, 40])  # means 40 and 10 dB
    run = tiny("inpaint", levels=2, mixture="inpaint+deblur")
    assert extensions.shares_of(run, [20, 60, 20, 60]) == pytest.approx([37.5, 12.5, 37.5, 12.5])
    batches, counts = extensions.divide(run, [20, 60, 20, 60])
    assert counts == pytest.approx([37.5, 12.5, 37.5, 12.5]) and (batches[0] != batches[1]).any()  # halves are carried


# The paper's own case


@pytest.mark.parametrize("task", TASKS)
def test_the_defaults_assign_the_papers_batch(demo, task):
    run, pack = tiny(task), packs.load("demo", "train")
    network, optimizer = training.build(run, "cpu")
    ours, theirs = (kind(run, network, optimizer, pack) for kind in (MixedStep, Step))
    for history in ([], [{"psnr": GAP}]):
        ours.assign(extensions.divide(run, history[-1]["psnr"] if history else None)[0])
        theirs.assign(training.allocation(run, 0, history))
        assert torch.equal(ours.lows, theirs.lows) and torch.equal(ours.highs, theirs.highs)


@pytest.mark.parametrize("task", ["inpaint", "denoise"])
def test_five_levels_at_sharpness_one_are_on_demand_learning_bit_for_bit(task, demo, monkeypatch):
    """Scores far apart, so that the allocation moves; the same run id in two roots."""

    def far_apart(experiment, network, *rest):
        return [40 - 6 * i + next(network.parameters()).abs().mean().item() for i in range(5)]

    outcomes = []
    for module, experiment in ((extensions, tiny(task)), (training, Experiment.of(task, **TINY))):
        monkeypatch.setattr(module, "validate", far_apart)
        trained = module.train(experiment)
        outcomes.append(digest([trained.network.state_dict(), trained.history]))
        (files.runs() / experiment.run_id).rename(demo / f"kept-{len(outcomes)}")
    assert outcomes[0] == outcomes[1] and trained.history[-1]["dose"] > 0.01


def test_the_defaults_have_the_name_and_the_file_of_the_papers_run():
    for task in TASKS:
        given = {"dataset": "bsds500", "profile": "reference"}
        plain, run = Experiment.of(task, **given), Extension.of(task, **given)
        assert run.run_id == plain.run_id and run.asdict() == plain.asdict() == extensions.plain(run).asdict()
    changed = Extension.of("deblur", levels=10, sharpness=4)
    assert changed.run_id.endswith("-sharpness=4-levels=10") and changed.asdict()["levels"] == 10


# Mixtures


def mixed_batch(run, psnr=None, seed=0):
    network, optimizer = training.build(run, "cpu")
    step = MixedStep(run, network, optimizer, packs.load("demo", "train"))
    step.assign(extensions.divide(run, psnr)[0])
    step.select(0, step.index)
    step.generator.manual_seed(seed)
    return step, *step.draw()


def test_each_image_gets_its_own_task(demo):
    run = tiny("inpaint", mixture="+".join(MIXTURE))
    step, x, y = mixed_batch(run)
    fill = torch.tensor(FILL).view(3, 1, 1) / 127.5 - 1
    seen = dict.fromkeys(MIXTURE, 0)
    for i, task in enumerate(run.tasks[j] for j in step.which):
        filled = ((y[i] - fill).abs() < 1e-6).all(0)
        low, high = step.low[i].item(), step.high[i].item()
        if task == "inpaint":
            rows, columns = filled.any(1).sum().item(), filled.any(0).sum().item()
            assert rows == columns and low <= rows <= high and filled.sum() == rows * columns
        elif task == "interpolate":
            share, spread = 100 * filled.float().mean().item(), 4 * 100 * 0.5 / 64
            assert low - spread <= share <= high + spread
        else:
            step.low[i] = step.high[i] = 2.0
        assert task == "deblur" or torch.equal(y[i][:, ~filled], x[i][:, ~filled])
        seen[task] += 1
    assert sum(seen.values()) == 100 and min(seen.values()) >= 30
    step.generator.manual_seed(0)
    x, y = step.draw()
    for i in (step.which == 2).nonzero()[:, 0]:
        expected = ndimage.gaussian_filter(x[i].double().numpy(), (0, 2, 2), mode="mirror", truncate=4)
        np.testing.assert_allclose(y[i].numpy(), expected, atol=1e-5)


def test_mixtures_pair_by_seed(demo):
    """Another allocation, the same crops; an image that keeps its task and level keeps its corruption."""
    run = tiny("inpaint", mixture="+".join(MIXTURE), sharpness=8)
    (a, x_a, y_a), (b, x_b, y_b) = mixed_batch(run), mixed_batch(run, GAP * 3)
    same = (a.which == b.which) & (a.low == b.low) & (a.high == b.high)
    assert torch.equal(x_a, x_b) and 0 < same.sum() < 100
    assert torch.equal(y_a[same], y_b[same]) and (y_a != y_b)[~same].flatten(1).any(1).float().mean() > 0.9


def test_a_mixture_is_measured_on_each_of_its_tasks(demo):
    run = tiny("inpaint", mixture="interpolate+deblur", levels=2)
    result = extensions.run_or_load(run, "cpu")
    assert set(result.evaluation.task) == {"interpolate", "deblur"} and len(result.history[0]["psnr"]) == 4
    single = extensions.on_task(result, "deblur").evaluation
    assert list(single.groupby("level").size()) == [run.trials] * 8
    assert json.loads(result.path.read_text())["experiment"]["mixture"] == "interpolate+deblur"
    before = result.path.stat().st_mtime_ns
    assert extensions.run_or_load(run).evaluation.equals(result.evaluation)
    assert result.path.stat().st_mtime_ns == before


WRONG = {"levels": (0, 2.5), "sharpness": (-65, float("nan")), "continuous": ("yes",), "feedback": ("task",)}
WRONG |= {"mixture": ("inpaint+denoise", "inpaint+deblurr"), "schedule": ("hard_mining",)}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_number_is_named(name):
    for value in WRONG[name]:
        with pytest.raises(ParameterError, match=name):
            tiny(**{name: value})


# Tables


def made_up(psnr, tasks=(None,)):
    """Levels 1 to 6 of two trials; every task 1 dB above the one before."""
    rows = [(t, str(i), 1.0, psnr + j, task) for j, task in enumerate(tasks) for t in (0, 1) for i in range(1, 7)]
    frame = pd.DataFrame(rows, columns=["trial", "level", "l2", "psnr", "task"])
    return frame if tasks[0] else frame.drop(columns="task")


def test_gaps_are_paired_by_seed_and_task(monkeypatch):
    runs = extensions.runs("deblur", "demo", "smoke", [0, 1])
    on_disk = {}
    for seed in (0, 1):
        on_disk[runs["on-demand"][seed]] = made_up(20 + seed)
        on_disk[runs["k = 16"][seed]] = made_up(20.5 + 2 * seed)
        on_disk[runs["mixture, on-demand"][seed]] = made_up(19, MIXTURE)
    on_disk[runs["continuous"][1]] = made_up(21.05)

    def load(run):
        frame = on_disk.get(run)
        return None if frame is None else Result(run.asdict(), {}, [], frame, None)

    monkeypatch.setattr(results, "load", load)
    frame = extensions.gaps(runs)
    by = {(run, against): list(part.gap) for (run, against), part in frame.groupby(["run", "against"])}
    assert by["k = 16", "on-demand"] == pytest.approx([0.5, 1.5])
    assert by["continuous", "on-demand"] == pytest.approx([0.05])
    assert by["mixture, on-demand", "specialist: deblur"] == pytest.approx([1, 0])  # deblurring is third: 21 dB
    assert len(by) == 3
    table = extensions.summary(frame).set_index(["run", "against"])
    assert table.gap["k = 16", "on-demand"] == pytest.approx(1.0) and table.seeds["k = 16", "on-demand"] == 2
    assert "verdict" not in table


def test_shares_are_counted():
    """Validation: 20 sub-tasks × 1,000 images forward, beside 1,000 × 100 images forward and back; and what moved."""
    run = Extension.of("deblur", profile="paper", levels=20)
    assert extensions.validation_share(run) == pytest.approx(20_000 / (20_000 + 300_000))
    result = Result({}, {}, [{"allocation": [18.5, 19, 20, 21, 21.5]}], None, None)
    assert extensions.moved(result) == pytest.approx(2.5)
