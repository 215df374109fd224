"""Progress: a bar on a terminal, lines of text elsewhere, and estimates that are worth reading."""

import io
import os
import sys

import pytest

from companion.disk import progress
from companion.disk.progress import Bar


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still: `clock[0]` is its seconds, for lines and for estimates."""
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


def started(*given, **more) -> Bar:
    """A bar whose clock began at 0."""
    bar = Bar(*given, **more)
    bar._time = lambda: progress.monotonic()
    bar.start_t = bar.last_print_t = 0.0
    return bar


@pytest.mark.parametrize(("first", "step"), [(0.01, 0.02), (0.5, 0.1)])
def test_the_first_estimate_is_of_the_work_alone(first, step, clock):
    """What comes before the first sign of progress, as reading and what another call has done, does not count."""
    with started(100) as bar:
        for clock[0], share in ((60.0, first), (61.0, first + step), (62.0, first + 2 * step)):
            bar.advance(100 * share)
        assert bar.seconds_left() == pytest.approx((1 - first - 2 * step) / step)


def test_in_a_log_there_is_a_line_a_minute_and_no_estimate_below_two_per_cent(clock, capsys):
    with started(1000, "on-demand") as bar:
        for clock[0] in range(600):
            bar.advance(1 + clock[0])
    first, second, *_, last = lines = capsys.readouterr().err.splitlines()
    assert first == "on-demand: 2 % after 15 s" and len(lines) == 11
    assert second == "on-demand: 8 % after 75 s, about 15 min to go"
    assert last == "on-demand: 60 % after 10 min, about 7 min to go"


def test_what_was_done_before_gives_no_estimate_and_a_first_error_no_line(clock, capsys):
    with pytest.raises(ValueError, match="no folder"), started(1000, "on-demand"):
        raise ValueError("no folder")
    with started(1000, "7 runs", initial=500) as bar:
        clock[0] = 20.0
        bar.update(5)
        clock[0] = 90.0
        bar.update(495)
    assert capsys.readouterr().err == "7 runs: 50 % after 20 s\n7 runs: 100 % after 2 min, about 0 s to go\n"


def test_on_a_terminal_there_is_one_bar_with_an_estimate(clock, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with started(1000, "7 runs") as bar:
        for clock[0] in range(10):
            bar.advance(10 * clock[0])
    assert terminal.getvalue().strip().split("\r")[-1].endswith("| 00:08 so far, 01:31 to go")


def test_a_kernel_tells_whoever_started_it(capsys, monkeypatch):
    """Where sys.stderr goes to a notebook, and its file is that of the process, as ipykernel has it."""
    read, written = os.pipe()
    monkeypatch.setattr(sys.stderr, "fileno", lambda: written, raising=False)
    progress.write("7 runs: 12 %")
    assert capsys.readouterr().err == "7 runs: 12 %\n" and os.read(read, 100) == b"\n7 runs: 12 %\n"
    os.close(read), os.close(written)
