"""The encoder-decoder: its size, its parts against plain loops, its first weights."""

from itertools import product

import pytest
import torch
from scipy import stats
from torch import nn

from odl.network import NETWORKS, ChannelwiseLinear, EncoderDecoder, initialize, make


@pytest.mark.parametrize(("channels", "side", "batch"), [(1, 1, 1), (5, 4, 3), (8, 2, 7)])
def test_channelwise_linear_equals_a_plain_loop(channels, side, batch):
    layer = ChannelwiseLinear(channels, side)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    x = torch.randn(batch, channels, side, side)
    weight, bias = layer.weight.detach().double(), layer.bias.detach().double()
    for b, c in product(range(batch), range(channels)):
        expected = (weight[c] @ x[b, c].double().flatten() + bias[c]).view(side, side)
        torch.testing.assert_close(layer(x)[b, c].double(), expected, atol=1e-5, rtol=0)


def test_initial_weights_have_the_moments_of_the_paper():
    """Convolutions N(0, 0.02), BatchNorm N(1, 0.02) and 0, the map between U(-1/4, 1/4)."""
    network = initialize(EncoderDecoder(3, 64), torch.Generator().manual_seed(0))
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    convolutions = [m.weight for m in network.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
    bottleneck, uniform = network.bottleneck, stats.uniform(-0.25, 0.5)
    for parameters, expected in (
        (convolutions, stats.norm(0, 0.02)),
        ([norm.weight for norm in norms], stats.norm(1, 0.02)),
        ([bottleneck.weight], uniform),
        ([bottleneck.bias], uniform),
    ):
        values = torch.cat([parameter.detach().flatten() for parameter in parameters])
        assert stats.kstest(values[:: max(1, len(values) // 10_000)].numpy(), expected.cdf).pvalue > 1e-3
        assert values.std().item() == pytest.approx(expected.std(), rel=0.02)
    assert not any(norm.bias.any() for norm in norms)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(64, 64), (65, 71), (5, 9), (8, 200), (1, 1)])
def test_the_residual_unet_starts_from_doing_nothing_at_every_size(channels, size):
    y = torch.rand(2, channels, *size) * 2 - 1
    assert torch.equal(make("unet", channels, 8, seed=3)(y), y)


@pytest.mark.parametrize(("channels", "parameters"), [(1, 564_420), (3, 569_036)])
def test_the_residual_unet_has_its_parameters_and_every_one_learns(channels, parameters):
    network = make("unet", channels, 32)
    assert sum(p.numel() for p in network.parameters()) == parameters
    nn.init.normal_(network.tail.weight)
    network(torch.rand(2, channels, 64, 64)).square().mean().backward()
    assert all(p.grad.abs().max() > 0 for p in network.parameters())


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_are_drawn_by_their_seed_alone(name):
    """Not by what the process drew before, which goes on as if nothing had been drawn."""
    before = torch.random.get_rng_state()
    made = [make(name, 3, 8, seed=seed) for seed in (5, 5, 6)]
    assert torch.equal(torch.random.get_rng_state(), before)
    flat = [torch.cat([p.detach().flatten() for p in network.parameters()]) for network in made]
    assert flat[0].equal(flat[1]) and not flat[0].equal(flat[2])
