import torch

from odl import data
from odl.corruptions import TASKS
from odl.evaluate import compare
from odl.experiment import Experiment
from odl.results import networks

runs = [Experiment.of("denoise", "bsds500", name, profile="reference") for name in ("on_demand", "fixated_hard")]
models = networks(runs)
x = data.grey(data.fixed_crops(data.load("demo", "test"), 100, "crossing"))
for sigma in range(10, 121, 10):
    y = TASKS["denoise"].corrupt_between(x, sigma, sigma, torch.Generator().manual_seed(0))
    answers = compare(models, x, y)
    print(f"σ = {sigma:3d}:", ", ".join(f"{name} {score.mean():.2f} dB" for name, (_, score) in answers.items()))
