"""The systems that the paper compares with, one file each (Sec. 6.5 and 6.7).

A denoiser is `denoise(y, sigma) -> x_hat`: `y` is a grey image (H, W) of floats on the [0, 1] scale, beyond it where
noise was not clipped; `sigma` is on the 0–255 scale. `cite` is the key in book/references.bib, `knows_sigma` whether
the system must be told σ, `package` what it imports beyond the core.
"""

from functools import partial
from importlib.util import find_spec

from companion.comparators import authors, bm3d, ksvd, nlm, trained, tv, wavelet, wnnm
from odl.parameters import choice

LEARNED = {
    "mlp": ("Small MLP at 25", "burger2012image"),
    "csf": ("CSF at 25", "schmidt2014shrinkage"),
    "tnrd": ("TNRD at 25", "chen2016trainable"),
    "dncnn": ("DnCNN, blind", "zhang2017beyond"),
    "dncnn_25": ("DnCNN at 25", "zhang2017beyond"),
}
AUTHORS = {
    "csf_authors": ("CSF, authors' weights", "schmidt2014shrinkage"),
    "tnrd_authors": ("TNRD, authors' weights", "chen2016trainable"),
    "dncnn_authors": ("DnCNN, authors' weights", "zhang2017beyond"),
}

DENOISERS = {
    "bm3d": {
        **{"title": "BM3D", "cite": "dabov2007image", "knows_sigma": True},
        **{"denoise": bm3d.denoise, "package": "bm3d"},
    },
    "ksvd": {
        **{"title": "K-SVD", "cite": "elad2006image", "knows_sigma": True},
        **{"denoise": ksvd.denoise, "package": None},
    },
    "wnnm": {
        **{"title": "WNNM", "cite": "gu2014weighted", "knows_sigma": True},
        **{"denoise": wnnm.denoise, "package": None},
    },
    "nlm": {
        **{"title": "Non-local means", "cite": "buades2005nonlocal", "knows_sigma": True},
        **{"denoise": nlm.denoise, "package": None},
    },
    "tv": {
        **{"title": "Total variation", "cite": "chambolle2004algorithm", "knows_sigma": True},
        **{"denoise": tv.denoise, "package": None},
    },
    "wavelet": {
        **{"title": "Wavelets, BayesShrink", "cite": "chang2000adaptive", "knows_sigma": True},
        **{"denoise": wavelet.denoise, "package": "pywt"},
    },
}
DENOISERS |= {
    name: {
        **{"title": f"{title}, retrained here, {trained.steps_of(name):,} steps", "cite": cite},
        **{"knows_sigma": False, "package": None, "denoise": partial(trained.denoise, system=name)},
    }
    for name, (title, cite) in LEARNED.items()
}
DENOISERS |= {
    name: {
        **{"title": title, "cite": cite, "knows_sigma": False, "package": None},
        "denoise": partial(authors.denoise, system=name),
    }
    for name, (title, cite) in AUTHORS.items()
}
INPAINTERS = {
    "context_encoder_center": {"title": "Context encoder, centre", "cite": "pathak2016context"},
    "context_encoder_random": {"title": "Context encoder, random region dropout", "cite": "pathak2016context"},
}


def available(system: str) -> bool:
    """Whether a denoiser's package or weights are here. Raises ParameterError for an unknown system."""
    choice("system", system, DENOISERS)
    if system in trained.LEARNERS:
        return trained.is_trained(system)
    if system in AUTHORS:
        return system in authors.here()
    package = DENOISERS[system]["package"]
    return package is None or find_spec(package) is not None
