"""Images and masks as arrays: what is refused, in one line. Imports no torch."""

import numpy as np

from odl.parameters import ParameterError

FROM_MIDDLE = 4  # of [0, 1], the most: noise of σ = 150 of 255 on a megapixel goes so far
BLOCK, LEAST = 16, -0.2  # side and mean of a block: noise that is not clipped goes there in single pixels alone


def check_image(array: np.ndarray) -> None:
    """Refuse what is no grey or colour image of at least 2×2 pixels, uint8 or floats. Raises ParameterError."""
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3) or 0 in array.shape:
        raise ParameterError(
            f"image has shape {array.shape}; (height, width) or (height, width, 3) is needed, or a Pillow image"
        )
    if min(array.shape[:2]) < 2:
        raise ParameterError(f"image has size {size_of(array.shape)}; at least 2×2 is needed")
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        how = "image / 65535" if array.dtype == np.uint16 else "np.uint8(image)"
        raise ParameterError(f"image has type {array.dtype}; floats in [0, 1] or uint8 are needed, as {how}")


def check_mask(gone: np.ndarray, shape: tuple, hint: str = "") -> None:
    """Refuse a mask (H, W) of all pixels, of none, or of another size than the image of `shape`. Raises ParameterError.

    `hint` follows what is said of all pixels or none.
    """
    if gone.shape != shape[:2]:
        turned = "; a photograph is turned upright by its EXIF orientation, and its mask must be, too"
        turned *= gone.shape == shape[1::-1]
        raise ParameterError(f"mask has size {size_of(gone.shape)}, the image {size_of(shape)}{turned}")
    if gone.all() or not gone.any():
        share = "every pixel is missing: nothing is known" if gone.all() else "no pixel is missing"
        raise ParameterError(f"by the mask {share}{hint}")


def size_of(shape) -> str:
    return f"{shape[1]}×{shape[0]}"


def check_scale(name: str, array: np.ndarray) -> None:
    """Refuse what is not on the [0, 1] scale, which noise may leave. Raises ParameterError."""
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} has values that are not finite")
    side = min(BLOCK, *array.shape[:2])
    below, right = (-size % side for size in array.shape[:2])
    whole = np.pad(array, ((0, below), (0, right), (0, 0))[: array.ndim])
    means = whole.reshape(whole.shape[0] // side, side, whole.shape[1] // side, side, -1).mean((1, 3))
    low = means.min() < LEAST or np.mean(array < -0.5) > 0.2  # noise without clipping has fewer
    if low or np.abs(array - 0.5).max() > FROM_MIDDLE:
        reach = f"{array.min():.3g} to {array.max():.3g}"
        needed = "the [0, 1] scale is needed, as image / 255 or (image + 1) / 2"
        raise ParameterError(f"{name} reaches from {reach}; {needed}")
