"""What a sweep costs: against counts by hand, and what must hold whatever the numbers."""

import io
import sys
from dataclasses import replace

import pytest
from conftest import refused

from companion.cli import companion
from companion.comparators import context_encoder
from companion.runs import plan
from odl.experiment import PROFILES, Experiment

# Nothing is downloaded: an image set that is here adds tests, and has a size of its own.
pytestmark = pytest.mark.usefixtures("root", "no_shared_data")


def test_hours_are_steps_times_milliseconds_and_the_command_prints_each_number_once(root, capsys):
    """1.5 million steps a run; a test is 20 trials × 8 levels × 10 batches of a third of a step each."""
    planned = dict(plan.plan("paper", ["celeba"], [0], 2.0))
    steps = PROFILES["paper"]["epochs"] * PROFILES["paper"]["iterations"]
    run, n = (steps + 20 * 8 * 10 / 3) * 2e-3 / 3600, int(planned["runs"].split(",")[0])
    assert float(planned["GPU time"].split()[0]) == pytest.approx(n * run, rel=2e-3)
    assert float(planned["longest run"].split()[1]) == pytest.approx(run, abs=0.06)
    assert companion(["plan", "--dataset", "celeba", "--gpu-ms-per-step", "2"]) == 0
    assert [line[:14].strip() for line in capsys.readouterr().out.splitlines()] == [*planned]
    assert not root.exists()


def test_weights_are_counted():
    ours = Experiment.of("inpaint", profile="paper")
    assert plan.parameters(ours) == 5_653_248 and plan.parameters(replace(ours, task="denoise")) == 5_649_152
    experiment = context_encoder.run_of("context_encoder_center", Experiment.of("inpaint", profile="smoke"))
    network, _ = context_encoder.build(experiment, "cpu")
    assert plan.parameters(experiment) == sum(p.numel() for p in network.parameters())


def test_a_set_that_trains_nothing_has_no_cost(root):
    for name in ("db11", "db11-native"):
        refused(lambda name=name: plan.plan("smoke", [name], [0], 2.0), f"dataset={name!r} has no training images")


def test_a_code_page_of_windows_costs_signs_and_no_command(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "cp1252"))
    monkeypatch.setattr(plan, "plan", lambda *given: [("runs", "σ" * (given[-1] == 1))])  # by default a millisecond
    assert companion(["plan"]) == 0
    sys.stdout.flush()
    assert b"?" in sys.stdout.buffer.getvalue()
