"""Colour photographs with noise, restored channel by channel by the paper's network and by non-local means.

`EVERY=10 python tests/test_damage.py` measures every tenth of the held-out ones and writes data/results/colour.json.
"""

import os

import numpy as np
from PIL import Image
from skimage.metrics import peak_signal_noise_ratio as psnr
from skimage.restoration import denoise_nl_means

from companion.data import sets
from companion.disk import provenance
from companion.disk.files import PACKAGE, results, seal, unseal, write_atomically
from companion.restore.pretrained import load
from odl.device import quick_precision
from odl.windows import restore_image

ROOT = PACKAGE.parent
STRIDE = 16


def measure_colour(every: int) -> list[dict]:
    """A row per σ: mean PSNR (dB) of colour photographs with noise, restored here and by non-local means.

    They are those of BSDS500 that no network was trained or validated on; the noise is as 8 bits hold it.
    """
    rows, network, folder = [], load("denoise"), sets.find("bsds500")
    photographs = sets.list_images("bsds500", folder)["test"][::every]
    for sigma in (25, 50):
        scores = []
        for seed, file in enumerate(photographs):
            x = np.asarray(Image.open(folder / file)) / 255
            noise = sigma * np.random.default_rng(seed).standard_normal(x.shape)
            y = np.float32((255 * x + noise).round().clip(0, 255) / 255)
            means = {"patch_size": 5, "patch_distance": 6, "h": 0.6 * sigma / 255, "sigma": sigma / 255}
            others = denoise_nl_means(y, fast_mode=True, channel_axis=-1, **means)
            ours = restore_image(network, y, STRIDE, precision=quick_precision())
            scores.append([psnr(x, np.float64(z), data_range=1) for z in (y, others, ours)])
        names = ("Noisy", "Non-local means, in colour", "`restore`, channel by channel")
        means = dict(zip(names, (f"{score:.2f} dB" for score in np.mean(scores, 0)), strict=True))
        rows.append({"σ": sigma, "Photographs": len(photographs)} | means)
    return rows


def test_the_method_page_has_the_colours_that_were_measured():
    page = (ROOT / "book" / "method.md").read_text(encoding="utf-8")
    rows = unseal(results() / "colour.json")["rows"]
    assert rows and all(f"| {' | '.join(map(str, row.values()))} |" in page for row in rows)


if __name__ == "__main__":
    found = measure_colour(int(os.environ.get("EVERY", 1)))
    write_atomically(results() / "colour.json", seal({"commit": provenance.commit(), "rows": found}))
