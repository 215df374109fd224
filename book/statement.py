"""What the reproducibility statement takes from the results files: a function for each table or sentence."""

from collections import Counter

import pandas as pd
from snippets import DATASET, PROFILE, SEEDS, duration, markdown

from companion.pages import scorecard
from companion.verdicts import claims
from companion.verdicts.judge import plain
from odl import paper
from odl.machine import store
from odl.machine.files import results, shipped, unseal


def files() -> pd.DataFrame:
    """A row per results file: its experiment and provenance, path, whether a network was trained for it, and seconds.

    Raises FileNotFoundError where there is none.
    """
    found = []
    for path in sorted((results() / PROFILE).glob("**/*.json")):
        if path.parent.name == "tables":  # verdicts on them
            continue
        content = unseal(path)
        timed = content["provenance"].get("seconds")
        each = timed.values() if timed else content["evaluation"].get("seconds", [])  # of a system's photographs
        seconds = sum(each) - (timed or {}).get("train_core", 0)
        facts = {"path": path, "trained": "train" in (timed or {}), "seconds": seconds}
        found.append(content["experiment"] | content["provenance"] | facts)
    if not found:
        raise FileNotFoundError(results() / PROFILE)
    table = pd.DataFrame(found, dtype=object)  # whole numbers stay whole where a file lacks them
    return table.astype({"seconds": float, "trained": bool})


def runs() -> pd.DataFrame:
    """The rows of `files` for which a network was trained. Raises FileNotFoundError where there is none."""
    found = files().query("trained")
    if found.empty:
        raise FileNotFoundError(f"a trained network's result in {results() / PROFILE}")
    return found


def listed(values) -> str:
    """`a, b and c`, each once, the most frequent first."""
    *most, last = [str(value) for value, _ in Counter(values).most_common()]
    return f"{', '.join(most)} and {last}" if most else last


def compute() -> str:
    """Hours per group of results files and in all, with the devices."""
    found = files()
    for path in found.path:
        store.used(path)
    folder = found.path.map(lambda path: path.parent.relative_to(results() / PROFILE).as_posix())
    what = found.trained.map({True: "runs, trained and tested", False: "measurements"})
    spent = found.seconds.groupby([folder, what]).agg(["count", "median", "sum"])
    rows = [[f"`{place}`", n, kind, *map(duration, times)] for (place, kind), n, *times in spent.itertuples()]
    rows.append(["**all**", len(found), "", duration(found.seconds.median()), duration(found.seconds.sum())])
    table = markdown(["Folder", "Files", "What", "Median of one", "All"], rows)
    return f"{table}\n\nDevice: {listed(found.device)}. Precision of products: {listed(runs().precision)}."


def splits() -> str:
    """How many images each data set gives to training, and how many crops to validation and tests."""
    rows = []
    for (name, images), part in runs().groupby(["dataset", "train_images"]):
        crops = listed(part.validation_images), listed(part.test_images)
        rows.append([f"`{name}`", images, *crops, listed(part.data_sha256.str[:12]), len(part)])
    header = ["Data set", "Training images", "Validation crops a level", "Test crops a level", "SHA-256 of the pack"]
    return markdown([*header, "Runs"], rows)


def seeds() -> str:
    """Which seeds are measured, per task."""
    counts = runs().groupby(["task", "seed"]).size()
    rows = []
    for task in paper.TASKS:
        measured = counts.get(task, pd.Series(dtype=int)).items()
        rows.append([plain(task).capitalize(), ", ".join(f"seed {seed}: {n} runs" for seed, n in measured) or "–"])
    return markdown(["Task", "Measured"], rows)


def versions() -> str:
    """The versions that the results files name."""
    found = pd.DataFrame([*files().versions])
    known = [f"{name} {listed(found[name].dropna())}" for name in sorted(found)]
    return f"Versions in the {len(found)} files: {'; '.join(known)}."


def verdicts() -> str:
    """The count of verdicts."""
    return scorecard.counted(claims.score_all(claims.load(PROFILE, DATASET, SEEDS)))


def weights() -> str:
    """The networks that ship."""
    sizes = [path.stat().st_size for path in shipped().glob("*.safetensors")]
    return f"{len(sizes)} networks in half precision, {sum(sizes) / 1e6:.0f} MB, with their SHA-256 in a manifest."


SNIPPETS = {f"statement-{make.__name__}": make for make in (compute, splits, seeds, versions, verdicts, weights)}
