"""The scorecard: in a world where the paper is right every claim is reproduced, in the opposite world none is."""

import json
import random

import numpy as np
import pandas as pd
import pytest

from odl import blocks, denoising, judge, measures, paper, plots_scorecard, results, scorecard
from odl.comparators import context_encoder
from odl.experiment import Experiment
from odl.judge import FAILED, REPRODUCED, UNTESTED
from odl.measures import CENTRE, RANDOM, Measured

NUMBER = 31
NO_OPPONENT = [NUMBER]  # the MLP is not run
CLAIMS = [number for number in range(1, NUMBER + 1) if number not in NO_OPPONENT]
LEVELS = (*"123456", "easy", "hard")

# PSNR per level by schedule: as the paper says, and the opposite.
RIGHT = {
    "on_demand": dict.fromkeys(LEVELS, 30),
    "rigid_joint": dict.fromkeys(LEVELS, 28),
    "cumulative_curriculum": dict.fromkeys(LEVELS, 28),
    "cumulative_anti_curriculum": dict.fromkeys(LEVELS, 28),
    "staged_curriculum": dict.fromkeys(LEVELS, 14),
    "staged_anti_curriculum": {level: 28 - 2 * i for i, level in enumerate(LEVELS)},
    "hard_mining": dict.fromkeys(LEVELS, 25),
    "fixated_easy": dict.fromkeys(LEVELS, 24) | {"easy": 33},
    "fixated_hard": dict.fromkeys(LEVELS, 24) | {"hard": 33},
}
WRONG = {
    "on_demand": dict.fromkeys(LEVELS, 24),
    "rigid_joint": dict.fromkeys(LEVELS, 28),
    "cumulative_curriculum": dict.fromkeys(LEVELS, 28),
    "cumulative_anti_curriculum": dict.fromkeys(LEVELS, 28),
    "staged_curriculum": dict.fromkeys(LEVELS, 30),
    "staged_anti_curriculum": {level: 20 + 2 * i for i, level in enumerate(LEVELS)},
    "hard_mining": dict.fromkeys(LEVELS, 30),
    "fixated_easy": dict.fromkeys(LEVELS, 30) | {"easy": 20},
    "fixated_hard": dict.fromkeys(LEVELS, 30) | {"hard": 20},
}
ALLOCATIONS = {True: [[20] * 5, [17, 18, 20, 22, 23]], False: [[20] * 5, [40, 30, 20, 7, 3], [5, 50, 40, 5, 0]]}
EXTRA = {True: (30, 28, 28), False: (24, 26, 28)}  # on-demand half, rigid joint half, rigid joint all
BLOCKS = {
    True: {CENTRE: (25, 12), RANDOM: (15, 15), "on_demand": (22, 21.7)},
    False: {CENTRE: (19, 19), RANDOM: (30, 30), "on_demand": (22, 15)},
}


def frame(psnr: dict, seed=0, trials=3) -> pd.DataFrame:
    """An evaluation whose trials and seeds differ a little; L2 from PSNR."""
    noise = np.random.default_rng(seed).normal(0, 0.003, (trials, len(psnr)))
    rows = [(t, level, db + noise[t, i]) for t in range(trials) for i, (level, db) in enumerate(psnr.items())]
    table = pd.DataFrame(rows, columns=["trial", "level", "psnr"])
    return table.assign(l2=1000 * 10 ** (-table.psnr / 10))


def result(evaluation, history=()) -> results.Result:
    return results.Result({}, {}, list(history), evaluation, None)


def world(right: bool, seeds=(0, 1)) -> Measured:
    """Everything measured, as the paper says or the opposite."""
    runs, scores = {}, RIGHT if right else WRONG
    history = [{"allocation": counts} for counts in ALLOCATIONS[right]]
    for seed in seeds:
        for i, (schedule, psnr) in enumerate(scores.items()):
            for task in paper.TASKS:
                runs[task, schedule, seed] = result(frame(psnr, 10 * seed + i), history)
        for name, db in zip(results.EXTRA_DATA, EXTRA[right], strict=True):
            runs["inpaint", name, seed] = result(frame(dict.fromkeys(LEVELS, db), seed))
        for method, scores_of in BLOCKS[right].items():
            runs["blocks", method, seed] = result(frame(dict(zip(blocks.BLOCKS, scores_of, strict=True)), seed))
    return Measured(runs, table3(2 if right else -2), spectrum(right))


def table3(lead: float) -> pd.DataFrame:
    """Both systems `lead` dB ahead of the best published number of every image, on clipped noise."""
    best = {image: max(list(row.values())[:6]) for image, row in paper.TABLE3.items()}
    rows = [
        (i, s, clip, db + lead * clip) for i, db in best.items() for s in ("on_demand", "fixated") for clip in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["image", "system", "clipped", "psnr"]).astype({"clipped": bool})


def spectrum(right: bool) -> pd.DataFrame:
    rows = []
    for sigma in denoising.SPECTRUM:
        loss = 8 if right and sigma > 25 else 0.5
        rows += [("bm3d", None, sigma, 30), ("bm3d", 25, sigma, 30 - loss)]
        rows.append(("on_demand", None, sigma, 30.6 if right else 25))
    return pd.DataFrame(rows, columns=["system", "told", "sigma", "psnr"])


NOTHING = Measured({}, table3(float("nan")), spectrum(True).assign(psnr=float("nan")))


def verdicts(measured: Measured) -> dict:
    table = scorecard.score_all(measured, "smoke", "demo")
    return dict(zip(table.number, table.verdict, strict=True))


AS_PUBLISHED, OPPOSITE, EMPTY = (verdicts(w) for w in (world(True), world(False), NOTHING))


@pytest.mark.parametrize("number", CLAIMS)
def test_every_claim_can_be_reproduced_and_can_fail(number):
    assert (AS_PUBLISHED[number], OPPOSITE[number], EMPTY[number]) == (REPRODUCED, FAILED, UNTESTED)


def test_there_are_about_thirty_claims_in_five_sections():
    table = scorecard.score_all(NOTHING, "smoke", "demo")
    assert list(table) == scorecard.COLUMNS and len(table) == NUMBER == table.claim.nunique()
    assert tuple(table.section.unique()) == scorecard.SECTIONS
    assert (table.verdict == UNTESTED).all() and (table.scale == "–").all()
    assert all(table[column].str.strip().all() for column in ("place", "claim", "paper", "test"))


@pytest.mark.parametrize("margin", [0.02, 0.5])
def test_one_seed_decides_no_close_contest(margin):
    """On-demand ahead of all rivals by a little, in every task and trial."""
    near = {name: dict.fromkeys(LEVELS, 28 if name == "on_demand" else 28 - margin) for name in RIGHT}
    runs = {(t, n, 0): result(frame(psnr), [{"allocation": [20] * 5}]) for t in paper.TASKS for n, psnr in near.items()}
    found = verdicts(Measured(runs, NOTHING.table3, NOTHING.spectrum))
    assert {found[number] for number in (*range(1, 5), *range(9, 15))} == {UNTESTED}


def test_two_seeds_decide_it_when_both_carry_it():
    def runs(*margins):
        found = {}
        for seed, margin in enumerate(margins):
            for name in RIGHT:
                psnr = dict.fromkeys(LEVELS, 28 + margin * (name == "on_demand"))
                found |= {(task, name, seed): result(frame(psnr, seed)) for task in paper.TASKS}
        return Measured(found, NOTHING.table3, NOTHING.spectrum)

    for margins, expected in (
        ((0.3, 0.2), REPRODUCED),
        ((0.3, 0.05), UNTESTED),
        ((0.3, -0.3), UNTESTED),
        ((-0.3, -0.2), FAILED),
    ):
        assert measures.best_of_seven(runs(*margins), "inpaint")[1] == expected
        assert measures.hard_mining(runs(*margins))[1] == expected


def test_one_rival_that_is_not_measured_keeps_on_demand_from_being_best():
    measured = world(True)
    for seed in (0, 1):
        del measured.runs["deblur", "hard_mining", seed]
    value, verdict = measures.best_of_seven(measured, "deblur")
    assert verdict == UNTESTED and "5 of 6 rivals measured" in value and "not decided" in value
    assert measures.best_of_seven(measured, "inpaint")[1] == REPRODUCED


def test_one_task_that_fails_is_enough():
    measured = world(True)
    for seed in (0, 1):
        measured.runs["denoise", "hard_mining", seed] = result(frame(dict.fromkeys(LEVELS, 33)))
    assert measures.hard_mining(measured)[1] == measures.best_of_seven(measured, "denoise")[1] == FAILED


@pytest.mark.parametrize(
    ("level", "schedule", "measure"),
    [
        ("6", "rigid_joint", measures.level_6),
        ("1", "fixated_easy", measures.random_places),
        ("6", "fixated_hard", measures.random_places),
    ],
)
def test_a_claim_about_one_level_looks_at_that_level(level, schedule, measure):
    """A rival ahead on one level only."""
    measured = world(True)
    for seed in (0, 1):
        psnr = RIGHT[schedule] | {level: 33}
        measured.runs["inpaint", schedule, seed] = result(frame(psnr, seed))
    assert measure(measured)[1] == FAILED
    assert measures.best_of_seven(measured, "inpaint")[1] == REPRODUCED
    assert measures.fixated_behind(measured, "inpaint")[1] == REPRODUCED


def test_seeds_are_paired():
    """Seed 1 is 5 dB easier for everybody; on-demand has seed 0, its rival seed 1: nothing to compare."""
    runs = {("inpaint", "on_demand", 0): result(frame(RIGHT["on_demand"]))}
    runs["inpaint", "rigid_joint", 1] = result(frame(dict.fromkeys(LEVELS, 33)))
    assert judge.gaps(runs, "inpaint", "on_demand", "rigid_joint") == []
    runs["inpaint", "rigid_joint", 0] = result(frame(dict.fromkeys(LEVELS, 28)))
    assert judge.gaps(runs, "inpaint", "on_demand", "rigid_joint") == pytest.approx([2], abs=0.02)


def test_l2_and_psnr_agree_where_every_level_is_alike():
    runs = {("inpaint", n, 0): result(frame(dict.fromkeys(LEVELS, db), 3)) for n, db in (("a", 30), ("b", 28.5))}
    assert judge.gaps(runs, "inpaint", "a", "b", column="l2") == pytest.approx([1.5], abs=1e-3)


def test_the_six_published_denoisers_are_counted_as_in_the_paper():
    assert [measures.images_won(system) for system in ("on_demand", "fixated")] == [5, 7]


@pytest.mark.parametrize("seed", range(5))
def test_any_part_may_be_missing(seed):
    """No error, and nothing that is wrong in a whole world is right in a part of it."""
    chance = random.Random(seed)
    for right, opposite in ((True, FAILED), (False, REPRODUCED)):
        whole = world(right, (0, 1, 2))
        runs = {key: run for key, run in whole.runs.items() if chance.random() < 0.5}
        holes = [whole.table3, whole.spectrum]
        holes = [f.assign(psnr=f.psnr.where([chance.random() < 0.5 for _ in range(len(f))])) for f in holes]
        assert opposite not in verdicts(Measured(runs, *holes)).values()


@pytest.mark.parametrize("margins", [[], [0.1], [1.0], [-1.0], [0.1, 0.3], [-0.1, -0.3], [2.0, -2.0]])
def test_margins_that_decide_nothing(margins):
    assert judge.decide(margins) == UNTESTED


# On disk


def write(experiment, evaluation, path=None, history=()):
    path = path or results.path_of(experiment)
    path.parent.mkdir(parents=True, exist_ok=True)
    where = {"train_images": 9, "device": "CPU", "precision": "fp32"}
    content = {"experiment": experiment if isinstance(experiment, dict) else experiment.asdict(), "provenance": where}
    path.write_text(json.dumps(content | {"history": list(history), "evaluation": evaluation}))


def write_world(folder):
    """Two seeds at the smoke profile."""
    for seed in (0, 1):
        ours = Experiment.of("inpaint", "demo", "on_demand", seed, "smoke")
        for task in paper.TASKS:
            for i, (name, psnr) in enumerate(RIGHT.items()):
                history = [{"psnr": [20] * 5, "allocation": counts} for counts in ALLOCATIONS[True]]
                run = Experiment.of(task, "demo", name, seed, "smoke")
                write(run, frame(psnr, 10 * seed + i).to_dict("list"), history=history)
        for name, db in (("on_demand", 30), ("rigid_joint", 28)):
            half = Experiment.of("inpaint", "demo", name, seed, "smoke", train_images=4)
            write(half, frame(dict.fromkeys(LEVELS, db), seed).to_dict("list"))
        for method, psnr in BLOCKS[True].items():
            evaluation = frame(dict(zip(blocks.BLOCKS, psnr, strict=True)), seed).to_dict("list")
            run = ours if method == "on_demand" else context_encoder.run_of(method, ours)
            write(run, evaluation, blocks.path_of(ours) if run is ours else None)
    for sigma in denoising.SPECTRUM:
        for told, psnr in ((sigma, 30), (25, 30 if sigma <= 25 else 20)):
            what = {"system": "bm3d", "dataset": "db11", "sigma": float(sigma), "clip": True, "told": float(told)}
            name = f"bm3d-sigma{sigma}{'' if told == sigma else '-told25'}.json"
            rows = {"image": ["House"], "psnr": [psnr], "seconds": [1]}
            write(what, rows, folder / "data/results/smoke/db11" / name)


def test_what_is_on_disk_is_found_and_nothing_else(root):
    write_world(root)
    table = scorecard.scorecard("smoke", "demo", [0, 1, 2])
    expected = [UNTESTED if number in (27, 28, 29, *NO_OPPONENT) else REPRODUCED for number in table.number]
    assert list(table.verdict) == expected
    for profile, dataset, seeds in (("demo", "demo", [0, 1]), ("smoke", "bsds500", [0, 1]), ("smoke", "demo", [5])):
        other = scorecard.scorecard(profile, dataset, seeds)
        assert set(other.verdict[other.number != 30]) == {UNTESTED}, (profile, dataset, seeds)
    text = scorecard.summary(table, scorecard.load("smoke", "demo", [0, 1]).runs, "demo")
    assert f"Of {NUMBER} claims {expected.count(REPRODUCED)} are" in text and "2 seeds" in text and "SUN397" in text


def test_an_empty_project_is_no_error(root):
    table = scorecard.scorecard("smoke", "demo", [0])
    assert len(table) == NUMBER and set(table.verdict) == {UNTESTED}
    assert "No schedule is measured" in scorecard.summary(table, {}, "demo")
    assert not [path for path in root.rglob("*") if path.is_file()]


# On the page


def test_the_page_says_every_verdict_without_colour():
    table = scorecard.score_all(world(False), "smoke", "demo")
    html = plots_scorecard.show(table).data
    assert html.count("✗&nbsp;not reproduced") == (table.verdict == FAILED).sum() == len(CLAIMS)
    assert html.count("○&nbsp;not tested") == len(NO_OPPONENT) and "<script" not in html
    assert len(plots_scorecard.counts(table).axes[0].patches) == 3 * len(scorecard.SECTIONS)
