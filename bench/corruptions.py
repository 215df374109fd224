"""Damage: a batch of mixed levels by `odl.corruptions`, by deepinv, and by a loop over images with NumPy and SciPy."""

from functools import partial
from statistics import mean, median

import numpy as np
import torch
from scipy.ndimage import gaussian_filter

from companion.data import packs
from odl import crops, paper
from odl.corruptions import FILL, TASKS

from . import measure

FILL_COLOUR = np.float32(FILL).reshape(3, 1, 1) / 127.5 - 1
MAX_DIFFERENCE = 0.1  # of the mean squared change, whose draws are random


def run(options: measure.Options) -> dict:
    """Time every task's damage of a batch, and compare what it changes with what the loop changes.

    A contestant counts where its mean squared change of the pixels, over `gate_batches`, is near that of the loop.
    """
    full = {"batch": 100, "calls": 20, "loop_calls": 3, "gate_batches": 40}  # calls a turn
    size = options.sizes(full, {"batch": 60, "calls": 1, "loop_calls": 1}, {"calls": 200})
    dataset, rows = measure.dataset(options), []
    photographs = crops.fixed_crops(packs.load(dataset, "train"), size["batch"], "benchmark").contiguous()
    for name in TASKS:
        x = (crops.grey(photographs) if TASKS[name].channels == 1 else photographs).to(options.device)
        contestants = corrupters(name, x, options)
        calls = {n: size["loop_calls" if n == "loop" else "calls"] for n in contestants}
        turns = {n: partial(measure.seconds_of, c, calls[n], options.device) for n, c in contestants.items()}
        seconds = measure.interleave(turns, options.rounds, name)
        batches = range(size["gate_batches"])
        change = {n: mean((c() - x).square().mean().item() for _ in batches) for n, c in contestants.items()}
        difference = {n: abs(value / change["loop"] - 1) for n, value in change.items()}
        for n in contestants:
            counts = max(difference["ours"], difference[n]) <= MAX_DIFFERENCE
            cells = {"task": name, "contestant": n, "images/s": size["batch"] / median(seconds[n])}
            cells |= {
                "ours, times as fast": measure.faster(seconds, n),
                "difference from the loop": f"{difference[n]:.1%}",
            }
            rows.append(cells | {"counts": counts})
    scale = size | {"dataset": dataset, "levels": f"1–{paper.N_LEVELS} mixed", "precision_of_ours": "fp32"}
    return {"scale": scale, "rows": rows}


def corrupters(name: str, x: torch.Tensor, options: measure.Options) -> dict:
    """Return contestant → a call that corrupts the batch x and leaves the answer on the device."""
    task, generator, rng = TASKS[name], torch.Generator(options.device).manual_seed(0), np.random.default_rng(0)
    images, level = x.cpu().numpy(), torch.arange(len(x)) % paper.N_LEVELS + 1
    on_cpu, on_device = torch.Generator().manual_seed(0), level.to(options.device)

    def looped():
        severities = task.draw(*task.bounds(level), crops.CROP, on_cpu).tolist()
        pairs = zip(images, severities, strict=True)
        return torch.from_numpy(np.stack([LOOP[name](*pair, rng) for pair in pairs])).to(options.device)

    contestants = {"ours": lambda: task.corrupt(x, on_device, generator), "loop": looped}
    if measure.version_of("deepinv"):
        from .with_deepinv import corruptions  # an optional package

        contestants["deepinv"] = partial(corruptions(options.device)[name], x)
    return contestants


# The loop: one image (C, 64, 64) at its severity


def remove_square(image, severity, rng=None):
    side, top, left = map(int, severity)
    y = image.copy()
    y[:, top : top + side, left : left + side] = FILL_COLOUR
    return y


def delete_pixels(image, severity, rng):
    return np.where(rng.random(image.shape[1:], np.float32) < severity[0] / 100, FILL_COLOUR, image)


def blur(image, severity, rng):
    return np.stack([gaussian_filter(channel, severity[:2], mode="mirror", truncate=4) for channel in image])


def add_noise(image, severity, rng):
    noise = rng.standard_normal(image.shape, np.float32)
    return np.clip(image + noise * np.float32(severity[0] / 127.5), -1, 1)


LOOP = dict(zip(TASKS, (remove_square, delete_pixels, blur, add_noise), strict=True))
