"""Denoisers with their authors' own weights for σ = 25, which the user gives; nothing of them is distributed here.

`python -m companion weights NAME --weights FILE.mat` checks a released file and keeps it in `runs/authors/`:

csf_authors    models/table1/sigma25/csf_5x5.mat or csf_7x7.mat of github.com/uschmidt83/shrinkage-fields
tnrd_authors   JointTraining_7x7_400_180x180_stage=5_sigma=25.mat of Chen's and Pock's test code
dncnn_authors  model/specifics/sigma=25.mat of github.com/cszn/DnCNN, a MATLAB 7.3 file: needs the package h5py
"""

import hashlib
from functools import cache, partial

import numpy as np
import torch
from safetensors.torch import save
from scipy.fft import idctn
from scipy.io import loadmat
from torch import nn

from companion.comparators import check
from companion.comparators.csf import Shrinkage
from companion.comparators.dncnn import DnCNN
from companion.comparators.fields import Functions
from companion.comparators.tnrd import Diffusion
from odl.data.reader import reason
from odl.machine import files
from odl.machine.weights import read_weights
from odl.parameters import ParameterError, choice

SIGMA = 25
STEP, BEYOND = 0.25, 500  # of the table in which CSF's authors look up their functions, and how far it goes on


# Files


def keep(system: str, file) -> None:
    """Convert a released file to `runs/authors/`. Raises ParameterError, one line."""
    choice("name", system, READ)
    try:
        weights = READ[system](contents(file))
    except OSError as error:
        raise ParameterError(f"weights={str(file)!r}: {error}") from None
    except Exception as error:  # a damaged file, or another one, raises anything
        why = f"{type(error).__name__}: {reason(error)}"
        raise ParameterError(f"weights={str(file)!r} is no MATLAB file laid out as {system} is ({why})") from None
    tensors = {name: torch.from_numpy(np.ascontiguousarray(array, np.float32)) for name, array in weights.items()}
    files.write_atomically(path_of(system), save(tensors))


def path_of(system: str):
    return files.runs() / "authors" / f"{system}.safetensors"


def here() -> list[str]:
    """The systems whose weights the user has given."""
    return [system for system in READ if path_of(system).exists()]


def digest(system: str) -> str | None:
    """SHA-256 of a system's weights, None where they are not here."""
    path = path_of(system)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def contents(file) -> dict:
    """Variables of a .mat file: a struct is a dict, a cell an array of objects."""
    try:
        return loadmat(file, simplify_cells=True)
    except NotImplementedError:  # MATLAB 7.3
        return hdf5(file)


def hdf5(file) -> dict:
    """The same of a MATLAB 7.3 file, which is HDF5: axes in reverse, cells as references, text as numbers."""
    try:
        import h5py
    except ImportError:
        raise OSError("a MATLAB 7.3 file, which needs h5py: pip install h5py, or save it with -v7") from None

    def plain(item):
        if isinstance(item, h5py.Group):
            return {name: plain(item[name]) for name in item if not name.startswith("#")}
        if h5py.check_ref_dtype(item.dtype):
            return [plain(opened[reference]) for reference in item[()].ravel()]
        array = item[()].T
        return "".join(map(chr, array.ravel())) if item.attrs.get("MATLAB_class") == b"char" else array

    with h5py.File(file) as opened:
        return plain(opened)


def expect(right: bool, what: str) -> None:
    if not right:
        raise ValueError(f"{what} was expected")


# Formats: arrays of float64 to what `assembled` reads


def read_csf(content: dict) -> dict:
    """`model`: filters f and functions shrink, each a cell of filters × stages, lambda a number a stage."""
    model = content["model"]
    filters = np.array([[np.asarray(f, float) for f in row] for row in model["f"].T])  # (stages, filters, side, side)
    odd = filters.ndim == 4 and filters.shape[2] == filters.shape[3] and filters.shape[2] % 2
    expect(odd, "model.f of odd squares")
    stages, n = filters.shape[:2]
    expect(model["sigma"] == SIGMA and not model["is_deblurring"], "a denoiser for σ = 25")
    expect(np.shape(model["lambda"]) == (stages,) and np.shape(model["shrink"]) == (n, stages), "one λ a stage")
    mixtures = [m if isinstance(m, dict) else vars(m) for row in model["shrink"].T for m in row]
    means, precision = np.asarray(mixtures[0]["means"], float), float(mixtures[0]["precision"])
    same = all(np.array_equal(m["means"], means) and m["precision"] == precision for m in mixtures)
    expect(same and means[0] == -means[-1], "one grid of means, symmetric, for all functions")
    weights = np.array([m["weights"] for m in mixtures], float).reshape(stages, n, len(means))
    reach = means[-1] + BEYOND
    return {
        "filters": filters[:, :, ::-1, ::-1],  # theirs are convolved, ours correlated
        "functions": sums_of_gaussians(weights, means, precision, reach, STEP),
        "reach": [reach],
        "numbers": np.log(model["lambda"]),
    }


def read_tnrd(content: dict) -> dict:
    """`cof`, a column a stage: coefficients of the filters in a cosine basis, log λ, weights of Gaussians `MFS`."""
    mixture, cof = content["MFS"], np.asarray(content["cof"], float)
    means, side = np.asarray(mixture["means"], float), 7
    n = side * side - 1
    expect(cof.ndim == 2 and len(cof) == n * n + 1 + n * len(means), "cof of 48 filters of 7×7")
    reach, step = -float(mixture["offsetD"]), float(mixture["step"])
    filters, logarithm, weights = np.split(cof.T, [n * n, n * n + 1], axis=1)
    filters = filters.reshape(-1, n, n)
    filters = np.pad(filters / np.linalg.norm(filters, axis=2, keepdims=True), ((0, 0), (0, 0), (1, 0)))  # no constant
    filters = filters.reshape(-1, n, side, side).swapaxes(2, 3)  # MATLAB counts down the columns
    weights = weights.reshape(-1, n, len(means))
    return {
        "filters": idctn(filters, axes=(2, 3), norm="ortho"),
        "functions": sums_of_gaussians(weights, means, float(mixture["precision"]), reach, step),
        "reach": [reach],
        "numbers": np.exp(logarithm[:, 0]),
    }


def sums_of_gaussians(weights, means, precision: float, reach: float, step: float) -> np.ndarray:
    """Tables on [-reach, reach] of Σ w exp(-precision (z - mean)² / 2): (stages, filters, knots)."""
    place = np.linspace(-reach, reach, round(2 * reach / step) + 1)
    return weights @ np.exp(-precision / 2 * (place - means[:, None]) ** 2)


def read_dncnn(content: dict) -> dict:
    """`net.layers`: convolutions of 3×3 and rectifiers in turn; BatchNorm is merged in the released models."""
    layers = list(content["net"]["layers"])
    kinds, channels, weights = [layer["type"] for layer in layers], 1, {}
    expect(len(kinds) > 2 and kinds == ["conv", "relu"] * (len(kinds) // 2) + ["conv"], "conv and relu in turn")
    for i, layer in enumerate(layers[::2]):
        kernel, bias = (np.asarray(part, float) for part in layer["weights"])
        right = kernel.shape[:2] == (3, 3) and kernel.size == 9 * channels * bias.size
        expect(right, f"convolution {i + 1} of 3×3 from {channels} channels")
        kernel = kernel.reshape(3, 3, channels, bias.size)
        weights |= {f"{2 * i}.weight": kernel.transpose(3, 2, 0, 1), f"{2 * i}.bias": bias.ravel()}
        channels = bias.size
    expect(channels == 1, "one channel at the end")
    return weights


READ = {"csf_authors": read_csf, "tnrd_authors": read_tnrd, "dncnn_authors": read_dncnn}


# Networks


class Cascade(nn.Module):
    """Stages on the 0–255 scale, each of an image with a border, which is cut off again (both authors' own way).

    A border of `edge` repeats the outermost pixels, a `symmetric` one mirrors the image with them.
    """

    def __init__(self, stages, margin: int, border: str):
        super().__init__()
        self.stages, self.margin, self.border = nn.ModuleList(stages), margin, border

    def forward(self, y):
        from torchvision.transforms.v2.functional import pad  # takes a second or two

        bordered = partial(pad, padding=self.margin, padding_mode=self.border)
        x, y = 255 * y, bordered(255 * y)
        for stage in self.stages:
            x = stage(bordered(x), y)[..., self.margin : -self.margin, self.margin : -self.margin]
        return x / 255


PARTS = {  # stage, names of its functions and of its number, border
    "csf_authors": (Shrinkage, "shrink", "fidelity", 10, "edge"),
    "tnrd_authors": (Diffusion, "influence", "reaction", 8, "symmetric"),
}


def assembled(system: str, weights: dict) -> nn.Module:
    """The network of what `READ` returns, as tensors."""
    if system == "dncnn_authors":
        layers, network = [], DnCNN(depth=2, width=1)
        for i in range(0, len(weights), 2):
            outputs, inputs = weights[f"{i}.weight"].shape[:2]
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
        network.noise = nn.Sequential(*layers[:-1])
        network.noise.load_state_dict(weights)
        return network.eval()
    make, functions, number, margin, border = PARTS[system]
    stages, reach = [], weights["reach"].item()
    for filters, table, value in zip(*(weights[name] for name in ("filters", "functions", "numbers")), strict=True):
        stage, learned = make(filters.shape[-1]), Functions(*table.shape, reach, torch.zeros_like)
        del stage.filters  # which are learned; here they are given
        stage.filters = partial(filters.unsqueeze, 1)
        learned.values.data = table
        setattr(stage, functions, learned)
        getattr(stage, number).data = value
        stages.append(stage)
    return Cascade(stages, margin, border).eval()


@cache
def network_of(system: str, sha256: str | None) -> nn.Module:
    """The network from a file with that `digest`. Raises FileNotFoundError, or DamagedFile."""
    if sha256 is None:
        raise FileNotFoundError(f"no weights for {system}: python -m companion weights {system} --weights FILE.mat")
    return assembled(system, read_weights(path_of(system)))


def denoise(y, sigma, system: str) -> np.ndarray:
    """Denoise a grey image (H, W) on the [0, 1] scale; σ (of 255) is not told and may be None."""
    return check.blind(y, sigma, partial(network_of, system, digest(system)))
