"""Training steps: the loop a user would write, deepinv's Trainer, tensors on the device, and ours.

Same network, initial weights, photographs and task: inpainting, every level alike in a batch (rigid joint learning).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, median

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, RandomSampler

from companion.data import packs, sets
from companion.training.graphs import quickest
from odl import crops, paper
from odl.evaluation import images_of
from odl.experiment import Experiment
from odl.learn import Step, allocation, batches, build, train_epoch, validate
from odl.schedules import SCHEDULES, begin

from . import measure
from .corruptions import remove_square

MAX_LOADING_PROCESSES = 8  # on a GPU; on a CPU as many as threads
MAX_GATE_DB = 0.1  # between a contestant and the eager loop in fp32


def sizes(options: measure.Options) -> dict:
    """Return the numbers: `steps` a turn with tensors on the device, `loading_steps` where images are loaded."""
    full = {"width": 64, "batch": 100, "steps": 3, "loading_steps": 3, "gate_width": 16, "gate_steps": 100}
    quick = {"width": 4, "batch": 5, "steps": 1, "loading_steps": 1, "gate_width": 4, "gate_steps": 2}
    return options.sizes(full, quick, {"steps": 200, "loading_steps": 20})


def experiment_of(options: measure.Options, gate: bool = False) -> Experiment:
    """Return what is trained, at the paper's learning rate: at full width, or the narrower run of the gate.

    At ten times the rate a rounding error grows to several tenths of a dB within the gate's steps.
    """
    size, part = sizes(options), "gate_" if gate else ""
    numbers = {"width": size[f"{part}width"], "iterations": size[f"{part}steps"], "epochs": 1}
    numbers |= {"batch_size": size["batch"], "validation_images": 2 * size["batch"]}
    return Experiment.of("inpaint", measure.dataset(options), "rigid_joint", profile="paper", **numbers)


def run(options: measure.Options) -> dict:
    """Time a step of every contestant that can run here, and compare what each has learnt after the gate's steps."""
    size, experiment = sizes(options), experiment_of(options)
    absent = {"deepinv": not measure.version_of("deepinv"), "eager bf16": options.precision != "bf16"}
    contestants = {name: make(experiment, options) for name, make in BUILD.items() if not absent.get(name)}
    used = {name: c.precision for name, c in contestants.items()}
    seconds = measure.interleave({name: c.turn for name, c in contestants.items()}, options.rounds, "training")
    del contestants  # with their networks
    psnr, rows = {name: gate(name, options) for name in used}, []
    counts = {name: abs(psnr[name] - psnr["eager fp32"]) <= MAX_GATE_DB for name in used}
    for name in used:
        step = median(seconds[name])
        cells = {"contestant": name, "precision": used[name], "ms per step": 1000 * step}
        cells |= {"images/s": size["batch"] / step, "ours, times as fast": measure.faster(seconds, name)}
        rows.append(cells | {"PSNR (dB)": f"{psnr[name]:.2f}", "counts": counts[name]})
    scale = size | {"task": "inpaint", "dataset": experiment.dataset}
    return {"scale": scale, "rows": rows, "seconds": seconds}


# Contestants


@dataclass(frozen=True)
class Contestant:
    """`turn()` returns the seconds of a step; `learn()` takes the gate's steps."""

    network: torch.nn.Module
    precision: str  # fp32 or bf16
    turn: Callable
    learn: Callable


def on_device(precision: str | None, captured: bool, experiment, options) -> Contestant:
    """Return `train`'s own epoch: photographs packed on the device, channels_last, fused Adam; as a graph or eager."""
    experiment = replace(experiment, precision=precision or options.precision)
    step = step_of(experiment, options.device)
    take = quickest(step) if captured else step

    def learn():
        counts, factors = allocation(experiment, step.schedule, 0, None)
        train_epoch(experiment, step.network, step.optimizer, take, batches(step, 0, counts, factors), 0)

    def turn():
        return measure.seconds_of(learn, 1, options.device) / experiment.iterations

    return Contestant(step.network, experiment.precision, turn, learn)


def step_of(experiment, device: str) -> Step:
    """Return the training step of `train`."""
    images = packs.load(experiment.dataset, "train").to(device)
    return Step(experiment, begin(SCHEDULES[experiment.schedule]), images, *build(experiment, device))


def naive(experiment, options) -> Contestant:
    """Return the loop one would write: image files, a DataLoader, NumPy for each image, contiguous tensors, Adam."""
    network, optimizer = plain(experiment, options.device)
    loader = loader_of(Photographs(experiment.dataset), experiment, options)

    def step(x, y):
        x, y = (images.to(options.device, non_blocking=True) for images in (x, y))
        loss = torch.nn.functional.mse_loss(network(y), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def turn():
        batches = iter(loader)
        step(*next(batches))  # the loading processes have started
        times = sizes(options)["loading_steps"]
        return measure.seconds_of(lambda: step(*next(batches)), times, options.device)

    def learn():
        for x, y in same_batches(experiment, options.device):
            step(x.contiguous(), y.contiguous())

    return Contestant(network, "fp32", turn, learn)


def with_deepinv(experiment, options) -> Contestant:
    """Return deepinv's Trainer; it is an optional package."""
    from .with_deepinv import contestant

    return contestant(experiment, options)


BUILD = {
    "naive": naive,
    "deepinv": with_deepinv,
    "eager fp32": partial(on_device, "fp32", False),
    "eager bf16": partial(on_device, "bf16", False),
    "ours": partial(on_device, None, True),
}


def plain(experiment, device):
    """Return the network with the same initial weights, contiguous, and Adam with PyTorch's defaults for speed."""
    network, _ = build(experiment, device)
    network.to(memory_format=torch.contiguous_format).train()
    return network, torch.optim.Adam(network.parameters(), experiment.learning_rate, betas=(0.5, 0.999))


class Photographs(Dataset):
    """Random 64×64 crops of a set's training photographs, decoded anew each time: (x, y), or x alone, in [-1, 1]."""

    def __init__(self, dataset: str, corrupted: bool = True):
        folder = sets.find(dataset)
        self.files = [folder / name for name in sets.list_images(dataset, folder)["train"]]
        self.side, self.corrupted = sets.parse(dataset)[1], corrupted

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        image = Image.open(self.files[i]).convert("RGB")
        scale = self.side / min(image.size)
        size = [max(self.side, round(length * scale)) for length in image.size]
        image = np.asarray(image.resize(size, Image.Resampling.BICUBIC))
        top, left = (np.random.randint(length - crops.CROP + 1) for length in image.shape[:2])
        image = image[top : top + crops.CROP, left : left + crops.CROP]
        image = image[:, ::-1] if np.random.rand() < 0.5 else image
        x = image.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
        return (torch.from_numpy(x), torch.from_numpy(with_hole(x))) if self.corrupted else torch.from_numpy(x)


def with_hole(x: np.ndarray) -> np.ndarray:
    """Remove a square of a side of levels 1–5 from x (3, 64, 64), anywhere."""
    low, high = paper.TASKS["inpaint"]["levels"][np.random.randint(paper.N_LEVELS)]
    side = np.random.randint(low, high + 1)
    return remove_square(x, (side, *np.random.randint(crops.CROP - side + 1, size=2)))


def loader_of(dataset: Dataset, experiment, options) -> DataLoader:
    """Return batches without end; one is ready for each loading process when a step is done."""
    endless = RandomSampler(dataset, replacement=True, num_samples=10**9)
    workers = options.threads if options.device == "cpu" else min(MAX_LOADING_PROCESSES, os.cpu_count())
    how = {"num_workers": workers, "prefetch_factor": 1, "pin_memory": options.device == "cuda"}
    return DataLoader(dataset, experiment.batch_size, sampler=endless, **how)


# The gate


def gate(name: str, options: measure.Options) -> float:
    """Return the mean PSNR in dB on the validation crops of levels 1–5 of a contestant after the gate's steps."""
    experiment = experiment_of(options, gate=True)
    contestant = BUILD[name](experiment, options)
    contestant.learn()
    held_out = packs.load(experiment.dataset, "validation")
    x = images_of(experiment, held_out, experiment.validation_images, "validation").to(options.device)
    return mean(validate(replace(experiment, precision=contestant.precision), contestant.network, x)["psnr"])


def same_batches(experiment, device: str):
    """Yield the batches (x, y) that `train_epoch` draws in its first epoch."""
    step = step_of(experiment, device)
    for index, low, high, *_ in batches(step, 0, allocation(experiment, step.schedule, 0, None)[0]):
        yield step.draw(index, low, high)
