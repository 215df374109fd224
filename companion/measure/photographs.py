"""What `restore` makes of photographs: the networks for them beside the paper's and what learns nothing, blind.

Twenty-three kinds of damage on five photographs of scikit-image's, which no network here has seen, and noise on the
eleven grey ones of DB11. A row has the PSNR in dB of whole photographs, and seconds.
"""

import io
import re
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage
from skimage.filters import unsharp_mask
from skimage.restoration import denoise_nl_means, estimate_sigma, inpaint_biharmonic, richardson_lucy

from companion.comparators.holes import interpolated
from companion.data import reader, sets
from companion.disk import files
from companion.disk.provenance import origin, processor
from companion.measure import denoising
from companion.restore import chosen
from companion.restore.pretrained import restore
from companion.restore.tiles import TURNS
from companion.training.measurement import Measurement
from odl import crops
from odl.parameters import ParameterError, choice

PHOTOGRAPHS = ("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "rocket.jpg")
OUR_NETWORKS = (chosen.PHOTOGRAPHS, chosen.PAPER)

# Damage: a function of a photograph (H, W[, 3]) uint8 and a generator, which returns the damaged one, uint8 or floats
# on [0, 1], and where pixels are missing the mask (H, W).


def rounded(y) -> np.ndarray:
    return np.round(y).clip(0, 255).astype(np.uint8)


def noisy(x, rng, sigma: float, quality: int = 0):
    """Add Gaussian noise of σ (of 255), then save as JPEG of a quality, unless that is 0."""
    y = rounded(x + sigma * rng.standard_normal(x.shape))
    if quality:
        Image.fromarray(y).save(file := io.BytesIO(), "JPEG", quality=quality)
        y = np.asarray(Image.open(file))
    return y, None


def counted(x, rng, peak: float):
    """Add Poisson noise of `peak` photons in white."""
    return rounded(255 / peak * rng.poisson(x / 255 * peak)), None


def blurred(x, rng, kernel: np.ndarray, sigma: float = 0.0):
    """Blur by a kernel (K, K), with mirrored borders, then add noise of σ (of 255)."""
    planes = np.atleast_3d(x).astype(float)
    y = np.dstack([ndimage.convolve(plane, kernel, mode="mirror") for plane in np.moveaxis(planes, -1, 0)])
    return rounded(y.reshape(x.shape) + sigma * rng.standard_normal(x.shape)), None


def gaussian(sigma: float) -> np.ndarray:
    point = np.zeros((8 * int(sigma + 1) + 1,) * 2)
    point[len(point) // 2, len(point) // 2] = 1
    return ndimage.gaussian_filter(point, sigma)


def disc(radius: int) -> np.ndarray:
    inside = np.hypot(*np.mgrid[-radius : radius + 1, -radius : radius + 1]) <= radius
    return inside / inside.sum()


def without(x, rng, draw: Callable):
    """Paint white where `draw(picture, rng)` does, on a picture of the photograph's size."""
    picture = Image.new("1", x.shape[1::-1])
    draw(picture, rng)
    return painted(x, np.asarray(picture.convert("L")) > 0)  # a true of mode 1 is a byte of 255


def lost(x, rng, share: float):
    return painted(x, rng.random(x.shape[:2]) < share)


def painted(x, mask):
    y = x.copy()
    y[mask] = 255
    return y, mask


def scratches(picture, rng) -> None:
    for _ in range(12):
        start, angle, bend = rng.uniform(0, picture.size), rng.uniform(0, np.pi), rng.normal(0, 0.02, 60)
        steps = np.stack([np.cos(angle + bend.cumsum()), np.sin(angle + bend.cumsum())], 1).cumsum(0)
        path = start + min(picture.size) / 60 * steps
        ImageDraw.Draw(picture).line([*map(tuple, path.tolist())], fill=1, width=3)


def dust(picture, rng) -> None:
    for _ in range(picture.width * picture.height // 1500):
        (x, y), radius = rng.uniform(0, picture.size), rng.uniform(0.7, 3.5)
        ImageDraw.Draw(picture).ellipse((x - radius, y - radius, x + radius, y + radius), fill=1)


def letters(picture, rng) -> None:
    for top in range(4, picture.height, 40):
        text = "Copyright of the photographer, all rights reserved. " * 3
        ImageDraw.Draw(picture).text((4 - rng.integers(200), top), text, fill=1, font=ImageFont.load_default(22.0))


def squares(picture, rng, number: int, side: int) -> None:
    for _ in range(number):
        left, top = (int(rng.integers(0, max(1, length - side))) for length in picture.size)
        ImageDraw.Draw(picture).rectangle((left, top, left + side - 1, top + side - 1), fill=1)


# What learns nothing and is told nothing: a function of a damaged photograph on [0, 1] and its mask.


def non_local_means(y, mask):
    """Denoise by means over a 13×13 neighbourhood, told what scikit-image estimates of σ."""
    axis = -1 if y.ndim == 3 else None
    sigma = max(1 / 255, float(estimate_sigma(y, channel_axis=axis, average_sigmas=True)))
    how = {"patch_size": 5, "patch_distance": 6, "h": 0.6 * sigma, "sigma": sigma}
    return denoise_nl_means(y, fast_mode=True, channel_axis=axis, **how)


def unsharp(y, mask):
    return unsharp_mask(y, channel_axis=2 if y.ndim == 3 else None)  # -1 would be taken for rows


def lucy(y, mask):
    """Deconvolve a Gaussian of σ = 2 by Richardson and Lucy in every channel, with mirrored borders."""
    padded = np.pad(np.atleast_3d(y), ((16, 16), (16, 16), (0, 0)), "reflect")
    planes = [richardson_lucy(plane, gaussian(2), num_iter=10) for plane in np.moveaxis(padded, -1, 0)]
    return np.dstack(planes)[16:-16, 16:-16].reshape(y.shape)


def biharmonic(y, mask):
    return inpaint_biharmonic(y, mask, channel_axis=-1 if y.ndim == 3 else None)


RIVALS: dict[str, dict[str, Callable]] = {  # task → name → function
    "denoise": {"non-local means": non_local_means},
    "deblur": {"unsharp mask": unsharp, "Richardson–Lucy, σ 2": lucy},
    "inpaint": {"biharmonic": biharmonic},
    "interpolate": {"linear": interpolated},
}
ROWS: dict[str, tuple[str, Callable]] = {  # damage → task, function
    **{f"noise {sigma}": ("denoise", partial(noisy, sigma=sigma)) for sigma in (5, 15, 25, 50, 80)},
    "noise 25, then JPEG 75": ("denoise", partial(noisy, sigma=25, quality=75)),
    "Poisson, peak 30": ("denoise", partial(counted, peak=30)),
    **{f"blur {sigma}": ("deblur", partial(blurred, kernel=gaussian(sigma))) for sigma in (1, 2, 4)},
    "blur 2 and noise 5": ("deblur", partial(blurred, kernel=gaussian(2), sigma=5)),
    **{f"disc {radius}": ("deblur", partial(blurred, kernel=disc(radius))) for radius in (3, 5)},
    "motion 9": ("deblur", partial(blurred, kernel=np.full((1, 9), 1 / 9))),
    **{f"mask: {draw.__name__}": ("inpaint", partial(without, draw=draw)) for draw in (scratches, dust, letters)},
    "mask: six squares of 20": ("inpaint", partial(without, draw=partial(squares, number=6, side=20))),
    "mask: a square of 48": ("inpaint", partial(without, draw=partial(squares, number=1, side=48))),
    **{f"{share} % lost": ("interpolate", partial(lost, share=share / 100)) for share in (30, 60, 80, 90)},
}
ON_DB11 = {  # the same of the grey benchmark, by the noise of Table 3: σ, and whether it is clipped
    f"DB11, noise {sigma}{'' if clip else ', not clipped'}": (sigma, clip)
    for sigma in (15, 25, 50)
    for clip in (True, False)
}


def images_of(side: int | None = None) -> dict[str, np.ndarray]:
    """Return the photographs by name, or the middle `side` pixels of each, (H, W[, 3]) uint8."""
    folder = sets.find("demo")
    whole = {name: np.asarray(reader.flat(reader.opened(folder / name))) for name in PHOTOGRAPHS}
    return {name: denoising.centre(x, side) for name, x in whole.items()}


def cases_of(row: str, side: int | None = None):
    """Yield each photograph of a row: its name, the clean one (H, W[, 3]) uint8, the damaged one, its mask or None.

    The draws are the same every time.
    """
    if row in ON_DB11:
        sigma, clip = ON_DB11[row]
        for name, x in denoising.grey_photographs("db11"):
            noisy = denoising.add_awgn(x, name, sigma, clip)
            yield name, denoising.centre(x, side), denoising.centre(noisy, side), None
        return
    for name, x in images_of(side).items():
        rng = np.random.default_rng(crops.seed_of("photographs", row, name))
        yield name, x, *ROWS[row][1](x, rng)


def task_of(row: str) -> str:
    return "denoise" if row in ON_DB11 else ROWS[row][0]


def measurement_of(row: str, side: int | None = None) -> Measurement:
    """Return the measurement of a row: on every photograph the score of every system. Raises ParameterError."""
    choice("row", row, (*ROWS, *ON_DB11))
    place = chosen.weights_of(task_of(row))
    if place is None:
        how = "python -m companion photographs --train"
        raise ParameterError(f"no network for photographs ships for {task_of(row)}; it is trained by {how}")
    weights = files.unseal(place.parent / "manifest.json")[place.name]
    what = {"damage": row, "task": task_of(row), "weights": weights, "turns": TURNS} | ({"side": side} if side else {})
    path = files.results() / "photographs" / f"{re.sub('[^a-z0-9]+', '-', row.lower()).strip('-')}.json"
    return Measurement(path, what, partial(measure, row, side), 5)


def measure(row: str, side: int | None = None, device: str = "cpu", progress=None) -> dict:
    """Return what the file of a row holds: image, system, PSNR (dB) and seconds."""
    rows, task = [], task_of(row)
    for image, x, y, mask in cases_of(row, side):
        damaged = y / 255 if y.dtype == np.uint8 else y
        systems = {"damaged": lambda damaged=damaged: damaged}
        systems |= {name: partial(restore, y, task, mask, network=name, device=device) for name in OUR_NETWORKS}
        systems |= {name: partial(rival, damaged, mask) for name, rival in RIVALS[task].items()}
        for name, made in systems.items():
            start = time.perf_counter()
            x_hat = made()
            seconds = time.perf_counter() - start
            x_hat = x_hat / 255 if x_hat.dtype == np.uint8 else x_hat
            x_hat = x_hat if name == "damaged" else np.clip(x_hat, 0, 1)
            rows.append((image, name, round(float(denoising.decibels(x_hat, x)), 3), round(seconds, 2)))
    source = origin(device, "scikit-image") | {"processor": processor()}
    scores = pd.DataFrame(rows, columns=["image", "system", "psnr", "seconds"])
    return {"provenance": source, "evaluation": scores.to_dict("list")}


def table(rows=(*ROWS, *ON_DB11), side: int | None = None) -> pd.DataFrame:
    """Return a row per damage that is measured: mean PSNR in dB, the best rival by name, mean seconds of the network.

    What these weights have not been measured on is left out.
    """
    shown = []
    for row in (row for row in rows if chosen.weights_of(task_of(row))):
        if result := measurement_of(row, side).load():
            means = result.evaluation.groupby("system")[["psnr", "seconds"]].mean()
            rival = max(RIVALS[task_of(row)], key=means.psnr.get)
            db = [means.psnr[name] for name in ("damaged", *OUR_NETWORKS)]
            shown.append((row, *db, rival, means.psnr[rival], means.seconds[OUR_NETWORKS[0]]))
    columns = ["damage", "damaged", *OUR_NETWORKS, "rival", "rival_psnr", "seconds"]
    return pd.DataFrame(shown, columns=columns).round(2)
