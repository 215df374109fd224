"""Run or resume: load the data and the newest checkpoint, run a trainer epoch by epoch, check and save each."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import torch

from odl import crops
from odl.data import packs
from odl.evaluation import images_of
from odl.machine import checkpoint, files
from odl.machine.device import prepare

CHECKPOINT_SECONDS = 60


class Trained(NamedTuple):
    """A trained network, a dict for each epoch, and what training took, interrupted or not."""

    network: torch.nn.Module
    history: list[dict]
    seconds: list[float]  # of the clock and of the processor


@dataclass
class State:
    """What a trainer works on: it changes `network` and `optimizer` and reads `history`."""

    network: torch.nn.Module
    optimizer: torch.optim.Adam
    pack: crops.Pack
    x_validation: torch.Tensor
    history: list[dict]
    seconds: list[float]  # that were spent so far, of the clock and of the processor


def fit(experiment, build, trainer, device) -> Trained:
    """Load or start, run every epoch that is missing, and checkpoint.

    `build(experiment, device)` makes the network and its optimizer; `trainer(state)` is a generator that trains an
    epoch and yields its entry of the history, a dict with at least `loss` and `psnr`.
    """
    prepare(device)
    folder = files.runs() / experiment.run_id
    files.need_writable(folder)
    with files.locked(files.runs() / "locks" / f"{experiment.run_id.replace('/', '-')}.lock"):  # one process a run
        start = clocks()
        for left_over in folder.glob(".*.tmp"):
            left_over.unlink()  # of a process that was killed while it wrote
        owner = checkpoint.identity(experiment)  # before the images are read: a folder may change meanwhile
        saved_state = checkpoint.load_checkpoint(folder, experiment)
        pack = packs.load(experiment.dataset, "train", experiment.train_images).to(device)
        held_out = packs.load(experiment.dataset, "validation")
        x_validation = images_of(experiment, held_out, experiment.validation_images, "validation").to(device)
        state = State(*build(experiment, device), pack, x_validation, [], [0.0, 0.0])
        if saved_state:
            state.seconds = saved_state["seconds"]
            state.history = checkpoint.put_back(saved_state, state.network, state.optimizer, folder)

        before, snapshot, saved = state.seconds, None, time.monotonic()
        try:
            for entry in trainer(state) if len(state.history) < experiment.epochs else ():
                checkpoint.finite(entry, state.network, state.optimizer, len(state.history))
                state.history.append(entry)
                state.seconds = [b + now - then for b, now, then in zip(before, clocks(), start, strict=True)]
                snapshot = checkpoint.take_snapshot(owner, state)
                if len(state.history) == experiment.epochs or time.monotonic() - saved > CHECKPOINT_SECONDS:
                    checkpoint.save_checkpoint(folder, snapshot)
                    snapshot, saved = None, time.monotonic()
        finally:  # Ctrl-C, a deadline, a number that is not finite: the last whole epoch is kept
            if snapshot:
                checkpoint.save_checkpoint(folder, snapshot)
        return Trained(state.network.eval(), state.history, state.seconds)


def clocks() -> tuple[float, float]:
    return time.monotonic(), time.process_time()
