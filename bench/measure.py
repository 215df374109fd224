"""Turns taken in rounds, ratios per round, provenance, results files and cells of tables, for every benchmark."""

import json
import platform
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import torch
from tqdm.auto import trange

from companion.data import packs, sets
from companion.disk import files
from companion.disk.provenance import commit, device_name, processor
from odl.device import quick_precision

PACKAGES = ("torch", "numpy", "scipy", "deepinv")


@dataclass(frozen=True)
class Options:
    """How to measure: the device, CPU threads, rounds, and tiny sizes for tests."""

    device: str
    threads: int
    rounds: int
    quick: bool = False

    @property
    def precision(self) -> str:
        """Return the precision of ours."""
        return quick_precision(self.device)

    def sizes(self, full: dict, quick: dict, cuda: dict | None = None) -> dict:
        """Return the numbers of a benchmark: full, with what differs on a GPU, or tiny."""
        return full | (quick if self.quick else (cuda or {}) if self.device == "cuda" else {})


def interleave(turns: dict, rounds: int, label: str) -> dict[str, list[float]]:
    """Take turns A B C A B C …: name → what its turn returned (seconds), one a round.

    One more round goes before, for warming up, and is thrown away.
    """
    taken = [{name: turn() for name, turn in turns.items()} for _ in trange(1 + rounds, desc=label, leave=False)]
    return {name: [seconds[name] for seconds in taken[1:]] for name in turns}


def seconds_of(function, times: int, device: str) -> float:
    """Return the seconds of one call, the mean of `times` calls in a row."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for _ in range(times):
        function()
    wait()
    return (time.perf_counter() - start) / times


def faster(seconds: dict, other: str) -> dict[str, float] | None:
    """Return how many times as fast ours is as another, from the ratio within each round; None for ours itself."""
    ratios = [b / a for a, b in zip(seconds["ours"], seconds[other], strict=True)]
    return None if other == "ours" else {"median": median(ratios), "low": min(ratios), "high": max(ratios)}


# Where a number comes from


def provenance(options: Options) -> dict:
    """Return what the numbers are measured with; no date and no host."""
    versions = {"python": platform.python_version()} | {name: version_of(name) for name in PACKAGES}
    return {
        "commit": commit(Path(__file__).parent),
        "device": device_name(options.device),
        "processor": processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "precision": options.precision,
        "versions": {name: number for name, number in versions.items() if number},
    }


def version_of(package: str) -> str | None:
    """Return the version of an installed package without its build, else None."""
    try:
        return version(package).split("+")[0]
    except PackageNotFoundError:
        return None


def dataset(options: Options) -> str:
    """Return BSDS500 where its photographs are here, else, and in quick runs, the demo photographs."""
    with suppress(sets.DataError):
        if not options.quick:
            sets.find("bsds500")  # the files themselves, which some contestants read
            packs.load("bsds500", "train")
            return "bsds500"
    return "demo"


# Results


def write(name: str, content: dict, options: Options) -> Path:
    """Write `data/results/benchmarks/<device>/<name>.json`; quick numbers mean nothing and go to `runs/`."""
    slug = re.sub(r"[^a-z0-9]+", "-", device_name(options.device).lower()).strip("-")
    path = (files.runs() if options.quick else files.results()) / "benchmarks" / slug / f"{name}.json"
    whole = {"benchmark": name, "provenance": provenance(options), "rounds": options.rounds} | content
    whole["scale"] = {"precision_of_ours": options.precision} | content["scale"]
    rounded = json.loads(json.dumps(whole), parse_float=lambda text: float(f"{float(text):.4g}"))
    files.write_atomically(path, json.dumps(rounded, indent=1, ensure_ascii=False).encode() + b"\n")
    return path


def cell(value) -> str:
    """Return a value as it stands in a table: three digits, yes or no, a dash for nothing; a spread with its ends."""
    if isinstance(value, dict):
        return f"{cell(value['median'])} ({cell(value['low'])} to {cell(value['high'])})"
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")).replace("-", "−")
    return f"{value:,}" if isinstance(value, int) else value
