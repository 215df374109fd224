"""Algorithm 1: for each epoch allocate, train, validate and report (Sec. 5, Eq. 2).

Everything random in an epoch comes from a generator seeded by (run seed, epoch): schedules of one seed see the same
initial weights, crops and draws (hard mining, which has its pool, the same weights), and an interrupted run goes on
exactly where it was. Level is data: vectors hold the severities that each image may have, so that one step serves
every schedule.
"""

import math
from functools import partial

import numpy as np
import torch

from odl import crops, paper
from odl.device import adam, forward, pytorch_defaults, room, set_rate
from odl.evaluation import errors, in_its_channels, psnr, task_of
from odl.network import make
from odl.parameters import ParameterError
from odl.schedules import Schedule, allocate_batches, dose, usable_weights


@pytorch_defaults()
def learn(experiment, schedule, images, x_validation, network, optimizer, history, on_epoch, progress=None, adapt=None):
    """Train a network for the epochs that `history` lacks, and report each of them to `on_epoch`.

    `images` is a `crops.Pack`, `x_validation` (n, channels, 64, 64) in [-1, 1]; `schedule` comes from
    `schedules.begin`, `network` and `optimizer` from `build`. `on_epoch` receives a dict, as `history` has them:
    `loss`, the mean training loss, squared error on the [-1, 1] scale; `psnr`, validation PSNR in dB per level 1…5, and
    the schedule's own feedback; `allocation`, per cent of a batch per level; `dose`, a level's mean distance from 1/N
    as a fraction of a batch. The last two are None for fixated schedules. `progress(share done)` is called after every
    step. `adapt(step)` may return another way to take the same step. Raises ParameterError for unusable weights.
    """
    history, step = list(history), Step(experiment, schedule, images, network, optimizer)
    take = adapt(step) if adapt else step
    for epoch in range(experiment.epochs):
        told = list(history[epoch - 1][schedule.feedback]) if epoch else None
        counts, factors = allocation(experiment, schedule, epoch, told)
        if epoch < len(history):  # done before; a schedule with a memory of its own is asked again what it was asked
            continue
        loss = train_epoch(experiment, network, optimizer, take, batches(step, epoch, counts, factors), epoch, progress)
        scores = validate(experiment, network, x_validation)
        kept = {name: scores[name] for name in dict.fromkeys(("psnr", schedule.feedback))}
        history.append({"loss": loss} | kept | mean_batch(counts))
        on_epoch(history[-1])


def allocation(experiment, schedule: Schedule, epoch: int, scores) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return images per level of each batch of an epoch, (steps, N), None if fixated, and what an image counts.

    `scores` are the last validation PSNRs, or the schedule's own feedback, None before the first epoch; the second is
    (N,), or None where all images count the same. Raises ParameterError for unusable weights or factors.
    """
    if schedule.fixated_on is not None:
        return None, None
    given = schedule(epoch / experiment.epochs, scores, paper.N_LEVELS)
    weights, factors = usable_weights(given, paper.N_LEVELS, experiment.schedule)
    try:
        return allocate_batches(weights**experiment.sharpness, experiment.batch_size, experiment.iterations)[0], factors
    except ValueError as error:
        raise ParameterError(f"schedule {experiment.schedule!r}: {error}") from None


def mean_batch(counts) -> dict:
    """Return what the history keeps of an epoch's `counts`, images per level of each batch (steps, N), or None."""
    if counts is None:
        return {"allocation": None, "dose": None}
    shares = counts.mean(0) / counts[0].sum()
    return {"allocation": (100 * shares).round(6).tolist(), "dose": dose(shares)}


def train_epoch(experiment, network, optimizer, step, batches, epoch: int, progress=None) -> float:
    """Train on each of the batches by `step(*batch)`, which returns its loss. Returns the mean loss."""
    network.train()
    total = 0.0
    for i, batch in enumerate(batches):
        set_rate(optimizer, rate(experiment, epoch * experiment.iterations + i))
        total = total + step(*batch)
        if progress:
            progress((epoch + (i + 1) / experiment.iterations) / experiment.epochs)
    return float(total / experiment.iterations)


def rate(experiment, step: int) -> float:
    """Return the factor on the learning rate: up from 0 over the share `warm_up`, 1, and down to 0 over `decay`."""
    # Released code: constant; here: a linear end, because it is worth most of a decibel to so short a training.
    done = (step // experiment.iterations + step % experiment.iterations / experiment.iterations) / experiment.epochs
    rising = experiment.warm_up * experiment.epochs * experiment.iterations  # steps
    rise = min(1.0, (step + 1) / rising) if rising else 1.0
    return rise if 1 - done >= experiment.decay else rise * (1 - done) / experiment.decay


class Step:
    """The training step of one run: `step(*batch)` draws, damages and restores a batch and takes one step of Adam."""

    def __init__(self, experiment, schedule, images, network, optimizer):
        self.experiment, self.schedule, self.network, self.optimizer = experiment, schedule, network, optimizer
        self.images, self.pool = images, hard_pool(experiment, images) if schedule.pool else None
        self.generator = torch.Generator(images.offset.device)

    def __call__(self, index, low, high, factor=None, keep=None) -> torch.Tensor:
        """Take a step of Equation 2: by the mean squared error over all pixels. Returns the loss.

        `index` (B,) of images, `low` and `high` (B,) the ends of each image's severity; `factor` (B,) is what an image
        counts, and `keep` images of highest loss are back-propagated, None all.
        """
        x, y = self.draw(index, low, high)
        x_hat = forward(self.network, y, self.experiment.precision)
        loss = ((x_hat - x) ** 2).flatten(1).mean(1)  # (B,)
        loss = loss if factor is None else factor * loss
        loss = (loss if keep is None else loss.topk(keep).values).mean()
        self.optimizer.zero_grad()
        loss.backward()
        if self.experiment.clip:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.experiment.clip, foreach=True)
        self.optimizer.step()
        return loss.detach()

    def draw(self, index, low, high) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw clean crops x and damaged ones y, each (B, channels, 64, 64), or take them from hard mining's pool."""
        if self.pool is not None:
            return tuple(images[index].float() / 127.5 - 1 for images in self.pool)
        x = in_its_channels(self.experiment, crops.crop(self.images, index, self.generator))
        centred = self.schedule.fixated_on is not None
        return x, task_of(self.experiment).corrupt_between(x, low, high, self.generator, centred)


def batches(step: Step, epoch: int, counts, factors=None):
    """Yield each batch of an epoch as `Step` takes it, everything drawn from (seed, epoch).

    `counts` and `factors` are what `allocation` returns.
    """
    experiment, generator = step.experiment, step.generator
    lows, highs, factors = severities(experiment, step.schedule, counts, factors, generator.device)
    kept = step.schedule.keep(epoch / experiment.epochs)
    keep = None if kept == 1 else max(1, round(kept * experiment.batch_size))
    generator.manual_seed(crops.seed_of(experiment.seed, epoch, "train"))
    items = len(step.images) if step.pool is None else experiment.pool_images
    order = shuffled(items, experiment.iterations * experiment.batch_size, generator)
    for i, index in enumerate(order.split(experiment.batch_size)):
        row = i % len(lows)
        yield index, lows[row], highs[row], None if factors is None else factors[row], keep


def severities(experiment, schedule: Schedule, counts, factors, device):
    """Return lower and upper severity of every image of n batches, and what it counts or None: (n, B) each.

    counts: images per level of each batch (n, N); None, as for fixated models, stands for one batch.
    """
    if counts is None:
        value = experiment.severity or paper.TASKS[experiment.task][schedule.fixated_on]
        bound = torch.full((1, experiment.batch_size), float(value), device=device)
        return bound, bound, None
    counts = torch.as_tensor(counts)
    level = torch.arange(1, counts.shape[1] + 1)
    levels = torch.stack([level.repeat_interleave(row) for row in counts]).to(device)
    if factors is not None:
        factors = torch.as_tensor(factors, dtype=torch.float32, device=device)[levels - 1]
    return *task_of(experiment).bounds(levels), factors


def shuffled(n: int, total: int, generator) -> torch.Tensor:
    """Return `total` indices below n, as many whole permutations as it takes."""
    rounds = math.ceil(total / n)
    if generator.device.type == "cuda":  # in one call
        return torch.rand(rounds, n, generator=generator, device="cuda").argsort(1).flatten()[:total]
    return torch.cat([torch.randperm(n, generator=generator) for _ in range(rounds)])[:total]


@torch.no_grad()
def hard_pool(experiment, pack) -> torch.Tensor:
    """Return hard mining's static pool (Sec. 6.3): clean and damaged crops (2, pool_images, channels, 64, 64), uint8.

    Item k is a crop of image k mod n; levels take turns over images and over the visits to each. Crop and damage are
    drawn by a generator of the item's own, on the CPU; 8 bits cut off what leaves [-1, 1]. Raises
    ParameterError where the device has no room.
    """
    # Paper: a static set of 1M damaged images; here: equal numbers of each level, 8-bit, 25 kB an item in colour.
    task, n, device = task_of(experiment), len(pack), pack.offset.device
    size = 2 * experiment.pool_images * task.channels * crops.CROP**2
    if size > room(device):
        most = max(1, experiment.pool_images * room(device) // size)
        raise ParameterError(f"pool_images={experiment.pool_images} is too many for {device}; nearest: {most:.0f}")
    pack, generator = pack.to("cpu"), torch.Generator()
    pool = torch.empty((2, experiment.pool_images, task.channels, crops.CROP, crops.CROP), dtype=torch.uint8)
    for k in range(experiment.pool_images):
        generator.manual_seed(crops.seed_of(experiment.seed, "pool", k))
        visit, image = divmod(k, n)
        x = in_its_channels(experiment, crops.crop(pack, torch.tensor([image]), generator), k)
        y = task.corrupt(x, (visit + image) % paper.N_LEVELS + 1, generator)
        pool[:, k] = ((torch.cat([x, y]) + 1) * 127.5).round().clamp(0, 255)
    return pool.to(device)


def validate(experiment, network, x) -> dict[str, list[float]]:
    """Return the scores of levels 1…5 on the validation crops x (n, channels, 64, 64), the same damage every epoch.

    `psnr`: mean in dB; `composite`: the same with the known pixels put back, where pixels are missing; `rms_error`:
    root of the mean over images of the squared loss, the loss being squared error on the [-1, 1] scale.
    """
    restore, rows = partial(forward, network.eval(), precision=experiment.precision), []
    for level in range(1, paper.N_LEVELS + 1):
        generator = torch.Generator(x.device).manual_seed(crops.seed_of("validate", level))
        error = errors(restore, task_of(experiment), x, level, generator)
        row = {"psnr": psnr(error["output"]).mean(), "rms_error": 4 * error["output"].square().mean().sqrt()}
        rows.append(row | ({"composite": psnr(error["kept"]).mean()} if "kept" in error else {}))
    return {name: [row[name].item() for row in rows] for name in rows[0]}


def build(experiment, device):
    """Return the network with its initial weights and its Adam (Sec. 6.2)."""
    seed = crops.seed_of(experiment.seed, "weights")
    network = make(experiment.network, task_of(experiment).channels, experiment.width, seed)
    dtype = torch.float64 if experiment.precision == "fp64" else torch.float32
    network.to(device, dtype, memory_format=torch.channels_last)
    return network, adam(network.parameters(), experiment.learning_rate, device, experiment.beta1)
