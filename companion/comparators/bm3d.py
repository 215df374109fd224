"""BM3D by its authors' package, which the extra `baselines` installs: its licence is non-commercial."""

from companion.comparators import check


def denoise(y, sigma):
    """Group similar blocks, shrink their 3-D transform, then filter again by Wiener with the first estimate.

    Dabov, Foi, Katkovnik, Egiazarian, IEEE TIP 2007; code by Mäkinen, Azzari, Foi, IEEE TIP 2020.
    """
    import bm3d

    y, sigma = check.noisy(y, sigma)
    return bm3d.bm3d(y, sigma)
