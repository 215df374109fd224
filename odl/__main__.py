"""`python -m odl train / evaluate / restore / data / results`: the companion from the command line."""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from odl import paper
from odl.datasets import DATASETS, DataError
from odl.experiment import PROFILES, Experiment, ParameterError
from odl.paths import OneLine
from odl.schedules import SCHEDULES

PACKING = 30  # seconds that writing an archive may take


def main(arguments=None, commands=None) -> int:
    """Run one command of a parser; a user's mistake is one line on stderr and exit status 2."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started this in the background
    options = (commands or parser()).parse_args(arguments)
    try:
        options.run(options)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from the last epoch", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `… | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OneLine, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


class Parser(argparse.ArgumentParser):
    """Errors in one line that names the nearest good option."""

    def error(self, message):
        self.exit(2, f"error: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    top = Parser("python -m odl", description="On-Demand Learning for Deep Image Restoration, live.")
    commands = top.add_subparsers(dest="command", required=True)

    train = commands.add_parser("train", help="train and evaluate one run, resuming where it stopped")
    add_experiment(train)
    train.set_defaults(run=run_train)

    evaluate = commands.add_parser("evaluate", help="print a run's L2 and PSNR per level")
    add_experiment(evaluate)
    evaluate.set_defaults(run=run_evaluate)

    restore = commands.add_parser("restore", help="restore a photograph of any size with the all-rounder's weights")
    restore.add_argument("--task", required=True, help=", ".join(paper.TASKS))
    restore.add_argument("--mask", help="image that is white where pixels are missing (inpaint; optional: interpolate)")
    restore.add_argument("--stride", type=int, default=8, help="pixels between windows (default 8; paper: 3)")
    restore.add_argument("input", metavar="IN.png")
    restore.add_argument("output", metavar="OUT.png")
    restore.set_defaults(run=run_restore)

    data = commands.add_parser("data", help="list data sets, or get and pack one")
    actions = data.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="what there is, where from, and whether it is here").set_defaults(run=run_data_list)
    prepare = actions.add_parser("prepare", help="download or take a local copy, check, pack; resumes")
    prepare.add_argument("name", help=f"{', '.join(DATASETS)}, with -native for full resolution, or a folder")
    prepare.add_argument("--source", help="a local folder or archive of the set")
    prepare.add_argument("--skip-bad", action="store_true", help="leave out images that cannot be read, and list them")
    prepare.set_defaults(run=run_data_prepare)

    reproduce = commands.add_parser("reproduce", help="every run of the paper, resuming; stops at a time budget")
    reproduce.add_argument("--profile", default="reference", help=f"{', '.join(PROFILES)} (default reference)")
    reproduce.add_argument("--dataset", default="bsds500", help=f"{', '.join(DATASETS)} or a folder (default bsds500)")
    reproduce.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="default 0 1 2 3 4; what is not close has three"
    )
    reproduce.add_argument("--budget", help="stop cleanly after so long: 10min, 8h, 90s (default: when all is done)")
    reproduce.add_argument("--workers", type=int, help="runs side by side (default: CPU threads; 1 on a GPU)")
    reproduce.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    reproduce.add_argument("--pack", metavar="FILE.zip", help="write results and new networks there in the end")
    reproduce.add_argument("--only", nargs="+", metavar="RUN", help="these results alone, by their names in --list")
    reproduce.add_argument("--list", action="store_true", help="list the runs and what is done of them, and stop")
    reproduce.set_defaults(run=run_reproduce)

    plan = commands.add_parser("plan", help="what all runs would cost: GPU hours, wall time, disk, network")
    plan.add_argument("--profile", default="paper", help=f"{', '.join(PROFILES)} (default paper)")
    sets = f"some of {', '.join(DATASETS)}, or folders (default celeba sun397)"
    plan.add_argument("--dataset", nargs="+", default=["celeba", "sun397"], help=sets)
    plan.add_argument("--seeds", type=int, nargs="+", default=[0], help="of every trained run (default 0)")
    plan.add_argument("--gpus", type=int, default=1, help="GPUs that run at once (default 1)")
    plan.add_argument("--gpu-ms-per-step", type=float, required=True, help="of a training step, as make bench measures")
    plan.set_defaults(run=run_plan)

    results = commands.add_parser("results", help="list what is measured")
    results.set_defaults(run=run_results)
    return top


def add_experiment(command) -> None:
    """The options that describe one run."""
    command.add_argument("--task", default="inpaint", help=f"{', '.join(paper.TASKS)} (default inpaint)")
    command.add_argument("--dataset", default="demo", help=f"{', '.join(DATASETS)} or a folder (default demo)")
    command.add_argument("--schedule", default="on_demand", help=f"{', '.join(SCHEDULES)} (default on_demand)")
    command.add_argument("--seed", type=int, default=0, help="of weights, crops and corruptions (default 0)")
    command.add_argument("--profile", default="demo", help=f"{', '.join(PROFILES)} (default demo)")
    command.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="override a number, as --set epochs=30"
    )


def experiment_of(options) -> Experiment:
    overrides = {}
    for item in options.set:
        name, _, text = item.partition("=")
        try:
            overrides[name] = json.loads(text)
        except json.JSONDecodeError:
            overrides[name] = text
    fixed = {"task", "dataset", "schedule", "seed", "profile"} & set(overrides)
    if fixed:
        raise ParameterError(f"--set {fixed.pop()}: use its own option")
    return Experiment.of(options.task, options.dataset, options.schedule, options.seed, options.profile, **overrides)


def run_train(options) -> None:
    from odl.sweep import run_many

    result = run_many([experiment_of(options)], options.device)[0]
    print_evaluation(result)
    print(result.path)


def run_evaluate(options) -> None:
    from odl.results import command_of, load

    experiment = experiment_of(options)
    result = load(experiment)
    if result is None:
        raise ParameterError(f"{experiment.run_id} is not measured yet: {command_of(experiment)}")
    print_evaluation(result)


def print_evaluation(result) -> None:
    frame = result.evaluation.groupby("level")[["l2", "psnr"]].mean().round(3)
    print(frame.rename(columns={"l2": "L2 (‰)", "psnr": "PSNR (dB)"}).to_string())


def run_restore(options) -> None:
    import numpy as np
    from PIL import Image, ImageOps, UnidentifiedImageError
    from tqdm import tqdm

    from odl.corruptions import FILL
    from odl.experiment import choice, integer
    from odl.restore import ImageError, inpaint_image, restore_image
    from odl.results import all_rounder, network_of
    from odl.step import quick_precision
    from odl.sweep import BAR

    def read(path, mode):
        try:
            with Image.open(path) as image:
                return np.asarray(ImageOps.exif_transpose(image).convert(mode), np.float32) / 255
        except (UnidentifiedImageError, SyntaxError, Image.DecompressionBombError) as error:
            raise ImageError(f"{path}: not a readable image ({error})") from None

    choice("task", options.task, paper.TASKS)
    integer("stride", options.stride, 1, 64)
    if options.task == "inpaint" and not options.mask:
        raise ParameterError("--task inpaint needs --mask M.png, white where pixels are missing")
    if Path(options.output).suffix.lower() not in Image.registered_extensions():
        raise ParameterError(f"output={options.output!r} has no known image suffix; nearest: '.png'")
    with Image.open(options.input) as opened:
        colour = opened.mode not in ("1", "L", "I", "F", "LA", "I;16")
    image = read(options.input, "RGB" if colour or options.task != "denoise" else "L")
    mask = read(options.mask, "L") > 0.5 if options.mask else None
    network = network_of(all_rounder(options.task))
    with tqdm(total=100, desc=options.task, bar_format=BAR) as bar:
        arguments = {"stride": options.stride, "progress": lambda share: bar.update(100 * share - bar.n)}
        arguments["precision"] = quick_precision()
        if options.task == "inpaint":
            restored = inpaint_image(network, image, mask, **arguments)
        else:
            if mask is not None:
                if mask.shape != image.shape[:2]:
                    raise ImageError(f"mask has shape {mask.shape}, the image {image.shape[:2]}")
                image = np.where(mask[..., None], np.float32(FILL) / 255, image)
            restored = restore_image(network, image, **arguments)
    Image.fromarray((restored * 255).round().astype(np.uint8)).save(options.output)
    print(options.output)


def run_data_list(options) -> None:
    from odl.datasets import find

    for name, entry in DATASETS.items():
        try:
            find(name)
            state = "here"
        except DataError:
            state = "missing"
        print(f"{name:8} {state:8} {entry['images']:>7,} images  {entry['size']:12} {entry['title']}")


def run_data_prepare(options) -> None:
    from odl.data import prepare
    from odl.experiment import known_dataset

    known_dataset(options.name, "name")
    print(prepare(options.name, options.source, options.skip_bad))


def run_reproduce(options) -> None:
    import math
    import time

    from odl import gpu
    from odl.experiment import check_device, check_seeds, duration, integer
    from odl.reproduce import jobs, only
    from odl.sweep import run_jobs

    start = time.monotonic()  # a clock that is set back changes nothing
    seeds, budget = (
        check_seeds(options.seeds),
        math.inf if options.budget is None else duration("budget", options.budget),
    )
    if options.workers is not None:
        integer("workers", options.workers, 1, 1024)
    todo = jobs(options.profile, options.dataset, seeds)
    todo = only(options.only, todo) if options.only else todo
    if options.list:
        for m in (m for job in todo for m in job.measurements):
            print(f"{m.name:60} {'done' if m.load() is not None else 'to do'}")
        return
    deadline, workers = start + budget - (PACKING if options.pack else 0), options.workers
    if options.profile == "gpu" and workers is None and check_device(options.device) == "cuda":
        workers = gpu.prepare(todo[0].experiment, "cuda")
    try:
        run_jobs(todo, options.device, workers, deadline)
    finally:
        if options.pack:
            gpu.pack(Path(options.pack), todo)
    left = [job for job in todo if job.missing()]
    done = f"{len(todo) - len(left)} of {len(todo)} runs are done"
    print(f"{done}; the same command goes on with {left[0].name}" if left else f"{done}: python -m odl results")


def run_plan(options) -> None:
    from odl.experiment import check_seeds, choice, integer, known_dataset, number
    from odl.plan import lines, plan

    choice("profile", options.profile, PROFILES)
    for name in options.dataset:
        known_dataset(name)
    integer("gpus", options.gpus, 1, 10**6)
    number("gpu-ms-per-step", options.gpu_ms_per_step, 1e-3, 1e6)
    sets, seeds = list(dict.fromkeys(options.dataset)), check_seeds(options.seeds)
    for name, text in lines(plan(options.profile, sets, seeds, options.gpus, options.gpu_ms_per_step)):
        print(f"{name:14} {text}")


def run_results(options) -> None:
    from odl.results import frame

    table = frame()
    print("nothing measured yet" if table.empty else table.to_string(index=False))


if __name__ == "__main__":
    sys.exit(main())
