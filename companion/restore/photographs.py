"""Damage that photographs meet, as three tasks, and the runs that train a network for each of them.

`add()` adds their rows to the tables of `odl`, as a reader adds a task; nothing else knows of them before.
"""

import io
import math
from functools import cache

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch.nn import functional

from companion.restore.fill import GONE, ToldUNet
from odl import corruptions, paper
from odl.corruptions import WIDEST, Task, blur, uniform
from odl.experiment import FOR_NETWORK, Experiment
from odl.network import NETWORKS
from odl.schedules import SCHEDULES

# fmt: off
PHOTO_TASKS = {
    "photo_denoise": {
        "title": "Photograph denoising", "severity": "noise σ (of 255)", "easy": 5, "hard": 50,
        "levels": ((0, 8), (8, 20), (20, 35), (35, 55), (55, 80), (80, 100)),
    },
    "photo_deblur": {
        "title": "Photograph deblurring", "severity": "standard deviation of the kernel (pixels)",
        "easy": 1, "hard": 3,
        "levels": ((0, 0.7), (0.7, 1.5), (1.5, 2.5), (2.5, 3.5), (3.5, 5), (5, 6)),
    },
    "photo_fill": {
        "title": "Photograph filling", "severity": "share of a kind's range (%)", "easy": 10, "hard": 90,
        "levels": ((0, 20), (20, 40), (40, 60), (60, 80), (80, 100), (100, 100)),
    },
}
# fmt: on
NETWORK = {"photo_denoise": "unet", "photo_deblur": "unet", "photo_fill": "unet_told"}
GREY_EVERY = 3  # one crop of so many is grey, so that one network serves colour and grey
# A validation after every 500 steps, and half the rate of the residual U-Net's shorter runs.
COMMON = {"iterations": 500, "decay": 0.4, "learning_rate": 1e-3, "validation_images": 150, "trials": 4}
TRAINING = {
    "photo_denoise": COMMON | {"schedule": "mean_psnr", "epochs": 120},
    "photo_deblur": COMMON | {"schedule": "mean_psnr", "epochs": 120},
    "photo_fill": COMMON | {"schedule": "rigid_joint", "epochs": 80},
}


def add() -> None:
    """Add the three tasks, the network that is told the mask and the schedule to the tables of `odl`."""
    paper.TASKS.update(PHOTO_TASKS)
    damage = {"photo_denoise": (draw_noise, add_noise), "photo_deblur": (draw_blur, add_blur)}
    damage["photo_fill"] = draw_mask, remove
    for name, functions in damage.items():
        corruptions.TASKS[name] = Task(name, 3, *functions, GREY_EVERY)
    SCHEDULES["mean_psnr"] = mean_psnr
    NETWORKS["unet_told"] = ToldUNet
    FOR_NETWORK["unet_told"] = FOR_NETWORK["unet"]


def run_of(task: str, dataset: str = "bsds500-native", profile: str = "reference", **numbers) -> Experiment:
    """The run that trains the network of a task of `PHOTO_TASKS`; `add()` comes first."""
    schedule = {"schedule": TRAINING[task]["schedule"], "network": NETWORK[task]}
    plain = schedule | (TRAINING[task] if profile == "reference" else {})
    return Experiment.of(task, dataset, profile=profile, **plain | numbers)


def mean_psnr(done, psnr, n):
    """Equal shares, a level's error divided by its last validation MSE: what the mean PSNR over levels asks for."""
    mse = np.ones(n) if psnr is None else 10 ** (-np.nan_to_num(np.asarray(psnr, float), nan=0.0) / 10)
    return np.stack([np.ones(n), mse.mean() / mse])


def stored(y) -> torch.Tensor:
    """y in [-1, 1] as a file of 8 bits holds it."""
    return ((y + 1) * 127.5).round().clamp(0, 255) / 127.5 - 1


def noise_like(x, generator) -> torch.Tensor:
    """White noise of variance 1, (B, 3, H, W), the same in all channels of a grey image."""
    noise = torch.randn(x.shape, generator=generator, device=x.device)
    return torch.where(is_grey(x), noise[:, :1], noise)


def is_grey(x) -> torch.Tensor:
    return (x == x[:, :1]).flatten(1).all(1).view(-1, 1, 1, 1)


# Noise: severity is (σ on the 0–255 scale, kind, quality), the last two uniform in [0, 1).

CLIPPED, POISSON, JPEG = 0.3, 0.65, 0.85  # from where on in [0, 1) a kind begins; below the first, noise is not clipped
QUALITIES = 60, 95  # of a JPEG


def draw_noise(low, high, size, generator, centred=False):
    u = uniform((len(low), 3), generator)
    return torch.cat([(low + u[:, 0] * (high - low)).unsqueeze(1), u[:, 1:]], 1)


def add_noise(x, severity, generator):
    """Gaussian noise, or that as 8 bits hold it, perhaps saved as JPEG; or Poisson noise of the same mean variance."""
    sigma, kind, quality = severity.unbind(1)
    x, seed = x.contiguous(), int(torch.randint(2**53, (1,), generator=generator, device=x.device))
    y, rng = x + noise_like(x, generator) * sigma.view(-1, 1, 1, 1) / 127.5, np.random.default_rng(seed)
    for i in ((kind >= POISSON) & (kind < JPEG)).nonzero()[:, 0].tolist():
        y[i] = poisson(x[i].cpu(), float(sigma[i]) / 255, rng)
    y = torch.where((kind < CLIPPED).view(-1, 1, 1, 1), y, stored(y))
    for i in (kind >= JPEG).nonzero()[:, 0].tolist():
        y[i] = jpeg(y[i].cpu(), round(QUALITIES[0] + float(quality[i]) * (QUALITIES[1] - QUALITIES[0])))
    return y


def poisson(x, sigma: float, rng) -> torch.Tensor:
    """x (3, H, W) in [-1, 1] counted by photons, so many that the mean variance on [0, 1] is σ²."""
    light = (x[:1] if (x == x[:1]).all() else x).double().numpy() / 2 + 0.5
    peak = max(light.mean(), 1e-3) / max(sigma, 1e-4) ** 2  # photons of white
    return torch.from_numpy(rng.poisson(light * peak) / peak * 2 - 1).to(x.dtype).expand(x.shape)


def jpeg(y, quality: int) -> torch.Tensor:
    """y (3, H, W) in [-1, 1] saved as JPEG and read again."""
    pixels = ((y + 1) * 127.5).round().to(torch.uint8).permute(1, 2, 0).numpy()
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if (y == y[:1]).all() else pixels).save(file, "JPEG", quality=quality)
    return torch.from_numpy(np.array(Image.open(file).convert("RGB"))).permute(2, 0, 1).to(y.dtype) / 127.5 - 1


# Blur: severity is (standard deviation of the kernel in pixels, the root mean square of both axes; kind, shape, noise,
# σ of the noise); the middle three are uniform in [0, 1).

UNEQUAL, DISC, MOTION = 0.25, 0.5, 0.75  # from where on in [0, 1) a kind begins; below the first, Gaussians are round
RADIUS, LENGTH = 7.0, 17.0  # of the largest disc and of the longest motion (pixels); wider blur is Gaussian
LARGEST = LENGTH / math.sqrt(24)  # standard deviation of that motion; the disc's is 3.5
REACH = 9  # pixels from the middle of such a kernel to its edge
ANGLES, SIZES = 64, 36
NARROWEST = 0.3  # σ of an unequal Gaussian along its narrow axis, as a share of that along the other
NOISY, MOST_NOISE = 0.5, 6.0  # share of the images with noise; its largest σ (of 255)


def draw_blur(low, high, size, generator, centred=False):
    u = uniform((len(low), 5), generator)
    width = low + u[:, 0] * (high - low)
    return torch.stack([width, *u[:, 1:4].unbind(1), MOST_NOISE * u[:, 4]], 1)


def add_blur(x, severity, generator):
    """A Gaussian, a disc or a straight motion, borders reflected; then noise on half of the images; then 8 bits."""
    width, kind, shape, noisy, sigma = severity.unbind(1)
    other = (kind >= DISC) & (width <= LARGEST)
    x = x.contiguous()
    y = torch.empty_like(x)
    if not other.all():
        y[~other] = blur(x[~other], gaussian(width, kind, shape)[~other], generator)
    if other.any():
        kernel = kernels(torch.where(kind < MOTION, 0, 1 + (shape * ANGLES).long())[other], width[other])
        y[other] = convolve(x[other], kernel)
    strength = torch.where(noisy < NOISY, sigma, 0).view(-1, 1, 1, 1) / 127.5
    return stored(y + strength * noise_like(x, generator))


def gaussian(width, kind, shape) -> torch.Tensor:
    """σ down and σ across (B, 2) of Gaussians, round or not, with this root mean square of both."""
    ratio = torch.where(kind < UNEQUAL, 1, NARROWEST + (1 - NARROWEST) * (2 * shape % 1))
    wide = (width * (2 / (1 + ratio**2)).sqrt()).clamp(max=WIDEST)
    narrow = (2 * width**2 - wide**2).clamp(min=0).sqrt().clamp(max=WIDEST)
    return torch.where((shape < 0.5).unsqueeze(1), torch.stack([wide, narrow], 1), torch.stack([narrow, wide], 1))


def convolve(x, kernel) -> torch.Tensor:
    """x (B, C, H, W) by a symmetrical kernel (B, K, K) for each image, the border reflected as 2 1 | 0 1 2."""
    n, channels, height, width = x.shape
    padded = functional.pad(x, (REACH,) * 4, mode="reflect").reshape(
        1, n * channels, *(s + 2 * REACH for s in (height, width))
    )
    weight = kernel.repeat_interleave(channels, 0).unsqueeze(1).to(x.dtype)
    return functional.conv2d(padded, weight, groups=n * channels).view(x.shape)


def kernels(shape, width) -> torch.Tensor:
    """The kernels (B, K, K) of shapes 0, a disc, and 1 to `ANGLES`, motions, with these standard deviations (B,).

    Each is the mixture of two neighbours in the bank, whose variances mix as they do.
    """
    bank, variance = (part.to(width.device) for part in kernel_bank())
    bank, variance, asked = bank[shape], variance[shape], (width**2).unsqueeze(1)
    above = torch.searchsorted(variance, asked).clamp(1, SIZES - 1)
    low, high = (variance.gather(1, index) for index in (above - 1, above))
    share, rows = ((asked - low) / (high - low)).clamp(0, 1).unsqueeze(-1), torch.arange(len(shape))
    return torch.lerp(bank[rows, above[:, 0] - 1], bank[rows, above[:, 0]], share)


@cache
def kernel_bank() -> tuple[torch.Tensor, torch.Tensor]:
    """Discs and motions of growing size, (1 + ANGLES, SIZES, K, K), and their variances, means of both axes."""
    line, fine = np.linspace(-0.5, 0.5, 201), np.arange(-RADIUS, RADIUS + 0.01, 0.2)
    places = np.stack(np.meshgrid(fine, fine), -1).reshape(-1, 2)
    discs = [places[np.hypot(*places.T) <= r + 1e-9] for r in np.linspace(0, RADIUS, SIZES)]
    turns = [np.outer(line, (np.sin(a), np.cos(a))) for a in np.pi * np.arange(ANGLES) / ANGLES]
    shapes = [discs, *([turn * length for length in np.linspace(0, LENGTH, SIZES)] for turn in turns)]
    bank = np.array([[splat(points) for points in sizes] for sizes in shapes])
    squares = np.arange(-REACH, REACH + 1) ** 2
    variance = (bank.sum(2) @ squares + bank.sum(3) @ squares) / 2
    return torch.from_numpy(bank).float(), torch.from_numpy(variance).float()


def splat(points) -> np.ndarray:
    """Points (n, 2) around the middle as a kernel (K, K) of sum 1, each shared by its four nearest pixels."""
    pixels = np.arange(-REACH, REACH + 1)
    down, across = (np.clip(1 - np.abs(pixels - points[:, axis, None]), 0, None) for axis in (0, 1))
    return down.T @ across / len(points)


# Missing pixels: severity is (share of a kind's range in per cent, kind, whether there is a second kind, that kind),
# then six numbers in [0, 1) for the place of each.

KINDS = ("pixels", "scratches", "dust", "letters", "holes")  # equally likely
LOST = 0.30, 0.95  # share of single pixels that are lost
SECOND = 0.3  # share of the images with a second kind
MASKS, SIDE, PLACES = 200, 192, 64  # of a kind; pixels of a mask's side; missing pixels of a mask, where crops may lie


def draw_mask(low, high, size, generator, centred=False):
    u = uniform((len(low), 16), generator)
    return torch.cat([(low + u[:, 0] * (high - low)).unsqueeze(1), u[:, 1:]], 1)


def remove(x, severity, generator):
    """Mark the missing pixels by `GONE` in all channels."""
    return torch.where(missing(severity, x.shape[-1], generator).unsqueeze(1), GONE, x)


def missing(severity, size: int, generator) -> torch.Tensor:
    """The missing pixels of square images, (B, size, size) bool; one or more in every image with masks of the bank."""
    amount, kind, second, other = severity[:, :4].unbind(1)
    amount, kind, other = amount / 100, (kind * len(KINDS)).long(), 1 + (other * (len(KINDS) - 1)).long()
    lost = LOST[0] + (LOST[1] - LOST[0]) * amount
    single = uniform((len(amount), size, size), generator) < lost.view(-1, 1, 1)
    drawn = from_bank(kind.clamp(min=1), amount, severity[:, 4:10], size)
    more = from_bank(other, amount, severity[:, 10:16], size) & (second < SECOND).view(-1, 1, 1)
    return torch.where((kind == 0).view(-1, 1, 1), single, drawn) | more


def from_bank(kind, amount, u, size: int) -> torch.Tensor:
    """A crop (B, size, size) of a mask of each kind and amount, turned and mirrored, with a missing pixel in it."""
    masks, places = (part.to(u.device) for part in mask_bank())
    index = ((amount + 0.1 * (u[:, 0] - 0.5)) * MASKS).long().clamp(0, MASKS - 1) + (kind - 1) * MASKS
    place = places[index, (u[:, 1] * PLACES).long()]  # (B, 2)
    corner = (place - (u[:, 2:4] * size).long()).clamp(0, SIDE - size)
    line, mirrored = torch.arange(size, device=u.device), torch.stack([u[:, 4] < 0.5, 4 * u[:, 4] % 2 < 1], 1)
    steps = torch.where(mirrored.unsqueeze(2), size - 1 - line, line) + corner.unsqueeze(2)  # (B, 2, size)
    found = masks[index.view(-1, 1, 1), steps[:, 0].unsqueeze(2), steps[:, 1].unsqueeze(1)]
    return torch.where((u[:, 5] < 0.5).view(-1, 1, 1), found.mT, found)


@cache
def mask_bank() -> tuple[torch.Tensor, torch.Tensor]:
    """Masks of each kind but single pixels, in order of amount: (n, SIDE, SIDE) bool; PLACES missing pixels of each."""
    rng, masks = np.random.default_rng(0), []
    for paint in (paint_scratches, paint_dust, paint_letters, paint_holes):
        for amount in np.arange(MASKS) / (MASKS - 1):
            picture = Image.new("1", (SIDE, SIDE))
            while not picture.getbbox():
                paint(ImageDraw.Draw(picture), amount, rng)
            masks.append(np.asarray(picture.convert("L")) > 0)  # a true of mode 1 is a byte of 255
    places = [rng.choice(np.argwhere(mask), PLACES) for mask in masks]
    return torch.from_numpy(np.stack(masks)), torch.from_numpy(np.stack(places))


def paint_scratches(draw, amount: float, rng) -> None:
    """Two to 20 thin curves, 1 to 4 pixels wide."""
    for _ in range(2 + round(18 * amount)):
        steps, turn = int(rng.integers(15, 60)), rng.normal(0, 0.03)
        angles = rng.uniform(0, 2 * np.pi) + np.cumsum(turn + rng.normal(0, 0.05, steps))
        path = rng.uniform(0, SIDE, 2) + 5 * np.cumsum(np.stack([np.cos(angles), np.sin(angles)], 1), 0)
        draw.line([tuple(point) for point in path.tolist()], fill=1, width=int(rng.integers(1, 5)), joint="curve")


def paint_dust(draw, amount: float, rng) -> None:
    """Fifteen to 200 specks, half a pixel to 4 pixels in radius."""
    for _ in range(15 + round(185 * amount)):
        (x, y), across, down = rng.uniform(0, SIDE, 2), *(0.5 + 3.5 * rng.random(2) ** 2)
        draw.ellipse((x - across, y - down, x + across, y + down), fill=1)


def paint_letters(draw, amount: float, rng) -> None:
    """One to 12 lines of letters, 9 to 36 pixels high."""
    for _ in range(1 + round(11 * amount)):
        text = "".join(rng.choice([*"aabcdeeefghiijklmnnoopqrrsstttuvwxyzABCDEFGHRST0123456789   .,"], 30))
        font = ImageFont.load_default(float(rng.uniform(9, 36)))
        draw.text(
            tuple(rng.uniform((-60, 0), (60, SIDE - 12))), text, fill=1, font=font, stroke_width=int(rng.integers(2))
        )


def paint_holes(draw, amount: float, rng) -> None:
    """One to six squares or round blobs, up to 4 pixels wide, or 48 at the hardest."""
    for _ in range(int(rng.integers(1, 7))):
        half = rng.uniform(0.6, 1) * (4 + 44 * amount) / 2
        x, y = rng.uniform(half, SIDE - half, 2)
        if rng.random() < 0.5:
            draw.rectangle((x - half, y - half, x + half - 1, y + half - 1), fill=1)
            continue
        angles, wave = 2 * np.pi * np.arange(36) / 36, rng.uniform(0, 2 * np.pi, 2)
        radius = half * (0.8 + 0.1 * np.sin(2 * angles + wave[0]) + 0.1 * np.sin(3 * angles + wave[1]))
        edge = np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], 1)
        draw.polygon([tuple(point) for point in edge.tolist()], fill=1)
