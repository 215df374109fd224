"""What the runs of a profile cost, before they are started: how many there are, GPU hours, the longest, checkpoints."""

import torch

from companion.comparators import context_encoder, trained
from companion.measure.blocks import CLASSICAL
from companion.runs.catalogue import jobs

STATES = 3  # a checkpoint holds the weights and Adam's two moments
BYTES_PER_WEIGHT = 4 * (2 * STATES + 1)  # in the checkpoint, the one before it, and the network that is kept


def plan(profile: str, datasets: list[str], seeds: list[int], ms_per_step: float) -> list[tuple[str, str]]:
    """A name and a text for each cost; a forward pass of a batch takes a third of a training step.

    Not counted: packing, notebooks, and the other systems of Tables 2 and 3 that do not train here.
    """
    runs = [job for name in datasets for job in jobs(profile, name, seeds) if job.experiment]
    runs = [job for job in runs if job.experiment.schedule not in (*trained.LEARNERS, CLASSICAL)]
    hours = {job.name: job.work / 3 * ms_per_step / 3.6e6 for job in runs}
    longest = max(hours, key=hours.get)
    disk = sum(BYTES_PER_WEIGHT * parameters(job.experiment) for job in runs)
    return [
        ("runs", f"{len(runs):,}, each on one GPU"),
        ("GPU time", f"{sum(hours.values()):,.1f} h"),
        ("longest run", f"{longest}: {hours[longest]:,.1f} h, which no number of GPUs makes shorter"),
        ("disk", f"{disk / 1e9:.3g} GB of checkpoints and weights"),
    ]


def parameters(experiment) -> int:
    """Weights of a run's network, counted without making them."""
    with torch.device("meta"):
        return sum(p.numel() for p in context_encoder.untrained(experiment).parameters())
