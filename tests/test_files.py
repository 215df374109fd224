"""A full disk, a read-only folder, damaged files, another user: a clear line, and nothing is lost."""

import errno
import math
import os
import random
import re
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import refused, tiny
from made import album
from test_training import digest

from companion.cli import main
from companion.data import download, packs, sets
from companion.disk import files
from companion.disk.files import DamagedFile, DiskError
from companion.restore import chosen
from companion.runs import catalogue
from companion.training import checkpoint, results
from companion.training.checkpoint import TrainingError
from odl import corruptions, paper
from odl.experiment import PROFILES
from odl.parameters import OneLine


def disk_with(monkeypatch, free):
    """Every disk has so many bytes free."""
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: usage(10**12, 10**12 - free, free))


def test_an_archive_larger_than_the_disk_is_refused_with_nothing_left(root, no_shared_data, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "faces.zip", "w") as file:
        for k in range(3):
            file.writestr(f"img_align_celeba/{k}.jpg", bytes(400_000))
    published = sets.hashlib.md5((tmp_path / "faces.zip").read_bytes()).hexdigest()
    monkeypatch.setitem(sets.DATASETS, "celeba", sets.DATASETS["celeba"] | {"md5": published})
    disk_with(monkeypatch, 300_000)
    words = "disk full, 1.2 MB are needed and 0.3 MB are free"
    refused(lambda: download.prepare("celeba", str(tmp_path / "faces.zip")), words, kind=DiskError)
    assert not list(sets.home("celeba").iterdir())


def test_a_full_disk_is_told_before_a_run_is_trained(demo, monkeypatch):
    experiment = tiny(width=4)
    packs.load(experiment.dataset, "train")
    disk_with(monkeypatch, 50_000)
    refused(lambda: results.train(experiment, progress=lambda _: pytest.fail("trained")), "disk full", kind=DiskError)


def test_a_full_disk_is_one_line_and_ends_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    album(tmp_path / "in", 2)
    worked = []
    monkeypatch.setattr("companion.restore.pretrained.restore", lambda image, *_: worked.append(image) or image)
    disk_with(monkeypatch, 1000)
    for given in (["in", "full"], ["in/0.png", "full.png"]):
        assert main(["restore", "--task", "denoise", *given]) == 2
        assert capsys.readouterr().err.count("disk full") == 1
    assert len(worked) == 2 and not list(tmp_path.glob("full*/*")) and not Path("full.png").exists()


def test_a_disk_that_locks_no_files_is_one_line(demo, monkeypatch):
    def fails(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.FileLock, "acquire", fails)
    refused(lambda: files.locked(demo / "lock"), f"{demo / 'lock'}: not writable, No locks available", kind=DiskError)


def test_in_another_users_cache_what_is_there_is_read_and_what_is_not_is_told(demo, tmp_path, monkeypatch):
    """Nothing below the root can be written, as for a user who is not root."""
    access, before = os.access, {*demo.rglob("*")}
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(demo)) and access(path, mode))
    monkeypatch.setattr(results, "train", lambda *_: pytest.fail("trained, for nothing"))
    assert len(packs.load("demo", "train")) == 9
    pack, run = lambda: packs.load(str(album(tmp_path / "own", 3)), "train"), results.measurement_of(tiny()).run
    for act in (pack, run):
        refused(act, "not writable", "ODL_ROOT", kind=DiskError)
    assert {*demo.rglob("*")} == before


def test_a_number_that_is_not_finite_stops_the_run_and_keeps_the_epoch_before(demo, monkeypatch):
    """Of a damage of one's own, say, from the second epoch on."""
    experiment, steps, whole = tiny(epochs=3, iterations=2), [], corruptions.TASKS["inpaint"]

    def broken(x, severity, generator):
        return whole.apply(x, severity, generator) * (torch.nan if len(steps) > 2 else 1)

    monkeypatch.setitem(corruptions.TASKS, "inpaint", corruptions.Task("inpaint", 3, whole.draw, broken))
    refused(lambda: results.train(experiment, progress=steps.append), "epoch 2: loss nan", kind=TrainingError)
    assert len(checkpoint.load_checkpoint(files.runs() / experiment.run_id, experiment)["history"]) == 1


@pytest.mark.parametrize("place", ["loss", "psnr", "weight", "running_var", "exp_avg", "exp_avg_sq"])
def test_no_such_number_is_kept(place):
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    optimizer, entry = torch.optim.Adam(network.parameters()), {"loss": 1.0, "psnr": [20.0] * 5}
    network(torch.ones(2, 1, 4, 4)).sum().backward()
    optimizer.step()
    checkpoint.finite(entry, network, optimizer, 0)
    tensors = {"weight": network[0].weight.data, "running_var": network[1].running_var}
    tensors |= optimizer.state[network[0].weight]
    if place in tensors:
        tensors[place].view(-1)[0] = -math.inf
    else:
        entry |= {"loss": math.nan} if place == "loss" else {"psnr": [20.0, math.inf]}
    refused(lambda: checkpoint.finite(entry, network, optimizer, 0), "epoch 1: ", kind=TrainingError)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b'{"seal": "0", "experiment": {}}'])
def test_a_result_damaged_by_hand_is_one_line(demo, content, capsys):
    path = results.path_of(tiny())
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    refused(lambda: results.load_result(tiny()), str(path), "delete it", kind=DamagedFile)
    assert main(["results"]) == 1 and capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("which", range(5))
def test_of_a_damaged_file_nothing_wrong_is_read(demo, which):
    """With a bit turned, or cut off at random: refused in one line, or read as it was where the bit says nothing."""
    experiment, chance, pack = tiny(), random.Random(which), next(sets.home("demo").glob("packed-*"))
    whole = pack.resolve()
    pack.unlink()
    shutil.copytree(whole, pack)
    results.measurement_of(experiment).run("cpu")
    shipped, folder = results.ship(experiment.run_id), files.runs() / experiment.run_id
    (folder / "weights.safetensors").unlink()

    def result():
        found = results.load_result(experiment)
        return vars(found) | {"evaluation": found.evaluation.to_dict("list"), "path": ""}

    file, read = [  # and what is made of it
        (shipped, lambda: results.load_network(experiment).state_dict()),
        (results.path_of(experiment), result),
        (folder / "checkpoint.pt", lambda: checkpoint.load_checkpoint(folder, experiment)),
        (pack / "pixels.bin", lambda: vars(packs.load("demo", "train"))),
        (pack / "index.json", lambda: vars(packs.load("demo", "train"))),
    ][which]
    content, right = file.read_bytes(), digest(read())
    for cut in (False, True) * 8:
        place = chance.randrange(len(content))
        bit = bytes([content[place] ^ 1 << chance.randrange(8)])
        file.write_bytes(content[:place] if cut else content[:place] + bit + content[place + 1 :])
        try:
            found = digest(read())
        except OneLine as error:
            assert "\n" not in str(error) and file.parent.name in str(error)
        else:
            assert found in (right, digest(None))  # a checkpoint is set aside


def test_left_overs_of_a_killed_writer_are_cleared(demo):
    experiment = tiny()
    folder = files.runs() / experiment.run_id
    folder.mkdir(parents=True)
    (folder / ".checkpoint.pt.12345.tmp").write_bytes(b"half")
    results.train(experiment, "cpu")
    assert {path.name for path in folder.iterdir()} <= {"checkpoint.pt", "previous.pt", "weights.safetensors"}


def test_an_installed_package_writes_where_the_user_s_data_are_and_has_its_weights_within(tmp_path, monkeypatch):
    monkeypatch.delenv("ODL_ROOT", raising=False)
    assert files.root() == files.PACKAGE.parent  # this checkout
    wheel = tmp_path / "site-packages/odl"
    (wheel / "models").mkdir(parents=True)
    monkeypatch.setattr(files, "PACKAGE", wheel)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data of a user"))
    assert files.shipped() == wheel / "models" and not files.root().is_relative_to(wheel.parent)
    if sys.platform == "linux":
        assert files.root() == tmp_path / "data of a user/on-demand-learning"


def test_a_root_in_a_home_that_is_not_there_is_one_line(monkeypatch, capsys):
    """As for a process whose user has none."""
    monkeypatch.setenv("ODL_ROOT", "~nobody of that name/x")
    assert main(["results"]) == 2
    assert capsys.readouterr().err.startswith("error: ODL_ROOT='~nobody of that name/x': no such home folder is known")


@pytest.mark.parametrize("task", paper.TASKS)
def test_a_wheel_carries_what_a_user_loads(task):
    """Patterns of setup.py match the files that `odl.load` and `odl.restore` may read."""
    setup = (files.PACKAGE.parent / "setup.py").read_text(encoding="utf-8")
    patterns = re.findall(r'"([^"]*safetensors)"', setup)
    assert any(Path(f"{chosen.TRAINED_ON[task]}.safetensors").match(pattern) for pattern in patterns)
    longer = [experiment for experiment in catalogue.long_runs("reference", "bsds500") if experiment.task == task]
    for experiment in longer:
        for one in (experiment, replace(experiment, epochs=PROFILES["reference"]["epochs"])):
            path = files.shipped() / results.shipped_name(one.run_id)
            assert path.exists() and any(path.match(pattern) for pattern in patterns)


@pytest.mark.parametrize("page", ["README.md", "data/README.md", "CHANGELOG.md"])
def test_what_a_page_outside_the_book_links_to_exists(page):
    """Of those inside the strict build looks it up."""
    path = files.PACKAGE.parent / page
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == [] and (links or page == "CHANGELOG.md")
