"""The restoration network of Sec. 5.4 and Supp. B: encoder, channel-wise fully connected layer, decoder."""

import torch
from torch import nn


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
        """Torch7's default of a Linear: uniform within ±1/√inputs, 1/4 for 4 × 4 positions."""
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
        f = width
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
    """Halve the resolution."""
    # Released code zeroes every convolution's bias before each pass; here: no bias, because that is the same.
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2)]


def up(inputs: int, outputs: int) -> list[nn.Module]:
    """Double the resolution."""
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
