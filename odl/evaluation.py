"""Trials × levels → a tidy table of L2 (‰ on the [0, 1] scale) and PSNR in dB (Sec. 6.3, Table 1)."""

import pandas as pd
import torch

from odl import crops, paper
from odl.corruptions import TASKS, Task
from odl.device import pytorch_defaults
from odl.parameters import ParameterError, choice

COLUMNS = ["trial", "level", "l2", "psnr", "l2_input", "psnr_input", "psnr_kept", "psnr_hole"]
TESTED = (*range(1, paper.N_LEVELS + 2), "easy", "hard")  # 1…6, and the severities of the fixated models


def squared_error(x_hat, x) -> torch.Tensor:
    """Return mean squared error per image on the [0, 1] scale: (B,) from images in [-1, 1]."""
    return ((x_hat.clamp(-1, 1) - x) ** 2).flatten(1).mean(1) / 4


def psnr(error) -> torch.Tensor:
    """Return PSNR in dB, peak 1, of mean squared errors on the [0, 1] scale; at most 100 dB."""
    return -10 * torch.log10(error.clamp(min=1e-10))


def task_of(experiment) -> Task:
    """Return the task of a run. Raises ParameterError where it has levels and no functions."""
    choice("task", experiment.task, TASKS)
    return TASKS[experiment.task]


def images_of(experiment, pack: crops.Pack, n: int, stream: str) -> torch.Tensor:
    """Return n fixed crops, grey where the task is: (n, channels, 64, 64)."""
    return in_its_channels(experiment, crops.fixed_crops(pack, n, stream))


def in_its_channels(experiment, x, first: int = 0) -> torch.Tensor:
    """Return colour crops, the first of them the so many-th, as the task has them: grey where it has one channel.

    Where some of its crops are grey in three channels, these are changed in place.
    """
    task = task_of(experiment)
    if task.grey_every:
        some = slice(-first % task.grey_every, None, task.grey_every)
        x[some] = crops.grey(x[some])
    return crops.grey(x) if task.channels == 1 else x


@torch.inference_mode()
def errors(restore, task: Task, x, level, generator) -> dict[str, torch.Tensor]:
    """Return what `scored` has (n,) of `restore(y)`, y being x damaged afresh at `level` (1…6, `easy` or `hard`).

    On a CPU a batch at a time, which fits its cache; on a GPU all at once, which saves launches. Raises ParameterError
    where what `restore` returns has not the shape of y.
    """
    parts = []
    for part in x.split(len(x) if x.is_cuda else 100):
        y = task.corrupt(part, level, generator)
        x_hat = restore(y.clone())  # may write in place
        if not torch.is_tensor(x_hat) or x_hat.shape != part.shape:
            found = tuple(x_hat.shape) if torch.is_tensor(x_hat) else type(x_hat).__name__
            raise ParameterError(f"restore returned {found} for a tensor of images {tuple(part.shape)}")
        parts.append(scored(task, x_hat, part, y))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def scored(task: Task, x_hat, x, y) -> dict[str, torch.Tensor]:
    """Return squared error per image (B,) of x_hat, restored from its damaged y, by what is scored.

    `output`: x_hat; `input`: y itself, not restored; `kept`: x_hat with the known pixels put back; `hole`: x_hat inside
    the missing pixels alone, NaN where none is missing. The last two belong to tasks with missing pixels.
    """
    found = {"output": squared_error(x_hat, x), "input": squared_error(y, x)}
    if task.name in paper.MASKED:
        known = (y == x).all(1, keepdim=True)
        hole = (~known).float().mean((1, 2, 3))  # share of an image
        found["kept"] = squared_error(torch.where(known, x, x_hat), x)
        found["hole"] = found["kept"] / hole.where(hole > 0, torch.nan)
    return found


@pytorch_defaults()
def evaluate(experiment, restore, x, progress=None, levels=TESTED) -> tuple[pd.DataFrame, dict]:
    """Score `restore(y) -> x_hat`, a network or a function, on clean test crops; the same draws for every schedule.

    Of `experiment` the task and the number of trials count.
    A network is called as it is, in fp32; `windows.restorer(network, precision)` is a function in its own precision.
    `x`, y and x_hat are (B, C, 64, 64) in [-1, 1], on x's device; `levels` are some of `TESTED`; `progress(share done)`
    is called after every trial. Raises ParameterError where x_hat has not the shape of y, or the task has no functions.
    Returns rows (trial, level, l2, psnr, l2_input, psnr_input, psnr_kept, psnr_hole): l2 in ‰, psnr the mean over
    images of the PSNR per image, of what `scored` has; and level → per image (n,) the mean over trials of l2 and psnr.
    """
    task, trials, device = task_of(experiment), experiment.trials, x.device
    rows, images = [], {}
    for trial in range(trials):
        for level in levels:
            generator = torch.Generator(device).manual_seed(crops.seed_of("evaluate", trial, level))
            error = errors(restore, task, x, level, generator)
            db = {name: psnr(value) for name, value in error.items()}
            masked = [db[name].nanmean().item() if name in db else float("nan") for name in ("kept", "hole")]
            scores = [(error[name].mean().item() * 1000, db[name].mean().item()) for name in ("output", "input")]
            rows.append((trial, str(level), *scores[0], *scores[1], *masked))
            mean = images.setdefault(str(level), {"l2": 0, "psnr": 0})
            mean["l2"] = mean["l2"] + 1000 * error["output"] / trials
            mean["psnr"] = mean["psnr"] + db["output"] / trials
        if progress:
            progress((trial + 1) / trials)
    return pd.DataFrame(rows, columns=COLUMNS), images


def overall(evaluation: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over levels 1…6 per trial: columns l2, psnr, indexed by trial."""
    graded = evaluation[~evaluation.level.isin(["easy", "hard"])]
    return graded.groupby("trial")[["l2", "psnr"]].mean()
