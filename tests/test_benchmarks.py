"""`make bench` at sizes of seconds: every benchmark runs, its results are whole, and the page shows them."""

import json
from pathlib import Path

import pytest
import speed

from bench import __main__ as bench
from bench import corruptions, measure
from odl.machine import files

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No original photographs but those of scikit-image."""
    monkeypatch.delenv("ODL_DATA", raising=False)


def in_this_process(function, options, environment=None, **given):
    """In the place of a process of its own, which takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in (environment or {}).items():
            patch.setenv(variable, value)
        return function(options, **given)


@pytest.mark.parametrize("name", bench.BENCHMARKS)
def test_every_benchmark_runs_and_its_results_reach_the_page(demo, monkeypatch, capsys, name):
    monkeypatch.setattr(measure, "in_child", in_this_process)
    assert bench.main([name, "--quick", "--threads", "1", "--device", "cpu"]) == 0
    path = files.runs() / "benchmarks" / "cpu-1-thread" / f"{name}.json"
    content = json.loads(path.read_text())
    assert content["benchmark"] == name and content["rounds"] == 1
    assert set(content["provenance"]) >= {"commit", "device", "threads", "versions"}
    assert str(ROOT) not in path.read_text() and str(files.root()) not in path.read_text()
    assert all(bar["low"] <= bar["median"] <= bar["high"] for bar in content["comparisons"])
    assert all(row.get("counts", True) for row in content["rows"])  # a contestant who does the same
    printed = capsys.readouterr().out
    assert all(column in printed for column in content["rows"][0])

    with pytest.raises(FileNotFoundError):
        speed.table(name)
    shown = files.results() / "benchmarks" / "cpu-1-thread" / f"{name}.json"
    shown.parent.mkdir(parents=True)
    shown.write_bytes(path.read_bytes())
    page = speed.table(name)
    assert all(text in page for text in (*content["rows"][0], *content.get("notes", ()), "CPU, 1 thread"))
    speed.ratios().savefig(files.root() / "figure.svg")


def test_a_benchmark_that_fails_costs_one_line_and_the_others_go_on(demo, monkeypatch, capsys):
    def broken(options):
        raise RuntimeError("no\nluck")

    monkeypatch.setattr(corruptions, "run", broken)
    assert bench.main(["--quick", "--threads", "1", "corruptions", "whole_images"]) == 1
    captured = capsys.readouterr()
    assert "bench: corruptions: RuntimeError: no luck" in captured.err and "whole_images.json" in captured.out
