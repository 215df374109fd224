"""Measure speed against other ways to do the same, and write data/results/benchmarks/<device>/<name>.json.

make bench                       both, on the GPU if there is one, under 15 minutes
python -m bench training         one benchmark
python -m bench --quick          tiny sizes, into runs/benchmarks/: whether it works, not how fast
"""

import argparse
import os
import sys
import time

import pandas as pd
import torch

from companion.cli import Parser
from companion.cli import main as run_command
from companion.training.device import DEVICES, check_device, make_deterministic
from odl.parameters import choice, integer

from . import corruptions, measure, training

BENCHMARKS = {"training": training, "corruptions": corruptions}
ROUNDS = 7


def main(arguments=None) -> int:
    """Run benchmarks as `companion.cli.main` does a command. Returns the exit status."""
    about, examples = __doc__.split("\n\n")
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser("python -m bench", description=about, epilog=examples, formatter_class=raw)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}")
    parser.add_argument("--device", default="auto", help=f"{', '.join(DEVICES)} (default auto)")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count()), help="CPU threads (default %(default)s)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one round, to see that everything runs")
    parser.set_defaults(run=run, kept="the benchmarks listed above are written")
    return run_command(arguments, parser)


def run(given) -> None:
    """Run the benchmarks; each prints its table and writes its results. Raises ParameterError."""
    for name in given.names:
        choice("name", name, BENCHMARKS)
    integer("threads", given.threads, 1, os.cpu_count())
    options = measure.Options(check_device(given.device), given.threads, 1 if given.quick else ROUNDS, given.quick)
    torch.set_num_threads(options.threads)
    if options.device == "cuda":
        make_deterministic()  # kernels as in training
    for name in given.names or BENCHMARKS:
        start = time.monotonic()
        content = BENCHMARKS[name].run(options)
        path = measure.write(name, content, options)
        print(f"\n{name}, {options.rounds} rounds, {time.monotonic() - start:.0f} s\n")
        table = pd.DataFrame(content["rows"], dtype=object).map(measure.cell)
        print(table.to_string(index=False), path, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
