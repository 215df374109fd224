"""The fault campaign in short: nothing is lost silently, and every promise is noticed when it is broken."""

import random

import pytest
import reliability as page
from conftest import refused

from odl.machine import files
from tests.faults import campaign
from tests.faults.__main__ import ROWS, main


@pytest.mark.parametrize("name", ROWS)
def test_a_promise_is_kept_and_its_breach_noticed(name):
    row = ROWS[name]
    kept = campaign.measure(name, row.short)
    assert kept["recovered"] == kept["injected"] == row.short, kept
    assert campaign.measure(name, row.injections, row.edits, until=campaign.SILENT)["silent"]  # most at the first


def test_a_loop_that_forgets_its_random_state_ends_otherwise_after_a_kill():
    others = pytest.importorskip("tests.faults.others", reason="deepinv is not installed; make faults installs it")
    ends = {way: others.clean(way) for way in ("odl", "torch.save loop")}
    assert all(others.clean(way) == end for way, end in ends.items())
    found = [others.outcome(way, "kill -9", random.Random(0), end) for way, end in ends.items()]
    assert found == [campaign.RECOVERED, campaign.SILENT]


def test_the_page_shows_what_is_measured_once_and_names_what_is_not(root, monkeypatch):
    for nothing in (page.promises, page.comparison):
        refused(nothing, kind=FileNotFoundError)
    assert main(["--quick", "--only", "allocation"]) == 0
    monkeypatch.setattr(campaign, "measure", lambda *_: pytest.fail("measured again"))
    assert main(["--quick", "--only", "allocation"]) == 0
    written = files.unseal(root / "runs/faults.json")
    files.write_atomically(root / "data/results/faults.json", files.seal(written))
    shown, row = page.promises(), written["rows"]["allocation"]
    assert row["promise"] in shown and f"| {row['injected']} | {row['recovered']} | 0 |" in shown
    assert f"{row['broken']['silent']} of {row['broken']['injected']} silent" in shown
    assert "to be measured: " in shown and "kills" in shown
    refused(page.comparison, kind=FileNotFoundError)
