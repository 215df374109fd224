"""A running average of the weights, kept beside Adam's moments; no part of the paper."""

import copy

import torch

AVERAGE = 0.999  # what a step leaves of the running average of the weights


@torch.no_grad()
def average(optimizer) -> None:
    """Move the running average of every weight, kept beside Adam's moments; it begins with 0 as they do."""
    slots = [(slot, p) for p, slot in optimizer.state.items()]
    averages = [slot.setdefault("average", torch.zeros_like(p)) for slot, p in slots]
    torch._foreach_lerp_(averages, [p for _, p in slots], 1 - AVERAGE)


@torch.no_grad()
def averaged(network, optimizer):
    """A copy of the network with averaged weights, corrected for their beginning at 0 as Adam's moments are."""
    copied = copy.deepcopy(network)
    for p, own in zip(copied.parameters(), network.parameters(), strict=True):
        slot = optimizer.state[own]
        p.copy_(slot["average"] / (1 - AVERAGE ** slot["step"].item()))
    return copied


@torch.no_grad()
def refresh_batchnorm(network, batches) -> None:
    """Estimate BatchNorm's statistics anew from batches y (B, channels, 64, 64), all of equal weight."""
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean
    network.train()
    for y in batches:
        network(y)
    network.eval()
