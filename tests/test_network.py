"""The encoder-decoder: its size, its parts against plain loops, its first weights."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from odl.network import NETWORKS, ChannelwiseLinear, EncoderDecoder, ResidualUNet, initialize, make


@pytest.mark.parametrize(("channels", "side", "batch"), [(1, 1, 1), (5, 4, 3), (8, 2, 7)])
def test_channelwise_linear_equals_a_plain_loop(channels, side, batch):
    layer = ChannelwiseLinear(channels, side)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    x = torch.randn(batch, channels, side, side)
    expected = np.empty(x.shape, np.float64)
    for b in range(batch):
        for c in range(channels):
            weight, bias = layer.weight[c].detach().double().numpy(), layer.bias[c].detach().double().numpy()
            expected[b, c] = (weight @ x[b, c].double().numpy().ravel() + bias).reshape(side, side)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, atol=1e-5)


def test_a_new_network_can_be_trained_at_once():
    """Without `initialize` too, as any module: finite weights that follow torch's seed."""
    made = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        made.append(EncoderDecoder(3, 8))
    flat = [torch.cat([part.detach().flatten() for part in network.parameters()]) for network in made]
    assert flat[0].isfinite().all() and flat[0].equal(flat[1]) and not flat[0].equal(flat[2])
    weight = made[0].bottleneck.weight
    assert weight.abs().max() <= 0.25 and weight.std().item() == pytest.approx(0.25 / 3**0.5, rel=0.03)


def test_initial_weights_have_the_moments_of_the_paper():
    """Convolutions N(0, 0.02), BatchNorm N(1, 0.02) and 0, the map between U(-1/4, 1/4)."""
    network = initialize(EncoderDecoder(3, 64), torch.Generator().manual_seed(0))
    convolutions, gains, shifts = [], [], []
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            convolutions.append(module.weight.detach().flatten())
        if isinstance(module, nn.BatchNorm2d):
            gains.append(module.weight.detach())
            shifts.append(module.bias.detach())
    sample = torch.cat(convolutions)[::200].numpy()
    assert stats.kstest(sample, stats.norm(0, 0.02).cdf).pvalue > 1e-3
    assert stats.kstest(torch.cat(gains).numpy(), stats.norm(1, 0.02).cdf).pvalue > 1e-3
    assert torch.cat(shifts).abs().max() == 0
    for parameter in (network.bottleneck.weight, network.bottleneck.bias):
        values = parameter.detach().flatten()
        assert stats.kstest(values[:: max(1, len(values) // 5000)].numpy(), stats.uniform(-0.25, 0.5).cdf).pvalue > 1e-3
        assert values.std().item() == pytest.approx(0.5 / math.sqrt(12), rel=0.02)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(64, 64), (65, 71), (5, 9), (8, 200), (1, 1)])
def test_the_residual_unet_starts_from_doing_nothing_at_every_size(channels, size):
    y = torch.rand(2, channels, *size) * 2 - 1
    assert torch.equal(make("unet", channels, 8, seed=3)(y), y)


def test_the_residual_unet_sees_an_image_as_it_sees_its_parts():
    """Away from the border by more than it can see, a crop is restored as the whole image is."""
    network = make("unet", 1, 4).eval()
    nn.init.normal_(network.tail.weight, 0, 0.1, generator=torch.Generator().manual_seed(0))
    y = torch.rand(1, 1, 256, 256)
    whole, part = network(y), network(y[..., 64:192, 64:192])
    torch.testing.assert_close(part[..., 56:72, 56:72], whole[..., 120:136, 120:136], atol=1e-5, rtol=0)
    assert not torch.equal(whole, y)


def test_the_residual_unet_has_its_parameters_and_every_one_learns():
    f = 32
    block = sum(2 * (g * g * 9 + g) for g in (f, f, 2 * f, 2 * f, 4 * f))
    between = 2 * (f * 2 * f * 4 + 2 * f * 4 * f * 4) + (2 * f + 4 * f) + (2 * f + f)
    for channels in (1, 3):
        ends = 4 * channels * f * 9 + f + f * 4 * channels * 9 + 4 * channels
        network = make("unet", channels, f)
        assert sum(p.numel() for p in network.parameters()) == block + between + ends
        nn.init.normal_(network.tail.weight)
        network(torch.rand(2, channels, 64, 64)).square().mean().backward()
        assert all(p.grad.abs().max() > 0 for p in network.parameters())


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_are_drawn_by_their_seed_alone(name):
    """Not by what the process drew before, which goes on as if nothing had been drawn."""
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    one = make(name, 3, 8, seed=5)
    assert torch.equal(torch.rand(3), expected)
    same, other = make(name, 3, 8, seed=5), make(name, 3, 8, seed=6)
    flat = [torch.cat([p.detach().flatten() for p in network.parameters()]) for network in (one, same, other)]
    assert flat[0].equal(flat[1]) and not flat[0].equal(flat[2])
    assert isinstance(make("unet", 1, 8), ResidualUNet) and make("unet", 1, 8).channels == 1
