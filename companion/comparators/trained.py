"""Denoisers that are trained here: patches of BSDS500 at native resolution, white noise that is not clipped (Sec. 6.7).

`python -m companion train NAME` trains one, resuming where it stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from companion.comparators import check
from companion.comparators.check import Run
from companion.comparators.csf import CSF
from companion.comparators.dncnn import DnCNN
from companion.comparators.mlp import MLP
from companion.comparators.tnrd import TNRD
from companion.disk import files
from companion.training import results
from companion.training.measurement import Measurement
from odl import crops
from odl.corruptions import add_noise
from odl.device import adam, forward, pytorch_defaults
from odl.evaluation import psnr, squared_error
from odl.learn import shuffled
from odl.parameters import choice

VALIDATION_SIGMA = 25


@dataclass(frozen=True)
class Learner:
    """`make()` builds the network; σ is uniform in [low, high].

    `patch` is the side of the patches on which it learns, each alone, 0 for whole crops. `precision` is fp32 for
    TNRD and for CSF, whose Fourier transform needs it.
    """

    make: Callable[[], nn.Module]
    low: float
    high: float
    learning_rate: float
    steps: int
    batch_size: int = 4
    patch: int = 0
    precision: str = "bf16"


# Papers: TNRD and CSF by L-BFGS on a few hundred crops, DnCNN 50 epochs, the MLP 362M patches with twice the width;
# here: Adam on ever new crops.
LEARNERS = {
    "mlp": Learner(MLP, 25, 25, 1e-3, 40_000, 112, patch=17),  # 40M patches, nine of a crop
    "csf": Learner(CSF, 25, 25, 2e-2, 6_000, precision="fp32"),
    "tnrd": Learner(TNRD, 25, 25, 1e-2, 8_000, precision="fp32"),
    "dncnn": Learner(DnCNN, 0, 100, 1e-3, 24_000),
    "dncnn_25": Learner(DnCNN, 25, 25, 1e-3, 24_000),
}


def run_of(system: str, profile: str = "reference") -> Run:
    """Return the training run of a system, whose width is not used. Raises ParameterError."""
    choice("system", system, LEARNERS)
    choice("profile", profile, ("smoke", "reference"))
    learner = LEARNERS[system]
    numbers = {"learning_rate": learner.learning_rate, "precision": learner.precision}
    if profile == "reference":
        numbers |= {"batch_size": learner.batch_size, "epochs": learner.steps // 200, "iterations": 200}
    return Run.of("denoise", "bsds500-native", system, 0, profile, **numbers)


def build(experiment: Run, device):
    """Return the network with its initial weights and its Adam."""
    with torch.random.fork_rng():
        torch.manual_seed(crops.seed_of(experiment.seed, "weights"))
        network = LEARNERS[experiment.schedule].make()
    network.to(device, memory_format=torch.channels_last)  # quicker where DnCNN convolves in bf16
    return network, adam(network.parameters(), experiment.learning_rate, device)


def train(experiment: Run, device="cpu", progress=None) -> results.Trained:
    """Train one system, resuming from its checkpoint if there is one.

    history: one dict an epoch with loss (on the [0, 1] scale) and psnr (dB at σ = 25 on the validation crops).
    """
    return results.train_with(experiment, device, progress, build, partial(check.learn, batches, step, validate))


def step(experiment: Run, network, optimizer, x, y) -> float:
    """Take a step of Adam. Returns the mean squared error."""
    loss = nn.functional.mse_loss(forward(network, y, experiment.precision), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def batches(experiment: Run, pack, epoch):
    """Yield the batches of an epoch: clean and noisy crops or patches on the [0, 1] scale, (B, 1, side, side) each."""
    learner, n = LEARNERS[experiment.schedule], experiment.iterations * experiment.batch_size
    generator = torch.Generator(pack.offset.device).manual_seed(crops.seed_of(experiment.seed, epoch, "train"))
    for index in shuffled(len(pack), n, generator).split(experiment.batch_size):
        x = crops.grey(crops.crop(pack, index, generator))
        if learner.patch:  # three by three, apart from one another
            apart = (crops.CROP - learner.patch) // 2
            x = x.unfold(2, learner.patch, apart).unfold(3, learner.patch, apart)  # (B, 1, 3, 3, patch, patch)
            x = x.flatten(0, 3).unsqueeze(1)
        u = torch.rand(len(x), generator=generator, device=x.device)
        yield (x + 1) / 2, with_noise(x, learner.low + u * (learner.high - learner.low), generator)


def with_noise(x, sigma, generator):
    """Add noise of σ (B,) of 255 to x (B, 1, H, W) in [-1, 1]. Returns it on the [0, 1] scale."""
    return (add_noise(x, sigma, generator, clip=False) + 1) / 2


@torch.inference_mode()
def validate(experiment: Run, network, x) -> float:
    """Return mean PSNR in dB at σ = 25 on the validation crops, with the same noise every epoch."""
    network.eval()
    generator = torch.Generator(x.device).manual_seed(crops.seed_of("validate", VALIDATION_SIGMA))
    errors = []
    for part in x.split(experiment.batch_size):
        y = with_noise(part, torch.full((len(part),), float(VALIDATION_SIGMA), device=x.device), generator)
        errors.append(squared_error(2 * forward(network, y, experiment.precision) - 1, part))
    return psnr(torch.cat(errors)).mean().item()


# Use


class Weights(Measurement):
    """The training of a system: `path` is its network, for the measurements that need it."""

    def load(self) -> Path | None:
        return results.place_of_weights(self.what)

    def run(self, device="auto", progress=None) -> results.Trained:
        return self.make(device=device, progress=progress)


def weights_of(system: str) -> Weights:
    """Return the training of a system."""
    experiment = run_of(system)
    path = files.runs() / experiment.run_id / "weights.safetensors"
    return Weights(path, experiment, partial(train, experiment), 3 * experiment.epochs * experiment.iterations)


def is_trained(system: str) -> bool:
    """Return True if weights of this very run are here."""
    return weights_of(system).load() is not None


@cache
@pytorch_defaults()
def load_network(system: str, root) -> nn.Module:
    """Return the trained network. Raises FileNotFoundError."""
    if not is_trained(system):
        raise FileNotFoundError(f"no weights for {system}: python -m companion train {system}")
    return results.with_weights(LEARNERS[system].make(), run_of(system))


def denoise(y, sigma, system: str) -> np.ndarray:
    """Denoise a grey image (H, W) on the [0, 1] scale; σ (of 255) is not told and may be None."""
    y, _ = check.noisy(y, 25 if sigma is None else sigma, side=17)
    with torch.inference_mode():
        return load_network(system, files.root())(torch.from_numpy(y).float()[None, None])[0, 0].numpy()
