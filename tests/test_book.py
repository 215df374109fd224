"""The book's sources: what pages name exists, and what is generated is up to date."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product

import answer
import appendix
import build
import chapters
import figures
import lab_page
import measured
import nbformat
import numpy as np
import one_gpu
import pandas as pd
import pytest
import reasons
import results_table
import sources
from scipy import stats
from test_scorecard import psnr, result, world

from companion import judge, published
from companion.claims import claims
from companion.comparators import trained
from companion.disk import files
from companion.pages import db11_spectrum, dose, fixation, table1, table2, table3
from companion.runs import catalogue
from companion.training.results import Result
from odl import PROTOCOL, paper

ROOT = measured.ROOT


def test_the_contents_list_every_page_and_nothing_else():
    """What the pages themselves name, a strict build looks up."""
    listed = {*build.toc()}
    notebooks = {f"notebooks/{page.template.stem}" for page in build.plan("reference")}
    pages = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.md")}
    assert {name for name in listed if name.startswith("book/")} == pages
    assert notebooks == {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_tables_in_readmes_are_what_the_results_files_say():
    for page in results_table.READMES:
        filled = results_table.filled(page.read_text(), figures.README)
        assert page.read_text() == filled, f"{page}: run python book/figures.py --readme"


@pytest.mark.parametrize("dataset", measured.SETS)
@pytest.mark.parametrize("task", paper.TASKS)
def test_the_tables_that_readme_reads_are_of_every_seed_that_is_here(task, dataset):
    scores = []
    for path in (files.results() / "reference" / dataset / task).glob("on_demand-seed*.json"):
        if path.stem.removeprefix("on_demand-seed").isdigit():
            run = pd.DataFrame(json.loads(path.read_text())["evaluation"])
            scores.append(run[run.level.str.isdigit()].psnr.mean())
    found = measured.written("fixation", task, dataset).set_index("schedule").query("scored == 'all pixels'")
    assert found["mean"]["on_demand"] == pytest.approx(np.mean(scores), abs=1e-6)
    table = measured.written("table1", task, dataset).set_index("schedule")
    assert table.psnr["on_demand"] == pytest.approx(np.mean(scores), abs=1e-6) and len(scores) == 5
    assert table.seeds["on_demand"] == 5


def test_each_of_our_networks_that_ships_has_a_card_that_says_where_it_harms():
    """One cell recomputed from its file by a plain loop; whatever is bold is below 0, and nothing else."""
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", appendix.model_cards(), re.MULTILINE)
    names = [path.name for path in files.shipped().glob("*.safetensors")]
    ours = [name for name in names if not any(f"-{learner}-seed" in name for learner in trained.LEARNERS)]
    assert len(rows) == len(ours)
    for _, line in rows:
        assert all(cell.startswith("**−") == ("−" in cell) for cell in line.split(" | "))
    run = json.loads((files.results() / "reference/bsds500/deblur/rigid_joint-seed0.json").read_text())["evaluation"]
    on_level_2 = [k for k, level in enumerate(run["level"]) if level == "2"]
    gain = sum(run["psnr"][k] - run["psnr_input"][k] for k in on_level_2) / len(on_level_2)
    assert dict(rows)["deblur/rigid_joint-seed0"].split(" | ")[2] == f"{gain:+.2f}" and gain > 0


def test_counted_arithmetic_is_the_networks():
    """Against a count by hand for width 64: two outer layers, six of equal cost between them, the linear map."""
    outer, middle, linear = 2 * 16 * 3 * 64 * 32**2, 2 * 16 * 64 * 128 * 16**2, 2 * 512 * 16 * 16
    assert [flop for *_, flop in appendix.layers(3, 64)] == [outer, *[middle] * 3, linear, *[middle] * 3, outer]
    assert appendix.step_flop(3, 64, 100) == 100 * (3 * (2 * outer + 6 * middle + linear) - outer)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("titles", [["scenes"], ["scenes", "faces"]])
def test_three_sentences_carry_the_judges_words(monkeypatch, right, titles):
    m = world(right, (0, 1, 2))
    monkeypatch.setattr(answer, "worlds", lambda: dict.fromkeys(titles, m))
    monkeypatch.setattr(one_gpu, "load", lambda: m)
    sentences = answer.answer().split("\n\n")
    assert len(sentences) == 3 and max(len(re.findall(r"[\w.+−-]+", s)) for s in sentences) <= 25
    said = [re.findall(r"(?<!\*)\*(\w[\w ]*)\*(?!\*)", s) for s in sentences]
    assert said[:2] == [[fixation.problem(m, name).word] for name in ("on_demand", "rigid_joint")]
    gains = [judge.compare(m, {"": (task, "on_demand", "rigid_joint")}).word for task in paper.TASKS]
    assert {*said[2]} == {*gains} and ("Feedback beats" in sentences[2]) == ({*gains} == {judge.REPRODUCED})


def test_the_drawing_has_a_row_a_core_claim_with_the_intervals_of_its_seeds(monkeypatch):
    m = world(True, (0, 1, 2))
    monkeypatch.setattr(answer, "worlds", lambda: {"scenes": m})
    rows, core = answer.core(), [claim for claim in claims.CLAIMS if claim.kind == claims.CORE]
    shown = [row["claim"] for row in rows]
    assert [claim for claim in claims.CLAIMS if claim in shown and claim in core] == core
    assert [claim.claim for claim in shown if claim not in core] == ["Equation 3 at its own dose beats equal shares."]
    for row in rows:
        verdict, marks = row["sets"]["scenes"]
        assert verdict.rests_on in verdict.numbers
        assert verdict.word == row["claim"].measure(m).word and len(marks) == len(verdict.parts)
        if task := getattr(row["claim"].measure, "keywords", {}).get("task"):
            for rival, (mean, *ends) in zip(table1.RIVALS, marks, strict=True):
                gaps = judge.gaps(m.runs, task, "on_demand", rival)
                assert (mean, *ends) == pytest.approx((np.mean(gaps), *judge.interval(gaps)), abs=0.006)
    assert all(row["title"] in answer.forest() for row in rows)


def test_the_table_of_core_claims_has_each_part_or_the_one_that_decides():
    few = judge.verdict_on({"deblurring": [0.1, 0.2, 0.3], "denoising": [0.3, 0.4, 0.5]})
    assert answer.spelled({"scenes": (few, [])}, "scenes") == (
        f"deblurring {judge.estimate([0.1, 0.2, 0.3])}; denoising {judge.estimate([0.3, 0.4, 0.5])}: *{few.word}*"
    )
    many = judge.verdict_on({f"rival {k}": [k - 2.0, k - 2.1, k - 1.9] for k in range(6)})
    assert many.word == judge.REVERSED and answer.spelled({"scenes": (many, [])}, "scenes").startswith(
        "rival 0 −2.00 dB"
    )
    assert answer.spelled({"scenes": (judge.Verdict(judge.MISSING), [])}, "scenes") == "–: *to be measured*"


def test_what_is_partly_measured_on_faces_is_neither_drawn_nor_counted_as_undecided(monkeypatch):
    """Equation 3 and equal shares alone: the contest has its words, fixation those of scenes, best of seven none."""
    scenes, close = world(True, (0, 1, 2)), ("on_demand", "rigid_joint")
    faces = judge.Measured({key: run for key, run in scenes.runs.items() if key[0] in paper.TASKS and key[1] in close})
    monkeypatch.setattr(answer, "worlds", lambda: {"scenes": scenes, "faces": faces})
    monkeypatch.setattr(one_gpu, "load", judge.Measured)
    first, _, third = answer.answer().split("\n\n")
    assert f"(*{fixation.problem(scenes).word}* on scenes)" in first and f"all {2 * len(paper.TASKS)} contests" in third
    drawn = {row["title"]: [*row["sets"]] for row in answer.core()}
    assert drawn["Feedback beats equal shares?"] == ["scenes", "faces"]
    assert [title for title, sets in drawn.items() if "faces" in sets] == ["Feedback beats equal shares?"]


def test_what_a_gpu_measured_at_full_width_is_a_row_and_counts_among_the_contests(monkeypatch):
    """Here it says the opposite of the CPU."""
    cpu, wide = world(True, (0, 1, 2)), world(False, (0, 1, 2))
    monkeypatch.setattr(answer, "worlds", lambda: {"scenes": cpu, "faces": cpu})
    monkeypatch.setattr(one_gpu, "load", lambda: wide)
    words = [judge.compare(m, {"": ("deblur", "on_demand", "rigid_joint")}).word for m in (cpu, wide)]
    *_, third = answer.answer().split("\n\n")
    assert f"*{words[0]}* in 8, *{words[1]}* in 4 contests, 4 at full width" in third and words[0] != words[1]
    [row] = [row for row in answer.core() if row["title"] == "at full width?"]
    assert [*row["sets"]] == ["faces"] and row["sets"]["faces"][0].word == dose.dose_against_margin(wide, 1).word
    assert row["sets"]["faces"][0].word != dose.dose_against_margin(cpu, 1).word


def on_faces(monkeypatch, **scores):
    """`worlds` with runs of seeds 10 to 12 on faces alone: schedule → mean PSNR, or the PSNR of each level."""
    levels = {name: psnr(db) if np.isscalar(db) else db for name, db in scores.items()}
    runs = {
        (task, name, seed): result(levels[name], seed)
        for task, name, seed in product(paper.TASKS, levels, (10, 11, 12))
    }
    monkeypatch.setattr(reasons, "worlds", lambda: {"faces": judge.Measured(runs)})
    return runs


@pytest.mark.parametrize(
    ("static", "rate", "said"),
    [
        (0.4, 0.0, ["margin changes by nothing that counts", "are at most 0.10 dB behind", "alone beat equal ones"]),
        (0.0, 0.4, ["margin is smaller", "are more than 0.10 dB behind", "alone are as good as equal ones"]),
        (-0.4, -0.4, ["margin is larger", "are more than 0.10 dB behind", "alone are worse than equal ones"]),
    ],
)
def test_why_the_curriculum_leads_is_what_the_runs_say(monkeypatch, static, rate, said):
    """Its lead of 0.4 dB, of which `rate` is gone where the rate falls earlier, and static shares `static` ahead."""
    on_faces(
        monkeypatch,
        rigid_joint=30, on_demand=30, cumulative_curriculum=30.4, static_easy=30 + static,
        **{"on_demand, decay 0.4": 29, "cumulative_curriculum, decay 0.4": 29.4 - rate},
    )  # fmt: skip
    sentences = [sentence for sentence, *_ in reasons.causes()]
    assert len(sentences) == len(said) and all(map(str.__contains__, sentences, said))
    assert reasons.why().endswith(" ".join(["on deblurring and denoising, where it leads on scenes.", *sentences]))
    assert all(f"{sentence[:-1]} (" in reasons.curriculum() for sentence in sentences)
    assert reasons.divided() == "", "one of the two is 0, or against it"


def test_a_lead_is_divided_where_shares_and_order_both_bring_some(monkeypatch):
    on_faces(monkeypatch, rigid_joint=30, cumulative_curriculum=30.5, static_easy=30.2)
    each = [f"+0.20 dB on {task}, and the order +0.30 dB more" for task in ("deblurring", "denoising")]
    assert reasons.divided().startswith(f"Of the lead over equal shares the shares alone bring {' and '.join(each)};")
    assert reasons.why().endswith(f" {reasons.divided()}")


def test_known_pixels_kept_turn_what_all_pixels_say():
    """By all pixels on-demand learning is 0.4 dB behind each; with the known ones kept it is ahead of the last."""
    kept = {"rigid_joint": 35.0, "cumulative_curriculum": 35.5, "cumulative_anti_curriculum": 34.6}
    runs = {}
    for (name, db), seed in product({"on_demand": 35.0, **kept}.items(), (10, 11, 12)):
        run, away = result(psnr(30.4 if name in kept else 30.0), seed), 0.01 * (seed - 11) * (name in kept)
        runs["inpaint", name, seed] = replace(run, evaluation=run.evaluation.assign(psnr_kept=db + away))
    half = stats.t.ppf(0.975, 2) * 0.01 / 3**0.5
    means = [35 - db for db in kept.values()]
    said = [f"{db:+.2f} dB [{db - half:+.2f}, {db + half:+.2f}]".replace("-", "−") for db in means]
    assert chapters.put_back(judge.Measured(runs)) == f"{said[0]}, {said[1]} and {said[2]}"
    assert chapters.turned(judge.Measured(runs)) == "the cumulative anti-curriculum"
    assert chapters.put_back(judge.Measured()) == judge.MISSING and chapters.turned(judge.Measured()) == chapters.NONE


@pytest.mark.parametrize(
    ("ahead", "said"),
    [(0.4, "own scores do better"), (0.0, "whose scores made them does not matter"), (-0.4, "shares do better")],
)
def test_whose_scores_feedback_follows_is_what_the_runs_say(monkeypatch, ahead, said):
    """The network's own with k = 4 is `ahead` of the recorded shares of the next seed."""
    on_faces(monkeypatch, replay=30, **{chapters.SHARP: 30 + ahead})
    sentence, with_margins = reasons.whose()
    assert said in sentence and with_margins.startswith(f"{sentence[:-1]} (")
    assert f"{ahead:+.2f} dB".replace("-", "−") in with_margins
    on_faces(monkeypatch, replay=30)
    assert {*reasons.whose()} == {"What came of it is to be measured."}


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (0.4, ("beats equal shares.", "the lower the mean PSNR.")),
        (-0.4, ("is worse than equal shares.", "the higher the mean PSNR.")),
    ],
)
def test_what_a_lean_to_the_easy_levels_does_is_what_the_runs_say(monkeypatch, ahead, said):
    """k = −4 is `ahead` of equal shares, and k = 4 as far behind, each with a dose of 2 %."""
    monkeypatch.setattr(dose, "dose_of", lambda run: 0.02)
    runs = {dose.NAMES[-4]: 30 + ahead, dose.NAMES[4]: 30 - ahead, "on_demand": 30, "rigid_joint": 30}
    on_faces(monkeypatch, **runs)
    plain, with_margins = reasons.lean()
    assert all(map(plain.__contains__, said)) and f"{ahead:+.2f} dB".replace("-", "−") in with_margins
    assert with_margins.count(" ‰ for each %") == 1
    monkeypatch.setattr(reasons, "worlds", dict)
    assert {*reasons.lean()} == {
        "On faces, feedback turned round and about four times as strong (k = −4) is to be measured."
    }


def test_tasks_that_differ_have_a_sentence_each(monkeypatch):
    """Static shares as good as the curriculum on deblurring, and far behind it on denoising."""
    runs = on_faces(monkeypatch, rigid_joint=30, cumulative_curriculum=30.4, static_easy=30.4)
    runs |= {("denoise", "static_easy", seed): result(psnr(29), seed) for seed in (10, 11, 12)}
    monkeypatch.setattr(reasons, "worlds", lambda: {"faces": judge.Measured(runs)})
    [order, lean] = [sentence for sentence, *_ in reasons.causes()]
    assert order == (
        "Without its order, its shares are at most 0.10 dB behind it on deblurring. "
        "Without its order, its shares are more than 0.10 dB behind it on denoising."
    )
    assert "alone beat equal ones on deblurring. " in lean and lean.endswith("than equal ones on denoising.")
    runs |= {("denoise", "static_easy", seed): result(psnr(30 + seed - 10), seed) for seed in (10, 11, 12)}
    monkeypatch.setattr(reasons, "worlds", lambda: {"faces": judge.Measured(runs)})
    [order, _] = [sentence for sentence, *_ in reasons.causes()]
    assert (
        order == "Without its order, its shares are at most 0.10 dB behind it on deblurring; on denoising that is open."
    )


def test_rules_since_2017_have_both_scores(monkeypatch):
    """The second, the worst gap to a specialist, from a plain loop."""
    alone = {f"level_{i}": psnr(20, **{str(i): 31 + i}) for i in range(1, 6)}
    runs = on_faces(monkeypatch, rigid_joint=30, on_demand=30.2, minimax_gap=psnr(30.5, 0.5), **alone)
    dbs = {key: run.evaluation.groupby("level").psnr.mean() for key, run in runs.items()}
    for (*_, seed), run in runs.items():  # to level 5, where equal shares are worst, 50 to 56 % of the images
        run.history.extend([{"allocation": [0, 0, 0, 0, 40]}, {"allocation": [0, 0, 0, 0, 6 * seed]}])
    for task in paper.TASKS:
        found = reasons.scores(task)
        assert [*found] == ["on_demand", "minimax_gap"]
        for name, (means, worst) in found.items():
            margins, nearer = [], []
            for seed in (10, 11, 12):
                own, equal = dbs[task, name, seed], dbs[task, "rigid_joint", seed]
                margins.append(np.mean([own[i] - equal[i] for i in "123456"]))
                gaps = [max(dbs[task, f"level_{i}", 10][i] - net[i] for i in "12345") for net in (equal, own)]
                nearer.append(gaps[0] - gaps[1])
            assert (means, worst) == (pytest.approx(margins), pytest.approx(nearer))
    behind = {i: 31 + i - dbs["deblur", "rigid_joint", 10][str(i)] for i in range(1, 6)}
    level = max(behind, key=behind.get)
    assert f"is level {level}, by " in reasons.later() and f"{behind[level]:.2f} dB on deblurring" in reasons.later()
    assert "- Its worst gap is smaller than Equation 3's (Equation 3's − its own: inp" in reasons.later()
    assert "Its mean PSNR is higher (its margin over Equation 3: inpainting +" in reasons.later()
    ahead = np.mean(reasons.scores("deblur")["minimax_gap"][1]) - np.mean(reasons.scores("deblur")["on_demand"][1])
    assert f"on faces by {ahead:+.2f} dB" in reasons.facts()["said"]
    assert "gives it 50 to 56 % of all images.\n" in reasons.later()  # level 5 is no other way
    lies = "inside" if 0 <= ahead <= 0.4 else "outside"
    assert (
        f"foretold *reproduced*, +0.00 to +0.40 dB; the mean of the tasks, {ahead:+.2f} dB, lies {lies}."
        in reasons.later()
    )
    assert "need scores?" not in reasons.later()
    runs |= {(t, "static_easy", k): result(psnr(30.5, 0.5), k) for t in catalogue.CONFOUNDED for k in (10, 11, 12)}
    margins = f"(deblurring {ahead:+.2f} dB [{ahead:+.2f}, {ahead:+.2f}]; denoising {ahead:+.2f} dB"
    assert (
        f"need scores? Shares that never change, the curriculum's means, make the worst gap smaller, too {margins}"
        in reasons.later()
    )
    assert "beyond them is open (deblurring +0.00 dB [+0.00, +0.00]; denoising +0.00 dB" in reasons.later()
    assert "squared error is certainly larger than Equation 3's on no task" in reasons.later()
    runs = on_faces(monkeypatch, rigid_joint=30, on_demand=30.2, minimax_gap=psnr(34, -1.5), **alone)  # hard levels pay
    for run in runs.values():
        run.history.append({"allocation": [20] * 5})
    assert reasons.facts()["price"].endswith(" on inpainting, interpolation, deblurring and denoising.")
    on_faces(monkeypatch, rigid_joint=30, on_demand=30.2, inverse_mse=30.1)  # one rule alone, without specialists
    left = "how far each rule is behind a specialist on its worst level."
    assert reasons.later() == f"Yet to be measured: Minimax gap, Group DRO and {left}"
    on_faces(monkeypatch, rigid_joint=30, on_demand=30.2)
    assert reasons.later() == f"Yet to be measured: Minimax gap, Group DRO, Shares as 1/MSE and {left}"
    assert reasons.curriculum().endswith("to be measured.")


def test_what_sentences_take_from_levels_and_intervals():
    """Shares of the loss by hand; a task is named as lower or as below its input where it is, and no other."""
    equal = psnr(30) | {"1": 19.0, "5": 20.0}  # the damaged image has 20 dB on every level
    runs = {("deblur", "rigid_joint", seed): result(equal, seed) for seed in range(3)}
    runs |= {("deblur", "on_demand", seed): result(equal, 9 + seed) for seed in range(3)}
    runs |= {("deblur", chapters.SHARP, seed): result(psnr(29) | {"1": 19.0, "5": 20.0}, seed) for seed in range(3)}
    runs |= {
        ("denoise", name, seed): result(psnr(30), seed) for name in ("rigid_joint", "on_demand") for seed in range(3)
    }
    runs |= {("denoise", chapters.SHARP, seed): result(psnr(30.5), seed) for seed in range(3)}
    m = judge.Measured(runs)
    loss = {level: 10 ** (-db / 10) for level, db in equal.items()}
    share = 100 * (loss["4"] + loss["5"]) / sum(loss[level] for level in "12345")
    assert chapters.hard_loss(m) == f"40 to {share:.0f} %"
    assert chapters.certain(m, chapters.SHARP, "rigid_joint", -1) == "deblurring"
    assert chapters.certain(m, chapters.SHARP, "rigid_joint", 1) == "denoising"
    assert chapters.tasks_below(m, ["1"]) == "deblurring" and chapters.tasks_below(m, ["2"]) == "to be measured"
    assert chapters.certain(judge.Measured(), chapters.SHARP, "rigid_joint", 1) == "to be measured"


def test_a_chapter_names_its_files_and_the_command_of_each_campaign():
    said = sources.of_chapter("problem", "Scale: small.")
    assert said.startswith(":::{container} odl-source\nScale: small. From `data/results/reference/bsds500/` (")
    for name in ("bsds500", "celeba10k-native"):
        folder, schedules = files.results() / "reference" / name, ("fixated_easy", "fixated_hard", "on_demand")
        here = [path for path in folder.glob("*/*.json") if path.stem.partition("-seed")[0] in schedules]
        here = [path for path in here if re.fullmatch(r"[a-z_]+-seed\d+(-blocks)?", path.stem)]
        command = f"python -m companion reproduce --profile reference --dataset {name}"
        assert f"`data/results/reference/{name}/` ({len(here)} files); `{command}`." in said
    assert sources.of_chapter("fidelity") == sources.line([([], "make bench")], "Scale: small.") == ""


def test_of_how_many_images_one_moves(monkeypatch):
    """19, 19.5, 20, 20.5 and 21 per cent: 1.5 of 100 images have moved, from levels 1 and 2 to 4 and 5."""
    runs = {("denoise", "on_demand", 0): Result({}, {}, [{"dose": np.mean([0.01, 0.005, 0, 0.005, 0.01])}], None, None)}
    monkeypatch.setattr(answer, "worlds", lambda: {"scenes": judge.Measured(runs)})
    assert answer.one_in(answer.worlds().values()) == round(100 / 1.5)


def test_what_the_chapters_state_holds_in_the_results():
    """Their first sentences are typed; here is what each rests on."""
    for title, m in measured.worlds().items():
        over, there = chapters.fixated_margins(m)
        assert min((np.mean(gaps) for gaps in over + there), default=1) > 0  # 1, 6: fixation
        assert not fixation.control(m).eval("(on_demand - rigid_joint).abs().max()") > judge.WITHIN  # 1, 6: its cure
        moved = [chapters.mean_margins(m, chapters.SHARP, "rigid_joint", on) for on in (["1"], ["5"], judge.LEVELS)]
        trades = [easy < min(hard, 0) for easy, hard, _ in zip(*moved, strict=True)] if all(moved) else []
        assert max(moved[1], default=0) < judge.WITHIN  # 6: the hardest wins little or nothing
        no_gain = [hard + easy <= 0 for hard, easy in chapters.traded(m).values()]
        assert sum(no_gain) >= len(no_gain) / 2  # 3: which of the guesses is right
        doses = [judge.gaps(m.runs, t, dose.NAMES[k], "rigid_joint") for t in paper.TASKS for k in (-1, 4)]
        rising = [gaps for gaps in doses if len(gaps) >= judge.ENOUGH and judge.interval(gaps)[0] > 0]
        assert all(trades) and not rising  # 3, 6: what more feedback moves, and what a turn to the easy levels does
        pairs = product(paper.TASKS, published.PARTIAL)
        ahead = [np.mean(gaps) for t, r in pairs if len(gaps := judge.gaps(m.runs, t, "on_demand", r))]
        close = max(map(abs, chapters.mean_margins(m, "on_demand", "rigid_joint")))
        assert title == "faces" or over and there and all(moved) and ahead  # on faces some of it is to be measured
        assert not ahead or np.median(ahead) > 10 * close  # 4
    later = reasons.facts()
    assert later["level"] == "level 1" and "turns the other way" in later["given"]  # 4, 6: to the easiest
    faces = measured.worlds()["faces"]
    given = [np.mean([epoch["allocation"][0] for epoch in r.history]) for r in judge.runs_of(faces.runs, "on_demand")]
    assert max(given) < 20 and reasons.causes(reasons.LATER)[0][-1].word == judge.MIXED  # 4, 6: the gap, by two scores
    pairs = ("static_easy", "on_demand"), ("minimax_gap", "static_easy")
    too, beyond = ([*table1.narrower(faces, *pair).numbers.values()] for pair in pairs)
    assert len(too) == 2 and min(low for _, low, _ in too) > 0  # 4, 6: static shares make it smaller, too
    assert len(beyond) == 2 and all(low < 0 < high for _, low, high in beyond)  # whether minimax training leads is open
    m = measured.load()
    gap = db11_spectrum.curves(m).eval("on_demand - bm3d")
    assert db11_spectrum.told_25(m).word == judge.REPRODUCED  # 5
    told = db11_spectrum.curves(m).eval("bm3d25 - on_demand")
    assert told[[5, 15, 25]].min() > 0 and db11_spectrum.curves(m).eval("bm3d - bm3d25")[[5, 15, 50]].min() > 0  # 5
    assert gap.iloc[0] < 0 < gap.iloc[-1] and np.mean(table3.behind_specialist(m)) < -table3.NEAR  # 5
    fills = lab_page.fills()
    assert fills["biharmonic"][1] > fills["network"][1] and table2.classical_wins(m).word == judge.REVERSED  # 5


def test_what_one_gpu_measured_is_what_its_files_hold():
    """Margins of each seed by hand from the JSONs, and the times that the page on scale has typed."""
    folder = files.results() / "gpu" / "celeba10k-native"
    contents = {path: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/*.json")}

    def scores(task: str, name: str, column: str = "psnr") -> dict[int, float]:
        found, (schedule, _, k) = {}, name.partition(", k = ")
        for path, content in contents.items():
            stem = rf"{schedule}-seed\d+" + f"-sharpness={k}" * bool(k)
            if path.parent.name == task and re.fullmatch(stem, path.stem):
                rows = zip(content["evaluation"]["level"], content["evaluation"][column], strict=True)
                found[content["experiment"]["seed"]] = np.mean([value for level, value in rows if level in "123456"])
        return found

    def ends(task: str, one: str, other: str, column: str) -> tuple[float, float]:
        ours, theirs = scores(task, one, column), scores(task, other, column)
        gaps = [ours[seed] - theirs[seed] for seed in {*ours} & {*theirs}]
        return stats.t.interval(0.95, len(gaps) - 1, np.mean(gaps), stats.sem(gaps)) if len(gaps) > 2 else (-9, 9)

    seen, equation3 = [], []
    rules = one_gpu.margins(one_gpu.RULES, one_gpu.load_rules)
    contests = [(line, one_gpu.CONTESTS) for line in one_gpu.margins().splitlines()[2:]]
    for line, pairs in contests + [(line, one_gpu.RULES) for line in rules.splitlines()[2:]]:
        name, width, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        task = next(task for task in paper.TASKS if judge.plain(task) == name)
        for cell, (one, other) in zip(cells * (width == "64, GPU"), pairs.values(), strict=False):
            ours, theirs = scores(task, one), scores(task, other)
            by_hand = [ours[seed] - theirs[seed] for seed in sorted({*ours} & {*theirs})]
            equation3 += [np.mean(by_hand)] * ((one, other) == ("on_demand", "rigid_joint"))
            seen.append(task)
            by_hand = by_hand if len(by_hand) > 2 else [np.mean(by_hand)]
            if len(by_hand) > 2:
                half = stats.t.ppf(0.975, len(by_hand) - 1) * stats.sem(by_hand)
                by_hand = [np.mean(by_hand), np.mean(by_hand) - half, np.mean(by_hand) + half]
            found = [float(number.replace("−", "-")) for number in re.findall(r"[+−]\d+\.\d+", cell)]
            assert found == pytest.approx(by_hand, abs=0.006)
    assert len(seen) == 12 + 8 and rules in one_gpu.rules()
    facts = one_gpu.facts()
    both_certain = [  # a higher PSNR, which is better, beside a higher error, which is worse
        f"{title}, {judge.plain(task)}"
        for title, pair in one_gpu.CONTESTS.items()
        for task in paper.TASKS
        if any(all(sign * end > 0 for name in ("psnr", "l2") for end in ends(task, *pair, name)) for sign in (1, -1))
    ]
    assert facts["opposite"] == ("; ".join(both_certain) or "none")
    printed = {"inpaint": 0.19, "interpolate": 0.23, "deblur": 0.18, "denoise": 0.10}
    assert [row["paper"] for row in answer.core() if row["title"] == "at full width?"] == [
        {"faces": [*printed.values()]}
    ]
    above = [ends(task, *one_gpu.PAIR, "psnr")[1] < printed[task] for task in paper.TASKS]
    assert all(above) == ("lies above the interval" in facts["wide"])
    cells = [
        line.split("|")[1:] for line in one_gpu.margins().splitlines()[2:]
    ]  # a row of the CPU, then one of the GPU
    curriculum = {row[0].strip(): [] for row in cells}
    for name, _, _, cell, *_ in cells:
        curriculum[name.strip()].append([float(n.replace("−", "-")) for n in re.findall(r"[+−]\d+\.\d+", cell)])
    apart = [task for task, ((_, *cpu), (_, *wide)) in curriculum.items() if cpu[1] < wide[0] or wide[1] < cpu[0]]
    assert re.findall(r"dB on (\w+)", facts["moved"]) == apart
    assert f" is {judge.number(min(equation3))} to {judge.number(max(equation3))} dB" in facts["wide"]
    page = (ROOT / "book" / "paper_scale.md").read_text(encoding="utf-8")
    times = json.loads((folder.parent / "NVIDIA-H200.json").read_text(encoding="utf-8"))["milliseconds"]
    assert re.findall(r"(?m)^\| (?:with|as).* \| ([\d.]+) \|$", page) == [f"{ms:.2f}" for ms in times.values()]
    taken = [
        sum(content["provenance"]["seconds"][key] for key in ("train", "evaluate"))
        for path, content in contents.items()
        if re.match("on_demand|rigid_joint|cumulative_curriculum", path.stem) and not path.stem.endswith("gradients")
    ]
    assert f" {np.median(taken):.0f} seconds with its" in page and f" {np.median(taken) / 7:.0f} seconds of" in page


def test_an_open_claim_of_a_gpu_is_told_by_its_parts():
    even, higher, wide, barely = [0.01, 0.02, 0.015], [0.2, 0.21, 0.22], [1, -1, 0.5], [-0.2, -0.3, -0.4]
    told = {
        "*equivalent* on a and b, open on c": {"a": even, "b": even, "c": wide},
        "*equivalent* on a, *reproduced* on b, open on c": {"a": even, "b": higher, "c": wide},
        "*equivalent (reproduced on a, equivalent on b)*": {"a": higher, "b": even},
        "*reversed*": {"a": [-0.2, -0.21, -0.22], "b": wide},
        "open": {"a": wide},
        "*reversed* on a and b": {"a": barely, "b": barely},  # alone, not both by the stricter test
    }
    assert [one_gpu.by_part(judge.verdict_on(margins)) for margins in told.values()] == [*told]


@pytest.mark.parametrize("feedback", [0.0, 0.491])
def test_rigid_joint_learning_stands_beside_on_demand_learning_over_the_fixated_models(feedback):
    """Its margins against a plain loop, and in the sentence how far the two are apart."""
    scores = {"on_demand": psnr(30 + feedback), "rigid_joint": psnr(30)}
    scores |= {"fixated_easy": psnr(24, easy=33), "fixated_hard": psnr(25, hard=34)}
    keys = [*product(paper.TASKS, scores, range(3))]
    runs = {(task, schedule, seed): result(scores[schedule], seed) for task, schedule, seed in keys}
    table = fixation.control(judge.Measured(runs)).set_index("comparison")
    assert len(table) == 4 * len(paper.TASKS)
    for comparison, margins in table.iterrows():
        own = "easy" if "on easy" in comparison else "hard"
        levels, sign = ([own], -1) if "own severity" in comparison else ("123456", 1)
        for schedule, margin in margins.items():
            gaps = [scores[schedule][level] - scores[f"fixated_{own}"][level] for level in levels]
            assert margin == pytest.approx(sign * np.mean(gaps))
    said = fixation.without_feedback(judge.Measured(runs))
    assert "within 0.50 dB" in said if feedback else "within 0.00 dB" in said  # rounded up
    assert not fixation.without_feedback(judge.Measured())


def test_the_photographs_of_table_3_are_counted_and_set_beside_the_papers():
    """Made up so that ours lose four times what the paper's lose: the same order, and three photographs beyond 0.28."""
    rows = [
        (image, system, False, p["fixated"] + 4 * (p[system] - p["fixated"]), 0)
        for image, p in published.TABLE3.items()
        for system in ("on_demand", "fixated")
    ]
    m = judge.Measured(table3=pd.DataFrame(rows, columns=["image", "system", "clipped", "psnr", "seed"]))
    said, lost = table3.by_photograph(m), {i: 4 * (p["on_demand"] - p["fixated"]) for i, p in published.TABLE3.items()}
    near = sum(db > -0.28 for db in lost.values())
    assert f"On {near} of the 11" in said and "rank correlation with ours is 1.00" in said
    low, high = stats.t.interval(0.95, 10, np.mean([*lost.values()]), stats.sem([*lost.values()]))
    assert f"[{low:+.2f}, {high:+.2f}]".replace("-", "−") in said
    assert table3.by_photograph(judge.Measured(table3=m.table3[m.table3.image != "Lena"])) == ""


def test_the_dose_of_the_papers_length_is_a_line_through_two_lengths():
    """A dose that grows by 0.1 % with each of log 6 from 10,000 to 60,000 steps, drawn on to 1,500,000 by hand."""

    def run(epochs, dose):
        experiment = {"epochs": epochs, "iterations": 200}
        return Result(experiment, {}, [{"dose": 0.9}, {"dose": dose}], None, None)

    runs = {("denoise", "on_demand", 0): run(50, 0.010)}
    m = judge.Measured(runs, long={("denoise", 0): run(300, 0.011)})
    far = 1.1 + 0.1 * np.log(1_500_000 / 60_000) / np.log(6)
    assert np.ravel(chapters.growth(m)) == pytest.approx([1.0, 1.1, far])
    assert chapters.growth(judge.Measured(runs)).shape == (3, 0)


def test_tables_numbers_and_drawings_are_made_when_nothing_is_measured(tmp_path):
    """As in a new project, or at another scale than the book's."""
    code = """import warnings
import figures
warnings.filterwarnings("error", category=UserWarning, module="drawings")
for name, table in figures.TABLES.items():
    assert figures.made_or_missing(name, table), name
for name, make in figures.chapters.FACTS.items():
    assert all(map(str, make().values())), name
for name, draw in figures.FIGURES.items():
    if name.endswith(".svg"):  # of results files alone
        draw().canvas.draw()
assert "nan" not in figures.lab_page.why_grey()
print(figures.results_table.results_table())"""
    environment = {"ODL_ROOT": str(tmp_path), "PYTHONPATH": str(ROOT / "book"), "PATH": ""}
    run = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "to be measured" in run.stdout


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"protocol": 1}, "of another protocol"),
        ({"protocol": None}, "of another protocol"),
        ({"provenance": {"commit": "unknown"}}, "of an unknown commit"),
        ({"provenance": {"commit": "0123abc-dirty"}}, "of code with uncommitted changes"),
    ],
)
def test_a_strict_build_ends_with_the_names_of_results_not_to_publish(root, capsys, change, fault):
    path = root / "data" / "results" / "smoke" / "one.json"
    content = {"protocol": PROTOCOL, "experiment": {}, "provenance": {"commit": "0123abc"}}
    for good in (content, {"rows": []}):
        files.write_atomically(path, files.seal(good))
        build.check_current("smoke")
    files.write_atomically(path, files.seal(content | change))
    with pytest.raises(SystemExit, match="1 of 1 results"):
        build.check_current("smoke")
    assert f"smoke/one.json is {fault}\n" in capsys.readouterr().err


def test_what_stands_above_the_first_section_is_one_folded_cell():
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    cells = [text("# Title"), code("a = 1", metadata={"tags": ["remove-cell"]}), code("b = 2"), code("c = 3")]
    cells[3].outputs = [nbformat.v4.new_output("stream", text="trained")]
    notebook = nbformat.v4.new_notebook(cells=[*cells, text("## Section"), code("d = 4")])
    build.fold(notebook)
    assert [cell.source for cell in notebook.cells] == ["# Title", "a = 1", "b = 2\n\nc = 3", "## Section", "d = 4"]
    assert build.tags_of(notebook.cells[2]) == ["hide-cell"] and notebook.cells[2].outputs[0].text == "trained"


def test_pages_alone_need_notebooks_that_were_executed(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(sys, "argv", ["build.py", "--pages"])
    with pytest.raises(SystemExit, match=r"(?s)book: .*notebooks.*\.ipynb is not here"):
        build.main()
