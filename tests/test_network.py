"""The encoder-decoder: its size, its parts against plain loops, its first weights."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from odl.network import ChannelwiseLinear, EncoderDecoder, initialize


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
