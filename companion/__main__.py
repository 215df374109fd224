"""`python -m companion reproduce / plan / verdicts / …`: the paper's runs, their cost, what came of them."""

import math
import re
import sys
import time

from companion.cli import Parser
from companion.cli import main as run_command
from companion.data.sets import DATASETS
from companion.disk.files import DamagedFile
from odl.experiment import PROFILES
from odl.parameters import ParameterError


def main(arguments=None) -> int:
    """Run one command as `companion.cli.main` does."""
    return run_command(arguments, parser())


SHARED = {  # of several commands
    "--profile": {"default": "reference", "help": f"{', '.join(PROFILES)} (default reference)"},
    "--dataset": {"default": "bsds500", "help": f"{', '.join(DATASETS)} or a folder (default bsds500)"},
    "--seeds": {"type": int, "nargs": "+", "help": "which, not how many (default 0 1 2 3 4, of celeba10k 10 to 14)"},
    "--device": {"default": "auto", "help": "auto, cpu or cuda (default auto)"},
}


def parser() -> Parser:
    top = Parser("python -m companion", description="Every run of the paper, in one command.")
    commands = top.add_subparsers(dest="command", required=True)

    def command(name, run, text, *shared):
        added = commands.add_parser(name, help=text)
        added.set_defaults(run=run)
        for option in shared:
            added.add_argument(option, **SHARED[option])
        return added.add_argument

    # fmt: off
    option = command("reproduce", run_reproduce, "every run of the paper, resuming; stops at a time budget", *SHARED)
    option("--budget", help="stop cleanly after so long: 10min, 8h, 90s; training goes on from there, a "
           "denoiser on the eleven photographs begins anew (K-SVD: 20min) (default: when all is done)")
    option("--workers", type=int, help="runs side by side (default: CPU threads; 4 on a GPU)")
    option("--page", help="the runs of one notebook alone: table1-deblur, fixation, … (default: all)")
    option("--block", nargs="+", default=(), help="some blocks of the campaign alone, in this order: contest, N1, …")
    option("--only", nargs="+", metavar="RUN", help="these results alone, by their names in --list")
    option("--list", action="store_true", help="list the runs and what is done of them, and stop")

    option = command("plan", run_plan, "what all runs would cost: GPU hours, the longest run, disk of checkpoints")
    option("--profile", default="paper", help=f"{', '.join(PROFILES)} (default paper)")
    option("--dataset", nargs="+", default=["celeba", "sun397"],
           help=f"some of {', '.join(DATASETS)}, or folders (default celeba sun397)")
    option("--seeds", type=int, nargs="+", default=[0], help="of every trained run (default 0)")
    option("--gpu-ms-per-step", type=float, required=True, help="of a training step, as make bench measures")

    option = command("train", run_train, "train a denoiser of Table 3 that learns, resuming", "--profile", "--device")
    option("name", help="mlp, csf, tnrd, dncnn or dncnn_25; of the profiles reference and smoke")

    option = command("photographs", run_photographs, "measure what `restore` makes of photographs", "--device")
    option("--rows", nargs="+", metavar="DAMAGE", help="some rows of the table alone, as it names them (default: all)")
    option("--train", action="store_true", help="train the networks for photographs instead, resuming")
    option("--task", help="with --train: photo_denoise, photo_deblur or photo_fill (default: one after the other)")

    command("classical", run_classical, "score what learns nothing on the test crops", "--profile", "--dataset")
    command("verdicts", run_verdicts, "write every verdict as JSON, to be cited", "--profile", "--dataset", "--seeds")
    option = command("ship", run_ship, "copy trained networks to data/models, in half precision")
    option("runs", nargs="+", metavar="RUN", help="as `reproduce --list` names them, or a folder below runs/")
    # fmt: on
    return top


def seeds_of(options) -> list[int]:
    """Return the seeds that a command is given, else those that are planned for its data set."""
    from companion.notebook import check_seeds
    from companion.runs import catalogue

    planned = catalogue.SEEDS_OF_FACES if catalogue.is_faces(options.dataset) else [*range(5)]
    return check_seeds(options.seeds or planned)


def run_reproduce(options) -> None:
    start = time.monotonic()  # a clock that is set back changes nothing
    from companion.runs import catalogue, sweep
    from odl.parameters import integer

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
        for one in todo:
            try:
                print(f"{one.name:60} {'done' if one.load() is not None else 'to do'}")
            except DamagedFile as error:
                print(f"{one.name:60} damaged: {error}")
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
    from odl.parameters import number

    number("gpu-ms-per-step", options.gpu_ms_per_step, 1e-3, 1e6)
    sets, seeds = list(dict.fromkeys(options.dataset)), check_seeds(options.seeds)
    for name, text in plan.plan(options.profile, sets, seeds, options.gpu_ms_per_step):
        print(f"{name:14} {text}")


def run_train(options) -> None:
    from companion.comparators import trained
    from companion.disk.progress import Bar
    from companion.training.device import check_device

    device = check_device(options.device)
    run = trained.run_of(options.name, options.profile)
    with Bar(100, run.run_id) as bar:
        history = trained.train(run, device, lambda share: bar.advance(100 * share)).history
    print(f"validation at σ = {trained.VALIDATION_SIGMA}: {history[-1]['psnr'][0]:.2f} dB")


def run_photographs(options) -> None:
    from companion.disk.progress import Bar
    from companion.measure import cards
    from companion.measure import photographs as measured
    from companion.restore import photographs
    from companion.training import results
    from companion.training.device import check_device
    from odl.parameters import choice

    device = check_device(options.device)
    if not options.train:
        rows = options.rows or [row for row in (*measured.ROWS, *measured.ON_DB11) if measured.is_here(row)]
        todo = [measured.measurement_of(row) for row in rows]
        with Bar(len(todo), "photographs") as bar:
            for one in todo:
                one.run(device)
                bar.update()
        print(measured.table(rows).to_string(index=False))
        print(*[cards.write(task) for task in dict.fromkeys(map(cards.network_of, rows))], sep="\n")
        return
    photographs.add()
    if options.task is not None:
        choice("task", options.task, photographs.LEVELS)
    for run in map(photographs.run_of, [options.task] if options.task else photographs.LEVELS):
        with Bar(100, run.task) as bar:
            result = results.measurement_of(run).run(device, lambda share, bar=bar: bar.advance(100 * share))
        print(result.path)


def run_classical(options) -> None:
    from companion.measure import classical

    for task in classical.METHODS:
        for result in classical.found(task, options.dataset, options.profile):
            print(result.path)


def run_verdicts(options) -> None:
    from companion.claims import as_json, claims

    evidence = claims.load_evidence(options.profile, options.dataset, seeds_of(options))
    print(as_json.write_claims(claims.judge_claims(evidence), options.profile, options.dataset))


def run_ship(options) -> None:
    from companion.disk import files
    from companion.measure import cards
    from companion.training import results
    from odl.parameters import nearest

    here = [path.parent.relative_to(files.runs()).as_posix() for path in files.runs().glob("**/weights.safetensors")]
    for name in (name.removeprefix("runs/").removesuffix("/weights") for name in options.runs):
        if name not in here:
            raise ParameterError(f"run={name!r} has no trained network in {files.runs()}{nearest(name, here)}")
        own = next((task for task in cards.DOES if task in name.split("/")), "")  # of a network for photographs
        print(results.ship(name, own))
        if own:
            print(cards.write(own))


if __name__ == "__main__":
    sys.exit(main())
