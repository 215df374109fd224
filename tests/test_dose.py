"""Dose and ladder: shares for any k, what is paired with what, what is drawn, and nothing measured."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from companion import judge
from companion.claims import claims
from companion.pages import dose
from companion.runs import catalogue
from companion.show import sentences
from companion.training import results
from odl import paper
from odl.experiment import Experiment
from odl.learn import allocation
from odl.schedules import SCHEDULES, begin

SEEDS = [0, 1, 2]
AHEAD = {-1: -0.3, 1: 0.2, 4: 0.5}  # dB that a made-up k is worth
DOSES = {-1: 0.01, 1: 0.01, 4: 0.04}


@given(st.lists(st.floats(1, 60), min_size=2, max_size=8), st.sampled_from([*dose.NAMES]))
def test_shares_are_those_of_exact_fractions(psnr, k):
    weights = [Fraction(p) ** -k for p in psnr]
    np.testing.assert_allclose(dose.shares(psnr, k), [float(w / sum(weights)) for w in weights], rtol=1e-9)


def divided(experiment, psnr):
    return allocation(experiment, begin(SCHEDULES[experiment.schedule]), 1, psnr)[0]


@settings(max_examples=50)
@given(st.lists(st.floats(1, 60), min_size=5, max_size=5), st.sampled_from([-1, 0, 1, 4, 0.5]))
def test_training_divides_its_batches_so(psnr, k):
    """Within what a level is still owed; at k = 0 rigid joint learning and at k = 1 Equation 3, to the image."""
    experiment = Experiment.of(profile="smoke", iterations=50, batch_size=32, sharpness=k)
    counts = divided(experiment, psnr)
    np.testing.assert_allclose(counts.mean(0), 32 * dose.shares(psnr, k), atol=1 / 50)
    if k in (0, 1):
        same = replace(experiment, schedule="on_demand" if k else "rigid_joint", sharpness=1.0)
        assert np.array_equal(counts, divided(same, psnr))


def error(psnr: float) -> float:
    """The squared error (‰) of images that all have this PSNR."""
    return 1000 * 10 ** (-psnr / 10)


def made_up(e: Experiment) -> results.Result:
    """A run whose seed moves it by a dB, and whose k is worth `AHEAD`, a little more or less with the seed."""
    k = e.sharpness if e.schedule == "on_demand" else 0
    psnr = 25 + e.seed + AHEAD.get(k, 0) + (0.02 * (e.seed - 1) if k else 0)
    frame = pd.DataFrame([(t, str(i), psnr, 20.0) for t in (0, 1) for i in range(1, 7)])
    frame.columns = ["trial", "level", "psnr", "psnr_input"]
    frame["l2"] = error(psnr)
    return results.Result(e.asdict(), {}, [{"dose": DOSES.get(k, 0)}] * 2, frame, None)


@pytest.fixture
def measured(monkeypatch):
    """Everything is measured, but for the second seed of k = 4."""
    monkeypatch.setattr(results, "load_result", lambda e: None if (e.sharpness, e.seed) == (4, 1) else made_up(e))


def test_margins_are_paired_by_seed(measured):
    table = dose.doses_table(catalogue.every_k("smoke", "demo", SEEDS))
    assert len(table) == len(paper.TASKS) * 3 and list(table)[:15] == dose.COLUMNS
    row = table[(table.task == "deblur") & (table.k == 1)].iloc[0]
    assert row.margins == pytest.approx([0.18, 0.20, 0.22]) and row.dose == pytest.approx(1.0)
    assert (row.low, row.high) == pytest.approx(stats.t.interval(0.95, 2, 0.2, stats.sem([0.18, 0.20, 0.22])))
    assert row.verdict == judge.REPRODUCED and (row.width, row.steps) == (8, 6)
    assert set(table.verdict[table.k == -1]) == {judge.REVERSED}
    sharp = table[table.k == 4].iloc[0]
    assert sharp.margins == pytest.approx([0.48, 0.52]) and sharp.verdict == judge.UNDECIDED


@pytest.mark.parametrize(("dataset", "least"), [("demo", -1), ("celeba10k-native", -4)])
def test_the_level_that_gets_more_images_is_compared_with_the_one_that_gets_fewer(monkeypatch, dataset, least):
    """k = 4 raises level 5 above level 1 and a negative k level 1 above level 5, as they should; k = 1 goes wrong."""

    def load(e):
        run, frame = made_up(e), made_up(e).evaluation
        turn = {4: 0.1, least: -0.05, 1: -0.2}.get(e.sharpness) if e.schedule == "on_demand" else 0
        return replace(run, evaluation=frame.assign(psnr=frame.psnr + turn * frame.level.astype(int)))

    monkeypatch.setattr(results, "load_result", load)
    lines = dose.describe_levels(catalogue.every_k("smoke", dataset, SEEDS)).splitlines()
    words, margins = ("reproduced", "reversed", "reproduced"), ("+0.20", "−0.80", "+0.40")
    for line, word, margin in zip(lines, words, margins, strict=True):
        assert f"**{word}**" in line and line.count(f"{margin} dB [{margin}, {margin}]") == len(paper.TASKS)
    assert lines[0].startswith(f"- k = −{-least}, level 1 − level 5:") and "k = 4, level 5 − level 1:" in lines[2]


def test_pull_share_and_outcome_of_each_level_by_hand():
    """Two seeds have k = 4 and three k = 1; nothing has k = −1, and of the other tasks nothing is measured."""
    margins, runs = {1: [0.1, 0.3, 0.5], 4: [0.2, 0.6]}, {}
    for seed, k in product(range(3), (0, 1, 4)):
        if seed < len(margins.get(k, SEEDS)):
            e = Experiment.of("deblur", "demo", dose.NAMES[k].split(",")[0], seed, "smoke")
            psnr = [30 - i + (i * margins[k][seed] if k else 0) for i in range(1, 7)]
            frame = pd.DataFrame([(0, str(i), psnr[i - 1]) for i in range(1, 7)], columns=["trial", "level", "psnr"])
            history = [{"allocation": [9] * 5}, {"allocation": [20 + k * (i - 3) + seed for i in range(1, 6)]}]
            runs["deblur", dose.NAMES[k], seed] = results.Result(e.asdict(), {}, history, frame, None)
            norms = pd.DataFrame([(0, str(i), i + seed) for i in range(1, 6)], columns=["trial", "level", "norm"])
            key = "gradients", "deblur rigid_joint", seed
            runs[key] = results.Result(e.asdict(), {}, [], norms, None)
    table = dose.levels_table(judge.Evidence(runs))
    shown = dose.show_levels(table).data
    assert len(shown) == 5 and shown["k = 4", "− rigid joint (dB)"].iloc[-1] == "+2.00"
    assert list(table.k) == [1] * 5 + [4] * 5 and {*table.task} == {"deblur"} and {*table.seeds} == {2, 3}
    for row in table.itertuples():
        assert row.pull == pytest.approx(sum((row.level + seed) / (1 + seed) for seed in SEEDS) / 3)
        own = [row.level * margin for margin in margins[row.k]]
        assert row.share == pytest.approx(20 + row.k * (row.level - 3) + (len(own) - 1) / 2)
        assert row.margin == pytest.approx(np.mean(own)) and np.isnan(row.low) == (row.k == 4)
        if row.k == 1:
            assert (row.low, row.high) == pytest.approx(stats.t.interval(0.95, 2, np.mean(own), stats.sem(own)))


@pytest.mark.parametrize(("turned", "word"), [(1, judge.REPRODUCED), (-1, judge.MIXED)])
def test_the_slope_of_the_margin_on_the_dose_against_least_squares(turned, word):
    """Where the squared error falls as the PSNR does, the two scores disagree."""
    margins, doses = {-4: 0.3, 0: 0, 1: -0.05, 4: -0.5}, {-4: 0.03, 0: 0, 1: 0.01, 4: 0.04}
    runs = {}
    for task, seed, k in product(paper.TASKS, SEEDS, margins):
        run = made_up(Experiment.of(task, "demo", "on_demand", seed, "smoke"))
        psnr = 25 + margins[k] * (1 + 0.1 * seed)
        history, l2 = [{"dose": doses[k]}], error(25 + turned * (psnr - 25))
        frame = run.evaluation.assign(psnr=psnr, l2=l2)
        runs[task, dose.NAMES[k], seed] = replace(run, evaluation=frame, history=history)
    x = 100 * np.array([-doses[-4], doses[1], doses[4]])
    y = np.array([margins[k] for k in (-4, 1, 4)])
    expected = np.linalg.lstsq(x[:, None], y, rcond=None)[0][0] * 1.1
    found = dose.judge_slope(judge.Evidence(runs))
    assert found.parts[""].mean == pytest.approx(expected) and found.word == word
    errors = [[error(25 + turned * db * (1 + 0.1 * seed)) - error(25) for seed in SEEDS] for db in y]
    each = np.linalg.lstsq(x[:, None], errors, rcond=None)[0][0]
    assert dose.slopes(judge.Evidence(runs), "l2") == pytest.approx(each)
    del runs["deblur", "rigid_joint", 0]
    assert len(dose.slopes(judge.Evidence(runs), "l2")) == 2


@pytest.mark.parametrize(("turned", "word"), [(1, judge.REPRODUCED), (-1, judge.MIXED)])
def test_the_confound_is_what_the_lead_loses_with_the_other_decay(turned, word):
    runs = {}
    leads = {"": 0.3, ", decay 0.4": 0.1}
    for task, seed, decay in product(catalogue.CONFOUNDED, SEEDS, leads):
        for name, lead in (("cumulative_curriculum", leads[decay]), ("on_demand", 0)):
            run = made_up(Experiment.of(task, "demo", "on_demand", seed, "smoke"))
            psnr = 25 + lead * (1 + 0.01 * seed) + (1 if decay else 0)
            frame = run.evaluation.assign(psnr=psnr, l2=error(25 + turned * (psnr - 25)))
            runs[task, name + decay, seed] = replace(run, evaluation=frame)
    found = dose.judge_decay(judge.Evidence(runs))
    assert found.word == word
    assert [part.mean for part in found.measured.values()] == pytest.approx([0.2 * 1.01] * 2)


def texts(figure) -> str:
    return " ".join(text.get_text() for axis in figure.axes for text in axis.texts)


@pytest.mark.parametrize("profile", ["smoke", "reference", "gpu", "paper"])
def test_an_empty_project_is_no_error(root, profile):
    experiments = catalogue.every_k(profile, "demo", [0])
    settings, ladder = dose.doses_table(experiments), dose.doses_table(catalogue.ladder(profile, "demo", [0]))
    assert texts(dose.plot_margins(dose.doses_table([]))).split(judge.MISSING) == [""] + 3 * [" "] + [""]
    assert set(settings.verdict) == {judge.MISSING} and not settings.seeds.any()
    assert texts(dose.plot_margins(settings)).count("k = −1, 1, 4: to be measured") == 4
    assert texts(dose.plot_ladder(ladder)).count(judge.MISSING) == (6 if len(ladder) else 0)
    for html in (dose.show_doses(settings, "k").to_html(), dose.show_doses(ladder, "width", "steps").to_html()):
        assert "nan" not in html.lower()
    third = dose.describe_strongest_rival(catalogue.ladder(profile, "demo", [0]))
    assert dose.describe_doses(experiments) == dose.describe_levels(experiments) == third == sentences.QUESTION_OPEN
    assert not [path for path in root.rglob("*") if path.is_file()]
    plt.close("all")


def test_a_task_of_a_readers_own_leaves_the_questions_of_the_paper_alone(monkeypatch):
    """Every verdict on faces, and the shares of the dose page, are of the paper's tasks, whatever else is known."""

    def found() -> list:
        evidence = claims.load_evidence("reference", "celeba10k-native", [10, 11, 12, 13, 14])
        return [claims.claims_table(claims.judge_claims(evidence)).to_csv(), dose.slopes(evidence, "psnr")]

    before = found()
    monkeypatch.setitem(paper.TASKS, "speckle", paper.TASKS["denoise"] | {"title": "Speckle removal"})
    assert found() == before and before[1]
