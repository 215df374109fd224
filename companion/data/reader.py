"""One reader of image files, for data sets and for photographs to restore: whatever comes in, 8 bits go out."""

from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, TiffImagePlugin, UnidentifiedImageError

from odl.paper import CROP
from odl.parameters import OneLine

MIN_SIDE = 16  # pixels; a smaller image is taken for a bad one and not enlarged
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
MAX_PIXELS = 100_000_000


class DataError(OneLine):
    """A data set or an image is missing or damaged; the message is one line that says what to do."""


@contextmanager
def named(path: Path):
    """Raise whatever a decoder raises, which is anything on damaged files, as a DataError naming the file."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ValueError("no regular file")
        yield
    except Exception as error:
        why = foreign(path) if isinstance(error, UnidentifiedImageError) else reason(error)
        raise DataError(f"{path}: not a readable image ({why})") from None


def foreign(path: Path) -> str:
    """Return what a file is that no decoder knows, and what to do with it."""
    with open(path, "rb") as file:
        head = file.read(64)
    if head[4:8] == b"ftyp":
        kind = f"of kind {head[8:12].decode('latin-1')!r}, as HEIC, AVIF and raw files are"
    elif head[:2] in (b"II", b"MM"):
        kind = "a TIFF or raw file of values that are not read, as floats of 16 or 64 bits or in colour"
    elif head.lstrip()[:1] == b"<":
        return "a web page or SVG; get the picture itself as PNG or JPEG"
    else:
        kind = "of no known kind"
    return f"{kind}; save it as PNG or JPEG" if head else "an empty file; get it again"


def opened(path: Path) -> Image.Image:
    """Return the first frame of an image file as it is stored, whole in memory. Raises DataError naming the file."""
    with named(path), Image.open(path, formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"{image.width}×{image.height} pixels are more than {MAX_PIXELS:,}")
        if image.format == "TIFF" and image.tag_v2.get(284) == 2 and max(image.tag_v2.get(258, (8,))) > 8:
            raise ValueError("Pillow misreads colours of 16 bits in planes; save them interleaved, or as PNG")
        if image.format == "TIFF" and begins_with_preview(image):
            raise ValueError("its first page is a preview of the picture; save the picture alone")
        image.load()  # verify() lets truncated files pass
        return image


def begins_with_preview(image: Image.Image) -> bool:
    """Return True if a TIFF's first page is a smaller copy of the picture, as catalogues and raw files begin."""
    tags, inner = image.tag_v2, []
    image.fp.seek(0)
    start = image.fp.read(16)
    for place in np.atleast_1d(tags.get(330, [])).tolist():  # directories below that of the first page
        with suppress(Exception):  # a damaged one hides no picture that Pillow could read
            inner.append(TiffImagePlugin.ImageFileDirectory_v2(start[:8]))
            image.fp.seek(place)
            inner[-1].load(image.fp)
    larger = any(directory.get(256, 0) > image.width for directory in inner)
    return bool(tags.get(254, 0) & 1) or tags.get(255) == 2 or start[8:10] == b"CR" or larger


def size_of(path: Path) -> tuple[int, int]:
    """Return width and height of an image upright, by its first bytes; (0, 0) where they tell none."""
    with suppress(Exception), Image.open(path, formats=FORMATS) as image:
        return image.size[::-1] if image.getexif().get(274, 1) > 4 else image.size
    return 0, 0


def kind(path: Path) -> tuple[int, bool]:
    """Return how many pages an image file has, and whether its values have more than 8 bits.

    What a telephone hides behind a JPEG is no page. Raises DataError naming the file.
    """
    with named(path), Image.open(path, formats=FORMATS) as image:
        how = [tile.args if isinstance(tile.args, tuple) else (tile.args,) for tile in image.tile]
        deep = image.mode.startswith(("I", "F")) or any("16" in str(raw) for raw, *_ in how)
        deep = deep or image.format == "PPM" and any(top > 255 for _, *most in how for top in most)
        return 1 if image.format in ("JPEG", "MPO") else getattr(image, "n_frames", 1), deep


def upright(image: Image.Image) -> Image.Image:
    """Return the image turned as its camera says."""
    with suppress(Exception):  # damaged metadata are no damaged picture
        return ImageOps.exif_transpose(image)
    return image


def flat(stored: Image.Image) -> Image.Image:
    """Return the image upright with 8 bits, mode L if it is grey, else RGB; alpha is dropped. Raises ValueError."""
    image = upright(eight_bits(stored))
    image = image.convert("RGBA") if image.mode == "P" else image  # its transparency would give a warning
    return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")


def eight_bits(image: Image.Image) -> Image.Image:
    """Return a picture or a mask with 8 bits a value; 16 are scaled from their whole range, floats from [0, 1].

    Raises ValueError for values whose range nothing says.
    """
    tags, clear = getattr(image, "tag_v2", {}), image.info.get("transparency")  # of a TIFF; of a PNG, one colour
    deep = image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM"))
    x = np.asarray(image, np.float32) if deep or image.mode == "F" else None
    top, fault = 1 if image.mode == "F" else 2 ** max(tags.get(258, (16,))) - 1, ""
    if image.mode == "F" and not -0.05 <= x.min() <= x.max() <= 1.05:  # filters overshoot a little
        fault = f"floats from {x.min():g} to {x.max():g}" if np.isfinite(x).all() else "values that are not finite"
    elif 2 in tags.get(339, ()) or (image.mode == "I" and not deep):
        fault = "signed values or integers of 32 bits"
    elif x is not None and tags.get(262) == 0:
        fault = "more than 8 bits whose 0 is white"
    elif clear is not None and (deep or (isinstance(clear, tuple) and max(clear) > 255)):
        fault = "16 bits with one colour that is transparent"
    if fault:
        known = "8 or 16 bits a value, or as floats in [0, 1]"
        raise ValueError(f"{image.format or 'a picture'} of {fault}; save it with {known}")
    if x is None:
        return image
    scaled = Image.fromarray((x * np.float32(255 / top)).clip(0, 255).round().astype(np.uint8))
    scaled.info = dict(image.info)
    return scaled


def faint(image) -> str | None:
    """Return a line where an image on [0, 255] uses at most a quarter, as 14 bits in a file of 16 do; else None."""
    if not 0 <= (top := np.max(image)) <= 64:  # what is no image is refused elsewhere
        return None
    return f"no value is above {top:.0f} of 255; where it holds fewer bits than its file, as 12 in 16, scale it first"


def read_image(path: Path, shorter_side: int) -> np.ndarray:
    """Return an image with that shorter side, aspect kept: (H, W, 3) uint8; 0 is its own side, at least a crop's.

    Raises DataError naming the file where it cannot be read, has a side under 16 pixels or is too long.
    """
    stored = opened(path)
    with named(path):
        image = flat(stored).convert("RGB")
    shorter = min(image.size)
    if shorter < MIN_SIDE:
        raise DataError(f"{path}: {image.width}×{image.height} pixels; both sides must have {MIN_SIDE} or more")
    side = shorter_side or max(shorter, CROP)
    if side != shorter:
        width, height = (max(side, round(length * side / shorter)) for length in image.size)
        if width * height > MAX_PIXELS:
            raise DataError(f"{path}: {image.width}×{image.height} pixels would become {width}×{height}")
        image = image.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(image)


def reason(error: Exception) -> str:
    """Return what an exception says, on one line."""
    return getattr(error, "strerror", None) or " ".join(str(error).split())[:300] or type(error).__name__
