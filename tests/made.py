"""Photographs, archives and files that are no photographs, made for several tests."""

import io
import struct
import tarfile
import zipfile
import zlib

import numpy as np
from PIL import Image


def photograph(seed, height=100, width=120):
    """Noise, (height, width, 3) uint8."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def album(folder, n, height=70):
    """A folder of so many photographs, 0.png and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(n):
        Image.fromarray(photograph(k, height, 80)).save(folder / f"{k}.png")
    return folder


def encoded(image, form="TIFF", **options) -> bytes:
    """A picture, of Pillow or an array, as a file."""
    buffer = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(buffer, form, **options)
    return buffer.getvalue()


def jpeg(k=0, height=100, width=120) -> bytes:
    """A photograph's content: noise that varies slowly."""
    small = Image.fromarray(photograph(k, height // 10, width // 10))
    return encoded(small.resize((width, height), Image.Resampling.BICUBIC), "JPEG", quality=90)


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    path.write_bytes(content)


def zip_with(path, name, content=b"", link=False):
    """A zip of one member."""
    info = zipfile.ZipInfo(name)
    info.external_attr = (0o120777 if link else 0o100644) << 16
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(info, content)


def tar_with(path, name, kind=tarfile.REGTYPE, target=""):
    """A tar of one member, an empty file, a link or a device."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    with tarfile.open(path, "w") as file:
        file.addfile(info)


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def tiff_of(width, height, bits, content: bytes, kind=1, black=1, page=0) -> bytes:
    """A grey TIFF of any bits; kind 2 is signed, with black=0 white is 0, and page 1 is a preview."""
    fields = [(254, 4, page), (256, 4, width), (257, 4, height), (258, 3, bits), (259, 3, 1), (262, 3, black)]
    fields += [(273, 4, 146), (277, 3, 1), (278, 4, height), (279, 4, len(content)), (339, 3, kind)]
    entries = b"".join(struct.pack("<HHII", tag, form, 1, value) for tag, form, value in fields)
    return struct.pack("<2sHIH", b"II", 42, 8, len(fields)) + entries + bytes(4) + content


def png_of(width, height, rows=None, bits=8, colour=0) -> bytes:
    """A well-formed PNG of any size and kind; without rows it is grey, and cut off after 200 black ones."""
    packed = zlib.compress(rows or bytes(1 + width) * min(height, 200))
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


BAD = {
    "truncated.jpg": jpeg()[:-300],
    "head.jpg": jpeg()[:20],
    "zero_end.jpg": jpeg()[:-300] + bytes(300),
    "empty.jpg": b"",
    "text.png": b"this is no image\n" * 50,
    "page.jpg": b"<!DOCTYPE html><html><body>Quota exceeded</body></html>",
    "bomb.png": png_of(60_000, 60_000),
    "large.png": png_of(10_001, 10_000),
    "point.png": png_of(1, 1),
    "line.png": png_of(15, 400),
    "far.tif": encoded(np.full((70, 70), 1e9, np.float32)),
    "signed.tif": encoded(np.linspace(-1, 1, 4900, dtype=np.float32).reshape(70, 70)),
    "nan.tif": encoded(np.full((70, 70), np.nan, np.float32)),
    "integers.tif": encoded(np.full((70, 70), 70_000, np.int32)),
    "below.tif": tiff_of(70, 70, 16, np.linspace(-2000, 2000, 4900).astype("<i2").tobytes(), kind=2),
}

X = photograph(0, 70, 80)
GREY, ROUGH = X[..., 0], X[..., 1].astype(np.uint16) * 256 + X[..., 2]  # 8 bits, and 16 with every low byte


def grey(pixels):
    """As RGB."""
    return np.repeat(np.asarray(pixels)[..., None], 3, 2).round().clip(0, 255).astype(np.uint8)


def modes():
    """Kinds of PNG: (name, image, the RGB pixels that it shows)."""
    yield "RGB", Image.fromarray(X), X
    yield "L", Image.fromarray(GREY), grey(GREY)
    yield "RGBA", Image.fromarray(np.dstack([X, GREY])), X
    yield "LA", Image.fromarray(np.dstack([GREY, GREY[::-1]])), grey(GREY)
    yield "I;16", Image.fromarray(ROUGH), grey(ROUGH / 65535 * 255)
    yield "1", Image.fromarray(GREY > 127), grey((GREY > 127) * 255)
    palette = Image.fromarray(GREY % 16).convert("P")
    palette.putpalette(list(range(48)) + [0] * 720)
    yield "P", palette, np.arange(48, dtype=np.uint8).reshape(16, 3)[GREY % 16]
