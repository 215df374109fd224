"""The fault campaign in short: nothing is lost silently, and what is lost is counted."""

import json

import appendix
import pytest
from conftest import refused

from companion.disk import files
from tests.faults import campaign
from tests.faults.__main__ import ROWS, main


@pytest.mark.parametrize("name", [name for name in ROWS if name != "parameters"])  # tests/notebooks has them all
def test_a_promise_is_kept(name):
    kept = campaign.measure(name, ROWS[name].short)
    assert kept["recovered"] == kept["injected"] == ROWS[name].short, kept


def test_a_promise_that_is_broken_is_noticed(monkeypatch):
    """Without the seal of results, some damaged numbers are read as they stand."""
    monkeypatch.setattr(files, "unseal", lambda path: {**json.loads(path.read_bytes()), "seal": None})
    assert campaign.measure("results", 100)["silent"]


def test_the_page_shows_what_is_measured_once_and_names_what_is_not(root, monkeypatch):
    refused(appendix.promises, kind=FileNotFoundError)
    assert main(["--quick", "--only", "weights"]) == 0
    monkeypatch.setattr(campaign, "measure", lambda *_: pytest.fail("measured again"))
    assert main(["--quick", "--only", "weights"]) == 0
    written = files.unseal(root / "runs/faults.json")
    files.write_atomically(root / "data/results/faults.json", files.seal(written))
    shown, row = appendix.promises(), written["rows"]["weights"]
    assert row["promise"] in shown and f"| {row['injected']} | {row['recovered']} | 0 |" in shown
    assert "to be measured: " in shown and "kills" in shown
