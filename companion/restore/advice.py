"""Whether the mask of a photograph seems inverted."""

from functools import partial

import numpy as np

MOST_MISSING = {"inpaint": 0.5, "interpolate": 0.92}  # share of an image; the hardest level's is 90 %
NEAR = {"inpaint": (8, 0.99), "interpolate": (24, 0.95)}  # of 255, and share: deleted pixels vary once saved as JPEG


class DamageWarning(UserWarning):
    """Warns that the restoration is probably worse than its input: a very dark image, or an inverted mask."""


def doubt_of_mask(y: np.ndarray, missing: np.ndarray, task: str, layer: bool = False) -> str | None:
    """Return one line where the mask (H, W) bool of an image, uint8 or on [0, 1], seems inverted; else None.

    So it does where more is missing than the task is for, or where what stays is of one colour and what goes is not.
    What to do is another thing where the mask was a layer, with transparency.
    """
    how = "draw the rest in white or red" if layer else "invert the mask"
    if (share := missing.mean()) > MOST_MISSING[task]:
        inverted = f"by the mask {share:.0%} of the image is missing; if that is what should stay, {how}"
        return inverted + "; single pixels lost all over are --task interpolate" * (task == "inpaint")
    step = int(np.ceil(np.sqrt(missing.size / 1e6)))  # a million pixels tell
    y, missing = y[::step, ::step].astype(np.float32), missing[::step, ::step]
    alike = partial(one_colour, near=NEAR[task][0] / 255 * np.ptp(y), share=NEAR[task][1])
    if missing.any() and not missing.all() and alike(y[~missing]) and not alike(y[missing]):
        return f"by the mask all that stays is of one colour, and what is missing is not; if so, {how}"
    return None


def one_colour(pixels: np.ndarray, near: float, share: float) -> bool:
    """Return whether more than that share of the pixels (n[, 3]) are within `near` of their median, or no numbers."""
    return np.mean(np.abs(pixels - np.median(pixels, 0)) > near) < 1 - share
