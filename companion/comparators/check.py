"""Checks and helpers that all systems share: of a run, its training, its input and the machine."""

from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import torch

from odl.experiment import Experiment
from odl.images import check_scale
from odl.learn import train_epoch
from odl.parameters import ParameterError


@dataclass(frozen=True)
class Run(Experiment):
    """A training run with the numbers of an experiment; the system's name stands where that has its schedule."""

    def __post_init__(self):
        Experiment(**(asdict(self) | {"schedule": "rigid_joint"}))  # checks every number


def learn(
    batches, step, validate, experiment: Run, pack, x_validation, network, optimizer, history, on_epoch, progress=None
):
    """Train another network as `learn` of `results.train_with`: by its own batches and steps, in the same epochs.

    `batches(experiment, pack, epoch)` yields tuples, `step(experiment, network, optimizer, *batch)` returns the loss,
    `validate(experiment, network, x)` the PSNR in dB.
    """
    take = partial(step, experiment, network, optimizer)
    for epoch in range(len(history), experiment.epochs):
        loss = train_epoch(experiment, network, optimizer, take, batches(experiment, pack, epoch), epoch, progress)
        on_epoch({"loss": loss, "psnr": [validate(experiment, network, x_validation)], "allocation": None})


def noisy(y, sigma, side: int = 8) -> tuple[np.ndarray, float]:
    """Return the image (H, W) as float64 and σ on its [0, 1] scale. Raises ParameterError.

    `y` is on the [0, 1] scale and may exceed it where noise was not clipped; `sigma` is on the 0–255 scale, as in the
    paper; `side` is the side of the smallest image that the system can take.
    """
    y, sigma = np.asarray(y), np.asarray(sigma)
    if y.ndim != 2 or y.dtype.kind != "f":
        raise ParameterError(f"y has shape {y.shape} and type {y.dtype}; a grey (H, W) of floats in [0, 1] is needed")
    if min(y.shape) < side:
        raise ParameterError(f"y has size {y.shape[1]}×{y.shape[0]}; at least {side}×{side} is needed")
    check_scale("y", y)
    if sigma.shape != () or sigma.dtype.kind not in "iuf" or not 0 < sigma <= 255:
        raise ParameterError(f"sigma={sigma.tolist()!r} is not a number above 0 and at most 255")
    return y.astype(np.float64), float(sigma) / 255


@contextmanager
def one_thread():
    """Keep PyTorch on one thread: small decompositions gain little from more, which wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
