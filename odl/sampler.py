"""A schedule in a training loop that is not ours: the levels of the next batch, and what each image counts."""

import numpy as np

from odl.parameters import ParameterError, choice, integer, number
from odl.rivals import SCHEDULES
from odl.schedules import allocate_batches, begin, usable_weights


class Sampler:
    """Divides the batches of any loop by a schedule (Eq. 3 by default).

    `schedule` is a row of `SCHEDULES` or a function (done, scores, n) -> weights (n,); `batch_size` images are divided
    among `n_levels` levels, 1 the easiest. Raises ParameterError, also for a schedule that needs more than scores.

    >>> sampler = Sampler("on_demand", batch_size=32)
    >>> for epoch in range(10):
    ...     sampler.tell(epoch / 10, scores=validate(network) if epoch else None)  # PSNR in dB of each level
    ...     for step in range(100):
    ...         level, factor = sampler.batch()  # (32,) levels 1…5, and what each image counts in the loss
    """

    def __init__(self, schedule="on_demand", batch_size: int = 32, n_levels: int = 5):
        integer("batch_size", batch_size, 1, 10**8)
        integer("n_levels", n_levels, 1, 1000)
        if not callable(schedule):
            choice("schedule", schedule, SCHEDULES)
        row = SCHEDULES[schedule] if isinstance(schedule, str) else schedule
        needs = getattr(row, "needs", lambda seed: [])(0)
        if needs or getattr(row, "fixated_on", None) is not None or getattr(row, "pool", False):
            raise ParameterError(f"schedule={schedule!r} needs more than scores, so no other loop can have it")
        self.schedule, self.name, self.batch_size, self.n_levels = begin(row), schedule, batch_size, n_levels
        self.remembers = isinstance(row, type)
        self.tell(0.0)

    def tell(self, done: float, scores=None) -> None:
        """Begin the part of training after the share `done`, in [0, 1), with the last `scores` of each level.

        `scores` (n_levels,) are PSNRs in dB, or the schedule's own feedback; None before the first validation. Raises
        ParameterError for scores that give no usable weights, and before a schedule with a memory hears of them.
        """
        number("done", done, 0, 1)
        try:
            told = None if scores is None else [float(score) for score in scores]
            if told is not None and (len(told) != self.n_levels or self.remembers and not np.isfinite(told).all()):
                raise ValueError(f"scores={told} are not {self.n_levels} finite numbers, one a level")
            given = self.schedule(done, told, self.n_levels)
        except (IndexError, TypeError, ValueError) as error:
            raise ParameterError(f"schedule={self.name!r} with n_levels={self.n_levels}: {error}") from error
        self.weights, factors = usable_weights(given, self.n_levels, self.name)
        self.factors = np.ones(self.n_levels) if factors is None else factors
        _, self.owed = allocate_batches(self.weights, self.batch_size, 0)  # refuses unusable weights

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the level of each image of the next batch, easiest first, and what each counts: (B,), (B,)."""
        counts, self.owed = allocate_batches(self.weights, self.batch_size, 1, self.owed)
        levels = np.repeat(np.arange(1, self.n_levels + 1), counts[0])
        return levels, self.factors[levels - 1]
