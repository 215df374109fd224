"""Classical denoisers of other packages: scikit-image's, and BM3D by its authors, whose licence is non-commercial.

Nothing here installs the package bm3d but the extra of its name, because its terms are for the reader to accept.
"""

from importlib.util import find_spec

from skimage.restoration import denoise_nl_means

from companion.comparators import check
from odl.parameters import OneLine

NO_BM3D = 'bm3d is not installed: pip install -e ".[bm3d]" adds it, for non-commercial use'


def has_bm3d() -> bool:
    return find_spec("bm3d") is not None


def nlm(y, sigma):
    """Average the pixels of a 13×13 neighbourhood, weighted by how alike their 5×5 patches are.

    Patch, distance and h = 0.6 σ are what scikit-image's example recommends where σ is known.
    Buades, Coll, Morel, CVPR 2005.
    """
    y, sigma = check.noisy(y, sigma)
    return denoise_nl_means(y, patch_size=5, patch_distance=6, h=0.6 * sigma, sigma=sigma, fast_mode=True)


def bm3d(y, sigma):
    """Group similar blocks, shrink their 3-D transform, then filter again by Wiener with the first estimate.

    Dabov, Foi, Katkovnik, Egiazarian, IEEE TIP 2007; code by Mäkinen, Azzari, Foi, IEEE TIP 2020.
    Raises OneLine where it is not installed.
    """
    y, sigma = check.noisy(y, sigma)
    if not has_bm3d():
        raise OneLine(NO_BM3D)
    import bm3d as package

    return package.bm3d(y, sigma)
