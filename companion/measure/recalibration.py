"""How much of fixation is normalisation: networks scored with the batch statistics of the severity that they meet."""

import copy
from itertools import product

import pandas as pd
import torch
from torch import nn

from companion import published
from companion.data import packs
from companion.training import results
from companion.training.measurement import Measurement
from companion.training.results import evaluate
from odl import crops, paper
from odl.device import forward
from odl.evaluation import TESTED, images_of, task_of
from odl.windows import restorer

STATISTICS_CROPS, STATISTICS_BATCH = 2_000, 100  # training crops, in batches, that give the statistics of a level
# What is measured again. On inpainting what a staged curriculum lacks is not certain.
STAGED_TASKS = "interpolate", "deblur", "denoise"
RECALIBRATED = [*product(paper.AS_SHIPPED, published.FIXATED), *product(STAGED_TASKS, ["staged_curriculum"])]


def recalibrated(experiment, network, device="cpu", progress=None) -> pd.DataFrame:
    """Return the rows of `odl.evaluation.evaluate`, each level restored with statistics that are estimated at it.

    No weight moves. Like a specialist, such a network has to be told the severity: this finds a cause and is no cure.
    """
    train = packs.load(experiment.dataset, "train", experiment.train_images)
    x, frames = images_of(experiment, train, STATISTICS_CROPS, "recalibrate").to(device), []
    for k, level in enumerate(TESTED):
        moved = with_statistics_of(experiment, network.to(device), x, level)
        restore = restorer(moved, experiment.precision, device)
        within = progress and (lambda share, k=k: progress((k + share) / len(TESTED)))
        frames.append(evaluate(experiment, restore, device, within, levels=[level])[0])
    return pd.concat(frames, ignore_index=True)


@torch.no_grad()
def with_statistics_of(experiment, network, x, level) -> nn.Module:
    """Return a copy of `network` whose running means and variances are those of x (n, channels, 64, 64) at `level`."""
    network = copy.deepcopy(network).train()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the mean over all batches
    generator = torch.Generator(x.device).manual_seed(crops.seed_of("recalibrate", level))
    for part in x.split(STATISTICS_BATCH):
        forward(network, task_of(experiment).corrupt(part, level, generator), experiment.precision)
    return network.eval()


def measurement_of(experiment) -> Measurement:
    """Return the measurement of a run's scores after recalibration."""
    work = 1.2 * results.work_of_levels(experiment)
    return results.measurement_beside(experiment, "recalibrated", recalibrated, work)


def load_all(experiments) -> dict:
    """Return ("recalibrated", task and schedule, seed) → Result of these runs; nothing while one is missing."""
    found = {}
    for experiment in experiments:
        case = f"{experiment.task} {experiment.schedule}"
        found["recalibrated", case, experiment.seed] = measurement_of(experiment).load()
    return found if all(found.values()) else {}
