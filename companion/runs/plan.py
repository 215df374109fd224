"""The cost of a profile's runs before they are started: their number, GPU hours, the longest, checkpoints."""

from collections import Counter

import torch

from companion.comparators import context_encoder, trained
from companion.measure.blocks import BIHARMONIC
from companion.runs.catalogue import measurements

STATES = 3  # a checkpoint holds the weights and Adam's two moments
BYTES_PER_WEIGHT = 4 * (2 * STATES + 1)  # in the checkpoint, the one before it, and the network that is kept


def plan(profile: str, datasets: list[str], seeds: list[int], ms_per_step: float) -> list[tuple[str, str]]:
    """Return a name and a text for each cost; a forward pass of a batch takes a third of a training step.

    Not counted: packing, notebooks, the other denoisers of Table 3, and Table 2's fill that learns nothing.
    """
    hours = Counter()  # of each run, with whatever is measured of its network
    for one in (one for name in datasets for one in measurements(profile, name, seeds) if one.experiment):
        if one.experiment.schedule not in (*trained.LEARNERS, BIHARMONIC):
            hours[one.experiment] += one.work / 3 * ms_per_step / 3.6e6
    [(longest, most)] = hours.most_common(1)
    disk = sum(BYTES_PER_WEIGHT * parameters(experiment) for experiment in hours)
    return [
        ("runs", f"{len(hours):,}, each on one GPU"),
        ("GPU time", f"{hours.total():,.1f} h"),
        ("longest run", f"{longest.run_id}: {most:,.1f} h, which no number of GPUs makes shorter"),
        ("disk", f"{disk / 1e9:.3g} GB of checkpoints and weights"),
    ]


def parameters(experiment) -> int:
    """Count the weights of a run's network without making them."""
    with torch.device("meta"):
        return sum(p.numel() for p in context_encoder.untrained(experiment).parameters())
