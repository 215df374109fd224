"""Inpainters on a central and on an arbitrary 32×32 block, measured inside the block only (Sec. 6.5)."""

from functools import partial
from math import ceil

import numpy as np
import pandas as pd
import torch
from skimage.restoration import inpaint_biharmonic
from torch import nn

from companion.runs import sweep
from odl import crops, results
from odl.corruptions import delete, draw_square, square_mask
from odl.data import packs, sets
from odl.evaluation import psnr
from odl.machine import store
from odl.machine.device import forward
from odl.machine.provenance import origin, processor
from odl.results import Result

BLOCKS = ("central", "arbitrary")
SIDE = 32  # the paper does not say; the context encoder's setting implies it


def block_masks(block: str, n: int, generator, side: int = SIDE) -> torch.Tensor:
    """True inside one missing block per image, in the middle or anywhere: (n, 1, 64, 64)."""
    sides = torch.full((n,), float(side), device=generator.device)
    return square_mask(draw_square(sides, sides, crops.CROP, generator, centred=block == "central"), crops.CROP)


def inpaint(network, y, mask, precision: str = "fp32") -> torch.Tensor:
    """Fill the missing pixels of y (B, 3, 64, 64): true in mask (B, 1, 64, 64).

    A network that returns only the centre leaves missing pixels outside it as they are.
    """
    return paste(forward(network, y, precision), y, mask)


def paste(x_hat, y, mask) -> torch.Tensor:
    """y (B, 3, 64, 64) with its missing pixels from x_hat (B, 3, side, side), the whole image or its centre."""
    margin = (y.shape[-1] - x_hat.shape[-1]) // 2
    inside = nn.functional.pad(torch.ones_like(x_hat[:, :1], dtype=torch.bool), [margin] * 4)
    return torch.where(mask & inside, nn.functional.pad(x_hat, [margin] * 4), y)


def hole_error(x_hat, x, mask) -> torch.Tensor:
    """Mean squared error per image over its missing pixels, on the [0, 1] scale: (B,)."""
    squared = ((x_hat - x) ** 2 * mask).flatten(1).sum(1)
    return squared / (x.shape[1] * mask.flatten(1).sum(1)) / 4


def errors(fill, x, mask, batch_size: int) -> torch.Tensor:
    """`hole_error` of what `fill(y, mask)` makes of x without the pixels in mask, a batch at a time: (B,)."""
    parts = zip(x.split(batch_size), mask.split(batch_size), strict=True)
    return torch.cat([hole_error(fill(delete(p, m), m), p, m) for p, m in parts])


def evaluate(experiment, network, device="cpu", progress=None) -> pd.DataFrame:
    """`measure` of a network."""
    fill = partial(inpaint, network.to(device).eval(), precision=experiment.precision)
    return measure(experiment, fill, device, progress)


@torch.inference_mode()
def measure(experiment, fill, device="cpu", progress=None) -> pd.DataFrame:
    """Rows (trial, level, l2, psnr) with level `central` or `arbitrary`; the same draws for every `fill(y, mask)`.

    l2 in ‰, psnr the mean over images of the PSNR per image, both inside the block.
    """
    # Paper: standard errors are not given here; here: a trial draws its crops afresh, because nothing else varies
    # between two trials of the central block.
    pack = packs.load(experiment.dataset, "test")
    rows = []
    for trial in range(experiment.trials):
        x = crops.fixed_crops(pack, experiment.test_images, f"blocks/{trial}").to(device)
        for block in BLOCKS:
            generator = torch.Generator(device).manual_seed(crops.seed_of("blocks", trial, block))
            mask = block_masks(block, len(x), generator)
            error = errors(fill, x, mask, experiment.batch_size)
            rows.append((trial, block, error.mean().item() * 1000, psnr(error).mean().item()))
            if progress:
                progress(len(rows) / (experiment.trials * len(BLOCKS)))
    return pd.DataFrame(rows, columns=["trial", "level", "l2", "psnr"]).round({"l2": 6, "psnr": 5})


def not_restored(experiment) -> list[Result]:
    """What the grey filling scores on the blocks that every inpainter meets; empty where the photographs are not."""
    try:
        rows = measure(experiment, lambda y, mask: y)
    except sets.DataError:
        return []
    return [Result({"schedule": "not_restored"}, {}, [], rows, path_of(experiment))]


# The fill that learns nothing

CLASSICAL = "biharmonic"


def smoothest(y, mask) -> torch.Tensor:
    """y (B, C, H, W) in [-1, 1] with Δ²x̂ = 0 where mask (B, 1, H, W) is true, as scikit-image solves it."""
    pairs = zip(y.permute(0, 2, 3, 1).double().numpy(), mask[:, 0].numpy(), strict=True)
    filled = [inpaint_biharmonic((image + 1) / 2, missing, channel_axis=-1) for image, missing in pairs]
    return torch.from_numpy(np.stack(filled) * 2 - 1).permute(0, 3, 1, 2).to(y.dtype)


def classical_job(run) -> sweep.Job:
    """The job that measures the biharmonic equation on the blocks that every inpainter of this scale meets."""
    load, now = partial(load_classical, run), partial(run_classical, run)
    work = run.trials * len(BLOCKS) * run.test_images  # a crop takes about as long as a batch of a network
    return sweep.Job(run.run_id, (sweep.Measurement(load, now, work, results.path_of(run)),), run)


def asked_of_classical(run) -> dict:
    """What its scores depend on; it has no seed."""
    data = {name: value for name, value in run.asdict().items() if name in ("dataset", "images")}
    own = {"task": run.task, "schedule": CLASSICAL, "seed": 0, "test_images": run.test_images, "trials": run.trials}
    return own | data


def load_classical(run) -> Result | None:
    """What it scored, or None."""
    content = store.load(results.path_of(run), asked_of_classical(run))
    return results.as_result(content, results.path_of(run)) if content else None


def run_classical(run, device="auto", progress=None) -> Result:
    """What it scores, measured where it is not on disk: on the CPU, whatever the device."""

    def now():
        pixels = packs.load(run.dataset, "test").sha256
        source = origin("cpu", "scikit-image") | {"processor": processor(), "data_sha256": pixels}
        rows = measure(run, smoothest, progress=progress)
        return {"provenance": source, "history": [], "evaluation": rows.to_dict("list")}

    path = results.path_of(run)
    return results.as_result(store.run_or_load(path, asked_of_classical(run), now), path)


# A trained inpainter of ours


def path_of(experiment):
    return sweep.path_beside(experiment, "blocks")


def load(experiment) -> Result | None:
    """What was measured of this inpainter on the blocks, or None."""
    return results.load(experiment, path_of(experiment))


def job_of(experiment) -> sweep.Job:
    """The job that trains one of our inpainters and measures it on the levels and on the blocks."""
    return sweep.job_of(experiment, sweep.of_network(experiment, "blocks", evaluate, work_of(experiment)))


def work_of(experiment) -> int:
    """Batches passed forward in one measurement on the blocks."""
    return experiment.trials * len(BLOCKS) * ceil(experiment.test_images / experiment.batch_size)
