"""Packing many small files and reading crops from the pack: images a second, CPU time, and memory as they grow.

Files are made for this, of CelebA's size (178×218 JPEG), in a temporary folder that is deleted afterwards.
"""

import io
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from companion.data import download, packs
from odl import crops

from . import measure

WIDTH, HEIGHT = 178, 218  # of CelebA's aligned faces


def sizes(options: measure.Options) -> dict:
    full = {"files": [10_000, 100_000], "different": 1000, "batches": 200, "batch": 100}
    return options.sizes(full, {"files": [40], "different": 10, "batches": 2, "batch": 4})


def run(options: measure.Options) -> dict:
    size, rows = sizes(options), []
    with tempfile.TemporaryDirectory(prefix="odl-packing-") as folder:
        source = Path(folder, "jpeg")
        for n in size["files"]:
            write_files(source, n, size["different"])  # those of a smaller size are there already
            root = {"ODL_ROOT": str(Path(folder, f"root-{n}"))}
            packed, seen = (measure.in_child(part, options, root, source=str(source)) for part in (pack, read))
            rows.append({"files": n} | packed | seen)
    kilobytes, cores, load = sum(len(jpeg(i)) for i in range(20)) / 20e3, os.cpu_count(), os.getloadavg()[1]
    return {
        "rounds": 1,
        "scale": size | {"cores": cores, "load": load, "kilobytes_per_file": kilobytes},
        "rows": rows,
        "notes": [
            f"JPEGs of {WIDTH}×{HEIGHT}, {measure.cell(kilobytes)} kB each, made for this; {cores} cores, "
            f"load average {measure.cell(load)}.",
            "CPU times and memory stand for themselves; images a second would be more on an idle machine.",
        ],
    }


def write_files(folder: Path, n: int, different: int) -> None:
    """n JPEGs under numbered names, of so many different pictures."""
    folder.mkdir(exist_ok=True)
    pictures = [jpeg(i) for i in range(min(n, different))]
    for i in range(len(os.listdir(folder)), n):
        (folder / f"{i:06}.jpg").write_bytes(pictures[i % len(pictures)])


def jpeg(seed: int) -> bytes:
    """A smooth random field with grain, about as large as a photograph of a face is."""
    draw = np.random.default_rng(seed)
    coarse = Image.fromarray(draw.integers(0, 256, (14, 11, 3), np.uint8))
    field = np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), float)
    grain = draw.normal(0, 4, (HEIGHT, WIDTH, 1))
    buffer = io.BytesIO()
    Image.fromarray((field + grain).clip(0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


# In processes of their own, so that each has its own peak of memory


def pack(options: measure.Options, source: str) -> dict:
    before, start, cpu = measure.megabytes("VmHWM"), time.perf_counter(), time.process_time()
    folder = download.prepare(source)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    n = len(json.loads((folder / "index.json").read_text(encoding="utf-8"))["images"])
    return {
        "packing, images/s": n / seconds,
        "CPU ms per image": 1000 * cpu / n,
        "pack (MB)": (folder / "pixels.bin").stat().st_size / 1e6,
        "packing, peak memory (MB)": measure.megabytes("VmHWM"),
        "of it libraries (MB)": before,
    }


def read(options: measure.Options, source: str) -> dict:
    """Random crops from the pack, as training takes them."""
    size = sizes(options)
    before, start = measure.megabytes("RssAnon"), time.process_time()  # its own: pages of a mapped file are not
    images = packs.load(source, "train")
    loaded = time.process_time() - start
    generator = torch.Generator().manual_seed(0)
    start = time.process_time()
    for _ in range(size["batches"]):
        crops.crop(images, torch.randint(len(images), (size["batch"],), generator=generator), generator)
    return {
        "index read in (CPU s)": loaded,
        "crops per CPU s": size["batches"] * size["batch"] / (time.process_time() - start),
        "reading, own memory (MB)": measure.megabytes("RssAnon") - before,
    }
