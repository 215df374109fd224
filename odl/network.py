"""The restoration networks: the paper's (Sec. 5.4, Supp. B), one of today, and `NETWORKS`, to which a reader adds."""

import threading

import torch
from torch import nn
from torch.nn import functional

from odl.device import pytorch_defaults


class ChannelwiseLinear(nn.Module):
    """One linear map per channel over its flattened positions, nothing across channels (Supp. B).

    Input and output (B, channels, side, side); weight (channels, side², side²); bias (channels, side²).
    """

    def __init__(self, channels: int, side: int = 4):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, side * side, side * side))
        self.bias = nn.Parameter(torch.empty(channels, side * side))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None):
        """Draw by Torch7's default of a Linear: uniform within ±1/√inputs, 1/4 for 4 × 4 positions."""
        bound = self.weight.shape[-1] ** -0.5
        self.weight.uniform_(-bound, bound, generator=generator)
        self.bias.uniform_(-bound, bound, generator=generator)

    def forward(self, x):
        flat = x.flatten(2).transpose(0, 1)  # (C, B, side²)
        out = torch.baddbmm(self.bias.unsqueeze(1), flat, self.weight.transpose(1, 2))  # (C, B, side²)
        return out.transpose(0, 1).reshape(x.shape)


class EncoderDecoder(nn.Module):
    """Restores a damaged image in one forward pass (Fig. 3, Supp. B).

    Input and output (B, channels, 64, 64) in [-1, 1]; `width` is the number f of filters of the first layer.
    5,653,248 parameters for RGB and 5,649,152 for grey at width 64.
    """

    def __init__(self, channels: int = 3, width: int = 64):
        super().__init__()
        self.channels, f = channels, width
        self.encoder = nn.Sequential(  # (B, channels, 64, 64)
            *down(channels, f),  # (B, f, 32, 32)
            *down(f, 2 * f),  # (B, 2f, 16, 16)
            *down(2 * f, 4 * f),  # (B, 4f, 8, 8)
            *down(4 * f, 8 * f),  # (B, 8f, 4, 4)
        )
        self.bottleneck = ChannelwiseLinear(8 * f)
        self.decoder = nn.Sequential(
            *up(8 * f, 4 * f),  # (B, 4f, 8, 8)
            *up(4 * f, 2 * f),  # (B, 2f, 16, 16)
            *up(2 * f, f),  # (B, f, 32, 32)
            nn.ConvTranspose2d(f, channels, 4, 2, 1, bias=False),  # (B, channels, 64, 64)
            nn.Tanh(),
        )

    def forward(self, y):
        return self.decoder(self.bottleneck(self.encoder(y)))


def down(inputs: int, outputs: int) -> list[nn.Module]:
    """Return the layers that halve the resolution."""
    # Released code zeroes every convolution's bias before each pass; here: no bias, because that is the same.
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2)]


def up(inputs: int, outputs: int) -> list[nn.Module]:
    """Return the layers that double the resolution."""
    return [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


@torch.no_grad()
def initialize(network: EncoderDecoder, generator: torch.Generator) -> EncoderDecoder:
    """Draw the initial weights on the CPU: DCGAN's for convolutions and BatchNorm, Torch7's Linear default between."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            module.weight.normal_(0, 0.02, generator=generator)
        elif isinstance(module, nn.BatchNorm2d):
            module.weight.normal_(1, 0.02, generator=generator)
            module.bias.zero_()
        elif isinstance(module, ChannelwiseLinear):
            module.reset_parameters(generator)
    return network


class ResidualBlock(nn.Module):
    """Two 3 × 3 convolutions whose output is added to their input: (B, features, H, W) in and out."""

    def __init__(self, features: int):
        super().__init__()
        self.first = nn.Conv2d(features, features, 3, padding=1)
        self.second = nn.Conv2d(features, features, 3, padding=1)

    def forward(self, x):
        return x + self.second(functional.relu(self.first(x)))


class ResidualUNet(nn.Module):
    """Adds to a damaged image what it lacks, by a U-Net with skips and without normalisation: x_hat = y + u(y).

    Input and output (B, channels, H, W) of any size; `width` is the number f of features of the finest scale.
    The last convolution starts at zero, so that training starts from the damaged image itself.
    564,420 parameters for grey and 569,036 for RGB at width 32.
    """

    STRIDE = 8  # pixels of a side that become one position of the coarsest scale

    def __init__(self, channels: int = 3, width: int = 32):
        super().__init__()
        self.channels, f = channels, width
        self.head = nn.Conv2d(4 * channels, f, 3, padding=1)
        self.fine, self.down_1 = ResidualBlock(f), nn.Conv2d(f, 2 * f, 2, stride=2)
        self.middle, self.down_2 = ResidualBlock(2 * f), nn.Conv2d(2 * f, 4 * f, 2, stride=2)
        self.coarse = ResidualBlock(4 * f)
        self.up_2, self.middle_again = nn.ConvTranspose2d(4 * f, 2 * f, 2, stride=2), ResidualBlock(2 * f)
        self.up_1, self.fine_again = nn.ConvTranspose2d(2 * f, f, 2, stride=2), ResidualBlock(f)
        self.tail = nn.Conv2d(f, 4 * channels, 3, padding=1)
        nn.init.zeros_(self.tail.weight)
        nn.init.zeros_(self.tail.bias)

    def forward(self, y):
        return y + self.correction(y)

    def correction(self, y):
        """Return what is added, (B, channels, H, W), from the planes that the first convolution takes."""
        height, width = y.shape[2:]
        below, right = -height % self.STRIDE, -width % self.STRIDE
        padded = functional.pad(y, (0, right, 0, below), mode="replicate") if below or right else y
        fine = self.fine(self.head(functional.pixel_unshuffle(padded, 2)))  # (B, f, H / 2, W / 2)
        middle = self.middle(self.down_1(fine))  # (B, 2f, H / 4, W / 4)
        coarse = self.coarse(self.down_2(middle))  # (B, 4f, H / 8, W / 8)
        middle = self.middle_again(self.up_2(coarse) + middle)
        fine = self.fine_again(self.up_1(middle) + fine)
        return functional.pixel_shuffle(self.tail(fine), 2)[..., :height, :width]


# Each row is a function (channels, width) -> module that maps (B, channels, 64, 64) in [-1, 1] to the same shape.
# It draws nothing while it trains (no dropout): only its first weights are seeded.
# A reader adds a row from any file or cell, for that process and its workers; another notebook needs the same cell
# before its first run. A contributor adds the class and its row here, and its own numbers (rate, steps, width) to
# `odl.experiment.FOR_NETWORK`; a later change of the class asks for a new `PROTOCOL`, as any code of `odl` does.
NETWORKS = {"paper": EncoderDecoder, "unet": ResidualUNet}
DRAWING = threading.Lock()  # one network draws its weights at a time, where several runs share a process


@pytorch_defaults()
def make(name: str, channels: int, width: int, seed: int = 0) -> nn.Module:
    """Return the network of a row of `NETWORKS` on the CPU, its initial weights drawn by `seed` alone.

    The paper's network has the paper's initial weights, any other those that its modules draw when they are made.
    """
    with DRAWING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = NETWORKS[name](channels, width)
    if isinstance(network, EncoderDecoder):
        initialize(network, torch.Generator().manual_seed(seed))
    network.channels = channels
    return network
