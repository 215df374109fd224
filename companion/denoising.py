"""Denoisers × photographs × noise, run or loaded: what Table 3, Figure 6 and the gallery share (Sec. 6.7)."""

import hashlib
import platform
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
import torch

from companion.comparators import AUTHORS, DENOISERS, INPAINTERS, LEARNED, authors, available, trained
from odl import crops, paper
from odl.corruptions import add_noise
from odl.data import download, reader, sets
from odl.data.sets import DataError
from odl.machine import files, store
from odl.machine.provenance import commit, device_name
from odl.parameters import check_device, choice, number
from odl.pretrained import db11_experiment
from odl.results import network_of
from odl.windows import restore_image

SPECTRUM = (5, 15, 25, 50, 75, 100)  # σ of Figure 6, whose axis the paper does not list
FIXED = 25  # σ at which systems are fixed in Figure 6 and the supplement's pictures
PACKAGES = {"bm3d": "bm3d", "nlm": "scikit-image", "tv": "scikit-image", "wavelet": "scikit-image"}
STRIDE = 3
NOISY = "noisy"  # the photographs as they are, beside the systems that restore them
SLOW = ("ksvd", "wnnm")  # up to minutes a photograph: Figure 6 has them fixed at 25 alone
CENTRES = {"smoke": (1, 64)}  # how many photographs of other sets, and the side of the centres cut from them
OTHER = (3, 128)


def photographs(dataset: str = "db11", profile: str = "reference") -> list[tuple[str, np.ndarray]]:
    """Names and grey images (H, W) uint8: all of DB11, else the centres of three held-out photographs of a set.

    Raises DataError when the set is not here.
    """
    folder = sets.find(dataset)
    splits = sets.list_images(dataset, folder)
    if dataset == "db11":
        download.check_files(folder, sets.DATASETS["db11"]["files"])
        return [(name.removesuffix(".png"), luminance(reader.read_image(folder / name, 0))) for name in splits["test"]]
    count, side = CENTRES.get(profile, OTHER)
    names = (splits["test"] + splits["validation"])[:count]
    return [(name.rsplit(".", 1)[0], centre(luminance(reader.read_image(folder / name, 0)), side)) for name in names]


def luminance(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) to (H, W) uint8."""
    return (image @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)


def centre(image: np.ndarray, side: int) -> np.ndarray:
    top, left = (max(0, length - side) // 2 for length in image.shape)
    return image[top : top + side, left : left + side]


def add_awgn(image: np.ndarray, name: str, sigma: float, clip: bool) -> np.ndarray:
    """An image (H, W) uint8 with noise of σ (of 255), the same for one name and σ: (H, W) float32, [0, 1] scale."""
    generator = torch.Generator().manual_seed(crops.seed_of("photograph", name, f"{sigma:g}"))
    x = torch.from_numpy(image)[None, None].float() / 127.5 - 1
    y = add_noise(x, torch.tensor([float(sigma)]), generator, clip)
    return ((y + 1) / 2)[0, 0].numpy()


def measure(denoise, images, sigma: float, clip: bool, told: float, progress=None) -> pd.DataFrame:
    """Rows (image, psnr in dB, seconds) of `denoise(y, told)` on the noisy images; y itself is not clipped."""
    rows = []
    for i, (name, image) in enumerate(images):
        y = add_awgn(image, name, sigma, clip)
        start = time.perf_counter()
        x_hat = denoise(y, told)
        x_hat = y if x_hat is y else np.clip(x_hat, 0, 1)
        seconds = time.perf_counter() - start
        rows.append((name, round(decibels(x_hat, image), 4), round(seconds, 3)))
        if progress:
            progress((i + 1) / len(images))
    return pd.DataFrame(rows, columns=["image", "psnr", "seconds"])


def decibels(x_hat, image) -> float:
    """PSNR of x_hat on the [0, 1] scale, of an image (H, W) uint8."""
    return -10 * np.log10(np.mean((x_hat - image / 255.0) ** 2))


def run_or_load(
    system,
    sigma=25,
    clip=True,
    told=None,
    dataset="db11",
    profile="reference",
    ours=None,
    progress=None,
    allowed=True,
    device="auto",
) -> pd.DataFrame:
    """Rows (image, psnr, seconds) of one system at one σ, from disk or measured now.

    `told` is the σ that the system is told, by default the true one. `ours` maps further names of systems to the
    experiments whose networks they are, by default those of Table 3; they are told nothing.
    Where the result is not here, and may not (`allowed` false) or cannot be measured, psnr and seconds are NaN.
    """
    ours = our_systems() if ours is None else ours
    path, experiment = measurement_of(system, sigma, clip, told, dataset, profile, ours)

    def measure_now():
        images = photographs(dataset, profile)
        where = check_device(device) if system in ours else "cpu"
        rows = measure(denoiser(system, ours, where), images, sigma, clip, experiment["told"], progress)
        return {"provenance": provenance(system, images, where), "evaluation": rows.to_dict("list")}

    if not store.load(path, experiment) and not (allowed and can_measure(system, ours, dataset)):
        return pd.DataFrame({"image": image_names(dataset, profile), "psnr": np.nan, "seconds": np.nan})
    return pd.DataFrame(store.run_or_load(path, experiment, measure_now)["evaluation"])


def load(system, sigma=25, clip=True, told=None, dataset="db11", profile="reference", ours=None) -> dict | None:
    """The stored result of `run_or_load`, or None."""
    return store.load(*measurement_of(system, sigma, clip, told, dataset, profile, ours or our_systems()))


def measurement_of(system, sigma, clip, told, dataset, profile, ours) -> tuple:
    """Where a measurement is stored, and what it is of. Raises ParameterError."""
    check(system, sigma, told, ours)
    known = DENOISERS.get(system, {}).get("knows_sigma", False)
    experiment = {"system": system, "dataset": sets.slug(dataset), "sigma": float(sigma)}
    experiment |= {"clip": clip, "told": float(told or sigma) if known else None}
    if system in ours:
        experiment |= {"run": ours[system].asdict(), "stride": STRIDE}
    if system in trained.LEARNERS:
        experiment |= {"run": trained.run_of(system).asdict()}
    if system in AUTHORS:
        experiment |= {"weights_sha256": authors.digest(system)}
    return files.results() / profile / experiment["dataset"] / f"{name_of(experiment)}.json", experiment


def our_systems(profile: str = "reference", dataset: str = "bsds500-native") -> dict:
    """The two of Table 3: the all-rounder and the model fixated at σ = 25."""
    names = {"on_demand": "on_demand", "fixated": "fixated_hard"}
    return {name: db11_experiment(schedule, profile, dataset) for name, schedule in names.items()}


def can_measure(system, ours, dataset) -> bool:
    """Whether the photographs and the system's package or weights are here."""
    try:
        sets.find(dataset)
    except sets.DataError:
        return False
    return can_run(system, ours)


def can_run(system, ours) -> bool:
    """Whether the system's package or weights are here."""
    if system == NOISY:
        return True
    try:
        return bool(network_of(ours[system])) if system in ours else available(system)
    except FileNotFoundError:
        return False


def image_names(dataset: str, profile: str) -> list[str]:
    """Names of the photographs, also where the set is not here."""
    return list(paper.TABLE3) if dataset == "db11" else [name for name, _ in photographs(dataset, profile)]


def check(system, sigma, told, ours) -> None:
    """Raise ParameterError for an unknown system or a wrong σ."""
    choice("system", system, DENOISERS | ours | {NOISY: None})
    for name, value in (("sigma", sigma), ("told", sigma if told is None else told)):
        number(name, value, 0.1, 255)


def name_of(experiment: dict) -> str:
    """`bm3d-sigma50`, then `-told25` and `-unclipped` where they apply."""
    told = experiment["told"] not in (None, experiment["sigma"])
    return (
        f"{experiment['system']}-sigma{experiment['sigma']:g}"
        + (f"-told{experiment['told']:g}" if told else "")
        + ("" if experiment["clip"] else "-unclipped")
    )


def denoiser(system: str, ours: dict, device: str):
    """`denoise(y, sigma) -> x_hat` of a system, y itself for `NOISY`; our networks are not told σ."""
    if system == NOISY:
        return lambda y, _: y
    if system in DENOISERS:
        return DENOISERS[system]["denoise"]
    network, precision = network_of(ours[system]), ours[system].precision
    return lambda y, _: restore_image(network, y, STRIDE, precision=precision, device=device)


def provenance(system: str, images, device: str) -> dict:
    """What a number was measured with."""
    digest = hashlib.sha256(b"".join(image.tobytes() for _, image in images)).hexdigest()
    package = PACKAGES.get(system, "torch")
    return {
        "commit": commit(),
        "device": device_name(device),
        "versions": {"python": platform.python_version(), package: version(package).split("+")[0]},
        "data_sha256": digest,
    }


def denoisers(systems, ours, device: str = "cpu") -> dict:
    """system → `denoise(y, sigma)`, of those that can run here."""
    return {system: denoiser(system, ours, device) for system in systems if can_run(system, ours)}


def reason(system: str) -> str:
    """Why a system has no number here."""
    if system in trained.LEARNERS and not available(system):
        return "not trained here"
    if system in AUTHORS and not available(system):
        return "no weights here"
    if system in DENOISERS and not available(system):
        return f"the package {DENOISERS[system]['package']} is not installed: published number only"
    return "not measured yet"


def shown(systems) -> list[str]:
    """What a page shows: the noisy photographs, the systems, and those whose authors' weights the user has given."""
    return [NOISY, *systems, *authors.here()]


def curves_of(systems) -> list[tuple]:
    """The curves of Figure 6, (system, σ that it is told or None for the truth): as it is, then fixed at 25.

    The first is left out for the systems of SLOW, the second for those that are told nothing.
    """
    fixed = [(system, FIXED) for system in systems if DENOISERS.get(system, {}).get("knows_sigma")]
    return [(system, None) for system in systems if system not in SLOW] + fixed


COLOURS = {
    **{"on_demand": "#D55E00", "fixated": "#0072B2", "bm3d": "#000000"},
    **{"nlm": "#009E73", "tv": "#CC79A7", "wavelet": "#56B4E9", "ksvd": "#8C6D31", "wnnm": "#E69F00"},
    **{"mlp": "#A6761D", "csf": "#66A61E", "tnrd": "#7570B3", "dncnn": "#1B9E77"},
    **{"dncnn_25": "#666666", "noisy": "#737373"},
    **{"csf_authors": "#1F78B4", "tnrd_authors": "#B15928", "dncnn_authors": "#E31A1C"},
}
TITLES = {name: entry["title"] for name, entry in (DENOISERS | INPAINTERS).items()} | {
    **{"on_demand": "all-rounder (ours)", "fixated": "fixated at 25 (ours)"},
    **{"noisy": "noisy, not restored", "not_restored": "Not restored: the grey filling"},
}
SHORT = TITLES | {
    **{"nlm": "NLM", "tv": "TV", "wavelet": "Wavelets", "on_demand": "ours", "fixated": "ours, 25"},
    **{name: f"{TITLES[name].split(', retrained')[0]}, retrained" for name in LEARNED},
    **{"noisy": "noisy"},
}
PUBLISHED = {"mlp": "MLP", "csf": "CSF", "tnrd": "TNRD"}  # the paper's own


# Table 3


def images_or_demo(name: str) -> list[tuple[str, np.ndarray]]:
    """The photographs to denoise; the demo's, with a line that says so, where the set is not here."""
    try:
        return photographs(name)
    except DataError as error:
        print(f"Pictures below are the demo photographs: {error}")
        return photographs("demo")


def systems_in(table: pd.DataFrame) -> list[str]:
    """The systems of a table in the order they were asked for."""
    return list(dict.fromkeys(table.system))


def noted(system: str, note: str) -> str:
    """The title of a system, and why it has no number."""
    return f"{LEARNED.get(system, [TITLES[system]])[0]} ({note})" if note else TITLES[system]
