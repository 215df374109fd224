"""Many runs: order, a budget, Ctrl-C, and side by side equal to alone."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil
import pytest
from conftest import tiny

from companion import published
from companion.cli import companion, duration
from companion.data import sets
from companion.disk import files
from companion.runs import catalogue, sweep
from companion.training import results
from companion.training.measurement import Measurement, lock_of, missing
from odl.experiment import Experiment
from odl.parameters import ParameterError

ROOT = Path(__file__).resolve().parents[1]
FACES = "reference", "celeba10k-native", catalogue.SEEDS_OF_FACES
CONTENT = {"provenance": {}, "evaluation": {"level": ["1"]}}


def made(path, make, needs=()) -> Measurement:
    """A measurement of something that is no run."""
    return Measurement(path, {"name": path.stem}, make, 100, needs)


def content(device, progress):
    return CONTENT


def test_a_page_that_lacks_runs_names_the_seeds_that_it_was_asked_for(demo, capsys):
    """Not that of the fill that learns nothing, which has none."""
    experiments = catalogue.runs("table2", "inpaint", "demo", "smoke", [3])
    wanted = [catalogue.measurements_of(experiment)[-1] for experiment in experiments]
    assert sweep.results_of(wanted, train=False, page="table2") == []
    assert capsys.readouterr().out.endswith("--page table2 --seeds 3.\n")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_is_raised_last_and_stops_nothing_but_what_needs_it(root, workers):
    def fail(device, progress):
        raise RuntimeError("no room")

    home = files.results()
    broken = made(home / "broken.json", fail)
    needs, other = (made(home / f"{n}.json", content, need) for n, need in (("needs", (broken,)), ("other", ())))
    with pytest.raises(RuntimeError, match="no room"):
        sweep.run_all([needs, other], "cpu", workers)
    assert other.load() and missing([needs, other]) == [broken, needs]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_checkpoint_holds_does_not_count_as_fast(root, tmp_path, monkeypatch, workers):
    """Of two runs that go on at 90 %, the bar's speed counts the last tenths alone."""

    bars, show = [], sweep.show

    def resumed(seen, device, progress):
        progress(0.9)
        while not seen.exists():
            time.sleep(0.01)
        return CONTENT

    def shown(bar, n, before, todo, resumed, shares):
        bars.append(bar)
        show(bar, n, before, todo, resumed, shares := [*shares])
        for one, share in zip(todo, shares, strict=True):
            if share == 0.9:
                (tmp_path / one.path.stem).touch()

    monkeypatch.setattr(sweep, "show", shown)
    todo = [made(files.results() / f"{name}.json", partial(resumed, tmp_path / name)) for name in "ab"]
    sweep.run_all(todo, "cpu", workers)
    assert bars[0].n == 200 and bars[0].initial == pytest.approx(180)


def left_by(experiments, device="cpu", **how):
    """Weights, history and evaluation of each, bit for bit."""
    measured = sweep.run_many(experiments, device, **how)
    weights = [(files.runs() / e.run_id / "weights.safetensors").read_bytes() for e in experiments]
    return [(w, r.history, r.evaluation.to_csv()) for w, r in zip(weights, measured, strict=True)]


def test_side_by_side_equals_alone(demo, elsewhere):
    """Bit for bit: runs in two processes against one after the other."""
    experiments = [tiny(schedule=schedule, seed=seed) for schedule in ("on_demand", "hard_mining") for seed in (0, 1)]
    beside = left_by(experiments, workers=2)
    with elsewhere():
        assert beside == left_by(experiments, workers=1)
    assert len({weights for weights, *_ in beside}) == len(beside)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_deadline_stops_what_runs_and_starts_nothing_more(root, monkeypatch, capsys, workers):
    """In this process and in others, though the clock is set back and another process has one of them."""

    def forever(device, progress):
        for i in range(10**9):
            progress(i / 10**9)
            time.sleep(0.001)

    monkeypatch.setattr(time, "time", lambda: 0.0)
    endless = [made(files.results() / f"{i}.json", forever) for i in range(4)]
    start = time.monotonic()
    with lock_of(endless[0].path):
        sweep.run_all(endless, "cpu", workers, start + 1)
    assert time.monotonic() - start >= 1  # and they would take days
    assert "0 of 4 results" in capsys.readouterr().err


NUMBERS = {"profile": "smoke", "epochs": 2000, "iterations": 1, "batch_size": 20}
ENDLESS = f"""
import signal
from companion.runs import sweep
from odl.experiment import Experiment
from companion.disk import progress

progress.FIRST = progress.EVERY = 0
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    sweep.run_many([Experiment.of("interpolate", seed=seed, **{NUMBERS}) for seed in (0, 1)], "cpu", workers=2)
"""


def endless(folder, until=rb" (?:[2-9]|\d\d) %"):
    """A sweep of two endless runs in a process of its own, when it has said `until`: that both have trained a while."""
    script = folder / "endless.py"
    script.write_text(ENDLESS)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, env=env, start_new_session=True)
    shown = b""
    while not re.search(until, shown, re.DOTALL):
        shown += process.stderr.read1()
        assert process.poll() is None, shown
    return process


def interrupt_kernel(pid, sent):
    """As in a notebook, whose kernel a moment later terminates its children, which are writing then."""
    children = psutil.Process(pid).children()
    os.kill(pid, sent)
    time.sleep(0.05)
    for child in children:
        child.terminate()
    assert len(children) >= 2


STOPS = [(os.kill, signal.SIGINT), (os.kill, signal.SIGKILL), (os.killpg, signal.SIGTERM)]


@pytest.mark.parametrize(("send", "sent"), [*STOPS, (interrupt_kernel, signal.SIGINT)])
def test_a_signal_ends_all_workers_with_their_checkpoints(demo, send, sent):
    """Ctrl-C, a death without a word, and what a notebook's kernel gets that is shut down, its children too."""
    process = endless(demo)
    send(process.pid, sent)
    process.communicate(timeout=60)  # until the workers, which hold the pipe, have ended
    assert process.returncode == -sent
    assert len([*(demo / "runs").rglob("checkpoint.pt")]) == 2 and not [*(demo / "runs").rglob("*.tmp")]


def test_ctrl_c_ends_runs_that_wait_for_another_process(demo):
    with ExitStack() as held:
        for seed in (0, 1):
            experiment = Experiment.of("interpolate", seed=seed, **NUMBERS)
            held.enter_context(lock_of(results.path_of(experiment)))
        process = endless(demo, b"waiting for another process.*waiting for another process")
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize("dataset", ["demo", "celeba10k-native"])
def test_nothing_is_listed_twice_and_what_is_needed_comes_first(dataset):
    """Also runs that other runs need: a sum over the list counts them once."""
    listed = catalogue.measurements("smoke", dataset, [10, 11])
    paths = [one.path for one in listed]
    assert len(paths) == len({*paths})
    pairs = [(need, one) for one in listed for need in one.needs]
    assert all(paths.index(need.path) < paths.index(one.path) for need, one in pairs if need.path in paths)
    others = {need.path for need, one in pairs if need.experiment != one.experiment}
    assert len(others) == (dataset != "demo") * (20 + 4 + 10)  # specialists, two runs of two tasks recorded, composite


def test_blocks_of_the_campaign_come_in_the_order_that_they_are_asked_for(monkeypatch):
    """Counted by hand: tasks × schedules × seeds, and what is measured beside where the eleven photographs are not."""
    monkeypatch.setattr(catalogue, "photographs_here", lambda profile: False)
    counts = {"N1": 40, "N2": 48, "N2-shares": 24, "N3": 27 + 8, "N3-rules": 15, "E3": 24 + 24 + 18, "E3-hard": 24}
    counts |= {"E4": 10 + 10 + 6, "E4-feedback": 10, "E2": 6 * (5 + 5 + 3 + 3), "long": 4 * 2}  # without long-more
    for name, count in counts.items():
        assert len(catalogue.measurements(*FACES, [name])) == count, name
    as_planned, turned = (catalogue.runs_of_blocks(*FACES[:2], seeds) for seeds in (FACES[2], FACES[2][::-1]))
    assert turned == as_planned
    some = catalogue.measurements(*FACES[:2], [11, 12, 13], ["minimax_gap"])  # whose specialists are those of seed 10
    assert {one.experiment.seed for one in some if one.experiment.schedule in published.SPECIALISTS} == {10}
    both = [one.experiment for one in catalogue.measurements(*FACES, ["N3", "N1"])]
    assert both[0].schedule == "cumulative_curriculum" and both[-1].schedule == "rigid_joint"
    with pytest.raises(ParameterError, match="block='N4' is not one of contest, .*nearest: 'N1'"):
        catalogue.measurements(*FACES, ["N4"])


def test_reproduce_says_that_it_leaves_out_what_needs_photographs(root, no_shared_data, capsys):
    of = {"table3": ["--page", "table3"], "table1": ["--page", "table1-deblur"], "all": ["--page", "scorecard"]}
    of |= {"denoise": ["--page", "table3-denoise"], "faces": ["--dataset", "celeba10k-native"], "whole": []}
    for name, options in of.items():
        assert companion(["reproduce", "--list", "--seeds", "0", *options]) == 0
        said = "python -m odl data prepare db11" in capsys.readouterr().err
        assert said == (name not in ("table1", "faces")), name


def test_reproduce_stops_at_its_budget_and_goes_on(demo, capsys, monkeypatch):
    runs = [results.measurement_of(tiny(seed=seed)) for seed in (0, 1)]
    monkeypatch.setattr(catalogue, "measurements", lambda *_: runs)

    def said(*options):
        assert companion(["reproduce", "--profile", "smoke", "--dataset", "demo", *options]) == 0
        return capsys.readouterr().out

    assert "0 of 2 results are here; the same command goes on with smoke/demo" in said("--budget", "0s")
    assert "2 of 2 results are here" in said("--budget", "10min", "--device", "cpu")
    assert said("--list").count("done") == 2


def test_a_closed_pipe_is_no_error(root):
    command = f"{sys.executable} -m companion reproduce --profile smoke --dataset demo --list | head -1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert run.stdout.count("\n") == 1 and not run.stderr


def test_durations():
    assert [duration("budget", t) for t in ("90s", "10min", "2m", "1.5h", "2d")] == [90, 600, 120, 5400, 172800]


def test_a_denoiser_is_trained_only_where_something_of_it_is_missing(root, monkeypatch):
    monkeypatch.setattr(sets, "is_here", lambda dataset: True)
    monkeypatch.setattr(files, "shipped", files.models)
    listed = catalogue.of_opponent("csf", "reference")
    paths = [one.path for one in listed]
    assert paths[0].suffix == ".safetensors" and [one.path for one in missing(listed[1:])] == paths
    monkeypatch.setattr(Measurement, "load", lambda _: object())
    assert [one.path for one in catalogue.of_opponent("csf", "reference")] == paths[1:]
