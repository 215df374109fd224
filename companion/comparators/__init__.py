"""The systems that the paper compares with (Sec. 6.5 and 6.7), and a few others.

A denoiser is `denoise(y, sigma) -> x_hat`: `y` is a grey image (H, W) of floats on the [0, 1] scale, beyond it where
noise was not clipped; `sigma` is on the 0–255 scale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from companion.comparators import classical, ksvd, trained, wnnm


@dataclass(frozen=True)
class Denoiser:
    """What a system is called in text and in narrow columns, its colour in figures, and how it denoises.

    `here()` says whether its package or weights are on this machine, `lacks` what is told where they are not.
    """

    name: str
    short: str
    colour: str
    denoise: Callable | None
    knows_sigma: bool = False  # it must be told σ
    at_25: bool = False  # made for σ = 25 alone
    steps: int = 0  # of its training here
    here: Callable[[], bool] = lambda: True
    lacks: str = ""

    @property
    def title(self) -> str:
        """Return the name, and who trained it where that was not its authors."""
        return f"{self.name}, retrained here, {self.steps:,} steps" if self.steps else self.name

    @property
    def reason(self) -> str:
        """Return why it has no number here."""
        return "to be measured" if self.here() else self.lacks


def retrained(system: str, name: str, colour: str) -> Denoiser:
    learner, denoise = trained.LEARNERS[system], partial(trained.denoise, system=system)
    training = {"at_25": learner.low == learner.high, "steps": learner.steps}
    weights = {"here": partial(trained.is_trained, system), "lacks": "not trained here"}
    return Denoiser(name, name, colour, denoise, **training, **weights)


DENOISERS = {
    "bm3d": Denoiser("BM3D", "BM3D", "#000000", classical.bm3d, True, here=classical.has_bm3d, lacks=classical.NO_BM3D),
    "ksvd": Denoiser("K-SVD", "K-SVD", "#8C6D31", ksvd.denoise, True),
    "wnnm": Denoiser("WNNM", "WNNM", "#E69F00", wnnm.denoise, True),
    "nlm": Denoiser("Non-local means", "NLM", "#009E73", classical.nlm, True),
    "mlp": retrained("mlp", "Small MLP at 25", "#A6761D"),
    "csf": retrained("csf", "CSF at 25", "#66A61E"),
    "tnrd": retrained("tnrd", "TNRD at 25", "#7570B3"),
    "dncnn": retrained("dncnn", "DnCNN, blind", "#1B9E77"),
    "dncnn_25": retrained("dncnn_25", "DnCNN at 25", "#666666"),
}
INPAINTERS = {
    "context_encoder_center": "Context encoder, centre",
    "context_encoder_random": "Context encoder, random region dropout",
}
