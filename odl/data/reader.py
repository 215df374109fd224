"""One reader of image files, for data sets and for photographs to restore: whatever comes in, 8 bits go out."""

from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from odl.data.sets import DataError
from odl.paper import CROP

SMALLEST = 16  # pixels of a side; what is smaller is taken for a bad image, not enlarged
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
MAX_PIXELS = 100_000_000


@contextmanager
def named(path: Path):
    """Raise whatever a decoder raises, which is anything on damaged files, as a DataError naming the file."""
    try:
        yield
    except Exception as error:
        raise DataError(f"{path}: not a readable image ({reason(error)})") from None


def opened(path: Path) -> Image.Image:
    """The first frame of an image file as it is stored, whole in memory. Raises DataError naming the file."""
    with named(path), Image.open(path, formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"{image.width}×{image.height} pixels are more than {MAX_PIXELS:,}")
        if image.format == "TIFF" and image.tag_v2.get(284) == 2 and max(image.tag_v2.get(258, (8,))) > 8:
            raise ValueError("Pillow misreads colours of 16 bits in planes; save them interleaved, or as PNG")
        image.load()  # verify() lets truncated files pass
        return image


def frames(path: Path) -> int:
    """How many pages or frames an image file has; what a telephone hides behind a JPEG does not count."""
    with named(path), Image.open(path, formats=FORMATS) as image:
        return 1 if image.format in ("JPEG", "MPO") else getattr(image, "n_frames", 1)


def upright(image: Image.Image) -> Image.Image:
    """The image turned as its camera says."""
    with suppress(Exception):  # damaged metadata are no damaged picture
        return ImageOps.exif_transpose(image)
    return image


def open_image(path: Path) -> Image.Image:
    """The first frame of an image file, upright, of 8 bits: mode L if it is grey, else RGB; alpha is dropped.

    16 bits a value and floats are scaled as `eight_bits` says. Raises DataError naming the file.
    """
    stored = opened(path)
    with named(path):
        image = upright(stored)
        if image.mode.startswith(("I", "F")):
            image = eight_bits(image, image.mode.startswith("I;16") or stored.format in ("PNG", "PPM"))
        return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")


def eight_bits(image: Image.Image, whole: bool) -> Image.Image:
    """Mode L of integers of 16 bits (`whole`), or of 32 bits or floats on the least usual range that has them all.

    These are [0, 1] for floats, [0, 255] and [0, 65535], with 5 % for what filters overshoot. Raises ValueError.
    """
    x = np.asarray(image).astype(np.float32)
    low, high = float(x.min()), float(x.max())
    ranges = (65535,) if whole else (255, 65535) if image.mode == "I" else (1, 255, 65535)
    top = next((top for top in ranges if high <= 1.05 * top), None)
    if top is None or not low >= -0.05 * top:
        raise ValueError(f"values from {low:g} to {high:g} have no range that is known; save them on [0, 1]")
    return Image.fromarray((x * (255 / top)).clip(0, 255).round().astype(np.uint8))


def read_image(path: Path, shorter_side: int) -> np.ndarray:
    """An image resized to that shorter side, aspect kept, 0 for its own if that is a crop's or more: (H, W, 3) uint8.

    Raises DataError naming the file when it cannot be read, or is under 16 pixels or too long.
    """
    image = open_image(path).convert("RGB")
    shorter = min(image.size)
    if shorter < SMALLEST:
        raise DataError(f"{path}: {image.width}×{image.height} pixels; both sides must have {SMALLEST} or more")
    side = shorter_side or max(shorter, CROP)
    if side != shorter:
        width, height = (max(side, round(length * side / shorter)) for length in image.size)
        if width * height > MAX_PIXELS:
            raise DataError(f"{path}: {image.width}×{image.height} pixels would become {width}×{height}")
        image = image.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(image)


def reason(error: Exception) -> str:
    """What an exception says, on one line."""
    if isinstance(error, UnidentifiedImageError):
        return "of no kind that is read, as floats in colour are not; save it as PNG or JPEG"
    return getattr(error, "strerror", None) or " ".join(str(error).split())[:300] or type(error).__name__
