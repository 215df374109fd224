"""`odl` is the paper: it imports itself, NumPy, pandas and PyTorch, and trains without the companion."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import odl

FOLDER = Path(odl.__file__).parent
ALLOWED = {"odl", "numpy", "pandas", "torch"}
ALONE = """
import sys
for name in ("PIL", "pooch", "safetensors", "skimage", "scipy", "loky", "filelock", "tqdm", "lazy_loader", "companion"):
    sys.modules[name] = None
import numpy as np
import torch
import odl.learn
from odl import crops, schedules
from odl.experiment import Experiment
from odl.rivals import SCHEDULES
experiment = Experiment.of("{task}", schedule="on_demand", profile="smoke", network="{network}")
sides = torch.full((6,), 70)
pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, 6 * 70 * 70 * 3, np.uint8))
images = crops.Pack(pixels, torch.arange(6) * 70 * 70 * 3, sides, sides, tuple("abcdef"), "")
x = crops.fixed_crops(images, 4, "validation")
x = crops.grey(x) if "{task}" == "denoise" else x
network, optimizer = odl.learn.build(experiment, "cpu")
told = []
odl.learn.learn(experiment, schedules.begin(SCHEDULES["on_demand"]), images, x, network, optimizer, [], told.append)
print(len(told), len(told[-1]["psnr"]), sum(told[-1]["allocation"]))
"""


@pytest.mark.parametrize(("task", "network"), [("inpaint", "paper"), ("denoise", "unet")])
def test_two_epochs_are_trained_on_random_images_with_numpy_pandas_and_torch_alone(tmp_path, task, network):
    command = [sys.executable, "-c", ALONE.format(task=task, network=network)]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    epochs, levels, per_cent = done.stdout.split()
    assert (epochs, levels) == ("2", "5") and float(per_cent) == pytest.approx(100, abs=1e-3)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_a_module_imports_nothing_else(path):
    """Its face and its command line hand on what the companion has."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        found |= {name.split(".")[0] for name in names}
    extra = {"companion"} if path.name == "__main__.py" else set()
    assert found <= ALLOWED | extra | sys.stdlib_module_names
