"""The judge against SciPy and plain loops, and how often it errs."""

import re

import numpy as np
import pytest
from scipy import stats
from test_scorecard import TESTED, frame

from companion import allocation, catalogue, extra_data, fixation, judge, prose, published, table1
from companion.judge import EQUIVALENT, MISSING, REPRODUCED, REVERSED, UNDECIDED, WITHIN, decide
from odl import paper, results


def by_scipy(x, equivalence=True):
    """One part, by SciPy's own tests."""
    if len(x) < 3:
        return UNDECIDED
    above = stats.ttest_1samp(x, -WITHIN, alternative="greater").pvalue
    below = stats.ttest_1samp(x, WITHIN, alternative="less").pvalue
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
        assert decide(margins) == judge.verdict_on({"": margins}).word == by_scipy(margins), margins
        for sign in (1, -1):
            value = [sign * m + 3 for m in margins]
            assert judge.verdict_on({"": value}, beyond=3, sign=sign).word == by_scipy(margins, equivalence=False)
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
        assert judge.verdict_on(parts).word == expected, parts
        found.add(expected)
    assert len(found) == 4


def test_seeds_without_spread_decide_and_none_or_two_do_not():
    assert decide([0.5] * 3) == REPRODUCED and decide([-0.5] * 3) == REVERSED and decide([0.0] * 3) == EQUIVALENT
    assert decide([5.0, 5.0]) == decide([5.0]) == UNDECIDED
    assert judge.verdict_on({"a": [], "b": []}).word == MISSING


def test_what_would_decide_is_named():
    def needs(*parts, **how):
        return judge.verdict_on(dict(enumerate(parts)), **how).needs

    assert needs([0.4]) == "a second and a third seed may tell" and needs([0.4, 0.5]) == "a third seed may tell"
    assert needs([0.4, 0.5, 0.45], []) == "1 part to be measured"
    assert "damaged image" in needs([1.0, 1.1, 1.2], below={0: None})
    assert "seed" in needs([1.0], [1.0, 1.1, 1.2], below={1: None})
    against = [-0.12, -0.14, -0.17]
    text = needs(against, *[[0.4]] * 5)
    n = int(re.search(r"about (\d+) seeds \(Holm", text)[1])

    def p(n):  # the same mean and spread with n seeds
        return stats.t.cdf(np.mean(against) / (np.std(against, ddof=1) / np.sqrt(n)), n - 1)

    assert text.startswith("0 alone") and p(n) < 0.025 / 6 < p(n - 1)
    margins = [0.1, 0.5, 0.2]
    n = int(re.search(r"about (\d+) seeds", needs(margins))[1])

    def at(n):  # the same mean and spread with n seeds
        half = stats.t.ppf(0.975, n - 1) * np.std(margins, ddof=1) / np.sqrt(n)
        return np.mean(margins) > half

    assert at(n) and not at(n - 1)
    assert "would not do" in needs([2.0, -2.0, 0.5])


def test_a_task_below_its_input_decides_nothing():
    def run(psnr, damaged):
        rows = frame(dict.fromkeys(TESTED, psnr)).assign(psnr_input=float(damaged))
        rows.loc[rows.level == "6", "psnr_input"] = 20.0  # what is damaged most, both networks improve
        return results.Result({}, {}, [], rows, None)

    runs = {("deblur", s, k): run(p, 24) for s, p in (("a", 23), ("b", 22), ("c", 25)) for k in range(3)}
    assert not judge.below_input(runs, "deblur", ("a", "b"), ["6"])
    words = [judge.compare(judge.Measured(runs), {"": ("deblur", "a", "b", levels)}).word for levels in (["5"], ["6"])]
    assert words == [UNDECIDED, REPRODUCED]
    assert judge.below_input(runs, "deblur", ("a", "b")) and not judge.below_input(runs, "deblur", ("a", "c"))
    assert not judge.below_input(runs, "denoise", ("a", "b"))
    assert judge.best(runs, "deblur", ("a", "b")) is None and judge.best(runs, "deblur", ("a", "c")) == "c"


def test_a_claim_of_many_parts_says_how_many_got_which_verdict():
    margins = {"for": [0.5, 0.51, 0.49], "alike": [0.01, -0.02, 0], "against": [-0.3, -0.35, -0.25]}
    margins |= {"open": [1, -1, 0.5], "below": [0.5, 0.6, 0.7], "missing": []}
    found = judge.verdict_on(margins, below={"below": None})
    assert (
        found.word == UNDECIDED and "6 parts: 1 for it, 1 alike within ±0.03 dB at 90 %, 1 against it" in found.measured
    )
    assert "against it, but not by Holm's correction" in found.measured  # p = 0.0046 of a sixth of 0.025
    words = [REPRODUCED, judge.EQUIVALENT, judge.REVERSED, UNDECIDED, "undecided (below damaged)", judge.MISSING]
    assert [word for _, word in found.parts.values()] == words and found.parts["missing"][0] == "–"
    margins["against"] = [-0.3, -0.31, -0.29]
    lost = judge.verdict_on(margins, below={"below": None})
    assert lost.word == judge.REVERSED and "Holm" not in lost.measured


@pytest.mark.parametrize(
    ("doublings", "gain", "expected"),
    [
        (2, -0.45, 80_000),  # −1.5 dB after 10,000 steps, +0.525 dB with a doubling, 2.86 doublings in all
        (2, 0.5, 30_000),
        (3, -1.25, None),
        (3, -1.5, None),
        (3, -1.6, None),
    ],
)
def test_the_length_that_reaches_the_input(doublings, gain, expected):
    def run(gain, steps):
        rows = frame(dict.fromkeys(TESTED, 20.0 + gain)).assign(psnr_input=20.0)
        return results.Result({"epochs": steps // 200, "iterations": 200}, {}, [], rows, None)

    moved = {0: 0.4, 1: -0.4, 2: 0}  # dB by the seed, of which the mean counts
    runs = {("deblur", "on_demand", seed): run(db - 1.5, 10_000) for seed, db in moved.items()}
    longer = {("deblur", seed): run(db + gain, 10_000 * 2**doublings) for seed, db in moved.items() if seed < 2}
    m = judge.Measured(runs, long=longer)
    assert judge.steps_to_input(m, "deblur") == expected
    above = {key: run(2.0, 10_000) for key in runs}  # nothing is lacking
    assert judge.steps_to_input(judge.Measured(above, long=longer), "deblur") is None
    assert judge.steps_to_input(judge.Measured(m.runs), "deblur") is None


def test_false_decisions_are_rare_when_seeds_are_planned():
    table = judge.simulate()
    planned, extended = (table[(table.seeds == "3, then 5") == flag] for flag in (False, True))
    noise = 3 * np.sqrt(0.05 * 0.95 / 20_000)
    assert planned.false.max() < 0.05 + noise and (table[table.parts == 6].false < 0.05 + noise).all()
    assert extended.false.max() > 0.07  # adding seeds until something is decided is no free choice: the page says so
    assert (table["power_0.2"] >= table["power_0.1"]).all()
    closest = table[(table.spread == 0.03) & (table.seeds == 5)]
    assert (closest["power_0.2"] > 0.99).all() and (closest.even > 0.99).all()


# What pages say

RANKING = re.compile(
    r"\b(ahead|behind|beats?|best|worst|better|worse|wins?|won|leads?|superior|inferior|stronger|weaker|outperforms?|"
    r"fails?|collapses?|shifts?|holds?|helps?|reproduced|reversed|equivalent)\b|\*\*"
)


def ranking(text: str) -> str | None:
    """A word that ranks, but for those of a quoted claim, of what would decide it, and of counts."""
    words = r"(?:reproduced|reversed|equivalent)"  # of what is decided, or how many are
    said = re.sub(rf"“[^”]*”|may tell|The paper's claim|\d+ {words}|{words} on \w+", "", text)
    found = RANKING.search(said)
    return found and found[0]


def page_results(seeds=(0, 1, 2)):
    """Each seed reverses every margin, so that nothing can be decided."""
    found = []
    for task in paper.TASKS:
        for i, schedule in enumerate((*published.SCHEDULES, *published.FIXATED)):
            for seed in seeds:
                given = {"task": task, "schedule": schedule, "seed": seed, "width": 8, "epochs": 2, "iterations": 3}
                given |= {"batch_size": 4, "learning_rate": 1e-3, "dataset": "demo", "test_images": 4, "trials": 3}
                psnr = frame(dict.fromkeys(TESTED, 28 + i * (0.5, -0.5, 0.1)[seed])).assign(psnr_input=20.0)
                where = {"train_images": 9, "device": "CPU"}
                history = [{"allocation": [19.1, 19.4, 20, 20.6, 20.9], "dose": 0.006}]
                psnr = psnr.assign(psnr_hole=psnr.psnr - 9, psnr_kept=psnr.psnr + 5, l2_input=10.0)
                found.append(results.Result(given, where, history, psnr, None))
    return found


def texts(found):
    """What the pages of the schedules say of some results."""
    of = {task: [r for r in found if r.experiment["task"] == task] for task in paper.TASKS}
    runs = {task: next((r for r in of[task] if r.experiment["schedule"] == "on_demand"), None) for task in of}
    halves = dict(zip(catalogue.EXTRA_DATA, (of["inpaint"][k : k + 3] for k in (0, 3, 6)), strict=True))
    yield from (table1.verdict(of[task], task) for task in of)
    yield from (fixation.verdict(of[task], task) for task in of)
    yield allocation.verdict(runs)
    yield extra_data.verdict(halves, "inpaint")


@pytest.mark.parametrize("seeds", [(0,), (0, 1), (0, 1, 2)])
def test_no_page_ranks_what_is_undecided(seeds):
    for text in texts(page_results(seeds)):
        assert ranking(text) is None, text
        assert "undecided" in text or "dose" in text


def test_pages_say_in_one_line_that_nothing_is_measured():
    assert {*texts([])} == {prose.NOTHING}


def test_bold_only_where_the_judge_decides():
    found = [r for r in page_results() if r.experiment["task"] == "deblur"]
    table = table1.table(found, "deblur")
    runs = judge.keyed(found)
    assert judge.best(runs, "deblur", published.SCHEDULES) is None
    assert "font-weight" not in table1.show(table).to_html()
    for r in found:
        if r.experiment["schedule"] == "hard_mining":
            r.evaluation.loc[:, "psnr"] = r.evaluation.psnr + 20
    assert judge.best(runs, "deblur", published.SCHEDULES) == "hard_mining"
    assert "font-weight" in table1.show(table, "hard_mining").to_html()
