"""Training: allocate → draw → corrupt → restore → loss → step; validate; checkpoint; resume (Algorithm 1).

Everything random in an epoch comes from a generator seeded by (run seed, epoch): schedules of one seed see the same
initial weights, crops and draws, and an interrupted run goes on exactly where it was.
"""

import hashlib
import io
import math
import time
from pathlib import Path

import numpy as np
import torch

from odl import PROTOCOL, data, paper, paths
from odl.evaluate import bounds_of, images_of, psnr, squared_error, task_of
from odl.network import EncoderDecoder, initialize
from odl.schedules import HARD_MINING_KEEP, HARD_MINING_WARM_UP, SCHEDULES, allocate
from odl.step import Step, make_deterministic, restore

CHECKPOINT_SECONDS = 60


class TrainingError(paths.OneLine, RuntimeError):
    """A number was not finite, or no checkpoint could be read; the message is one line."""


def train(experiment, device="cpu", precision="auto", progress=None):
    """Train one run, resuming from its checkpoint if there is one. Returns (network, history).

    history: one dict an epoch with loss, psnr (dB per level 1…5) and allocation (images per level, None if fixated).
    `progress(share done)` is called after every iteration. A checkpoint is written every minute, at the end, and when
    interrupted. Raises TrainingError when a number is not finite.
    """

    step = None

    def run_epoch(network, optimizer, pack, x_validation, precision, history):
        nonlocal step
        step = step or Step(experiment, network, optimizer, pack, precision)
        epoch = len(history)
        counts = allocation(experiment, epoch, history)
        loss = train_epoch(step, epoch, counts, progress)
        scores = validate(experiment, network, x_validation, device, precision)
        return {"loss": loss, "psnr": scores, "allocation": counts}

    return fit(experiment, build, run_epoch, device, precision)


def fit(experiment, build, run_epoch, device, precision):
    """Load or start, run every epoch that is missing, and checkpoint. Returns (network, history).

    `build(experiment, device)` makes the network and its optimizer; `run_epoch(network, optimizer, pack, x_validation,
    precision, history)` trains one epoch and answers its entry of the history.
    """
    if device == "cuda":
        make_deterministic()
    folder = paths.runs() / experiment.run_id
    for left_over in folder.glob(".*.tmp"):
        left_over.unlink()  # of a process that was killed while it wrote
    state = load_checkpoint(folder, experiment)
    precision = state["precision"] if state else choose_precision(device, precision)
    pack = data.load(experiment.dataset, "train", experiment.train_images).to(device)
    held_out = data.load(experiment.dataset, "validation")
    x_validation = images_of(experiment, held_out, experiment.validation_images, "validation").to(device)
    network, optimizer = build(experiment, device)
    history = []
    if state:
        history = put_back(state, network, optimizer, folder)

    snapshot, saved = None, time.monotonic()
    try:
        while len(history) < experiment.epochs:
            entry = run_epoch(network, optimizer, pack, x_validation, precision, history)
            finite(entry, network, optimizer, len(history))
            history.append(entry)
            snapshot = take_snapshot(experiment, network, optimizer, history, precision)
            if len(history) == experiment.epochs or time.monotonic() - saved > CHECKPOINT_SECONDS:
                save_checkpoint(folder, snapshot)
                snapshot, saved = None, time.monotonic()
    finally:  # Ctrl-C, a deadline, a number that is not finite: the last whole epoch is kept
        if snapshot:
            save_checkpoint(folder, snapshot)
    return network.eval(), history


def build(experiment, device):
    """The network with its initial weights and its Adam (Sec. 6.2)."""
    network = EncoderDecoder(task_of(experiment).channels, experiment.width)
    initialize(network, torch.Generator().manual_seed(data.seed_of(experiment.seed, "weights")))
    network.to(device, memory_format=torch.channels_last)
    return network, adam(network.parameters(), experiment.learning_rate, device)


def adam(parameters, learning_rate: float, device) -> torch.optim.Adam:
    """Adam as in Sec. 6.2; on a GPU its state stays there, so that a graph can hold it."""
    kept = {"fused": True, "capturable": torch.device(device).type == "cuda"}
    return torch.optim.Adam(parameters, learning_rate, betas=(0.5, 0.999), **kept)


def allocation(experiment, epoch: int, history) -> list[int] | None:
    """Images per level of this epoch's batches; None for fixated models."""
    schedule = SCHEDULES[experiment.schedule]
    if schedule is None:
        return None
    last = history[-1]["psnr"] if history else None
    return allocate(schedule(epoch / experiment.epochs, last, paper.N_LEVELS), experiment.batch_size).tolist()


def batches(step: Step, epoch: int, counts):
    """Fill the step's buffers for each batch of an epoch in turn, and answer its number."""
    e, device, generator = step.experiment, step.index.device, step.generator
    step.assign(counts)
    generator.manual_seed(data.seed_of(e.seed, epoch, "train"))
    order = shuffled(len(step.pack), e.iterations * e.batch_size, generator).view(e.iterations, e.batch_size)
    pool = shuffled(max(1, e.pool_images // e.batch_size), e.iterations, generator).tolist()
    for i in range(e.iterations):
        if e.schedule == "hard_mining":
            # Paper: a stored pool of 1M corrupted images; here: batch k of the pool is drawn again from its
            # own seed, because that is the same pool without the disk.
            generator.manual_seed(data.seed_of(e.seed, "pool", pool[i]))
            order[i] = (torch.arange(e.batch_size, device=device) + pool[i] * e.batch_size) % len(step.pack)
        step.index.copy_(order[i])
        yield i


def shuffled(n: int, total: int, generator) -> torch.Tensor:
    """`total` indices below n, as many whole permutations as it takes."""
    rounds = math.ceil(total / n)
    parts = [torch.randperm(n, generator=generator, device=generator.device) for _ in range(rounds)]
    return torch.cat(parts)[:total]


def train_epoch(step: Step, epoch: int, counts, progress=None) -> float:
    """One epoch of Adam steps on the mean squared error over all pixels (Eq. 2). Returns the mean loss."""
    e = step.experiment
    mining = e.schedule == "hard_mining" and epoch / e.epochs >= HARD_MINING_WARM_UP
    step.keep = HARD_MINING_KEEP if mining else None
    step.network.train()
    step.total.zero_()
    for i in batches(step, epoch, counts):
        step()
        if progress:
            progress((epoch + (i + 1) / e.iterations) / e.epochs)
    return (step.total / e.iterations).item()


@torch.inference_mode()
def validate(experiment, network, x, device, precision, sub_tasks=None) -> list[float]:
    """Mean PSNR in dB of levels 1…5 on the validation crops, with the same corruptions every epoch.

    sub_tasks: others in their place, a (task, lowest severity, highest severity) each.
    """
    network.eval()
    own, scores = task_of(experiment), []
    sub_tasks = sub_tasks or [(own, *bounds_of(own, level)) for level in range(1, paper.N_LEVELS + 1)]
    for level, (task, low, high) in enumerate(sub_tasks, 1):
        generator = torch.Generator(device).manual_seed(data.seed_of("validate", level))
        parts = [
            squared_error(restore(network, task.corrupt_between(part, low, high, generator), precision), part)
            for part in x.split(experiment.batch_size)
        ]
        scores.append(psnr(torch.cat(parts)).mean().item())
    return scores


def finite(entry: dict, network, optimizer, epoch: int) -> None:
    """Raise TrainingError when a number of an epoch, a weight or a moment of Adam is not finite."""
    if not np.isfinite([entry["loss"], *entry["psnr"]]).all():
        numbers = f"loss {entry['loss']} or validation PSNR {entry['psnr']}"
        raise TrainingError(f"epoch {epoch + 1}: {numbers} is not finite; stopped")
    moments = [t for slot in optimizer.state.values() for t in slot.values() if torch.is_tensor(t)]
    if not all(torch.isfinite(t).all() for t in (*network.state_dict().values(), *moments)):
        raise TrainingError(f"epoch {epoch + 1}: a weight or a moment of Adam is not finite; stopped")


# Precision


def choose_precision(device: str, precision: str = "auto") -> str:
    """`bf16` where it is native and a timed step says it is faster, else `fp32`; a given choice stands."""
    if precision != "auto":
        return precision
    if str(device).startswith("cuda"):
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return "fp32"
    return min(("fp32", "bf16"), key=step_seconds)


def step_seconds(precision: str, rounds: int = 5) -> float:
    """CPU seconds of the fastest of a few small training steps; not wall time, which other processes disturb."""
    network = EncoderDecoder(3, 16).to(memory_format=torch.channels_last)
    y = torch.zeros(16, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    times = []
    for _ in range(1 + rounds):
        start = time.process_time()
        restore(network, y, precision).square().mean().backward()
        times.append(time.process_time() - start)
    return min(times[1:])


# Checkpoints: SHA-256 of the payload, then the payload; the previous one is kept.


def take_snapshot(experiment, network, optimizer, history, precision) -> dict:
    """A copy of everything that an exact resume needs, at the end of an epoch."""
    buffer = io.BytesIO()
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
    described = experiment.asdict() | {"protocol": PROTOCOL}
    torch.save(state | {"history": history, "precision": precision, "experiment": described}, buffer)
    return {"payload": buffer.getvalue()}


def save_checkpoint(folder: Path, snapshot: dict) -> None:
    """Replace the checkpoint atomically, keeping the one before."""
    path = folder / "checkpoint.pt"
    if path.exists():
        path.replace(folder / "previous.pt")
    payload = snapshot["payload"]
    paths.write_atomically(path, hashlib.sha256(payload).digest() + payload)


def load_checkpoint(folder: Path, experiment) -> dict | None:
    """The newest whole checkpoint of this very experiment and protocol; a damaged one is named and left."""
    for path in (folder / "checkpoint.pt", folder / "previous.pt"):
        if not path.exists():
            continue
        state = read_checkpoint(path)
        if state is None:
            print(f"{path}: damaged checkpoint, going back to the previous one")
            path.replace(path.with_suffix(".damaged"))  # else the next save would keep it as the previous one
            continue
        if state["experiment"] == experiment.asdict() | {"protocol": PROTOCOL}:
            return state
    return None


def read_checkpoint(path: Path) -> dict | None:
    """What a checkpoint holds, None where it is damaged or not one of ours; nothing in it is executed."""
    content = path.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    try:
        state = torch.load(io.BytesIO(content[32:]), map_location="cpu", weights_only=True)
        return {key: state[key] for key in ("network", "optimizer", "history", "precision", "experiment")}
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
