"""The tables of the pages behind the chapters: method, scale, data, reproducibility."""

import re
from functools import cache

import pandas as pd
import torch
from measured import PROFILE, duration, listed, markdown
from torch.utils.flop_counter import FlopCounterMode

from companion import published
from companion.data import sets
from companion.disk import files
from companion.training import results
from companion.training.measurement import as_result
from companion.words import number
from odl import paper
from odl.crops import CROP
from odl.experiment import PROFILES
from odl.network import EncoderDecoder

# Tasks, and the network, counted on the network itself


def tasks() -> str:
    """Return the table of the tasks: levels 1 to 6, and the severities of the fixated models."""
    rows = [
        [facts["title"], facts["severity"], *(f"{a}–{b}" for a, b in facts["levels"]), facts["easy"], facts["hard"]]
        for facts in paper.AS_SHIPPED.values()
    ]
    header = ["Task", "Severity", *(f"Level {n}" for n in range(1, 7)), "Fixated on easy", "Fixated on hard"]
    return markdown(header, rows)


def flops(amount: float) -> str:
    """Return `1.23 GFLOP`: in the largest unit that the amount reaches."""
    units = {"PFLOP": 1e15, "TFLOP": 1e12, "GFLOP": 1e9, "MFLOP": 1e6}
    unit = next(unit for unit, length in units.items() if amount >= length or unit == "MFLOP")
    return f"{amount / units[unit]:.3g} {unit}"


@cache
def layers(channels: int, width: int) -> list[tuple[str, int, int, int, int]]:
    """Return (name, output channels, output side, parameters, FLOP for an image) of each layer, with its BatchNorm."""
    with torch.device("meta"):
        network, x = EncoderDecoder(channels, width), torch.zeros(1, channels, CROP, CROP)
    parts = {f"down {i + 1}": network.encoder[3 * i : 3 * i + 3] for i in range(4)}
    parts |= {"channel-wise": network.bottleneck}
    parts |= {f"up {i + 1}": network.decoder[3 * i : 3 * i + 3] for i in range(4)}
    found = []
    for name, part in parts.items():
        with FlopCounterMode(display=False) as counted:
            x = part(x)
        parameters = sum(p.numel() for p in part.parameters())
        found.append((name, *x.shape[1:3], parameters, counted.get_total_flops()))
    return found


def parameter_counts() -> str:
    colour, grey = layers(3, 64), layers(1, 64)
    rows = [
        [name, f"{c} × {side} × {side}", f"{count:,}", f"{other:,}", flops(flop)]
        for (name, c, side, count, flop), (*_, other, _) in zip(colour, grey, strict=True)
    ]
    totals = [f"{sum(layer[3] for layer in found):,}" for found in (colour, grey)]
    totals.append(flops(sum(layer[4] for layer in colour)))
    rows.append(["**all**", "", *(f"**{total}**" for total in totals)])
    return markdown(["Layer", "Output (RGB)", "Parameters, RGB", "Parameters, grey", "Arithmetic, one image"], rows)


# Profiles and cost


@cache
def step_flop(channels: int, width: int, batch: int) -> int:
    """Return the FLOP of a training step, forward and backward, counted on the layers' shapes."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        EncoderDecoder(channels, width)(torch.zeros(batch, channels, CROP, CROP)).sum().backward()
    return counter.get_total_flops()


def run_flop(p: dict) -> int:
    """Return the FLOP of a whole training run, by the numbers of a profile or of an experiment."""
    channels = 1 if p.get("task") == "denoise" else 3
    return p["epochs"] * p["iterations"] * step_flop(channels, p["width"], p["batch_size"])


def rate(profile: dict) -> str:
    """Return the learning rate and how it ends."""
    falling = f", falling linearly to 0 over the last {profile['decay']:.0%} of training" if profile["decay"] else ""
    return f"{profile['learning_rate']:g}{falling}"


MEANT_FOR = {
    "smoke": "the tests: every notebook in seconds",
    "demo": "a laptop: one task's seven schedules in minutes",
    "reference": "the numbers of this book",
    "gpu": "many runs in half an hour of one GPU",
    "paper": "the paper's full protocol, on a GPU",
}


def profiles_table() -> str:
    rows = []
    for name, p in PROFILES.items():
        steps, evaluation = f"{p['epochs']:,} × {p['iterations']:,}", f"{p['test_images']:,} × {p['trials']}"
        cells = p["width"], p["batch_size"], steps, rate(p), evaluation, flops(run_flop(p)), MEANT_FOR[name]
        rows.append([f"`{name}`", *cells])
    header = ["Profile", "Width f", "Images a batch", "Epochs × steps", "Learning rate"]
    return markdown([*header, "Test crops × trials", "One run", "Meant for"], rows)


GRID = 2 * len(paper.AS_SHIPPED) * (len(published.SEVEN) + len(published.FIXATED))  # the paper's runs on two data sets


def cost() -> str:
    """Return how long the paper's protocol takes at several training speeds."""
    run = run_flop(PROFILES["paper"])
    rows = [[f"{t:g} TFLOP/s", duration(run / t / 1e12), duration(GRID * run / t / 1e12)] for t in (1, 10, 50, 200)]
    return markdown(["Sustained training speed", "One run", f"All {GRID} runs"], rows)


# Data


TERMS = {
    "demo": "ship with scikit-image, whose docstrings give their origins; read on this machine, never copied here",
    "bsds500": "non-commercial research and education",
    "celeba": "non-commercial research, no redistribution of any portion",
    "celeba10k": "as celeba, of which it is a portion",
    "sun397": "non-commercial research",
    "db11": "no licence stated: never redistribute",
}


def data_table() -> str:
    rows = []
    for name, entry in sets.DATASETS.items():
        url = entry.get("url", "").removesuffix("/")
        url = re.sub(r"raw\.githubusercontent\.com/([^/]+/[^/]+)/", r"github.com/\1/tree/", url)
        where = entry.get("where") or (f"<{url}>" if url else "inside the package scikit-image")
        where = where if "<" in where else where.replace("/", "/<wbr>")  # a narrow page breaks it there
        rows.append([f"`{name}`", entry["title"], where, entry["size"], TERMS[name]])
    return markdown(["Name", "What", "Where from", "Size", "Terms"], rows)


def checksums() -> str:
    rows = []
    for name, entry in sets.DATASETS.items():
        if "md5" in entry:
            rows.append([f"`{entry['archive']}`", f"MD5 `{entry['md5']}`"])
        if "sha256" in entry:
            rows.append([f"`{name}`: hashes and names of all files", f"SHA-256 `{entry['sha256']}`"])
    return markdown(["File", "Checksum"], rows)


CARDS = """A number is what a network adds to the PSNR of the damaged image, in dB, on the test images of its set.
Where it is bold, the network makes the image worse.
Every pixel counts as the network leaves it; `odl.restore` keeps known pixels as they are.
A fixated network has trained on one severity alone, which on some tasks lies in level 6.
Without a row are the opponents of Table 3, and the networks for photographs, which have cards of their own."""


def model_cards() -> str:
    """Return a table per data set, a row per network that ships: its training, and on each level what it changes (dB).

    Raises FileNotFoundError where none has a result.
    """
    cards, levels = {}, [str(level) for level in range(1, paper.N_LEVELS + 2)]
    for path in sorted((files.results() / PROFILE).glob("*/*/*.json")):
        run_id = path.relative_to(files.results()).as_posix().removesuffix(".json")
        if not (files.shipped() / results.shipped_name(run_id)).exists():
            continue
        run = as_result(files.unseal(path), path)
        gains = (run.evaluation.psnr - run.evaluation.psnr_input).groupby(run.evaluation.level).mean()
        cells = [f"**{number(gain)}**" if gain < 0 else number(gain) for gain in gains.reindex(levels)]
        e, images = run.experiment, run.provenance["train_images"]
        name, steps = f"`{e['task']}/{path.stem}`", f"{e['epochs'] * e['iterations']:,}"
        cards.setdefault((e["dataset"], images), []).append([name, steps, *cells])
    header = ["Network", "Steps", *(f"Level {level}" for level in levels)]
    tables = [
        f"Trained on {images:,} images of `{name}`, under its terms: {TERMS[sets.parse(name)[0]]}.\n\n"
        + markdown(header, rows)
        for (name, images), rows in cards.items()
    ]
    if not tables:
        raise FileNotFoundError(f"results of the networks in {files.shipped()}")
    return "\n\n".join([CARDS, *tables])


# The reproducibility statement, from every results file of the book's profile


def results_files() -> pd.DataFrame:
    """Return a row per results file: experiment, provenance, path, whether a network was trained for it, and seconds.

    Raises FileNotFoundError where there is none.
    """
    found = []
    for path in sorted((files.results() / PROFILE).glob("**/*.json")):
        if path.parent.name == "tables":  # verdicts on them
            continue
        content = files.unseal(path)
        timed = content["provenance"].get("seconds")
        each = timed.values() if timed else content["evaluation"].get("seconds", [])  # of a system's photographs
        seconds = sum(each) - (timed or {}).get("train_core", 0)
        facts = {"path": path, "trained": "train" in (timed or {}), "seconds": seconds}
        found.append(content["experiment"] | content["provenance"] | facts)
    if not found:
        raise FileNotFoundError(files.results() / PROFILE)
    table = pd.DataFrame(found, dtype=object)  # whole numbers stay whole where a file lacks them
    return table.astype({"seconds": float, "trained": bool})


def runs() -> pd.DataFrame:
    """Return those rows of `results_files` whose network was trained. Raises FileNotFoundError where there is none."""
    found = results_files().query("trained")
    if found.empty:
        raise FileNotFoundError(f"a trained network's result in {files.results() / PROFILE}")
    return found


def compute() -> str:
    """Return the time per group of results files and in all, with the devices and the precisions."""
    found = results_files()
    folder = found.path.map(lambda path: path.parent.relative_to(files.results() / PROFILE).as_posix())
    what = found.trained.map({True: "runs, trained and tested", False: "measurements"})
    spent = found.seconds.groupby([folder, what]).agg(["count", "median", "sum"])
    rows = [[f"`{place}`", n, kind, *map(duration, times)] for (place, kind), n, *times in spent.itertuples()]
    rows.append(["**all**", len(found), "", duration(found.seconds.median()), duration(found.seconds.sum())])
    table = markdown(["Folder", "Files", "What", "Median of one", "All"], rows)
    devices = "; ".join(found.device.value_counts().index)
    return f"{table}\n\nDevices: {devices}. Precision of products: {listed(runs().precision)}."


def splits() -> str:
    """Return how many images each data set gives to training, and how many crops to validation and tests."""
    rows = []
    for (name, images), part in runs().groupby(["dataset", "train_images"]):
        crops = listed(part.validation_images), listed(part.test_images)
        rows.append([f"`{name}`", images, *crops, listed(part.data_sha256.str[:12]), len(part)])
    header = ["Data set", "Training images", "Validation crops a level", "Test crops a level", "SHA-256 of the pack"]
    return markdown([*header, "Runs"], rows)


def versions() -> str:
    found = pd.DataFrame([*results_files().versions])
    known = [f"{name} {listed(found[name].dropna())}" for name in sorted(found)]
    return f"Versions in the {len(found)} files: {'; '.join(known)}."


STATEMENT = {f"statement-{make.__name__}": make for make in (compute, splits, versions)}
