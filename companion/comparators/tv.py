"""Total variation by scikit-image."""

from skimage.restoration import denoise_tv_chambolle

from companion.comparators import check

WEIGHT = 0.7  # × σ: chosen on photographs of the training split


def denoise(y, sigma):
    """The image nearest to y for its total variation; σ sets how much variation costs.

    Rudin, Osher, Fatemi, Physica D 1992; solved as in Chambolle, JMIV 2004.
    """
    y, sigma = check.noisy(y, sigma)
    return denoise_tv_chambolle(y, WEIGHT * sigma)
