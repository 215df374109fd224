"""Faults of what comes from outside: downloads, archives, images, and other processes that want the same."""

import hashlib
import io
import tarfile
import threading
import time
import zipfile
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import numpy as np
import pooch

from odl.data import download, packs, reader, sets
from odl.data.sets import DATASETS, DataError
from odl.machine import files
from tests.made import BAD, cut, flip, jpeg, modes, png_of, tar_with, zip_with

from . import campaign
from .campaign import LOUD, RECOVERED, SILENT, broken_by, ended, files_below, in_a_child, judged, row

STALL = 1.0  # seconds without a byte; 30 for a user


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# Downloads


BODIES = {  # what a server sends in the place of a content, which it announces as whole
    "a byte changed": lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
    "a page": lambda content: b"<!DOCTYPE html><title>Quota exceeded</title>".ljust(len(content)),
    "cut off": lambda content: content[: len(content) // 2],
    "stalled": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
}
FAULTS = (*BODIES, "404", "500", "endless redirects")


class Server(ThreadingHTTPServer):
    """Serves `files`; the one named `bad` with a fault."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.bad, self.fault = files, None, None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        """A client that gave up is no error here."""


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        content, fault = self.server.files[name], self.server.fault if name == self.server.bad else None
        self.send_response({"404": 404, "500": 500, "endless redirects": 302}.get(fault, 200))
        self.send_header("Location", self.path)  # for a redirect
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(BODIES.get(fault, bytes)(content))
        self.wfile.flush()
        if fault == "stalled":
            time.sleep(2 * STALL)

    def log_message(self, *_):
        pass


def berkeley(changed=None) -> tuple[bytes, dict[str, str]]:
    """An archive like that of BSDS500, with one photograph changed; and its names with their hashes."""
    names = sorted(f"{split}/{i}.jpg" for split in ("train", "val", "test") for i in range(4))
    files, buffer = {name: jpeg(99 if k == changed else k) for k, name in enumerate(names)}, io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in files.items():
            file.writestr(f"BSDS500-a04b7c6/BSDS500/data/images/{name}", content)
    return buffer.getvalue(), {name: sha256(content) for name, content in files.items()}


@cache
def server() -> Server:
    pooch.downloaders.DEFAULT_TIMEOUT = STALL
    pooch.get_logger().setLevel("ERROR")
    return Server({name: jpeg(k) for k, name in enumerate(DATASETS["db11"]["files"])})


@row(16, 16, "A download is whole or absent", "a local server with 8 faults, for a set of files and for an archive")
@broken_by(
    "no checksum is compared",
    ("odl.data.download.download", "check_listing(base, cache)", "pass"),
    ("odl.data.download.prepare", "check_listing(base, folder)", "pass"),
    ("odl.data.download.unpack", 'if "sha256" in entry:', "if False:"),
)
def downloads(i, chance):
    """Eleven files and one archive, in turn; refused, nothing kept, and whole once the server is."""
    serving, name, fault = server(), ("db11", "bsds500")[i % 2], FAULTS[i // 2 % len(FAULTS)]
    archive, digests = berkeley()
    serving.files["x.zip"], url = archive, f"http://127.0.0.1:{serving.server_port}/"
    if name == "db11":
        digests = {file: sha256(serving.files[file]) for file in DATASETS["db11"]["files"]}
        entry, bad = {"url": url}, chance.choice(list(digests))
    else:
        entry, bad = {"url": f"{url}x.zip"}, "x.zip"
        if fault == "a byte changed":  # an archive that opens
            (serving.files["x.zip"], _), fault = berkeley(changed=chance.randrange(12)), None

    def whole(_):
        images = sets.find(name)
        return {str(p.relative_to(images)): sha256(p.read_bytes()) for p in images.rglob("*.*")} == digests

    listing = "".join(f"{digest}  {file}\n" for file, digest in sorted(digests.items()))
    entry["sha256"], serving.bad, serving.fault = sha256(listing.encode()), bad, fault
    with mock.patch.dict(DATASETS[name], entry):
        first, _ = judged(lambda: download.prepare(name), lambda _: False)
        if (sets.home(name) / "images").exists():
            first = SILENT  # a set that is not whole lies where it would be used
        serving.fault, serving.files["x.zip"] = None, archive
        again, seconds = judged(lambda: download.prepare(name), whole)
    return (first if first != RECOVERED else again), seconds


# Archives


def large_zip(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("img_align_celeba/1.jpg", bytes(101_000_000))


def many(path, _):
    """More in all than the cap, each member below its own."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for k in range(3):
            file.writestr(f"img_align_celeba/{k}.jpg", bytes(400_000))


def link_first(path, outside):
    """A link to a folder outside, then a file through it."""
    with tarfile.open(path, "w") as file:
        link, image = tarfile.TarInfo("img_align_celeba"), tarfile.TarInfo("img_align_celeba/000001.jpg")
        link.type, link.linkname, image.size = tarfile.SYMTYPE, str(outside), len(jpeg(0))
        file.addfile(link)
        file.addfile(image, io.BytesIO(jpeg(0)))


def link_out(path, outside):
    zip_with(path, "img_align_celeba/link.jpg", str(outside).encode(), link=True)


ARCHIVES = {
    "climbing.zip": lambda path, out: zip_with(path, "../../../climbed.jpg"),
    "deep.zip": lambda path, out: zip_with(path, "img_align_celeba/../../../../climbed.jpg"),
    "absolute.zip": lambda path, out: zip_with(path, f"{out}/absolute.jpg"),
    "large.zip": lambda path, out: large_zip(path),
    "climbing.tar": lambda path, out: tar_with(path, "../../../climbed.jpg"),
    "absolute.tar": lambda path, out: tar_with(path, f"{out}/absolute.jpg"),
    "file-as-folder.zip": lambda path, out: zip_with(path, "img_align_celeba/000001.jpg/x.jpg"),
    "long.tar": lambda path, out: tar_with(path, "n" * 300 + ".jpg"),
    "text.zip": lambda path, out: path.write_text("no archive"),
    "cut.zip": lambda path, out: (zip_with(path, "b.jpg"), cut(path, 40)),
    "flipped.zip": lambda path, out: (zip_with(path, "b.jpg"), flip(path, 200)),
    "cut.tar.gz": lambda path, out: (tar_with(path, "b.jpg", mode="w:gz"), cut(path, 3000)),
    "many.zip": many,
    "link.zip": link_out,
    "link.tar": link_first,
}


@row(len(ARCHIVES), len(ARCHIVES), "An archive writes images, and only where it should", "15 archives made to harm")
@broken_by(
    "names and sizes of members are not checked",
    ("odl.data.download.extract", "too_large or not place.is_relative_to(target.resolve())", "False"),
)
def archives(i, chance):
    """With the hash that is expected: nothing outside, nothing left over, no link."""
    (name, make), root = list(ARCHIVES.items())[i], files.root()
    path, outside = root / "given" / name, root / "outside"
    path.parent.mkdir()
    outside.mkdir()
    make(path, outside)
    before, links, md5 = files_below(root), links_below(root), hashlib.md5(path.read_bytes()).hexdigest()
    cap = 1_000_000 if name == "many.zip" else download.MAX_ARCHIVE
    with mock.patch.dict(DATASETS["celeba"], md5=md5), mock.patch.object(download, "MAX_ARCHIVE", cap):
        outcome, seconds = judged(lambda: download.prepare("celeba", str(path)), lambda _: True)
    made, home = files_below(root) - before, sets.home("celeba")
    inside = {str(p.relative_to(root)) for p in (home / "images").rglob("*")}
    others = {file for file in made if not file.startswith("data/celeba/packed")}
    refused = not made and not inside
    left_out = others == {file for file in inside if file.endswith(".jpg")} and name.startswith("link")
    return (outcome if (refused or left_out) and links == links_below(root) else SILENT), seconds


def links_below(folder) -> list:
    return [p for p in folder.rglob("*") if p.is_symlink()]


# Images


SIZES = [(60_000, 60_000), (10_001, 10_000), (2_000_000, 1), (1, 2_000_000), (100_000, 100_000)]
BOMBS = [png_of(*size) for size in SIZES]
NONE = [content for name, content in BAD.items() if name not in ("truncated.jpg", "zeros.jpg")]
KINDS = {"truncated": 100, "zeros": 100, "none": 20, "bomb": 5, "odd": 20}


@row(245, 30, "A bad image is never trained on", "truncated, ending in zeros, no images at all, bombs, odd modes")
@broken_by("Pillow may fill up what is missing", ("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", None, True))
def images(i, chance):
    content, place, expected = jpeg(i, 90 + i % 60, 200 - i % 90), files.root() / f"{i:03}.jpg", None
    at = chance.randrange(len(content) - 2)
    bad = {"truncated": content[:at], "zeros": content[:at] + bytes(len(content) - at), "bomb": chance.choice(BOMBS)}
    bad["none"] = chance.choice([chance.randbytes(5000), content[::-1], *NONE])
    (kind,) = chance.choices(list(KINDS), KINDS.values())
    if kind == "odd":
        place = place.with_suffix(".png")
        _, image, expected = chance.choice(list(modes()))
        image.save(place)
    else:
        place.write_bytes(bad[kind])

    def good():
        """Whether a bad image is refused by its name, an odd one read as it is."""
        try:
            pixels = reader.read_image(place, 0)
        except DataError as error:
            return expected is None and place.name in str(error) and "\n" not in str(error)
        return expected is not None and np.array_equal(pixels, expected)

    return judged(good, bool)


# Many at once


def want_pack(shared, folder):
    """One of eight that need the same pack, which nobody has built."""
    start, builds, answers, i = shared
    finish, read_image = packs.Journal.finish, reader.read_image

    def counted(journal):
        with builds.get_lock():
            builds.value += 1
        finish(journal)

    packs.Journal.finish, reader.read_image = counted, lambda *given: time.sleep(0.01) or read_image(*given)
    start.wait()
    answers[i] = beginning(folder)


def beginning(folder: str) -> int:
    """Of the hash of the pixels in its pack."""
    return int(packs.load(folder, "train").sha256[:12], 16)


@cache
def twelve() -> tuple[str, int]:
    """A folder of photographs, and what a pack made by one process alone has."""
    folder = campaign.kept_folder()
    for k in range(12):
        (folder / f"{k:02}.jpg").write_bytes(jpeg(k))
    with campaign.fresh_root():
        return str(folder), beginning(str(folder))


@row(20, 2, "Many may start at once", "8 processes on an empty cache, the builder killed in every other round")
@broken_by(
    "the lock is dropped",
    (
        "odl.data.packs.pack",
        'with files.locked(folder.parent / f".{folder.name}.lock"):',
        "if folder.parent.mkdir(parents=True, exist_ok=True) is None:",
    ),
)
def crowds(i, chance):
    """One pack for all, built once."""
    folder, right = twelve()
    start, builds, answers = (
        campaign.PROCESSES.Event(),
        campaign.PROCESSES.Value("l", 0),
        campaign.PROCESSES.Array("Q", 8, lock=False),
    )
    children = [in_a_child(want_pack, folder, shared=(start, builds, answers, k)) for k in range(8)]
    start.set()
    began, home = time.perf_counter(), sets.home(folder)
    while not list(home.glob("packed-*/*.json*")) and time.perf_counter() - began < campaign.PATIENCE:
        time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.1))
    gone = builder(children) if i % 2 else None
    endings = [ended(child) for child in children]
    seconds, left = time.perf_counter() - began, [k for k in range(8) if k != gone]
    if builds.value > 1 or any(answers[k] not in (0, right) for k in left):
        return SILENT, seconds
    good = builds.value == 1 and all(answers[k] == right and endings[k] == 0 for k in left)
    return (RECOVERED if good else LOUD), seconds


def builder(children) -> int | None:
    """Kill the process that has the pixels open. Returns which one it was."""
    for k, child in enumerate(children):
        with suppress(OSError):
            if any(str(link.readlink()).endswith("pixels.bin") for link in Path(f"/proc/{child.pid}/fd").iterdir()):
                child.kill()
                return k
    return None
