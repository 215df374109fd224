import torch

from odl import crops
from odl.corruptions import add_noise
from odl.data import packs
from odl.evaluation import psnr

x = crops.grey(crops.fixed_crops(packs.load("demo", "test"), 100, "noise"))
for sigma in (5, 25, 90):
    for clip in (False, True):
        y = add_noise(x, torch.full((len(x),), float(sigma)), torch.Generator().manual_seed(0), clip)
        error = (y - x).square().flatten(1).mean(1) / 4
        print(f"σ = {sigma:2d}, {'clipped' if clip else 'unclipped'}: {psnr(error).mean():.2f} dB")
