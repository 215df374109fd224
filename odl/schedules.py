"""Training schedules: how a batch is divided among the sub-tasks of increasing difficulty (Sec. 5.3 and 6.3).

A schedule takes the share of training that is done (in [0, 1)), the last validation PSNR per level in dB
(a list of N floats, None before the first epoch) and the number N of levels; it returns a weight per level, (N,), or
(2, N) where the second row is what an image of a level counts in the loss.
A schedule of one's own is a function and a row in `SCHEDULES`, from any file or cell. Results and checkpoints go by its
name and its code, so a changed function trains anew; what it calls by a global name does not count. A schedule with a
memory is a class: each run makes one, and after an interruption repeats the calls of the epochs that are done.
"""

import numpy as np

from odl.parameters import ParameterError


def usable_weights(given, n: int, name) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the weights (n,) in what schedule `name` gave, and what an image of a level counts: None where all alike.

    Raises ParameterError for another shape, and for factors that are not finite, negative or all zero.
    """
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        weights = np.array(None)
    if weights.shape not in ((n,), (2, n)):
        raise ParameterError(f"schedule {name!r} returned {given!r}, not {n} weights")
    weights, factors = weights if weights.ndim == 2 else (weights, None)
    if factors is not None and not (np.isfinite(factors).all() and factors.min() >= 0 < factors.max()):
        raise ParameterError(f"schedule {name!r}: {factors.tolist()} are no factors of a loss, 0 or more")
    return weights, factors


def allocate(weights, batch_size: int) -> np.ndarray:
    """Divide one batch, as figures show it, by non-negative weights (N,): integers that sum to `batch_size`.

    Paper: no rounding is specified; here: largest remainder, because it keeps the sum.
    Raises ParameterError for unusable weights.
    """
    return allocate_batches(weights, batch_size, 1)[0][0]


def allocate_batches(weights, batch_size: int, batches: int, owed=0) -> tuple[np.ndarray, np.ndarray]:
    """Divide each of so many batches: integers (batches, N), each row summing to `batch_size`, and what is owed (N,).

    Training's way: the fraction that rounding leaves is carried to the next batch, and `owed` is what batches before
    left. The sum of all batches and of what is owed is Eq. 3's shares exactly, which differ from equal ones by less
    than an image where PSNRs are alike. Raises ParameterError for weights that are not finite, negative or all zero.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if not (weights.ndim == 1 and np.isfinite(weights).all() and (weights >= 0).all() and 0 < weights.sum() < np.inf):
        raise ParameterError(f"weights={weights.tolist()} must be one a level, finite, not negative and not all zero")
    shares = weights / weights.sum() * batch_size
    whole = np.floor(shares).astype(int)
    counts, owed = np.tile(whole, (batches, 1)), np.zeros(len(weights)) + owed
    for row in counts:
        owed += shares - whole
        extra = np.argsort(-owed, kind="stable")[: batch_size - whole.sum()]
        row[extra] += 1
        owed[extra] -= 1
    return counts, owed


def dose(shares) -> float:
    """Return how far a batch is from equal shares: mean over levels of |share − 1/N|, of shares (N,) in any unit."""
    shares = np.asarray(shares, dtype=np.float64) / np.sum(shares)
    return float(np.abs(shares - 1 / len(shares)).mean())


def stage(done: float, n: int) -> int:
    """Return the index of the current of n equal stages, the share `done` of training being over."""
    return min(int(done * n + 1e-9), n - 1)


def on_demand(done, psnr, n):
    """Return B_i ∝ 1/P_i with P_i the validation PSNR of level i, equal at first (Eq. 3, Algorithm 1)."""
    # A PSNR below 1 dB means diverged; the floor keeps weights finite and gives such a level most of the batch.
    return np.ones(n) if psnr is None else 1 / np.maximum(np.nan_to_num(np.asarray(psnr, float), nan=1.0), 1.0)


def on_demand_l2(done, psnr, n):
    """Return B_i ∝ the squared error that the mean PSNR P_i stands for: the feedback to which Sec. 5.3 prefers PSNR."""
    return np.ones(n) if psnr is None else 10 ** (-np.nan_to_num(np.asarray(psnr, float), nan=0.0) / 10)


def rigid_joint(done, psnr, n):
    """Return equal weights of all levels, always."""
    return np.ones(n)


def staged_curriculum(done, psnr, n):
    """Return all weight on one level at a time, easiest first."""
    return np.eye(n)[stage(done, n)]


def staged_anti_curriculum(done, psnr, n):
    """Return all weight on one level at a time, hardest first."""
    return np.eye(n)[n - 1 - stage(done, n)]


def cumulative_curriculum(done, psnr, n):
    """Return equal weights of level 1, then 1–2, then 1–3, …"""
    return (np.arange(n) <= stage(done, n)).astype(float)


def cumulative_anti_curriculum(done, psnr, n):
    """Return equal weights of level N, then N–1 and N, …"""
    return cumulative_curriculum(done, psnr, n)[::-1]


class Schedule:
    """What a row may be beside a function: a value that divides batches, equally unless told, with what else differs.

    A class as a row is made anew for each run, of the histories of the runs that it `needs`.
    """

    # Where all images have one severity, squares in the middle: `easy`, `hard`, or "" for the run's own.
    fixated_on = None
    pool = False  # whether images come from a static pool of damaged ones
    feedback = "psnr"  # the validation score that it is told: `psnr`, `composite` or `rms_error` (`learn.validate`)
    tasks = None  # the names of the tasks that it is for; None: of all

    @staticmethod
    def needs(seed: int) -> list[dict]:
        """Return the runs that this schedule needs first, each as a dict of what differs from this run, of `seed`."""
        return []

    def __init__(self, weights=rigid_joint, feedback: str = "psnr", tasks=None):
        self.weights, self.feedback, self.tasks = weights, feedback, tasks

    def __call__(self, done, psnr, n):
        return self.weights(done, psnr, n)

    def keep(self, done: float) -> float:
        """Return the share of a batch, the images of highest loss, that is back-propagated."""
        return 1.0


class Fixated(Schedule):
    """One severity for every image, the paper's `easy` or `hard`, or one that a run names: nothing to divide."""

    def __init__(self, fixated_on: str = ""):
        self.fixated_on = fixated_on


# Paper: "train on the dataset for 50 epochs", of 1M images: 500,000 of its 1,500,000 iterations. Read as 50 of its
# 1,500 epochs of 1,000 iterations it would be 50 / 1500.
HARD_MINING_WARM_UP = 1 / 3  # share of training on the whole pool before mining starts (Sec. 6.3)
HARD_MINING_KEEP = 10 / 100  # share of a batch, the examples of highest loss, that is back-propagated (Sec. 6.3)


class HardMining(Schedule):
    """Equal levels from a static pool; after a warm-up only the hardest examples count (Sec. 6.3)."""

    pool = True

    def keep(self, done):
        return HARD_MINING_KEEP if done >= HARD_MINING_WARM_UP else 1.0


def begin(row, histories=()) -> Schedule:
    """Return the schedule of one run, from its row in `SCHEDULES` and the histories of the runs that it needs."""
    schedule = row(*histories) if isinstance(row, type) else row
    return schedule if isinstance(schedule, Schedule) else Schedule(schedule)


SCHEDULES = {  # the paper's, and L2 as feedback; `odl/rivals.py` adds what came later
    "rigid_joint": rigid_joint,
    "cumulative_curriculum": cumulative_curriculum,
    "cumulative_anti_curriculum": cumulative_anti_curriculum,
    "staged_curriculum": staged_curriculum,
    "staged_anti_curriculum": staged_anti_curriculum,
    "hard_mining": HardMining(),
    "on_demand": on_demand,
    "on_demand_l2": on_demand_l2,
    "fixated_easy": Fixated("easy"),
    "fixated_hard": Fixated("hard"),
}

import odl.rivals  # noqa: E402, F401 - so that the rows are complete, whichever of both is imported first
