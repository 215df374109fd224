"""What ends a run in order, beside Ctrl-C: signals of a shell, a cluster, or a limit of processor time."""

import signal
from collections.abc import Callable

NAMES = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU")  # of which Windows has the first alone
ENDING = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]


def handle(handler: Callable, signals=ENDING) -> None:
    """Call `handler(number, frame)` at each of these signals; one that is ignored stays so, as by `nohup`."""
    for number in signals:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def leave(number, frame) -> None:
    """Raise SystemExit with a shell's status for this signal, once: what is written on the way out becomes whole."""
    handle(lambda *_: None)
    raise SystemExit(128 + number)
