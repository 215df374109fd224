"""Training: allocate → draw → corrupt → restore → loss → step; validate; checkpoint; resume (Algorithm 1).

Everything random in an epoch comes from a generator seeded by (run seed, epoch): schedules of one seed see the same
initial weights, crops and draws, and an interrupted run goes on exactly where it was.
"""

import copy
import hashlib
import io
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from odl import PROTOCOL, callable_module, data, paper, paths
from odl.evaluate import bounds_of, images_of, psnr, squared_error, task_of
from odl.network import EncoderDecoder, initialize
from odl.schedules import HARD_MINING_KEEP, HARD_MINING_WARM_UP, SCHEDULES, allocate_batches, dose
from odl.step import Step, averaged, make_deterministic, refresh_batchnorm, restore

CHECKPOINT_SECONDS = 60
TRUNKS = ("on_demand", "rigid_joint", *paper.FIXATED)  # these begin alike whatever their length
LAUNCHES = 32  # graphs that may wait in a GPU's queue
VALIDATION_BATCH = 100


class TrainingError(paths.OneLine, RuntimeError):
    """A number was not finite, or no checkpoint could be read; the message is one line."""


class Trained(NamedTuple):
    """A trained network, the same with averaged weights, and a dict for each epoch."""

    network: torch.nn.Module
    averaged: torch.nn.Module
    history: list[dict]


@dataclass
class State:
    """What a trainer works on: it changes `network` and `optimizer` and reads `history`."""

    network: torch.nn.Module
    optimizer: torch.optim.Adam
    pack: data.Pack
    x_validation: torch.Tensor
    history: list[dict]


def train(experiment, device="cpu", progress=None) -> Trained:
    """Train one run, resuming from its checkpoint if there is one.

    history: a dict an epoch with loss, psnr (dB per level 1…5), allocation (mean share of a batch per level, in per
    cent) and dose (how far that is from equal shares; both None if fixated). `progress(share done)` is called after
    every iteration. A checkpoint is written every minute, at the end, and when interrupted. Raises TrainingError when
    a number is not finite.
    """
    state = fit(experiment, build, partial(epochs, experiment, device=device, progress=progress), device)
    return Trained(state.network.eval(), averaged_network(experiment, state), state.history)


def epochs(experiment, state: State, device, progress=None):
    """Algorithm 1: train an epoch with a batch divided by the last validation, validate, yield the epoch's dict."""
    step = Step(experiment, state.network, state.optimizer, state.pack)
    for epoch in range(len(state.history), experiment.epochs):
        counts = allocation(experiment, epoch, state.history)
        loss = train_epoch(step, epoch, counts, progress)
        scores = validate(experiment, state.network, state.x_validation, device)
        shares = None if counts is None else counts.mean(0) / experiment.batch_size
        yield {
            "loss": loss,
            "psnr": scores,
            "allocation": None if counts is None else (100 * shares).round(6).tolist(),
            "dose": None if counts is None else dose(shares),
        }


def averaged_network(experiment, state: State, batches: int = 50):
    """The network with averaged weights; BatchNorm's statistics are taken anew on the run's own last mixture."""
    step = Step(experiment, state.network, state.optimizer, state.pack)
    counts = allocation(experiment, experiment.epochs - 1, state.history[:-1])
    network = averaged(state.network, state.optimizer)

    def images():
        for _ in numbered(step, "statistics", counts, batches):
            y = step.draw()[1]
            yield y.double() if experiment.precision == "fp64" else y

    refresh_batchnorm(network, images())
    return network


def fit(experiment, build, trainer, device) -> State:
    """Load or start, run every epoch that is missing, and checkpoint.

    `build(experiment, device)` makes the network and its optimizer; `trainer(state)` is a generator that trains an
    epoch and yields its entry of the history.
    """
    if device == "cuda":
        make_deterministic()
    folder = paths.runs() / experiment.run_id
    for left_over in folder.glob(".*.tmp"):
        left_over.unlink()  # of a process that was killed while it wrote
    saved_state = load_checkpoint(folder, experiment) or load_trunk(folder, experiment)
    pack = data.load(experiment.dataset, "train", experiment.train_images).to(device)
    held_out = data.load(experiment.dataset, "validation")
    x_validation = images_of(experiment, held_out, experiment.validation_images, "validation").to(device)
    state = State(*build(experiment, device), pack, x_validation, [])
    if saved_state:
        state.history = put_back(saved_state, state.network, state.optimizer, folder)

    snapshot, saved = None, time.monotonic()
    try:
        for entry in trainer(state) if len(state.history) < experiment.epochs else ():
            finite(entry, state.network, state.optimizer, len(state.history))
            state.history.append(entry)
            snapshot = take_snapshot(experiment, state)
            if len(state.history) == trunk_epochs(experiment) < experiment.epochs:
                save_checkpoint(folder, snapshot, "trunk.pt")
            if len(state.history) == experiment.epochs or time.monotonic() - saved > CHECKPOINT_SECONDS:
                save_checkpoint(folder, snapshot)
                snapshot, saved = None, time.monotonic()
    finally:  # Ctrl-C, a deadline, a number that is not finite: the last whole epoch is kept
        if snapshot:
            save_checkpoint(folder, snapshot)
    return state


def build(experiment, device):
    """The network with its initial weights and its Adam (Sec. 6.2)."""
    network = EncoderDecoder(task_of(experiment).channels, experiment.width)
    initialize(network, torch.Generator().manual_seed(data.seed_of(experiment.seed, "weights")))
    dtype = torch.float64 if experiment.precision == "fp64" else torch.float32
    network.to(device, dtype, memory_format=torch.channels_last)
    return network, adam(network.parameters(), experiment.learning_rate, device)


def adam(parameters, learning_rate: float, device) -> torch.optim.Adam:
    """Adam as in Sec. 6.2; on a GPU its state and its rate stay there, so that a graph can hold them."""
    on_gpu = torch.device(device).type == "cuda"
    rate = torch.tensor(learning_rate, device=device) if on_gpu else learning_rate
    optimizer = torch.optim.Adam(parameters, rate, betas=(0.5, 0.999), fused=True, capturable=on_gpu)
    for group in optimizer.param_groups:
        group["initial_lr"] = float(group["lr"])
    return optimizer


def set_rate(optimizer, factor: float) -> None:
    """Set every learning rate to `factor` times its initial one."""
    for group in optimizer.param_groups:
        rate = factor * group["initial_lr"]
        group["lr"] = group["lr"].fill_(rate) if torch.is_tensor(group["lr"]) else rate


def rate(experiment, done: float) -> float:
    """The learning rate after a share of training, as a factor: 1, then over the last share `decay` down to 0."""
    # Paper: constant; here: a linear end, because it is worth most of a decibel to so short a training.
    return 1.0 if 1 - done >= experiment.decay else (1 - done) / experiment.decay


def allocation(experiment, epoch: int, history) -> np.ndarray | None:
    """Images per level of each batch of an epoch, (iterations, N); None for fixated models."""
    schedule = SCHEDULES[experiment.schedule]
    if schedule is None:
        return None
    last = history[-1]["psnr"] if history else None
    weights = schedule(epoch / experiment.epochs, last, paper.N_LEVELS)
    if experiment.sharpness != 1:
        weights = weights**experiment.sharpness
    return allocate_batches(weights, experiment.batch_size, experiment.iterations)[0]


def batches(step: Step, epoch: int, counts):
    """Fill the step's buffers for each batch of an epoch in turn, and yield its number."""
    return numbered(step, epoch, counts, step.experiment.iterations)


def numbered(step: Step, stream, counts, n: int):
    """Fill the step's buffers for each of n batches, all drawn from (seed, stream), and yield its number."""
    e, generator = step.experiment, step.generator
    step.assign(counts)
    generator.manual_seed(data.seed_of(e.seed, stream, "train"))
    items = len(step.pack) if step.pool is None else e.pool_images
    for i, index in enumerate(shuffled(items, n * e.batch_size, generator).view(n, e.batch_size)):
        step.select(i, index)
        yield i


def shuffled(n: int, total: int, generator) -> torch.Tensor:
    """`total` indices below n, as many whole permutations as it takes."""
    rounds = math.ceil(total / n)
    if generator.device.type == "cuda":  # in one call
        return torch.rand(rounds, n, generator=generator, device="cuda").argsort(1).flatten()[:total]
    return torch.cat([torch.randperm(n, generator=generator) for _ in range(rounds)])[:total]


def train_epoch(step: Step, epoch: int, counts, progress=None) -> float:
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


@torch.inference_mode()
def validate(experiment, network, x, device, sub_tasks=None, precision=None) -> list[float]:
    """Mean PSNR in dB of levels 1…5 on the validation crops, with the same corruptions every epoch.

    sub_tasks: others in their place, a (task, lowest severity, highest severity) each. precision: the experiment's.
    """
    network.eval()
    precision = precision or experiment.precision
    own, scores = task_of(experiment), []
    sub_tasks = sub_tasks or [(own, *bounds_of(own, level)) for level in range(1, paper.N_LEVELS + 1)]
    for level, (task, low, high) in enumerate(sub_tasks, 1):
        generator = torch.Generator(device).manual_seed(data.seed_of("validate", level))
        parts = [
            squared_error(restore(network, task.corrupt_between(part, low, high, generator), precision), part)
            for part in x.split(VALIDATION_BATCH)
        ]
        scores.append(psnr(torch.cat(parts)).mean().item())
    return scores


def finite(entry: dict, network, optimizer, epoch: int) -> None:
    """Raise TrainingError when a number of an epoch, a weight or a moment of Adam is not finite."""
    if not np.isfinite([entry["loss"], *entry["psnr"]]).all():
        numbers = f"loss {entry['loss']} or validation PSNR {entry['psnr']}"
        raise TrainingError(f"epoch {epoch + 1}: {numbers} is not finite; stopped")
    moments = [t for slot in optimizer.state.values() for t in slot.values() if torch.is_tensor(t)]
    numbers = [t for t in (*network.state_dict().values(), *moments) if t.is_floating_point()]
    if not torch.stack(torch._foreach_norm(numbers, math.inf)).isfinite().all():  # one question to a GPU
        raise TrainingError(f"epoch {epoch + 1}: a weight or a moment of Adam is not finite; stopped")


# Checkpoints: SHA-256 of the payload, then the payload; the previous one is kept.


def take_snapshot(experiment, state: State) -> dict:
    """A copy of everything that an exact resume needs, at the end of an epoch."""
    kept = {"network": state.network.state_dict(), "optimizer": state.optimizer.state_dict(), "history": state.history}
    return copy.deepcopy(kept) | {"experiment": experiment.asdict() | {"protocol": PROTOCOL}}


def save_checkpoint(folder: Path, snapshot: dict, name: str = "checkpoint.pt") -> None:
    """Replace the checkpoint atomically, keeping the one before."""
    path, buffer = folder / name, io.BytesIO()
    torch.save(snapshot, buffer)
    if path.exists() and name == "checkpoint.pt":
        path.replace(folder / "previous.pt")
    paths.write_atomically(path, hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue())


def trunk_epochs(experiment) -> int:
    """Whole epochs before the learning rate falls."""
    return math.floor(experiment.epochs * (1 - experiment.decay) + 1e-9)


def load_trunk(folder: Path, experiment) -> dict | None:
    """The longest trunk that a run differing in its length alone has left, where it is this run's beginning too.

    A trunk ends where the learning rate begins to fall. Stages and hard mining's warm-up are shares of the length.
    """
    if experiment.schedule not in TRUNKS:
        return None
    wanted, found = experiment.asdict() | {"epochs": None, "protocol": PROTOCOL}, []
    for path in folder.parent.glob(f"{experiment.schedule}-seed{experiment.seed}*/trunk.pt"):
        state = read_checkpoint(path)
        if state and state["experiment"] | {"epochs": None} == wanted:
            found.append(state)
    found = [state for state in found if len(state["history"]) <= trunk_epochs(experiment)]
    return max(found, key=lambda state: len(state["history"]), default=None)


def load_checkpoint(folder: Path, experiment) -> dict | None:
    """The newest whole checkpoint of this experiment and protocol; a damaged one is named, the previous one used."""
    for path in (folder / "checkpoint.pt", folder / "previous.pt"):
        if not path.exists():
            continue
        state = read_checkpoint(path)
        if state is None:
            print(f"{path}: damaged checkpoint, going back to the previous one")
            path.replace(path.with_suffix(".damaged"))  # else the next save would keep it as the previous one
        elif state["experiment"] == experiment.asdict() | {"protocol": PROTOCOL}:
            return state
    return None


def read_checkpoint(path: Path) -> dict | None:
    """What a checkpoint holds, None where it is damaged or not one of ours; nothing in it is executed."""
    content = path.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    try:
        state = torch.load(io.BytesIO(content[32:]), map_location="cpu", weights_only=True)
        state = {key: state[key] for key in ("network", "optimizer", "history", "experiment")}
        return state if isinstance(state["experiment"], dict) and isinstance(state["history"], list) else None
    except Exception:  # a file made to harm raises anything
        return None


def put_back(state: dict, network, optimizer, folder: Path) -> list[dict]:
    """Load a checkpoint's state into the network and its optimizer. Returns the history."""
    settings = optimizer.state_dict()["param_groups"]  # this device's own: a GPU keeps its state where a graph can
    try:
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"] | {"param_groups": settings})
    except Exception as error:  # a file made to harm raises anything
        reason = str(error).splitlines()[0]
        raise TrainingError(f"{folder}: the checkpoint does not fit the network ({reason}); delete it") from None
    return state["history"]


callable_module(__name__, train)
