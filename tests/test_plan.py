"""What a sweep costs: against counts by hand, and what must hold whatever the numbers."""

import io
import sys

import pytest

from companion import published
from companion.__main__ import main
from companion.comparators import context_encoder
from companion.runs import catalogue, plan
from odl.experiment import PROFILES, Experiment

SETS = ["celeba", "sun397"]


@pytest.fixture(autouse=True)
def no_data(root, monkeypatch):
    """A machine that has downloaded nothing: an image set that is here adds tests, and has a size of its own."""
    monkeypatch.delenv("ODL_DATA", raising=False)


def planned(gpus=1, ms=1.0, seeds=(0,), sets=SETS):
    return plan.plan("paper", sets, list(seeds), gpus, ms)


def test_a_page_on_faces_shows_the_seeds_of_its_campaign_unless_it_is_asked_for_others():
    for seeds, dataset, train, shown in (
        ([0], "celeba10k-native", False, [10, 11, 12, 13, 14]),
        ([0, 12], "celeba10k-native", False, [0, 12]),
        ([0], "celeba10k-native", True, [0]),
        ([0], "bsds500", False, [0]),
    ):
        assert catalogue.seeds_shown(seeds, dataset, train) == shown


def test_a_page_on_faces_that_trains_nothing_shows_the_rules_since_2017_too():
    seven = [*published.SEVEN]
    assert catalogue.schedules_shown("celeba10k-native", train=False) == [*seven, *catalogue.NEWER]
    assert catalogue.schedules_shown("celeba10k-native", train=True) == seven
    assert catalogue.schedules_shown("bsds500", train=False) == seven


def test_hours_are_steps_times_milliseconds():
    """1.5 million steps a run; a test is 20 trials × 8 levels × 10 batches of a third of a step each."""
    p = planned(ms=2.0, sets=["celeba"])
    steps = PROFILES["paper"]["epochs"] * PROFILES["paper"]["iterations"]
    assert steps == 1_500_000
    run = (steps + 20 * 8 * 10 / 3) * 2e-3
    job = catalogue.only(["paper/celeba/deblur/on_demand-seed0"], catalogue.jobs("paper", "celeba", [0]))[0]
    assert job.work / 3 * 2e-3 == pytest.approx(run, rel=1e-6) and p.chain_seconds == pytest.approx(run, rel=1e-3)
    assert p.gpu_seconds == pytest.approx(p.runs * run, rel=1e-3) == p.wall_seconds


def test_more_gpus_help_as_far_as_there_are_runs():
    one, wide = planned(), planned(10_000)
    assert one.wall_seconds == pytest.approx(one.gpu_seconds) and one.gpu_seconds == wide.gpu_seconds
    assert wide.wall_seconds == pytest.approx(wide.chain_seconds)
    walls = [planned(n).wall_seconds for n in (1, 2, 8, 64, one.runs)]
    assert walls == sorted(walls, reverse=True) and walls[-1] == pytest.approx(wide.wall_seconds)
    for n, wall in zip((1, 2, 8, 64), walls, strict=False):
        assert one.gpu_seconds / n <= wall <= one.gpu_seconds / n + one.chain_seconds


def test_bytes_are_counted():
    assert plan.pack_bytes("celeba") == 202_599 * 3 * 96 * 118
    assert plan.pack_bytes("celeba-native") == 202_599 * 3 * 178 * 218
    assert plan.download_bytes("sun397") == 39e9 and plan.download_bytes("demo") == 0
    assert plan.parameters(Experiment.of("inpaint", profile="paper")) == 5_653_248
    assert plan.parameters(Experiment.of("denoise", profile="paper")) == 5_649_152
    ours = Experiment.of("inpaint", profile="smoke")
    run = context_encoder.run_of("context_encoder_center", ours)
    assert plan.parameters(run) == sum(p.numel() for p in context_encoder.build(run, "cpu")[0].parameters())


def test_a_pack_that_is_here_counts_as_it_is(demo):
    assert plan.pack_bytes("demo") == (demo / "data/demo/packed-192/pixels.bin").stat().st_size


def test_the_command_prints_each_number_once(root, capsys):
    assert main(["plan", "--gpus", "8", "--gpu-ms-per-step", "1"]) == 0
    printed = capsys.readouterr().out
    expected = dict(plan.lines(planned(8)))
    assert [line[:14].strip() for line in printed.splitlines()] == list(expected)
    assert all(text in printed for text in expected.values()) and "on 8 GPUs" in printed
    assert not root.exists()


def test_a_code_page_of_windows_costs_signs_and_no_command(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "cp1252"))
    assert main(["plan", "--gpu-ms-per-step", "1"]) == 0
    sys.stdout.flush()
    assert b"data ? " in sys.stdout.buffer.getvalue()
