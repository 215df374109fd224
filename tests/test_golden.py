"""Golden runs: short trainings of the paper's schedules on every task, of the curricula on one, stored beside this.

A change of the code that moves one of them is a change of the protocol: raise `odl.PROTOCOL` and write them anew,
with `python -m tests.test_golden`. They run in double precision, because 40 steps of Adam in single precision make
tenths of a dB of a rounding error; for the same reason blurs, whose products of matrices round differently on different
processors, are computed in double precision, too, and rounded.
"""

import json
import os
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

from companion import published
from companion.training.results import train
from odl import PROTOCOL, corruptions, paper
from odl.experiment import Experiment

FILE = Path(__file__).with_name("golden.json")
RUNS = [*product(paper.TASKS, (*published.SEVEN, *published.FIXATED))]
RUNS = [run for run in RUNS if run[0] == "inpaint" or "curriculum" not in run[1]]  # whose shares no task changes
RUNS += [("unet", task, "on_demand") for task in paper.TASKS]
SIZES = {"epochs": 5, "iterations": 8, "width": 4, "batch_size": 12, "pool_images": 60, "validation_images": 8}


def numbers(*name: str) -> list[float]:
    """Return the loss of the last epoch, and validation PSNR (dB) of levels 1…5 after it, of a run in `RUNS`."""
    network, task, schedule = name if len(name) == 3 else ("paper", *name)
    sizes = SIZES | {"network": network}
    experiment = Experiment.of(task, "demo", schedule, 3, "smoke", precision="fp64", learning_rate=1e-2, **sizes)
    deblur = corruptions.TASKS["deblur"]
    exact = replace(deblur, apply=lambda x, s, rng: corruptions.blur(x.double(), s.double(), rng).to(x.dtype))
    with mock.patch.dict(corruptions.TASKS, deblur=exact):
        last = train(experiment).history[-1]
    return [last["loss"], *last["psnr"]]


@pytest.mark.parametrize("run", RUNS, ids="/".join)
def test_a_golden_run(demo, run):
    stored = json.loads(FILE.read_text())
    assert stored["protocol"] == PROTOCOL
    np.testing.assert_allclose(numbers(*run), stored["/".join(run)], atol=1e-3, rtol=0)


def test_two_threads_agree(demo):
    torch.set_num_threads(2)
    try:
        stored = json.loads(FILE.read_text())["inpaint/on_demand"]
        np.testing.assert_allclose(numbers("inpaint", "on_demand"), stored, atol=1e-3)
    finally:
        torch.set_num_threads(1)


if __name__ == "__main__":
    os.environ["ODL_ROOT"] = tempfile.mkdtemp()
    torch.set_num_threads(1)
    golden = {"/".join(run): [round(v, 5) for v in numbers(*run)] for run in RUNS}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in ({"protocol": PROTOCOL} | golden).items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
