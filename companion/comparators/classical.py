"""Classical denoisers of other packages: scikit-image's, and BM3D by its authors, whose licence is non-commercial.

Nothing here installs the package bm3d but the extra of its name, because its terms are for the reader to accept.
"""

from importlib.util import find_spec

from skimage.restoration import denoise_nl_means, denoise_tv_chambolle, denoise_wavelet

from companion.comparators import check
from odl.machine.files import OneLine

TV_WEIGHT = 0.7  # × σ: chosen on photographs of the training split
WAVELET_LEVELS = 3  # chosen on photographs of the training split
NO_BM3D = 'bm3d is not installed: pip install -e ".[bm3d]" adds it, for non-commercial use'


class NotInstalled(OneLine, ImportError):
    """A package is not installed; the message is one line with the command that installs it."""


def has_bm3d() -> bool:
    return find_spec("bm3d") is not None


def nlm(y, sigma):
    """Average the pixels of a 13×13 neighbourhood, weighted by how alike their 5×5 patches are.

    Patch, distance and h = 0.6 σ are what scikit-image's example recommends where σ is known.
    Buades, Coll, Morel, CVPR 2005.
    """
    y, sigma = check.noisy(y, sigma)
    return denoise_nl_means(y, patch_size=5, patch_distance=6, h=0.6 * sigma, sigma=sigma, fast_mode=True)


def tv(y, sigma):
    """The image nearest to y for its total variation; σ sets how much variation costs.

    Rudin, Osher, Fatemi, Physica D 1992; solved as in Chambolle, JMIV 2004.
    """
    y, sigma = check.noisy(y, sigma)
    return denoise_tv_chambolle(y, TV_WEIGHT * sigma)


def wavelet(y, sigma):
    """Soft-threshold each subband of a symlet transform at σ² / σ_x, σ_x² the subband's signal variance (BayesShrink).

    Chang, Yu, Vetterli, IEEE TIP 2000.
    """
    y, sigma = check.noisy(y, sigma, side=64)
    how = {"mode": "soft", "wavelet_levels": WAVELET_LEVELS, "method": "BayesShrink", "rescale_sigma": True}
    return denoise_wavelet(y, sigma, "sym4", **how)


def bm3d(y, sigma):
    """Group similar blocks, shrink their 3-D transform, then filter again by Wiener with the first estimate.

    Dabov, Foi, Katkovnik, Egiazarian, IEEE TIP 2007; code by Mäkinen, Azzari, Foi, IEEE TIP 2020.
    Raises NotInstalled.
    """
    y, sigma = check.noisy(y, sigma)
    if not has_bm3d():
        raise NotInstalled(NO_BM3D)
    import bm3d as package

    return package.bm3d(y, sigma)
