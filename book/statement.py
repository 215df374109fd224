"""What the reproducibility statement takes from the results files: a function for each table or sentence."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from snippets import DATASET, NOT_MEASURED, PROFILE, SEEDS, duration, markdown, plain

from odl import paper, paths, scorecard, store
from odl.experiment import PROFILES

NAMES = {
    "width": "Width f of the network",
    "epochs": "Epochs",
    "iterations": "Iterations an epoch",
    "batch_size": "Images a batch",
    "learning_rate": "Learning rate of Adam",
    "decay": "Share of training in which the rate falls to 0",
    "pool_images": "Pool of hard mining",
    "validation_images": "Validation crops a level and epoch",
    "test_images": "Test crops a level and trial",
    "trials": "Trials",
}


@dataclass(frozen=True)
class File:
    """A results file of the book's profile."""

    path: Path
    content: dict

    @property
    def experiment(self) -> dict:
        return self.content["experiment"]

    @property
    def provenance(self) -> dict:
        return self.content["provenance"]

    @property
    def is_run(self) -> bool:
        """Whether something was trained for it, and not only measured."""
        return "train" in self.provenance.get("seconds", {})

    @property
    def seconds(self) -> float:
        """Of training and tests, or of one system on all photographs."""
        timed = self.provenance.get("seconds")
        wall = {name: value for name, value in (timed or {}).items() if name != "train_core"}
        return sum(wall.values()) if timed else sum(self.content["evaluation"].get("seconds", []))


def files() -> list[File]:
    found = sorted((paths.results() / PROFILE).glob("**/*.json"))
    return [File(path, json.loads(path.read_text())) for path in found]


def runs() -> list[File]:
    return [file for file in files() if file.is_run]


def listed(values) -> str:
    """`a, b and c`, each once, the most frequent first."""
    *most, last = [str(value) for value, _ in Counter(values).most_common()]
    return f"{', '.join(most)} and {last}" if most else last


def compute() -> str:
    """Hours per group of results files and in all, with the devices."""
    groups = {}
    for file in files():
        store.used(file.path)
        folder = file.path.parent.relative_to(paths.results() / PROFILE).as_posix()
        kind = "runs, trained and tested" if file.is_run else "measurements of what is trained"
        groups.setdefault((folder, kind), []).append(file)
    rows = [[f"`{folder}`", len(part), kind, *spent(part)] for (folder, kind), part in sorted(groups.items())]
    if not rows:
        return f"This is {NOT_MEASURED}."
    everything = [file for part in groups.values() for file in part]
    rows.append(["**all**", len(everything), "", *spent(everything)])
    device = listed(file.provenance["device"] for file in everything)
    trained = [file.experiment["precision"] for file in everything if "precision" in file.experiment]
    precision = f" Precision of products: {listed(trained)}." if trained else ""
    table = markdown(["Folder", "Files", "What", "Median of one", "All"], rows)
    return f"{table}\n\nDevice: {device}.{precision}"


def spent(part: list[File]) -> list[str]:
    return [duration(median(file.seconds for file in part)), duration(sum(file.seconds for file in part))]


def hyperparameters() -> str:
    """Every number of the runs behind the book, and the paper's."""
    found = runs()
    rows = [
        [
            title,
            listed(file.experiment[name] for file in found) if found else "–",
            PROFILES["paper"].get(name, paper.BATCH_SIZE),
        ]
        for name, title in NAMES.items()
    ]
    return markdown(["", "Here", "Paper"], rows)


def splits() -> str:
    """How many images each data set gives to training, and how many crops to validation and tests."""
    rows = {}
    for file in runs():
        e = file.experiment
        key = (e["dataset"], file.provenance["train_images"])
        rows.setdefault(key, []).append((e["validation_images"], e["test_images"], file.provenance["data_sha256"][:12]))
    table = [
        [f"`{name}`", images, *(listed(column) for column in zip(*part, strict=True)), len(part)]
        for (name, images), part in sorted(rows.items())
    ]
    header = [
        "Data set",
        "Training images",
        "Validation crops a level",
        "Test crops a level",
        "SHA-256 of the pack",
        "Runs",
    ]
    return markdown(header, table) if table else f"This is {NOT_MEASURED}."


def seeds() -> str:
    """Which seeds are measured, per task."""
    rows = []
    for task in paper.TASKS:
        counts = Counter(f.experiment["seed"] for f in runs() if f.experiment["task"] == task)
        rows.append(
            [plain(task).capitalize(), ", ".join(f"seed {seed}: {n} runs" for seed, n in sorted(counts.items())) or "–"]
        )
    return markdown(["Task", "Measured"], rows)


def versions() -> str:
    """The versions and the commits that the results files name."""
    found = files()
    names = sorted({name for file in found for name in file.provenance["versions"]})
    known = [
        f"{name} {listed(f.provenance['versions'][name] for f in found if name in f.provenance['versions'])}"
        for name in names
    ]
    dirty = sum(file.provenance["commit"].endswith("-dirty") for file in found)
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
    found = sorted(paths.models().glob("*.safetensors"))
    if not found:
        return "No weights ship yet: `python -m odl reproduce` trains the networks, and keeps them in `runs/`."
    size = sum(path.stat().st_size for path in found) / 1e6
    return f"{len(found)} networks in half precision, {size:.0f} MB in all, with their SHA-256 in a manifest."


SNIPPETS = {
    "statement-compute": compute,
    "statement-hyperparameters": hyperparameters,
    "statement-splits": splits,
    "statement-seeds": seeds,
    "statement-versions": versions,
    "statement-verdicts": verdicts,
    "statement-weights": weights,
}
