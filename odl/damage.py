"""How damaged a photograph seems, and whether a restored one is likely to be worse than what it was made of."""

import numpy as np
from scipy.ndimage import gaussian_filter

# Measured with the networks that ship on the 50 held-out photographs of BSDS500: `python tests/test_damage.py` prints
# the table anew. Denoising and deblurring harm what is hardly damaged; at these bounds no result that is more than
# 0.1 dB below its input goes without a warning.
MOST_CHANGE = 1.25  # mean square of what denoising changes, in variances of the noise; harmful from 1.39 on
LEAST_BLUR = 1.6  # σ in pixels as `blur_of` finds it; harmful up to 1.44


class DamageWarning(UserWarning):
    """The image seems less damaged than what the network helps with."""


def doubt(y: np.ndarray, x_hat: np.ndarray, task: str) -> str | None:
    """One line where x_hat is likely to be worse than y, both (H, W[, 3]) floats in [0, 1]; else None.

    Missing pixels are always worse than filled ones: no doubt of inpainting and interpolation.
    """
    if task == "denoise":
        sigma, change = noise_of(y), float(np.sqrt(np.mean((x_hat - y) ** 2)))
        if change**2 > MOST_CHANGE * sigma**2:
            return (
                f"the result is probably worse than the image: it differs by {255 * change:.1f} of 255 (RMS), and the "
                f"image has noise of about {255 * sigma:.1f}; the network helps with much noise"
            )
    if task == "deblur" and (width := blur_of(y)) < LEAST_BLUR:
        return (
            f"the result is probably worse than the image, whose blur seems to be σ = {width:.1f} pixels: the network "
            f"helps from {LEAST_BLUR} on"
        )
    return None


def noise_of(y: np.ndarray) -> float:
    """The standard deviation of white noise, from the median of the finest diagonal Haar coefficients."""
    height, width = (side // 2 * 2 for side in y.shape[:2])
    y = y[:height, :width]
    diagonal = (y[::2, ::2] - y[1::2, ::2] - y[::2, 1::2] + y[1::2, 1::2]) / 2
    return float(np.median(np.abs(diagonal)) / 0.6745)  # of a Gaussian, the median distance from 0


def blur_of(y: np.ndarray) -> float:
    """The width σ (pixels) of a Gaussian blur, from what another of width 1 leaves of the gradients.

    Gradients of sharp photographs have a flat spectrum, of which blur leaves a mean square ∝ 1/σ²: here
    r = σ² / (σ² + 1).
    """
    grey = y if y.ndim == 2 else y.mean(2)
    before, after = (sum(np.mean(np.diff(z, axis=k) ** 2) for k in (0, 1)) for z in (grey, gaussian_filter(grey, 1)))
    left = after / max(before, 1e-12)
    return float(np.sqrt(left / max(1 - left, 1e-12)))
