"""How damaged a photograph seems, and whether a restored one is likely to be worse than what it was made of."""

from functools import partial

import numpy as np
from scipy.ndimage import gaussian_filter

# Denoising and deblurring harm what is hardly damaged. Measured with the networks that ship on the 50 held-out
# photographs of BSDS500 (σ of noise 0 to 80 of 255, of blur 0 to 5 pixels): at these bounds no result that is more than
# 0.1 dB below its input goes without a warning. `python tests/test_damage.py` measures it; EVERY=2 takes each second
# photograph. The bound of blur is wide, because a soft picture seems blurred before anything blurs it.
MOST_CHANGE = 1.25  # mean square of what denoising changes, in variances of the noise; of the harmed at least 1.31
LEAST_BLUR = 2.5  # σ in pixels as `blur_of` finds it; of the harmed at most 1.44
MOST_MISSING = {"inpaint": 0.5, "interpolate": 0.92}  # share of an image; the hardest level's is 90 %
NEAR = {"inpaint": (8, 0.99), "interpolate": (24, 0.95)}  # of 255, and share: deleted pixels vary once saved as JPEG
BLOCK = 16  # side of the blocks in which noise is measured


class DamageWarning(UserWarning):
    """The result may be worse than the image: it is hardly damaged or very dark, or the mask seems inverted."""


def doubt(y: np.ndarray, x_hat: np.ndarray | None, task: str) -> str | None:
    """One line where x_hat may be worse than y, both (H, W[, 3]) floats in [0, 1]; else None.

    Of a blur y alone can tell, and of a mask `doubt_of_mask`.
    """
    if task == "denoise":
        sigma, change = noise_of(y), float(np.sqrt(np.mean((x_hat - y) ** 2)))
        if change**2 > MOST_CHANGE * sigma**2:
            small = min(y.shape[:2]) < BLOCK + 2
            noise = "is too small to tell its noise" if small else f"has noise of about {255 * sigma:.1f}"
            return (
                f"the result may be worse than the image: it differs by {255 * change:.1f} of 255 (RMS), and the image "
                f"{noise}; the network helps where there is more noise than detail"
            )
    if task == "deblur" and (width := blur_of(y)) < LEAST_BLUR:
        return (
            f"the result may be worse than the image, whose blur seems to be σ = {width:.1f} pixels; the network helps "
            f"from {LEAST_BLUR} on"
        )
    return None


def doubt_of_mask(y: np.ndarray, missing: np.ndarray, task: str) -> str | None:
    """One line where the mask (H, W) bool of an image, uint8 or on [0, 1], seems inverted; else None.

    So it does where more is missing than the task is for, or where what stays is of one colour and what goes is not.
    """
    if (share := missing.mean()) > MOST_MISSING[task]:
        return f"by the mask {share:.0%} of the image is missing; if that is what should stay, invert the mask"
    step = int(np.ceil(np.sqrt(missing.size / 1e6)))  # a million pixels tell
    y, missing = y[::step, ::step], missing[::step, ::step]
    alike = partial(one_colour, near=NEAR[task][0] / 255 * np.ptp(y), share=NEAR[task][1])
    if missing.any() and not missing.all() and alike(y[~missing]) and not alike(y[missing]):
        return "by the mask all that stays is of one colour, and what is missing is not; if so, invert the mask"
    return None


def one_colour(pixels: np.ndarray, near: float, share: float) -> bool:
    """Whether more than that share of the pixels (n[, 3]) are within `near` of their median, or no numbers."""
    return np.mean(np.abs(pixels - np.median(pixels, 0)) > near) < 1 - share


def noise_of(y: np.ndarray) -> float:
    """The standard deviation of white noise, from second differences both down and across in the calmer blocks.

    Texture looks like noise: of the blocks of 16×16 pixels it is the 30 % quantile. 0 of images below 18×18.
    """
    rough = np.abs(np.diff(np.diff(y, 2, axis=0), 2, axis=1))  # 6 times the noise: weights 1, -2, 1 both ways
    down, across = (side // BLOCK for side in rough.shape[:2])
    if not down * across:
        return 0.0
    blocks = rough[: down * BLOCK, : across * BLOCK].reshape(down, BLOCK, across, -1)
    # A Gaussian's mean distance from 0 is its σ · √(2/π).
    return float(np.quantile(blocks.mean((1, 3)), 0.3) / 6 * np.sqrt(np.pi / 2))


def blur_of(y: np.ndarray) -> float:
    """The width σ (pixels) of a Gaussian blur, from what another of width 1 leaves of the gradients.

    Gradients of sharp photographs have a flat spectrum, of which blur leaves a mean square ∝ 1/σ²: here
    r = σ² / (σ² + 1).
    """
    grey = y if y.ndim == 2 else y.mean(2)
    before, after = (sum(np.mean(np.diff(z, axis=k) ** 2) for k in (0, 1)) for z in (grey, gaussian_filter(grey, 1)))
    left = after / max(before, 1e-12)
    return float(np.sqrt(left / max(1 - left, 1e-12)))
