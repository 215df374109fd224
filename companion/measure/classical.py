"""What learns nothing, on the test crops of the networks: a fill or a filter for every task, scored as they are.

Stored beside the networks' results, `linear-levels.json` and so on: the levels 1 to 6, the first `TRIALS` of a run's
trials, with the same damage as theirs. Only a method that is told the level knows how severe the damage is.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import torch
from scipy.ndimage import gaussian_filter
from skimage.restoration import estimate_sigma

from companion.comparators.classical import nlm
from companion.comparators.holes import interpolated, smoothest
from companion.data import packs
from companion.disk.provenance import origin, processor
from companion.judge import LEVELS
from companion.training import results
from companion.training.measurement import Measurement, Result, identity
from companion.training.results import evaluate
from odl import paper
from odl.corruptions import delete
from odl.experiment import Experiment

TRIALS = 2  # of a run's trials; the crops move a mean by more than the damage does


def missing(y) -> torch.Tensor:
    """Return masks (B, 1, 64, 64) that are true where a pixel of y (B, 3, 64, 64) has the colour of a hole."""
    everywhere = torch.ones_like(y[:, :1])
    return (y == delete(torch.zeros_like(y), everywhere)).all(1, keepdim=True)


def biharmonic(y, level) -> torch.Tensor:
    """Fill with the smoothest surface through the known pixels."""
    return smoothest(y, missing(y))


def linear(y, level) -> torch.Tensor:
    """Fill by `interpolated`."""
    pairs = zip(y.permute(0, 2, 3, 1).numpy(), missing(y)[:, 0].numpy(), strict=True)
    filled = [interpolated(image, hole) if hole.any() else image for image, hole in pairs]
    return torch.from_numpy(np.stack(filled)).permute(0, 3, 1, 2)


def unsharp(y, level, radius: float | None = 1.0) -> torch.Tensor:
    """Add what a Gaussian of this radius takes away; scikit-image's default, or with None the middle of the level."""
    radius = middle("deblur", level) if radius is None else radius
    low = gaussian_filter(y.numpy(), (0, 0, radius, radius), mode="mirror")
    return (2 * y - torch.from_numpy(low)).clamp(-1, 1)


def non_local_means(y, level, told: bool = False) -> torch.Tensor:
    """Denoise by non-local means, told the middle of the level or what scikit-image estimates of σ."""
    pixels = (y[:, 0].double().numpy() + 1) / 2
    sigmas = [middle("denoise", level) if told else max(1.0, 255 * estimate_sigma(image)) for image in pixels]
    denoised = [nlm(image, sigma) for image, sigma in zip(pixels, sigmas, strict=True)]
    return torch.from_numpy(np.stack(denoised) * 2 - 1)[:, None].to(y.dtype)


def middle(task: str, level: int) -> float:
    """Return the middle of the severities of a level."""
    return sum(paper.TASKS[task]["levels"][level - 1]) / 2


METHODS: dict[str, dict[str, Callable]] = {  # task → name → what it makes of y, damaged at a level
    "inpaint": {"biharmonic": biharmonic},
    "interpolate": {"linear": linear},
    "deblur": {"unsharp": unsharp, "unsharp_told": partial(unsharp, radius=None)},
    "denoise": {"nlm": non_local_means, "nlm_told": partial(non_local_means, told=True)},
}


def measurements_of(task: str, dataset: str, profile: str) -> list[Measurement]:
    """Return the measurement of every method of a task, a minute of a CPU; none for a task of one's own."""
    experiment = replace(Experiment.of(task, dataset, "on_demand", 0, profile), trials=TRIALS)
    data = {name: value for name, value in identity(experiment).items() if name in ("dataset", "images")}
    data |= {"task": task, "seed": 0, "test_images": experiment.test_images, "trials": TRIALS}
    return [
        Measurement(
            results.path_of(experiment).with_name(f"{name}-levels.json"),
            data | {"schedule": name},
            partial(measure, experiment, restore),
            results.work_of_levels(experiment),
        )
        for name, restore in METHODS.get(task, {}).items()
    ]


def found(task: str, dataset: str, profile: str, train: bool = True) -> list[Result]:
    """Return what every method of a task scored; what is missing is measured, unless not `train`."""
    scored = [one.run() if train else one.load() for one in measurements_of(task, dataset, profile)]
    return [result for result in scored if result]


def measure(experiment: Experiment, restore: Callable, device="cpu", progress=None) -> dict:
    """Return provenance and the rows of `evaluate`, level by level, because some methods are told the level."""
    levels = map(int, LEVELS)
    rows = [evaluate(experiment, partial(restore, level=level), "cpu", levels=[level])[0] for level in levels]
    source = origin("cpu", "scikit-image") | {"processor": processor()}
    source |= {"data_sha256": packs.load(experiment.dataset, "test").sha256}
    return {"provenance": source, "history": [], "evaluation": pd.concat(rows).to_dict("list")}
