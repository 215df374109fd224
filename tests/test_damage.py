"""Nobody's photograph is made worse without a warning; `python tests/test_damage.py` measures the bounds anew.

`python tests/test_damage.py colour` measures colour photographs with noise, and writes data/results/colour.json.
"""

import os
import sys
from pathlib import Path

import conftest
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage.metrics import peak_signal_noise_ratio as psnr
from skimage.restoration import denoise_nl_means

from companion.data import sets
from companion.disk import provenance
from companion.disk.files import results, seal, unseal, write_atomically
from companion.restore import advice as doubts
from companion.restore.pretrained import load
from odl.device import quick_precision
from odl.windows import restore_image

SEVERITIES = {  # σ of noise on the 0–255 scale, σ of blur in pixels
    "denoise": (0, 2, 5, 10, 15, 20, 25, 30, 50, 80),
    "deblur": (0, 0.5, 1, 1.25, 1.5, 1.75, 2, 3, 4, 5),
}
STRIDE = 16


def held_out() -> list[Path]:
    """The photographs of BSDS500 that no network was trained or validated on."""
    folder = sets.find("bsds500")
    return [folder / name for name in sets.list_images("bsds500", folder)["test"]]


def damaged(x: np.ndarray, task: str, severity: float, seed: int) -> np.ndarray:
    """x (H, W[, 3]) uint8 with noise or blur, as 8 bits hold it."""
    if task == "denoise":
        y = x + severity * np.random.default_rng(seed).standard_normal(x.shape)
    else:
        y = gaussian_filter(x.astype(float), (severity, severity, 0), mode="mirror")
    return y.round().clip(0, 255).astype(np.uint8)


def measure(task: str, severities, files: list[Path]) -> pd.DataFrame:
    """A row per photograph and severity: severity, input and output (dB), warned, and what the warning looks at."""
    network, rows = load(task), []
    for seed, file in enumerate(files):
        x = np.asarray(Image.open(file).convert("L" if task == "denoise" else "RGB"))
        for severity in severities:
            y = np.float32(damaged(x, task, severity, seed) / 255)
            x_hat = restore_image(network, y, STRIDE, precision=quick_precision())
            sign = (
                doubts.blur_of(y)
                if task == "deblur"
                else ((x_hat - y) ** 2).mean() / max(doubts.noise_of(y), 1e-6) ** 2
            )
            scores = [min(psnr(x / 255, z.astype(float), data_range=1), 100) for z in (y, x_hat)]
            rows.append((severity, *scores, doubts.doubt(y, x_hat, task) is not None, sign))
    return pd.DataFrame(rows, columns=["severity", "input", "output", "warned", "sign"])


@pytest.mark.parametrize(("task", "severities"), [("denoise", (2, 10, 20, 40)), ("deblur", (1, 1.75, 3))])
def test_no_result_is_worse_than_its_input_without_a_warning(task, severities):
    conftest.found("bsds500")
    found = measure(task, severities, held_out()[::16])
    assert found.warned[found.output < found.input - 0.1].all()
    strongest = found[found.severity == severities[-1]]
    assert not strongest.warned.all() and (strongest.output > strongest.input).all()


def test_noise_and_blur_are_found():
    generator = np.random.default_rng(0)
    ramp = np.linspace(0.3, 0.7, 300) * np.ones((200, 1))
    for sigma in (0.01, 0.1):
        y = ramp + sigma * generator.standard_normal(ramp.shape)
        assert doubts.noise_of(y) == pytest.approx(sigma, rel=0.1)
        assert doubts.noise_of(np.stack([y] * 3, -1)) == pytest.approx(sigma, rel=0.1)
    tiny = np.full((16, 16), 0.5) + 0.2 * generator.standard_normal((16, 16))
    assert "too small to tell its noise" in doubts.doubt(tiny, np.full((16, 16), 0.5), "denoise")
    steps = (generator.random((300, 300)) < 1e-3).cumsum(0).cumsum(1) % 2.0  # edges: a flat spectrum of gradients
    for sigma in (1.5, 3):
        assert doubts.blur_of(gaussian_filter(steps, sigma)) == pytest.approx(sigma, rel=0.25)


def measure_colour(photographs: list[Path]) -> list[dict]:
    """A row per σ: mean PSNR (dB) of colour photographs with noise, restored here and by non-local means."""
    rows, network = [], load("denoise")
    for sigma in (25, 50):
        scores = []
        for seed, file in enumerate(photographs):
            x = np.asarray(Image.open(file))
            y = np.float32(damaged(x, "denoise", sigma, seed) / 255)
            means = {"patch_size": 5, "patch_distance": 6, "h": 0.6 * sigma / 255, "sigma": sigma / 255}
            others = denoise_nl_means(y, fast_mode=True, channel_axis=-1, **means)
            ours = restore_image(network, y, STRIDE, precision=quick_precision())
            scores.append([psnr(x / 255, np.float64(z), data_range=1) for z in (y, others, ours)])
        names = ("Noisy", "Non-local means, in colour", "`restore`, channel by channel")
        means = dict(zip(names, (f"{score:.2f} dB" for score in np.mean(scores, 0)), strict=True))
        rows.append({"σ": sigma, "Photographs": len(photographs)} | means)
    return rows


def test_what_the_method_page_says_of_colour_was_measured():
    mild, strong = (list(row.values())[-2:] for row in unseal(results() / "colour.json")["rows"])
    assert mild[0] < mild[1] and strong[0] < strong[1]  # non-local means, ours: "29.35 dB"


def main(tasks: list[str], files: list[Path]) -> None:
    if tasks == ["colour"]:
        rows = {"commit": provenance.commit(), "rows": measure_colour(files)}
        return write_atomically(results() / "colour.json", seal(rows))
    for task in tasks or SEVERITIES:
        found = measure(task, SEVERITIES[task], files)
        gain = found.output - found.input
        table = found.assign(gain=gain, worst=gain, harmed=gain < -0.1, silent=(gain < -0.1) & ~found.warned)
        how = {"input": "mean", "gain": "mean", "worst": "min", "harmed": "sum", "warned": "sum", "silent": "sum"}
        print(f"{task}: {len(files)} photographs, dB\n{table.groupby('severity').agg(how).round(2).to_string()}")
        signs = found.sign[gain < -0.1]
        print(
            f"sign of the harmed: {signs.min():.3f} to {signs.max():.3f}; of the others warned: "
            f"{found.warned[gain >= -0.1].mean():.3f}\n",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:], held_out()[:: int(os.environ.get("EVERY", 1))])
