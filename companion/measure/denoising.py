"""Denoisers × photographs × noise: what Table 3, Figure 6 and the gallery measure (Sec. 6.7, Supp. H)."""

import hashlib
import time
from dataclasses import dataclass
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
from companion.restore.pretrained import LONG
from companion.training import results, store
from companion.training.device import check_device
from companion.training.store import identity
from odl import crops
from odl.corruptions import add_noise
from odl.experiment import Experiment, slug
from odl.parameters import choice, number
from odl.windows import restore_image

SPECTRUM = (5, 15, 25, 50, 75, 100)  # σ of Figure 6, whose axis the paper does not list
FIXED = 25  # σ at which systems are fixed in Figure 6 and the supplement's pictures
STRIDE = 3
OURS = ("on_demand", "fixated")
NOISY = "noisy"  # the photographs as they are, beside the systems that restore them
SYSTEMS = DENOISERS | {
    "on_demand": Denoiser("On-demand", "on-demand", "#D55E00", None),
    "fixated": Denoiser("Fixated at 25", "fixated at 25", "#0072B2", None, at_25=True),
    NOISY: Denoiser("noisy, not restored", "noisy", "#737373", lambda y, sigma: y),
}
CHOICES = [name for name in SYSTEMS if name != NOISY]  # every one, measured or not
OPPONENTS = [name for name in CHOICES if name != "mlp"]  # it is below total variation here: untrained rather than small
SLOW = ("ksvd", "wnnm")  # up to minutes a photograph: Figure 6 has them fixed at 25 alone
PACKAGES = {"bm3d": "bm3d", "nlm": "scikit-image"}
DENSE = 'class="odl-table odl-dense"'


def check_systems(systems) -> list[str]:
    """A list of systems, or one. Raises ParameterError."""
    return several("systems", systems, partial(choice, options=CHOICES))


# The photographs


def grey_photographs(dataset: str = "db11", profile: str = "reference") -> list[tuple[str, np.ndarray]]:
    """Names and grey images (H, W) uint8: all of DB11, else centres of 3 (smoke: 1) held out. Raises DataError."""
    folder = sets.find(dataset)
    splits = sets.list_images(dataset, folder)
    if dataset == "db11":
        download.check_listing("db11", folder)
        return [(name.removesuffix(".png"), luminance(reader.read_image(folder / name, 0))) for name in splits["test"]]
    count, side = (1, 64) if profile == "smoke" else (3, 128)
    names = (splits["test"] + splits["validation"])[:count]
    return [(name.rsplit(".", 1)[0], centre(luminance(reader.read_image(folder / name, 0)), side)) for name in names]


def photographs_or_demo(dataset: str, profile: str = "reference") -> dict[str, np.ndarray]:
    """The photographs by name; the demo's, with a line that says so, where the set is not here."""
    try:
        return dict(grey_photographs(dataset, profile))
    except sets.DataError as error:
        print(f"Pictures below are the demo photographs: {error}")
        return dict(grey_photographs("demo", profile))


def luminance(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) to (H, W) uint8."""
    return (image @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)


def centre(image: np.ndarray, side: int) -> np.ndarray:
    top, left = (max(0, length - side) // 2 for length in image.shape)
    return image[top : top + side, left : left + side]


# Noise, a system, its score


def add_awgn(image: np.ndarray, name: str, sigma: float, clip: bool) -> np.ndarray:
    """An image (H, W) uint8 with noise of σ (of 255), the same for one name and σ: (H, W) float32, [0, 1] scale."""
    generator = torch.Generator().manual_seed(crops.seed_of("photograph", name, f"{sigma:g}"))
    x = torch.from_numpy(image)[None, None].float() / 127.5 - 1
    y = add_noise(x, torch.tensor([float(sigma)]), generator, clip)
    return ((y + 1) / 2)[0, 0].numpy()


def our_systems(profile: str = "reference", dataset: str = "bsds500", seed: int = 0) -> dict[str, Experiment]:
    """The two of Table 3, trained on crops at native resolution: on-demand, and the model fixated at σ = 25."""
    native = f"{sets.parse(dataset)[0]}-native"
    denoiser_of = partial(Experiment.of, "denoise", native, seed=seed, profile=profile, **LONG.get(profile, {}))
    return {"on_demand": denoiser_of("on_demand"), "fixated": denoiser_of("fixated_hard", severity=25.0)}


def our_runs(profile: str = "reference", dataset: str = "bsds500", seeds=(0,)) -> dict[str, list[Experiment]]:
    """system → its run of each seed."""
    of_seeds = [our_systems(profile, dataset, seed) for seed in seeds]
    return {system: [runs[system] for runs in of_seeds] for system in OURS}


def can_run(system: str, ours: Experiment | None = None) -> bool:
    """Whether the system's package or weights are here."""
    if system in OURS:
        return results.place_of_weights(ours) is not None
    return SYSTEMS[system].here()


def denoiser(system: str, ours: Experiment | None = None, device: str = "cpu"):
    """`denoise(y, sigma) -> x_hat` of a system; our networks are not told σ."""
    if system not in OURS:
        return SYSTEMS[system].denoise
    network = results.network_of(ours)
    return lambda y, _: restore_image(network, y, STRIDE, precision=ours.precision, device=device)


def denoisers(systems, ours: dict) -> dict:
    """system → `denoise(y, sigma)`, of those that can run here."""
    return {system: denoiser(system, ours.get(system)) for system in systems if can_run(system, ours.get(system))}


def measure(denoise, images, sigma: float, clip: bool, told: float, progress=None) -> pd.DataFrame:
    """Rows (image, psnr in dB, seconds) of `denoise(y, told)` on the noisy images; y itself is not clipped."""
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
    """PSNR of x_hat on the [0, 1] scale, of an image (H, W) uint8."""
    return -10 * np.log10(np.mean((x_hat - image / 255.0) ** 2))


# One case, measured on disk or now


@dataclass(frozen=True)
class Case:
    """One system at one σ on a set of photographs; `told` is the σ that it is told, None for the true one.

    `ours` is the run whose network it is, of our two systems. Raises ParameterError.
    """

    system: str
    sigma: float = FIXED
    clip: bool = True
    told: float | None = None
    dataset: str = "db11"
    profile: str = "reference"
    ours: Experiment | None = None

    def __post_init__(self):
        choice("system", self.system, SYSTEMS)
        number("sigma", self.sigma, 0.1, 255)
        number("told", self.sigma if self.told is None else self.told, 0.1, 255)

    @property
    def experiment(self) -> dict:
        """What is measured, as its result says it."""
        told = float(self.told or self.sigma) if SYSTEMS[self.system].knows_sigma else None
        experiment = {"system": self.system, "dataset": slug(self.dataset), "sigma": float(self.sigma)}
        experiment |= {"clip": self.clip, "told": told}
        if sets.parse(self.dataset)[0] not in sets.DATASETS:
            experiment |= {"images": sets.fingerprint(self.dataset)}
        if self.ours:
            experiment |= {"run": identity(self.ours), "stride": STRIDE}
        if self.system in trained.LEARNERS:
            experiment |= {"run": trained.run_of(self.system).asdict()}
        return experiment

    @property
    def path(self) -> Path:
        """`bm3d-sigma50.json`, with `-told25`, `-unclipped`, a network's seed and data set where these are others."""
        told, name = self.experiment["told"], self.system
        if self.ours and self.ours.dataset != "bsds500-native":
            name += f"-{slug(self.ours.dataset)}"
        name += f"-seed{self.ours.seed}" if self.ours and self.ours.seed else ""
        name += f"-sigma{self.sigma:g}" + (f"-told{told:g}" if told not in (None, self.sigma) else "")
        name += "" if self.clip else "-unclipped"
        return files.results() / self.profile / slug(self.dataset) / f"{name}.json"

    def load(self) -> pd.DataFrame | None:
        """Rows (image, psnr, seconds) from disk, or None."""
        content = store.load(self.path, self.experiment)
        return content and pd.DataFrame(content["evaluation"])

    def run_or_load(self, device="auto", progress=None) -> pd.DataFrame:
        """The same rows, measured now where they are not on disk."""

        def measured():
            where = check_device(device) if self.ours else "cpu"
            images, denoise = grey_photographs(self.dataset, self.profile), denoiser(self.system, self.ours, where)
            rows = measure(denoise, images, self.sigma, self.clip, self.experiment["told"], progress)
            pixels = b"".join(image.tobytes() for _, image in images)
            provenance = origin(where, PACKAGES.get(self.system, "torch"))
            provenance |= {"data_sha256": hashlib.sha256(pixels).hexdigest()}
            return {"provenance": provenance, "evaluation": rows.to_dict("list")}

        return pd.DataFrame(store.run_or_load(self.path, self.experiment, measured)["evaluation"])

    def rows(self, measure=True, device="auto") -> pd.DataFrame:
        """The same rows and a note: what is not here, and may not or cannot be measured, is NaN, and why."""
        rows = self.load()
        if rows is None and measure and sets.is_here(self.dataset) and can_run(self.system, self.ours):
            rows = self.run_or_load(device)
        if rows is not None:
            return rows.assign(note="")
        why = SYSTEMS[self.system].reason
        names = published.TABLE3 if self.dataset == "db11" else dict(grey_photographs(self.dataset, self.profile))
        return pd.DataFrame({"image": list(names), "psnr": np.nan, "seconds": np.nan, "note": why})


def named(case: Case) -> dict:
    """The columns of a table that say whose a row is: the system, and of our networks their data set and seed."""
    ours = case.ours
    return {"system": case.system, "trained_on": ours and slug(ours.dataset), "seed": ours and ours.seed}


# What a page shows


def curves_of(systems) -> list[tuple]:
    """The curves of Figure 6, (system, σ that it is told or None for the truth): as it is, then fixed at 25.

    The first is left out for the systems of SLOW, the second for those that are told nothing.
    """
    fixed = [(system, FIXED) for system in systems if SYSTEMS[system].knows_sigma]
    return [(system, None) for system in systems if system not in SLOW] + fixed


def covers(table: pd.DataFrame, path: Path) -> bool:
    """Whether the table has every measured row that `path` holds; a page of fewer systems says that it has not."""
    stored = pd.read_csv(path) if path.exists() else table
    names, none = ("image", "system", "trained_on", "clipped", "told", "sigma", "seed"), {"trained_on": "", "told": 0}
    key = [name for name in names if name in table and name in stored]
    here, there = (rows.dropna(subset="psnr")[key].fillna(none | {"seed": -1}) for rows in (table, stored))
    every = pd.MultiIndex.from_frame(there).isin(pd.MultiIndex.from_frame(here)).all()
    if not every:
        print(f"{path.name} has rows that this page lacks, so it stays as it is.")
    return every
