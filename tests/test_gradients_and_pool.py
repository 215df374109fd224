"""Gradients of levels and memory of a pool, against calculus and a loop by hand, and as measurements of a run."""

import shutil

import numpy as np
import pytest
import torch
from conftest import tiny
from skimage.metrics import peak_signal_noise_ratio
from test_training import pool_item

from companion.data import packs
from companion.disk import files
from companion.measure import gradients_and_pool
from companion.runs import sweep
from companion.training import results
from odl import crops, paper
from odl.corruptions import TASKS


class Affine(torch.nn.Module):
    """a y + b for every pixel."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (torch.nn.Parameter(torch.tensor(value)) for value in (0.7, 0.1))

    def forward(self, y):
        return self.a * y + self.b


@pytest.mark.parametrize("task", paper.TASKS)
def test_norms_are_those_of_the_derivatives_by_hand(demo, task):
    experiment = tiny(task, "rigid_joint", trials=2)
    rows = gradients_and_pool.gradients(experiment, Affine()).set_index(["trial", "level"])
    for trial in range(2):
        generator = torch.Generator().manual_seed(crops.seed_of("gradients", trial))
        pack = packs.load("demo", "train")
        x = crops.crop(pack, torch.randint(len(pack), (100,), generator=generator), generator)
        x = crops.grey(x) if task == "denoise" else x
        for level in range(1, 6):
            clean = x[20 * (level - 1) : 20 * level]
            y, clean = TASKS[task].corrupt(clean, level, generator).double().numpy(), clean.double().numpy()
            error = 0.7 * y + 0.1 - clean
            by_hand = np.hypot(2 * np.mean(error * y), 2 * np.mean(error))
            assert rows.norm[trial, str(level)] == pytest.approx(by_hand, rel=1e-3, abs=2e-6)


def test_a_pool_is_scored_on_its_own_examples_and_on_others_made_in_the_same_way(demo):
    experiment = tiny("deblur", "hard_mining", test_images=7, pool_images=30)
    rows = gradients_and_pool.pool(experiment, Affine()).set_index("level").psnr
    for level, split in (("pool", "train"), ("held out", "test")):
        pack, scores = packs.load("demo", split), []
        for k in range(7):
            images = pool_item(experiment, pack, k)
            x, y = (((image + 1) * 127.5).round() / 127.5 - 1 for image in images)  # 8 bits, as the pool keeps them
            scores.append(peak_signal_noise_ratio(x.numpy(), (0.7 * y + 0.1).numpy().clip(-1, 1), data_range=2))
        assert rows[level] == pytest.approx(np.mean(scores), abs=1e-3)


@pytest.mark.parametrize(("schedule", "names"), [("rigid_joint", ["gradients", "pool"]), ("hard_mining", ["pool"])])
def test_a_run_is_trained_and_then_explained_and_again_where_its_network_is_lost(demo, schedule, names):
    experiment, shares = tiny(schedule=schedule), []
    wanted = gradients_and_pool.measurements_of(experiment)
    assert len(sweep.results_of(wanted, "cpu")) == len(wanted) and results.load_result(experiment)
    found = gradients_and_pool.load_all([experiment])
    assert [*found] == [(name, f"inpaint {schedule}", 0) for name in names]
    shutil.rmtree(files.runs())
    wanted[-1].path.unlink()
    again = wanted[-1].run("cpu", shares.append)
    assert again.evaluation.equals(found["pool", f"inpaint {schedule}", 0].evaluation)
    assert shares == sorted(shares) and shares[-1] == 1
