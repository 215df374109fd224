"""How far long work is: a bar on a terminal; in a log and in a notebook, papermill's too, a line of text a minute."""

import io
import os
import sys
from contextlib import suppress
from time import monotonic

from tqdm import tqdm

FIRST, EVERY = 15, 60  # seconds to the first line of text, and from one to the next
MIN_SHARE = 0.02  # of the work: less gives no estimate of the rest


class Bar(tqdm):
    """Shows the progress of `total`, of which `initial` was done before; call `update(n)` or `advance(to)`."""

    def __init__(self, total: float, desc: str = "", initial: float = 0):
        self.on_terminal, self.due = sys.stderr.isatty(), monotonic() + FIRST
        look = {"smoothing": 0, "bar_format": "{desc}: {percentage:3.0f}%|{bar}| {elapsed} so far{to_go}"}
        file = sys.stderr if self.on_terminal else io.StringIO()
        super().__init__(total=total, desc=desc, initial=initial, file=file, **look)

    def seconds_left(self) -> float | None:
        """Return an estimate from the mean speed so far; None while too little is done."""
        done, rest = self.n - self.initial, self.total - self.initial
        elapsed = super().format_dict["elapsed"]
        return elapsed * (rest / done - 1) if done and done >= MIN_SHARE * rest else None

    @property
    def format_dict(self) -> dict:
        """Return what tqdm fills `bar_format` with, and `to_go`."""
        left = self.seconds_left()
        return super().format_dict | {"to_go": "" if left is None else f", {self.format_interval(left)} to go"}

    def advance(self, to: float) -> None:
        """Move to `to`; times begin at the first call, behind what was read, packed, warmed up or resumed."""
        if self.n or to >= self.total:
            self.update(to - self.n)
        else:
            self.initial = self.n = to
            self.unpause()

    def display(self, msg=None, pos=None) -> None:
        """Show the bar, or write the line of text that is due."""
        if self.on_terminal:
            super().display(msg, pos)
        elif monotonic() >= self.due:
            self.due = monotonic() + EVERY
            write(self.line())

    def close(self) -> None:
        """End the bar; where it did not reach its end, a last line says how far it came, not before a first error."""
        failed = self.n == 0 and sys.exc_info()[0] is not None
        if not (self.on_terminal or self.disable or failed) and self.n < self.total:
            write(self.line())
        super().close()

    def line(self) -> str:
        elapsed, left = self.format_dict["elapsed"], self.seconds_left()
        text = f"{self.desc.removesuffix(': ')}: {100 * self.n / self.total:.0f} % after {spoken(elapsed)}"
        return text if left is None else f"{text}, about {spoken(left)} to go"


def spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def write(line: str) -> None:
    """Write to stderr; from a notebook's kernel also to that of papermill, or what else has started it."""
    print(line, file=sys.stderr, flush=True)
    with suppress(AttributeError, OSError):  # a stream may have no file
        if (behind := sys.stderr.fileno()) != sys.__stderr__.fileno():
            os.write(behind, f"\n{line}\n".encode())
