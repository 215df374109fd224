"""The command line: `python -m odl` trains and restores, `python -m companion` makes every run of the paper."""

import argparse
import json
import math
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path

from PIL import Image
from tqdm import tqdm

from companion.data import reader
from companion.data.folders import unread
from companion.data.sets import DATASETS, find, is_here, need_training_images
from companion.disk import ending, files
from companion.disk.files import DamagedFile, DiskError
from companion.disk.progress import Bar
from companion.restore import image_files
from companion.restore.chosen import PAPER, check_call
from odl import __version__, paper
from odl.experiment import PROFILES, Experiment, check_dataset, is_folder
from odl.parameters import OneLine, ParameterError, choice, integer, nearest, number
from odl.schedules import SCHEDULES

WORK_KEPT = "what was done is kept, and the same command finishes it"
WHOLE_STEPS_KEPT = "what was downloaded, unpacked or packed to its end is kept, and the same command goes on after it"
NONE_KEPT, NAMED_KEPT = "nothing was restored", "what is named above is restored"
SMOKE = "smoke trains a few steps: its numbers mean nothing"


def main(arguments=None, commands=None) -> int:
    """Run one command of a parser, by default odl's; a user's mistake is one line on stderr and exit status 2."""
    ending.handle(ending.leave)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started this in the background
    with suppress(AttributeError):  # a notebook's, which takes every sign
        sys.stdout.reconfigure(errors="replace")  # to a file on Windows, whose code page lacks some
    options = (commands or parser()).parse_args(arguments)
    try:
        if any(map(Path.is_file, (files.root(), *files.root().parents))):
            files.need_writable(files.root())
        return options.run(options) or 0
    except KeyboardInterrupt:
        print(f"\ninterrupted; {getattr(options, 'kept', WORK_KEPT)}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `… | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OneLine, OSError, RuntimeError, MemoryError) as error:
        if unforeseen(error):
            raise
        print(f"error: {line_of(error)}", file=sys.stderr)
        return 2
    return 0


def program() -> None:
    """Run `odl`, or `python -m odl`: `main` in a process of its own."""
    Image.MAX_IMAGE_PIXELS = None  # Pillow need not warn, because `reader` refuses what is beyond its MAX_PIXELS
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"  # on one line, Pillow's too
    sys.exit(main())


def companion(arguments=None) -> int:
    """Run one command of `python -m companion` as `main` does."""
    return main(arguments, companion_parser())


def line_of(error: Exception, before: str = "") -> str:
    """Return in one line what an error says, of one of the system's its file and what is wrong with it.

    `before` comes once before it, and what would break the line in a file's name is escaped.
    """
    line = str(error) or {MemoryError: "too little memory"}.get(type(error), type(error).__name__)
    if isinstance(error, OSError) and error.filename and error.strerror:
        line = f"{error.filename}: {error.strerror}"
    elif not isinstance(error, OneLine):
        line = line.splitlines()[0]
    line = before + line.removeprefix(before)
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda found: repr(found[0])[1:-1], line)


def unforeseen(error: Exception) -> bool:
    """Return True unless a user can mend it: there is no room, or the system killed a worker that took too much."""
    room = "out of memory|not enough memory|can't allocate memory|excessive memory"
    return not (isinstance(error, OneLine | OSError | MemoryError) or re.search(room, str(error)))


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, with exit status 2; a command itself refuses what it does not know."""

    def error(self, message):
        self.exit(2, f"error: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args=None, namespace=None):
        found, unknown = super().parse_known_args(args, namespace)
        if option := next((word.partition("=")[0] for word in unknown if word.startswith("-")), None):
            near = nearest(option.lstrip("-"), [name.lstrip("-") for name in self._option_string_actions])
            self.error(f"unknown option {option}" + near.replace("'", "'--", 1))
        if unknown:
            self.error(f"{' '.join(unknown)} is too much; {self.get_default('taken') or 'no more words are taken'}")
        return found, unknown

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:  # a command's name
            near = nearest(value, action.choices)
            self.error(f"{action.dest}={value!r} is not one of {', '.join(action.choices)}{near}")

    def _get_value(self, action, arg_string):
        """Return the number that a text says; what says none stays a text, which the command's own check refuses."""
        for kind in (action.type or str, float):
            with suppress(ValueError):
                return kind(arg_string)
        return arg_string


# fmt: off
SHARED = {  # options of several commands
    "--profile": {"default": "reference", "help": f"{', '.join(PROFILES)} (default reference); {SMOKE}"},
    "--dataset": {"default": "bsds500", "help": f"{', '.join(DATASETS)} or a folder (default bsds500)"},
    "--seeds": {"type": int, "nargs": "+", "help": "which, not how many (default 0 1 2 3 4, of celeba10k 10 to 14)"},
    "--device": {"default": "auto", "help": "auto, cpu or cuda (default auto)"},
}


def add_command(commands, name: str, run: Callable, text: str, *shared: str, **defaults) -> Callable:
    """Add a command with some options of `SHARED`; return the function that adds others to it."""
    added = commands.add_parser(name, help=text, description=text)
    added.set_defaults(run=run, **defaults)
    for option in shared:
        added.add_argument(option, **SHARED[option])
    return added.add_argument


def parser() -> Parser:
    """Return the parser of `python -m odl`."""
    top = Parser("python -m odl", description="On-Demand Learning for Deep Image Restoration, live.")
    top.add_argument("--version", action="version", version=f"odl {__version__}")
    commands = top.add_subparsers(dest="command", required=True)
    command = partial(add_command, commands)

    of_a_run = {"train": (run_train, "train and evaluate one run; resumes", "--device"),
                "evaluate": (run_evaluate, "print a run's L2 and PSNR per level")}
    for name, given in of_a_run.items():
        option = command(name, *given)
        sets = [name for name in DATASETS if name != "db11"]  # which is for tests alone
        option("--task", default="inpaint", help=f"{', '.join(paper.TASKS)} (default inpaint)")
        option("--dataset", default="demo", help=f"{', '.join(sets)} or a folder (default demo)")
        option("--schedule", default="on_demand", help=f"{', '.join(SCHEDULES)} (default on_demand)")
        option("--seed", type=int, default=0, help="of weights, crops and damage (default 0)")
        option("--profile", default="demo", help=f"{', '.join(PROFILES)} (default demo); {SMOKE}")
        others = ", ".join(field.name for field in fields(Experiment)[5:-1])  # but for those above, and the code
        option("--set", action="append", default=[], metavar="NAME=VALUE",
               help=f"a parameter, as epochs=30; of {others}")

    option = command("restore", run_restore, "restore a photograph, or a folder of them: fill the pixels "
                         "that a mask marks (inpaint, interpolate), or remove noise (denoise) or blur (deblur)",
                         "--device", kept=NONE_KEPT,
                         taken="one photograph or one folder is taken, of several give their folder")
    option("--task", required=True, help=", ".join(paper.TASKS))
    option("--mask", help="picture that is white, red or transparent where pixels are missing, one for all photographs "
           "or a folder of them with the same names (inpaint and interpolate)")
    option("--network", help="photographs or paper (default: photographs where these ship)")
    option("--stride", type=int, help="of --network paper: pixels between windows (default 8 to 32)")
    option("--overwrite", action="store_true",
           help="let the output replace the input, files that exist, or what lies in a folder below the input")
    option("--skip-existing", action="store_true", help="leave out photographs whose output exists, as after Ctrl-C")
    option("input", metavar="IN", help="a photograph or a folder of them")
    option("output", metavar="OUT", help="where the restored one goes, .png or .jpg …, or a folder; "
           "from a folder a.gif comes as a.gif.png")

    data = commands.add_parser("data", help="list data sets, or get and pack one")
    action = partial(add_command, data.add_subparsers(dest="action", required=True))
    action("list", run_data_list, "what there is, where from, and whether it is here")
    option = action("prepare", run_data_prepare, "download or take a local copy, check, pack",
                         kept=WHOLE_STEPS_KEPT)
    option("name", help=f"{', '.join(DATASETS)}, with -native for full resolution, or a folder")
    option("--source", help="a local folder or archive of the set")
    option("--skip-bad", action="store_true", help="leave out images that cannot be read, and list them")

    option = command("results", run_results, "list what is measured")
    option("words", nargs="*", metavar="WORD", help="that a run's name has, as demo/denoise or seed0")
    return top


def companion_parser() -> Parser:
    """Return the parser of `python -m companion`."""
    top = Parser("python -m companion", description="Every run of the paper, in one command.")
    command = partial(add_command, top.add_subparsers(dest="command", required=True))

    option = command("reproduce", run_reproduce, "every run of the paper, resuming; stops at a time budget", *SHARED)
    option("--budget", help="stop cleanly after so long: 10min, 8h, 90s; training goes on from there, a "
           "denoiser on the eleven photographs begins anew (K-SVD: 20min) (default: when all is done)")
    option("--workers", type=int, help="runs side by side (default: CPU threads; 4 on a GPU)")
    option("--page", help="the runs of one notebook alone: table1-deblur, fixation, … (default: all)")
    option("--block", nargs="+", default=(), help="some blocks of the campaign alone, in this order: contest, doses, … "
           "(with --dataset celeba10k-native: contest, N1, …)")
    option("--only", nargs="+", metavar="RUN", help="these results alone, by their names in --list")
    option("--list", action="store_true", help="list the runs and what is done of them, and stop")

    option = command("plan", run_plan, "what all runs would cost: GPU hours, the longest run, disk of checkpoints")
    option("--profile", default="paper", help=f"{', '.join(PROFILES)} (default paper)")
    option("--dataset", nargs="+", default=["celeba", "sun397"],
           help=f"some of {', '.join(DATASETS)}, or folders (default celeba sun397)")
    option("--seeds", type=int, nargs="+", default=[0], help="of every trained run (default 0)")
    option("--gpu-ms-per-step", type=float, default=1.0, help="of a training step, as make bench measures (default 1)")

    option = command("train", run_denoiser, "train a learning denoiser of Table 3, resuming", "--profile", "--device")
    option("name", help="mlp, csf, tnrd, dncnn or dncnn_25; of the profiles reference and smoke")

    option = command("photographs", run_photographs, "measure what `restore` makes of photographs", "--device")
    option("--train", action="store_true", help="train the networks for photographs instead, resuming")
    option("--task", help="with --train: photo_denoise, photo_deblur or photo_fill (default: one after the other)")

    command("classical", run_classical, "score what learns nothing on the test crops", "--profile", "--dataset")
    command("verdicts", run_verdicts, "write every verdict as JSON, to be cited", "--profile", "--dataset", "--seeds")
    option = command("ship", run_ship, "copy trained networks to data/models, in half precision")
    option("runs", nargs="+", metavar="RUN", help="as `reproduce --list` names them, or a folder below runs/")
    return top
# fmt: on


# python -m odl


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
    need_training_images(experiment.dataset)
    result = measurement_of(experiment).load()
    if result:
        print(f"{experiment.schedule} was measured before; a schedule that has changed since is trained anew")
    else:
        schedule_of(experiment)  # refuses before there is a bar
        with Bar(100, experiment.schedule) as bar:
            result = measurement_of(experiment).run(device, lambda share: bar.advance(100 * share))
    print_evaluation(result)
    print(result.path)


def run_evaluate(options) -> None:
    from companion.training.results import command_of, load_result

    experiment = experiment_of(options)
    if is_folder(experiment.dataset):
        find(experiment.dataset)  # refuses what is none
    result = load_result(experiment)
    if result is None:
        raise ParameterError(f"{experiment.run_id} is to be measured: {command_of(experiment)}")
    print_evaluation(result)


def print_evaluation(result) -> None:
    frame = result.evaluation.groupby("level")[["l2", "psnr"]].mean().round(3)
    print(frame.rename(columns={"l2": "L2 (‰)", "psnr": "PSNR (dB)"}).to_string())
    if result.experiment["profile"] == "smoke":
        print(SMOKE)


def run_restore(options) -> int:
    """Restore a file or a folder; return 1 where some photographs failed. torch is imported once the names are good."""
    network = check_call(options.task, options.mask, options.stride, options.network)
    todo = image_files.todo(options.input, options.output, options.mask, options.overwrite or options.skip_existing)
    in_place = any(output.exists() and output.samefile(source) for source, _, output in todo)
    again = "; the same command with --skip-existing restores the rest"
    if options.overwrite:
        again = " and must not be restored again" if in_place else "; the same command restores all of it again"
    if options.skip_existing:
        if options.overwrite or in_place:
            raise ParameterError("--skip-existing goes neither with --overwrite nor where input and output are one")
        found, todo = len(todo), [one for one in todo if not one[2].exists()]
        print(f"{found - len(todo)} of {found} photographs are left out, because their outputs exist", file=sys.stderr)
        if not todo:
            return 0
    from companion.training.device import check_device

    check_device(options.device)
    given = Path(os.path.expanduser(options.input))
    for line in unread(given):
        print(f"warning: {line}", file=sys.stderr)
    if len(todo) > 1 and len(masks := {mask for _, mask, _ in todo} - {None}) == 1:
        print(f"one mask for {len(todo)} photographs: {masks.pop()}", file=sys.stderr)

    from companion.restore.pretrained import load

    if network == PAPER:
        load(options.task)
    failed = 0
    with Bar(len(todo)) as bar:
        for done, (source, mask, output) in enumerate(todo):
            bar.set_description_str(f"{options.task} {source.name}")
            try:
                restore_file(source, mask, output, options, lambda share, done=done: bar.advance(done + share))
                options.kept = NAMED_KEPT + again
                tqdm.write(str(output))
            except (OneLine, OSError, RuntimeError, MemoryError) as error:
                if unforeseen(error) or isinstance(error, DiskError | BrokenPipeError):  # for the others, too
                    raise
                line = line_of(error, f"{source}: ")
                if not given.is_dir():
                    raise ParameterError(line) from None
                failed += 1
                tqdm.write(f"error: {line}", sys.stderr)
            bar.update(done + 1 - bar.n)
    if failed:
        print(f"{failed} of {len(todo)} photographs were not restored", file=sys.stderr)
    return int(failed > 0)


def restore_file(source: Path, mask: Path | None, output: Path, options, progress) -> None:
    """Restore one file; a warning is one line on stderr, before the work where that can tell."""
    from companion.restore.pretrained import restore

    def warn(message, *_):
        tqdm.write(f"warning: {source}: {message}", sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", image_files.DamageWarning)
        warnings.showwarning = warn
        pages, deep = reader.kind(source)
        if pages > 1 and output.exists() and output.samefile(source):
            left = f"of its {pages} pages --overwrite would leave only the first"
            raise ParameterError(f"{source}: {left}; give another output")
        stored, mask = reader.opened(source), mask and reader.opened(mask)
        keeping, lost = image_files.kept(stored, output)
        lines = [f"of its {pages} pages the first is restored"] * (pages > 1) + lost
        for line in lines + ["of more than 8 bits a value, 8 are kept"] * deep:
            warn(line)
        restored = restore(stored, options.task, mask, options.stride, options.device, progress, options.network)
        image_files.save(restored, output, keeping)


def run_data_list(options) -> None:
    width = max(map(len, DATASETS))
    for name, entry in DATASETS.items():
        state = "here" if is_here(name) else "missing"
        print(f"{name:{width}} {state:8} {entry['images']:>7,} images  {entry['size']:12} {entry['title']}")


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
        print(table.to_string(index=False))
    for line in bad:
        print(f"error: {line}", file=sys.stderr)
    return int(bool(bad))


# python -m companion


def seeds_of(options) -> list[int]:
    """Return the seeds that a command is given, else those that are planned for its data set."""
    from companion.notebook import check_seeds
    from companion.runs import catalogue

    planned = catalogue.SEEDS_OF_FACES if catalogue.is_faces(options.dataset) else [*range(5)]
    return check_seeds(options.seeds or planned, "0 1 2")


def run_reproduce(options) -> None:
    start = time.monotonic()  # a clock that is set back changes nothing
    from companion.runs import catalogue, sweep

    seeds = seeds_of(options)
    budget = math.inf if options.budget is None else duration("budget", options.budget)
    if options.workers is not None:
        integer("workers", options.workers, 1, 1024)
    scale = options.profile, options.dataset, seeds
    todo = catalogue.measurements(*scale, options.block)
    todo = catalogue.shown_on(options.page, todo, *scale) if options.page else todo
    todo = catalogue.only(options.only, todo) if options.only else todo
    chosen = options.only or options.block
    note = "" if chosen else catalogue.left_out(options.page or "scorecard", options.profile, options.dataset)
    if options.list:
        width = max((len(one.name) for one in todo), default=0)
        for one in todo:
            try:
                print(f"{one.name:{width}} {'done' if one.load() is not None else 'to do'}")
            except DamagedFile as error:
                print(f"{one.name:{width}} damaged: {error}")
        print(note, end="", file=sys.stderr)
        return
    sweep.run_all(todo, options.device, options.workers, start + budget)
    left = [one for one in todo if one.load() is None]
    done = f"{len(todo) - len(left)} of {len(todo)} results are here"
    print(f"{done}; the same command goes on with {left[0].name}" if left else f"{done}: python -m odl results")
    print(note, end="", file=sys.stderr)


def duration(name: str, value: str) -> float:
    """Return the seconds of `90s`, `10min` or `10m`, `8h` or `2d`. Raises ParameterError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|min|h|d)", value)
    if not match:
        raise ParameterError(f"{name}={value!r} is not a time such as 90s, 10min, 8h or 2d")
    return float(match[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[match[2]]


def run_plan(options) -> None:
    from companion.notebook import check_seeds
    from companion.runs import plan

    number("gpu-ms-per-step", options.gpu_ms_per_step, 1e-3, 1e6)
    sets, seeds = list(dict.fromkeys(options.dataset)), check_seeds(options.seeds, "0 1 2")
    for name, text in plan.plan(options.profile, sets, seeds, options.gpu_ms_per_step):
        print(f"{name:14} {text}")


def run_denoiser(options) -> None:
    from companion.comparators import trained
    from companion.training.device import check_device

    choice("name", options.name, trained.LEARNERS)
    device = check_device(options.device)
    run = trained.run_of(options.name, options.profile)
    with Bar(100, run.run_id) as bar:
        history = trained.train(run, device, lambda share: bar.advance(100 * share)).history
    print(f"validation at σ = {trained.VALIDATION_SIGMA}: {history[-1]['psnr'][0]:.2f} dB")


def run_photographs(options) -> None:
    from companion.measure import cards
    from companion.measure import photographs as table
    from companion.restore import photographs
    from companion.training import results
    from companion.training.device import check_device

    if options.task is not None and not options.train:
        raise ParameterError(f"--task {options.task} belongs to --train")
    device = check_device(options.device)
    if not options.train:
        rows = [*table.ROWS, *(table.ON_DB11 if is_here("db11") else ())]
        with Bar(len(rows), "photographs") as bar:
            for one in map(table.measurement_of, rows):
                one.run(device)
                bar.update()
        print(table.table(rows).to_string(index=False))
        print(*[cards.write(task) for task in dict.fromkeys(map(cards.network_of, rows))], sep="\n")
        return
    photographs.add()
    if options.task is not None:
        choice("task", options.task, photographs.PHOTO_TASKS)
    for run in map(photographs.run_of, [options.task] if options.task else photographs.PHOTO_TASKS):
        with Bar(100, run.task) as bar:
            result = results.measurement_of(run).run(device, lambda share, bar=bar: bar.advance(100 * share))
        print(result.path)


def run_classical(options) -> None:
    from companion.measure import classical

    scale = options.dataset, options.profile
    wanted = [one for task in classical.METHODS for one in classical.measurements_of(task, *scale)]
    with Bar(len(wanted), "methods") as bar:
        for one in wanted:
            one.run()
            bar.update()
    print(*[one.path for one in wanted], sep="\n")


def run_verdicts(options) -> None:
    from companion.claims import as_json, claims

    evidence = claims.load_evidence(options.profile, options.dataset, seeds_of(options))
    print(as_json.write_claims(claims.judge_claims(evidence), options.profile, options.dataset))


def run_ship(options) -> None:
    from companion.measure import cards
    from companion.training import results

    here = [path.parent.relative_to(files.runs()).as_posix() for path in files.runs().glob("**/weights.safetensors")]
    for name in (name.removeprefix("runs/").removesuffix("/weights") for name in options.runs):
        if name not in here:
            raise ParameterError(f"run={name!r} has no trained network in {files.runs()}{nearest(name, here)}")
        own = next((task for task in cards.DOES if task in name.split("/")), "")  # of a network for photographs
        print(results.ship(name, own))
        if own:
            print(cards.write(own))
