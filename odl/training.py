"""Algorithm 1 in the order of events: allocate → draw → corrupt → restore → loss → step; validate (Sec. 5, Eq. 2).

Everything random in an epoch comes from a generator seeded by (run seed, epoch): schedules of one seed see the same
initial weights, crops and draws, and an interrupted run goes on exactly where it was. Level is data: buffers hold the
severities that each image may have, so that one step serves every schedule. On a GPU the whole step is captured once
as a CUDA graph and replayed; `ODL_EAGER=1` selects the same step without a graph.
"""

import math
import os
from functools import partial

import numpy as np
import torch

from odl import crops, paper
from odl.evaluation import errors, in_its_channels, psnr, task_of
from odl.experiment import Experiment
from odl.fit import State, Trained, fit
from odl.machine.device import adam, captured, forward, set_rate
from odl.network import EncoderDecoder, initialize
from odl.parameters import ParameterError, check_device
from odl.schedules import HARD_MINING_KEEP, HARD_MINING_WARM_UP, SCHEDULES, allocate_batches, dose

LAUNCHES = 32  # graphs that may wait in a GPU's queue


def train(experiment, device="cpu", progress=None) -> Trained:
    """Train one run, resuming from its checkpoint if there is one.

    history: a dict an epoch with loss (mean squared error on the [-1, 1] scale of what is back-propagated), psnr (dB
    per level 1…5), allocation (mean share of a batch per level, in per cent) and dose (a level's mean distance from 1/N
    of the batch; both None if fixated). `progress(share done)` is called after every iteration. Whole epochs are kept:
    a checkpoint is written after the first that ends a minute after the last one, at the end, and when interrupted.
    Raises TrainingError when a number is not finite.
    """
    if not isinstance(experiment, Experiment):
        raise ParameterError(f"experiment={experiment!r} is none; it comes from odl.Experiment.of(task=…, schedule=…)")
    device = check_device(device)
    return fit(experiment, build, partial(epochs, experiment, progress=progress), device)


def epochs(experiment, state: State, progress=None):
    """Algorithm 1: train an epoch with a batch divided by the last validation, validate, yield the epoch's dict."""
    step = Step(experiment, state.network, state.optimizer, state.pack)
    for epoch in range(len(state.history)):  # a schedule with a memory of its own is asked again what it was asked
        allocation(experiment, epoch, state.history[:epoch])
    for epoch in range(len(state.history), experiment.epochs):
        counts = allocation(experiment, epoch, state.history)
        loss = train_epoch(step, epoch, counts, progress)
        scores = validate(experiment, state.network, state.x_validation)
        shares = None if counts is None else counts.mean(0) / experiment.batch_size
        yield {
            "loss": loss,
            "psnr": scores,
            "allocation": None if counts is None else (100 * shares).round(6).tolist(),
            "dose": None if counts is None else dose(shares),
        }


def allocation(experiment, epoch: int, history) -> np.ndarray | None:
    """Images per level of each batch of an epoch, (steps, N); None if fixated, nominal for hard mining's pool."""
    schedule = SCHEDULES[experiment.schedule]
    if schedule is None:
        return None
    last = list(history[-1]["psnr"]) if history else None  # a copy: what is measured stays as it is
    given = schedule(epoch / experiment.epochs, last, paper.N_LEVELS)
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        weights = np.array(None)
    if weights.shape != (paper.N_LEVELS,):
        raise ParameterError(f"schedule {experiment.schedule!r} returned {given!r}, not {paper.N_LEVELS} weights")
    try:
        return allocate_batches(weights**experiment.sharpness, experiment.batch_size, experiment.iterations)[0]
    except ValueError as error:
        raise ParameterError(f"schedule {experiment.schedule!r}: {error}") from None


def train_epoch(step: "Step", epoch: int, counts, progress=None) -> float:
    """One epoch of Adam steps on the mean squared error over all pixels (Eq. 2). Returns the mean loss."""
    e = step.experiment
    mining = e.schedule == "hard_mining" and epoch / e.epochs >= HARD_MINING_WARM_UP
    step.keep = max(1, round(HARD_MINING_KEEP * e.batch_size)) if mining else None
    step.network.train()
    step.total.zero_()
    for i in batches(step, epoch, counts):
        set_rate(step.optimizer, rate(e, (epoch + i / e.iterations) / e.epochs))
        step()
        if step.capture and i % LAUNCHES == 0:
            torch.cuda.current_stream().synchronize()
        if progress:
            progress((epoch + (i + 1) / e.iterations) / e.epochs)
    return (step.total / e.iterations).item()


def rate(experiment, done: float) -> float:
    """The factor on the learning rate after a share of training: 1, then in the last share `decay` linearly to 0."""
    # Released code: constant; here: a linear end, because it is worth most of a decibel to so short a training.
    return 1.0 if 1 - done >= experiment.decay else (1 - done) / experiment.decay


def batches(step: "Step", epoch: int, counts):
    """Fill the step's buffers for each batch of an epoch, all drawn from (seed, epoch); yield its number."""
    e, generator = step.experiment, step.generator
    lows, highs, step.centred = severities(e, counts, step.index.device)
    generator.manual_seed(crops.seed_of(e.seed, epoch, "train"))
    items = len(step.pack) if step.pool is None else e.pool_images
    for i, index in enumerate(shuffled(items, e.iterations * e.batch_size, generator).split(e.batch_size)):
        step.index.copy_(index)
        step.low.copy_(lows[i % len(lows)])
        step.high.copy_(highs[i % len(highs)])
        yield i


def shuffled(n: int, total: int, generator) -> torch.Tensor:
    """`total` indices below n, as many whole permutations as it takes."""
    rounds = math.ceil(total / n)
    if generator.device.type == "cuda":  # in one call
        return torch.rand(rounds, n, generator=generator, device="cuda").argsort(1).flatten()[:total]
    return torch.cat([torch.randperm(n, generator=generator) for _ in range(rounds)])[:total]


class Step:
    """A training step of one run; calling it goes one step on with the images in `index`.

    Buffers, written between steps: `index` (B,) of images in the pack, or of items in the pool of hard mining; `low`
    and `high` (B,) the interval of each image's severity in the task's unit; `generator`. `centred` puts holes in the
    middle. `keep` back-propagates so many images of highest loss, None all. `total` adds up the losses.
    """

    def __init__(self, experiment, network, optimizer, pack):
        device, size = pack.offset.device, experiment.batch_size
        self.experiment, self.network, self.optimizer, self.pack = experiment, network, optimizer, pack
        self.pool = hard_pool(experiment, pack) if experiment.schedule == "hard_mining" else None
        self.index = torch.zeros(size, dtype=torch.long, device=device)
        self.low, self.high = torch.zeros(2, size, device=device)
        self.total = torch.zeros((), device=device)
        self.generator = torch.Generator(device)
        self.centred, self.keep = False, None
        self.capture = pack.pixels.is_cuda and os.environ.get("ODL_EAGER") != "1"  # a graph reads no pack on disk
        self.graphs = {}

    def __call__(self) -> None:
        if not self.capture:
            return self.run()
        kind = self.keep, self.centred
        if kind not in self.graphs:
            self.graphs[kind] = captured(self)
        self.graphs[kind].replay()

    def run(self) -> None:
        """The step itself."""
        x, y = self.draw()
        x_hat = forward(self.network, y, self.experiment.precision)
        loss = ((x_hat - x) ** 2).flatten(1).mean(1)  # (B,)
        if self.keep:
            loss = loss.topk(self.keep).values
        loss = loss.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss.detach()

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Clean crops x and damaged ones y, each (B, channels, 64, 64): drawn, or looked up in hard mining's pool."""
        if self.pool is not None:
            return tuple(images[self.index].float() / 127.5 - 1 for images in self.pool)
        task = task_of(self.experiment)
        x = in_its_channels(self.experiment, crops.crop(self.pack, self.index, self.generator))
        return x, task.corrupt_between(x, self.low, self.high, self.generator, self.centred)

    def state(self) -> list[torch.Tensor]:
        """Every tensor that a step changes."""
        slots = [slot.values() for slot in self.optimizer.state.values()]
        return [*self.network.parameters(), *self.network.buffers(), *(t for slot in slots for t in slot), self.total]


def severities(experiment, counts, device):
    """Lower and upper severity of every image of n batches, (n, B) each, and whether holes are centred.

    counts: images per level of each batch (n, N); None, as for fixated models, stands for one batch.
    """
    if counts is None:
        value = experiment.severity or paper.TASKS[experiment.task][experiment.schedule.removeprefix("fixated_")]
        bound = torch.full((1, experiment.batch_size), float(value), device=device)
        return bound, bound, True
    counts = torch.as_tensor(counts)
    levels = torch.arange(1, counts.shape[1] + 1).repeat(len(counts)).repeat_interleave(counts.flatten())
    return *task_of(experiment).bounds(levels.view(len(counts), -1).to(device)), False


@torch.no_grad()
def hard_pool(experiment, pack) -> torch.Tensor:
    """The static pool of hard mining (Sec. 6.3): clean and damaged crops (2, pool_images, channels, 64, 64), uint8.

    Item k is a crop of image k mod n; levels take turns over images and over the visits to each. Crop and damage are
    drawn by a generator of the item's own, on the CPU.
    """
    # Paper: a static set of 1M damaged images; here: equal numbers of each level, 8-bit, 25 kB an item in colour.
    task, n, device = task_of(experiment), len(pack), pack.offset.device
    pack, generator = pack.to("cpu"), torch.Generator()
    pool = torch.empty((2, experiment.pool_images, task.channels, crops.CROP, crops.CROP), dtype=torch.uint8)
    for k in range(experiment.pool_images):
        generator.manual_seed(crops.seed_of(experiment.seed, "pool", k))
        x = in_its_channels(experiment, crops.crop(pack, torch.tensor([k % n]), generator))
        y = task.corrupt(x, (k // n + k % n) % paper.N_LEVELS + 1, generator)
        pool[:, k] = ((torch.cat([x, y]) + 1) * 127.5).round()
    return pool.to(device)


def validate(experiment, network, x) -> list[float]:
    """Mean PSNR in dB of levels 1…5 on the validation crops, with the same damage every epoch."""
    restore, scores = partial(forward, network.eval(), precision=experiment.precision), []
    batch = len(x) if x.is_cuda else 100  # a GPU waits for launches, a CPU for memory
    for level in range(1, paper.N_LEVELS + 1):
        generator = torch.Generator(x.device).manual_seed(crops.seed_of("validate", level))
        error = errors(restore, task_of(experiment), x, level, generator, batch)["output"]
        scores.append(psnr(error).mean().item())
    return scores


def build(experiment, device):
    """The network with its initial weights and its Adam (Sec. 6.2)."""
    network = EncoderDecoder(task_of(experiment).channels, experiment.width)
    initialize(network, torch.Generator().manual_seed(crops.seed_of(experiment.seed, "weights")))
    dtype = torch.float64 if experiment.precision == "fp64" else torch.float32
    network.to(device, dtype, memory_format=torch.channels_last)
    return network, adam(network.parameters(), experiment.learning_rate, device)
