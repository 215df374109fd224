"""Numbers and words that a review found wrong, each against a computation of its own from the results files.

Nothing of the judge or of the pages is used to compute them: the JSON files, NumPy, and quantiles of Student's
distribution from a printed table.
"""

import json
from functools import cache
from itertools import product

import facts
import measured
import numpy as np
import pytest

from companion import judge, published
from companion.claims import claims
from companion.disk import files
from companion.judge import EQUIVALENT, EXCLUDED, MIXED, REPRODUCED, REVERSED
from companion.pages import dose, extra_data, fixation, table1, table2
from companion.runs import catalogue
from companion.words import describe
from odl.network import NETWORKS

T95 = {3: 4.302653, 5: 2.776445}  # seeds → quantile of Student's distribution, two-sided
T90 = {3: 2.919986, 5: 2.131847}
FACES = "reference/celeba10k-native"
TASKS = {"inpaint": "inpainting", "interpolate": "interpolation", "deblur": "deblurring", "denoise": "denoising"}
MASKED = ("inpaint", "interpolate")
SETS = {
    "scenes": ("reference/bsds500", range(5)),
    "faces": (FACES, range(10, 15)),
    "gpu": ("gpu/celeba10k-native", range(10, 15)),
}
LEVELS = "123456"


@cache
def content(name: str) -> dict | None:
    path = files.results() / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def of_level(name: str, column: str, level: str) -> float:
    """Mean over trials of a column of one results file."""
    rows = content(name)["evaluation"]
    return float(np.mean([value for value, at in zip(rows[column], rows["level"], strict=True) if at == level]))


def score(name: str, column: str = "psnr") -> float:
    return float(np.mean([of_level(name, column, level) for level in LEVELS]))


def pairs(where: str, task: str, one: str, other: str) -> list[tuple[str, str]]:
    """The names of the results files of two schedules, seed by seed; `{}` stands for the seed."""
    folder, seeds = SETS[where]
    names = [tuple(f"{folder}/{task}/{run.format(f'seed{seed}')}" for run in (one, other)) for seed in seeds]
    return [pair for pair in names if all(map(content, pair))]


def margins(where: str, task: str, one: str, other: str, column: str = "psnr") -> list[float]:
    return [score(a, column) - score(b, column) for a, b in pairs(where, task, one, other)]


def ends(values, quantiles=T95) -> list[float]:
    """The mean and the ends of its interval."""
    half = quantiles[len(values)] * np.std(values, ddof=1) / np.sqrt(len(values))
    return [np.mean(values), np.mean(values) - half, np.mean(values) + half]


def worst_gap(run: str, task: str, column: str) -> float:
    """How far a run on faces is behind the specialists on the level where it is furthest."""
    return max(of_level(f"{FACES}/{task}/level_{i}-seed10", column, i) - of_level(run, column, i) for i in "12345")


@pytest.fixture(scope="module")
def sets():
    scale = "gpu", "celeba10k-native", catalogue.SEEDS_OF_FACES
    wide = dose.load_runs(catalogue.grid(*scale, ("on_demand", "rigid_joint", "cumulative_curriculum")))
    return {"scenes": measured.load("bsds500"), "faces": measured.load("celeba10k-native"), "gpu": wide}


def claim_that_begins(words: str) -> claims.Claim:
    [claim] = [claim for claim in claims.CLAIMS if claim.claim.startswith(words)]
    return claim


PAIR = "on_demand-{}", "rigid_joint-{}"


def test_the_worst_gap_of_minimax_training_is_told_by_both_scores(sets):
    found = claim_that_begins("Minimax training is less far").decide(sets["faces"])
    for task, column in product(TASKS, ("psnr", "psnr_kept")):
        if column == "psnr_kept" and task not in MASKED:
            continue
        names = pairs("faces", task, "on_demand-{}", "minimax_gap-{}")
        nearer = [worst_gap(a, task, column) - worst_gap(b, task, column) for a, b in names]
        part = found.parts[TASKS[task]]
        values = part.values if column == "psnr" else part.composite
        assert judge.spread(values) == pytest.approx(ends(nearer), abs=1e-6)
    rounded = {task: [round(n, 2) for n in judge.spread(part.composite)] for task, part in found.composites.items()}
    assert rounded == {"inpainting": [-0.93, -1.11, -0.74], "interpolation": [-0.21, -0.27, -0.14]}
    assert {part.composite_word for part in found.composites.values()} == {REVERSED} and found.word == MIXED
    assert found.by_rule2.word == REPRODUCED and "known pixels put back" in describe(found)


def test_the_worst_gap_of_minimax_training_that_is_told_the_composite(sets):
    found = claim_that_begins("Told the composite, minimax").decide(sets["faces"])
    for task in MASKED:
        names = pairs("faces", task, "on_demand-{}", "minimax_gap_composite-{}")
        nearer = [worst_gap(a, task, "psnr_kept") - worst_gap(b, task, "psnr_kept") for a, b in names]
        assert len(nearer) == 3 and judge.spread(found.parts[TASKS[task]].values) == pytest.approx(
            ends(nearer), abs=1e-6
        )
    assert [part.word for part in found.parts.values()] == [REPRODUCED, judge.EQUIVALENT]


def test_by_the_composite_a_lean_to_hard_levels_shrinks_the_worst_gap_of_inpainting_a_little():
    """Equal shares are furthest behind a specialist on level 5, and ahead of that of level 1, which copies better."""
    found = facts.contest()
    for name, run in (("printed", "on_demand-{}"), ("strong", "on_demand-{}-sharpness=4")):
        smaller = [
            np.subtract(*(worst_gap(r, "inpaint", "psnr_kept") for r in pair[::-1]))
            for pair in pairs("faces", "inpaint", run, "rigid_joint-{}")
        ]
        assert len(smaller) == 5 and found[f"worst_{name}"].value == pytest.approx(np.mean(smaller), abs=1e-6)
    for task in MASKED:
        behind = {}
        for column, i in product(("psnr", "psnr_kept"), "12345"):
            equal = [of_level(f"{FACES}/{task}/rigid_joint-seed{k}", column, i) for k in range(10, 15)]
            behind[column, i] = of_level(f"{FACES}/{task}/level_{i}-seed10", column, i) - np.mean(equal)
        assert max("12345", key=lambda i: behind["psnr_kept", i]) == "5"
        assert task != "inpaint" or behind["psnr_kept", "1"] < 0 < behind["psnr", "1"]


def test_the_papers_gain_in_l2_lies_outside_every_interval(sets):
    claim, outside = claim_that_begins("Equation 3 lowers L2"), 0
    for where, evidence in sets.items():
        found = claim.decide(evidence)
        assert found.word == EXCLUDED and found.unit == "%"
        for task, plain in TASKS.items():
            change = [100 * (score(a, "l2") / score(b, "l2") - 1) for a, b in pairs(where, task, *PAIR)]
            assert judge.spread(found.parts[plain].values) == pytest.approx(ends(change), abs=1e-6)
            printed = [np.array(published.TABLE1[task][s])[:, 0] for s in ("on_demand", "rigid_joint")]
            papers = 100 * (printed[0] / printed[1] - 1)  # on CelebA and SUN397
            outside += papers[int(where == "scenes")] < ends(change)[1]
            assert -0.61 < np.mean(change) < 0.23 and -10.9 < min(papers) < max(papers) < -0.9
    assert outside == 12
    assert "−9.10 to −0.90 %, each below its interval" in describe(claim.decide(sets["scenes"]))


def test_the_curriculum_leads_on_deblurring_at_half_width_and_is_alike_at_full_width(sets):
    pair = "on_demand-{}", "cumulative_curriculum-{}"
    assert [round(n, 3) for n in ends(margins("gpu", "deblur", *pair))] == [-0.041, -0.056, -0.026]
    assert max(map(abs, ends(margins("gpu", "deblur", *pair), T90)[1:])) < 0.1
    assert ends(margins("faces", "deblur", *pair))[2] < 0
    assert [judge.decide(margins(where, "deblur", *pair)) for where in ("faces", "gpu")] == [REVERSED, EQUIVALENT]


def test_the_levels_below_doing_nothing_are_named(sets):
    for where, evidence in sets.items():
        below = {}
        for task, plain in TASKS.items():
            names = [name for name, _ in pairs(where, task, "rigid_joint-{}", "on_demand-{}")]
            gain = {i: np.mean([of_level(n, "psnr", i) - of_level(n, "psnr_input", i) for n in names]) for i in LEVELS}
            if worse := [level for level, db in gain.items() if db < 0]:
                below[plain] = worse
        assert fixation.levels_below(evidence.runs, "rigid_joint") == below
    assert fixation.levels_below(sets["scenes"].runs, "rigid_joint")["inpainting"] == ["1", "2", "3"]
    assert fixation.levels_below(sets["faces"].runs, "rigid_joint")["inpainting"] == ["1", "2"]
    said = fixation.compare_with_equal_shares(sets["scenes"])
    assert said.endswith("in inpainting on levels 1, 2, 3; deblurring on level 1; denoising on level 1.")


def test_the_page_of_table_2_says_that_the_centre_encoder_is_weak():
    runs = catalogue.runs("table2", "inpaint", "bsds500", "reference", [0, 1, 2])
    found = [one for run in runs if (one := catalogue.measurements_of(run)[-1].load())]
    ours = [run for run in runs if run.schedule == "on_demand"]
    said = table2.describe_blocks(found, ours)
    weak = np.mean(
        [
            one.evaluation.query("level == 'central'").psnr.mean()
            for one in found
            if one.experiment["schedule"] == table2.CENTRE
        ]
    )
    own = np.mean(
        [of_level(f"reference/bsds500/inpaint/fixated_hard-seed{seed}", "psnr_hole", "hard") for seed in range(3)]
    )
    assert f"the centre encoder is weak, {weak:.2f} dB where our own fixated network has {own:.2f}" in said
    assert "weak" not in table2.describe_blocks(found)


def test_our_own_network_for_the_centre_stands_beside_the_weak_encoder(sets):
    folder, seeds = "reference/bsds500/inpaint", range(3)
    own, ours, block, encoder = (
        [of_level(f"{folder}/{name.format(seed)}", column, level) for seed in seeds]
        for name, column, level in (
            ("fixated_hard-seed{}", "psnr_hole", "hard"),
            ("on_demand-seed{}", "psnr_hole", "hard"),
            ("on_demand-seed{}-blocks", "psnr", "central"),
            ("context_encoder_center-seed{}", "psnr", "central"),
        )
    )
    found = claim_that_begins("A network for the centre alone").decide(sets["scenes"])
    assert found.word == REPRODUCED
    assert judge.spread(found.parts[""].values) == pytest.approx(ends(np.subtract(own, ours)), abs=1e-6)
    assert round(np.mean(own) - np.mean(block), 2) == 0.80 and "so there +0.80 dB" in describe(found)
    assert np.mean(encoder) < np.mean(block) < np.mean(own)
    experiments = catalogue.runs("applications", "inpaint", "bsds500", "reference", [*seeds])
    row = table2.blocks_table([], table2.own_runs(experiments)).iloc[-1]
    assert row.method == "fixated_hard" and row.central_psnr == pytest.approx(np.mean(own)) and np.isnan(row.central_l2)


def test_recorded_shares_hardly_differ_from_a_networks_own(sets):
    said = describe(claim_that_begins("A network's own feedback").decide(sets["faces"]))
    moved = {}
    for task in ("deblur", "denoise"):
        names = pairs("faces", task, "on_demand-{}-sharpness=4", "replay-{}")
        shares = [[np.array([e["allocation"] for e in content(name)["history"]]) for name in pair] for pair in names]
        moved[task] = np.mean([np.abs(own - recorded).sum() / 2 / len(own) for own, recorded in shares])
    assert f"{moved['deblur']:.2f} % of a batch on deblurring" in said and f"{moved['denoise']:.2f} %" in said
    assert [round(100 / share) for share in moved.values()] == [201, 258]
    assert "one image in 201 to 258, so this carries no contrast" in said


def test_at_a_constant_rate_equation_3_gains_nothing_either(sets):
    found = []
    for where, task in product(SETS, TASKS):
        each = []
        for pair in pairs(where, task, *PAIR):
            curves = [np.array([epoch["psnr"] for epoch in content(name)["history"]]) for name in pair]
            early = [curve[len(curve) // 2 : len(curve) * 4 // 5].mean() for curve in curves]
            each.append(early[0] - early[1])
        assert dose.early_margins(sets[where], task) == pytest.approx(each)
        found.append(np.mean(each))
    assert len(found) == 12 and min(found) > -0.07 and max(found) < 0.005


def test_worst_gaps_of_a_page_are_of_the_seeds_that_all_schedules_have(sets):
    rules = "rigid_joint", "on_demand", "minimax_gap"
    for task in TASKS:
        shown = [run for (t, name, _), run in sets["faces"].runs.items() if t == task and name in rules]
        table = table1.schedules_table(shown, task, rules).set_index("schedule")
        columns = {"psnr": "worst_gap"} | ({"psnr_kept": "worst_gap_kept"} if task in MASKED else {})
        for rule, (column, shown_as) in product(rules, columns.items()):
            by_hand = [worst_gap(f"{FACES}/{task}/{rule}-seed{seed}", task, column) for seed in (10, 11, 12)]
            assert table[shown_as][rule] == pytest.approx(np.mean(by_hand))


def test_halves_are_compared_over_the_seeds_that_all_have():
    found = extra_data.load_runs("inpaint", "bsds500", "reference", [*range(5)])
    table = extra_data.halves_table(found).set_index("run")
    half = score("reference/bsds500/inpaint/on_demand-seed0-train_images=200")
    whole = score("reference/bsds500/inpaint/rigid_joint-seed0")
    assert table.psnr[extra_data.OURS_HALF] == pytest.approx(half)
    assert table.psnr[extra_data.RIGID_ALL] == pytest.approx(whole)
    assert (round(half, 2), round(whole, 2)) == (24.58, 24.67) and set(table.seeds) == {1}


@pytest.mark.parametrize("network", NETWORKS)
def test_halves_are_those_of_the_network_that_was_asked_for(network, monkeypatch):
    monkeypatch.setattr(extra_data, "load_result", lambda e: (e.schedule, e.train_images, e.network, e.seed))
    half, equal, whole = (
        [(schedule, images, network, seed) for seed in (0, 3)]
        for schedule, images in (("on_demand", 200), ("rigid_joint", 200), ("rigid_joint", 0))
    )
    found = extra_data.load_runs("deblur", "bsds500", "reference", [0, 3], network)
    assert [*found.values()] == [half, equal, whole]
