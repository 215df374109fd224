"""Faults of what comes from outside: downloads, archives, images, and other processes that want the same."""

import hashlib
import io
import random
import tarfile
import threading
import time
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pooch
from PIL import Image

from odl import data, datasets
from odl.datasets import DATASETS, DataError
from tests import test_data

from .campaign import (
    LOUD,
    PATIENCE,
    PROCESSES,
    RECOVERED,
    SILENT,
    Edit,
    Row,
    Setting,
    ended,
    files_below,
    fresh_root,
    in_a_child,
    judged,
    quiet,
)

FAULTS = ("a byte changed", "a page", "cut off", "empty", "404", "500", "stalled", "endless redirects")
STALL = 1.0  # seconds without a byte; 30 for a user


def jpeg(k: int, height=100, width=120) -> bytes:
    """A photograph's content: noise that varies slowly."""
    small = np.random.default_rng(k).integers(0, 256, (height // 10, width // 10, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


# Downloads


class Server(ThreadingHTTPServer):
    """Serves `files`; the one named `bad` with a fault."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.bad, self.fault = files, None, None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request, address):
        """A client that gave up is no error here."""


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        content, fault = self.server.files[name], self.server.fault if name == self.server.bad else None
        if fault == "endless redirects":
            self.send_response(302)
            self.send_header("Location", self.path)
            self.end_headers()
            return
        self.send_response(int(fault) if fault in ("404", "500") else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        if fault == "a byte changed":
            content = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        if fault == "a page":
            content = b"<!DOCTYPE html><title>Quota exceeded</title>".ljust(len(content))
        if fault in ("cut off", "stalled"):
            content = content[:half]
        self.wfile.write(b"" if fault == "empty" else content)
        self.wfile.flush()
        if fault == "stalled":
            time.sleep(2 * STALL)

    def log_message(self, *_):
        pass


def eleven() -> dict[str, bytes]:
    return {name: jpeg(k) for k, name in enumerate(DATASETS["db11"]["files"])}


def berkeley(changed=None) -> bytes:
    """An archive like that of BSDS500, with one photograph changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for k, name in enumerate(f"{split}/{i}.jpg" for split in ("train", "val", "test") for i in range(4)):
            content = jpeg(99) if k == changed else jpeg(k)
            file.writestr(f"BSDS500-a04b7c6/BSDS500/data/images/{name}", content)
    return buffer.getvalue()


def listing_hash(archive: bytes) -> str:
    """The hash of names and contents, as the table of data sets has it."""
    with TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(archive)) as file:
            file.extractall(folder)
        images = Path(folder, "BSDS500-a04b7c6/BSDS500/data/images")
        names = sorted(str(path.relative_to(images)) for path in images.rglob("*.jpg"))
        lines = [f"{hashlib.sha256((images / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@contextmanager
def published(name: str, **entries):
    """The table of data sets says so."""
    before = DATASETS[name]
    DATASETS[name] = before | entries
    try:
        yield
    finally:
        DATASETS[name] = before


def faulty_downloads(n):
    """Eleven files with a hash each and one archive, in turn; refused, nothing kept, and whole once the server is."""
    pooch.downloaders.DEFAULT_TIMEOUT = STALL
    pooch.get_logger().setLevel("ERROR")
    files, archive = eleven(), berkeley()
    server = Server(files | {"x.zip": archive})
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    chance = random.Random(10)
    sets = {
        "db11": {"url": server.url, "files": digests},
        "bsds500": {"url": f"{server.url}x.zip", "sha256": listing_hash(archive)},
    }
    try:
        for i in range(n):
            name = list(sets)[i % 2]
            with published(name, **sets[name]), fresh_root(demo=False):
                server.bad = "x.zip" if name == "bsds500" else chance.choice(list(files))
                server.fault = FAULTS[i // 2 % len(FAULTS)]
                if name == "bsds500" and server.fault == "a byte changed":  # an archive that opens
                    server.files["x.zip"], server.fault = berkeley(changed=chance.randrange(12)), None
                yield fetched(server, name, sets[name], archive)
    finally:
        server.shutdown()
        server.server_close()


def fetched(server, name: str, entry: dict, archive: bytes):
    with quiet():
        try:
            data.prepare(name)
            first = SILENT
        except DataError as error:
            first = LOUD if "\n" in str(error) else RECOVERED
        except Exception:
            first = LOUD
    if (datasets.home(name) / "images").exists():
        first = SILENT  # a set that is not whole lies where it would be used
    server.fault, server.files["x.zip"] = None, archive
    again, seconds = judged(lambda: data.prepare(name), lambda folder: whole(name, entry))
    return (first if first != RECOVERED else again), seconds


def whole(name: str, entry: dict) -> bool:
    images = datasets.find(name)
    if name == "db11":
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in images.iterdir()} == entry["files"]
    return len(list(images.rglob("*.jpg"))) == 12


# Archives


def many(path, _):
    """More in all than the cap, each member below its own."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for k in range(3):
            file.writestr(f"img_align_celeba/{k}.jpg", bytes(400_000))


def link_out(path, outside):
    test_data.zip_with(path, "img_align_celeba/link.jpg", str(outside).encode(), link=True)


def link_first(path, outside):
    """A link to a folder outside, then a file through it."""
    with tarfile.open(path, "w") as file:
        info = tarfile.TarInfo("img_align_celeba")
        info.type, info.linkname = tarfile.SYMTYPE, str(outside)
        file.addfile(info)
        info = tarfile.TarInfo("img_align_celeba/000001.jpg")
        info.size = len(jpeg(0))
        file.addfile(info, io.BytesIO(jpeg(0)))


ARCHIVES = test_data.HOSTILE | {"many.zip": many, "link.zip": link_out, "link.tar": link_first}


def hostile_archives(n):
    """Archives made to harm, with the hash that is expected: nothing outside, nothing left over, no link."""
    for name, make in (list(ARCHIVES.items())[i % len(ARCHIVES)] for i in range(n)):
        with fresh_root(demo=False) as root:
            outside = root / "outside"
            outside.mkdir()
            path = root / "given" / name
            path.parent.mkdir()
            make(path, outside)
            before = files_below(root)
            md5 = hashlib.md5(path.read_bytes()).hexdigest()
            with published("celeba", md5=md5), capped(1_000_000 if name == "many.zip" else None):
                outcome, seconds = judged(lambda path=path: data.prepare("celeba", str(path)), lambda _: True)
            made = files_below(root) - before
            images = datasets.home("celeba") / "images"
            inside = {str(p.relative_to(root)) for p in images.rglob("*")} if images.exists() else set()
            packed = {f for f in made if f.startswith("data/celeba/packed")}
            links = [p for p in root.rglob("*") if p.is_symlink()]
            refused = not made and not inside
            left_out = made - packed == {f for f in inside if f.endswith(".jpg")} and name.startswith("link")
            yield (outcome if (refused or left_out) and not links else SILENT), seconds


@contextmanager
def capped(size):
    before, data.MAX_ARCHIVE = data.MAX_ARCHIVE, size or data.MAX_ARCHIVE
    try:
        yield
    finally:
        data.MAX_ARCHIVE = before


# Images


def bad_images(n):
    """In a folder of good ones: 100 truncated, 100 with zeros for an end, 20 that are none, 5 bombs, 20 odd ones."""
    chance = random.Random(11)
    others = [content for name, content in test_data.BAD.items() if name not in ("truncated.jpg", "zeros.jpg")]
    bombs = [test_data.png_of(*size) for size in ((60_000, 60_000), (10_001, 10_000), (2_000_000, 1), (1, 2_000_000))]
    bombs.append(test_data.png_of(100_000, 100_000))
    odd = list(test_data.modes())
    with TemporaryDirectory() as folder:
        for i in range(n):
            place, expected = Path(folder) / f"{i:03}.jpg", None
            content = jpeg(i, 90 + i % 60, 200 - i % 90)
            at = chance.randrange(len(content) - 2)
            kind = chance.choices(("truncated", "zeros", "none", "bomb", "odd"), (100, 100, 20, 5, 20))[0]
            if kind == "truncated":
                content = content[:at]
            elif kind == "zeros":
                content = content[:at] + bytes(len(content) - at)
            elif kind == "none":
                content = chance.choice([chance.randbytes(5000), content[::-1], *others])
            elif kind == "bomb":
                content = chance.choice(bombs)
            else:
                place = place.with_suffix(".png")
                _, image, expected = chance.choice(odd)
                image.save(place)
            if kind != "odd":
                place.write_bytes(content)
            yield judged(lambda p=place, e=expected: read(p, e), lambda good: good)


def read(place: Path, expected) -> bool:
    """Whether a bad image is refused by its name, an odd one read as it is."""
    try:
        pixels = data.read_image(place, 0)
    except DataError as error:
        return expected is None and place.name in str(error) and "\n" not in str(error)
    return expected is not None and np.array_equal(pixels, expected)


# Many at once


def want_pack(shared, folder):
    """One of eight that need the same pack, which nobody has built."""
    start, builds, answers, i = shared
    finish, read_image = data.Journal.finish, data.read_image

    def counted(journal):
        try:
            finish(journal)
        finally:
            with builds.get_lock():
                builds.value += 1

    def slow(*arguments):
        time.sleep(0.01)
        return read_image(*arguments)

    data.Journal.finish, data.read_image = counted, slow
    start.wait()
    pack = data.load(folder, "train")
    answers[i] = int(pack.sha256[:12], 16)


def many_at_once(n):
    """Eight processes on an empty cache, the one that builds killed in every other round; one pack for all, once."""
    chance = random.Random(12)
    with TemporaryDirectory() as folder:
        for k in range(12):
            Path(folder, f"{k:02}.jpg").write_bytes(jpeg(k))
        with fresh_root(demo=False), quiet():
            right = int(data.load(folder, "train").sha256[:12], 16)
        for i in range(n):
            with fresh_root(demo=False):
                start, builds, answers = PROCESSES.Event(), PROCESSES.Value("l", 0), PROCESSES.Array("Q", 8, lock=False)
                children = [in_a_child(want_pack, folder, shared=(start, builds, answers, k)) for k in range(8)]
                start.set()
                began, home = time.perf_counter(), datasets.home(folder)
                while not list(home.glob("packed-*/*.json*")) and time.perf_counter() - began < PATIENCE:
                    time.sleep(0.002)
                gone = set()
                if i % 2:
                    time.sleep(chance.uniform(0, 0.1))
                    gone = {builder(children, home)} - {None}
                endings = [ended(child) for child in children]
                seconds = time.perf_counter() - began
                left = [k for k in range(8) if k not in gone]
                good = builds.value == 1 and all(answers[k] == right for k in left)
                wrong = builds.value > 1 or any(answers[k] not in (0, right) for k in left)
                yield (SILENT if wrong else RECOVERED if good and not any(endings[k] for k in left) else LOUD), seconds


def builder(children, home) -> int | None:
    """Kill the process that has the pixels open, and answer which one it was."""
    for k, child in enumerate(children):
        try:
            opened = [str(link.readlink()) for link in Path(f"/proc/{child.pid}/fd").iterdir()]
        except OSError:
            continue
        if any(name.endswith("pixels.bin") for name in opened):
            child.kill()
            return k
    return None


NO_LOCK = "if folder.parent.mkdir(parents=True, exist_ok=True) is None:"

ROWS = {
    "downloads": Row(
        "A download is whole or absent",
        "a local server with 8 faults, for a set of files and for an archive",
        16,
        faulty_downloads,
        "no checksum is compared",
        (
            Edit("odl.data.download", 'f"sha256:{digest}"', "None"),
            Edit("odl.data.prepare", 'check_files(folder, DATASETS["db11"]["files"])', "pass"),
            Edit("odl.data.prepare", "check_listing(base, folder)", "pass"),
            Edit("odl.data.unpack", 'if "sha256" in entry:', "if False:"),
        ),
        16,
    ),
    "archives": Row(
        "An archive writes images, and only where it should",
        "15 archives made to harm",
        len(ARCHIVES),
        hostile_archives,
        "names and sizes of members are not checked",
        (Edit("odl.data.extract", "too_large or not place.is_relative_to(target.resolve())", "False"),),
        len(ARCHIVES),
    ),
    "images": Row(
        "A bad image is never trained on",
        "truncated, ending in zeros, no images at all, bombs, odd modes",
        245,
        bad_images,
        "Pillow may fill up what is missing",
        (Setting("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True),),
        30,
    ),
    "crowds": Row(
        "Many may start at once",
        "8 processes on an empty cache, the builder killed in every other round",
        20,
        many_at_once,
        "the lock is dropped",
        (Edit("odl.data.pack", 'with paths.locked(folder.parent / f".{folder.name}.lock"):', NO_LOCK),),
        2,
    ),
}
