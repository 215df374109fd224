import torch

from companion.pictures import networks, restored_by
from odl import crops
from odl.corruptions import TASKS
from odl.data import packs
from odl.experiment import Experiment

runs = [Experiment.of("denoise", "bsds500", name, profile="reference") for name in ("on_demand", "fixated_hard")]
models = networks(runs)
x = crops.grey(crops.fixed_crops(packs.load("demo", "test"), 100, "crossing"))
for sigma in range(10, 121, 10):
    y = TASKS["denoise"].corrupt_between(x, sigma, sigma, torch.Generator().manual_seed(0))
    answers = restored_by(models, x, y)
    print(f"σ = {sigma:3d}:", ", ".join(f"{name} {score.mean():.2f} dB" for name, (_, score) in answers.items()))
