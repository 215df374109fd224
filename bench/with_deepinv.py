"""Contestants from deepinv (BSD-3-Clause), the nearest library: its Trainer and its physics."""

import deepinv
import torch
from tqdm.auto import tqdm

from odl import paper
from odl.corruptions import TASKS, square_mask, uniform

from . import measure, training
from .corruptions import FILL_COLOUR

CROP = (3, 64, 64)
SHIFT = torch.from_numpy(FILL_COLOUR)  # with it deepinv's masks, which leave zeros, are the same operation as ours


# Training


class Model(torch.nn.Module):
    """Our network as deepinv calls it, on shifted images."""

    def __init__(self, network, device):
        super().__init__()
        self.network, self.shift = network, SHIFT.to(device)

    def forward(self, y, physics, **kwargs):
        return self.network(y + self.shift) - self.shift


class Squares(deepinv.physics.generator.PhysicsGenerator):
    """Masks with one missing square each, of levels 1–5; deepinv has no such generator of its own."""

    def step(self, batch_size=1, seed=None, **kwargs):
        level = (uniform((batch_size,), self.rng) * paper.N_LEVELS).long() + 1
        severity = TASKS["inpaint"].draw(*TASKS["inpaint"].bounds(level), CROP[1], self.rng)
        return {"mask": (~square_mask(severity, CROP[1])).float()}


class Shifted(training.Photographs):
    """The same photographs as deepinv wants them."""

    def __getitem__(self, i):
        return {"x": super().__getitem__(i) - SHIFT}


def contestant(experiment, options) -> training.Contestant:
    """Return deepinv's Trainer as it comes; only its reports, plots and files are off."""
    network, optimizer = training.plain(experiment, options.device)
    loader = training.loader_of(Shifted(experiment.dataset, corrupted=False), experiment, options)
    trainer = deepinv.Trainer(
        Model(network, options.device),
        deepinv.physics.Inpainting(CROP, device=options.device),
        optimizer,
        loader,
        online_measurements=True,
        physics_generator=Squares(device=options.device),
        device=torch.device(options.device),
        save_path=None,
        verbose=False,
        non_blocking_transfers=options.device == "cuda",
    )
    trainer.setup_train()
    bar = tqdm(disable=True)

    def step():
        trainer.step(0, bar, 0, train=True)

    def turn():
        trainer.reset_metrics()
        trainer.current_train_iterators = [iter(loader)]
        step()  # the loading processes have started
        seconds = measure.seconds_of(step, training.sizes(options)["loading_steps"], options.device)
        trainer.current_train_iterators = None
        return seconds

    def learn():
        trainer.physics_generator = None  # masks come with the images
        trainer.current_train_iterators = [shifted(experiment, options.device)]
        for _ in range(experiment.iterations):
            step()

    return training.Contestant(network, "fp32", turn, learn)


def shifted(experiment, device: str):
    """Yield the gate's batches as photographs and masks."""
    for x, y in training.same_batches(experiment, device):
        yield {"x": x.contiguous() - SHIFT.to(device), "params": {"mask": (x == y).all(1, keepdim=True).float()}}


# Corruptions of x (B, C, 64, 64) in [-1, 1], mixed over levels 1–5


def corruptions(device: str) -> dict:
    """Return task → `corrupt(x)` by deepinv's physics, drawn by its own generators but for the squares."""
    generators = deepinv.physics.generator
    top = {t: facts["levels"][paper.N_LEVELS - 1][1] for t, facts in paper.TASKS.items()}
    kept = {"random_split_ratio": True, "min_split_ratio": 1 - top["interpolate"] / 100, "max_split_ratio": 1.0}
    widths = {"sigma_min": 0.01, "sigma_max": float(top["deblur"]), "isotropic": False, "angle_max": 0.0}  # 0.01 px: 0
    draws = {
        "inpaint": Squares(device=device),
        "interpolate": generators.BernoulliSplittingMaskGenerator(CROP, 0.5, device=device, **kept),
        "deblur": generators.GaussianBlurGenerator((8 * top["deblur"] + 1,) * 2, **widths, device=device),  # 4σ
        "denoise": generators.SigmaGenerator(0, top["denoise"] / 127.5, device=device),
    }
    mask, shift = deepinv.physics.Inpainting(CROP, device=device), SHIFT.to(device)
    blur, noise = deepinv.physics.Blur(padding="reflect", device=device), deepinv.physics.Denoising(device=device)

    def masked(x, **parameters):
        return mask(x - shift, **parameters) + shift

    def clipped(x, **parameters):
        return noise(x, **parameters).clamp(-1, 1)

    operators = {"inpaint": masked, "interpolate": masked, "deblur": blur, "denoise": clipped}
    return {task: lambda x, t=task: operators[t](x, **draws[t].step(len(x))) for task in draws}
