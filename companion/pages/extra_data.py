"""Whether on-demand learning makes up for half of the training images (Sec. 6.6)."""

import pandas as pd

from companion.judge import Evidence, compare
from companion.runs.catalogue import EXTRA_DATA, by_network, halves
from companion.show import sentences, tables
from companion.training.measurement import Result
from companion.training.results import load_result

OURS_HALF, RIGID_HALF, RIGID_ALL = EXTRA_DATA


def load_runs(task: str, dataset: str, profile: str, seeds: list[int], network="paper") -> dict[str, list[Result]]:
    """Return the measured runs of the page by name, one per seed; empty lists where nothing is."""
    of_seeds = (by_network(halves(profile, dataset, [seed], task), network) for seed in seeds)
    rows = zip(EXTRA_DATA, *of_seeds, strict=True)
    return {name: [*filter(None, map(load_result, experiments))] for name, *experiments in rows}


def halves_table(runs: dict[str, list[Result]]) -> pd.DataFrame:
    """Return a row per name of `load_runs`: means and standard deviations over the seeds that all have, l2 (‰), psnr
    (dB)."""
    seeds = [{run.experiment["seed"] for run in found} for found in runs.values()]
    shared = set.intersection(*filter(None, seeds)) if any(seeds) else set()
    runs = {name: [run for run in found if run.experiment["seed"] in shared] for name, found in runs.items()}
    images = {name: found[0].provenance["train_images"] if found else pd.NA for name, found in runs.items()}
    rows = [{"run": name, "train_images": images[name]} | tables.over_seeds(runs[name]) for name in runs]
    return pd.DataFrame(rows).astype({"train_images": "Int64"})


def show_halves(table: pd.DataFrame):
    """Show the extra-data test; ± is a standard deviation over seeds."""
    names = {"train_images": "images", "l2": "L2 (‰)", "psnr": "PSNR (dB)", "psnr_sd": "± (dB)"}
    return tables.show_table(table.drop(columns="l2_sd").rename(columns=names), {"images": "{:,}"})


def describe_halves(runs: dict, task: str) -> str:
    """Say the two halves of the claim, and on-demand against rigid joint with the same half."""
    evidence = Evidence({(task, name, r.experiment["seed"]): r for name in runs for r in runs[name]})
    pairs = (OURS_HALF, RIGID_ALL), (OURS_HALF, RIGID_HALF), (RIGID_ALL, RIGID_HALF)
    lines = {f"{a} − {b}": compare(evidence, {"": (task, a, b)}) for a, b in pairs}
    return sentences.page(lines, list(evidence.runs.values()))
