import torch

from odl import crops
from odl.corruptions import TASKS
from odl.data import packs
from odl.evaluation import psnr, squared_error

x = crops.fixed_crops(packs.load("demo", "test"), 200, "averages")
generator = torch.Generator().manual_seed(0)
for name, levels in {"level 3": [3] * 200, "levels 1 to 5": [1, 2, 3, 4, 5] * 40}.items():
    y = TASKS["inpaint"].corrupt(x, torch.tensor(levels), generator)
    error = squared_error(y, x)
    print(f"{name}: mean of PSNRs {psnr(error).mean():.1f} dB, PSNR of the mean error {psnr(error.mean()):.1f} dB")
