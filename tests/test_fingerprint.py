"""The hash of a run's code: what changes it, and what must not."""

import importlib
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from odl import denoising, fingerprint, paths, results, train
from odl.comparators import context_encoder
from odl.experiment import Experiment
from odl.reproduce import jobs
from odl.schedules import SCHEDULES

ODL = Path(fingerprint.__file__).parent
TINY = {"profile": "smoke", "epochs": 1, "iterations": 2, "batch_size": 20, "test_images": 6, "validation_images": 4}


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """Replace text in a copy of odl, the one that is hashed; each call begins with a copy of its own."""
    count = iter(range(100))

    def edited(file, old, new):
        folder = tmp_path / f"odl{next(count)}"
        shutil.copytree(ODL, folder, ignore=shutil.ignore_patterns("__pycache__"))
        text = (folder / file).read_text()
        assert text.count(old) == 1
        (folder / file).write_text(text.replace(old, new))
        monkeypatch.setattr(fingerprint, "FOLDER", folder)

    return edited


def hashes(build=train.build):
    return {s: fingerprint.of_training(build, Experiment.of("inpaint", schedule=s)) for s in SCHEDULES}


def changed(before) -> set:
    return {name for name, value in hashes().items() if value != before[name]}


@pytest.mark.parametrize(
    ("file", "old", "new", "runs"),
    [
        ("schedules.py", "HARD_MINING_KEEP = 10", "HARD_MINING_KEEP = 11", {"hard_mining"}),
        ("schedules.py", "psnr, float), nan=1.0), 1.0)", "psnr, float), nan=1.0), 2.0)", {"on_demand"}),
        ("schedules.py", "<= stage(", "< stage(", {"cumulative_curriculum", "cumulative_anti_curriculum"}),
        ("schedules.py", "done * n + 1e-9", "done * n + 1e-8", {s for s in SCHEDULES if "curriculum" in s}),
        ("schedules.py", "- counts), kind", "+ counts), kind", set(SCHEDULES)),
        ("train.py", "betas=(0.5, 0.999)", "betas=(0.9, 0.999)", set(SCHEDULES)),
        ("network.py", "LeakyReLU(0.2)", "LeakyReLU(0.1)", set(SCHEDULES)),
        ("network.py", '"""', '"""Another docstring. ', set()),
        ("train.py", "# Precision\n", "# Another comment\n", set()),
        ("train.py", "CHECKPOINT_SECONDS = 60", "CHECKPOINT_SECONDS = 30", set()),
        ("plots.py", "def schedules(", "def the_schedules(", set()),
        ("paths.py", "os.fsync(file.fileno())", "pass", set()),
        ("comparators/context_encoder.py", "ADVERSARIAL = 0.001", "ADVERSARIAL = 0.002", set()),
    ],
)
def test_a_change_reaches_exactly_its_dependants(edit, file, old, new, runs):
    before = hashes()
    if old == '"""':  # the first one of the file
        old, new = (text + (ODL / file).read_text().split('"""')[1] for text in (old, new))
    edit(file, old, new)
    assert changed(before) == runs


def test_a_task_depends_on_its_own_corruption(edit):
    def of_tasks():
        return [fingerprint.of_training(train.build, Experiment.of(task)) for task in ("denoise", "deblur")]

    before = of_tasks()
    edit("corruptions.py", '"denoise": Task("denoise", 1', '"denoise": Task("denoise", 3')
    after = of_tasks()
    assert before[0] != after[0] and before[1] == after[1]
    edit("corruptions.py", "(4 * sigma + 0.5)", "(3 * sigma + 0.5)")
    after = of_tasks()
    assert before[0] == after[0] and before[1] != after[1]


def test_faster_code_with_the_same_numbers_leaves_results_current(edit):
    root = [("odl.corruptions", "TASKS")]
    text = fingerprint.code(root, ["denoise"])["odl.corruptions", "add_noise"]
    assert "x + noise" in text and "mul_" not in text  # what odl.former holds, compared in test_former.py
    before = fingerprint.digest(fingerprint.code(root, ["denoise"]))
    edit("corruptions.py", "y.clamp_(-1, 1)", "y.clip_(-1, 1)")
    assert fingerprint.digest(fingerprint.code(root, ["denoise"])) == before
    edit("former/corruptions.py", "y.clamp(-1, 1)", "y.clip(-1, 1)")
    assert fingerprint.digest(fingerprint.code(root, ["denoise"])) != before


def test_a_context_encoder_depends_on_its_own_module(edit):
    run = context_encoder.run_of("context_encoder_center", Experiment.of())
    before = fingerprint.of_training(context_encoder.build, run)
    edit("comparators/context_encoder.py", "ADVERSARIAL = 0.001", "ADVERSARIAL = 0.002")
    assert fingerprint.of_training(context_encoder.build, run) != before


def test_every_measurement_has_a_hash_of_its_own():
    measurements = [m for job in jobs("smoke", "demo", [0, 1]) for m in job.measurements]
    assert len({fingerprint.of(m.measure) for m in measurements}) == len(measurements)
    assert [fingerprint.of(m.measure) for m in measurements] == [fingerprint.of(m.measure) for m in measurements]


def test_a_number_of_the_configuration_changes_the_hash():
    numbers = ({}, {"epochs": 3}, {"learning_rate": 1e-3}, {"seed": 1}, {"train_images": 4})
    measures = [results.run_or_load, results.run_or_load]
    found = [fingerprint.of(fingerprint.partial(m, Experiment.of(**n))) for m in measures for n in numbers]
    assert len(set(found)) == len(numbers)


def test_a_notebook_depends_on_what_it_calls_but_not_on_the_schedules_of_its_runs(edit):
    source = (
        "from odl import results, sweep\nmeasured = sweep.run_many([])\ntable = results.table1(measured, 'inpaint')"
    )
    before = fingerprint.of_source(source)
    edit("schedules.py", "HARD_MINING_KEEP = 10", "HARD_MINING_KEEP = 11")
    assert fingerprint.of_source(source) == before
    edit("results.py", "| summarize(frame) |", "| summarize(frame[1:]) |")
    assert fingerprint.of_source(source) != before
    assert fingerprint.of_source(source + "\nprint()") != before


@pytest.mark.parametrize("path", sorted(ODL.rglob("*.py")), ids=lambda path: path.relative_to(ODL).as_posix())
def test_every_definition_of_odl_has_its_source(path):
    module = ".".join(["odl", *path.relative_to(ODL).with_suffix("").parts]).removesuffix(".__init__")
    for name, pieces in fingerprint.definitions(module, ODL).items():
        assert all(source or refers for _, source, refers in pieces), name


@pytest.mark.parametrize("path", sorted((ODL.parent / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_has_a_hash(path):
    cells = nbformat.read(path, as_version=4).cells
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert fingerprint.of_source(source) != fingerprint.of_source(source + "\nprint()")


def test_a_table_joined_to_one_without_constant_keys_counts_as_a_whole(edit):
    source = "from odl import plots_systems\nprint(plots_systems.SHORT)"
    before = fingerprint.of_source(source)
    edit("plots_systems.py", '"nlm": "NLM"', '"nlm": "non-local means"')
    assert fingerprint.of_source(source) != before


def test_training_does_not_go_on_from_a_checkpoint_of_other_code(demo, edit, capsys):
    experiment = Experiment.of("interpolate", schedule="hard_mining", **TINY)
    train.train(experiment, "cpu", "fp32")
    folder, written = paths.runs() / experiment.run_id, []

    def progress(share):
        written.append(share)

    train.train(experiment, "cpu", "fp32", progress)
    assert not written  # the same code has nothing left to do
    edit("schedules.py", "HARD_MINING_KEEP = 10", "HARD_MINING_KEEP = 11")
    train.train(experiment, "cpu", "fp32", progress)
    assert written and f"{folder / 'checkpoint.pt'}: made by other code" in capsys.readouterr().out


# What a result is measured by


@pytest.fixture
def result(demo):
    return results.run_or_load(Experiment.of("interpolate", schedule="hard_mining", **TINY), "cpu", "fp32").path


def test_a_result_knows_whether_its_code_has_changed(result, edit):
    assert results.state_of(result) == "current"
    edit("schedules.py", "<= stage(", "< stage(")  # of another schedule
    assert results.state_of(result) == "current"
    edit("schedules.py", "HARD_MINING_KEEP = 10", "HARD_MINING_KEEP = 11")
    assert results.state_of(result) == "changed"


def test_git_tells_whether_the_code_was_the_same_where_the_hash_is_another(result, edit, tmp_path, monkeypatch):
    """As after a change of how things are hashed, or of what is hashed."""
    repository = tmp_path / "repository"
    shutil.copytree(ODL, repository / "odl", ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", repository, "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "as it was"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    monkeypatch.setattr(fingerprint, "__file__", str(repository / "odl" / "fingerprint.py"))

    def state_at(commit):
        content = paths.unseal(result)
        known = content["provenance"] | {"commit": commit}
        known["code"] = known["code"] | {"sha256": "0" * 64}
        result.write_bytes(paths.seal(content | {"provenance": known}))
        return results.state_of(result)

    assert state_at(head) == state_at(head[:9]) == "current"
    assert {state_at(other) for other in (f"{head}-dirty", "f" * 40, "unknown", "--help")} == {"changed"}
    edit("corruptions.py", "(4 * sigma + 0.5)", "(3 * sigma + 0.5)")  # of another task
    assert state_at(head) == "current"
    edit("schedules.py", "HARD_MINING_KEEP = 10", "HARD_MINING_KEEP = 11")
    assert state_at(head) == "changed"


def test_a_result_knows_whether_its_data_are_those_here(result):
    content = paths.unseal(result)
    other = content["provenance"] | {"data_sha256": "0" * 64}
    result.write_bytes(paths.seal(content | {"provenance": other}))
    assert results.state_of(result) == "changed"


def test_a_system_is_current_whatever_is_packed(demo):
    denoising.run_or_load("tv", dataset="demo", profile="smoke", device="cpu")
    [path] = (paths.results() / "smoke" / "demo").glob("tv-*.json")
    assert results.state_of(path) == "current"


def test_a_strict_build_ends_with_the_results_of_other_code(result, edit, monkeypatch):
    monkeypatch.syspath_prepend(str(ODL.parent / "book"))
    build = importlib.import_module("build")
    build.check_current("smoke")
    edit("schedules.py", "HARD_MINING_KEEP = 10", "HARD_MINING_KEEP = 11")
    with pytest.raises(SystemExit, match="1 of 1 results .*: smoke/demo/interpolate/hard_mining-seed0"):
        build.check_current("smoke")


def test_an_older_result_does_not_know(result):
    content = paths.unseal(result)
    del content["provenance"]["code"]
    result.write_bytes(paths.seal(content))
    assert results.state_of(result) == "unknown"
    assert results.state_of(result.with_name("table.csv")) is None
