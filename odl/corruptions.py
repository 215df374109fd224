"""The four restoration tasks: each draws a severity for a level and applies it (Sec. 5.2 and 6.2).

Images are (B, channels, 64, 64) in [-1, 1]. A level is data: one vector with a level per image.
A task of one's own is a row of levels in `paper.TASKS` and a row of functions in `TASKS`, both from any file or cell.
Results and checkpoints go by its name and the code of its functions, so a changed one trains anew.
Every batch takes the same number of random draws whatever its levels, so that schedules can be paired by seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from numbers import Real

import numpy as np
import torch

from odl import paper
from odl.device import constant
from odl.parameters import ParameterError, choice, integer

# Paper: the average pixel values of the training images; here: the constants of the released code.
FILL = (117, 104, 123)  # of deleted pixels, 0–255 scale
WIDEST = 6  # σ of a blur, in pixels
MAX_ABS_VALUE = 10  # a larger pixel means that a task forgot to scale; noise of level 6 reaches 8
RANGE_CHECKED = set()  # tasks whose first batch was within MAX_ABS_VALUE
MAX_RADIUS = 4 * WIDEST  # of a blur kernel cut at 4σ, for the largest σ of level 6


@dataclass(frozen=True)
class Task:
    """One restoration task: its name, its channels, how a severity is drawn and how it is applied."""

    name: str
    channels: int
    draw: Callable  # (low, high, size, generator, centred) -> severity (B, k)
    apply: Callable  # (x, severity, generator) -> y, in [-1, 1] or not far beyond
    grey_every: int = 0  # of a task in colour, one crop of so many is grey in all three channels (0: none)

    def __post_init__(self):
        last, row = paper.N_LEVELS + 1, paper.TASKS.get(self.name, {})
        levels, ends = row.get("levels", ()), (row.get("easy"), row.get("hard"))
        fits = len(levels) == last and all(np.shape(level) == (2,) for level in levels)
        if not fits or not all(isinstance(end, Real) for end in ends) or not {"title", "severity"} <= row.keys():
            needed = f"a row in odl.paper.TASKS first, with levels 1 to {last}, easy and hard, title and severity"
            raise ParameterError(f"task {self.name!r} needs {needed}")
        if self.channels not in (1, 3):
            raise ParameterError(f"task {self.name!r} has channels={self.channels!r}; 1 (grey) or 3 is needed")

    def bounds(self, level: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return lower and upper severity of each level in 1…6, in the task's unit, both of the shape of `level`.

        Raises ParameterError for another level, on a CPU.
        """
        if level.device.type == "cpu" and level.numel():  # a GPU would have to wait for it
            for end in level.aminmax():
                integer("level", end.item(), 1, paper.N_LEVELS + 1)
        table = torch.tensor(paper.TASKS[self.name]["levels"], dtype=torch.float32, device=level.device)
        return table[level - 1].unbind(-1)

    def corrupt(self, x, level, generator: torch.Generator) -> torch.Tensor:
        """Corrupt x (B, channels, 64, 64) in [-1, 1] at `level`: 1…6, a vector (B,) of such, `easy` or `hard`.

        The last two are the severities of the fixated models (Sec. 6.4). `generator` is on x's device. Raises
        ParameterError for another integer or word; a vector is looked at on a CPU alone, for which nothing waits.
        """
        if isinstance(level, str):
            choice("level", level, ("easy", "hard"))
            severity = paper.TASKS[self.name][level]
            return self.corrupt_between(x, severity, severity, generator, centred=True)
        if isinstance(level, Real):  # NumPy's too
            integer("level", level, 1, paper.N_LEVELS + 1)
        check_images(x)
        level = torch.as_tensor(level, device=x.device).expand(len(x))
        return self.corrupt_between(x, *self.bounds(level), generator)

    def corrupt_between(self, x, low, high, generator, centred: bool = False) -> torch.Tensor:
        """Corrupt x with severities uniform in [low, high], numbers or vectors (B,), in the task's unit.

        `centred` puts the missing square of inpainting in the middle, as the fixated models have it (Sec. 6.4).
        Meant for severities within the paper's levels 1 to 6; not checked, but that a blur wider than `WIDEST` raises
        ParameterError on a CPU, and so do an x of another shape or type, a y unlike x, and one beyond `MAX_ABS_VALUE`
        in the first batch of a task.
        """
        check_images(x)
        low, high = (torch.as_tensor(v, dtype=torch.float32, device=x.device).expand(len(x)) for v in (low, high))
        severity = self.draw(low.clone(), high.clone(), x.shape[-1], generator, centred)
        y = self.apply(x.clone(), severity, generator)  # may write in place
        if not isinstance(y, torch.Tensor) or (y.shape, y.dtype) != (x.shape, x.dtype):
            made = f"{y.dtype} {tuple(y.shape)}" if isinstance(y, torch.Tensor) else type(y).__name__
            raise ParameterError(f"task {self.name!r} made {made} of images {x.dtype} {tuple(x.shape)}")
        captured = y.is_cuda and torch.cuda.is_current_stream_capturing()
        if self not in RANGE_CHECKED and not captured:  # once, because a GPU waits for it
            low, high = (float(end) for end in y.aminmax())
            if not -MAX_ABS_VALUE <= low <= high <= MAX_ABS_VALUE:
                raise ParameterError(
                    f"task {self.name!r} made values from {low:.3g} to {high:.3g} of images in [-1, 1]"
                )
            RANGE_CHECKED.add(self)
        return y


def check_images(x) -> None:
    """Raise ParameterError unless x is a batch of square images of 32-bit floats, one or more."""
    square = isinstance(x, torch.Tensor) and x.ndim == 4 and len(x) > 0 and x.shape[-2] == x.shape[-1]
    if not square or x.dtype != torch.float32:
        given = f"{x.dtype} {tuple(x.shape)}" if isinstance(x, torch.Tensor) else type(x).__name__
        raise ParameterError(f"x is {given}; 32-bit floats (images, channels, side, side) in [-1, 1] are needed")


def uniform(shape, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)


# Inpainting: severity is (side, top, left) of one missing square, in pixels.


def draw_square(low, high, size, generator, centred=False):
    """Draw (side, top, left) of squares (B, 3): all whole sides from low to high are equally likely, and all places."""
    u = uniform((len(low), 3), generator)
    side = (low + u[:, 0] * (high - low + 1)).floor().minimum(high.ceil())
    corner = (u[:, 1:] * (size - side + 1).unsqueeze(1)).floor()
    if centred:
        corner = ((size - side) / 2).floor().unsqueeze(1).expand(-1, 2)
    return torch.cat([side.unsqueeze(1), corner], 1)


def square_mask(severity, size: int) -> torch.Tensor:
    """Return masks (B, 1, size, size) that are true inside the missing square."""
    side, top, left = (column.view(-1, 1) for column in severity.unbind(1))
    place = torch.arange(size, device=severity.device)
    rows, columns = ((place >= start) & (place < start + side) for start in (top, left))
    return (rows.unsqueeze(2) & columns.unsqueeze(1)).unsqueeze(1)


def delete(x, mask) -> torch.Tensor:
    """Fill the pixels of x (B, 3, H, W) in [-1, 1] with `FILL` where `mask` (B, 1, H, W) is true."""
    fill = constant(FILL, x.device).view(1, 3, 1, 1) / 127.5 - 1
    return torch.lerp(x, fill, mask.float())  # exact at 0 and 1; on a CPU far faster than torch.where


def remove_square(x, severity, generator):
    return delete(x, square_mask(severity, x.shape[-1]))


# Pixel interpolation: severity is the percentage of deleted pixels.


def draw_amount(low, high, size, generator, centred=False):
    return (low + uniform((len(low), 3), generator)[:, 0] * (high - low)).unsqueeze(1)


def delete_pixels(x, severity, generator):
    """Delete each pixel independently, all channels together."""
    u = uniform((len(x), 1, *x.shape[2:]), generator)
    return delete(x, u < severity.view(-1, 1, 1, 1) / 100)


# Deblurring: severity is (σ down, σ across), in pixels; the kernel is cut at 4σ.


def draw_widths(low, high, size, generator, centred=False):
    """Draw both widths independently within the level: (B, 2)."""
    return low.unsqueeze(1) + uniform((len(low), 3), generator)[:, :2] * (high - low).unsqueeze(1)


def blur_matrix(sigma, size: int) -> torch.Tensor:
    """Return Gaussian blur by σ (B,) along an axis as banded matrices (B, size, size), reflect-101 border folded in."""
    d = torch.arange(MAX_RADIUS + 1, device=sigma.device)
    sigma = sigma.unsqueeze(1)
    weight = torch.exp(-0.5 * (d / sigma.clamp(min=1e-3)) ** 2) * (d <= (4 * sigma + 0.5).floor())
    weight = weight / (2 * weight.sum(1, keepdim=True) - 1)  # (B, 25), one side and the middle
    return (weight @ border(size, sigma.device).to(weight.dtype)).view(-1, size, size)


@cache
def border(size: int, device: torch.device) -> torch.Tensor:
    """Return how often each pair of opposite taps meets each pixel, at each place: (25, size · size), 0, 1 or 2."""
    with torch.inference_mode(False):  # kept for training too, whoever asks first
        d, place = torch.arange(-MAX_RADIUS, MAX_RADIUS + 1).unsqueeze(1), torch.arange(size).unsqueeze(0)
        source = (place + d).abs()  # reflect-101 on the left: -1 → 1
        source = (size - 1) - ((size - 1) - source).abs()  # and on the right: size → size - 2
        taps = torch.nn.functional.one_hot(source, size).float().flatten(1)
        pairs = taps[MAX_RADIUS:] + taps[: MAX_RADIUS + 1].flip(0)
        pairs[0] /= 2  # the middle has no opposite
        return pairs.to(device)


def blur(x, severity, generator):
    """Blur by a separable Gaussian, one matrix across, one down; each product leaves the axis of the next one last.

    Raises ParameterError for images under 25 pixels a side, and on a CPU for a σ above `WIDEST`.
    """
    if x.shape[-1] <= MAX_RADIUS:  # where a border would be reflected twice
        raise ParameterError(
            f"images of {x.shape[-1]} pixels a side are smaller than the kernel; nearest: {MAX_RADIUS + 1}"
        )
    sigma_y, sigma_x = severity.unbind(1)
    if severity.device.type == "cpu" and (widest := severity.max()) > WIDEST:  # a GPU would have to wait for it
        raise ParameterError(f"blur of σ = {widest:.3g} pixels is wider than the kernel; nearest: {WIDEST}")
    matrices = blur_matrix(torch.cat([sigma_y, sigma_x]), x.shape[-1])
    down, across = matrices.chunk(2)
    batch, channels, height, width = x.shape
    y = across @ x.flatten(1, 2).mT  # (B, width, channels · height)
    y = y.view(batch, -1, height) @ down.mT  # (B, width · channels, height)
    return y.view(batch, width, channels, height).permute(0, 2, 3, 1)


def add_noise(x, severity, generator, clip: bool = True):
    """Add white Gaussian noise, severity being its σ on the 0–255 scale, clipped there as 8-bit images demand."""
    # Paper: "variance σ"; here: standard deviation, because σ = 25 of the benchmark is one.
    noise = torch.randn(x.shape, generator=generator, device=x.device)
    y = noise.mul_(severity.view(-1, 1, 1, 1) / 127.5).add_(x)
    return y.clamp_(-1, 1) if clip else y


TASKS = {
    "inpaint": Task("inpaint", 3, draw_square, remove_square),
    "interpolate": Task("interpolate", 3, draw_amount, delete_pixels),
    "deblur": Task("deblur", 3, draw_widths, blur),
    "denoise": Task("denoise", 1, draw_amount, add_noise),
}
