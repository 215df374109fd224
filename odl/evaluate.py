"""Trials × levels → a tidy table of L2 (‰ on the [0, 1] scale) and PSNR (dB), and paired tests (Sec. 6.3, Table 1)."""

import numpy as np
import pandas as pd
import torch
from scipy import stats

from odl import data, paper
from odl.corruptions import RELEASED, TASKS, Task

LEVELS = (*range(1, paper.N_LEVELS + 2), "easy", "hard")  # 1…6, and the severities of the fixated models


def squared_error(x_hat, x) -> torch.Tensor:
    """Mean squared error per image on the [0, 1] scale: (B,) from images in [-1, 1]."""
    return ((x_hat.clamp(-1, 1) - x) ** 2).flatten(1).mean(1) / 4


def psnr(error) -> torch.Tensor:
    """PSNR in dB, peak 1, of mean squared errors on the [0, 1] scale; at most 100 dB."""
    return -10 * torch.log10(error.clamp(min=1e-10))


def task_of(experiment) -> Task:
    return (RELEASED if experiment.variant == "released" else TASKS)[experiment.task]


def images_of(experiment, pack: data.Pack, n: int, stream: str) -> torch.Tensor:
    """n fixed crops, grey where the task is: (n, channels, 64, 64)."""
    x = data.fixed_crops(pack, n, stream)
    return data.grey(x, experiment.variant) if task_of(experiment).channels == 1 else x


@torch.inference_mode()
def errors(restore, task: Task, x, level, generator, batch: int = 100) -> torch.Tensor:
    """Squared error per image of `restore(y)` on fresh corruptions of x at `level` (1…6, `easy` or `hard`): (n,)."""
    if level in ("easy", "hard"):
        low = high = paper.TASKS[task.name][level]
    else:
        low, high = paper.TASKS[task.name]["levels"][level - 1]
    parts = []
    for part in x.split(batch):
        y = task.corrupt_between(part, low, high, generator, centred=level in ("easy", "hard"))
        parts.append(squared_error(restore(y), part))
    return torch.cat(parts)


def evaluate(experiment, restore, device="cpu", progress=None, pack=None) -> pd.DataFrame:
    """Rows (trial, level, l2, psnr) of `restore(y) -> x_hat` on the test crops; the same draws for every schedule.

    l2 in ‰, psnr the mean over images of the PSNR per image.
    """
    task = task_of(experiment)
    pack = pack or data.load(experiment.dataset, "test")
    x = images_of(experiment, pack, experiment.test_images, "test").to(device)
    rows = []
    for trial in range(experiment.trials):
        for level in LEVELS:
            generator = torch.Generator(device).manual_seed(data.seed_of("evaluate", trial, level))
            error = errors(restore, task, x, level, generator)
            rows.append((trial, str(level), error.mean().item() * 1000, psnr(error).mean().item()))
        if progress:
            progress((trial + 1) / experiment.trials)
    return pd.DataFrame(rows, columns=["trial", "level", "l2", "psnr"])


def overall(evaluation: pd.DataFrame) -> pd.DataFrame:
    """Mean over levels 1…6 per trial: columns l2, psnr, indexed by trial."""
    graded = evaluation[~evaluation.level.isin(["easy", "hard"])]
    return graded.groupby("trial")[["l2", "psnr"]].mean()


def summarize(per_trial: pd.DataFrame) -> dict:
    """Means and standard errors over trials: l2, l2_se, psnr, psnr_se."""
    return {
        name: value
        for column in ("l2", "psnr")
        for name, value in (
            (column, per_trial[column].mean()),
            (f"{column}_se", per_trial[column].std(ddof=1) / np.sqrt(len(per_trial))),
        )
    }


def paired_p_value(a, b) -> float:
    """Two-sided paired t-test over trials; NaN when the pairs do not differ at all."""
    difference = np.asarray(a, float) - np.asarray(b, float)
    return float("nan") if np.ptp(difference) == 0 else float(stats.ttest_rel(a, b).pvalue)
