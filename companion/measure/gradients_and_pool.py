"""Two of the paper's explanations, tried on trained networks: which level pulls hardest, what hard mining remembers.

Both stand in Sec. 6.6, without a number.
"""

from dataclasses import replace

import pandas as pd
import torch

from companion.data import packs
from companion.judge import Decision, Evidence, decide_claim, paired, plain
from companion.training import results
from companion.training.measurement import Measurement
from odl import crops, paper
from odl.device import forward
from odl.evaluation import in_its_channels, psnr, squared_error, task_of
from odl.learn import hard_pool

IMAGES_PER_LEVEL = paper.BATCH_SIZE // paper.N_LEVELS  # images of a level in rigid joint learning's batch


def gradients(experiment, network, device="cpu", progress=None) -> pd.DataFrame:
    """Return rows (trial, level, norm): the norm over all weights of the gradient of one level's mean loss (Eq. 2).

    A trial is a batch of the paper's size with equal shares, of training images and in a single forward pass, because
    BatchNorm sees all levels together in training, too.
    """
    # Paper: "stronger gradients" has no definition; here: what an image of a level adds to a step, on average.
    pack, task = packs.load(experiment.dataset, "train", experiment.train_images).to(device), task_of(experiment)
    parameters, rows = list(network.to(device).train().parameters()), []
    for trial in range(experiment.trials):
        generator = torch.Generator(device).manual_seed(crops.seed_of("gradients", trial))
        index = torch.randint(len(pack), (paper.BATCH_SIZE,), generator=generator, device=device)
        x = in_its_channels(experiment, crops.crop(pack, index, generator))
        y = torch.cat([task.corrupt(part, level, generator) for level, part in enumerate(x.split(IMAGES_PER_LEVEL), 1)])
        losses = ((network(y) - x) ** 2).flatten(1).mean(1).view(paper.N_LEVELS, IMAGES_PER_LEVEL).mean(1)
        for level, loss in enumerate(losses, 1):
            gradient = torch.autograd.grad(loss, parameters, retain_graph=level < len(losses))
            norm = torch.cat([part.flatten() for part in gradient]).norm().item()
            rows.append((trial, str(level), round(norm, 6)))
        if progress:
            progress((trial + 1) / experiment.trials)
    return pd.DataFrame(rows, columns=["trial", "level", "norm"])


@torch.inference_mode()
def pool(experiment, network, device="cpu", progress=None) -> pd.DataFrame:
    """Return rows (trial, level, psnr): mean PSNR on items of hard mining's static pool (level `pool`) and on as many
    that are made of the test photographs in the same way (`held out`).
    """
    few, network = replace(experiment, pool_images=experiment.test_images), network.to(device).eval()
    rows = []
    for level, split in (("pool", "train"), ("held out", "test")):
        n = experiment.train_images if split == "train" else 0
        x, y = (images.float() / 127.5 - 1 for images in hard_pool(few, packs.load(experiment.dataset, split, n)))
        parts = zip(x.split(100), y.split(100), strict=True)
        error = [squared_error(forward(network, b.to(device), experiment.precision), a.to(device)) for a, b in parts]
        rows.append((0, level, round(psnr(torch.cat(error)).mean().item(), 5)))
        if progress:
            progress(len(rows) / 2)
    return pd.DataFrame(rows, columns=["trial", "level", "psnr"])


WORK_OF = {gradients: lambda e: 12 * e.trials, pool: lambda e: 2 * e.test_images / e.batch_size}  # batches forward
MEASURED = {"rigid_joint": (gradients, pool), "hard_mining": (pool,)}  # schedule → what is measured of its networks


def measurements_of(experiment) -> list[Measurement]:
    """Return the measurements of what explains a run; none of most schedules."""
    return [
        results.measurement_beside(experiment, evaluate.__name__, evaluate, WORK_OF[evaluate](experiment))
        for evaluate in MEASURED.get(experiment.schedule, ())
    ]


# The paper's claims; runs: (`gradients` or `pool`, task and perhaps schedule, seed) → Result


def load_all(experiments) -> dict:
    """Return every measurement that is here, of some runs."""
    found = {}
    for experiment in experiments:
        for evaluate, one in zip(MEASURED.get(experiment.schedule, ()), measurements_of(experiment), strict=True):
            if result := one.load():
                found[evaluate.__name__, f"{experiment.task} {experiment.schedule}", experiment.seed] = result
    return found


def severe_dominate(evidence: Evidence) -> Decision:
    """Judge whether level 5 has a larger gradient than level 1, in per cent, on every task."""
    parts = {}
    for task in paper.AS_SHIPPED:
        found = [run.level_means["norm"] for [run] in paired(evidence.runs, "gradients", f"{task} rigid_joint")]
        parts[plain(task)] = [100 * (norm["5"] / norm["1"] - 1) for norm in found]
    return decide_claim(parts, unit="%")


def remembers(evidence: Evidence) -> Decision:
    """Judge whether hard mining loses more from its pool to held-out examples than rigid joint learning does."""
    parts = {}
    for task in paper.AS_SHIPPED:
        pairs = paired(evidence.runs, "pool", *(f"{task} {schedule}" for schedule in ("hard_mining", "rigid_joint")))
        scores = [[run.level_means["psnr"] for run in pair] for pair in pairs]
        losses = [[score["pool"] - score["held out"] for score in pair] for pair in scores]
        parts[plain(task)] = [mining - joint for mining, joint in losses]
    return decide_claim(parts)
