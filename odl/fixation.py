"""The fixation problem: PSNR over the whole spectrum of severities (Sec. 4 and 6.4, Supp. C and D)."""

import hashlib

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from odl import data, paper, results, store
from odl.blocks import hole_error
from odl.corruptions import TASKS
from odl.evaluate import MISSING, compare, images_of, psnr, squared_error, task_of
from odl.experiment import Experiment

SPECTRUM = {  # severities at which a curve is measured, the fixated ones and their neighbours among them
    "inpaint": (*range(1, 9), *range(10, 29, 2), *range(29, 37)),
    "interpolate": tuple(np.arange(0, 91, 2.5)),
    "deblur": tuple(np.arange(0, 6.1, 0.25)),
    "denoise": tuple(np.arange(0, 121, 5)),
}
IMAGES = 64  # per point: enough, because every point and every model sees the same crops
PSNRS = ["psnr", "psnr_input", "psnr_kept", "psnr_hole"]  # of what, as in an evaluation
COLUMNS = ["run", "schedule", "severity", "centred", *PSNRS, "source"]

EXAMPLES = {  # what the model of paper.FIGURE2 is shown there: its own severity, then others, as in corruptions.py
    "inpaint": {
        "32×32, centred\n(trained)": (32, 16, 16),
        "32×32,\nshifted by 8": (32, 24, 8),
        "10×10,\noff centre": (10, 12, 42),
    },
    "interpolate": {"80 % deleted\n(trained)": (80,), "10 % deleted": (10,)},
    "deblur": {"σ = 5\n(trained)": (5, 5, 0), "σ = 1": (1, 1, 0)},
    "denoise": {"σ = 10\n(trained)": (10,), "σ = 50": (50,)},
}


def spectrum(experiments: list[Experiment], device="cpu") -> pd.DataFrame:
    """PSNR against severity of every measured run: rows with `COLUMNS`, all PSNRs in dB.

    Loaded where it is stored, else measured with the networks and stored; where the weights or the photographs are
    not here, the means per level of the run's JSON, at the middle of each level (source `levels`).
    """
    first = experiments[0]
    key = ("fixation_spectrum", first.profile, first.dataset, first.task)
    path, frames = results.table_path(*key), [pd.DataFrame(columns=COLUMNS)]
    stored = pd.read_csv(store.used(path)) if path.exists() else frames[0]
    for experiment in experiments:
        if results.load(experiment):
            rows = stored[stored.run == fingerprint(experiment)]
            frames.append(measure_or_levels(experiment, device) if rows.empty else rows)
    frame = pd.concat(frames[1:] or frames, ignore_index=True)
    live = frame[frame.source == "network"]
    if len(live):
        results.write_table(live, *key)
    return frame


def fingerprint(experiment: Experiment) -> str:
    """Of the run's JSON: a curve stored beside another measurement of the same name is not this run's."""
    return hashlib.sha256(results.path_of(experiment).read_bytes()).hexdigest()[:12]


def measure_or_levels(experiment: Experiment, device) -> pd.DataFrame:
    """The curve from the network, or what the JSON holds."""
    try:
        rows = measure(experiment, results.network_of(experiment).to(device), device)
        source = "network"
    except (FileNotFoundError, data.DataError):
        rows, source = at_levels(experiment), "levels"
    frame = pd.DataFrame(rows, columns=["severity", "centred", *PSNRS])
    known = {"run": fingerprint(experiment), "schedule": experiment.schedule, "source": source}
    return frame.assign(**known)[COLUMNS].round(dict.fromkeys(PSNRS, 3))


def measure(experiment: Experiment, network, device) -> list[tuple]:
    """Rows (severity, centred, *PSNRS); both blur widths equal; squares at random places, then centred ones."""
    task = task_of(experiment)
    n = min(experiment.test_images, IMAGES)
    x = images_of(experiment, data.load(experiment.dataset, "test"), n, "test").to(device)
    places = (False, True) if task.name == "inpaint" else (False,)
    points = [(severity, centred) for centred in places for severity in SPECTRUM[task.name]]
    rows = []
    for severity, centred in tqdm(points, desc=f"spectrum of {experiment.schedule}", leave=False):
        generator = torch.Generator(device).manual_seed(data.seed_of("spectrum", severity))
        y = task.corrupt_between(x, severity, severity, generator, centred)
        shown = compare({"x_hat": network}, x, y)
        scores = [shown[name][1].mean().item() for name in ("x_hat", "corrupted")]
        rows.append((float(severity), centred, *scores, *of_missing(task, shown["x_hat"][0], x, y)))
    return rows


def of_missing(task, x_hat, x, y) -> tuple[float, float]:
    """PSNR of x_hat with the known pixels put back, and inside the missing ones; NaN where a task has none."""
    if task.name not in MISSING:
        return float("nan"), float("nan")
    known, x_hat = (y == x).all(1, keepdim=True), x_hat.clamp(-1, 1)
    errors = squared_error(torch.where(known, x, x_hat), x), hole_error(x_hat, x, ~known)
    return tuple(psnr(error).nanmean().item() for error in errors)


def at_levels(experiment: Experiment) -> list[tuple]:
    """Rows as of `measure` from the JSON: the middle of each level, and the two fixated severities."""
    known, mean = paper.TASKS[experiment.task], results.load(experiment).evaluation.groupby("level")[PSNRS].mean()
    rows = [(sum(bounds) / 2, False, *mean.loc[str(level)]) for level, bounds in enumerate(known["levels"], 1)]
    rows += [(float(known[name]), experiment.task == "inpaint", *mean.loc[name]) for name in ("easy", "hard")]
    return sorted(rows)


def examples(task: str, networks: dict, x) -> tuple[list, list, list, list]:
    """Fig. 2: images x (n, channels, 64, 64) at a fixated model's severity and beside it, corrupted and restored.

    Rows of images, titles of columns, labels and scores of rows, as `plots.picture_grid` takes them.
    """
    titles, pictures, scores = paper.FIXATED | paper.SCHEDULES, {}, {}
    for k, image in enumerate(x):
        for j, severity in enumerate(EXAMPLES[task].values()):
            generator = torch.Generator().manual_seed(10 * k + j)
            y = TASKS[task].apply(image[None], torch.tensor([severity], dtype=torch.float32), generator)
            for name, (picture, score) in compare(networks, image[None], y).items():
                pictures.setdefault(name, []).append(picture[0])
                scores.setdefault(name, []).append(f"{score.item():.1f} dB")
    labels = [titles.get(name, name).replace(" Model ", "\nmodel ").replace(" L", "\nl") for name in pictures]
    return list(pictures.values()), list(EXAMPLES[task]) * len(x), labels, list(scores.values())
