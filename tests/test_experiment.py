"""What a user can get wrong costs one line that names it and the nearest good value."""

import json
import math
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from conftest import refused
from made import album

from companion.data import sets
from companion.disk import files
from companion.notebook import check_image, check_seeds, set_up
from companion.training import checkpoint
from odl import paper
from odl.experiment import PRECISIONS, PROFILES, Experiment
from odl.network import NETWORKS
from odl.schedules import SCHEDULES, Schedule


def test_a_typo_or_a_number_out_of_range_names_the_nearest_good_value():
    typos = ("task", "inpant", "inpaint"), ("dataset", "celebA", "celeba"), ("width", 3, "4"), ("severity", 500.0, "36")
    for name, value, near in typos:
        refused(lambda given={name: value}: Experiment.of(**given), f"{name}={value!r}", "nearest: ", near)
    for name, near in (("tsak", "'task'"), ("learningrate", "'learning_rate'"), ("zzz", "")):
        refused(lambda given={name: 1}: Experiment.of(**given), repr(name), near)


WRONG = ["", None, True, math.nan, math.inf, 10**400, -1, "3", 3.5, [], {}]
WRONG += ["x" * 5000, "a\0b", "two\nlines", b"inpaint", object()]
NUMBERS = ("learning_rate", "severity", "clip")


@pytest.mark.parametrize("name", [field.name for field in fields(Experiment)])
def test_every_parameter_refuses_what_it_cannot_be(name):
    for value in WRONG:
        if name not in NUMBERS or value != 3.5:
            refused(lambda value=value: Experiment.of(**{"schedule": "fixated_hard", name: value}), name)


def test_a_description_leaves_out_what_is_as_by_default_and_gives_the_run_back():
    plain = Experiment.of("deblur")
    other = Experiment.of("deblur", precision="bf16", sharpness=4, train_images=5)
    assert not {"severity", "train_images", "sharpness"} & set(plain.asdict())
    assert plain.asdict()["precision"] == "fp32" and other.asdict()["precision"] == "bf16"
    assert all(Experiment(**e.asdict()) == e for e in (plain, other))


def test_a_severity_and_a_sharpness_belong_to_some_runs():
    refused(lambda: Experiment.of(schedule="rigid_joint", sharpness=4), "sharpness", "rigid_joint")
    refused(lambda: Experiment.of(severity=5.0), "severity", "on_demand")
    assert Experiment.of(schedule="fixated_easy", severity=5.0).severity == 5
    refused(lambda: Experiment.of(schedule="fixated_easy", severity=0.4), "severity=0.4", "nearest: 1")


def test_a_schedule_is_told_a_score_that_the_validation_has(monkeypatch):
    for feedback, task, said in (("PSNR", "inpaint", "psnr, rms_error"), ("composite", "denoise", "psnr, rms_error")):
        monkeypatch.setitem(SCHEDULES, "mine", Schedule(feedback=feedback))
        refused(lambda task=task: Experiment.of(task, schedule="mine"), f"feedback='{feedback}'", said)
    assert Experiment.of("interpolate", schedule="on_demand_composite")


def test_a_task_whose_severities_fall_has_severities_up_to_its_mildest(monkeypatch):
    levels = tuple((85 - 15 * k, 100 - 15 * k) for k in range(6))  # quality of a JPEG
    monkeypatch.setitem(paper.TASKS, "deblur", paper.TASKS["deblur"] | {"levels": levels})
    assert Experiment.of("deblur", schedule="fixated_easy", severity=100).severity == 100
    refused(lambda: Experiment.of("deblur", schedule="fixated_easy", severity=101), "from 0 to 100")


def test_numbers_may_be_numpys_and_whole_ones_floats():
    given = {"seed": np.int64(3), "epochs": 30.0, "learning_rate": np.float32(0.5), "train_images": np.uint8(7)}
    experiment = Experiment.of(**given)
    assert experiment == Experiment.of(seed=3, epochs=30, learning_rate=0.5, train_images=7)
    assert Experiment(**json.loads(json.dumps(experiment.asdict()))) == experiment
    assert type(replace(experiment, seed=np.int64(4)).seed) is int


def test_the_paper_profile_is_the_paper():
    e = Experiment.of(profile="paper")
    assert (e.width, e.epochs, e.iterations, e.batch_size, e.learning_rate) == (64, 1500, 1000, 100, 2e-4)
    assert (e.pool_images, e.test_images, e.trials) == (1_000_000, 1000, 20)
    assert (e.decay, e.sharpness, e.precision) == (0, 1, "fp32")  # a constant rate, Eq. 3 as it is


def test_run_ids_are_unique(tmp_path):
    """Any two runs that differ in a number, a name or a folder have different ids, and results of their own."""
    folders = [tmp_path / name for name in ("a/photos", "b/photos", "demo", "my photos", "my_photos", "ä:'\"\n$(x)")]
    for folder in folders:
        folder.mkdir(parents=True)
    changes = [
        {},
        *({"dataset": name} for name in ("bsds500", "bsds500-native", *map(str, folders))),
        *({"task": task} for task in paper.TASKS if task != "inpaint"),
        *({"schedule": schedule} for schedule in SCHEDULES if schedule not in ("on_demand", "edm")),  # edm: denoising's
        *({"network": network} for network in NETWORKS if network != "paper"),
        *({name: value} for name in ("beta1", "warm_up", "clip") for value in (0.3, 0.7)),
        *({"profile": profile} for profile in PROFILES if profile != "demo"),
        *({name: value} for name in ("width", "epochs", "iterations", "batch_size", "trials") for value in (9, 99)),
        *({name: 7} for name in ("seed", "pool_images", "validation_images", "test_images", "train_images")),
        *({"learning_rate": rate} for rate in (1e-8, 0.00012345678, 0.00012345679, 0.1, 1.0)),
        *({"schedule": "fixated_hard", "severity": severity} for severity in (1.0, 2.0, 25.0)),
        *({"precision": precision} for precision in PRECISIONS if precision != "fp32"),
        *({"decay": decay} for decay in (0, 0.1, 1.0)),
        *({"sharpness": sharpness} for sharpness in (-1, 4, 0.5)),
    ]
    ids = [Experiment.of(**change).run_id for change in changes]
    assert len(set(ids)) == len(ids)
    for run_id in ids:
        assert re.fullmatch(r"[A-Za-z0-9._=/-]+", run_id) and len(run_id.split("/")) == 4, run_id
        assert not {"", ".", ".."} & set(run_id.split("/"))


def test_equal_numbers_have_one_id():
    for a, b in ((25, 25.0), (1, 1.0)):
        experiments = [Experiment.of("denoise", schedule="fixated_hard", severity=v) for v in (a, b)]
        assert experiments[0] == experiments[1] and experiments[0].run_id == experiments[1].run_id
        assert len({checkpoint.owner_of(experiment) for experiment in experiments}) == 1
    assert Experiment.of(epochs=PROFILES["demo"]["epochs"]).run_id == Experiment.of().run_id


def test_a_folder_keeps_its_place_private(tmp_path):
    experiment = Experiment.of(dataset=album(tmp_path / "holiday", 3))
    assert str(tmp_path) not in str(experiment.asdict()) + experiment.run_id
    assert "holiday" in experiment.run_id
    assert Experiment.of(dataset=Path("./holiday")).run_id == Experiment.of(dataset="./holiday").run_id


def test_packs_of_folders_lie_below_the_root(root, tmp_path):
    (tmp_path / "x").mkdir()
    for name in ("demo", "bsds500-native", str(tmp_path / "x"), "/"):
        assert sets.home(name).is_relative_to(files.root() / "data") and sets.home(name) != files.root() / "data"


@pytest.mark.parametrize(
    ("seeds", "answer"), [(3, [3]), ([0, 1], [0, 1]), ((2, 2, 1), [2, 1]), ([2**31], [2**31])], ids=str
)
def test_seeds(seeds, answer, capsys):
    assert check_seeds(seeds) == answer
    told = "seeds=3 is one run each, with seed 3; several seeds are a list, such as [0, 1, 2]\n"
    assert capsys.readouterr().out == told * (seeds == 3)  # which is not taken for a count


def test_images(tmp_path, monkeypatch):
    assert check_image("image", "coffee.png").is_file()
    (tmp_path / "mine.png").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    for text in (str(tmp_path / "mine.png"), "~/mine.png"):
        assert check_image("image", text) == tmp_path / "mine.png"
    refused(lambda: check_image("image", "cofee.png"), "image='cofee.png'", "nearest: 'coffee.png'")
    for value in ("", 3, None, True, str(tmp_path), "x" * 5000):
        refused(lambda value=value: check_image("image", value), "image=")


def test_a_misspelt_notebook_parameter_is_refused():
    cells = ["", "task = 'inpaint'", "# Parameters\nseed = 0\nPAPERMILL_INPUT_PATH = 'a'\n", "scratch = 1"]
    kernel = {"task": "inpaint", "seed": 0, "scratch": 1, "image": [0], "photographs": None, "In": cells}
    set_up(kernel, "task seed")  # also when every cell runs again, and others use the names of parameters
    wrong = {"In": [*cells, "# Parameters\nsede = 0\n"]}
    refused(lambda: set_up(wrong, "task seed"), "'sede'", "nearest: 'seed'")
    for name, text, value in (("train", "false", False), ("train", "True", True), ("image", Path("a b"), "a b")):
        given = {name: text}  # as `papermill -p train false` hands it on
        set_up(given, name)
        assert given[name] == value
