"""Photographs and masks as people have them: Pillow images, files and folders. Imports no torch."""

import io
import os
import unicodedata
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

from companion.data import reader
from companion.data.folders import SUFFIXES, files_in, unread
from companion.disk import files
from companion.restore.chosen import MASK_HELP
from odl import paper
from odl.images import check_mask
from odl.parameters import ParameterError

FORMATS = {  # in which a photograph is written, with Pillow's options: all but JPEG keep every pixel
    "PNG": {},
    "JPEG": {"quality": 95, "subsampling": 0},
    "WEBP": {"lossless": True, "exact": True},
    "TIFF": {},
    "BMP": {},
    "PPM": {},
}
MOST_MISSING = {"inpaint": 0.5, "interpolate": 0.92}  # share of an image; the hardest level's is 90 %
CLEAR = ("PNG", "WEBP", "TIFF")  # formats with transparency
CARRIED = {"EXIF": "exif", "colour profile": "icc_profile", "resolution": "dpi"}  # Pillow's options by their names
ROOM = {"PNG": {*CARRIED}, "JPEG": {*CARRIED}, "TIFF": {*CARRIED}, "WEBP": {"EXIF", "colour profile"}}
ROOM |= {"BMP": {"resolution"}, "PPM": set()}
OTHERS = {"xmp": "XMP", "photoshop": "IPTC", "comment": "comment", "mp": "second picture in its file"}
OTHERS |= {33723: "IPTC", 34377: "data of Photoshop"}  # tags of a TIFF
SRGB = {"gamma": 0.45455, "chromaticity": (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)}  # tags that change nothing
TEXT_XMP = "XML:com.adobe.xmp"  # the PNG text that holds XMP
TIFF_EXIF = (270, 271, 272, 305, 306, 315, 33432, 34665, 34853)  # tags of a TIFF that are EXIF in another format


class DamageWarning(UserWarning):
    """Warns that the restoration is probably worse than its input: a very dark image, or an inverted mask."""


# Pillow images and arrays


def as_array(name: str, given) -> np.ndarray:
    """Return what is given as an array of numbers. Raises ParameterError, also for a path."""
    if isinstance(given, str | os.PathLike):
        raise ParameterError(f"{name}={os.fspath(given)!r} is a path; nearest: PIL.Image.open({os.fspath(given)!r})")
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, RuntimeError):  # rows of different lengths, tensors of types that NumPy lacks
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise ParameterError(f"{name} is no array of numbers; (height, width) is one")
    return array


def eight_bits(name: str, image: Image.Image) -> Image.Image:
    """Return a picture or a mask upright and of 8 bits a value. Raises ParameterError."""
    try:
        return reader.upright(reader.eight_bits(image))
    except ValueError as error:
        raise ParameterError(f"{getattr(image, 'filename', '') or name}: {error}") from None


def like(image: Image.Image, array: np.ndarray) -> Image.Image:
    """Return the pixels (H, W[, 3]) uint8 as an image with the transparency and the metadata of another."""
    restored = Image.fromarray(array)
    kept = {key: value for key, value in image.info.items() if key not in ("transparency", "icc_profile")}
    restored.info = kept | profile_of(image.info.get("icc_profile") or b"", restored.mode)
    if image.has_transparency_data:
        restored.putalpha(image.convert("RGBA").getchannel("A"))
    return restored


def profile_of(profile: bytes, mode: str) -> dict:
    """Return a colour profile as Pillow has it, if it is one of L or RGB as `mode` is; else {}: it would be wrong."""
    return {"icc_profile": profile} if profile[16:20] == {"L": b"GRAY", "RGB": b"RGB "}[mode] else {}


def missing(array: np.ndarray, task: str, mask) -> np.ndarray | None:
    """Return missing pixels of an image (H, W[, 3]), (H, W) bool; None where a task has none. Raises ParameterError."""
    if task not in paper.MASKED:
        return None
    try:
        gone = marked(mask)
        check_mask(gone, array.shape, f"; it must be {MASK_HELP}")
    except ParameterError as error:
        file, said = getattr(mask, "filename", ""), str(error)  # the file of a mask that Pillow has opened
        raise ParameterError(said if not file or said.startswith(f"{file}: ") else f"{file}: {said}") from None
    return gone


def doubt_of_mask(gone: np.ndarray, task: str) -> str | None:
    """Return one line where more of an image is missing, (H, W) bool, than the task is for; else None."""
    if (share := gone.mean()) <= MOST_MISSING[task]:
        return None
    other = "; single pixels that are lost all over are --task interpolate" if task == "inpaint" else ""
    stays = "if that is what should stay, invert the mask, or draw on a layer in white or red"
    return f"by the mask {share:.0%} of the image is missing; {stays}{other}"


def marked(mask) -> np.ndarray:
    """Return the pixels that a mask marks as missing, (H, W) bool. Raises ParameterError.

    A mask is an array (H, W), true or not 0 where they are, or a picture: a Pillow image or an array (H, W, 3 or 4)
    uint8. There they are transparent, or, where all else is transparent, drawn in white or red; where nothing is
    transparent, they are 1 where all else is 0, of one red, or of any on nothing but white or nothing but black, or
    else white on black.
    """
    if not isinstance(mask, Image.Image):
        array = as_array("mask", mask)
        if array.ndim == 2:
            return array != 0
        if array.dtype != np.uint8 or array.shape[2:] not in ((3,), (4,)):
            raise ParameterError(f"mask has shape {array.shape} of {array.dtype}; (height, width) is needed")
        mask = Image.fromarray(array)
    picture = eight_bits("mask", mask)
    red, green, blue, alpha = np.moveaxis(np.asarray(picture.convert("RGBA")), -1, 0)
    shown, white = alpha > 127, np.minimum(np.minimum(red, green), blue) > 127
    marks = (red > 220) & (green < 60) & (blue < 60)
    if not shown.all():
        return shown if (white | marks)[shown].all() else ~shown
    values = np.asarray(reader.upright(mask))
    values = values[..., :-1] if mask.mode in ("LA", "RGBA") else values  # without what is opaque all over
    if mask.mode not in ("P", "F") and values.max() == 1:  # of a palette a number is no value
        return values.any(2) if values.ndim == 3 else values > 0
    shades = np.unique(np.stack([red, green, blue], -1)[marks], axis=0, return_counts=True)[1]
    if shades.max(initial=0) > shades.sum() / 2:  # a photograph's reds differ
        return marks
    grey = np.asarray(picture.convert("L"))
    blurred = red - np.maximum(green, blue).astype(np.int16) > 64  # a stroke that was saved as JPEG
    if marks.any() and max(np.mean(grey[~blurred] > 190), np.mean(grey[~blurred] < 65)) > 0.9:
        return blurred
    if np.mean((grey < 65) | (grey > 190)) < 0.9:
        drawn = "what is drawn on the photograph is pure red and saved as PNG, because JPEG blurs colours"
        raise ParameterError(f"the mask is no drawing in black and white; it must be {MASK_HELP}; {drawn}")
    return white


# Files


def format_of(output: Path) -> str:
    """Return Pillow's name of the format to write a file in, one that keeps photographs. Raises ParameterError."""
    file_format = Image.registered_extensions().get(output.suffix.lower())
    if file_format not in FORMATS:
        why = f"ends in {output.suffix}, which is not written here" if output.suffix else "has no suffix of an image"
        raise ParameterError(f"output={str(output)!r} {why}; nearest: '.png'")
    return file_format


def kept(stored: Image.Image, output: Path) -> tuple[dict, list[str]]:
    """Return Pillow's options to write what is restored of a stored image, and a line on what the output lacks.

    A row and a column of pixels, and on one pixel each of the metadata, are tried before the work. Raises
    ParameterError where nothing could be written.
    """
    file_format, picture = format_of(output), eight_bits("image", stored)
    mode, options = "L" if picture.mode in ("1", "L", "LA") else "RGB", dict(FORMATS[file_format])
    try:
        for size in ((picture.width, 1), (1, picture.height)):
            encoded(Image.new(mode, size), file_format, options)
    except Exception as error:  # Pillow raises anything
        raise ParameterError(f"{output}: not written ({reader.reason(error)})") from None
    found = metadata(stored, picture)
    for name in CARRIED.keys() & found.keys() & ROOM[file_format]:
        with suppress(Exception):  # more than the format holds
            given = profile_of(found[name], mode) if name == "colour profile" else {CARRIED[name]: found[name]}
            encoded(Image.new(mode, (1, 1)), file_format, options | given)
            options |= given
    lost = [name for name in found if CARRIED.get(name) not in options]
    clear = picture.has_transparency_data and picture.convert("RGBA").getchannel("A").getextrema()[0] < 255
    if clear and file_format not in CLEAR:
        lost.insert(0, "transparency, so that what was hidden shows")
    return options, [f"{output.name} does not keep the {', '.join(lost)}"] if lost else []


def metadata(stored: Image.Image, picture: Image.Image) -> dict:
    """Return what an image file has beside its pixels, by name; `picture` is the same image upright."""
    info, tags = stored.info, getattr(stored, "tag_v2", {})
    found = {"colour profile": info.get("icc_profile")}
    with suppress(Exception):  # damaged metadata are no damaged picture
        found["EXIF"] = (stored if tags else picture).getexif()
        for tag in set(found["EXIF"]) - {*TIFF_EXIF} if tags else {274}:  # 274 says how a camera was turned
            found["EXIF"].pop(tag, None)
    found["resolution"] = info.get("dpi") if not tags or 282 in tags else None  # Pillow makes up a TIFF's
    found |= {name: True for key, name in OTHERS.items() if info.get(key) or key in tags}
    if stored.format == "PNG":
        with open(stored.filename, "rb") as file:
            newest = file.read(65536).partition(b"IDAT")[0].partition(b"cICP")[2][:4]  # Pillow does not tell it
        older = {name: info[name] for name in SRGB if name in info and not {"icc_profile", "srgb"} & info.keys()}
        others = [name for name, tag in older.items() if not np.allclose(tag, SRGB[name], atol=1e-3)]
        found["colour tag"] = others or newest not in (b"", b"\1\r\0\1")  # the latter is sRGB, too
    found["text"] = set(getattr(stored, "text", ())) - {TEXT_XMP}
    return {name: value for name, value in found.items() if value}


def save(restored: Image.Image, output: Path, options: dict) -> None:
    """Write what was restored, with its transparency where the format has it, by the options of `kept`."""
    file_format = format_of(output)
    restored = restored if file_format in CLEAR else restored.convert(restored.mode.removesuffix("A"))
    restored.info = {}  # else Pillow would keep from it what is left out
    content = encoded(restored, file_format, options)
    output, mode = output.resolve(), output.stat().st_mode if output.exists() else None  # of a link, where it leads
    files.write_atomically(output, content)
    if mode:
        output.chmod(mode)


def encoded(image: Image.Image, file_format: str, options: dict) -> bytes:
    content = io.BytesIO()
    image.save(content, file_format, **options)
    return content.getvalue()


def todo(source: str, output: str, mask: str | None, overwrite: bool) -> list[tuple[Path, Path | None, Path]]:
    """Return (photograph, mask, output) of every photograph of a file or a folder; nothing is read yet.

    A folder gives a folder, with names kept, but that a.gif becomes a.gif.png; one photograph gives a file, or goes
    into a folder that exists or ends in a slash. Masks are one file for all, or a folder with files of the same stems.
    Raises ParameterError, or DiskError where the outputs could not be written.
    """
    for name, given in (("input", source), ("output", output), ("mask", mask)):
        if given == "" or "://" in (given or ""):
            advice = "; download what is on the web first" * bool(given)
            raise ParameterError(f"{name}={given!r} names no file and no folder{advice}")
    start, end, masks = (Path(os.path.expanduser(path)) if path else None for path in (source, output, mask))
    for path in filter(None, (start, masks)):
        if not path.exists():
            raise ParameterError(f"{path}: no such file or folder")
    if start.is_dir():
        if end.is_file() or end.suffix.lower() in SUFFIXES and not end.exists():
            raise ParameterError(f"output={output!r} is a file, or named like one; of a folder comes a folder")
        others = [path.resolve() for path in (end, masks) if path]  # results of an earlier call, masks
        inside = {path for path in others if start.resolve() in path.parents}
        found = [start / file for file in files_in(start)]
        sources = [path for path in found if not inside & {(whole := path.resolve()), *whole.parents}]
        names = [path.relative_to(start) for path in sources]  # of a GIF, which is read and not written, with .png
        outputs = [end / (f"{name}.png" if name.suffix.lower() == ".gif" else name) for name in names]
    else:
        into = end.is_dir() or output.endswith(("/", os.sep))
        sources, outputs = [start], [end / start.name if into else end]
    if not sources:
        none = f"input={source!r} has no photographs ({', '.join(SUFFIXES)})"
        raise ParameterError("; ".join([none, *unread(start)]))
    [(after, n)] = Counter(outputs).most_common(1)
    if n > 1:
        raise ParameterError(f"output={str(after)!r} would come of {n} photographs; rename one of them")
    given = masks_of(sources, start, masks) if masks and masks.is_dir() else [masks] * len(sources)
    used = {path.resolve() for path in given if path}
    for after in outputs:
        if after.resolve() in used:
            raise ParameterError(f"output={str(after)!r} is a mask of this call; another output is needed")
        if after.exists() and not after.is_file():
            raise ParameterError(f"output={str(after)!r} is no regular file; another output is needed")
        if not start.is_dir():  # of a folder, others are restored
            format_of(after)
        files.need_writable(after.parent, "give another output")
    there = [after for after in outputs if after.exists()]
    if there and not overwrite:  # such as the second of two photographs that a shell found by *, or an album's own
        which = f"{len(there)} files exist, as {str(there[0])!r}" if there[1:] else f"{str(there[0])!r} exists"
        raise ParameterError(f"output={output!r}: {which}; --overwrite replaces {'them' if there[1:] else 'it'}")
    return list(zip(sources, given, outputs, strict=True))


def masks_of(sources: list[Path], start: Path, masks: Path) -> list[Path]:
    """Return the file of each photograph in a folder of masks: of the same stem, in the same subfolder or in none."""
    drawn, given = {}, []
    for file in map(Path, files_in(masks)):
        drawn.setdefault(stem(file), []).append(file)
    for path in sources:
        file = path.relative_to(start) if start.is_dir() else Path(path.name)
        name = next((name for name in (stem(file), stem(Path(file.name))) if name in drawn), None)
        if name is None:
            needed = f"a file {stem(file).as_posix()}.png is needed"
            raise ParameterError(f"mask={str(masks)!r} has none for {stem(file).name}: {needed}")
        one, *more = drawn[name]
        if more:
            raise ParameterError(f"mask={str(masks)!r} has both {one} and {more[0].name}; one is needed")
        given.append(masks / one)
    return given


def stem(path: Path) -> Path:
    """Return a path without its suffix, in one form of Unicode: macOS writes ö as two characters."""
    return Path(unicodedata.normalize("NFC", str(path.with_suffix(""))))
