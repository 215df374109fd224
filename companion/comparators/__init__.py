"""The systems that the paper compares with, one file each (Sec. 6.5 and 6.7).

A denoiser is `denoise(y, sigma) -> x_hat`: `y` is a grey image (H, W) of floats on the [0, 1] scale, beyond it where
noise was not clipped; `sigma` is on the 0–255 scale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from companion.comparators import authors, bm3d, ksvd, nlm, trained, tv, wavelet, wnnm
from odl.parameters import choice


@dataclass(frozen=True)
class Denoiser:
    """What a system is called in text and in narrow columns, its colour in figures, and how it denoises."""

    name: str
    short: str
    colour: str
    denoise: Callable | None
    knows_sigma: bool = False  # it must be told σ
    package: str | None = None  # what it imports beyond the core
    at_25: bool = False  # made for σ = 25 alone
    steps: int = 0  # of its training here

    @property
    def title(self) -> str:
        """The name, and who trained it where that was not its authors."""
        return f"{self.name}, retrained here, {self.steps:,} steps" if self.steps else self.name


def retrained(system: str, name: str, colour: str) -> Denoiser:
    learner, denoise = trained.LEARNERS[system], partial(trained.denoise, system=system)
    at_25, steps = learner.low == learner.high, trained.steps_of(system)
    return Denoiser(name, f"{name}, retrained", colour, denoise, at_25=at_25, steps=steps)


def by_authors(system: str, name: str, colour: str) -> Denoiser:
    title = f"{name}, authors' weights"
    return Denoiser(title, title, colour, partial(authors.denoise, system=system), at_25=True)


DENOISERS = {
    "bm3d": Denoiser("BM3D", "BM3D", "#000000", bm3d.denoise, True, "bm3d"),
    "ksvd": Denoiser("K-SVD", "K-SVD", "#8C6D31", ksvd.denoise, True),
    "wnnm": Denoiser("WNNM", "WNNM", "#E69F00", wnnm.denoise, True),
    "nlm": Denoiser("Non-local means", "NLM", "#009E73", nlm.denoise, True),
    "tv": Denoiser("Total variation", "TV", "#CC79A7", tv.denoise, True),
    "wavelet": Denoiser("Wavelets, BayesShrink", "Wavelets", "#56B4E9", wavelet.denoise, True, "pywt"),
    "mlp": retrained("mlp", "Small MLP at 25", "#A6761D"),
    "csf": retrained("csf", "CSF at 25", "#66A61E"),
    "tnrd": retrained("tnrd", "TNRD at 25", "#7570B3"),
    "dncnn": retrained("dncnn", "DnCNN, blind", "#1B9E77"),
    "dncnn_25": retrained("dncnn_25", "DnCNN at 25", "#666666"),
    "csf_authors": by_authors("csf_authors", "CSF", "#1F78B4"),
    "tnrd_authors": by_authors("tnrd_authors", "TNRD", "#B15928"),
    "dncnn_authors": by_authors("dncnn_authors", "DnCNN", "#E31A1C"),
}
AUTHORS = tuple(authors.READ)
INPAINTERS = {
    "context_encoder_center": "Context encoder, centre",
    "context_encoder_random": "Context encoder, random region dropout",
}


def available(system: str) -> bool:
    """Whether a denoiser's package or weights are here. Raises ParameterError for an unknown system."""
    choice("system", system, DENOISERS)
    if system in trained.LEARNERS:
        return trained.is_trained(system)
    if system in AUTHORS:
        return system in authors.here()
    package = DENOISERS[system].package
    return package is None or find_spec(package) is not None
