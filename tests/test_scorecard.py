"""The scorecard: in a world where the paper is right every claim is reproduced, in the opposite world reversed."""

import random
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from companion import judge, published
from companion.claims import claims, predictions, scorecard
from companion.disk import files
from companion.judge import EQUIVALENT, MISSING, REPRODUCED, REVERSED, UNDECIDED, Evidence
from companion.measure import blocks, denoising
from companion.pages import db11_spectrum, dose, fixation, table1, table2
from companion.pages.table2 import CENTRE, RANDOM
from companion.pages.table3 import images_won
from companion.runs import catalogue
from companion.show import tables
from companion.training import results
from companion.training.measurement import Measurement
from companion.words import describe
from odl import paper

SEEDS = (0, 1, 2)
TESTED = (*"123456", "easy", "hard")


def psnr(first, step=0, **own):
    """In dB, per level: so much more from each to the next, but for those with a number of their own."""
    return {level: first + i * step for i, level in enumerate(TESTED)} | own


SCORES = {  # by schedule: as the paper says, and the opposite; the damaged image has 20 dB
    "on_demand": (psnr(30), psnr(24)),
    dose.NAMES[4]: (psnr(31), psnr(24)),
    "on_demand_l2": (psnr(29), psnr(28)),
    "rigid_joint": (psnr(28), psnr(28)),
    "cumulative_curriculum": (psnr(28), psnr(28)),
    "cumulative_anti_curriculum": (psnr(28), psnr(28)),
    "staged_curriculum": (psnr(10, 2), psnr(40, -2)),
    "staged_anti_curriculum": (psnr(28, -2), psnr(20, 2)),
    "hard_mining": (psnr(25), psnr(30)),
    "fixated_easy": (psnr(24, easy=33), psnr(30, easy=20)),
    "fixated_hard": (psnr(24, hard=33), psnr(30, hard=20)),
}
RIGHT, WRONG = ({schedule: worlds[k] for schedule, worlds in SCORES.items()} for k in (0, 1))
ALLOCATIONS = {True: [[20] * 5, [17, 18.5, 20, 21.5, 23]], False: [[20] * 5, [40, 30, 20, 7, 3], [5, 50, 40, 5, 0]]}
EXTRA = {True: (30, 28, 28), False: (24, 26, 28)}  # on-demand half, rigid joint half, rigid joint all
BLOCKS = {
    True: {CENTRE: (25, 12), RANDOM: (15, 15), "on_demand": (22, 21.7)},
    False: {CENTRE: (19, 19), RANDOM: (30, 30), "on_demand": (22, 15)},
}
LONE = ["MLP, CSF and TNRD"]  # one training each: undecided whatever the world
LEVEL_6, RANDOM_PLACES = "the level on which nobody trained", "once the square is not in the centre"


def frame(scores: dict, seed=0, trials=3) -> pd.DataFrame:
    """An evaluation whose trials and seeds differ a little; L2 from PSNR."""
    noise = np.random.default_rng(seed).normal(0, 0.003, (trials, len(scores)))
    rows = [(t, level, db + noise[t, i]) for t in range(trials) for i, (level, db) in enumerate(scores.items())]
    table = pd.DataFrame(rows, columns=["trial", "level", "psnr"])
    return table.assign(l2=1000 * 10 ** (-table.psnr / 10))


def result(scores, seed=0, history=()) -> results.Result:
    evaluation = frame(scores, seed)
    if "1" in scores:
        evaluation = evaluation.assign(psnr_input=20.0, psnr_kept=evaluation.psnr + 5, psnr_hole=evaluation.psnr - 9)
    return results.Result({"seed": seed}, {"train_images": 400}, list(history), evaluation, None)


def norms(values) -> results.Result:
    """Of the gradients of levels 1 to 5."""
    rows = [(t, str(level), norm) for t in range(2) for level, norm in enumerate(values, 1)]
    return results.Result({}, {}, [], pd.DataFrame(rows, columns=["trial", "level", "norm"]), None)


def world(right: bool, seeds=SEEDS) -> Evidence:
    """Everything measured, as the paper says or the opposite."""
    runs, schedules = {}, RIGHT if right else WRONG
    history = [{"allocation": counts, "dose": 0.01} for counts in ALLOCATIONS[right]]
    for seed in seeds:
        for i, (schedule, scores) in enumerate(schedules.items()):
            for task in paper.TASKS:
                runs[task, schedule, seed] = result(scores, 10 * seed + i, history)
        for i, (name, db) in enumerate(zip(catalogue.EXTRA_DATA, EXTRA[right], strict=True)):
            runs["inpaint", name, seed] = result(psnr(db), 10 * seed + i)
        for i, (method, db) in enumerate(BLOCKS[right].items()):
            runs["blocks", method, seed] = result(dict(zip(blocks.BLOCKS, db, strict=True)), 10 * seed + i)
        for task in paper.TASKS:
            rising = [1, 2, 3, 4, 5 + 0.1 * seed]
            runs["gradients", f"{task} rigid_joint", seed] = norms(rising if right else rising[::-1])
            for i, (name, lost) in enumerate({"hard_mining": 2 if right else -2, "rigid_joint": 0}.items()):
                runs["pool", f"{task} {name}", seed] = result({"pool": 30 + lost, "held out": 30}, 10 * seed + i)
    return Evidence(runs, table3(right, seeds), spectrum(right, seeds))


def table3(right: bool, seeds) -> pd.DataFrame:
    """Where noise is not clipped, both systems 2 dB ahead of an image's best published number; or behind, ours more."""
    best = {image: max(list(row.values())[:6]) for image, row in published.TABLE3.items()}
    leads = {"on_demand": 2 if right else -3, "fixated": 2 if right else -2}
    rows = [
        (image, system, clipped, best[image] + (leads[system] + 0.01 * seed) * (not clipped), seed)
        for image, system, clipped, seed in product(best, leads, (False, True), seeds)
    ]
    return pd.DataFrame(rows, columns=["image", "system", "clipped", "psnr", "seed"])


def spectrum(right: bool, seeds) -> pd.DataFrame:
    rows = []
    for sigma, seed in product(denoising.SPECTRUM, seeds):
        loss = 8 if right and sigma > 25 else 0.5
        found = [("bm3d", None, 30), *((system, 25, 30 - loss) for system in ("bm3d", "ksvd", "wnnm"))]
        found += [("on_demand", None, (30.6 if right else 25) + 0.01 * seed)]
        found += [(system, None, 30 - loss) for system in ("mlp", "csf", "tnrd")]
        rows += [(system, told, sigma, psnr, seed) for system, told, psnr in found]
    return pd.DataFrame(rows, columns=["system", "told", "sigma", "psnr", "seed"])


def verdicts(evidence: Evidence) -> dict:
    """Return a claim of the paper → its verdict."""
    return {c.claim: c.decide(evidence).published_word for c in claims.CLAIMS if c.kind != claims.ASKED}


def verdict_on(claim: str, evidence: Evidence) -> str:
    """Return the verdict on the claim with these words."""
    (word,) = (word for text, word in verdicts(evidence).items() if claim in text)
    return word


WORLDS = {"as published": lambda: world(True), "the opposite": lambda: world(False), "nothing": Evidence}


@cache
def decisions_of(kind: str) -> dict:
    return claims.judge_claims(WORLDS[kind]())


@pytest.mark.parametrize("claim", [claim.claim for claim in claims.CLAIMS if claim.kind != claims.ASKED])
def test_every_claim_can_be_reproduced_and_can_be_reversed(claim):
    *found, unmeasured = (decisions_of(kind)[claim].published_word for kind in WORLDS)
    assert found == ([UNDECIDED, UNDECIDED] if claim.startswith(tuple(LONE)) else [REPRODUCED, REVERSED])
    assert unmeasured == MISSING


def test_what_learns_at_25_is_judged_by_what_it_loses_beyond_its_distance_there():
    evidence = world(True)
    parts = db11_spectrum.judge_trained_at_25(evidence).parts
    assert parts["TNRD"].mean == pytest.approx(-7.5)  # 8 dB behind above 25, 0.5 dB at 25
    elsewhere = Evidence(spectrum=evidence.spectrum[evidence.spectrum.sigma != 25])
    assert db11_spectrum.judge_trained_at_25(elsewhere).word == MISSING


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_fewer_than_three_seeds_decide_nothing_but_arithmetic(seeds):
    decided = {claim for claim, word in verdicts(world(True, seeds)).items() if word not in (UNDECIDED, MISSING)}
    assert decided == {"BM3D, K-SVD and WNNM break down at other noise levels when they are told 25."}


def test_one_rival_that_is_not_measured_keeps_on_demand_from_being_best():
    evidence = world(True)
    for seed in SEEDS:
        del evidence.runs["deblur", "hard_mining", seed]
    verdict = table1.judge_best_of_seven(evidence, "deblur")
    assert (verdict.word, verdict.published_word) == (UNDECIDED, MISSING) and "1 to be measured" in describe(verdict)
    assert verdict_on("Deblurring: on-demand learning is the best", evidence) == MISSING
    assert table1.judge_best_of_seven(evidence, "inpaint").word == REPRODUCED


@pytest.mark.parametrize(
    ("level", "schedule", "claim"),
    [("6", "rigid_joint", LEVEL_6), ("1", "fixated_easy", RANDOM_PLACES), ("6", "fixated_hard", RANDOM_PLACES)],
)
def test_a_claim_about_one_level_looks_at_that_level(level, schedule, claim):
    """A rival ahead on one level only."""
    evidence = world(True)
    for seed in SEEDS:
        evidence.runs["inpaint", schedule, seed] = result(RIGHT[schedule] | {level: 33}, seed)
    assert verdict_on(claim, evidence) == REVERSED
    assert table1.judge_best_of_seven(evidence, "inpaint").word == fixation.judge_fixation(evidence).word == REPRODUCED


def test_inpainting_is_judged_inside_the_hole():
    """Copying well outside the hole makes no fixated model good."""
    evidence = world(True)
    for seed in SEEDS:
        run = evidence.runs["inpaint", "fixated_easy", seed]
        run.evaluation["psnr"] += 20
        for rival in (run, evidence.runs["inpaint", "on_demand", seed]):
            rival.evaluation["psnr_input"] = 29.0
            rival.evaluation["psnr"] -= 25  # below the damaged image as a whole, but not where pixels are missing
    assert fixation.judge_fixation(evidence).word == verdict_on(RANDOM_PLACES, evidence) == REPRODUCED


@pytest.mark.parametrize(("staged", "word"), [(24, REPRODUCED), (27, REVERSED)])
def test_a_collapse_is_3_db_behind(staged, word):
    evidence = world(True)
    for seed in SEEDS:
        evidence.runs["deblur", "staged_curriculum", seed] = result(psnr(staged), seed)
    assert verdict_on("collapses on deblurring", evidence) == word


def test_a_world_below_its_input_says_so_beside_its_words():
    evidence = world(True)
    for run in evidence.runs.values():
        if "psnr_input" in run.evaluation:
            run.evaluation["psnr_input"] = 40.0  # above the output, and above it with the known pixels kept
            run.evaluation["l2_input"] = 0.0
    found = claims.claims_table(claims.judge_claims(evidence))
    found = found[found.kind != claims.ASKED]
    assert set(found.verdict[found.claim.str.contains("schedule|mining is|curriculum")]) == {REPRODUCED}
    ahead = found.claim.str.contains("best of seven|level on which")
    assert found.measured[ahead].str.contains("below doing nothing").all()
    assert not found.measured[found.claim.str.contains("mining is|collapses|Fixation")].str.contains("below").any()


def test_the_papers_test_reverses_with_the_seed_and_decides_nothing():
    evidence = Evidence({})
    for seed, lead in enumerate((0.4, -0.4, 0.3)):
        evidence.runs["deblur", "on_demand", seed] = result(psnr(28 + lead), seed)
        evidence.runs["deblur", "rigid_joint", seed] = result(psnr(28), 9 + seed)
    table = table1.papers_test(evidence)
    assert (table.p < 0.001).all() and list(table.ahead > 0) == [True, False, True]
    assert judge.compare(evidence, {"": ("deblur", "on_demand", "rigid_joint")}).word == UNDECIDED


def test_the_numbers_of_the_paper_agree_with_what_it_says_of_them():
    """On-demand learning leads Table 1, but for denoising, and the means and counts of Table 3: a slip would show."""
    for task, dataset in product(("deblur", "interpolate", "inpaint"), (0, 1)):
        cells = {schedule: cell[dataset] for schedule, cell in published.TABLE1[task].items()}
        l2, psnr = cells.pop("on_demand")
        assert all(l2 < other[0] and psnr > other[1] for other in cells.values())
    quoted = {"bm3d": 30.37, "on_demand": 30.40, "fixated": 30.54}
    means = {system: np.mean([row[system] for row in published.TABLE3.values()]) for system in quoted}
    assert len(published.TABLE3) == 11 and means == pytest.approx(quoted, abs=0.01)
    assert [images_won(system) for system in ("on_demand", "fixated")] == [5, 7]


@pytest.mark.parametrize("seed", range(5))
def test_any_part_may_be_missing(seed):
    """No error, and nothing that is wrong in a whole world is right in a part of it."""
    chance = random.Random(seed)
    for right, opposite in ((True, REVERSED), (False, REPRODUCED)):
        whole = world(right, (0, 1, 2, 3))
        runs = {key: run for key, run in whole.runs.items() if chance.random() < 0.7}
        holes = [whole.table3, whole.spectrum]
        holes = [f.assign(psnr=f.psnr.where([chance.random() < 0.5 for _ in range(len(f))])) for f in holes]
        assert opposite not in verdicts(Evidence(runs, *holes)).values()


def test_a_table_that_cannot_be_written_is_a_line(root, monkeypatch, capsys):
    """On a read-only checkout the page is shown all the same."""

    def refuse(folder):
        raise files.DiskError(f"{folder}: not writable")

    monkeypatch.setattr(files, "need_writable", refuse)
    tables.write_table(pd.DataFrame({"psnr": [30.0]}), "table1", "smoke", "demo", "deblur")
    said = capsys.readouterr().out
    assert said.startswith("The table is shown and not written: ") and said.count("\n") == 1 and not root.exists()


def test_the_page_says_every_verdict_without_colour():
    table = claims.claims_table(decisions_of("the opposite"))
    html = scorecard.show_claims(table).data
    for word, n in table.verdict.value_counts().items():
        assert html.count(f"{scorecard.SYMBOLS[word]}&nbsp;{word}") == n
    parts = {"verdict": judge.UNDECIDED, "told": "undecided (of 2 parts 1 reproduced)"}
    assert ">of 2 parts 1 reproduced</span>" in scorecard.show_claims(table.assign(**parts)).data
    assert "<script" not in html and html.index("Core") < html.index("Secondary") < html.index("By construction")
    rule = scorecard.plot_rule({"a": [1, 1.1, 1.2], "b": [2]}).axes[0]
    assert {text.get_text()[2:] for text in rule.texts} == {"reproduced", "undecided"}


@pytest.mark.parametrize("which", predictions.FILES)
def test_every_prediction_is_of_a_claim_and_of_a_part_that_it_has(which):
    written, decisions = predictions.load_predictions(which), decisions_of("as published")
    whole = written[written.part == ""]
    assert {*written.claim} <= {*decisions} and {*written.word} <= {*judge.VERDICTS, *[""] * (which == "today")}
    for row in written[written.part != ""].itertuples():
        assert not decisions[row.claim].parts or row.part in decisions[row.claim].parts
    sized = written.dropna(subset=["low"])
    assert ((sized.low <= sized.expected) & (sized.expected <= sized.high)).all()
    assert whole["then" if which == "today" else "why"].all()
    assert predictions.predictions_table(decisions_of("nothing"), which).hit.isna().all()


@pytest.mark.parametrize(("which", "true"), [("reference", "Hard mining is"), ("gpu", "stronger gradient")])
def test_a_prediction_hits_with_its_word_or_its_margin_and_a_word_from_one_seed_does_neither(which, true):
    rows = predictions.predictions_table(decisions_of("as published"), which)
    close = rows[(rows.claim == "Equation 3 at its own dose beats equal shares.") & (rows.part == "deblurring")].iloc[0]
    assert close.margin == pytest.approx(2, abs=0.02) and not close.hit  # 30 and 28 dB in this world
    [hit] = rows[rows.claim.str.contains(true)].hit
    assert hit
    rows = predictions.predictions_table(claims.judge_claims(world(True, [0])), which)
    early = rows[(rows.part == "") & (rows.found == UNDECIDED)]
    assert len(early) and early.hit.isna().all() and rows.hit[rows.part != ""].notna().any()


def test_claims_on_faces_read_whole_blocks_alone(monkeypatch):
    """Of a block that lacks one run nothing is read, and what is asked there was predicted beforehand."""
    scale = "reference", "celeba10k-native", catalogue.SEEDS_OF_FACES
    blocks = [*catalogue.runs_of_blocks(*scale).values()]
    here = {*blocks[0][:-1], *blocks[1], *blocks[5]}
    monkeypatch.setattr("companion.training.results.load_result", lambda run: object() if run in here else None)
    assert catalogue.whole_blocks(*scale) == [blocks[1], blocks[5]]
    monkeypatch.setattr("companion.training.results.load_result", lambda run: object() if run in blocks[0] else None)
    for beside in ("gradients_and_pool", "recalibration"):
        monkeypatch.setattr(f"companion.measure.{beside}.load_all", lambda runs: {})
    assert {key[1] for key in claims.load_evidence(*scale).runs} == {"on_demand", "rigid_joint"}
    monkeypatch.undo()
    monkeypatch.setattr("companion.training.results.load_result", lambda run: object())
    monkeypatch.setattr(Measurement, "load", lambda one: None if one.what.overrides else object())
    whole = claims.load_evidence(*scale).runs  # a longer run, which has no gradients, stands in nobody's place
    assert {key[2] for key in whole if key[:2] == ("gradients", "deblur rigid_joint")} == {*scale[2]}
    assert {key[2] for key in whole if key[:2] == ("pool", "deblur hard_mining")} == {*scale[2][:3]}
    static = {(run.task, run.seed) for block in blocks for run in block if run.schedule == "static_easy"}
    assert static == {*product(catalogue.CONFOUNDED, scale[2])}
    named = {dose.name(run) for block in blocks for run in block}  # what claims and contrasts ask for is planned
    assert {name for pair in dose.CONTROLS.values() for name in pair} <= named
    assert {f"{schedule}{claims.LONG_RUN}" for schedule in catalogue.MAIN_CONTEST} | {"hard_mining, batch 100"} <= named
    predicted = {*predictions.load_predictions().claim, *predictions.load_predictions("today").claim}
    asked = {c.claim for _, c in claims.asked_of("celeba10k") if c.kind == claims.ASKED}
    assert asked <= predicted <= {c.claim for c in claims.CLAIMS}


def test_what_is_asked_of_faces_is_what_their_campaign_answers():
    history = [{"allocation": counts, "dose": 0.01} for counts in ALLOCATIONS[True]]
    scale = "reference", "celeba10k-native", catalogue.SEEDS_OF_FACES
    planned = sum(catalogue.runs_of_blocks(*scale).values(), [])
    db = dict.fromkeys([*published.FIXATED, "staged_curriculum"], 20)  # else they lack nothing that could be removed
    scores = {run: psnr(db.get(run.schedule, 30)) for run in planned}
    runs = {(run.task, dose.name(run), run.seed): result(scores[run], run.seed, history) for run in planned}
    beside = {key: run for key, run in world(True).runs.items() if key[0] in ("gradients", "pool")}
    blocks = catalogue.runs_of_blocks(*scale)
    moved = sum((blocks[name] for name in blocks if name.startswith("E3-")), [])
    beside |= {("recalibrated", f"{run.task} {run.schedule}", run.seed): result(psnr(29), run.seed) for run in moved}
    words = {claim.claim: claim.decide(Evidence(runs | beside)).word for claim in claims.CLAIMS}
    asked = {claim.claim for _, claim in claims.asked_of("celeba10k-native")}
    assert {claim for claim, word in words.items() if word != MISSING} == asked


def test_rate_share_order_and_feedback_are_told_apart():
    """Each contrast of the two runs that it names, on both tasks; what is not trained stays open."""
    evidence, trained = world(True), {"static_easy": 27.0, "replay": 30.5}
    trained |= {"cumulative_curriculum, decay 0.4": 28.5, "on_demand, decay 0.4": 26}
    for task, (name, db), seed in product(catalogue.CONFOUNDED, trained.items(), SEEDS):
        evidence.runs[task, name, seed] = result(psnr(db), seed)
    table = dose.controls_table(evidence).set_index("contrast")
    assert len(table) == 2 * len(dose.CONTROLS) and (table.seeds[table.margin.notna()] == len(SEEDS)).all()
    expected = {"cumulative curriculum − on-demand": -2, "the same, rate falling over the last 2/5": 2.5}
    expected |= {"its mean shares alone − equal shares": -1, "its mean shares alone − the curriculum": -1}
    expected |= {"k = 4 − another seed's shares under k = 4": 0.5}
    for contrast, db in expected.items():
        assert table.margin[contrast].to_list() == pytest.approx([db, db], abs=0.02)
    assert (table.verdict["the same, constant rate"] == MISSING).all()


def test_a_control_and_a_weak_opponent_stand_in_their_lines():
    evidence = world(True)
    assert "batches of 100" not in describe(table1.judge_hard_mining(evidence))
    evidence.runs["deblur", "hard_mining, batch 100", 0] = result(psnr(29))
    plain, told = table1.judge_hard_mining(world(True)), table1.judge_hard_mining(evidence)
    assert told.word == plain.word and describe(told).endswith("+1.00 dB (1 seed)")
    centre, arbitrary = BLOCKS[True][CENTRE]
    for own, weak in ((centre - 1, False), (centre + 1, True)):
        for seed in SEEDS:
            evidence.runs["inpaint", "fixated_hard", seed] = result(psnr(own + 9), seed)  # 9 dB less inside the hole
        said = describe(table2.judge_block(evidence, CENTRE, ["on_demand"], "central"))
        assert ("the centre encoder is weak" in said) == weak


@pytest.mark.parametrize(("ahead", "word"), [(1, REPRODUCED), (-1, REVERSED), (0, EQUIVALENT)])
def test_the_fill_that_learns_nothing_is_judged_in_both_places_on_every_seed(ahead, word):
    evidence = world(True)
    both = [np.mean([judge.score(evidence.runs["blocks", "on_demand", s], [b]) for s in SEEDS]) for b in blocks.BLOCKS]
    filled = dict(zip(blocks.BLOCKS, [db + ahead for db in both], strict=True))
    evidence.runs["blocks", blocks.BIHARMONIC, 0] = result(filled)
    found = table2.judge_classical(evidence)
    assert found.word == word and len(found.parts["central"].values) == 3
    assert found.parts["central"].mean == pytest.approx(ahead, abs=0.01)
    assert table2.judge_classical(world(True)).word == MISSING
