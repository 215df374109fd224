"""Core-seconds to a PSNR: the naive loop at the paper's batch and rate, and ours until it is as good.

The naive loop trains for 2,000 steps. Ours has the numbers of the profile `reference`, and the shortest length of a
ladder counts that reaches the naive loop's validation PSNR. On a CPU a second is one of a core, loading included.
"""

import os
from itertools import islice

from tqdm.auto import tqdm

from odl.experiment import PROFILES, Experiment

from . import measure, training


def sizes(options: measure.Options) -> dict:
    """`steps` of the naive loop, then the lengths that ours tries until one is enough."""
    full = {"width": 32, "steps": 2000, "ladder": [250, 500, 1000, 2000], "batch": PROFILES["paper"]["batch_size"]}
    return options.sizes(full, {"width": 4, "steps": 2, "ladder": [1, 3], "batch": 5})


def run(options: measure.Options) -> dict:
    size, dataset = sizes(options), measure.dataset(options)
    rows = [row("naive", *naive(size["steps"], options), None)]
    best = rows[0]["PSNR (dB)"]
    for steps in size["ladder"]:
        rows.append(row("ours", *ours(steps, options), rows[0]))
        if rows[-1]["as good"]:
            break
    factor, least = rows[-1]["naive takes times as long"], size["steps"]
    bar = {"what": f"PSNR of {least:,} naive steps", "against": "naive", "counts": rows[-1]["as good"]}
    return {
        "rounds": 1,
        "scale": size | {"dataset": dataset, "task": "inpaint"},
        "rows": rows,
        "comparisons": [bar | measure.spread([factor])],
        "notes": [
            f"The naive loop reaches {best:.2f} dB, a mean over levels 1–5 of the validation crops.",
            f"Seconds are those of {'the clock' if options.device == 'cuda' else 'the processor'}, in training alone.",
        ],
    }


def row(name: str, experiment, psnr: float, taken: float, naive: dict | None) -> dict:
    return {
        "contestant": name,
        "steps": experiment.iterations,
        "images per step": experiment.batch_size,
        "learning rate": experiment.learning_rate,
        "seconds": taken,
        "PSNR (dB)": round(psnr, 3),
        "as good": None if naive is None else psnr >= naive["PSNR (dB)"],
        "naive takes times as long": None if naive is None else naive["seconds"] / taken,
    }


def experiment_of(profile: str, steps: int, options: measure.Options, **numbers) -> Experiment:
    numbers |= {"width": sizes(options)["width"], "epochs": 1, "iterations": steps, "validation_images": 200}
    return measure.experiment(options, profile, **numbers)


def naive(steps: int, options: measure.Options) -> tuple:
    """The experiment, its PSNR in dB and the seconds of its training."""
    experiment = experiment_of("paper", steps, options, batch_size=sizes(options)["batch"])
    network, step, loader = training.naive_loop(experiment, options)

    def learn():
        for x, y in tqdm(islice(loader, steps), "naive", steps, leave=False):
            step(x, y)

    taken = seconds_of(learn, options)
    return experiment, training.validated(experiment, network, "fp32", options), taken


def ours(steps: int, options: measure.Options) -> tuple:
    """The same of `train`."""
    experiment = experiment_of("reference", steps, options)
    contestant = training.BUILD["ours"](experiment, options)
    taken = seconds_of(contestant.learn, options)
    return experiment, training.validated(experiment, contestant.network, contestant.precision, options), taken


def seconds_of(function, options: measure.Options) -> float:
    """Clock seconds on a GPU; else seconds of the processor, in this process and those that it started and ended."""
    before = os.times()
    clock = measure.seconds_of(function, 1, options.device)
    used = sum(os.times()[:4]) - sum(before[:4])
    return clock if options.device == "cuda" else used
