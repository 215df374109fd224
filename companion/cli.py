"""`python -m odl train / evaluate / restore / data / results`: the companion from the command line."""

import argparse
import json
import os
import re
import signal
import sys
import warnings
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from PIL import Image
from tqdm import tqdm

from companion.data import reader
from companion.data.folders import unread
from companion.data.sets import DATASETS, is_here
from companion.disk import ending
from companion.disk.files import DiskError
from companion.disk.progress import Bar
from companion.restore import image_files
from companion.restore.chosen import PAPER, check_call
from odl import __version__, paper
from odl.experiment import PROFILES, Experiment, check_dataset
from odl.parameters import OneLine, ParameterError
from odl.schedules import SCHEDULES

WORK_KEPT = "what was done is kept, and the same command finishes it"
WHOLE_STEPS_KEPT = (
    "downloading, unpacking and packing are kept where they were complete, and the same command goes on after them"
)
NAMED_KEPT = "what is named above is restored; the same command with --overwrite restores all of it again"


def main(arguments=None, commands=None) -> int:
    """Run one command of a parser; a user's mistake is one line on stderr and exit status 2."""
    ending.handle(ending.leave)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started this in the background
    with suppress(AttributeError):  # a notebook's, which takes every sign
        sys.stdout.reconfigure(errors="replace")  # to a file on Windows, whose code page lacks some
    options = (commands or parser()).parse_args(arguments)
    try:
        return options.run(options) or 0
    except KeyboardInterrupt:
        print(f"\ninterrupted; {getattr(options, 'kept', WORK_KEPT)}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `… | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OneLine, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        print(f"error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    return 0


def out_of_memory(error: RuntimeError) -> bool:
    """Return True if PyTorch found no room, on a GPU or a CPU, or the system killed a worker that took too much."""
    return bool(re.search("out of memory|not enough memory|can't allocate memory|excessive memory", str(error)))


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, with exit status 2."""

    def error(self, message):
        self.exit(2, f"error: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    top = Parser("python -m odl", description="On-Demand Learning for Deep Image Restoration, live.")
    top.add_argument("--version", action="version", version=f"odl {__version__}")
    commands = top.add_subparsers(dest="command", required=True)

    add_experiment(commands.add_parser("train", help="train and evaluate one run; resumes"), run_train)
    add_experiment(commands.add_parser("evaluate", help="print a run's L2 and PSNR per level"), run_evaluate)

    restore = commands.add_parser(
        "restore",
        help="restore a photograph, or a folder of them, with a pretrained network",
        description="Fill the pixels that a mask marks (inpaint, interpolate), or remove noise (denoise) or blur "
        "(deblur).",
    )
    restore.add_argument("--task", required=True, help=", ".join(paper.TASKS))
    restore.add_argument(
        "--mask",
        help="picture that is white, red or transparent where pixels are missing, or a folder of them with the names "
        "of the photographs (inpaint and interpolate)",
    )
    restore.add_argument("--network", help="photographs or paper (default: photographs where these ship)")
    restore.add_argument("--stride", type=int, help="of --network paper: pixels between windows (default 8 to 32)")
    restore.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    restore.add_argument(
        "--overwrite",
        action="store_true",
        help="let the output replace the input, files that exist, or what lies in a folder below the input",
    )
    restore.add_argument("input", metavar="IN", help="a photograph or a folder of them")
    restore.add_argument("output", metavar="OUT", help="where the restored one goes, .png or .jpg …, or a folder")
    restore.set_defaults(run=run_restore, kept=NAMED_KEPT)

    data = commands.add_parser("data", help="list data sets, or get and pack one")
    actions = data.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="what there is, where from, and whether it is here").set_defaults(run=run_data_list)
    prepare = actions.add_parser("prepare", help="download or take a local copy, check, pack")
    prepare.add_argument("name", help=f"{', '.join(DATASETS)}, with -native for full resolution, or a folder")
    prepare.add_argument("--source", help="a local folder or archive of the set")
    prepare.add_argument("--skip-bad", action="store_true", help="leave out images that cannot be read, and list them")
    prepare.set_defaults(run=run_data_prepare, kept=WHOLE_STEPS_KEPT)

    results = commands.add_parser("results", help="list what is measured")
    results.add_argument("words", nargs="*", metavar="WORD", help="that a run's name has, as demo/denoise or seed0")
    results.add_argument("--csv", action="store_true", help="as CSV")
    results.set_defaults(run=run_results)
    return top


def add_experiment(command, run) -> None:
    """Add the options that describe one run, and what the command does with them."""
    command.set_defaults(run=run)
    sets = [name for name in DATASETS if name != "db11"]  # which is for tests alone
    command.add_argument("--task", default="inpaint", help=f"{', '.join(paper.TASKS)} (default inpaint)")
    command.add_argument("--dataset", default="demo", help=f"{', '.join(sets)} or a folder (default demo)")
    command.add_argument("--schedule", default="on_demand", help=f"{', '.join(SCHEDULES)} (default on_demand)")
    command.add_argument("--seed", type=int, default=0, help="of weights, crops and damage (default 0)")
    command.add_argument("--profile", default="demo", help=f"{', '.join(PROFILES)} (default demo)")
    command.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    others = ", ".join(field.name for field in fields(Experiment)[5:-1])  # but for those above, and the code
    text = f"a parameter, as epochs=30; of {others}"
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=text)


def experiment_of(options) -> Experiment:
    numbers = {name: getattr(options, name) for name in ("task", "dataset", "schedule", "seed", "profile")}
    for item in options.set:
        name, equals, text = item.partition("=")
        if not equals:
            raise ParameterError(f"--set {name!r} has no value: NAME=VALUE is needed, as epochs=30")
        try:
            numbers[name] = json.loads(text)
        except json.JSONDecodeError:
            numbers[name] = text
    return Experiment.of(**numbers)


def run_train(options) -> None:
    from companion.training.device import check_device
    from companion.training.results import measurement_of, schedule_of

    experiment, device = experiment_of(options), check_device(options.device)
    result = measurement_of(experiment).load()
    if not result:
        schedule_of(experiment)  # refuses before there is a bar
        with Bar(100, experiment.schedule) as bar:
            result = measurement_of(experiment).run(device, lambda share: bar.advance(100 * share))
    else:
        print(f"{experiment.schedule} was measured before; a schedule that has changed since needs a new name")
    print_evaluation(result)
    print(result.path)


def run_evaluate(options) -> None:
    from companion.training.results import command_of, load_result

    experiment = experiment_of(options)
    result = load_result(experiment)
    if result is None:
        raise ParameterError(f"{experiment.run_id} is to be measured: {command_of(experiment)}")
    print_evaluation(result)


def print_evaluation(result) -> None:
    frame = result.evaluation.groupby("level")[["l2", "psnr"]].mean().round(3)
    print(frame.rename(columns={"l2": "L2 (‰)", "psnr": "PSNR (dB)"}).to_string())


def run_restore(options) -> int:
    """Restore a file or a folder; return 1 where some photographs failed. torch is imported once the names are good."""
    network = check_call(options.task, options.mask, options.stride, options.network)
    todo = image_files.todo(options.input, options.output, options.mask, options.overwrite)
    from companion.training.device import check_device

    check_device(options.device)
    given = Path(os.path.expanduser(options.input))
    for line in unread(given):
        print(f"warning: {line}", file=sys.stderr)

    if options.mask and len(todo) > 1 and not Path(os.path.expanduser(options.mask)).is_dir():
        print(f"warning: {options.mask} is the mask of all {len(todo)} photographs", file=sys.stderr)

    from companion.restore.pretrained import load

    if network == PAPER:
        load(options.task)
    failed = 0
    with Bar(len(todo)) as bar:
        for done, (source, mask, output) in enumerate(todo):
            bar.set_description_str(f"{options.task} {source.name}")
            try:
                restore_file(source, mask, output, options, lambda share, done=done: bar.advance(done + share))
                tqdm.write(str(output))
            except (OneLine, OSError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and not out_of_memory(error):
                    raise
                if not given.is_dir() or isinstance(error, DiskError):  # full for the others, too
                    raise
                failed += 1
                tqdm.write(f"error: {source}: {str(error).removeprefix(f'{source}: ')}", sys.stderr)
            bar.update(done + 1 - bar.n)
    if failed:
        print(f"{failed} of {len(todo)} photographs were not restored", file=sys.stderr)
    return int(failed > 0)


def restore_file(source: Path, mask: Path | None, output: Path, options, progress) -> None:
    """Restore one file; a warning is one line on stderr, before the work where that can tell."""
    from companion.restore.advice import DamageWarning
    from companion.restore.pretrained import restore

    def warn(message, *_):
        tqdm.write(f"warning: {source}: {message}", sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DamageWarning)
        warnings.showwarning = warn
        pages, deep = reader.kind(source)
        if pages > 1 and output.exists() and output.samefile(source):
            raise ParameterError(
                f"{source}: of its {pages} pages --overwrite would leave only the first; give another output"
            )
        stored, mask = reader.opened(source), mask and reader.opened(mask)
        keeping, lost = image_files.kept(stored, output)
        lines = [f"of its {pages} pages the first is restored"] * (pages > 1) + lost
        lines += ["of more than 8 bits a value, 8 are kept"] * deep
        for line in lines:
            warn(line)
        how = options.stride, options.device, progress, options.network
        restored = restore(stored, options.task, mask, *how)
        image_files.save(restored, output, keeping)


def run_data_list(options) -> None:
    for name, entry in DATASETS.items():
        state = "here" if is_here(name) else "missing"
        print(f"{name:8} {state:8} {entry['images']:>7,} images  {entry['size']:12} {entry['title']}")


def run_data_prepare(options) -> None:
    from companion.data.download import prepare

    check_dataset(options.name, "name")
    print(prepare(options.name, options.source, options.skip_bad))


def run_results(options) -> int:
    from companion.training.results import frame

    bad = []
    table = frame(options.words, bad.append)
    if table.empty:
        print("nothing measured yet" + f" whose name has {' and '.join(options.words)}" * bool(options.words))
    else:
        print(table.to_csv(index=False) if options.csv else table.to_string(index=False), end="\n" * (not options.csv))
    for line in bad:
        print(f"error: {line}", file=sys.stderr)
    return int(bool(bad))


def program() -> None:
    """Run `odl`, or `python -m odl`: `main` in a process of its own."""
    Image.MAX_IMAGE_PIXELS = reader.MAX_PIXELS  # up to there Pillow need not warn, and beyond it `reader` refuses
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"  # on one line, Pillow's too
    sys.exit(main())


if __name__ == "__main__":
    program()
