"""The half hour of one GPU, tried on a CPU; its gates are run on a GPU where there is one."""

import io
import json
import zipfile

import pytest
import torch
from safetensors.torch import load

from companion import catalogue, gpu, sweep
from odl.experiment import Experiment
from odl.machine import files

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
TINY = Experiment.of(profile="smoke")


@pytest.mark.parametrize("device", DEVICES)
def test_the_gates_hold(demo, device):
    assert gpu.gates(device) == {}


def test_a_gate_that_fails_is_named_and_answered(demo, monkeypatch):
    """Without graphs where a captured step differs, one run at a time where a bundle does."""
    monkeypatch.delenv("ODL_EAGER", raising=False)
    monkeypatch.setattr(gpu, "probe", lambda *_: {"eager": 2.0, "1": 1.0, "4": 0.5})
    for broken, workers, eager in (("captured_is_eager", 4, "1"), ("bundle_is_alone", 1, None)):
        for name in ("captured_is_eager", "levels_are_data", "bundle_is_alone"):
            monkeypatch.setattr(gpu, name, lambda *_, name=name, broken=broken: 1 / (name != broken))
        assert gpu.prepare(TINY, "cpu") == workers
        assert gpu.os.environ.get("ODL_EAGER") == eager
        monkeypatch.delenv("ODL_EAGER", raising=False)
        for path in (files.runs() / "gpu").glob("*.json"):
            path.unlink()


def test_the_probe_times_runs_side_by_side(demo):
    assert all(ms > 0 for ms in gpu.probe(TINY, "cpu", sides=(1, 2), iterations=2).values())


def test_what_is_found_is_kept_for_the_next_call(demo):
    assert [gpu.once("x", function) for function in (lambda: {"a": 1}, lambda: {"a": 2})] == [{"a": 1}] * 2
    assert "ZeroDivisionError" in gpu.once("y", lambda: 1 / 0)["error"]


def test_an_archive_holds_results_and_networks_once(demo, tmp_path):
    jobs = catalogue.jobs("smoke", "demo", [0])[:2]
    sweep.run_jobs(jobs, "cpu", 1)
    for expected in (2, 0):
        gpu.pack(tmp_path / "home.zip", jobs)
        with zipfile.ZipFile(io.BytesIO((tmp_path / "home.zip").read_bytes())) as archive:
            networks = [name for name in archive.namelist() if name.endswith(".safetensors")]
            found = [name for name in archive.namelist() if name.startswith("data/results/smoke/demo/")]
            assert len(networks) == expected and {f"data/results/{job.name}.json" for job in jobs} <= {*found}
            assert all(t.dtype != torch.float32 for name in networks for t in load(archive.read(name)).values())
            assert json.loads(archive.read(found[0]))["protocol"] == 2
