"""Scaling: what a step, a run and a whole image cost as they grow, with the slope of a log-log fit."""

from functools import partial
from statistics import median

import torch

from companion.gpu import an_epoch, step_of
from odl import paper
from odl.machine.graphs import quickest
from odl.schedules import allocate

from . import measure, whole_images
from .measure import FLAT, PROPORTIONAL, cell


def sizes(options: measure.Options) -> dict:
    """`steps` per turn where the length of an epoch is not what varies."""
    full = {"width": 16, "batch": 100, "steps": 5, "stride": 3, "images": [50, 100, 200, 400]}
    full |= {"iterations": [4, 8, 16, 32], "levels": [1, 2, 3, 5, 7, 10], "sides": [128, 160, 192, 256]}
    quick = {"width": 4, "batch": 4, "steps": 1, "images": [2, 4], "iterations": [1, 2], "levels": [1, 5]}
    cuda = {"width": 64, "steps": 50, "images": [200, 400, 800, 1600], "iterations": [100, 200, 400, 800]}
    return options.sizes(full, quick | {"sides": [70, 76]}, cuda)


def run(options: measure.Options) -> dict:
    size = sizes(options)

    def experiment(images=size["batch"], steps=size["steps"]):
        numbers = {"width": size["width"], "epochs": 1, "batch_size": images, "iterations": steps}
        return measure.experiment(options, **numbers, precision=options.precision)

    windows = {whole_images.windows(side, size["stride"]): side for side in size["sides"]}
    whole = partial(whole_images.ours, size["width"], stride=size["stride"], options=options)
    series = {
        "images per step": {n: epoch(experiment(images=n), options) for n in size["images"]},
        "iterations": {n: epoch(experiment(steps=n), options) for n in size["iterations"]},
        "levels N": {n: graded(experiment(), n, options) for n in size["levels"]},
        "windows of a whole image": {n: whole(side=side) for n, side in windows.items()},
    }
    curves = [curve(name, turns, options) for name, turns in series.items()]
    return {
        "scale": size | {"dataset": measure.dataset(options), "task": "inpaint; denoise for whole images"},
        "rows": [row(**c) for c in curves],
        "curves": curves,
    }


def curve(name: str, turns: dict, options: measure.Options) -> dict:
    """Seconds against x, the keys of `turns`, and the slope of their logarithms."""
    seconds = measure.interleave(turns, options.rounds, name)
    medians = [median(seconds[x]) for x in turns]
    return {"against": name, "x": list(turns), "seconds": medians, "slope": measure.slope(turns, seconds)}


def row(against: str, x: list, seconds: list, slope: dict) -> dict:
    expected = FLAT if against == "levels N" else PROPORTIONAL
    return {
        "cost against": against,
        "from": x[0],
        "to": x[-1],
        "time (ms)": f"{cell(1000 * seconds[0])} to {cell(1000 * seconds[-1])}",
        "slope": slope,
        "expected": " to ".join(map(str, expected)).replace("-", "−"),
        "as expected": measure.within(slope, expected),
    }


def epoch(experiment, options: measure.Options):
    """Seconds of one epoch as `train` has it."""
    step = step_of(experiment, options.device)
    run = partial(an_epoch, step, quickest(step))
    return partial(measure.seconds_of, run, 1, options.device)


def graded(experiment, n: int, options: measure.Options):
    """Seconds of steps on N levels, equal parts of the sides of levels 1–5: levels are data of the same step."""
    step = step_of(experiment, options.device)
    levels = paper.TASKS["inpaint"]["levels"]
    bottom, top = levels[0][0], levels[paper.N_LEVELS - 1][1]
    edges = torch.linspace(bottom, top, n + 1).round()
    counts = torch.from_numpy(allocate([1.0] * n, experiment.batch_size))
    index = torch.zeros(experiment.batch_size, dtype=torch.long)
    ends = edges[:-1].repeat_interleave(counts), edges[1:].repeat_interleave(counts)
    take = partial(quickest(step), *(t.to(options.device) for t in (index, *ends)))
    return lambda: experiment.iterations * measure.seconds_of(take, experiment.iterations, options.device)
