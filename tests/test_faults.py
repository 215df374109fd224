"""The fault campaign in short: nothing is lost silently, and every promise is noticed when it is broken."""

import pytest

from tests.faults import campaign
from tests.faults.__main__ import ROWS, main


@pytest.mark.parametrize("name", ROWS)
def test_a_promise_is_kept_and_its_breach_noticed(name):
    row = ROWS[name]
    kept = campaign.measure(row, row.short)
    assert kept["recovered"] == kept["injected"] == row.short, kept
    assert campaign.measure(row, row.short, edits=row.edits)["silent"] > 0


def test_a_wrong_row_is_one_line(capsys):
    assert main(["--only", "kils"]) == 2
    message = capsys.readouterr().err
    assert "nearest: 'kills'" in message and message.count("\n") == 1
