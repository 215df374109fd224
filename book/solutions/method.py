import torch

from odl import data
from odl.corruptions import TASKS
from odl.evaluate import psnr, squared_error

x = data.fixed_crops(data.load("demo", "test"), 200, "averages")
generator = torch.Generator().manual_seed(0)
for levels in ([3] * 200, [1, 2, 3, 4, 5] * 40):
    y = TASKS["inpaint"].corrupt(x, torch.tensor(levels), generator)
    error = squared_error(y, x)
    print(f"levels {sorted(set(levels))}: mean of PSNRs {psnr(error).mean():.1f} dB,", end=" ")
    print(f"PSNR of the mean error {psnr(error.mean()):.1f} dB")
