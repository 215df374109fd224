"""The training step: what its buffers do, and on a GPU that the captured graph does what the plain step does."""

import os
import subprocess
import sys

import pytest
import torch

from companion import sweep
from odl import training
from odl.data import packs
from odl.experiment import Experiment
from odl.machine.device import make_deterministic, quick_precision
from odl.results import run_or_load
from odl.schedules import SCHEDULES
from odl.training import Step

TASKS = ("inpaint", "interpolate", "deblur", "denoise")
TINY = {"profile": "smoke", "epochs": 2, "iterations": 4, "batch_size": 20, "test_images": 6, "validation_images": 4}
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def tiny(task="interpolate", schedule="rigid_joint", **numbers):
    return Experiment.of(task, schedule=schedule, **(TINY | numbers))


def step_of(experiment, device="cpu"):
    network, optimizer = training.build(experiment, device)
    network.train()
    return Step(experiment, network, optimizer, packs.load("demo", "train").to(device))


@pytest.mark.parametrize("task", TASKS)
def test_the_levels_are_data(demo, task):
    """The same step with other severities in its buffers corrupts other images, and only those whose level moved."""
    step = step_of(tiny(task))
    drawn = []
    for counts in ([4] * 5, [4] * 5, [4, 4, 4, 0, 8]):
        next(training.batches(step, 0, [counts]))
        drawn.append(step.draw())
    (x, y), (x_again, y_again), (x_other, y_other) = drawn
    assert torch.equal(x, x_again) and torch.equal(y, y_again) and torch.equal(x, x_other)
    changed = (y != y_other).flatten(1).any(1)
    assert not changed[:12].any() and changed[12:16].any() and not changed[16:].any()


def test_the_quick_precision_is_bf16_where_it_is_native():
    """Not on a simulated CPU without it."""
    code = "from odl.machine.device import quick_precision; print(quick_precision())"
    old = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
    run = subprocess.run([sys.executable, "-c", code], env=old, capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.split() == ["fp32"] and quick_precision() in ("fp32", "bf16")


# On a GPU


@pytest.fixture
def deterministic():
    make_deterministic()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@gpu
@pytest.mark.parametrize("schedule", ["on_demand", "hard_mining", "fixated_hard"])
@pytest.mark.parametrize("task", TASKS)
def test_captured_equals_eager(demo, task, schedule, deterministic):
    """Bit for bit over two epochs of 25 steps in fp32: weights, Adam's state and losses."""
    experiment = tiny(task, schedule, iterations=25)
    outcomes = []
    for capture in (False, True):
        step = step_of(experiment, "cuda")
        step.capture = capture
        losses = [training.train_epoch(step, epoch, training.allocation(experiment, 0, [])) for epoch in (0, 1)]
        outcomes.append((losses, [t.clone() for t in step.state()]))
    (eager_losses, eager), (losses, captured) = outcomes
    assert losses == eager_losses and all(torch.equal(a, b) for a, b in zip(captured, eager, strict=True))


@gpu
def test_one_graph_serves_all_levels(demo):
    """At a rate that moves nothing: an easy epoch, a hard one, and the easy one again with its loss."""
    step = step_of(tiny(learning_rate=1e-8), "cuda")
    easy, hard = [[20, 0, 0, 0, 0]], [[0, 0, 0, 0, 20]]
    first, other, again = (training.train_epoch(step, 0, counts) for counts in (easy, hard, easy))
    assert len(step.graphs) == 1 and abs(again - first) < 1e-5 < abs(other - first)


@gpu
def test_a_bundle_equals_its_runs_alone(demo, tmp_path, monkeypatch):
    experiments = [tiny(schedule=schedule) for schedule in SCHEDULES]
    bundle = sweep.run_many(experiments, "cuda", workers=4)
    monkeypatch.setenv("ODL_ROOT", str(tmp_path / "alone"))
    for experiment, result in zip(experiments, bundle, strict=True):
        alone = run_or_load(experiment, "cuda")
        assert alone.history == result.history and alone.evaluation.equals(result.evaluation)
