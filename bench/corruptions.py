"""Corruptions: a batch of mixed levels by `odl.corruptions`, by deepinv, and by two loops over images.

One loop uses scikit-image's functions, the other is the fastest that NumPy and SciPy allow.
"""

from functools import partial
from statistics import mean, median

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from skimage.draw import rectangle
from skimage.filters import gaussian
from skimage.util import random_noise

from odl import data, paper
from odl.corruptions import FILL, TASKS

from . import measure

FILL_COLOUR = np.float32(FILL).reshape(3, 1, 1) / 127.5 - 1
EXACT = 1e-5  # largest difference from the loop at the same severities, images in [-1, 1]
GREY_LEVEL = 1 / 127.5  # the same for deepinv, whose kernels are not cut at 4σ
MOMENT = 0.05  # relative difference of the mean squared change, where the draws are random
GATE = (
    "at the same severities the largest difference of a pixel from the loop (inpainting, deblurring); "
    "else the mean squared change of the images, relative to the loop's"
)


def sizes(options: measure.Options) -> dict:
    """Calls per turn of ours and deepinv, then of a loop; batches over which the gate's moments are taken."""
    quick = {"batch": 10, "calls": 1, "loop_calls": 1, "gate_batches": 40}
    return options.sizes({"batch": 100, "calls": 20, "loop_calls": 3, "gate_batches": 40}, quick, {"calls": 200})


def run(options: measure.Options) -> dict:
    size, dataset, comparisons, rows, gates = sizes(options), measure.dataset(options), [], [], {}
    photographs = data.fixed_crops(data.load(dataset, "train"), size["batch"], "benchmark").contiguous()
    for name in TASKS:
        x = data.grey(photographs) if TASKS[name].channels == 1 else photographs
        contestants = corrupters(name, x, options)
        calls = {n: size["loop_calls" if n in LOOPS else "calls"] for n in contestants}
        turns = {n: partial(measure.seconds_of, c, calls[n], options.device) for n, c in contestants.items()}
        seconds = measure.interleave(turns, options.rounds, name)
        gates[name] = gate(name, x, contestants, options)
        for other in contestants:
            counts = gates[name]["ours"]["passed"] and gates[name][other]["passed"]
            faster = None if other == "ours" else measure.ratio(seconds, "ours", other)
            speed = {"images/s": size["batch"] / median(seconds[other]), "ours, times as fast": faster}
            difference = f"{gates[name][other]['difference']:.1g} (at most {gates[name][other]['limit']:.1g})"
            row = (
                {"task": name, "contestant": other} | speed | {"difference from the loop": difference, "counts": counts}
            )
            rows.append(row)
            if faster:
                comparisons.append(measure.comparison(seconds, f"corruption: {name}", "ours", other, counts))
    return {
        "scale": size | {"dataset": dataset, "levels": f"1–{paper.N_LEVELS} mixed", "precision_of_ours": "fp32"},
        "rows": rows,
        "comparisons": comparisons,
        "gate": {"compares": GATE, "tasks": gates},
    }


def corrupters(name: str, x: torch.Tensor, options: measure.Options) -> dict:
    """Contestant → a call that corrupts the batch x and leaves the answer on the device."""
    task, generator, rng = TASKS[name], torch.Generator(options.device).manual_seed(0), np.random.default_rng(0)
    images, x, level = x.numpy(), x.to(options.device), levels(len(x)).to(options.device)
    on_cpu = torch.Generator().manual_seed(0)

    def looped(functions):
        return loop(functions[name], images, severities(name, len(images), on_cpu), rng).to(options.device)

    contestants = {"ours": lambda: task.corrupt(x, level, generator)}
    contestants |= {kind: partial(looped, functions) for kind, functions in LOOPS.items()}
    if measure.version_of("deepinv"):
        from .with_deepinv import corruptions  # an optional package

        contestants["deepinv"] = partial(corruptions(options.device)[name], x)
    return contestants


def levels(n: int) -> torch.Tensor:
    """Levels 1–5 in equal parts, as rigid joint learning has them: (n,)."""
    return torch.arange(n) % paper.N_LEVELS + 1


def severities(name: str, n: int, generator) -> torch.Tensor:
    task = TASKS[name]
    return task.draw(*task.bounds(levels(n)), data.CROP, generator)


def loop(function, images: np.ndarray, severity: torch.Tensor, rng) -> torch.Tensor:
    """The same corruption, image by image (C, 64, 64)."""
    pairs = zip(images, severity.tolist(), strict=True)
    return torch.from_numpy(np.stack([function(image, values, rng) for image, values in pairs]))


# By NumPy and SciPy


def remove_square(image, severity, rng):
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


# By scikit-image, whose functions answer in double precision


def remove_rectangle(image, severity, rng):
    side, top, left = map(int, severity)
    y = image.copy()
    y[:, *rectangle((top, left), extent=(side, side))] = FILL_COLOUR
    return y


def pepper(image, severity, rng):
    kept = random_noise(np.ones(image.shape[1:]), "pepper", rng=rng, amount=severity[0] / 100)
    return np.where(kept, image, FILL_COLOUR)


def smooth(image, severity, rng):
    return gaussian(image, severity[:2], mode="mirror", truncate=4, channel_axis=0, preserve_range=True)


def gaussian_noise(image, severity, rng):
    y = random_noise((image + 1) / 2, "gaussian", rng=rng, var=(severity[0] / 255) ** 2)
    return (2 * y - 1).astype(np.float32)


LOOPS = {
    "loop": {"inpaint": remove_square, "interpolate": delete_pixels, "deblur": blur, "denoise": add_noise},
    "scikit-image": {
        "inpaint": remove_rectangle,
        "interpolate": pepper,
        "deblur": smooth,
        "denoise": gaussian_noise,
    },
}


# Gate


def gate(name: str, x: torch.Tensor, contestants: dict, options: measure.Options) -> dict:
    """Contestant → its difference from the loop, the limit, and whether it passed."""
    if name in ("inpaint", "deblur"):
        differences = exact(name, x, contestants, options.device)
        limits = dict.fromkeys(contestants, EXACT) | {"deepinv": GREY_LEVEL}
    else:
        change = {n: moment(c, x.to(options.device), sizes(options)["gate_batches"]) for n, c in contestants.items()}
        differences = {n: abs(value / change["loop"] - 1) for n, value in change.items()}
        limits = dict.fromkeys(contestants, MOMENT)
    return {n: {"difference": d, "limit": limits[n], "passed": d <= limits[n]} for n, d in differences.items()}


def exact(name: str, x, contestants, device: str) -> dict[str, float]:
    """Largest difference of a pixel from the loop's, at the same severities."""
    severity = severities(name, len(x), torch.Generator().manual_seed(1))
    answers = {kind: loop(functions[name], x.numpy(), severity, None) for kind, functions in LOOPS.items()}
    reference = answers["loop"]
    on_device = x.to(device), severity.to(device)
    answers["ours"] = TASKS[name].apply(*on_device, None)
    if "deepinv" in contestants:
        from .with_deepinv import apply

        answers["deepinv"] = apply(name, *on_device)
    return {n: (y.cpu() - reference).abs().max().item() for n, y in answers.items()}


def moment(corrupt, x, batches: int) -> float:
    """Mean squared change of the pixels."""
    return mean((corrupt() - x).square().mean().item() for _ in range(batches))
