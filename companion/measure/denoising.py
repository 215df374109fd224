"""Denoisers × photographs × noise: what Table 3, Figure 6 and the gallery measure (Sec. 6.7, Supp. H)."""

import hashlib
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from companion import published
from companion.comparators import DENOISERS, Denoiser, trained
from companion.data import download, reader, sets
from companion.disk import files
from companion.disk.provenance import origin
from companion.notebook import several
from companion.restore.chosen import PHOTOGRAPHS
from companion.restore.pretrained import LONG
from companion.training import results
from companion.training.device import check_device
from companion.training.measurement import Measurement, identity
from odl import crops
from odl.corruptions import add_noise
from odl.experiment import Experiment, slug
from odl.parameters import choice, number
from odl.windows import restore_image

SPECTRUM = (5, 15, 25, 50, 75, 100)  # σ of Figure 6, whose axis the paper does not list
FIXED = 25  # σ at which systems are fixed in Figure 6 and the supplement's pictures
STRIDE = 3
DB11_WORK = 1765  # batches of 100 windows at this stride in the eleven photographs
OUR_SYSTEMS = ("on_demand", "fixated")
NOISY = "noisy"  # the photographs as they are, beside the systems that restore them
SYSTEMS = DENOISERS | {
    "on_demand": Denoiser("On-demand", "on-demand", "#D55E00", None),
    "fixated": Denoiser("Fixated at 25", "fixated at 25", "#0072B2", None, at_25=True),
    PHOTOGRAPHS: Denoiser("Newer network, for photographs", "for photographs", "#CC79A7", None),
    NOISY: Denoiser("noisy, not restored", "noisy", "#737373", lambda y, sigma: y),
}
CHOICES = [name for name in SYSTEMS if name not in (NOISY, PHOTOGRAPHS)]  # every one, measured or not
OPPONENTS = [name for name in CHOICES if name != "mlp"]  # it is below total variation here: untrained rather than small
SLOW = ("ksvd", "wnnm")  # up to minutes a photograph: Figure 6 has them fixed at 25 alone
PACKAGES = {"bm3d": "bm3d", "nlm": "scikit-image"}
DENSE = 'class="odl-table odl-dense"'


def check_systems(systems) -> list[str]:
    """Return a list of systems, of one, too. Raises ParameterError."""
    return several("systems", systems, partial(choice, options=CHOICES))


# The photographs


def grey_photographs(dataset: str = "db11", profile: str = "reference") -> list[tuple[str, np.ndarray]]:
    """Return names and grey images (H, W) uint8: DB11, else centres of 3 (smoke: 1) held out. Raises DataError."""
    folder = sets.find(dataset)
    splits = sets.list_images(dataset, folder)
    if dataset == "db11":
        download.check_listing("db11", folder)
        return [(name.removesuffix(".png"), luminance(reader.read_image(folder / name, 0))) for name in splits["test"]]
    count, side = (1, 64) if profile == "smoke" else (3, 128)
    names = (splits["test"] + splits["validation"])[:count]
    return [(name.rsplit(".", 1)[0], centre(luminance(reader.read_image(folder / name, 0)), side)) for name in names]


def photographs_or_demo(dataset: str, profile: str = "reference") -> dict[str, np.ndarray]:
    """Return the photographs by name; the demo's, with a line that says so, where the set is not here."""
    try:
        return dict(grey_photographs(dataset, profile))
    except sets.DataError as error:
        print(f"The demo photographs stand in: {error}")
        return dict(grey_photographs("demo", profile))


def luminance(image: np.ndarray) -> np.ndarray:
    """Turn (H, W, 3) into (H, W) uint8."""
    return (image @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)


def centre(image: np.ndarray, side: int | None) -> np.ndarray:
    """Return the middle `side` pixels of an image (H, W[, 3]) in either direction; None: all of it."""
    top, left = (max(0, length - side) // 2 if side else 0 for length in image.shape[:2])
    return image[top : top + (side or len(image)), left : left + (side or image.shape[1])]


# Noise, a system, its score


def add_awgn(image: np.ndarray, name: str, sigma: float, clip: bool) -> np.ndarray:
    """Return an image (H, W) uint8 with noise of σ (of 255) as float32 on [0, 1], the same for one name and σ."""
    generator = torch.Generator().manual_seed(crops.seed_of("photograph", name, f"{sigma:g}"))
    x = torch.from_numpy(image)[None, None].float() / 127.5 - 1
    y = add_noise(x, torch.tensor([float(sigma)]), generator, clip)
    return ((y + 1) / 2)[0, 0].numpy()


def our_systems(profile: str = "reference", dataset: str = "bsds500", seed: int = 0) -> dict[str, Experiment]:
    """Return the two of Table 3, trained at native resolution: on-demand, and the model fixated at σ = 25."""
    native = f"{sets.absolute(sets.parse(dataset)[0])}-native"  # album/ is album
    denoiser_of = partial(Experiment.of, "denoise", native, seed=seed, profile=profile, **LONG.get(profile, {}))
    return {"on_demand": denoiser_of("on_demand"), "fixated": denoiser_of("fixated_hard", severity=25.0)}


def our_runs(profile: str = "reference", dataset: str = "bsds500", seeds=(0,)) -> dict[str, list[Experiment]]:
    """Return system → its run of each seed."""
    of_seeds = [our_systems(profile, dataset, seed) for seed in seeds]
    return {system: [each[system] for each in of_seeds] for system in OUR_SYSTEMS}


def can_run(system: str, ours: Experiment | None = None) -> bool:
    """Return True if the system's package or weights are here."""
    if system in OUR_SYSTEMS:
        return results.place_of_weights(ours) is not None
    return SYSTEMS[system].here()


def denoiser(system: str, ours: Experiment | None = None, device: str = "cpu"):
    """Return `denoise(y, sigma) -> x_hat` of a system; our networks are not told σ."""
    if system not in OUR_SYSTEMS:
        return SYSTEMS[system].denoise
    network = results.load_network(ours)
    return lambda y, _: restore_image(network, y, STRIDE, precision=ours.precision, device=device)


def denoisers(systems, ours: dict) -> dict:
    """Return system → `denoise(y, sigma)`, of those that can run here."""
    return {system: denoiser(system, ours.get(system)) for system in systems if can_run(system, ours.get(system))}


def measure(denoise, images, sigma: float, clip: bool, told: float, progress=None) -> pd.DataFrame:
    """Return rows (image, psnr in dB, seconds) of `denoise(y, told)` on noisy images; y itself is not clipped."""
    rows = []
    for i, (name, image) in enumerate(images):
        if progress:
            progress(i / len(images))
        y = add_awgn(image, name, sigma, clip)
        start = time.perf_counter()
        x_hat = denoise(y, told)
        x_hat = y if x_hat is y else np.clip(x_hat, 0, 1)
        seconds = time.perf_counter() - start
        rows.append((name, round(decibels(x_hat, image), 4), round(seconds, 3)))
    return pd.DataFrame(rows, columns=["image", "psnr", "seconds"])


def decibels(x_hat, image) -> float:
    """Return the PSNR of x_hat on the [0, 1] scale, of an image (H, W) uint8."""
    return -10 * np.log10(np.mean((x_hat - image / 255.0) ** 2))


# One system at one σ


def measurement_of(
    system: str, sigma=FIXED, clip=True, told=None, dataset="db11", profile="reference", ours: Experiment | None = None
) -> Measurement:
    """Return the measurement of one system at one σ on a set of photographs.

    `told` is the σ that it is told, None for the true one; `ours` is the run whose network it is, of our two systems.
    The file is `bm3d-sigma50.json`, with `-told25`, `-unclipped`, a network's seed and data set where these are others.
    Raises ParameterError.
    """
    choice("system", system, SYSTEMS)
    number("sigma", sigma, 0.1, 255)
    number("told", sigma if told is None else told, 0.1, 255)
    told = float(told or sigma) if SYSTEMS[system].knows_sigma else None
    what = {"system": system, "dataset": slug(dataset), "sigma": float(sigma), "clip": clip, "told": told}
    what |= {"images": sets.fingerprint(dataset)} if sets.parse(dataset)[0] not in sets.DATASETS else {}
    name, needs = system, ()
    if ours:
        name += f"-{slug(ours.dataset)}" * (ours.dataset != "bsds500-native") + f"-seed{ours.seed}" * bool(ours.seed)
        what |= {"run": identity(ours), "stride": STRIDE}
        needs = (results.measurement_of(ours),)
    if system in trained.LEARNERS:
        needs = (trained.weights_of(system),)
        what |= {"run": needs[0].what.asdict()}
    name += f"-sigma{sigma:g}" + (f"-told{told:g}" if told not in (None, sigma) else "") + "-unclipped" * (not clip)
    path = files.results() / profile / slug(dataset) / f"{name}.json"
    return Measurement(path, what, partial(score, system, sigma, clip, told, dataset, profile, ours), DB11_WORK, needs)


def score(system, sigma, clip, told, dataset, profile, ours, device="auto", progress=None) -> dict:
    """Return provenance and rows of one system at one σ; only our networks use a GPU."""
    device = check_device(device) if ours else "cpu"
    images, denoise = grey_photographs(dataset, profile), denoiser(system, ours, device)
    rows = measure(denoise, images, sigma, clip, told, progress)
    pixels = hashlib.sha256(b"".join(image.tobytes() for _, image in images)).hexdigest()
    source = origin(device, PACKAGES.get(system, "torch")) | {"data_sha256": pixels}
    return {"provenance": source, "evaluation": rows.to_dict("list")}


def rows_of(system, sigma, clip, told, dataset, profile, ours=None, measure=True, device="auto") -> pd.DataFrame:
    """Return the rows (image, psnr, seconds) of a measurement, a note, and whose they are.

    What is not here, and may not or cannot be measured, is NaN, and the note says why.
    """
    one = measurement_of(system, sigma, clip, told, dataset, profile, ours)
    able = measure and sets.is_here(dataset) and can_run(system, ours)
    if result := one.run(device) if able else one.load():
        rows = result.evaluation.assign(note="")
    else:
        names = published.TABLE3 if dataset == "db11" else dict(grey_photographs(dataset, profile))
        why = SYSTEMS[system].reason
        rows = pd.DataFrame({"image": list(names), "psnr": np.nan, "seconds": np.nan, "note": why})
    whose = {"system": system, "trained_on": ours and slug(ours.dataset), "seed": ours and ours.seed}
    return rows.assign(clipped=clip, told=told, sigma=sigma, **whose)


def on_db11(system: str, profile: str, ours: Experiment | None = None) -> list[Measurement]:
    """Return what Table 3 and Figure 6 show of a system: σ = 25 not clipped and clipped, then its curves."""
    curves = [(sigma, True, told) for _, told in curves_of([system]) for sigma in SPECTRUM]
    cases = [(FIXED, False, None), (FIXED, True, None), *curves]
    found = [measurement_of(system, *case, profile=profile, ours=ours) for case in cases]
    return [*{one.path: one for one in found}.values()]


# What a page shows


def curves_of(systems) -> list[tuple]:
    """Return the curves of Figure 6, (system, σ that it is told or None for the truth): as it is, then fixed at 25.

    The first is left out for the systems of SLOW, the second for those that are told nothing.
    """
    fixed = [(system, FIXED) for system in systems if SYSTEMS[system].knows_sigma]
    return [(system, None) for system in systems if system not in SLOW] + fixed


def covers(table: pd.DataFrame, path: Path) -> bool:
    """Return True if the table has every measured row that `path` holds; else print that it has not."""
    stored = pd.read_csv(path) if path.exists() else table
    names, none = ("image", "system", "trained_on", "clipped", "told", "sigma", "seed"), {"trained_on": "", "told": 0}
    key = [name for name in names if name in table and name in stored]
    here, there = (rows.dropna(subset="psnr")[key].fillna(none | {"seed": -1}) for rows in (table, stored))
    every = pd.MultiIndex.from_frame(there).isin(pd.MultiIndex.from_frame(here)).all()
    if not every:
        print(f"{path.name} has rows that this page lacks, so it stays as it is.")
    return every
