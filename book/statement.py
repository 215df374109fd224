"""What the reproducibility statement takes from the results files: a function for each table or sentence."""

import json
from collections import Counter
from statistics import median

from snippets import DATASET, NOT_MEASURED, PROFILE, SEEDS, duration, markdown, plain

from companion import scorecard
from odl import paper
from odl.experiment import PROFILES
from odl.machine import store
from odl.machine.files import models, results

NAMES = {
    "width": "Width f of the network", "epochs": "Epochs", "iterations": "Steps an epoch",
    "batch_size": "Images a batch", "learning_rate": "Learning rate of Adam",
    "decay": "Share of training in which the rate falls to 0", "pool_images": "Pool of hard mining",
    "validation_images": "Validation crops a level and epoch", "test_images": "Test crops a level and trial",
    "trials": "Trials",
}  # fmt: skip


def files() -> list[dict]:
    """Of every results file: its experiment and provenance, path, whether a network was trained for it, and seconds."""
    found = []
    for path in sorted((results() / PROFILE).glob("**/*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        timed = content["provenance"].get("seconds")
        each = timed.values() if timed else content["evaluation"].get("seconds", [])  # of a system's photographs
        seconds = sum(each) - (timed or {}).get("train_core", 0)
        facts = {"path": path, "trained": "train" in (timed or {}), "seconds": seconds}
        found.append(content["experiment"] | content["provenance"] | facts)
    return found


def runs() -> list[dict]:
    return [file for file in files() if file["trained"]]


def listed(values) -> str:
    """`a, b and c`, each once, the most frequent first."""
    *most, last = [str(value) for value, _ in Counter(values).most_common()]
    return f"{', '.join(most)} and {last}" if most else last


def grouped(found: list[dict], key) -> list[tuple]:
    """(key, files) of each group, in the order of the keys."""
    groups = {}
    for file in found:
        groups.setdefault(key(file), []).append(file)
    return sorted(groups.items())


def compute() -> str:
    """Hours per group of results files and in all, with the devices."""
    found = files()
    if not found:
        return f"This is {NOT_MEASURED}."
    for file in found:
        store.used(file["path"])

    def kind(file):
        folder = file["path"].parent.relative_to(results() / PROFILE).as_posix()
        return f"`{folder}`", "runs, trained and tested" if file["trained"] else "measurements of what is trained"

    rows = [[folder, len(part), what, *spent(part)] for (folder, what), part in grouped(found, kind)]
    rows.append(["**all**", len(found), "", *spent(found)])
    precision = [file["precision"] for file in found if "precision" in file]
    text = f"{markdown(['Folder', 'Files', 'What', 'Median of one', 'All'], rows)}\n\n"
    text += f"Device: {listed(file['device'] for file in found)}."
    return text + (f" Precision of products: {listed(precision)}." if precision else "")


def spent(part: list[dict]) -> list[str]:
    seconds = [file["seconds"] for file in part]
    return [duration(median(seconds)), duration(sum(seconds))]


def hyperparameters() -> str:
    """Every number of the runs behind the book, and the paper's."""
    found, papers = runs(), {"batch_size": paper.BATCH_SIZE} | PROFILES["paper"]
    rows = [[title, listed(f[name] for f in found) if found else "–", papers[name]] for name, title in NAMES.items()]
    return markdown(["", "Here", "Paper"], rows)


def splits() -> str:
    """How many images each data set gives to training, and how many crops to validation and tests."""
    rows = []
    for (name, images), part in grouped(runs(), lambda file: (f"`{file['dataset']}`", file["train_images"])):
        crops = [listed(file[key] for file in part) for key in ("validation_images", "test_images")]
        rows.append([name, images, *crops, listed(file["data_sha256"][:12] for file in part), len(part)])
    header = ["Data set", "Training images", "Validation crops a level", "Test crops a level", "SHA-256 of the pack"]
    return markdown([*header, "Runs"], rows) if rows else f"This is {NOT_MEASURED}."


def seeds() -> str:
    """Which seeds are measured, per task."""
    rows = []
    for task in paper.TASKS:
        counts = sorted(Counter(file["seed"] for file in runs() if file["task"] == task).items())
        rows.append([plain(task).capitalize(), ", ".join(f"seed {seed}: {n} runs" for seed, n in counts) or "–"])
    return markdown(["Task", "Measured"], rows)


def versions() -> str:
    """The versions and the commits that the results files name."""
    found = files()
    names = sorted({name for file in found for name in file["versions"]})
    known = [f"{n} {listed(f['versions'][n] for f in found if n in f['versions'])}" for n in names]
    dirty = sum(file["commit"].endswith("-dirty") for file in found)
    return (
        f"Versions in the {len(found)} files: {'; '.join(known)}.\n"
        f"{len(found) - dirty} were measured on a committed state of the code, and {dirty} on a commit with changes, "
        "which their commit says by the ending `-dirty`."
    )


def verdicts() -> str:
    """The count of verdicts."""
    return scorecard.counted(scorecard.scorecard(PROFILE, DATASET, list(SEEDS)))


def weights() -> str:
    """The networks that ship."""
    found = sorted(models().glob("*.safetensors"))
    if not found:
        return "No weights ship yet: `python -m companion reproduce` trains the networks, and keeps them in `runs/`."
    size = sum(path.stat().st_size for path in found) / 1e6
    return f"{len(found)} networks in half precision, {size:.0f} MB in all, with their SHA-256 in a manifest."


SNIPPETS = {
    "statement-compute": compute, "statement-hyperparameters": hyperparameters, "statement-splits": splits,
    "statement-seeds": seeds, "statement-versions": versions, "statement-verdicts": verdicts,
    "statement-weights": weights,
}  # fmt: skip
