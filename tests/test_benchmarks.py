"""`make bench` at sizes of seconds: every benchmark runs, its results are whole, and the page shows them."""

import json
from dataclasses import replace

import pytest
import speed
import torch

from bench import __main__ as bench
from bench import measure, training
from companion.disk import files


@pytest.mark.parametrize("name", bench.BENCHMARKS)
def test_every_benchmark_runs_and_its_results_reach_the_page(demo, capsys, monkeypatch, name):
    assert bench.main([name, "--quick", "--threads", "1", "--device", "cpu"]) == 0
    content = json.loads((files.runs() / "benchmarks" / "cpu-1-thread" / f"{name}.json").read_text())
    assert str(files.root()) not in str(content) and content["rounds"] == 1
    ratios = [*filter(None, (row["ours, times as fast"] for row in content["rows"]))]
    assert all(bar["low"] <= bar["median"] <= bar["high"] for bar in ratios) and ratios
    assert all(row["counts"] for row in content["rows"])  # every contestant does the same
    printed = capsys.readouterr().out
    assert all(column in printed for column in content["rows"][0])

    with pytest.raises(FileNotFoundError):
        speed.table(name)
    monkeypatch.setattr(files, "results", files.runs)
    assert all(text in speed.table(name) for text in (*content["rows"][0], "CPU, 1 thread"))


def test_the_gate_feeds_everyone_the_batches_of_the_epoch(demo):
    """BatchNorm's running means after one step tell which batch it was."""
    options = measure.Options("cpu", 1, 1, quick=True)
    experiment = replace(training.experiment_of(options, gate=True), iterations=1)
    means = []
    for name in ("naive", "eager fp32", *(["deepinv"] if measure.version_of("deepinv") else [])):
        contestant = training.BUILD[name](experiment, options)
        contestant.learn()
        means.append(contestant.network.encoder[1].running_mean)
    for other in means:
        torch.testing.assert_close(other, means[0], atol=1e-7, rtol=1e-4)
    step = replace(experiment, seed=1)
    assert not torch.equal(*(next(training.same_batches(e, "cpu"))[0] for e in (experiment, step)))
