"""Denoisers that are trained here: patches of BSDS500 at native resolution, white noise that is not clipped (Sec. 6.7).

`python -m odl.comparators train NAME` trains one, resuming where it stopped.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial

import numpy as np
import torch
from torch import nn

from odl import data, paths, results
from odl.comparators import check
from odl.comparators.csf import CSF
from odl.comparators.dncnn import DnCNN
from odl.comparators.mlp import MLP
from odl.comparators.tnrd import TNRD
from odl.corruptions import add_noise
from odl.evaluate import psnr, squared_error
from odl.experiment import Experiment, choice
from odl.step import restore
from odl.train import Trained, adam, fit, set_rate, shuffled

VALIDATION_SIGMA = 25


@dataclass(frozen=True)
class Learner:
    """`make()` builds the network; σ is uniform in [low, high]; `told` says whether the network is given σ.

    `precision` is fp32 where a Fourier transform needs it.
    """

    make: Callable[[], nn.Module]
    low: float
    high: float
    learning_rate: float
    told: bool = False
    precision: str = "bf16"


LEARNERS = {
    "mlp": Learner(MLP, 25, 25, 1e-3),
    "mlp_many": Learner(partial(MLP, told=True), 5, 100, 1e-3, told=True),
    "csf": Learner(CSF, 25, 25, 1e-2, precision="fp32"),
    "tnrd": Learner(TNRD, 25, 25, 1e-2, precision="fp32"),
    "dncnn": Learner(DnCNN, 0, 100, 1e-3),
    "dncnn_25": Learner(DnCNN, 25, 25, 1e-3),
}
# Papers: far longer; here: short enough for a CPU.
LENGTH = {"smoke": {"epochs": 2, "iterations": 2, "batch_size": 4}, "reference": {"epochs": 20, "iterations": 50}}


@dataclass(frozen=True)
class Run(Experiment):
    """An experiment whose `schedule` is a name of `LEARNERS`; the width is not used."""

    def __post_init__(self):
        choice("system", self.schedule, LEARNERS)
        Experiment(**(asdict(self) | {"schedule": "rigid_joint"}))  # checks every number


def run_of(system: str, profile: str = "reference", dataset: str = "bsds500-native") -> Run:
    """The training run of a system. Raises ParameterError."""
    choice("system", system, LEARNERS)
    choice("profile", profile, LENGTH)
    learner = LEARNERS[system]
    numbers = {"batch_size": 16, "learning_rate": learner.learning_rate, "precision": learner.precision}
    numbers |= LENGTH[profile]
    return Run.of("denoise", dataset, system, 0, profile, **numbers)


def build(run: Run, device):
    """The network with its initial weights and its Adam."""
    with torch.random.fork_rng():
        torch.manual_seed(data.seed_of(run.seed, "weights"))
        network = LEARNERS[run.schedule].make()
    network.to(device)
    return network, adam(network.parameters(), run.learning_rate, device)


def train(run: Run, device="cpu", progress=None) -> Trained:
    """Train one system, resuming from its checkpoint if there is one.

    history: one dict an epoch with loss and psnr (dB at σ = 25 on the validation crops).
    """
    learner = LEARNERS[run.schedule]

    def epochs(state):
        for epoch in range(len(state.history), run.epochs):
            loss = train_epoch(run, learner, state, epoch, progress)
            score = validate(run, state.network, state.x_validation, run.precision)
            yield {"loss": loss, "psnr": [score], "allocation": None}

    state = fit(run, build, epochs, device)
    results.keep_weights(run, state.network)
    return Trained(state.network.eval(), None, state.history)


def train_epoch(run: Run, learner: Learner, state, epoch: int, progress) -> float:
    """One epoch of Adam steps. Returns the mean squared error on the [0, 1] scale."""
    state.network.train()
    set_rate(state.optimizer, 1 - 0.9 * epoch / run.epochs)  # down to a tenth, in a straight line
    device = state.pack.offset.device
    generator = torch.Generator(device).manual_seed(data.seed_of(run.seed, epoch, "train"))
    total = 0.0
    for i, index in enumerate(
        shuffled(len(state.pack), run.iterations * run.batch_size, generator).split(run.batch_size)
    ):
        x = data.grey(data.crop(state.pack, index, generator))
        u = torch.rand(len(x), generator=generator, device=device)
        y, sigma = noisy(x, learner.low + u * (learner.high - learner.low), generator)
        loss = nn.functional.mse_loss(apply(state.network, learner, y, sigma, run.precision), (x + 1) / 2)
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        total += loss.item()
        if progress:
            progress((epoch + (i + 1) / run.iterations) / run.epochs)
    return total / run.iterations


def noisy(x, sigma, generator):
    """x (B, 1, H, W) in [-1, 1] with noise of σ (B,) of 255: y and σ on the [0, 1] scale."""
    return (add_noise(x, sigma, generator, clip=False) + 1) / 2, sigma / 255


def apply(network, learner: Learner, y, sigma, precision: str):
    """The network on y, told σ or not."""
    return restore(partial(network, sigma=sigma) if learner.told else network, y, precision)


@torch.inference_mode()
def validate(run: Run, network, x, precision) -> float:
    """Mean PSNR in dB at σ = 25 on the validation crops, with the same noise every epoch."""
    network.eval()
    generator = torch.Generator(x.device).manual_seed(data.seed_of("validate", VALIDATION_SIGMA))
    errors = []
    for part in x.split(run.batch_size):
        y, sigma = noisy(part, torch.full((len(part),), float(VALIDATION_SIGMA), device=x.device), generator)
        errors.append(squared_error(2 * apply(network, LEARNERS[run.schedule], y, sigma, precision) - 1, part))
    return psnr(torch.cat(errors)).mean().item()


# Use


def is_trained(system: str) -> bool:
    """Whether weights of this very run are here."""
    try:
        return bool(results.weights_of(run_of(system)))
    except FileNotFoundError:
        return False


@cache
def network_of(system: str, root) -> nn.Module:
    """The trained network. Raises FileNotFoundError."""
    return results.with_weights(LEARNERS[system].make(), run_of(system))


@torch.inference_mode()
def denoise(y, sigma, system: str) -> np.ndarray:
    """Denoise a grey image (H, W) on the [0, 1] scale; σ (of 255) may be None for what is not told it."""
    given = VALIDATION_SIGMA if sigma is None and not LEARNERS[system].told else sigma
    y, sigma = check.noisy(y, given, side=16)
    x = torch.from_numpy(y).float()[None, None]
    network = network_of(system, paths.root())
    return apply(network, LEARNERS[system], x, torch.tensor([sigma]).float(), "fp32")[0, 0].numpy()
