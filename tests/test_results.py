"""Run or load, tables, and weights that ship."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from bs4 import BeautifulSoup
from conftest import refused, tiny
from made import album, photograph
from PIL import Image
from safetensors.torch import load_file
from scipy import stats

from companion import published
from companion.cli import companion, experiment_of, parser
from companion.data import packs
from companion.disk import files, provenance
from companion.pages import extra_data, fixation, table1
from companion.runs import catalogue
from companion.show import tables
from companion.training import checkpoint, results
from odl import PROTOCOL, evaluation, paper
from odl.experiment import Experiment
from odl.network import NETWORKS, EncoderDecoder
from odl.schedules import SCHEDULES


def test_writes_once_then_loads_all_there_is_to_know(demo, monkeypatch):
    experiment = tiny()
    assert results.load_result(experiment) is None
    monkeypatch.setenv("ODL_COMMIT", "before")
    result = results.measurement_of(experiment).run("cpu", lambda share: monkeypatch.setenv("ODL_COMMIT", "after"))
    assert result.provenance["commit"] == "before" and result.path == files.results() / f"{experiment.run_id}.json"
    written = result.path.stat().st_mtime_ns
    monkeypatch.setattr(results, "train", lambda *_: pytest.fail("trained again"))
    assert results.measurement_of(experiment).run("cpu").evaluation.equals(result.evaluation)
    assert result.path.stat().st_mtime_ns == written

    content = json.loads(result.path.read_text())
    assert content["protocol"] == PROTOCOL and content["history"] == result.history
    assert content["experiment"] == experiment.asdict()
    assert {"commit", "device", "versions", "data_sha256", "seconds"} <= set(content["provenance"])
    assert content["provenance"]["data_sha256"] == packs.load("demo", "train").sha256
    measured, images = results.evaluate(experiment, results.load_network(experiment))
    loaded = result.evaluation
    assert list(loaded) == evaluation.COLUMNS and list(loaded.level) == list(measured.level)
    np.testing.assert_allclose(loaded.drop(columns="level"), measured.drop(columns="level"), rtol=1e-4)
    for score in content["per_image"]:  # of 11 bits each
        values = results.per_image(result, score)
        expected = np.stack([images[level][score] for level in loaded.level[:8]])
        np.testing.assert_allclose(values, expected, rtol=2**-11)
        means = loaded.groupby("level", sort=False)[score].mean()
        np.testing.assert_allclose(values.mean(1), means, rtol=2**-11)
    assert str(demo) not in result.path.read_text()


OTHER = {"seed": 1, "width": 9, "epochs": 2, "iterations": 3, "learning_rate": 1e-4, "decay": 0.1, "precision": "bf16"}
OTHER |= {"batch_size": 21, "pool_images": 501, "validation_images": 5, "test_images": 5, "trials": 3}
OTHER |= {"train_images": 4, "schedule": "rigid_joint", "task": "denoise", "profile": "demo"}


def test_no_result_and_no_checkpoint_of_another_protocol_or_run_is_loaded(demo, monkeypatch):
    """Of a run one number differs, and the other one's files are in the place of its own."""
    experiment = tiny()
    path, folder = results.measurement_of(experiment).run("cpu").path, files.runs() / experiment.run_id
    result, trained = path.read_bytes(), (folder / "checkpoint.pt").read_bytes()
    assert checkpoint.load_checkpoint(folder, experiment)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "PROTOCOL", PROTOCOL + 1)
        assert checkpoint.load_checkpoint(folder, experiment) is None
    path.with_stem(f"{path.stem}-levels").write_bytes(files.seal(files.unseal(path) | {"history": []}))
    assert len(results.frame()) == 1  # a run, and what is measured beside it
    path.write_bytes(files.seal(files.unseal(path) | {"protocol": PROTOCOL - 1}))
    assert results.load_result(experiment) is None and results.frame().empty
    path.write_text("{}")  # of somebody else
    assert results.frame().empty
    for name, value in OTHER.items():
        experiment = tiny(**{name: value})
        folder = files.runs() / experiment.run_id
        files.write_atomically(results.path_of(experiment), result)
        files.write_atomically(folder / "checkpoint.pt", trained)
        assert results.load_result(experiment) is None and checkpoint.load_checkpoint(folder, experiment) is None, name


@pytest.mark.parametrize(("task", "missing"), [("inpaint", False), ("denoise", True)])
def test_without_missing_pixels_there_is_one_way_to_score(demo, task, missing):
    """PSNR of kept pixels and of the hole is then null on disk and NaN in a table."""
    result = results.measurement_of(tiny(task)).run("cpu")
    content = json.loads(result.path.read_text())["evaluation"]
    for name in ("psnr_kept", "psnr_hole"):
        assert result.evaluation[name].dtype == float and result.evaluation[name].isna().all() == missing
        assert (content[name] == [None] * 16) == missing
    table, shown = tables.level_table([result]), table1.schedules_table([result], task).set_index("schedule")
    assert shown[["psnr_kept", "psnr_hole"]].isna().all(axis=None) == missing
    if missing:
        assert list(table.scored) == ["all pixels"] * 2 and list(table.schedule) == ["not_restored", "on_demand"]
    html = table1.show_schedules(shown.reset_index()).to_html()
    assert "not_restored" not in html and f"{mean_of([result], 'psnr_input'):.2f}" in html


def test_a_suggested_command_is_what_a_shell_reads(monkeypatch, tmp_path):
    monkeypatch.setitem(SCHEDULES, "my own one", lambda done, psnr, n: [1] * n)
    (folder := tmp_path / "Köln's photos & more").mkdir()
    monkeypatch.setitem(NETWORKS, "my net", EncoderDecoder)
    experiment = Experiment.of("deblur", str(folder), "my own one", width=8, network="my net")
    words = shlex.split(results.command_of(experiment))
    assert words[:3] == ["python", "-m", "odl"] and experiment_of(parser().parse_args(words[3:])) == experiment


def test_long_names_are_measured_and_found_again(root, tmp_path):
    """Of a folder, and of many numbers."""
    folder = album(tmp_path / ("ö" * 60 + "x" * 135), 4)
    numbers = {"decay": 0.123456, "width": 8, "pool_images": 123456, "learning_rate": 0.00123456, "sharpness": 1.23456}
    numbers |= {"trials": 3, "precision": "fp64", "train_images": 2, "validation_images": 5}
    experiments = [tiny("denoise", dataset=folder, **numbers | {"test_images": n}) for n in (4, 5)]
    for experiment in experiments:
        measured = results.measurement_of(experiment)
        assert measured.run("cpu").path == measured.load().path and results.load_network(experiment)
        shipped, own = results.ship(experiment.run_id), files.runs() / experiment.run_id / "weights.safetensors"
        own.unlink()
        assert results.place_of_weights(experiment) == shipped and results.load_network(experiment)
    assert len({experiment.run_id for experiment in experiments}) == 2 and len(results.frame()) == 2
    longest = max((path.name for path in root.rglob("*")), key=lambda name: len(os.fsencode(name)))
    assert len(os.fsencode(longest)) <= 255


def test_a_folder_that_has_changed_is_measured_again(root, tmp_path, monkeypatch):
    folder = album(tmp_path / "album", 4)
    experiment = tiny(dataset=folder)
    before = results.measurement_of(experiment).run("cpu")
    assert results.load_result(experiment) and results.load_network(experiment)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "PROTOCOL", PROTOCOL + 1)
        refused(lambda: results.load_network(experiment), "no weights for", "python -m odl train")
    Image.fromarray(photograph(9)).save(folder / "0.png")
    assert results.load_result(experiment) is None and results.place_of_weights(experiment) is None
    train = results.train

    def and_change(*given):
        trained = train(*given)
        album(folder, 4, 90)
        return trained

    with monkeypatch.context() as patch:
        patch.setattr(results, "train", and_change)
        refused(lambda: results.measurement_of(experiment).run("cpu"), "its photographs changed", experiment.run_id)
    assert results.load_result(experiment) is None and results.place_of_weights(experiment) is None
    after = results.measurement_of(experiment).run("auto")
    assert after.provenance["data_sha256"] != before.provenance["data_sha256"] and after.history != before.history


def test_a_commit_is_marked_for_changes_of_the_code_and_not_of_results(tmp_path, monkeypatch):
    def git(*command):
        return subprocess.run(["git", "-C", tmp_path, *command], check=True, capture_output=True, text=True).stdout

    code, test, result = (tmp_path / name / "file" for name in ("companion", "tests", "data"))
    for file in (code, test, result):
        file.parent.mkdir()
        file.write_text("1")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("ODL_COMMIT", raising=False)
    git("init", "-q")
    assert provenance.commit() == "unknown"  # as an installed odl that lies in another repository
    (tmp_path / "pyproject.toml").touch()
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    for file in (result, test):
        file.write_text("2")
    assert git("rev-parse", "HEAD").startswith(provenance.commit()) and len(provenance.commit()) >= 7
    assert provenance.commit(tmp_path / "tests").endswith("-dirty")
    code.write_text("2")
    assert provenance.commit().endswith("-dirty")
    monkeypatch.setenv("ODL_COMMIT", "abc1234")  # of a copy without its repository, or laid over an older one
    assert provenance.commit() == "abc1234"


PSNRS = ["psnr", "psnr_input", "psnr_kept", "psnr_hole"]


def made_up(schedule, seed, trials=5, task="inpaint"):
    random = np.random.default_rng([seed, *schedule.encode()])
    levels = [*"123456", "easy", "hard"]
    rows = [(t, v, *random.random(2), *random.normal(30, 1, 4)) for t in range(trials) for v in levels]
    frame = pd.DataFrame(rows, columns=["trial", "level", "l2", "l2_input", *PSNRS])
    experiment = Experiment.of(task, schedule=schedule, seed=seed, profile="smoke")
    return results.Result(experiment.asdict(), {}, [], frame, files.results() / "none.json")


def mean_of(runs, column):
    """Of levels 1…6."""
    frame = pd.concat([run.evaluation for run in runs])
    return frame[frame.level.str.isdigit()][column].mean()


@pytest.mark.parametrize("task", paper.TASKS)
def test_table1_against_scipy(task):
    runs = {name: [made_up(name, seed, task=task) for seed in (0, 1, 2)] for name in reversed(published.SEVEN)}
    everything = [r for group in runs.values() for r in group]
    table = table1.schedules_table(everything, task)
    paper_columns = ["paper_celeba_l2", "paper_celeba_psnr", "paper_sun397_l2", "paper_sun397_psnr"]
    assert list(table.schedule) == ["not_restored", *published.SEVEN]
    damaged, table = table.iloc[0], table.iloc[1:]
    assert set(table.seeds) == {3} and damaged[["seeds", "psnr_kept", "ahead", *paper_columns]].isna().all()
    for shown in ("l2", "psnr"):
        assert damaged[shown] == pytest.approx(mean_of(everything, f"{shown}_input"))
    means = {name: {c: [mean_of([r], c) for r in group] for c in ("l2", "psnr")} for name, group in runs.items()}
    for row in table.itertuples():
        for column in ("l2", "psnr", "psnr_kept", "psnr_hole"):
            assert getattr(row, column) == pytest.approx(mean_of(runs[row.schedule], column))
        for column, values in means[row.schedule].items():
            assert getattr(row, f"{column}_sd") == pytest.approx(np.std(values, ddof=1))
        if row.schedule == "on_demand":
            assert np.isnan([row.ahead, row.low, row.kept_ahead, row.kept_low]).all() and row.verdict == ""
        else:
            kept = [[mean_of([r], "psnr_kept") for r in runs[name]] for name in ("on_demand", row.schedule)]
            interval = tuple(stats.ttest_rel(*kept).confidence_interval())
            composite = (np.mean(interval), *interval) if task in paper.MASKED else [np.nan] * 3
            assert (row.kept_ahead, row.kept_low, row.kept_high) == pytest.approx(composite, nan_ok=True)
            assert bool(row.kept_verdict) == (task in paper.MASKED)
            test = stats.ttest_rel(means["on_demand"]["psnr"], means[row.schedule]["psnr"])
            assert row.ahead == pytest.approx(np.mean(means["on_demand"]["psnr"]) - row.psnr)
            assert (row.low, row.high) == pytest.approx(tuple(test.confidence_interval()))
        printed = sum(published.TABLE1[task][row.schedule], ())
        assert tuple(getattr(row, column) for column in paper_columns) == printed


def shifted(*dbs, task="deblur") -> list:
    """Three seeds of each of the seven schedules, which differ by so many dB and a hundredth from seed to seed."""
    found = []
    for schedule, db in zip(published.SEVEN, dbs, strict=True):
        for seed in (0, 1, 2):
            run = made_up("on_demand", 0, task=task)
            run.experiment.update(schedule=schedule, seed=seed)
            run.evaluation["psnr"] = 25 + db + 0.01 * seed * (schedule == "on_demand")
            found.append(run)
    return found


def margins_said(text) -> dict[str, float]:
    """Label → mean margin (dB) of every line that a page says."""
    lines = re.findall(r"(?m)^- (.*): ([+−][\d.]+) dB", text)
    return {label: float(value.replace("−", "-")) for label, value in lines}


def test_pages_say_the_first_minus_the_second():
    dbs = dict(zip(published.SEVEN, (-0.5, 0.7, 0.2, -0.1, 0.9, 1.3, 0.4), strict=True))
    found = shifted(*dbs.values())
    for run in found:
        run.provenance.update(train_images=9, device="CPU")
        run.history.append({"dose": 0.01, "allocation": [20] * 5})
    ours = dbs.pop("on_demand") + 0.01  # the mean of its three seeds
    said = margins_said(table1.describe_schedules(found, "deblur"))
    assert said == pytest.approx(
        {f"On-demand − {published.SEVEN[rival].lower()}": ours - db for rival, db in dbs.items()}, abs=0.005
    )
    of = {schedule: [run for run in found if run.experiment["schedule"] == schedule] for schedule in published.SEVEN}
    halves = dict(zip(catalogue.EXTRA_DATA, (of["on_demand"], of["rigid_joint"], of["hard_mining"]), strict=True))
    said = margins_said(extra_data.describe_halves(halves, "deblur"))
    half, equal, whole = catalogue.EXTRA_DATA
    expected = {f"{half} − {whole}": ours - dbs["hard_mining"], f"{half} − {equal}": ours - dbs["rigid_joint"]}
    expected |= {f"{whole} − {equal}": dbs["hard_mining"] - dbs["rigid_joint"]}
    assert said == pytest.approx(expected, abs=0.005)
    for fixated, rival in zip(published.FIXATED, ("staged_curriculum", "hard_mining"), strict=True):
        for run in of[rival]:
            run.experiment.update(schedule=fixated)
    said = margins_said(fixation.describe_fixation(found, "deblur"))
    ahead = [ours - dbs["staged_curriculum"], ours - dbs["hard_mining"]]
    assert [*said.values()] == pytest.approx([ahead[0], -ahead[0], ahead[1], -ahead[1]], abs=0.005)
    assert [label.startswith("On-demand − ") for label in said] == [True, False] * 2


def test_the_table_at_a_glance_has_the_best_of_each_column_bold():
    table = table1.schedules_table(shifted(0, 0.3, 0, 0, 0, 0, -0.4), "deblur")
    aside = pd.DataFrame([{"schedule": "A filter", "psnr": 99.0, "l2": 0.01}])
    html = BeautifulSoup(table1.show_schedules(table, aside).to_html(), "html.parser")
    rows = [[cell.text for cell in row.select("td")] for row in html.select("tbody tr")]
    assert [row[0] for row in rows] == [*published.SEVEN.values(), "Not restored", "A filter"] and len(rows[0]) == 5
    style = html.style.text
    bold = {name for part in style.split("}") if "bold" in part for name in re.findall(r"_(row\d_col\d)", part)}
    assert bold >= {"row1_col1", "row6_col3", "row6_col4"} and not {"row8_col1", "row8_col2", "row6_col1"} & bold


def test_table1_pairs_only_what_both_have_and_leaves_room_for_what_is_missing():
    """Schedules are compared over the seeds that they have in common."""
    runs = [made_up(*run) for run in (("on_demand", 0), ("on_demand", 2), ("rigid_joint", 0), ("rigid_joint", 1))]
    table = table1.schedules_table(runs, "inpaint").set_index("schedule")
    expected = mean_of(runs[:1], "psnr") - mean_of(runs[2:3], "psnr")
    assert table.ahead["rigid_joint"] == pytest.approx(expected) and np.isnan(table.ahead["hard_mining"])
    assert table.verdict["rigid_joint"] == "undecided" and table.verdict["hard_mining"] == "to be measured"
    assert list(table.seeds[["on_demand", "rigid_joint", "hard_mining"]]) == [2, 2, 0]
    assert len(table) == 8 and np.isnan(table.psnr["hard_mining"]) and table.paper_sun397_l2["hard_mining"] == 2.61


def test_level_table_is_of_means():
    runs = [made_up("on_demand", 0), made_up("on_demand", 1)]
    table = tables.level_table(runs).set_index(["scored", "schedule"])
    columns = {("all pixels", "not_restored"): "psnr_input", ("all pixels", "on_demand"): "psnr"}
    columns |= {("known pixels kept", "on_demand"): "psnr_kept", ("missing pixels", "on_demand"): "psnr_hole"}
    assert {*table.index} == {*columns, ("missing pixels", "not_restored")}
    by_level = pd.concat([r.evaluation for r in runs]).groupby("level").mean()
    for key, column in columns.items():
        for level, expected in by_level[column].items():
            assert table.loc[key, f"level_{level}" if level.isdigit() else level] == pytest.approx(expected)
        assert table.loc[key, "mean"] == pytest.approx(mean_of(runs, column))
    assert tables.level_table([]).empty


@pytest.mark.parametrize("task", ["inpaint", "interpolate"])
def test_the_damaged_image_inside_its_missing_pixels_is_measured_there(demo, task):
    """The baseline that follows from the stored columns against one counted in the holes; a bad restorer on purpose."""
    experiment = tiny(task)
    rows, _ = results.evaluate(experiment, lambda y: 0.5 * y + 0.2)
    untouched, _ = results.evaluate(experiment, lambda y: y)
    np.testing.assert_allclose(tables.scores(rows).hole_input, untouched.psnr_hole, atol=0.01)


def test_a_table_is_written_where_the_design_says_if_it_has_a_number_of_ours(root):
    def written(name, **columns):
        return tables.write_table(pd.DataFrame(columns), name, "demo", "demo", "inpaint")

    path = written("table1", schedule=["on_demand"], psnr=[30.5])
    assert path == root / "data/results/demo/tables/table1-demo-inpaint.csv"
    assert pd.read_csv(path).to_dict("list") == {"schedule": ["on_demand"], "psnr": [30.5]}
    other = tables.write_table(pd.DataFrame({"psnr": [31.5]}), "table1", "demo", "demo", "inpaint", "unet")
    assert other == path.with_stem(f"{path.stem}-unet") and pd.read_csv(path).psnr.tolist() == [30.5]
    assert not tables.write_table(table1.schedules_table([], "deblur"), "table1", "demo", "demo", "deblur").exists()
    assert not written("scorecard", claim=["a"], verdict=["to be measured"], paper=[1.0]).exists()
    assert not written("table2", method=[], central_psnr=[]).exists()
    assert written("scorecard", claim=["a"], verdict=["undecided"]).exists()


def test_shipped_weights_come_back_in_half_precision(demo):
    experiment = tiny("denoise")
    results.measurement_of(experiment).run("cpu")
    trained = results.load_network(experiment)
    assert companion(["ship", experiment.run_id]) == 0
    (files.runs() / experiment.run_id / "weights.safetensors").unlink()
    stored = load_file(files.models() / f"{experiment.run_id.replace('/', '-')}.safetensors")
    for name, value in trained.state_dict().items():
        expected = torch.from_numpy(value.numpy().astype(np.float16)) if value.is_floating_point() else value
        assert torch.equal(stored[name], expected)
    network = results.load_network(experiment)
    assert not network.training
    for name, value in network.state_dict().items():
        assert value.dtype == trained.state_dict()[name].dtype
        torch.testing.assert_close(value, trained.state_dict()[name], rtol=1e-3, atol=1e-4)


def test_every_stored_run_is_found_by_its_description():
    """A run's name is that of its file, or begins it where more was measured of its network."""
    home, runs = Path(__file__).parents[1] / "data" / "results", {}
    for path in home.glob("*/*/*/*.json"):
        told = json.loads(path.read_text()).get("experiment", {})
        if told.get("schedule") in SCHEDULES and told.get("task") in paper.TASKS:
            runs[path.relative_to(home).with_suffix("").as_posix()] = Experiment(**told).run_id
    lost = {file: run for file, run in runs.items() if not file.startswith(run)}
    assert len(runs) > 400 and not lost
