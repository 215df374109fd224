"""Wavelet shrinkage by scikit-image, which needs PyWavelets of the extra `baselines` for it."""

from skimage.restoration import denoise_wavelet

from companion.comparators import check

LEVELS = 3  # chosen on photographs of the training split


def denoise(y, sigma):
    """Soft-threshold each subband of a symlet transform at σ² / σ_x, σ_x² the subband's signal variance (BayesShrink).

    Chang, Yu, Vetterli, IEEE TIP 2000.
    """
    y, sigma = check.noisy(y, sigma, side=64)
    return denoise_wavelet(
        y, sigma, "sym4", mode="soft", wavelet_levels=LEVELS, method="BayesShrink", rescale_sigma=True
    )
