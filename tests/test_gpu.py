"""The half hour of one GPU, tried on a CPU; its gates are run on a GPU where there is one."""

import json
import os
import zipfile

import pytest
import torch
from safetensors.torch import load

from companion import catalogue, gpu, sweep
from odl import results
from odl.experiment import Experiment

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
TINY = Experiment.of(profile="smoke")


@pytest.mark.parametrize("device", DEVICES)
def test_the_gates_hold(demo, device, monkeypatch):
    monkeypatch.setitem(gpu.TINY, "iterations", 25 if device == "cuda" else 3)
    assert gpu.gates(device) == {}


def test_a_gate_that_fails_names_the_runs_that_differ(monkeypatch):
    """Here deblurring differs where it is captured, by either schedule, and every run alike side by side."""
    monkeypatch.setattr(gpu, "outcome", lambda run, device, capture: run.task == "deblur" and capture)
    names = [f"smoke/demo/deblur/{name}-seed0-iterations=25-batch_size=20" for name in ("on_demand", "hard_mining")]
    assert gpu.gates("cpu") == {"captured": names}


@pytest.mark.parametrize(
    ("failed", "workers", "eager"), [("", 4, "0"), ("captured", 4, "1"), ("bundle", 1, "0"), ("error", 1, "1")]
)
def test_a_failed_gate_is_answered(monkeypatch, failed, workers, eager):
    """Without graphs where a captured step differs, one run at a time where a bundle does."""
    monkeypatch.setenv("ODL_EAGER", "0")
    found = {"gates": {failed: ["a run"]} if failed else {}, "probe": {"eager": 2.0, "1": 1.0, "4": 0.5}}
    monkeypatch.setattr(gpu, "once", lambda name, _: found[name])
    assert gpu.prepare(TINY, "cpu") == workers and os.environ["ODL_EAGER"] == eager


def test_the_probe_times_runs_side_by_side(demo):
    assert all(ms > 0 for ms in gpu.probe(TINY, "cpu", sides=(1, 2), iterations=2).values())


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


def test_archives_bring_home_every_result_and_a_network_once(demo, tmp_path, monkeypatch):
    jobs = catalogue.jobs("smoke", "demo", [0])[:2]
    first = jobs[0].experiment
    sweep.run_jobs(jobs, "cpu", 1)
    trained, measured = results.network_of(first), results.load(first)
    for file, expected in (("one.zip", 2), ("other.zip", 0)):
        gpu.pack(tmp_path / file, jobs)
        with zipfile.ZipFile(tmp_path / file) as archive:
            archive.extractall(tmp_path / "checkout")
            networks = [name for name in archive.namelist() if name.endswith(".safetensors")]
            found = [name for name in archive.namelist() if name.startswith("data/results/smoke/demo/")]
            assert len(networks) == expected and {f"data/results/{job.name}.json" for job in jobs} <= {*found}
            assert all(t.dtype != torch.float32 for name in networks for t in load(archive.read(name)).values())
            assert json.loads(archive.read(found[0]))["protocol"] == 2
    monkeypatch.setenv("ODL_ROOT", str(tmp_path / "checkout"))
    assert results.load(first).evaluation.equals(measured.evaluation)
    unpacked = results.network_of(first)
    for name, value in unpacked.state_dict().items():
        torch.testing.assert_close(value, trained.state_dict()[name], rtol=1e-3, atol=1e-4)
