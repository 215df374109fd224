"""Questions asked of a network of today: each margin against a plain computation, and what recalibration moves."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import tiny
from measured import ROOT
from test_mended import content
from test_scorecard import psnr, result

from companion import judge
from companion.claims import claims
from companion.data import packs
from companion.judge import Evidence
from companion.measure import recalibration
from companion.pages import table1, today
from companion.runs import sweep
from companion.show.sentences import severity_text
from companion.training import results
from odl import crops, paper
from odl.corruptions import TASKS
from odl.evaluation import TESTED, images_of
from odl.experiment import FOR_NETWORK
from odl.windows import restorer

SEEDS = (10, 11, 12)


def world(**levels) -> Evidence:
    """Runs of every task, three seeds each: schedule → PSNR (dB) of every level, the seed's last digit on top."""
    runs = product(paper.TASKS, levels, SEEDS)
    return Evidence({(t, name, k): result(psnr(levels[name] + k % 10), k) for t, name, k in runs})


@pytest.mark.parametrize(("moved", "share"), [(20, 0), (25, 50), (29, 90), (30, 100)])
def test_the_share_that_recalibration_removes(moved, share):
    evidence = world(on_demand=30, fixated_hard=20, fixated_easy=20, staged_curriculum=20)
    for (task, name), k in product(recalibration.RECALIBRATED, SEEDS):
        evidence.runs["recalibrated", f"{task} {name}", k] = run = result(psnr(moved + k % 10), k)
        run.evaluation["psnr_kept"] -= 1  # so that the composite has a share of its own
    assert today.removed_shares(evidence, "deblur", "fixated_hard") == pytest.approx([share] * 3)
    parts = today.judge_statistics(evidence, today.STAGED_CASES).parts
    assert parts["interpolation"].composite == pytest.approx([share - 10] * 3)
    assert not len(parts["deblurring"].composite)
    for cases in (today.FIXATED_CASES, today.STAGED_CASES):
        word = today.judge_statistics(evidence, cases).word
        assert word == (judge.REPRODUCED if share > 50 else judge.UNDECIDED if share == 50 else judge.REVERSED)


def test_today_s_network_is_compared_with_itself_and_with_the_paper_s():
    evidence = world(**{"rigid_joint": 24, "rigid_joint, unet": 26, "on_demand, unet": 25, "fixated_easy, unet": 20})
    evidence.runs.update(world(**{"fixated_hard, unet": 21}).runs)
    ahead = claims.contest("rigid_joint, unet", "rigid_joint")(evidence)
    assert ahead.word == judge.REPRODUCED and ahead.parts["denoising"].mean == pytest.approx(2)
    fed = claims.contest_today("on_demand", "rigid_joint")(evidence)
    assert fed.word == judge.REVERSED and fed.parts["inpainting"].mean == pytest.approx(-1)
    behind = today.judge_fixated(evidence)
    assert len(behind.parts) == 8 and behind.parts["deblurring, hard"].mean == pytest.approx(4)
    above = today.judge_above_damaged(evidence)  # the damaged image has 20 dB
    assert above.parts["deblurring"].mean == pytest.approx(np.mean([26 + k % 10 for k in SEEDS]) - 20, abs=0.01)
    assert np.mean(above.parts["inpainting"].composite) == pytest.approx(above.parts["inpainting"].mean + 5, abs=0.01)


@pytest.mark.parametrize("level", [1, 5, "hard"])
def test_recalibration_moves_statistics_to_the_level_and_no_weight(demo, level):
    """The first layer's against the mean and variance of all its outputs at once."""
    experiment = tiny("deblur", "fixated_hard", width=4, epochs=2)
    network = results.train(experiment).network
    before = {name: t.clone() for name, t in network.state_dict().items()}
    x = images_of(experiment, packs.load("demo", "train"), 200, "recalibrate")
    moved = recalibration.with_statistics_of(experiment, network, x, level)
    generator = torch.Generator().manual_seed(crops.seed_of("recalibrate", level))
    y = torch.cat([TASKS["deblur"].corrupt(part, level, generator) for part in x.split(100)])
    found = network.encoder[0](y)
    norm = moved.encoder[1]
    torch.testing.assert_close(norm.running_mean, found.mean((0, 2, 3)), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(norm.running_var, found.var((0, 2, 3)), rtol=5e-2, atol=1e-4)
    for name, t in moved.state_dict().items():
        assert ("running" in name or "num_batches" in name) or torch.equal(t, before[name]), name
    assert all(torch.equal(t, before[name]) for name, t in network.state_dict().items())  # what was trained is kept


def test_recalibrated_scores_are_those_of_the_moved_network_and_are_read_whole(demo, monkeypatch):
    monkeypatch.setattr(recalibration, "STATISTICS_CROPS", 100)
    experiment = tiny("deblur", "fixated_hard", width=4)
    network = results.train(experiment).network
    rows = recalibration.recalibrated(experiment, network)
    assert {*rows.level} == {*map(str, TESTED)}
    x = images_of(experiment, packs.load("demo", "train"), 100, "recalibrate")
    moved = recalibration.with_statistics_of(experiment, network, x, 3)
    expected = results.evaluate(experiment, restorer(moved, "fp32", "cpu"), "cpu", levels=[3])[0]
    pd.testing.assert_frame_equal(rows[rows.level == "3"].reset_index(drop=True), expected)
    assert recalibration.load_all([experiment]) == {}


def test_what_is_told_errors_has_no_batch_by_psnr_and_a_task_of_one_s_own_has_no_claim_of_the_paper(monkeypatch):
    assert table1.batch("second_moment", 0.3, [36, 33, 30, 27, 24]) is None
    assert table1.batch("on_demand", 0.3, [36, 33, 30, 27, 24])[-1] > 20
    monkeypatch.setitem(paper.TASKS, "speckle", paper.TASKS["denoise"] | {"severity": "side of a block (pixels)"})
    assert table1.describe_schedules([], "speckle") is not None and severity_text("speckle", "easy") == "10"


def test_what_no_page_lists_is_sent_to_no_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    for network, said in (("paper", True), ("unet", False)):
        sweep.run_many([tiny("denoise", "on_demand", network=network)], train=False, page="table1-denoise")
        assert ("companion reproduce" in capsys.readouterr().out) == said


def test_the_method_says_how_todays_network_is_trained():
    """Its rate is the best of three in the mean of the tasks, by the validation of pilots on equal shares."""
    row, page = FOR_NETWORK["unet"]["reference"], (ROOT / "book" / "method.md").read_text(encoding="utf-8")
    psnr = {}
    for rate, own in ((2e-3, ""), (1e-3, "-learning_rate=0.001"), (5e-4, "-learning_rate=0.0005")):
        names = [f"{task}/rigid_joint-seed99-epochs=20{own}-trials=2-network=unet" for task in paper.TASKS]
        pilots = [content(f"reference/celeba10k-native/{name}") for name in names]
        assert {run["experiment"]["epochs"] * run["experiment"]["iterations"] for run in pilots} == {2000}
        psnr[rate] = np.mean([run["history"][-1]["psnr"] for run in pilots])
    assert max(psnr, key=psnr.get) == row["learning_rate"] and "best of three" in page and "after 2,000 steps" in page
    assert f"first {100 * row['warm_up']:.0f} % of training" in page and f"β₁ is {row['beta1']}" in page and row["clip"]
