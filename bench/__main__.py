"""Measure speed against other ways to do the same, and write data/results/benchmarks/<device>/<name>.json.

make bench                       both, on the GPU if there is one, under 15 minutes
python -m bench training         one benchmark
python -m bench --quick          tiny sizes, into runs/benchmarks/: whether it works, not how fast
"""

import argparse
import os
import sys
import time

from companion.cli import Parser
from companion.cli import main as run_command
from companion.training.device import DEVICES, check_device
from odl.parameters import choice, integer

from . import corruptions, measure, training

BENCHMARKS = {"training": training, "corruptions": corruptions}
ROUNDS = 7


def main(arguments=None) -> int:
    """Run benchmarks as `companion.cli.main` does a command; exit status 1 when one of them failed."""
    return run_command(arguments, parser())


def parser() -> Parser:
    about, examples = __doc__.split("\n\n")
    raw = argparse.RawDescriptionHelpFormatter
    top = Parser("python -m bench", description=about, epilog=examples, formatter_class=raw)
    top.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}")
    top.add_argument("--device", default="auto", help=f"{', '.join(DEVICES)} (default auto)")
    top.add_argument("--threads", type=int, default=min(2, os.cpu_count()), help="CPU threads (default %(default)s)")
    top.add_argument("--quick", action="store_true", help="tiny sizes and one round, to see that everything runs")
    top.set_defaults(run=run, kept="the benchmarks listed above are written")
    return top


def run(given) -> int:
    """Run the benchmarks. Returns the exit status, 1 when one failed. Raises ParameterError."""
    for name in given.names:
        choice("name", name, BENCHMARKS)
    integer("threads", given.threads, 1, os.cpu_count())
    device, rounds = check_device(given.device), 1 if given.quick else ROUNDS
    options = measure.Options(device, given.threads, rounds, given.quick)
    measure.prepare(options)
    names, origin = list(dict.fromkeys(given.names)) or [*BENCHMARKS], measure.provenance(options)
    failed = [name for name in names if not done(name, options, origin)]
    if failed:
        print(f"bench: {len(failed)} of {len(names)} benchmarks failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def done(name: str, options: measure.Options, origin: dict) -> bool:
    """Run a benchmark, print its table, write its results; an error costs one line, and the others go on."""
    start = time.monotonic()
    try:
        content = BENCHMARKS[name].run(options)
        path = measure.write(name, content, options, origin)
    except Exception as error:
        print(f"bench: {name}: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return False
    print(f"\n{name}, {origin['device']}, {options.rounds} rounds, {time.monotonic() - start:.0f} s\n")
    print(measure.table(content["rows"]), f"{path}", sep="\n", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
