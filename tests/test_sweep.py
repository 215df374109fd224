"""Many runs: order, a budget, Ctrl-C, and side by side equal to alone."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil
import pytest
from conftest import tiny

from companion.__main__ import duration, main
from companion.comparators import INPAINTERS
from companion.data import sets
from companion.disk import files
from companion.disk.progress import Bar
from companion.measure import denoising
from companion.runs import catalogue, sweep
from companion.training import checkpoint, measurement, results, store
from companion.training.measurement import Job, Measurement
from odl.experiment import Experiment

ROOT = Path(__file__).resolve().parents[1]


def test_a_page_that_lacks_runs_names_the_seeds_that_it_was_asked_for(demo, capsys):
    """Not that of the fill that learns nothing, which has none."""
    jobs = [catalogue.job_with_all(run) for run in catalogue.runs("table2", "inpaint", "demo", "smoke", [3])]
    assert sweep.results_of(jobs, train=False, page="table2") == []
    assert capsys.readouterr().out.endswith("--page table2 --seeds 3.\n")


def test_run_many_keeps_the_order_and_trains_what_is_missing(demo, capsys):
    experiments = [tiny(schedule=name) for name in ("rigid_joint", "on_demand")]
    results.run_or_load(experiments[1], "cpu")
    assert [r.experiment["schedule"] for r in sweep.run_many(experiments, train=False)] == ["on_demand"]
    assert "1 of 2 runs are missing" in capsys.readouterr().out
    measured = sweep.run_many(experiments, "cpu")
    assert [r.experiment["schedule"] for r in measured] == ["rigid_joint", "on_demand"]


def test_a_plain_script_trains_side_by_side(demo, tmp_path):
    """Without the guard that multiprocessing asks of scripts."""
    script = """from companion.runs import sweep
from odl.experiment import Experiment
runs = [Experiment.of(schedule=name, profile="smoke") for name in ("rigid_joint", "on_demand")]
print(len(sweep.run_many(runs, "cpu", workers=2)))"""
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, tmp_path / "script.py"]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": ROOT}
    )
    assert (ran.returncode, ran.stdout.split()[-1:]) == (0, ["2"]), ran.stderr


def test_after_a_job_that_fails_the_others_run_and_its_error_is_raised(root, capsys):
    def fail(device, progress):
        raise RuntimeError("no room")

    broken = Job("a/b", (Measurement(lambda: None, fail, 1, root / "broken"),))
    with pytest.raises(RuntimeError, match="no room"):
        sweep.run_jobs([broken, job_at(root / "other", seconds=0)], "cpu", workers=1)
    assert (root / "other").exists() and "a/b: no room" in capsys.readouterr().err


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_checkpoint_holds_does_not_count_as_fast(root, monkeypatch, workers):
    """Of two runs that go on at 90 %, the bar's speed counts the last tenths alone."""
    bars = []
    monkeypatch.setattr(sweep, "Bar", lambda *given, **more: bars.append(Bar(*given, **more)) or bars[-1])
    sweep.run_jobs([job_at(root / name) for name in "ab"], "cpu", workers=workers)
    assert bars[0].n == 200 and bars[0].initial == pytest.approx(180)


def job_at(path, seconds=2):
    """A measurement that goes on from its checkpoint."""
    return Job(path.name, (Measurement(partial(there, path), partial(resumed, path, seconds), 100, path),))


def there(path):
    return path.exists() or None


def resumed(path, seconds, device, progress):
    progress(0.9)
    time.sleep(seconds)
    progress(1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def left_by(experiments, **how):
    """Weights, history and evaluation of each, bit for bit."""
    measured = sweep.run_many(experiments, "cpu", **how)
    weights = [(files.runs() / e.run_id / "weights.safetensors").read_bytes() for e in experiments]
    return [(w, r.history, r.evaluation.to_dict("list")) for w, r in zip(weights, measured, strict=True)]


def test_side_by_side_equals_alone(demo, elsewhere):
    """Bit for bit: runs in two processes against one after the other."""
    experiments = [tiny(schedule=schedule, seed=seed) for schedule in ("on_demand", "hard_mining") for seed in (0, 1)]
    beside = left_by(experiments, workers=2)
    with elsewhere():
        assert beside == left_by(experiments, workers=1)
    assert len({weights for weights, *_ in beside}) == len(beside)


def forever(device, progress):
    for i in range(10**9):
        progress(i / 10**9)
        time.sleep(0.001)


def nothing():
    return None


@pytest.mark.parametrize("workers", [1, 2])
def test_a_deadline_stops_what_runs_and_starts_nothing_more(monkeypatch, capsys, workers):
    """In this process and in others, though the clock is set back."""
    monkeypatch.setattr(time, "time", lambda: 0.0)
    endless = [Job(f"job {i}", (Measurement(nothing, forever, 1e6),)) for i in range(4)]
    start = time.monotonic()
    sweep.run_jobs(endless, "cpu", workers, start + 1)
    assert time.monotonic() - start >= 1  # and they would take days
    assert "0 of 4 runs" in capsys.readouterr().err


def test_a_budget_stops_and_the_next_call_goes_on_bit_for_bit(demo, elsewhere, monkeypatch):
    """The clock passes the deadline after the second epoch; what the second call ends with is a run in one piece."""
    experiment = tiny(epochs=3)
    job = measurement.job_of(experiment)

    def epochs():
        state = checkpoint.load_checkpoint(files.runs() / experiment.run_id, experiment)
        return len(state["history"]) if state else 0

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "monotonic", lambda: epochs() >= 2)
        patch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0)
        sweep.run_jobs([job], "cpu", deadline=0.5)
    assert job.missing() and epochs() == 2
    resumed = left_by([experiment])
    with elsewhere():
        assert resumed == left_by([experiment])


ENDLESS = """
import signal
from companion.runs import sweep
from odl.experiment import Experiment
from companion.disk import progress

progress.FIRST = progress.EVERY = 0
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    numbers = dict(profile="smoke", epochs=2000, iterations=1, batch_size=20)
    sweep.run_many([Experiment.of("interpolate", seed=seed, **numbers) for seed in (0, 1)], "cpu", workers=2)
"""


def endless(folder, until: bytes):
    """A sweep of two endless runs in a process of its own, when it has said `until`."""
    script = folder / "endless.py"
    script.write_text(ENDLESS)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, env=env, start_new_session=True)
    shown = b""
    while not re.search(until, shown, re.DOTALL):
        shown += process.stderr.read1()
        assert process.poll() is None, shown
    return process


TRAINED = rb" [2-9] %"  # both have trained for a while


@pytest.mark.parametrize(
    ("send", "sent"), [(os.kill, signal.SIGINT), (os.kill, signal.SIGKILL), (os.killpg, signal.SIGTERM)]
)
def test_a_signal_ends_all_workers_with_their_checkpoints(demo, send, sent):
    """Ctrl-C, a death without a word, and what a notebook's kernel gets that is shut down, its children too."""
    process = endless(demo, TRAINED)
    send(process.pid, sent)
    process.communicate(timeout=60)  # until the workers, which hold the pipe, have ended
    assert process.returncode == -sent and not list((demo / "runs").rglob("*.tmp"))
    assert len(list((demo / "runs").rglob("checkpoint.pt"))) == 2


@pytest.mark.parametrize("after", [0.0, 0.05, 0.2])
def test_ctrl_c_in_a_notebook_keeps_every_run(demo, after):
    """Its kernel is told to stop, and a moment later it terminates its children, which are writing then."""
    process = endless(demo, TRAINED)
    children = psutil.Process(process.pid).children()
    os.kill(process.pid, signal.SIGINT)
    time.sleep(after)
    for child in children:
        child.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and len(children) >= 2
    assert len(list((demo / "runs").rglob("checkpoint.pt"))) == 2 and not list((demo / "runs").rglob("*.tmp"))


def test_a_worker_is_not_torn_out_of_what_it_writes(monkeypatch):
    """Once an exception is on its way out of a run, which writes its checkpoint then, no other one comes."""
    monkeypatch.setattr(sweep, "ASKED", threading.Event())
    monkeypatch.setattr(sweep, "WORKER", {"parent": None, "busy": True, "running": False})
    sweep.end_worker()  # between two runs
    sweep.WORKER["running"] = True
    with pytest.raises(SystemExit):
        sweep.end_worker()
    sweep.end_worker()
    assert sweep.ASKED.is_set() and not sweep.WORKER["running"]


def test_a_worker_that_is_ended_from_outside_ends_the_sweep_with_an_error(demo):
    """And not as if all were done."""
    process = endless(demo, TRAINED)
    for child in psutil.Process(process.pid).children():
        if "popen_loky" in " ".join(child.cmdline()):
            child.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and b"Ended: a worker was ended from outside" in said
    assert len(list((demo / "runs").rglob("checkpoint.pt"))) == 2


def test_a_second_ctrl_c_does_not_wait(demo):
    process = endless(demo, TRAINED)
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.3)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT


def test_ctrl_c_ends_those_that_wait_for_another_process(demo):
    numbers = {"profile": "smoke", "epochs": 2000, "iterations": 1, "batch_size": 20}
    with ExitStack() as held:
        for run in [Experiment.of("interpolate", seed=seed, **numbers) for seed in (0, 1)]:
            held.enter_context(store.lock_of(results.path_of(run)))
        process = endless(demo, b"waiting for another process.*waiting for another process")
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT


def test_the_list_has_what_a_table_compares_first_before_what_refines_it():
    names = [job.name for job in catalogue.jobs("smoke", "demo", [0, 1])]
    assert len(names) == len(set(names))
    assert {"smoke/demo-native/denoise/on_demand-seed0", "smoke/demo/deblur/on_demand_l2-seed1"} <= set(names)
    runs = ["on_demand-seed0", "rigid_joint-seed1", "on_demand-seed0-sharpness=4", "cumulative_curriculum-seed0"]
    runs += ["staged_curriculum-seed0", *(f"{method}-seed0" for method in INPAINTERS), "hard_mining-seed1"]
    order = [names.index(f"smoke/demo/inpaint/{run}") for run in runs]
    assert order == sorted(order)


@pytest.mark.parametrize("dataset", ["demo", "celeba10k-native"])
def test_no_result_is_of_two_jobs_and_the_first_of_a_job_is_its_own(dataset):
    """Also of a run that others need: a sum over jobs counts it once."""
    jobs = catalogue.jobs("smoke", dataset, [10, 11])
    paths = [m.path for job in jobs for m in job.measurements]
    assert len(paths) == len({*paths})
    assert all(job.measurements[0].path == results.path_of(job.experiment) for job in jobs if job.experiment)
    needed = {m.path for job in jobs for m in job.needs}
    assert len(needed) == (dataset != "demo") * (20 + 4 + 10)  # specialists, two runs of two tasks recorded, composite


def test_reproduce_says_that_it_leaves_out_what_needs_photographs(root, monkeypatch, capsys):
    monkeypatch.delenv("ODL_DATA", raising=False)
    of = {"table3": ["--page", "table3"], "table1": ["--page", "table1-deblur"], "all": ["--page", "scorecard"]}
    of |= {"denoise": ["--page", "table3-denoise"], "faces": ["--dataset", "celeba10k-native"], "whole": []}
    for name, options in of.items():
        assert main(["reproduce", "--list", "--seeds", "0", *options]) == 0
        said = "python -m odl data prepare db11" in capsys.readouterr().err
        assert said == (name not in ("table1", "faces")), name


def test_reproduce_stops_at_its_budget_and_goes_on(demo, capsys, monkeypatch):
    monkeypatch.setattr("companion.runs.catalogue.jobs", lambda *_: [measurement.job_of(tiny(seed=s)) for s in (0, 1)])

    def said(*options):
        assert main(["reproduce", "--profile", "smoke", "--dataset", "demo", *options]) == 0
        return capsys.readouterr().out

    assert "0 of 2 runs are done; the same command goes on with smoke/demo" in said("--budget", "0s")
    assert "2 of 2 runs are done" in said("--budget", "10min", "--device", "cpu")
    assert said("--list").count("done") == 2


def test_a_closed_pipe_is_no_error(root):
    command = f"{sys.executable} -m companion reproduce --profile smoke --dataset demo --list | head -1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert run.stdout.count("\n") == 1 and not run.stderr


def test_durations():
    assert [duration("budget", t) for t in ("90s", "10min", "2m", "1.5h", "2d")] == [90, 600, 120, 5400, 172800]


def test_what_is_measured_is_not_trained_for(root, monkeypatch):
    monkeypatch.setattr(sets, "is_here", lambda dataset: True)
    monkeypatch.setattr(denoising.Case, "load", lambda _: {})
    assert catalogue.job_on_db11("csf", "reference").missing() == []
