"""Packing many small files and reading crops from the pack: images a second, CPU time, and memory as they grow.

Files are made for this, of CelebA's size (178×218 JPEG), in a temporary folder that is deleted afterwards.
"""

import io
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from odl import data

WIDTH, HEIGHT = 178, 218  # of CelebA's aligned faces
MEGABYTE = 1e6


def sizes(options) -> dict:
    full = {"files": [10_000, 100_000], "different": 1000, "batches": 200, "batch": 100}
    return options.sizes(full, {"files": [40], "different": 10, "batches": 2, "batch": 4})


def run(options) -> dict:
    from . import measure  # not above: the processes below are to hold nothing but what packing needs

    size, rows = sizes(options), []
    with tempfile.TemporaryDirectory(prefix="odl-packing-") as folder:
        for n in size["files"]:
            source = Path(folder, "jpeg")
            write_files(source, n, size["different"])  # those of a smaller size are there already
            given = {"source": str(source), **size}
            environment = {"ODL_ROOT": str(Path(folder, f"root-{n}"))}
            packed = measure.in_child("packing", options, environment, what="pack", **given)
            rows.append({"files": n} | packed | measure.in_child("packing", options, environment, what="read", **given))
    return {
        "rounds": 1,
        "scale": size
        | {"cores": os.cpu_count(), "load": os.getloadavg()[1], "precision_of_ours": options.precision}
        | {
            "kilobytes_per_file": sum(len(jpeg(i)) for i in range(20)) / 20 / 1000,
            "width_px": WIDTH,
            "height_px": HEIGHT,
        },
        "rows": rows,
        "comparisons": [],
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


def pack(source: str) -> dict:
    before, start, cpu = peak(), time.perf_counter(), time.process_time()
    folder = data.prepare(source)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    n = len(json.loads((folder / "index.json").read_text())["images"])
    return {
        "packing, images/s": n / seconds,
        "CPU ms per image": 1000 * cpu / n,
        "pack (MB)": (folder / "pixels.bin").stat().st_size / MEGABYTE,
        "packing, peak memory (MB)": peak(),
        "of it libraries (MB)": before,
    }


def read(source: str, batches: int, batch: int) -> dict:
    """Random crops from the pack, as training takes them."""
    before, start = own_memory(), time.process_time()
    images = data.load(source, "train")
    loaded = time.process_time() - start
    generator = torch.Generator().manual_seed(0)
    start = time.process_time()
    for _ in range(batches):
        data.crop(images, torch.randint(len(images), (batch,), generator=generator), generator)
    return {
        "index read in (CPU s)": loaded,
        "crops per CPU s": batches * batch / (time.process_time() - start),
        "reading, own memory (MB)": own_memory() - before,
    }


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return status("VmHWM")


def own_memory() -> float:
    """Memory that is this process's alone, in MB; pages of a mapped file are not."""
    return status("RssAnon")


def status(name: str) -> float:
    return int(re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024 / MEGABYTE


def main():
    given = json.loads(sys.argv[1])
    if given["what"] == "pack":
        print(json.dumps(pack(given["source"])))
    else:
        print(json.dumps(read(given["source"], given["batches"], given["batch"])))


if __name__ == "__main__":
    main()
