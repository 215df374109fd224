"""Longer training: the runs, and what is said of their margins."""

import numpy as np
import pandas as pd
import pytest

from odl import longer, paper, reproduce, results
from odl.experiment import PROFILES

SEEDS = [0, 1]
LEVELS = "123456"


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("task", paper.TASKS)
def test_a_long_run_is_its_short_one_with_more_epochs_at_a_lower_rate(task, profile):
    runs = longer.runs(task, "demo", profile, SEEDS)
    for short, long in zip(runs["short"], runs["long"], strict=True):
        same = short.asdict().keys() - {"epochs", "learning_rate"}
        assert all(getattr(short, name) == getattr(long, name) for name in same) and not short.overrides
        assert long.epochs == 5 * short.epochs and long.learning_rate == short.learning_rate / 4
    assert len({e.run_id for length in runs for e in runs[length]}) == 2 * len(SEEDS) * 3


@pytest.mark.parametrize("profile", PROFILES)
def test_reproduce_trains_them_last_unless_runs_are_as_long_as_the_paper_s(profile):
    jobs = reproduce.jobs(profile, "demo", SEEDS)
    long = longer.runs("inpaint", "demo", profile, SEEDS)["long"]
    last = [job.experiment for job in jobs[-len(long) :]]
    assert (last == long) == (profile != "paper")
    assert (long[0] in [job.experiment for job in jobs]) == (profile != "paper")


def test_the_page_shows_both_lengths_and_no_other_page_shows_the_long_ones():
    jobs, runs = reproduce.jobs("smoke", "demo", SEEDS), longer.runs("inpaint", "demo", "smoke", SEEDS)
    shown = [job.experiment for job in reproduce.shown_on("longer", jobs)]
    assert {e.run_id for e in shown} == {e.run_id for length in runs for e in runs[length]}
    for page in ("table1-inpaint", "fixation", "allocation", "qualitative", "extra_data", "table2"):
        assert not {e.run_id for e in runs["long"]} & {
            job.experiment.run_id for job in reproduce.shown_on(page, jobs) if job.experiment
        }


def measured(scores: dict) -> dict:
    """length → results: scores are schedule → dB at seeds 0 and 1, for each length."""

    def result(schedule, seed, db, length):
        rows = [(trial, level, db + 0.01 * trial + int(level)) for trial in range(3) for level in LEVELS]
        evaluation = pd.DataFrame(rows, columns=["trial", "level", "psnr"]).assign(l2=1.0)
        epochs = {"short": 2, "long": 10}[length]
        given = {"task": "inpaint", "schedule": schedule, "seed": seed, "epochs": epochs, "iterations": 3, "width": 8}
        given |= {"learning_rate": 1e-3, "dataset": "demo", "test_images": 4, "trials": 3}
        where = {"train_images": 9, "device": "CPU", "precision": "fp32"}
        return results.Result(given, where, [], evaluation, None)

    return {
        length: [result(name, seed, db, length) for name, both in by.items() for seed, db in enumerate(both)]
        for length, by in scores.items()
    }


SCORES = {
    "short": {"on_demand": (20, 20.5), "rigid_joint": (20.3, 20.4), "staged_curriculum": (20.4, 20.9)},
    "long": {"on_demand": (23, 23.5), "rigid_joint": (22.6, 23.3), "staged_curriculum": (23.2, 23.9)},
}


def test_table_by_hand():
    table = longer.table(measured(SCORES), "inpaint").set_index("schedule")
    added = np.mean([0.01 * trial + int(level) for trial in range(3) for level in LEVELS])
    for length, by in SCORES.items():
        for name, both in by.items():
            assert table.at[name, f"psnr_{length}"] == pytest.approx(np.mean(both) + added)
            ahead = np.mean(by["on_demand"]) - np.mean(both) if name != "on_demand" else np.nan
            assert table.at[name, f"ahead_{length}"] == pytest.approx(ahead, nan_ok=True)
    assert table.at["rigid_joint", "paper_celeba"] == pytest.approx(32.30 - 32.11)
    assert table.at["staged_curriculum", "paper_sun397"] == pytest.approx(31.38 - 30.42)


@pytest.fixture
def nothing_on_disk(monkeypatch):
    monkeypatch.setattr(results, "load", lambda experiment: None)


def test_verdict_follows_the_rule_of_the_scorecard(nothing_on_disk):
    runs = longer.runs("inpaint", "demo", "smoke", SEEDS)
    text = longer.verdict(measured(SCORES), runs)
    assert (
        "Against rigid joint learning: after 6 iterations not decided (−0.30 to +0.10 dB); "
        "after 30 iterations on-demand is ahead, as in the paper (+0.20 to +0.40 dB)." in text
    )
    assert "Against staged curriculum: after 6 iterations on-demand is behind, unlike the paper" in text
    brought = "on-demand learning +3.00 dB, rigid joint learning +2.30 to +2.90 dB, staged curriculum +2.80 to +3.00 dB"
    assert brought in text


def test_what_is_not_measured_is_said(nothing_on_disk):
    runs = longer.runs("inpaint", "demo", "smoke", [0])
    text = longer.verdict({length: [] for length in longer.LENGTHS}, runs)
    assert text.startswith("Nothing is measured at this scale") and "rigid_joint-seed0-epochs=10" in text
    only_short = measured(SCORES) | {"long": []}
    assert "30 iterations" not in longer.verdict(only_short, runs).partition("Not measured")[0]
    one_seed = measured(SCORES)
    one_seed["long"] = [r for r in one_seed["long"] if r.experiment["seed"] == 1]
    assert longer.gains(one_seed)["rigid_joint"] == [pytest.approx(23.3 - 20.4)]
