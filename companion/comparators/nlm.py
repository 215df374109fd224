"""Non-local means by scikit-image."""

from skimage.restoration import denoise_nl_means

from companion.comparators import check


def denoise(y, sigma):
    """Average the pixels of a 13×13 neighbourhood, weighted by how alike their 5×5 patches are.

    Patch, distance and h = 0.6 σ are what scikit-image's example recommends where σ is known.
    Buades, Coll, Morel, CVPR 2005.
    """
    y, sigma = check.noisy(y, sigma)
    return denoise_nl_means(y, patch_size=5, patch_distance=6, h=0.6 * sigma, sigma=sigma, fast_mode=True)
