"""Whole images: denoising by overlapping windows at stride 3, against BM3D; time only, Table 3 has the quality."""

from functools import partial
from statistics import median

import numpy as np
from skimage import data as photographs
from skimage.transform import resize

from companion.comparators import DENOISERS
from odl.experiment import Experiment
from odl.learn import build
from odl.windows import restore_image, window_starts

from . import measure

DB11 = {256: 4, 512: 7}  # side → images of the Denoising Benchmark 11
STRIDE = 3
SIGMA = 25


def sizes(options: measure.Options) -> dict:
    """`side` of the image at stride 3, and a second image at another stride."""
    full = {"widths": [64, 32], "side": 256, "large": 512, "large_stride": 6}
    return options.sizes(full, {"widths": [8, 4], "side": 70, "large": 76, "large_stride": 4})


def run(options: measure.Options) -> dict:
    size = sizes(options)
    small, large = (size["side"], STRIDE), (size["large"], size["large_stride"])
    turns = {(f, *at): ours(f, *at, options) for f in size["widths"] for at in (small, large)}
    rival = "bm3d", size["side"], None
    if DENOISERS["bm3d"].here():
        turns[rival] = bm3d(size["side"])
    seconds = measure.interleave(turns, options.rounds, "whole images")

    def bar(f):
        compared = measure.comparison(seconds, f"denoising {size['side']}², f = {f}", rival, ours=(f, *small))
        return compared | {"against": "bm3d"}

    return {
        "scale": size | {"stride": STRIDE, "sigma": SIGMA},
        "rows": [row(*key, median(seconds[key])) for key in turns],
        "comparisons": [bar(f) for f in size["widths"] if rival in seconds],
        "notes": [
            "BM3D runs on the CPU.",
            f"The last column is extrapolated to DB11 at stride {STRIDE}: "
            f"{' and '.join(f'{n} of {side}²' for side, n in DB11.items())} pixels, {db11_windows():,} windows; "
            "BM3D by the number of pixels.",
        ],
    }


def row(system, side: int, stride: int | None, taken: float) -> dict:
    """One system at one size, and what it takes for DB11: by the number of windows, BM3D by the number of pixels."""
    count = windows(side, stride) if stride else None
    whole = db11_windows() / count if stride else sum(n * s**2 for s, n in DB11.items()) / side**2
    return {
        "system": f"ours, f = {system}" if stride else system,
        "image": f"{side}×{side}",
        "stride": stride,
        "windows": count,
        "measured (s)": taken,
        "µs per window": 1e6 * taken / count if count else None,
        "extrapolated to the 11 images (s)": whole * taken,
    }


def windows(side: int, stride: int) -> int:
    """Windows of a square image."""
    return len(window_starts(side, stride)) ** 2


def db11_windows() -> int:
    return sum(n * windows(side, STRIDE) for side, n in DB11.items())


def noisy(side: int) -> np.ndarray:
    """A photograph in grey at σ = 25: (side, side) float32 on the [0, 1] scale."""
    image = resize(photographs.camera(), (side, side), anti_aliasing=True)
    noise = np.random.default_rng(0).normal(0, SIGMA / 255, image.shape)
    return np.clip(image + noise, 0, 1).astype(np.float32)


def ours(width: int, side: int, stride: int, options: measure.Options):
    """Seconds of one image by the network, untrained: weights do not change the time."""
    experiment = Experiment.of("denoise", "demo", "rigid_joint", profile="paper", width=width)
    network, _ = build(experiment, options.device)
    how = {"precision": options.precision, "device": options.device}
    restored = partial(restore_image, network, noisy(side), stride, **how)
    return partial(measure.seconds_of, restored, 1, options.device)


def bm3d(side: int):
    """Seconds of one image by BM3D, which runs on the CPU."""
    return partial(measure.seconds_of, partial(DENOISERS["bm3d"].denoise, noisy(side), SIGMA), 1, "cpu")
