"""The half hour of one GPU, tried on a CPU; its gates are run on a GPU where there is one."""

import json
import os
import zipfile
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load

from companion.runs import catalogue, gpu, sweep
from odl import PROTOCOL, results
from odl.data import sets
from odl.experiment import Experiment
from odl.machine import files

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
TINY = Experiment.of(profile="smoke")


@pytest.mark.parametrize("device", DEVICES)
def test_the_gates_hold(demo, device, monkeypatch):
    if device == "cpu":
        monkeypatch.setattr(gpu, "TINY", gpu.TINY | {"iterations": 3, "precision": "fp32"})
    assert gpu.gates(device) == {}


def test_a_gate_that_fails_names_the_runs_that_differ(monkeypatch):
    """Here deblurring differs where it is captured, by every schedule, and every run alike side by side."""
    monkeypatch.setattr(gpu, "outcome", lambda run, device, capture: run.task == "deblur" and capture)
    runs = [Experiment.of("deblur", schedule=name, **gpu.TINY) for name in gpu.GATED]
    assert gpu.gates("cpu") == {"captured": [run.run_id for run in runs]}


@pytest.mark.parametrize(
    ("failed", "workers", "eager"),
    [("", 4, "0"), ("captured", 4, "1"), ("bundle", 1, "0"), ("error", 1, "1"), ("probe", 1, "1")],
)
def test_a_failed_gate_is_answered(monkeypatch, failed, workers, eager):
    """Without graphs where a captured step differs or none was timed, one run at a time where a bundle does."""
    monkeypatch.setenv("ODL_EAGER", "0")
    milliseconds = {"eager": 2.0} | ({"1 failed": "no graph"} if failed == "probe" else {"1": 1.0, "4": 0.5})
    found = {"gates": {failed: ["a run"]} if failed and failed != "probe" else {}, "probe": milliseconds}
    monkeypatch.setattr(gpu, "once", lambda name, _: found[name.partition("-")[0]])
    assert gpu.prepare([TINY], "cpu") == workers and os.environ["ODL_EAGER"] == eager


@pytest.mark.parametrize("names", [["on_demand"], ["hard_mining"], ["group_dro", "inverse_mse"]])
def test_the_gates_are_of_the_kinds_of_step_that_are_to_be_trained(monkeypatch, names):
    """Hard mining and weighted losses have steps of their own; while nobody trains them, they stop nothing."""
    asked = []
    monkeypatch.setenv("ODL_EAGER", "0")
    monkeypatch.setattr(gpu, "once", lambda name, function: function())
    monkeypatch.setattr(gpu, "gates", lambda device, dataset, schedules: asked.extend(schedules) or {})
    monkeypatch.setattr(gpu, "probe", lambda *_: {"1": 1.0})
    gpu.prepare([Experiment.of(profile="smoke", schedule=name) for name in ("rigid_joint", *names)], "cpu")
    assert asked == ["on_demand", *(name for name in names if name in ("hard_mining", "group_dro"))]


def test_the_gate_of_weighted_losses_weights_them(demo, monkeypatch):
    """In its second epoch, of the hardest level alone, an image counts more than 1."""
    seen = []
    monkeypatch.setattr(gpu, "train_epoch", lambda run, network, optimizer, take, made, epoch: seen.append([*made]))
    step = gpu.step_of(replace(TINY, schedule="group_dro"), "cpu")
    for epoch, counts in enumerate((gpu.EASY, gpu.HARD)):
        gpu.an_epoch(step, step, epoch, counts)
    first, second = ([factor for _, _, _, factor, _ in made] for made in seen)
    assert all((factor == 1).all() for factor in first) and all((factor > 1.01).all() for factor in second)


def test_what_a_card_did_is_kept_for_the_book_and_never_asked_again_of_another(monkeypatch, tmp_path):
    """A record that came with the code answers for no machine: gates and probe of this one are in `runs/`."""
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    monkeypatch.setenv("ODL_EAGER", "0")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "A card, 16GB")
    monkeypatch.setattr(gpu, "gates", lambda *_: {"bundle": ["a run"]})
    for times in ({"1": 1.0}, {"1": 2.0}):
        monkeypatch.setattr(gpu, "probe", lambda *_, times=times: times)
        assert gpu.prepare([TINY], "cuda") == 1
        record = files.unseal(gpu.record_of("A card, 16GB"))
        assert record["provenance"]["device"] == "A card, 16GB" and record["milliseconds"] == times
        assert record["gates"] == {"bundle": ["a run"]}
        monkeypatch.setattr(gpu, "gates", lambda *_: {"captured": ["another"]})  # as the next call's kinds of step
        gpu.prepare([replace(TINY, schedule="hard_mining")], "cuda")
        both = {"bundle": ["a run"], "captured": ["another"]}
        assert files.unseal(gpu.record_of("A card, 16GB"))["gates"] == both
        monkeypatch.setattr(gpu, "gates", lambda *_: {"bundle": ["a run"]})
        for path in (files.runs() / "gpu").glob("*.json"):
            path.unlink()  # as on a new machine


@pytest.mark.parametrize("schedule", ["on_demand", "replay", "minimax_gap"])  # two are made from other runs' histories
def test_the_probe_times_runs_side_by_side(demo, schedule):
    run = replace(TINY, schedule=schedule)
    assert all(ms > 0 for ms in gpu.probe(run, "cpu", sides=(1, 2), iterations=2).values())


def test_the_probe_keeps_what_it_timed_before_memory_ran_out(monkeypatch):
    def timed(run, device, n, capture):
        if n == 4:
            raise torch.OutOfMemoryError("no room for 4")
        return 1.0 / n

    monkeypatch.setattr(gpu, "timed", timed)
    assert gpu.probe(TINY, "cpu") == {"eager": 1, "1": 1, "2": 0.5, "4 failed": "no room for 4", "7": 1 / 7}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_bundle_equals_its_runs_alone(demo, tmp_path, monkeypatch):
    schedules = ("on_demand", "rigid_joint", "hard_mining", "fixated_hard")
    runs = [Experiment.of("interpolate", schedule=schedule, **gpu.TINY) for schedule in schedules]
    bundle = sweep.run_many(runs, "cuda", workers=4)
    monkeypatch.setenv("ODL_ROOT", str(tmp_path / "alone"))
    for one, other in zip(bundle, sweep.run_many(runs, "cuda", workers=1), strict=True):
        assert one.history == other.history and one.evaluation.equals(other.evaluation)


def test_what_is_found_is_kept_for_the_next_call(demo):
    assert [gpu.once("x", function) for function in (lambda: {"a": 1}, lambda: {"a": 2})] == [{"a": 1}] * 2
    assert "ZeroDivisionError" in gpu.once("y", lambda: 1 / 0)["error"]
    assert gpu.once("y", lambda: {"a": 4}) == {"a": 4}  # the next call tries again
    with pytest.raises(sets.DataError):  # whoever mends this asks again
        gpu.once("z", lambda: sets.find("db12"))
    assert gpu.once("z", lambda: {"a": 3}) == {"a": 3}


def test_archives_bring_home_every_result_and_a_network_once_the_longest_first(demo, tmp_path, monkeypatch):
    [job] = catalogue.jobs("smoke", "demo", [0])[:1]
    first, longer = job.experiment, replace(job.experiment, epochs=job.experiment.epochs + 1)
    jobs = [job, sweep.job_of(longer)]
    sweep.run_jobs(jobs, "cpu", 1)
    trained, measured = results.network_of(first), results.load(first)
    monkeypatch.setattr(gpu, "NETWORKS", 1)
    for call, networks in (("one", ["one-1"]), ("two", ["two-2"]), ("three", [])):
        gpu.pack(tmp_path / f"{call}.zip", jobs)
        assert {path.stem for path in tmp_path.glob(f"{call}*.zip")} == {call, *networks}
    for file in tmp_path.glob("*.zip"):
        with zipfile.ZipFile(file) as archive:
            archive.extractall(tmp_path / "checkout")
            names = archive.namelist()
            if "-" in file.stem:
                [name] = names
                assert name == f"runs/{(longer if file.stem == 'one-1' else first).run_id}/weights.safetensors"
                assert all(t.dtype != torch.float32 for t in load(archive.read(name)).values())
                continue
            assert {*names} == {f"data/results/{m.name}.json" for job in jobs for m in job.measurements}
            assert json.loads(archive.read(names[0]))["protocol"] == PROTOCOL
    monkeypatch.setenv("ODL_ROOT", str(tmp_path / "checkout"))
    assert results.load(first).evaluation.equals(measured.evaluation)
    unpacked = results.network_of(first)
    for name, value in unpacked.state_dict().items():
        torch.testing.assert_close(value, trained.state_dict()[name], rtol=1e-3, atol=1e-4)
