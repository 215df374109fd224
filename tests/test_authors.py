"""Authors' weights: written files of each layout, against the networks' formulas by SciPy; wrong files in one line."""

import numpy as np
import pytest
from conftest import refused
from scipy import ndimage, signal
from scipy.fft import idctn
from scipy.io import savemat

from companion import db11_spectrum, denoising, table3
from companion.__main__ import main
from companion.comparators import AUTHORS, DENOISERS, authors
from odl.parameters import ParameterError

RNG = np.random.default_rng(0)
IMAGE = RNG.random((21, 26))


def cells(shape, make):
    """A cell array of the shape."""
    cell = np.empty(shape, object)
    for place in np.ndindex(*shape):
        cell[place] = make()
    return cell


def csf_file(side=5, filters=3, stages=2):
    means = np.arange(-260, 261, 10, dtype=np.int16)[:, None]
    shrink = np.empty((filters, stages), [(name, object) for name in ("precision", "means", "weights")])
    for place in np.ndindex(filters, stages):
        shrink[place] = 0.01, means, RNG.normal(0, 5, (53, 1))
    kernels = cells((filters, stages), lambda: RNG.normal(size=(side, side)))
    model = {"nfilters": filters, "sigma": 25, "is_deblurring": 0, "nstages": stages, "f": kernels, "shrink": shrink}
    return {"model": model | {"lambda": RNG.uniform(0.5, 2, (1, stages))}}


def tnrd_file(stages=2):
    means = np.arange(-310, 311, 10, dtype=np.int16)[:, None]
    mixture = {"means": means, "precision": 0.01, "NumW": 63, "step": 0.2, "offsetD": np.int16(-320)}
    cof = np.concatenate([RNG.normal(size=(48 * 48, stages)), RNG.normal(-2, 0.1, (1, stages))])
    return {"MFS": mixture, "stage": stages, "cof": np.concatenate([cof, RNG.normal(0, 0.2, (63 * 48, stages))])}


def dncnn_file(depth=3, width=4):
    layers, sizes = [], [1, *[width] * (depth - 1), 1]
    for i in range(depth):
        weights = np.empty((1, 2), object)
        weights[0, 0] = RNG.normal(0, 0.2, (3, 3, sizes[i], sizes[i + 1])).astype(np.float32)
        weights[0, 1] = RNG.normal(0, 0.2, (sizes[i + 1], 1)).astype(np.float32)
        layers += [{"type": "conv", "weights": weights, "pad": 1}, {"type": "relu"}]
    cell = np.empty((1, 2 * depth - 1), object)
    cell[0, :] = layers[:-1]
    return {"net": {"layers": cell}}


FILES = {"csf_authors": csf_file, "tnrd_authors": tnrd_file, "dncnn_authors": dncnn_file}


def mixture(z, means, weights):
    return sum(w * np.exp(-0.005 * (z - m) ** 2) for m, w in zip(means.ravel(), weights.ravel(), strict=True))


def csf(y, content):
    """Eq. 10 of the paper: every filter's answer shrunk, and the image nearest to all and to y, by Fourier."""
    model = content["model"]
    wide = x = np.pad(255 * y, 10, mode="edge")
    for s, weight in enumerate(model["lambda"].ravel()):
        above, below = weight * wide, np.full(wide.shape, weight)
        for f, shrink in zip(model["f"][:, s], model["shrink"][:, s], strict=True):
            z = mixture(ndimage.convolve(x, f, mode="wrap"), shrink["means"], shrink["weights"])
            above = above + ndimage.correlate(z, f, mode="wrap")
            below = below + np.abs(np.fft.fft2(f, wide.shape)) ** 2
        x = np.fft.ifft2(np.fft.fft2(above) / below).real[10:-10, 10:-10]
        x = np.pad(x, 10, mode="edge")
    return x[10:-10, 10:-10] / 255


def tnrd(y, content):
    """u - Σ k̄ ∗ φ(k ∗ u) - λ (u - y), with mirrored borders."""
    y = u = 255 * y
    for column in content["cof"].T:
        step = np.exp(column[48 * 48]) * (u - y)
        for i in range(48):
            coefficients = np.concatenate([[0], column[48 * i : 48 * i + 48]])
            k = idctn((coefficients / np.linalg.norm(coefficients)).reshape(7, 7, order="F"), norm="ortho")
            z = signal.correlate(np.pad(u, 6, mode="symmetric"), k, "valid")
            weights = column[48 * 48 + 1 :][63 * i : 63 * i + 63]
            step = step + signal.convolve(mixture(z, content["MFS"]["means"], weights), k, "valid")
        u = u - step
    return u / 255


def dncnn(y, content):
    layers, maps = content["net"]["layers"].ravel(), [y]
    for layer in layers:
        if layer["type"] == "relu":
            maps = [np.maximum(m, 0) for m in maps]
            continue
        kernel, bias = (part.astype(float) for part in layer["weights"].ravel())
        maps = [
            sum(signal.correlate(m, kernel[:, :, i, o], "same", "direct") for i, m in enumerate(maps)) + bias[o]
            for o in range(len(bias))
        ]
    return y - maps[0]


FORMULA = {"csf_authors": csf, "tnrd_authors": tnrd, "dncnn_authors": dncnn}


@pytest.fixture
def given(root, tmp_path):
    """A function that gives the weights of a system by the command, and returns what the file holds."""

    def give(system):
        content = FILES[system]()
        savemat(tmp_path / "weights.mat", content)
        assert main(["weights", system, "--weights", str(tmp_path / "weights.mat")]) == 0
        return content

    return give


@pytest.mark.parametrize("system", AUTHORS)
def test_the_network_is_the_formula(given, system):
    expected = FORMULA[system](IMAGE, given(system))
    np.testing.assert_allclose(authors.denoise(IMAGE, None, system), expected, atol=2e-4)


def test_a_matlab_7_3_file_reads_alike(root, tmp_path):
    """Axes in reverse, a cell as references to what lies elsewhere, text as numbers."""
    h5py = pytest.importorskip("h5py")
    content = dncnn_file()
    with h5py.File(tmp_path / "weights.mat", "w", userblock_size=512) as file:
        references = []
        for i, layer in enumerate(content["net"]["layers"].ravel()):
            group = file.create_group(f"#refs#/{i}")
            group["type"] = np.array([[ord(letter)] for letter in layer["type"]], np.uint16)
            group["type"].attrs["MATLAB_class"] = np.bytes_("char")
            parts = []
            for k, part in enumerate(layer["weights"].ravel() if "weights" in layer else ()):
                parts.append(file.create_dataset(f"#refs#/{i}-{k}", data=part.T).ref)
            group.create_dataset("weights", data=np.array(parts, h5py.ref_dtype), dtype=h5py.ref_dtype)
            references.append([group.ref])
        file.create_dataset("net/layers", data=np.array(references, h5py.ref_dtype), dtype=h5py.ref_dtype)
    with (tmp_path / "weights.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    authors.keep("dncnn_authors", tmp_path / "weights.mat")
    np.testing.assert_allclose(authors.denoise(IMAGE, 25, "dncnn_authors"), dncnn(IMAGE, content), atol=1e-5)


def broken(system):
    """Files that are not what was released, and a word of what is said."""
    content = FILES[system]()
    if system == "csf_authors":
        content["model"]["sigma"] = 15
        return content, "σ = 25"
    if system == "tnrd_authors":
        content["cof"] = content["cof"][:-1]
        return content, "48 filters"
    content["net"]["layers"][0, 1] = {"type": "bnorm"}
    return content, "conv and relu"


@pytest.mark.parametrize("system", AUTHORS)
def test_a_wrong_file_is_one_line(root, tmp_path, capsys, system):
    content, words = broken(system)
    savemat(tmp_path / "other.mat", content)
    savemat(tmp_path / "empty.mat", {"x": 1})
    (tmp_path / "text.mat").write_bytes(b"no weights at all " * 20)
    for name, said in (("other", words), ("empty", "laid out"), ("text", "laid out"), ("absent", "No such file")):
        assert main(["weights", system, "--weights", str(tmp_path / f"{name}.mat")]) == 2
        printed = capsys.readouterr().err
        assert said in printed and printed.count("\n") == 1, printed
    assert not authors.here() and not DENOISERS[system].here()
    refused(lambda: authors.denoise(IMAGE, 25, system), "python -m companion weights", kind=FileNotFoundError)
    refused(lambda: authors.keep("csf_author", tmp_path / "other.mat"), "nearest", kind=ParameterError)


def test_a_system_stands_in_table_3_and_figure_6_when_its_weights_are_here(given, monkeypatch):
    monkeypatch.setattr(denoising, "photographs", lambda *_: [("x", (255 * IMAGE).astype(np.uint8))])
    monkeypatch.setattr(denoising.Case, "possible", lambda _: True)
    assert denoising.shown(["tv"]) == ["noisy", "tv"]
    given("dncnn_authors")
    systems = denoising.shown(["tv"])
    assert systems == ["noisy", "tv", "dncnn_authors"]
    table = table3.table(systems, dataset="demo")
    assert np.isfinite(table.psnr).all()
    assert "DnCNN, authors' weights" in table3.show_means(table).to_html()
    curves = db11_spectrum.table(denoising.curves_of(systems), [25], "demo")
    assert "DnCNN, authors' weights" in [line.get_label() for line in db11_spectrum.plot_curves(curves).axes[1].lines]
    before = authors.denoise(IMAGE, 25, "dncnn_authors")
    given("dncnn_authors")  # others: what the former ones did is not shown as theirs
    assert denoising.Case("dncnn_authors", dataset="demo").load() is None
    assert np.abs(authors.denoise(IMAGE, 25, "dncnn_authors") - before).max() > 1e-3
