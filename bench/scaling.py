"""Scaling: what a step, a run and a whole image cost as they grow, with the slope of a log-log fit."""

from functools import partial
from statistics import median

import torch

from odl import data, paper, train
from odl.experiment import Experiment
from odl.schedules import allocate
from odl.step import Step

from . import measure, whole_images

PROPORTIONAL = (0.9, 1.1)
FLAT = (-0.1, 0.1)


def sizes(options: measure.Options) -> dict:
    """`steps` per turn where the number of iterations is not what varies."""
    full = {"width": 16, "batch": 100, "steps": 5, "stride": 3, "images": [50, 100, 200, 400]}
    full |= {"iterations": [4, 8, 16, 32], "levels": [1, 2, 3, 5, 7, 10], "sides": [128, 160, 192, 256]}
    quick = {"width": 4, "batch": 4, "steps": 1, "images": [2, 4], "iterations": [1, 2], "levels": [1, 5]}
    cuda = {"width": 64, "steps": 50, "images": [200, 400, 800, 1600], "iterations": [100, 200, 400, 800]}
    return options.sizes(full, quick | {"sides": [70, 76]}, cuda)


def run(options: measure.Options) -> dict:
    size, dataset = sizes(options), measure.dataset(options)
    windows = {whole_images.windows(side, size["stride"]): side for side in size["sides"]}
    experiment = partial(
        Experiment.of, "inpaint", dataset, "rigid_joint", profile="paper", width=size["width"], epochs=1
    )
    steady = {"iterations": size["steps"]}
    series = {
        "images per step": (
            {n: epoch(experiment(batch_size=n, **steady), options) for n in size["images"]},
            PROPORTIONAL,
        ),
        "iterations": (
            {n: epoch(experiment(batch_size=size["batch"], iterations=n), options) for n in size["iterations"]},
            PROPORTIONAL,
        ),
        "levels N": (
            {n: graded(experiment(batch_size=size["batch"], **steady), n, options) for n in size["levels"]},
            FLAT,
        ),
        "windows of a whole image": (
            {n: whole_images.ours(size["width"], side, size["stride"], options) for n, side in windows.items()},
            PROPORTIONAL,
        ),
    }
    curves = [curve(name, turns, expected, options) for name, (turns, expected) in series.items()]
    return {
        "scale": size
        | {"dataset": dataset, "task": "inpaint; denoise for whole images"}
        | {"precision_of_ours": options.precision},
        "rows": [
            {
                "cost against": c["against"],
                "from": c["x"][0],
                "to": c["x"][-1],
                "time (ms)": f"{measure.cell(1000 * c['seconds'][0])} to {measure.cell(1000 * c['seconds'][-1])}",
                "slope": c["slope"],
                "expected": " to ".join(map(str, c["expected"])).replace("-", "−"),
                "as expected": c["passed"],
            }
            for c in curves
        ],
        "curves": curves,
        "comparisons": [],
    }


def curve(name: str, turns: dict, expected: tuple, options: measure.Options) -> dict:
    """Seconds against x, the keys of `turns`, and the slope of their logarithms."""
    seconds = measure.interleave(turns, options.rounds, name)
    slope = measure.slope(turns, seconds)
    return {
        "against": name,
        "x": list(turns),
        "seconds": [median(seconds[x]) for x in turns],
        "slope": slope,
        "expected": expected,
        "passed": expected[0] <= slope["median"] <= expected[1],
    }


def epoch(experiment, options: measure.Options):
    """Seconds of one epoch as `train` has it."""
    step = step_of(experiment, options)
    run = partial(train.train_epoch, step, 0, train.allocation(experiment, 0, []))
    return partial(measure.seconds_of, run, 1, options.device)


def graded(experiment, n: int, options: measure.Options):
    """Seconds of steps on N levels, equal parts of the sides of levels 1–5: levels are data of the same step."""
    step = step_of(experiment, options)
    bottom, top = (paper.TASKS["inpaint"]["levels"][k][k and 1] for k in (0, paper.N_LEVELS - 1))
    edges = torch.linspace(bottom, top, n + 1).round()
    counts = torch.from_numpy(allocate([1.0] * n, experiment.batch_size))
    step.low.copy_(edges[:-1].repeat_interleave(counts))
    step.high.copy_(edges[1:].repeat_interleave(counts))
    return lambda: experiment.iterations * measure.seconds_of(step, experiment.iterations, options.device)


def step_of(experiment, options: measure.Options) -> Step:
    pack = data.load(experiment.dataset, "train").to(options.device)
    return Step(experiment, *train.build(experiment, options.device), pack, options.precision)
