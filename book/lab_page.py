"""What the lab page loads, and the still pictures that stand there without it.

Everything reaches the browser by <script>, so that the page works from file:// too: our modules as one script, the
runtime (onnxruntime-web, from npm) and the networks as gzip in base64, a network a file.
"""

import base64
import gzip
import io
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pooch
import tables
import torch
from export import to_onnx
from matplotlib.colors import to_hex
from measured import DATASET, NOT_MEASURED, PAIR, PROFILE, ROOT, SEEDS
from PIL import Image, ImageOps
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import inpaint_biharmonic

from companion import judge, published
from companion.data import sets
from companion.disk.files import write_atomically
from companion.pages import dose, table1
from companion.restore.chosen import PHOTOGRAPHS as FOR_PHOTOGRAPHS
from companion.restore.pretrained import load_for_photographs, restore
from companion.runs import catalogue
from companion.show import figures
from companion.training import results
from companion.words import signed
from odl import paper
from odl.corruptions import FILL, TASKS
from odl.crops import grey
from odl.experiment import Experiment
from odl.windows import inpaint_image, restore_image

LAB = ROOT / "book" / "lab"
NPM = ROOT / "_build" / "npm"  # what was fetched, for the next build
MODULES = ["rules", "corrupt", "pictures", "biharmonic", "networks", "photographs"]  # in the order of imports
MODULES += ["predict", "fill", "fixation", "allocation", "inpaint", "seeds", "main"]
FIXATION = ("on_demand", "rigid_joint", *published.FIXATED)  # what the pictures compare
# And what the fixation lab offers; their networks ship, in data/models.
OFFERED = {"on_demand": "On-demand", "rigid_joint": "Equal shares"} | published.FIXATED
LONGER_SIDE = 256  # pixels of a photograph that is drawn on
PHOTOGRAPHS = {  # file in scikit-image: title, and the square (left, top, side) that the fixation lab shows
    "chelsea.png": ("Chelsea the cat, by Stefan van der Walt (CC0)", (75, 10, 290)),
    "coffee.png": ("A cup of coffee, by Rachel Michetti (CC0)", (130, 20, 340)),
    "astronaut.png": ("Eileen Collins, by NASA (public domain)", (110, 0, 230)),
    "rocket.jpg": ("A rocket launch, by SpaceX (CC0)", (200, 60, 300)),
}


def write(folder: Path) -> str | None:
    """Write the lab's files; returns why there is no runtime, without which networks do not run, None where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(LAB / "lab.css", folder)
    # One classic script: browsers load no ES module from file://.
    script = "\n".join((LAB / f"{name}.js").read_text(encoding="utf-8") for name in MODULES)
    script = re.sub(r'(?m)^import \{[^}]*\} from "\./\w+\.js";\n', "", script)
    script = re.sub(r"(?m)^export (?=async|function|const|class)", "", script)
    (folder / "lab.js").write_text(f'(() => {{\n"use strict";\n{script}}})();\n', encoding="utf-8")
    for task in TASKS:
        for schedule, network in networks(task).items():
            name = f"{task}-{schedule}"
            (folder / f"{name}.js").write_text(packed({name: to_onnx(network)}), encoding="utf-8")
    name, newer = f"inpaint-{FOR_PHOTOGRAPHS}", load_for_photographs("inpaint")
    (folder / f"{name}.js").write_text(packed({name: to_onnx(newer, LONGER_SIDE)}), encoding="utf-8")
    runtime, missing = vendored("onnxruntime-web")
    if not missing:
        (folder / "runtime.js").write_text(packed({path.name: path.read_bytes() for path in runtime}), encoding="utf-8")
    (folder / "data.js").write_text(data(missing), encoding="utf-8")
    return missing


def data(missing: str | None) -> str:
    """Return data.js: tasks, photographs and measured runs; `files` is what further scripts fill."""
    tasks = {name: {key: facts[key] for key in ("levels", "easy", "hard")} for name, facts in paper.TASKS.items()}
    for name, facts in tasks.items():
        facts["channels"] = TASKS[name].channels
    schedules = {name: {"title": title, "colour": figures.COLOURS[name]} for name, title in OFFERED.items()}
    photographs = [
        {"title": title, "small": address(square(name), "PNG"), "large": address(reduced(name), "JPEG", quality=92)}
        for name, (title, _) in PHOTOGRAPHS.items()
    ]
    evidence = dose.load_runs(catalogue.every_k(PROFILE, DATASET, SEEDS))
    lab = {"missing": missing, "tasks": tasks, "schedules": schedules, "photographs": photographs, "runs": runs()}
    lab |= {"seeds": seeds(evidence), "colours": list(map(to_hex, figures.LEVEL_COLOURS))}
    every_k = sorted((0, 1, *catalogue.DOSES))
    lab["margins"] = {task: {k: margin(evidence, task, dose.NAMES[k]) for k in every_k} for task in TASKS}
    home = 'odlLab.home = document.currentScript.src.replace(/[^/]*$/, "");'
    return f"globalThis.odlLab = {json.dumps(lab | {'files': {}})};\n{home}\n"


def runs() -> dict:
    """Return task → k of 1/P^k → the run where it is measured, of the first seed and levels 1 to 5.

    After each epoch `psnr` (dB) on the validation images; of each epoch `allocation` (% of its images) and `dose`.
    """
    found, decimals = {}, {"psnr": 4, "allocation": 2, "dose": 6}
    for e in catalogue.every_k(PROFILE, DATASET, [0]):
        if run := results.load_result(e):
            shown = {key: np.round([epoch[key] for epoch in run.history], n).tolist() for key, n in decimals.items()}
            found.setdefault(e.task, {})[int(e.sharpness) if e.schedule == "on_demand" else 0] = shown
    return found


def seeds(evidence: judge.Evidence) -> list[dict]:
    """Return per task and seed what `table1.papers_test` says of the close contest; `verdict`: all seeds together."""
    verdicts = {judge.plain(t): tables.word_of(judge.gaps(evidence.runs, t, *PAIR)) for t in TASKS}
    found = table1.papers_test(evidence)[["task", "seed", "ahead", "p"]]
    return [row | {"verdict": verdicts[row["task"]]} for row in found.to_dict("records")]


def margin(evidence: judge.Evidence, task: str, schedule: str) -> str:
    """Say how far a schedule is ahead of equal shares, and the chapters' word for that."""
    margins = judge.gaps(evidence.runs, task, schedule, "rigid_joint")
    return f"{signed(np.mean(margins))} against equal shares: {tables.word_of(margins)}" if margins else NOT_MEASURED


def reference(task: str, schedule: str) -> Experiment:
    return Experiment.of(task, DATASET, schedule, profile=PROFILE)


# Photographs


@cache
def photograph(name: str) -> Image.Image:
    return Image.open(sets.find("demo") / name).convert("RGB")


def square(name: str, pixels: int = 64) -> Image.Image:
    """Return a square part of a photograph, reduced to so many pixels a side."""
    left, top, side = PHOTOGRAPHS[name][1]
    return photograph(name).crop((left, top, left + side, top + side)).resize((pixels,) * 2, Image.Resampling.LANCZOS)


def as_input(name: str, side: int = 64) -> torch.Tensor:
    """Return a photograph's square as networks take it: (1, 3, side, side) in [-1, 1]."""
    return torch.from_numpy(np.array(square(name, side))).permute(2, 0, 1).unsqueeze(0) / 127.5 - 1


def reduced(name: str) -> Image.Image:
    """Return a whole photograph, its longer side `LONGER_SIDE` pixels."""
    return ImageOps.contain(photograph(name), (LONGER_SIDE,) * 2, Image.Resampling.LANCZOS)


def address(image: Image.Image, kind: str, **options) -> str:
    """Return an image as a data: URL."""
    content = io.BytesIO()
    image.save(content, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(content.getvalue()).decode()}"


# Networks and runtime


def networks(task: str) -> dict:
    """Return schedule → network, of one task."""
    return {schedule: results.load_network(reference(task, schedule)) for schedule in OFFERED}


def vendored(name: str) -> tuple[list[Path], str | None]:
    """Return an npm package's files by book/lab/package.json, and in a line why they could not be had, or None."""
    package = json.loads((LAB / "package.json").read_text(encoding="utf-8"))
    wanted, version = package["vendored"][name], package["dependencies"][name]
    if others(wanted) and (failed := fetch(f"{name}@{version}", list(wanted))):
        return [], failed
    if other := others(wanted):
        return [], f"{other[0]} of {name} {version} is not the file that book/lab/package.json names"
    return [NPM / path for path in wanted], None


def others(wanted: dict[str, str]) -> list[str]:
    """Return, of files with their SHA-256, those that are not here, or are others."""
    return [n for n, known in wanted.items() if not (NPM / n).exists() or pooch.file_hash(NPM / n) != known]


def fetch(package: str, files: list[str]) -> str | None:
    """Fetch a package by npm and keep some of its files; returns in a line why it could not be had."""
    npm = shutil.which("npm")
    if not npm:
        return "npm, which fetches the runtime when the book is built, was not installed"
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", package, "--pack-destination", folder, "--fetch-retries", "1", "--silent"]
        try:
            subprocess.run(command, capture_output=True, timeout=300, cwd=folder, check=True)
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
                for name in files:
                    write_atomically(NPM / name, archive.extractfile(f"package/{name}").read())
        except OSError as error:
            return f"{NPM} could not be written ({error.strerror or error}) when the book was built"
        except (subprocess.SubprocessError, StopIteration):
            return f"npm could not fetch {package} within five minutes when the book was built"
    return None


def packed(files: dict[str, bytes]) -> str:
    """Return a script that adds files, gzip in base64, to `odlLab.files`."""
    text = {name: base64.b64encode(gzip.compress(content, 9, mtime=0)).decode() for name, content in files.items()}
    return f"Object.assign(odlLab.files, {json.dumps(text)});\n"


# The still pictures


def restorations(name: str, task: str, severity: float, shown=FIXATION):
    """Draw a photograph, the same damaged, and what networks make of it by overlapping windows, with PSNR in dB."""
    x = as_input(name, 192)
    x = grey(x) if TASKS[task].channels == 1 else x
    y = TASKS[task].corrupt_between(x, severity, severity, torch.Generator().manual_seed(5))
    image, damaged = (figures.to_picture(planes[0]) for planes in (x, y))
    trained = networks(task)
    pictures = {"photograph": image, "damaged": damaged}
    pictures |= {OFFERED[key].lower(): restore_image(trained[key], damaged, 8) for key in shown}
    scores = [f"{peak_signal_noise_ratio(image, x, data_range=1):.1f} dB" for x in [*pictures.values()][1:]]
    return figures.picture_grid([list(pictures.values())], list(pictures), None, [["", *scores]], size=1.28)


def still_seeds(seeds=tuple(SEEDS)):
    """Draw for each task a dot for each seed's pair of networks, and the largest p of the paper's test of them."""
    evidence = dose.load_runs(catalogue.every_k(PROFILE, DATASET, seeds))
    found, titles = table1.papers_test(evidence), [judge.plain(task) for task in TASKS]
    figure, axis = plt.subplots(figsize=(8.6, 2.6), layout="constrained")
    axis.axvline(0, color="0.3", linewidth=1.5)
    axis.scatter(found.ahead, found.task.map(titles.index), c=np.where(found.ahead < 0, "#D55E00", "#0072B2"), s=70)
    for row, task in enumerate(titles):
        p = found.p[found.task == task].max()
        axis.text(1.01, row, f"largest p {p:.0e}" if p < 1 else "", transform=axis.get_yaxis_transform(), va="center")
    axis.set(yticks=range(len(titles)), yticklabels=titles, ylim=(len(titles) - 0.5, -0.5))
    axis.set_xlim(*np.array([-1.15, 1.15]) * max(found.ahead.abs().max(), 0.01) if len(found) else (-1, 1))
    axis.set_xlabel("← equal shares ahead     PSNR of two networks of one seed (dB)     on-demand ahead →")
    return figure


def still_allocation():
    """Draw for every k what the last epoch of its inpainting run gave each level, and the PSNRs before it."""
    measured = dict(sorted(runs().get("inpaint", {}).items()))
    given = {f"k = {figures.minus(k)}": np.round(run["psnr"][-2], 1) for k, run in measured.items()}
    figure, axes = figures.share_panels(given or {judge.MISSING: []}, (8.6, 2.6))
    for axis, run in zip(axes, measured.values(), strict=False):
        bars = axis.bar(range(1, paper.N_LEVELS + 1), run["allocation"][-1], color=figures.LEVEL_COLOURS)
        axis.bar_label(bars, fmt="%.1f", fontsize=9)
    axes[0].set_ylabel("images of 100")
    return figure


def still_inpaint():
    """Draw a photograph, the same drawn over, and filled by two networks and without one, with PSNR in the damage."""
    image = np.asarray(reduced("chelsea.png"), np.float32) / 255
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    mask = abs(rows - 120 - 20 * np.sin(columns / 25)) < 4
    mask |= (rows - 20) ** 2 + (columns - 150) ** 2 < 12**2
    damaged = np.where(mask[..., None], np.float32(FILL) / 255, image)
    drawn = np.where(mask[..., None], np.float32([0.9, 0, 0.47]), image)
    filled = {"newer network": restore(image, "inpaint", mask, network=FOR_PHOTOGRAPHS)}
    filled["the paper's"] = inpaint_image(networks("inpaint")["on_demand"], image, mask)
    filled["biharmonic"] = inpaint_biharmonic(image, mask, channel_axis=-1)
    inside = [peak_signal_noise_ratio(image[mask], x[mask], data_range=1) for x in (damaged, *filled.values())]
    scores = [f"{score:.1f} dB inside" for score in inside]
    titles, pictures = ["photograph", "drawn over", *filled], [image, drawn, *filled.values()]
    return figures.picture_grid([pictures], titles, None, [["", f"fill colour: {scores[0]}", *scores[1:]]], size=1.7)
