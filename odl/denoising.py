"""Table 3 and Figure 6: denoisers × photographs × noise, run or loaded (Sec. 6.7)."""

import hashlib
import platform
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
import torch

from odl import data, datasets, paper, paths, store
from odl.comparators import AUTHORS, DENOISERS, LEARNED, authors, available, trained
from odl.corruptions import add_noise
from odl.experiment import check_device, choice, number
from odl.restore import restore_image
from odl.results import commit, db11_experiment, device_name, network_of

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
    folder = datasets.find(dataset)
    splits = datasets.list_images(dataset, folder)
    if dataset == "db11":
        data.check_files(folder, datasets.DATASETS["db11"]["files"])
        return [(name.removesuffix(".png"), luminance(data.read_image(folder / name, 0))) for name in splits["test"]]
    count, side = CENTRES.get(profile, OTHER)
    names = (splits["test"] + splits["validation"])[:count]
    return [(name.rsplit(".", 1)[0], centre(luminance(data.read_image(folder / name, 0)), side)) for name in names]


def luminance(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) to (H, W) uint8."""
    return (image @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)


def centre(image: np.ndarray, side: int) -> np.ndarray:
    top, left = (max(0, length - side) // 2 for length in image.shape)
    return image[top : top + side, left : left + side]


def add_awgn(image: np.ndarray, name: str, sigma: float, clip: bool) -> np.ndarray:
    """An image (H, W) uint8 with noise of σ (of 255), the same for one name and σ: (H, W) float32, [0, 1] scale."""
    generator = torch.Generator().manual_seed(data.seed_of("photograph", name, f"{sigma:g}"))
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
    experiment = {"system": system, "dataset": datasets.slug(dataset), "sigma": float(sigma)}
    experiment |= {"clip": clip, "told": float(told or sigma) if known else None}
    if system in ours:
        experiment |= {"run": ours[system].asdict(), "stride": STRIDE}
    if system in trained.LEARNERS:
        experiment |= {"run": trained.run_of(system).asdict()}
    if system in AUTHORS:
        experiment |= {"weights_sha256": authors.digest(system)}
    return paths.results() / profile / experiment["dataset"] / f"{name_of(experiment)}.json", experiment


def our_systems(profile: str = "reference", dataset: str = "bsds500-native") -> dict:
    """The two of Table 3: the all-rounder and the model fixated at σ = 25."""
    names = {"on_demand": "on_demand", "fixated": "fixated_hard"}
    return {name: db11_experiment(schedule, profile, dataset) for name, schedule in names.items()}


def can_measure(system, ours, dataset) -> bool:
    """Whether the photographs and the system's package or weights are here."""
    try:
        datasets.find(dataset)
    except datasets.DataError:
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


def pictures(denoisers: dict, sigmas, name: str, image) -> pd.DataFrame:
    """One photograph through every denoiser, each told 25 whatever the noise, which is clipped (Supp. H).

    Rows (system, sigma, picture (H, W) on the [0, 1] scale, psnr in dB); the first of each σ is `noisy`.
    """
    rows = []
    for sigma in sigmas:
        y = add_awgn(image, name, sigma, True)
        answers = {"noisy": y}
        answers |= {system: np.clip(denoise(y, FIXED), 0, 1) for system, denoise in denoisers.items()}
        rows += [(s, sigma, x_hat, decibels(x_hat, image)) for s, x_hat in answers.items()]
    return pd.DataFrame(rows, columns=["system", "sigma", "picture", "psnr"])


# Tables


def table3(
    systems, sigma=25, dataset="db11", profile="reference", ours=None, measure=True, progress=None
) -> pd.DataFrame:
    """Table 3, a row per image × system × noise: image, system, sigma, clipped, psnr, published (dB), seconds, note.

    `published` is the paper's number for σ = 25, NaN for what the paper does not have.
    """
    ours = our_systems() if ours is None else ours
    for system in systems:
        check(system, sigma, None, ours)
    frames = []
    for i, (system, clip) in enumerate((s, c) for s in systems for c in (False, True)):
        show = progress and (lambda done, i=i: progress((i + done) / (2 * len(systems))))
        rows = run_or_load(system, sigma, clip, None, dataset, profile, ours, show, measure)
        rows = rows.assign(system=system, sigma=sigma, clipped=clip, note="")
        if rows.psnr.isna().all():
            rows["note"] = reason(system)
        frames.append(rows)
    table = pd.concat(frames, ignore_index=True)
    table["published"] = [published(row.image, row.system, sigma) for row in table.itertuples()]
    return table[["image", "system", "sigma", "clipped", "psnr", "published", "seconds", "note"]]


def reason(system: str) -> str:
    """Why a system has no number here."""
    if system in trained.LEARNERS and not available(system):
        return "not trained here"
    if system in AUTHORS and not available(system):
        return "no weights here"
    if system in DENOISERS and not available(system):
        return f"the package {DENOISERS[system]['package']} is not installed: published number only"
    return "not measured yet"


def published(image: str, system: str, sigma: float) -> float:
    return paper.TABLE3.get(image, {}).get(system, np.nan) if sigma == 25 else np.nan


def shown(systems) -> list[str]:
    """What a page shows: the noisy photographs, the systems, and those whose authors' weights the user has given."""
    return [NOISY, *systems, *authors.here()]


def curves_of(systems) -> list[tuple]:
    """The curves of Figure 6, (system, σ that it is told or None for the truth): as it is, then fixed at 25.

    The first is left out for the systems of SLOW, the second for those that are told nothing.
    """
    fixed = [(system, FIXED) for system in systems if DENOISERS.get(system, {}).get("knows_sigma")]
    return [(system, None) for system in systems if system not in SLOW] + fixed


def spectrum(
    curves, sigmas=SPECTRUM, dataset="db11", profile="reference", ours=None, measure=True, progress=None
) -> pd.DataFrame:
    """Figure 6, on clipped noise: system, told, sigma, psnr (dB, mean over the images).

    `curves` are systems, or pairs (system, σ that it is told whatever the noise).
    """
    pairs = [(curve, None) if isinstance(curve, str) else curve for curve in curves]
    todo = [(system, told, sigma) for system, told in pairs for sigma in sigmas]
    rows = []
    for i, (system, told, sigma) in enumerate(todo):
        show = progress and (lambda done, i=i: progress((i + done) / len(todo)))
        frame = run_or_load(system, sigma, True, told, dataset, profile, ours, show, measure)
        rows.append((system, told, sigma, frame.psnr.mean()))
    return pd.DataFrame(rows, columns=["system", "told", "sigma", "psnr"])


def absent(table: pd.DataFrame) -> list[str]:
    """What a table of `spectrum` lacks: a line per reason that names the systems and, of some, the noise levels."""
    lacking = {}
    for (system, told), part in table.groupby(["system", table.told.fillna(0)], sort=False):
        missing = part.sigma[part.psnr.isna()]
        title = LEARNED[system][0] if system in LEARNED else DENOISERS.get(system, {"title": system})["title"]
        title += f", told {told:g}" if told else ""
        some = f" (σ = {', '.join(f'{sigma:g}' for sigma in missing)})" if len(missing) < len(part) else ""
        if len(missing):
            lacking.setdefault(reason(system).split(":")[0], []).append(title + some)
    return [f"{why}: {'; '.join(titles)}" for why, titles in lacking.items()]
