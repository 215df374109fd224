"""What was measured elsewhere: kept beside ours, per device, and refused where it is not the same experiment."""

import json
import os
import zipfile
from dataclasses import replace

import pandas as pd
import pytest
from conftest import refused, tiny

from companion.__main__ import main
from companion.comparators import INPAINTERS
from companion.runs import catalogue, gpu, merge, sweep
from odl import results
from odl.machine import files

DEVICE = "Tesla T4"


@pytest.fixture
def archive(demo, tmp_path):
    """`archive(changes)`: two runs of ours as a stranger with a GPU sends them; `changes(content)` after sealing."""
    runs = [tiny("inpaint"), replace(tiny("inpaint"), seed=1), tiny("denoise")]
    sweep.run_many(runs, "cpu", workers=1)

    def write(change=lambda content: None, seal=True, name=None):
        members = {}
        for run in runs:
            path = results.path_of(run)
            content = files.unseal(path)
            content["provenance"]["device"] = DEVICE
            content["evaluation"]["psnr"] = [value + 1 for value in content["evaluation"]["psnr"]]
            whole = json.loads(files.seal(content))
            change(whole if not seal else content)
            own = name or path.relative_to(files.root()).as_posix()
            members[own] = files.seal(content) if seal else json.dumps(whole).encode()
        gpu.write_zip(tmp_path / "home.zip", members | {"data/results/gpu/A-card.json": b"{}"})
        return tmp_path / "home.zip"

    write.runs = runs
    return write


def below(folder) -> dict:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_theirs_stand_beside_ours_which_stay(archive, capsys):
    before = below(files.results())
    assert main(["merge", str(archive())]) == 0
    said = capsys.readouterr()
    assert DEVICE in said.out and not said.err and below(files.results()) == before
    table = merge.table().set_index("task")
    assert dict(table.seeds) == {"inpaint": 2, "denoise": 1} and set(table.device) == {DEVICE}
    ours = [results.overall(results.load(run).evaluation).psnr.mean() for run in archive.runs[:2]]
    assert table.loc["inpaint", "ours (dB)"] == pytest.approx(sum(ours) / 2, abs=0.006)
    assert (table["theirs (dB)"] - table["ours (dB)"]).tolist() == pytest.approx([1, 1], abs=0.011)
    kept = below(merge.others())
    assert main(["merge", str(archive())]) == 0 and below(merge.others()) == kept  # again: nothing new
    assert results.frame().device.eq("CPU, 1 thread").all()  # nobody takes theirs for ours
    results.path_of(archive.runs[2]).unlink()
    assert merge.table().set_index("task").loc["denoise"].isna()["ours (dB)"]


def test_every_kind_of_result_that_is_packed_is_taken(demo, tmp_path, capsys):
    """A network on its levels and on blocks, and a fill that learns nothing."""
    runs = catalogue.runs("table2", "inpaint", "demo", "smoke", [3])
    jobs = [catalogue.job_with_all(run) for run in runs if run.schedule not in INPAINTERS]
    sweep.run_jobs(jobs, "cpu", workers=1)
    assert all(m.path.exists() for job in jobs for m in job.measurements)
    gpu.pack(tmp_path / "home.zip", jobs)
    assert main(["merge", str(tmp_path / "home.zip")]) == 0 and not capsys.readouterr().err.count("refused")
    assert len(below(merge.others())) == sum(len(job.measurements) for job in jobs) == 3


@pytest.mark.parametrize(
    ("change", "seal", "why"),
    [
        (lambda c: c["evaluation"]["psnr"].__setitem__(0, 99.0), False, "the seal is not its own"),
        (lambda c: c.pop("seal"), False, "the seal is not its own"),
        (lambda c: c.update(protocol=1), True, "of protocol 1, and this is protocol 2"),
        (lambda c: c["experiment"].update(seed=7), True, "not the experiment that its name says|other numbers"),
        (lambda c: c["experiment"].update(width=16), True, "other numbers of the experiment"),
        (lambda c: c["provenance"].update(data_sha256="0" * 64), True, "other photographs"),
        (lambda c: c["provenance"].update(arithmetic="bf16 rounded"), True, "other arithmetic"),
        (lambda c: c["provenance"].pop("device"), True, "no result of this companion"),
        (lambda c: c["provenance"].update(device=" "), True, "a device without a name"),
        (lambda c: c["evaluation"].update(psnr=[1.0]), True, "no result of this companion"),
        (lambda c: c["evaluation"].update(psnr=["x"] * len(c["evaluation"]["level"])), True, "no result"),
        (lambda c: c.pop("experiment"), True, "no result of this companion"),
        (lambda c: c.clear(), True, "no result of this companion"),
    ],
)
def test_what_differs_is_refused_in_one_line(archive, change, seal, why, capsys):
    before = below(files.results())
    assert main(["merge", str(archive(change, seal))]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "refused" in said and pd.Series([said]).str.contains(why).all(), said
    assert below(files.results()) == before and not merge.others().exists()


@pytest.mark.parametrize(
    ("theirs", "word"), [({"bf16": "fp32, rounded"}, "fp32 rounded"), ({"arithmetic": "bf16"}, "bf16")]
)
def test_an_older_result_of_ours_is_of_its_own_precision(archive, theirs, word):
    for run in archive.runs:  # as results were before they named their arithmetic
        path = results.path_of(run)
        content = files.unseal(path)
        content["provenance"].pop("arithmetic")
        files.write_atomically(path, files.seal(content))
    assert merge.merge(archive()) == {}
    [why] = merge.merge(archive(lambda c: c["provenance"].update(theirs)))
    assert why == f"other arithmetic than ours: {word}, not fp32"


@pytest.mark.parametrize(
    "name", ["data/results/../../../evil.json", "data/results/a/b.json", "data/results/x/y/z/z.sh"]
)
def test_a_name_leads_nowhere_else(archive, name, tmp_path):
    before = {*tmp_path.rglob("*")}
    assert merge.merge(archive(name=name))
    assert {*tmp_path.rglob("*")} - before <= {tmp_path / "home.zip"}


def test_the_photographs_of_a_run_that_we_lack_are_those_of_our_others(archive):
    """Of the three runs we have one left; what the stranger trained on other pixels of the same set is refused."""
    right = archive().read_bytes()
    path = archive(lambda content: content["provenance"].update(data_sha256="0" * 64))
    for run in archive.runs[1:]:
        results.path_of(run).unlink()
    assert [*merge.merge(path)] == ["other photographs than ours: the hash of the pixels differs"]
    path.write_bytes(right)
    assert not merge.others().exists() and merge.merge(path) == {}


def test_another_answer_of_the_same_device_is_refused(archive):
    assert merge.merge(archive()) == {}
    [why] = merge.merge(archive(lambda c: c["provenance"].update(commit="fffffff")))
    assert why == "not what this device has sent before"


def test_processors_are_devices_of_their_own_and_kinds_of_arithmetic_rows(archive):
    """Every CPU is called `CPU, 1 thread`; the first stranger's result is not in the second one's way."""

    def of(model, more, arithmetic="fp32"):
        def change(content):
            content["provenance"] |= {"device": "CPU, 1 thread", "processor": model, "arithmetic": arithmetic}
            content["evaluation"]["psnr"] = [value + more for value in content["evaluation"]["psnr"]]

        return change

    assert merge.merge(archive(of("Xeon", 0))) == merge.merge(archive(of("EPYC", 1))) == {}
    table = merge.table().set_index(["device", "task"])["theirs (dB)"]
    one, other = table["CPU, 1 thread, Xeon"], table["CPU, 1 thread, EPYC"]
    assert (other - one).tolist() == pytest.approx([1, 1], abs=0.011)
    mixed = iter(["fp32", "bf16", "fp32"])
    path = archive(lambda content: of("M4", 0, next(mixed))(content))
    for run in archive.runs:
        results.path_of(run).unlink()  # with nothing of ours there is nothing to compare the arithmetic with
    assert merge.merge(path) == {}
    table = merge.table()
    assert sorted(table[table.device.str.endswith("M4")].arithmetic) == ["bf16", "fp32", "fp32"]


@pytest.mark.parametrize("change", ["flipped", "method", "password"])
def test_a_damaged_archive_is_told_of_its_results(archive, change):
    """A byte of deflated data, a method that nobody has, a password that nobody gave."""
    path = archive()
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as whole:
        infos = [info for info in whole.infolist() if "A-card" not in info.filename]
    for info in infos:
        name = info.filename.encode()
        local, central = info.header_offset, content.rfind(name) - 46
        if change == "flipped":
            content[local + 30 + len(name) + info.compress_size // 2] ^= 0xFF
        for at, flags, method in ((local, 6, 8), (central, 8, 10)):
            if change == "method":
                content[at + method] = 99
            if change == "password":
                content[at + flags] |= 1
    path.write_bytes(content)
    assert merge.merge(path) == {"no result of this companion": [info.filename for info in infos]}
    assert not merge.others().exists()


def test_a_pipe_and_a_folder_are_no_archives(demo, tmp_path):
    os.mkfifo(tmp_path / "pipe.zip")
    for place in (tmp_path / "pipe.zip", tmp_path):
        refused(lambda place=place: merge.merge(place), "archive=", "no regular file", "--pack")


def test_what_is_no_archive_is_one_line(demo, tmp_path):
    refused(lambda: merge.merge(tmp_path / "none.zip"), "archive=", "none.zip", "--pack")
    (tmp_path / "page.zip").write_text("<html>quota</html>")
    refused(lambda: merge.merge(tmp_path / "page.zip"), "page.zip", "--pack")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("readme.txt", "hello")
    refused(lambda: merge.merge(tmp_path / "other.zip"), "holds no results")
    assert os.listdir(tmp_path / "root") == ["data"]
