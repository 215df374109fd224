"""What a sweep costs before it is started: runs, GPU hours, wall time, disk, network, and the longest chain."""

import heapq
import re
from dataclasses import dataclass
from functools import cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from companion.comparators import context_encoder, trained
from companion.data import packs, sets
from companion.measure.blocks import CLASSICAL
from companion.runs.catalogue import jobs
from companion.training.measurement import Job
from odl.crops import CROP
from odl.network import EncoderDecoder

STATES = 3  # a checkpoint holds the weights and Adam's two moments
JPEG = 10  # bytes of pixels in a byte of JPEG, about, where no image's size is known
UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}


@dataclass(frozen=True)
class Plan:
    """Seconds and bytes of a sweep on `gpus` GPUs, each run on one of them."""

    runs: int
    gpus: int
    gpu_seconds: float
    wall_seconds: float
    chain: Job  # the longest; no number of GPUs is faster
    chain_seconds: float
    download: float
    packs: float
    kept: float  # checkpoints, the ones before them, and weights


def plan(profile: str, datasets: list[str], seeds: list[int], gpus: int, ms_per_step: float) -> Plan:
    """Count over the list of runs; a forward pass of a batch takes a third of a training step.

    Runs start in the list's order, the next one as soon as a GPU is free. Not counted: packing, notebooks, and the
    other systems of Tables 2 and 3 that do not train here.
    """
    runs = [job for name in datasets for job in jobs(profile, name, seeds) if job.experiment]
    runs = [job for job in runs if job.experiment.schedule not in (*trained.LEARNERS, CLASSICAL)]
    seconds = [job.work / 3 * ms_per_step / 1000 for job in runs]
    free = [0.0] * gpus
    for length in seconds:
        heapq.heapreplace(free, free[0] + length)
    return Plan(
        runs=len(runs),
        gpus=gpus,
        gpu_seconds=sum(seconds),
        wall_seconds=max(free),
        chain=max(runs, key=lambda job: job.work),
        chain_seconds=max(seconds),
        download=sum(download_bytes(name) for name in {sets.parse(name)[0] for name in datasets}),
        packs=sum(map(pack_bytes, {job.experiment.dataset for job in runs})),
        kept=sum((2 * STATES + 1) * 4 * parameters(job.experiment) for job in runs),
    )


def parameters(experiment) -> int:
    """Weights of a run's network, counted without making them."""
    with torch.device("meta"):
        return sum(p.numel() for p in context_encoder.untrained(experiment).parameters())


@cache
def step_flop(channels: int, width: int, batch: int) -> int:
    """Arithmetic of a training step, forward and backward, counted on the layers' shapes."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        EncoderDecoder(channels, width)(torch.zeros(batch, channels, CROP, CROP)).sum().backward()
    return counter.get_total_flops()


def download_bytes(base: str) -> float:
    """Of a set's archive; 0 for a folder and what is here offline."""
    size = re.search(r"([\d.]+) (GB|MB)", sets.DATASETS.get(base, {}).get("size", ""))
    return float(size[1]) * UNITS[size[2]] if size else 0.0


def pack_bytes(name: str) -> float:
    """The pack of a set: its own size where it is here, else three bytes a pixel of its images."""
    file = packs.folder_of(name) / "pixels.bin"
    if file.exists():
        return file.stat().st_size
    base, side = sets.parse(name)
    entry = sets.DATASETS.get(base, {})
    width, height = entry.get("pixels", (3, 2))
    if base not in sets.DATASETS:
        folder = sets.find(name)
        files = sets.files_in(folder)
        count, size = len(files), sum((folder / file).stat().st_size for file in files)
    else:
        count, size = entry["images"], download_bytes(base)
    if side:
        return count * 3 * side * round(side * max(width, height) / min(width, height))
    return count * 3 * width * height if "pixels" in entry else JPEG * size


def lines(p: Plan) -> list[tuple[str, str]]:
    """What `python -m companion plan` prints: a name and a text each."""
    e = p.chain.experiment
    return [
        ("runs", f"{p.runs:,}, each on one GPU; more than {p.runs:,} GPUs would wait"),
        ("GPU time", f"{p.gpu_seconds / 3600:,.1f} h"),
        ("wall time", f"{p.wall_seconds / 3600:,.1f} h on {p.gpus:,} GPU{'s' * (p.gpus > 1)}"),
        ("longest chain", f"data → {e.run_id} ({p.chain_seconds / 3600:,.1f} h) → notebook → book"),
        ("disk", f"{size(p.packs)} of packs, {size(p.kept)} of checkpoints and weights"),
        ("network", f"{size(p.download)} downloaded"),
    ]


def size(amount: float, units: dict = UNITS) -> str:
    """`1.23 GB`: in the largest unit that it reaches, else in the last one."""
    unit = next((unit for unit, length in units.items() if amount >= length), [*units][-1])
    return f"{amount / units[unit]:.3g} {unit}"
