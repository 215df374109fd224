"""Training steps: the loop a user would write, deepinv's Trainer, tensors on the device, and ours.

Same network, initial weights, photographs and task: inpainting, every level alike in a batch (rigid joint learning).
"""

import json
import os
import re
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torch.utils.flop_counter import FlopCounterMode
from tqdm.auto import tqdm

from odl import data, datasets, paper, train
from odl.corruptions import FILL
from odl.evaluate import images_of
from odl.experiment import Experiment
from odl.step import Step

from . import measure

WORKERS = 8  # processes that load images, at most; on a CPU as many as threads
GATE_DB = 0.1
GATE = (
    "mean validation PSNR over levels 1–5 after the same steps from the same weights on the very same batches, "
    "each in its own loop, memory format, optimizer and precision; the loaders' own random draws are left out"
)


def sizes(options: measure.Options) -> dict:
    """`steps` per turn with tensors on the device, `loading_steps` where images are loaded, `side` of the products."""
    return options.sizes(
        {"width": 64, "batch": 100, "steps": 3, "loading_steps": 3, "gate_width": 16, "gate_steps": 100, "side": 2048},
        {"width": 4, "batch": 5, "steps": 1, "loading_steps": 1, "gate_width": 4, "gate_steps": 2, "side": 64},
        {"steps": 200, "loading_steps": 20, "side": 8192},
    )


def experiment_of(options: measure.Options, gate: bool = False) -> Experiment:
    """What is trained, at the paper's learning rate: at full width, or the narrower run of the gate.

    At ten times the rate a rounding error grows to several tenths of a dB within the gate's steps.
    """
    size, dataset = sizes(options), measure.dataset(options)
    numbers = {"width": size["width"], "iterations": size["steps"]}
    if gate:
        numbers = {"width": size["gate_width"], "iterations": size["gate_steps"]}
    numbers |= {"epochs": 1, "batch_size": size["batch"], "validation_images": 2 * size["batch"]}
    return Experiment.of("inpaint", dataset, "rigid_joint", profile="paper", **numbers)


def run(options: measure.Options) -> dict:
    size, experiment, absent = sizes(options), experiment_of(options), missing(options)
    names = [name for name in BUILD if name not in absent]
    turns = {name: BUILD[name](experiment, options).turn for name in names} | products(options)
    seconds = measure.interleave(turns, options.rounds, "training")
    ceilings = {p: 2 * size["side"] ** 3 / median(seconds.pop(f"product {p}")) for p in precisions(options)}
    del turns  # with their networks

    psnr = gate(options, names)
    counts = {name: abs(psnr[name] - psnr["eager fp32"]) <= GATE_DB for name in names}
    alone = ["ours"] if options.quick else names  # a process each is too slow for tests
    memory = {n: measure.in_child("training", options, contestant=n)["mib"] for n in tqdm(alone, "memory", leave=False)}
    flop = flop_of(experiment)

    def row(name):
        step = median(seconds[name])
        cells = {"ms per step": 1000 * step, "images/s": size["batch"] / step}
        cells |= {"ours, times as fast": None if name == "ours" else measure.ratio(seconds, "ours", name)}
        cells |= {"PSNR (dB)": f"{psnr[name]:.2f}", "counts": counts[name], "TFLOP/s": flop / step / 1e12}
        cells |= {f"share of {p} product": f"{flop / step / ceilings[p]:.0%}" for p in ceilings}
        return cells | {"memory (MiB)": memory.get(name)}

    rows = {name: row(name) for name in names}
    blank = dict.fromkeys(rows["ours"])
    against = [name for name in names if name != "ours"]
    return {
        "scale": size
        | {"task": experiment.task, "dataset": experiment.dataset, "gflop_per_step": flop / 1e9}
        | {"loading_workers": workers(options), "precision_of_ours": options.precision},
        "rows": [{"contestant": f"{n} ({absent[n]})" if n in absent else n} | rows.get(n, blank) for n in BUILD],
        "ceilings_tflops": {p: value / 1e12 for p, value in ceilings.items()},
        "seconds": seconds,
        "ratios": {a: {b: measure.ratio(seconds, a, b) for b in names if b != a} for a in names},
        "comparisons": [
            measure.comparison(seconds, "training", "ours", n, counts["ours"] and counts[n]) for n in against
        ],
        "gate": {"compares": GATE, "limit_db": GATE_DB, "psnr_db": psnr, "counts": counts},
    }


def missing(options: measure.Options) -> dict[str, str]:
    """Contestants that cannot run here, and why."""
    absent = {} if measure.version_of("deepinv") else {"deepinv": "not installed"}
    return absent if options.precision == "bf16" else absent | {"eager bf16": "bf16 is not native here"}


# Contestants


@dataclass(frozen=True)
class Contestant:
    """`turn()` answers the seconds of a step; `learn()` takes the gate's steps."""

    network: torch.nn.Module
    precision: str
    turn: Callable
    learn: Callable


def on_device(precision: str, captured: bool, experiment, options) -> Contestant:
    """`train`'s own epoch: photographs packed on the device, channels_last, fused Adam; as a CUDA graph or eager."""
    precision = precision or options.precision
    pack = data.load(experiment.dataset, "train").to(options.device)
    network, optimizer = train.build(experiment, options.device)
    step = Step(experiment, network, optimizer, pack, precision)
    step.capture &= captured
    learn = partial(train.train_epoch, step, 0, train.allocation(experiment, 0, []))

    def turn():
        return measure.seconds_of(learn, 1, options.device) / experiment.iterations

    return Contestant(network, precision, turn, learn)


def naive(experiment, options) -> Contestant:
    """A folder of image files, a DataLoader, NumPy for each image, fp32, contiguous tensors, plain Adam."""
    network, optimizer = plain(experiment, options.device)
    loader, device = loader_of(Photographs(experiment.dataset), experiment, options), options.device

    def step(x, y):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = torch.nn.functional.mse_loss(network(y), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def turn():
        batches = iter(loader)
        step(*next(batches))  # the loading processes have started
        return measure.seconds_of(lambda: step(*next(batches)), sizes(options)["loading_steps"], device)

    def learn():
        for x, y in same_batches(experiment, device):
            step(x.contiguous(), y.contiguous())

    return Contestant(network, "fp32", turn, learn)


def with_deepinv(experiment, options) -> Contestant:
    from .with_deepinv import contestant  # an optional package

    return contestant(experiment, options)


BUILD = {
    "naive": naive,
    "deepinv": with_deepinv,
    "eager fp32": partial(on_device, "fp32", False),
    "eager bf16": partial(on_device, "bf16", False),
    "ours": partial(on_device, None, True),
}


def plain(experiment, device):
    """The network with the same initial weights, contiguous, and Adam with PyTorch's defaults for speed."""
    network, _ = train.build(experiment, device)
    network.to(memory_format=torch.contiguous_format).train()
    return network, torch.optim.Adam(network.parameters(), experiment.learning_rate, betas=(0.5, 0.999))


class Photographs(Dataset):
    """Random 64×64 crops of a set's training photographs, decoded anew each time: (x, y), or x alone, in [-1, 1]."""

    def __init__(self, dataset: str, corrupted: bool = True):
        folder = datasets.find(dataset)
        self.files = [folder / name for name in datasets.list_images(dataset, folder)["train"]]
        self.side, self.corrupted = datasets.parse(dataset)[1], corrupted

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        image = Image.open(self.files[i]).convert("RGB")
        scale = self.side / min(image.size)
        size = [max(self.side, round(length * scale)) for length in image.size]
        image = np.asarray(image.resize(size, Image.Resampling.BICUBIC))
        top, left = (np.random.randint(length - data.CROP + 1) for length in image.shape[:2])
        image = image[top : top + data.CROP, left : left + data.CROP]
        image = image[:, ::-1] if np.random.rand() < 0.5 else image
        x = image.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
        return (torch.from_numpy(x), torch.from_numpy(with_hole(x))) if self.corrupted else torch.from_numpy(x)


def with_hole(x: np.ndarray) -> np.ndarray:
    """x (3, 64, 64) without a square of a side of levels 1–5, anywhere."""
    low, high = paper.TASKS["inpaint"]["levels"][np.random.randint(paper.N_LEVELS)]
    side = np.random.randint(low, high + 1)
    top, left = np.random.randint(data.CROP - side + 1, size=2)
    y = x.copy()
    y[:, top : top + side, left : left + side] = np.float32(FILL)[:, None, None] / 127.5 - 1
    return y


def loader_of(dataset: Dataset, experiment, options) -> DataLoader:
    """Batches without end; one is ready for each loading process when a step is done."""
    return DataLoader(
        dataset,
        experiment.batch_size,
        sampler=RandomSampler(dataset, replacement=True, num_samples=10**9),
        num_workers=workers(options),
        prefetch_factor=1,
        pin_memory=options.device == "cuda",
    )


def workers(options: measure.Options) -> int:
    return options.threads if options.device == "cpu" else min(WORKERS, os.cpu_count())


# Gate, ceilings, memory


def gate(options: measure.Options, names: list[str]) -> dict[str, float]:
    """PSNR in dB of each contestant after the gate's steps."""
    experiment, psnr = experiment_of(options, gate=True), {}
    held_out = data.load(experiment.dataset, "validation")
    x = images_of(experiment, held_out, experiment.validation_images, "validation").to(options.device)
    for name in tqdm(names, "gate", leave=False):
        contestant = BUILD[name](experiment, options)
        contestant.learn()
        psnr[name] = mean(
            train.validate(experiment, contestant.network, x, options.device, precision=contestant.precision)
        )
    return psnr


def same_batches(experiment, device: str):
    """The batches (x, y) that `train_epoch` draws in its first epoch."""
    step = Step(experiment, None, None, data.load(experiment.dataset, "train").to(device))
    for _ in train.batches(step, 0, train.allocation(experiment, 0, [])):
        yield step.draw()


def flop_of(experiment) -> int:
    """Arithmetic of one step, forward and backward, counted on the layers' shapes."""
    network, _ = train.build(experiment, "cpu")
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(1, 3, data.CROP, data.CROP)).mean().backward()
    return experiment.batch_size * counter.get_total_flops()


def precisions(options: measure.Options) -> list[str]:
    return ["fp32", "bf16"] if options.precision == "bf16" else ["fp32"]


def products(options: measure.Options) -> dict[str, Callable]:
    """Turns of a square matrix product, in fp32 and where it is native in bf16."""
    side, turns = sizes(options)["side"], {}
    for precision in precisions(options):
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        a, b = torch.randn(2, side, side, device=options.device).to(dtype)
        turns[f"product {precision}"] = partial(measure.seconds_of, partial(torch.matmul, a, b), 10, options.device)
    return turns


def peak_mib(device: str) -> float:
    """The most memory this process has held: on the GPU, else resident, without loading processes. In MiB."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status")
    if status.exists():  # here getrusage counts what the parent held when it started this process
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main():
    """One turn of one contestant in this process; prints the memory it took beyond the libraries."""
    options, given = measure.child_options()
    if measure.version_of("deepinv"):
        import_module("deepinv")
    libraries = peak_mib(options.device)
    BUILD[given["contestant"]](experiment_of(options), options).turn()
    print(json.dumps({"mib": round(peak_mib(options.device) - libraries)}))


if __name__ == "__main__":
    main()
