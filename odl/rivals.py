"""Rivals of Equation 3 that are not the paper's: what came after 2017, and controls that ask what a share is worth."""

from functools import partial

import numpy as np

from odl.schedules import SCHEDULES, Schedule, on_demand, stage

SPECIALISTS = [f"level_{level}" for level in range(1, 6)]


def seed_of_specialists(seed: int) -> int:
    """The seed of those that runs of a seed are compared with: one set serves five seeds, 0 to 4, 5 to 9, …"""
    return seed - seed % 5


def one_level(level, done, psnr, n):
    """A specialist: one level alone."""
    return np.eye(n)[level - 1]


def inverse_mse(done, psnr, n):
    """Shares ∝ 1/MSE, what the mean PSNR itself asks for: a level's error counts in it by its logarithm."""
    return np.ones(n) if psnr is None else 10 ** (np.asarray(psnr, float) / 10)


def static_easy(done, psnr, n):
    """The cumulative curriculum's mean over training, from the first step on: 46, 26, 16, 9 and 4 % of five levels."""
    return np.tri(n).T @ (1 / np.arange(1, n + 1))


def unbiased(done, psnr, n):
    """Equation 3's shares, each image's loss times (1/N)/share: the objective of equal shares, sampled otherwise."""
    weights = on_demand(done, psnr, n)
    return np.stack([weights, weights.mean() / weights])


class Replay(Schedule):
    """The shares of each epoch of another run, with no feedback from this one: of Equation 3 with k = 4, next seed."""

    @staticmethod
    def needs(seed):
        return [{"schedule": "on_demand", "sharpness": 4.0, "seed": seed + 1}]  # of its own seed it would be that run

    def __init__(self, recorded):
        self.allocations = [epoch["allocation"] for epoch in recorded]

    def __call__(self, done, psnr, n):
        return self.allocations[stage(done, len(self.allocations))]


class Ascent(Schedule):
    """A distribution over levels, equal at first, that every validation moves on by `moved`."""

    def __call__(self, done, psnr, n):
        if psnr is None:
            self.now = np.full(n, 1 / n)
        else:
            moved = self.moved(np.asarray(psnr, float), done - self.done)
            self.now = moved / moved.sum()
        self.done = done
        return self.now


class MinimaxGap(Ascent):
    """Shares by dual ascent on a level's gap to its specialist (Gnanasambandam and Chan, ICML 2020).

    The largest gap is to be least, so the shares go up the gaps, in dB, projected on what sums to 1.
    """

    # Theirs: trained to convergence between two updates; here: an update an epoch, RATE of share a dB and training,
    # against what the specialists had in that epoch: their last score lies ahead of any network that still learns.
    RATE = 1.0

    @staticmethod
    def needs(seed):
        return [{"schedule": name, "seed": seed_of_specialists(seed)} for name in SPECIALISTS]

    def __init__(self, *specialists):
        self.alone = np.transpose([[epoch["psnr"][i] for epoch in history] for i, history in enumerate(specialists)])

    def moved(self, psnr, passed):
        gap = self.alone[stage(self.done, len(self.alone))] - psnr
        up = self.now + self.RATE * passed * gap
        falling = np.sort(up)[::-1]
        excess = (falling.cumsum() - 1) / np.arange(1, len(up) + 1)  # over 1, were the largest k alone above 0
        return np.maximum(up - excess[falling > excess][-1], 0)


class GroupDRO(Ascent):
    """Equal shares, the loss weighted by exponentiated gradient ascent on the levels' losses (Sagawa et al., 2020)."""

    # Theirs: at every step, on the training loss; here: an epoch, on the validation's, relative to the mean of levels.
    RATE = 2.0

    def __call__(self, done, psnr, n):
        return np.stack([np.ones(n), n * super().__call__(done, psnr, n)])

    def moved(self, psnr, passed):
        error = 10 ** (-psnr / 10)
        return self.now * np.exp(self.RATE * passed * error / error.mean())


SCHEDULES |= {name: partial(one_level, level) for level, name in enumerate(SPECIALISTS, 1)}
SCHEDULES |= {"minimax_gap": MinimaxGap, "group_dro": GroupDRO, "inverse_mse": inverse_mse}
SCHEDULES |= {"unbiased": unbiased, "static_easy": static_easy, "replay": Replay}
