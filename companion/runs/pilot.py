"""The pilot of the reference profile: one number of the protocol changed at a time, at about equal cost.

Rigid joint learning, so that no contestant of the book is favoured; judged by the validation crops, not by the test.
"""

from statistics import fmean

import pandas as pd

from companion.training import results
from odl.evaluation import overall
from odl.experiment import Experiment

CHOSEN = "width 32, batch 32, rate 2e-3, falling over the last fifth"
ALL, SOME = ("inpaint", "deblur", "denoise"), ("inpaint",)
CONTESTANTS = {  # what differs from the reference profile, with as many epochs of 200 steps as cost about the same
    CHOSEN: ({"epochs": 12}, ALL),
    "rate 1e-3": ({"epochs": 12, "learning_rate": 1e-3}, SOME),
    "rate 4e-3": ({"epochs": 12, "learning_rate": 4e-3}, ALL),
    "constant rate": ({"epochs": 12, "decay": 0.0}, SOME),
    "falling over the last half": ({"epochs": 12, "decay": 0.5}, SOME),
    "batch 16": ({"epochs": 23, "batch_size": 16}, ALL),
    "batch 100": ({"epochs": 4, "batch_size": 100}, SOME),
    "width 16": ({"epochs": 28, "width": 16}, ALL),
    "width 64": ({"epochs": 4, "width": 64}, SOME),
    "the paper's batch 100 and constant rate 2e-4": (
        {"epochs": 4, "batch_size": 100, "learning_rate": 2e-4, "decay": 0.0},
        SOME,
    ),
}
BRIEF = {"test_images": 100, "trials": 2}  # little is tested: nothing is chosen by it


def runs(dataset: str = "bsds500") -> dict[tuple[str, str], Experiment]:
    """(contestant, task) → run."""
    return {
        (name, task): Experiment.of(task, dataset, "rigid_joint", 0, "reference", **(numbers | BRIEF))
        for name, (numbers, tasks) in CONTESTANTS.items()
        for task in tasks
    }


def table(dataset: str = "bsds500") -> pd.DataFrame:
    """A row per measured run, with mean PSNRs (dB).

    `validation` is over levels 1…5 at the end; `test` over levels 1…6, on the first trial of the test crops.
    """
    rows = []
    for (name, task), run in runs(dataset).items():
        if measured := results.load(run):
            seconds, validation = measured.provenance["seconds"]["train_core"], fmean(measured.history[-1]["psnr"])
            test = overall(measured.evaluation).psnr[0]
            rows.append((name, task, run.epochs * run.iterations, seconds, validation, test))
    return pd.DataFrame(rows, columns=["contestant", "task", "steps", "core_seconds", "validation", "test"])
