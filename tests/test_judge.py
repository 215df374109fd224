"""The judge against SciPy and plain loops, and how often it errs."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from test_scorecard import TESTED, frame

from companion import judge
from companion.disk import files
from companion.judge import EQUIVALENCE, EQUIVALENT, MISSING, MIXED, REPRODUCED, REVERSED, TIED, UNDECIDED, decide
from companion.pages import allocation, extra_data, fixation, table1
from companion.runs import catalogue
from companion.show import sentences
from companion.training import results
from companion.words import conclude, describe, estimate, qualify
from odl import paper


def by_scipy(x, equivalence=True):
    """One part, by SciPy's own tests."""
    if len(x) < 3:
        return UNDECIDED
    above = stats.ttest_1samp(x, -EQUIVALENCE, alternative="greater").pvalue
    below = stats.ttest_1samp(x, EQUIVALENCE, alternative="less").pvalue
    if equivalence and max(above, below) < 0.05:
        return EQUIVALENT
    low, high = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    return REPRODUCED if low > 0 else REVERSED if high < 0 else UNDECIDED


def made_up(seed):
    rng = np.random.default_rng(seed)
    n, spread = rng.integers(1, 8), rng.choice([0.01, 0.05, 0.2])
    return list(rng.normal(rng.choice([-1, -0.2, 0, 0.05, 0.2, 1]), spread, n))


def test_one_part_against_scipy():
    found = set()
    for seed in range(400):
        margins = made_up(seed)
        assert decide(margins) == judge.decide_claim({"": margins}).word == by_scipy(margins), margins
        for sign in (1, -1):
            value = [sign * m + 3 for m in margins]
            assert judge.decide_claim({"": value}, beyond=3, sign=sign).word == by_scipy(margins, equivalence=False)
        found.add(by_scipy(margins))
    assert found == {EQUIVALENT, REPRODUCED, REVERSED, UNDECIDED}


def holm_by_loop(p):
    rejected = [False] * len(p)
    for step, k in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[k] > 0.025 / (len(p) - step):
            break
        rejected[k] = True
    return rejected


def test_holm_against_a_plain_loop():
    rng = np.random.default_rng(0)
    for _ in range(300):
        p = rng.random(rng.integers(1, 8)) ** rng.integers(1, 9)
        assert judge.holm(p).tolist() == holm_by_loop(p.tolist())


def test_several_parts_against_a_plain_loop():
    found = set()
    for seed in range(0, 2000, 5):
        parts = {k: made_up(seed + k) for k in range(1 + seed % 4)}
        words = [by_scipy(m) for m in parts.values()]
        p = [stats.ttest_1samp(m, 0, alternative="less").pvalue if len(m) > 2 else 1.0 for m in parts.values()]
        against = any(r and w == REVERSED for r, w in zip(holm_by_loop(p), words, strict=True))
        expected = REVERSED if against else UNDECIDED
        if not against and set(words) <= {REPRODUCED, EQUIVALENT}:
            expected = EQUIVALENT if EQUIVALENT in words else REPRODUCED
        assert judge.decide_claim(parts).word == expected, parts
        found.add(expected)
    assert len(found) == 4


def test_rule_3_asks_the_composite_too_and_rule_2_stands_beside():
    """Against SciPy: contradicted where the composite is beyond 0 on the other side, or where only one is alike."""
    found = set()
    for seed in range(600):
        margins, kept = made_up(seed), made_up(seed + 10_000)
        verdict, own, other = judge.decide_claim({"": margins}, {"": kept}), by_scipy(margins), by_scipy(kept)
        turned = False
        if len(kept) > 2:
            low, high = stats.ttest_1samp(kept, 0).confidence_interval(0.95)
            turned = own == REPRODUCED and high < 0 or own == REVERSED and low > 0
            turned |= own == EQUIVALENT and other in (REPRODUCED, REVERSED)
        assert verdict.word == (MIXED if turned else own), (margins, kept)
        assert verdict.by_rule2.word == own and verdict.parts[""].composite_word == other
        assert f"known pixels put back: {estimate(kept)}, {other}" in describe(verdict)
        found.add((own, turned))
    assert found == {*product((REPRODUCED, REVERSED, EQUIVALENT), (True, False)), (UNDECIDED, False)}


def test_the_composite_is_asked_on_tasks_with_known_pixels_of_what_is_scored_over_all_pixels():
    runs = {}
    for (name, all_pixels, kept), seed, task in product([("a", 30, 35), ("b", 29, 37)], range(3), paper.TASKS):
        run = run_of(all_pixels, 20)
        runs[task, name, seed] = replace(run, evaluation=run.evaluation.assign(psnr_kept=kept, psnr_hole=20.0 + seed))
    found = judge.compare(judge.Evidence(runs), judge.on_tasks("a", "b"))
    assert {*found.composites} == {"inpainting", "interpolation"} and found.word == MIXED
    assert found.by_rule2.word == REPRODUCED and np.mean(found.parts["inpainting"].composite) == -2
    assert found.parts["interpolation"].word == MIXED and found.parts["denoising"].word == REPRODUCED
    inside = judge.compare(judge.Evidence(runs), {"": ("inpaint", "a", "b", judge.LEVELS, "psnr_hole")})
    assert not inside.composites and inside.word == EQUIVALENT
    assert not judge.decide_claim({"": [0.1, 0.2, 0.3]}, {"": []}).composites


def test_what_is_alike_is_first_alike_within_0_05():
    near, far = [0.01, 0.02, 0.015], [0.06, 0.065, 0.07]
    for margins, band in ((near, "0.05"), (far, "0.10")):
        reach = max(map(abs, stats.t.interval(0.9, 2, np.mean(margins), stats.sem(margins))))
        said = describe(judge.decide_claim({"": margins}))
        assert f"alike within ±{band} dB (at 90 % ±{reach:.2f})" in said


def test_an_absolute_claim_is_not_testable_with_short_networks():
    behind, nothing = (judge.decide_claim({"": margins}) for margins in ([-2.0, -2.1, -2.2], []))
    short, long = (judge.absolute(judge.Evidence(short=short), behind) for short in (True, False))
    assert (short.word, long.word, short.by_rule2.word) == (judge.NOT_TESTABLE, REVERSED, REVERSED)
    assert "−2.10 dB" in describe(short) and judge.absolute(judge.Evidence(short=True), nothing).word == MISSING


def test_seeds_without_spread_decide_and_none_or_two_do_not():
    assert [*map(decide, ([0.5] * 3, [-0.5] * 3, [0.0] * 3))] == [REPRODUCED, REVERSED, EQUIVALENT]
    assert decide([5.0, 5.0]) == decide([5.0]) == UNDECIDED
    assert judge.decide_claim({"a": [], "b": []}).word == MISSING
    assert "**" not in conclude(judge.decide_claim({"": [1.0, -1.0, 0.5]}))


def run_of(psnr, damaged, l2=10.0, l2_damaged=20.0, **where):
    """A result with the same scores on every level; what is damaged most, both networks improve."""
    rows = frame(dict.fromkeys(TESTED, psnr)).assign(psnr_input=float(damaged), l2=l2, l2_input=l2_damaged)
    rows.loc[rows.level == "6", "psnr_input"] = 20.0
    return results.Result({"precision": "bf16"}, where, [], rows, None)


def test_networks_below_their_input_get_their_word_and_that_they_are():
    scores = {"a": 23, "b": 22, "c": 25}
    runs = {("deblur", s, k): run_of(scores[s], 24, 20 - scores[s] / 10, 10) for s, k in product(scores, range(3))}
    found = judge.compare(judge.Evidence(runs), {"": ("deblur", "a", "b")})
    assert found.word == REPRODUCED and found.below and "(below doing nothing)" in conclude(found)
    assert not judge.compare(judge.Evidence(runs), {"": ("deblur", "a", "b")}, harm=True).below
    assert not judge.compare(judge.Evidence(runs), {"": ("deblur", "a", "b", ["6"])}).below
    assert not judge.compare(judge.Evidence(runs), {"": ("deblur", "c", "b")}).below
    for key, run in runs.items():  # by squared error both improve on it
        runs[key] = replace(run, evaluation=run.evaluation.assign(l2_input=30.0))
    assert not judge.compare(judge.Evidence(runs), {"": ("deblur", "a", "b")}).below


def test_the_other_score_decided_the_other_way_makes_a_mixed_word():
    margins, agree, against, open_ = [0.5, 0.51, 0.52], [0.1, 0.11, 0.1], [-0.1, -0.11, -0.1], [-0.1, 0.2, 0.1]
    words = [judge.decide_claim({"": margins}, confirm={"": other}).word for other in (agree, open_, against, [])]
    assert words == [REPRODUCED, REPRODUCED, MIXED, REPRODUCED]
    assert judge.decide_claim({"": [-x for x in margins]}, confirm={"": agree}).word == MIXED
    parts = {"sure": [-0.5, -0.51, -0.52], "mixed": margins}  # one part that is lost is enough, whatever the other is
    assert judge.decide_claim(parts, confirm={"mixed": against}).word == REVERSED
    runs = {("deblur", s, k): run_of(p, 20, l2) for s, p, l2 in (("a", 23, 9.0), ("b", 22, 8.0)) for k in range(3)}
    assert judge.compare(judge.Evidence(runs), {"": ("deblur", "a", "b")}).word == MIXED


def test_a_claim_to_be_best_is_tied_and_a_paper_margin_is_excluded():
    even, wide = [0.01, -0.02, 0.0], [-0.2, 0.12, -0.1]
    assert judge.decide_claim({"": even}, best=True).word == TIED and judge.decide_claim({"": even}).word == EQUIVALENT
    low, high = stats.ttest_1samp(wide, 0).confidence_interval(0.95)
    for printed in (high + 0.01, high - 0.01):
        found = judge.decide_claim({"a": wide}, best=True, printed={"a": printed})
        assert found.word == (judge.EXCLUDED if printed > high else UNDECIDED)
        assert judge.spread(found.parts["a"].values) == pytest.approx((np.mean(wide), low, high))
        assert f"{100 * np.mean(wide) / printed:+.0f} % of the paper's".replace("-", "−") in describe(found)


def test_not_behind_is_non_inferiority_by_the_composite_too():
    for kept, word in (([-0.3, -0.31, -0.29], MIXED), ([-0.05, -0.04, -0.06], REPRODUCED)):
        assert judge.decide_claim({"": [0.05, 0.04, 0.06]}, {"": kept}, beyond=-EQUIVALENCE).word == word
    behind = {"own": [-0.05, -0.06, -0.04], "elsewhere": [0.5, 0.6, 0.55]}
    assert judge.decide_claim(behind).word == EQUIVALENT
    assert judge.decide_claim(behind, beyond={"own": -EQUIVALENCE}).word == REPRODUCED
    assert judge.decide_claim(behind | {"own": [-0.2, -0.21, -0.22]}, beyond={"own": -EQUIVALENCE}).word == REVERSED


def test_pairs_are_of_one_kind_of_arithmetic_and_of_the_same_photographs():
    kinds = [{}, {"arithmetic": "bf16"}, {"arithmetic": "bf16 rounded"}, {"arithmetic": "bf16", "device": "an H100"}]
    runs = {("deblur", "a", k): run_of(23, 20, **where) for k, where in enumerate(kinds)}
    runs |= {("deblur", "b", k): run_of(22, 20, arithmetic="bf16", device="CPU, 1 thread") for k in range(4)}
    assert len(judge.paired(runs, "deblur", "a", "b")) == 2  # older results are of their own precision
    cards = {name: run_of(22, 20, arithmetic="bf16", device=name) for name in ("an H100", "an H200")}
    runs |= {("deblur", f"on {name}", 3): run for name, run in cards.items()}
    assert [len(judge.paired(runs, "deblur", "a", f"on {name}")) for name in cards] == [1, 0]
    pairs = [judge.compare(judge.Evidence(runs), {"": ("deblur", "a", other)}) for other in ("b", "on an H100")]
    said = [*map(describe, pairs)]
    assert "; on" not in said[0] and said[1].endswith("; on an H100")
    runs |= {("deblur", "c", k): run_of(22, 20, data_sha256=pixels) for k, pixels in enumerate(["one", "one", "other"])}
    runs |= {("deblur", "d", k): run_of(22, 20, data_sha256="one") for k in range(3)}
    assert len(judge.paired(runs, "deblur", "c", "d")) == 2  # the same seed on other photographs is no pair


def test_a_refuted_claim_names_the_part_that_is_against_it():
    """Not a lower one that is open. A lower part with a bound of its own, or without a printed margin, is no bar."""
    steady = np.array([-0.01, 0.0, 0.01])
    margins = {f"part {i}": 0.5 + steady for i in range(4)} | {"open": [-0.6, 0.3, -0.4]}
    found = judge.decide_claim(margins | {"against": steady / 10 - 0.1})
    assert found.word == REVERSED
    assert describe(found).startswith("least −0.10 dB [−0.10, −0.10] (against), 3 seeds")
    assert judge.decide_claim(margins | {"against": steady + 0.11}).least == "open"
    found = judge.decide_claim({"a": 0.5 + steady, "b": 0.3 + steady, "own": 0.05 + steady}, beyond={"own": -0.1})
    assert found.word == REPRODUCED
    found = judge.decide_claim({"a": 5 * steady - 0.12, "b": steady}, printed={"b": 0.2})
    assert found.word == judge.EXCLUDED


@pytest.mark.parametrize(
    ("margins", "told"),
    [
        ({"a": [0.2, 0.21, 0.22], "b": [0.01, 0.02, 0.015]}, "equivalent (reproduced on a, equivalent on b)"),
        ({"a": [0.01, 0.02, 0.015]}, EQUIVALENT),
        ({"a": [0.2, 0.21, 0.22], "b": [1, -1, 0.5]}, "undecided (of 2 parts 1 reproduced)"),
        ({"a": [-0.3, 0.3, 0.1], "b": [1, -1, 0.5]}, UNDECIDED),
        ({"a": [0.2, 0.21, 0.22], "b": []}, MISSING),
    ],
)
def test_a_claim_whose_parts_differ_is_not_told_by_its_word_alone(margins, told):
    assert qualify(judge.decide_claim(margins)) == told


def test_a_claim_of_many_parts_says_how_many_got_which_verdict():
    margins = {"for": [0.5, 0.51, 0.49], "alike": [0.01, -0.02, 0], "against": [-0.3, -0.35, -0.25]}
    margins |= {"open": [1, -1, 0.5], "below": [0.5, 0.6, 0.7], "missing": []}
    found = judge.decide_claim(margins, below=["below"])
    words = [REPRODUCED, EQUIVALENT, REVERSED, UNDECIDED, REPRODUCED + judge.BELOW_INPUT, MISSING]
    assert [part.full_word for part in found.parts.values()] == words
    assert "6 parts: 2 for it, 1 alike" in describe(found)
    assert found.word == UNDECIDED and "too little among so many" in describe(found)  # p = 0.0046 > 0.025 / 6
    lost = judge.decide_claim(margins | {"against": [-0.3, -0.31, -0.29]}, below=["below"])
    assert lost.word == REVERSED and "too little" not in describe(lost) and not lost.below


def test_false_decisions_are_rare_when_seeds_are_planned():
    table = judge.simulate()
    planned, extended = (table[(table.seeds == "3, then 5") == flag] for flag in (False, True))
    noise = 3 * np.sqrt(0.05 * 0.95 / 20_000)
    assert planned.false.max() < 0.05 + noise and (table[table.parts == 6].false < 0.05 + noise).all()
    assert extended.false.max() > 0.07  # adding seeds until something is decided is no free choice: the page says so
    assert (table["power_0.2"] >= table["power_0.1"]).all()
    closest = table[(table.spread == 0.03) & (table.seeds == 5)]
    assert (closest["power_0.2"] > 0.99).all() and (closest.even > 0.99).all()


def test_pages_say_in_one_line_that_nothing_is_measured():
    told = {table1.describe_schedules([], "deblur"), fixation.describe_fixation([], "deblur")}
    told.add(extra_data.describe_halves({name: [] for name in catalogue.EXTRA_DATA}, "inpaint"))
    assert told | {allocation.describe_doses({})} == {sentences.QUESTION_OPEN}


def test_the_rules_in_words_have_the_numbers_of_the_judge():
    cells = json.loads((files.PACKAGE.parent / "notebooks" / "scorecard.ipynb").read_text(encoding="utf-8"))["cells"]
    [said] = ["".join(cell["source"]) for cell in cells if "Rule 2:" in "".join(cell["source"])]
    narrow, wide = f"±{judge.NARROW_EQUIVALENCE:.2f} dB", f"±{judge.EQUIVALENCE:.2f} dB"
    assert f"lies within {wide} (whether it lies within {narrow}" in said
    assert f"**{narrow} first.**" in said and f"{wide} stays" in said
    assert f"{100 * (1 - judge.ALPHA):.0f} % interval lies above the bound" in said
    assert f"{100 * (1 - 2 * judge.ALPHA):.0f} % interval of the margin lies within" in said
    assert f"Holm's correction: {50 * judge.ALPHA:.1f} % divided" in said
    assert f"at most {judge.EQUIVALENCE:.2f} dB behind" in said and f"fewer than {judge.MIN_SEEDS} seeds" in said
