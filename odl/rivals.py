"""Rivals of Equation 3 that are not the paper's: what came after 2017, and controls that ask what a share is worth."""

from functools import partial

import numpy as np

from odl import paper
from odl.schedules import SCHEDULES, Schedule, on_demand, stage

SPECIALISTS = [f"level_{level}" for level in range(1, 6)]


def seed_of_specialists(seed: int) -> int:
    """Return the seed of those that runs of a seed are compared with: one set serves five seeds, 0 to 4, 5 to 9, …"""
    return seed - seed % 5


def one_level(level, done, psnr, n):
    """Return all weight on one level: a specialist."""
    return np.eye(n)[level - 1]


def inverse_mse(done, psnr, n):
    """Return shares ∝ 1/MSE, what the mean PSNR itself asks for: a level's error counts in it by its logarithm."""
    return np.ones(n) if psnr is None else 10 ** (np.asarray(psnr, float) / 10)


def static_easy(done, psnr, n):
    """Return the cumulative curriculum's mean over training, from step 1 on: 46, 26, 16, 9 and 4 % of five levels."""
    return np.tri(n).T @ (1 / np.arange(1, n + 1))


def second_moment(done, rms_error, n):
    """Return shares ∝ √E[L²] of losses L of a level's images, each divided by its share (Nichol and Dhariwal, 2021).

    The objective is that of equal shares; only the variance of its gradient changes.
    """
    # Theirs: the last ten training losses of each level; here: the validation's, once an epoch, as all feedback here.
    weights = np.ones(n) if rms_error is None else np.asarray(rms_error, float)
    return np.stack([weights, weights.mean() / weights])


def edm(done, psnr, n):
    """Return equal shares, a level's error weighted by (σ² + σ_d²) / (σ σ_d)² at its middle σ (Karras et al., 2022).

    σ_d = 0.5 is the spread of images in [-1, 1]; level 1 of denoising weighs 28 times as much as level 5.
    """
    sigma = np.array([sum(level) / 2 for level in paper.TASKS["denoise"]["levels"][:n]]) / 127.5
    weights = (sigma**2 + 0.5**2) / (sigma * 0.5) ** 2
    return np.stack([np.ones(n), weights / weights.mean()])


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
        alone = [[epoch[self.feedback][i] for epoch in history] for i, history in enumerate(specialists)]
        self.alone = np.transpose(alone)

    def moved(self, psnr, passed):
        gap = self.alone[stage(self.done, len(self.alone))] - psnr
        up = self.now + self.RATE * passed * gap
        falling = np.sort(up)[::-1]
        excess = (falling.cumsum() - 1) / np.arange(1, len(up) + 1)  # over 1, were the largest k alone above 0
        return np.maximum(up - excess[falling > excess][-1], 0)


class MinimaxGapComposite(MinimaxGap):
    """Minimax gap whose gaps count missing pixels alone: told PSNR with the known pixels put back."""

    feedback, tasks = "composite", paper.MASKED

    @staticmethod
    def needs(seed):
        return [{"schedule": f"{name}_composite", "seed": seed_of_specialists(seed)} for name in SPECIALISTS]


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
SCHEDULES |= {"second_moment": Schedule(second_moment, feedback="rms_error"), "edm": Schedule(edm, tasks=("denoise",))}
SCHEDULES |= {"static_easy": static_easy, "replay": Replay, "minimax_gap_composite": MinimaxGapComposite}
SCHEDULES |= {  # the same rules, told PSNR with the known pixels put back
    f"{name}_composite": Schedule(row, "composite", paper.MASKED)
    for name, row in [("on_demand", on_demand), *((name, SCHEDULES[name]) for name in SPECIALISTS)]
}
SHIPPED = {*SCHEDULES}  # before anybody adds a row
