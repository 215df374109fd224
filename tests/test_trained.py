"""The trained denoisers: each against an independent computation, gradients, exact resume, bad input."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import skimage.data
import torch
from conftest import refused
from scipy import ndimage
from scipy.fft import dctn
from skimage.metrics import peak_signal_noise_ratio

from companion.cli import companion
from companion.comparators import trained
from companion.comparators.csf import Shrinkage
from companion.comparators.fields import Filters, cosine_basis
from companion.comparators.mlp import MLP
from companion.comparators.tnrd import Diffusion
from companion.data import packs
from companion.disk import files
from companion.measure import denoising
from companion.training import checkpoint, results


def images(n=2, side=20, seed=0):
    return torch.rand(n, 1, side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def perturbed(module, size=0.1):
    """The module in double precision with parameters moved at random from where they start."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in module.double().parameters():
            p.add_(size * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return module


def test_the_basis_is_that_of_the_cosine_transform():
    basis = cosine_basis(5).double().numpy()
    patch = np.random.default_rng(0).random((5, 5))
    expected = dctn(patch, norm="ortho").flatten()[1:]
    np.testing.assert_allclose((basis * patch).sum((1, 2)), expected, atol=1e-6)
    filters = perturbed(Filters(5))()
    assert filters.shape == (24, 1, 5, 5)
    torch.testing.assert_close(filters.flatten(1).norm(dim=1), torch.ones(24, dtype=torch.float64))
    torch.testing.assert_close(filters.sum((1, 2, 3)), torch.zeros(24, dtype=torch.float64), atol=1e-6, rtol=0)


def test_a_step_of_diffusion_against_scipy():
    stage, u, y = perturbed(Diffusion()), 255 * images(1), 255 * images(1, seed=1)
    filters, reaction = stage.filters()[:, 0].detach().numpy(), stage.reaction.item()
    place, image = np.linspace(-310, 310, 63), u[0, 0].numpy()
    expected = image - reaction * (image - y[0, 0].numpy())
    for k, values in zip(filters, stage.influence.values.detach().numpy(), strict=True):
        answer = np.interp(ndimage.correlate(image, k, mode="nearest"), place, values)
        expected -= ndimage.convolve(answer, k, mode="nearest")
    np.testing.assert_allclose(stage(u, y)[0, 0].detach().numpy(), expected, atol=1e-8)


def test_a_stage_of_shrinkage_against_scipy():
    """Eq. 10 of its paper: the image nearest to all shrunk responses and to y, where borders wrap around."""
    stage, x, y = perturbed(Shrinkage()), 255 * images(1), 255 * images(1, seed=1)
    weight, place = stage.fidelity.exp().item(), np.linspace(-260, 260, 53)
    above, below = weight * y[0, 0].numpy(), np.full((20, 20), weight)
    for k, values in zip(stage.filters()[:, 0].detach().numpy(), stage.shrink.values.detach().numpy(), strict=True):
        answer = np.interp(ndimage.correlate(x[0, 0].numpy(), k, mode="wrap"), place, values)
        above = above + ndimage.convolve(answer, k, mode="wrap")
        below = below + np.abs(np.fft.fft2(k, (20, 20))) ** 2
    expected = np.fft.ifft2(np.fft.fft2(above) / below).real
    np.testing.assert_allclose(stage(x, y)[0, 0].detach().numpy(), expected, atol=1e-8)


@pytest.mark.parametrize("size", [(17, 17), (40, 23), (64, 64)])
def test_the_perceptrons_patches_cover_every_pixel(size):
    """With layers that return each patch as it came, the image comes back."""
    y, network = torch.rand(2, 1, *size, generator=torch.Generator().manual_seed(0)), MLP().eval()
    network.layers = torch.nn.Identity()
    torch.testing.assert_close(network(y), y, atol=1e-5, rtol=0)


def test_the_perceptron_learns_from_patches_of_their_own():
    """Nine of a crop, none beside another; what it makes of one does not depend on the others."""
    experiment = trained.run_of("mlp", "smoke")
    x, y = next(trained.batches(experiment, packs.load("demo", "train"), 0))
    assert x.shape == y.shape == (9 * experiment.batch_size, 1, 17, 17)
    network = MLP(hidden=8).train()
    torch.testing.assert_close(network(y)[4:5], network(y[4:5]))


@pytest.mark.parametrize("system", ["mlp", "csf", "tnrd", "dncnn"])  # dncnn_25 differs in its noise alone
def test_training_resumes_exactly(root, resumes_exactly, system):
    numbers = {"epochs": 2, "iterations": 2, "batch_size": 4, "validation_images": 4}
    experiment = replace(trained.run_of(system, "smoke"), dataset="demo-native", **numbers)
    resumes_exactly(trained.train, experiment, 0.6, 2)
    assert (files.runs() / experiment.run_id / "weights.safetensors").exists()


@pytest.mark.parametrize("system", ["tnrd", "mlp"])
def test_a_trained_system_denoises_images_of_any_size(root, monkeypatch, system):
    monkeypatch.setattr(files, "shipped", files.models)
    experiment, y = trained.run_of(system), np.random.default_rng(0).random((33, 50))
    assert not trained.is_trained(system)
    refused(lambda: trained.denoise(y, 25, system), kind=FileNotFoundError)
    results.keep_weights(experiment, trained.build(experiment, "cpu")[0], checkpoint.owner_of(experiment))
    x_hat = trained.denoise(y, 25, system)
    assert x_hat.shape == y.shape and np.array_equal(x_hat, trained.denoise(y, 25, system))
    np.testing.assert_array_equal(x_hat, trained.denoise(y, None, system))


@pytest.mark.parametrize("system", [name for name in trained.LEARNERS if name != "mlp"])  # whose weights do not ship
def test_what_ships_denoises_a_photograph(root, system):
    y = denoising.add_awgn(image := skimage.data.camera()[100:164, 200:264], "test", 25, False)
    before, after = (peak_signal_noise_ratio(image / 255, x, data_range=1) for x in (y, trained.denoise(y, 25, system)))
    assert after > before + 4


def test_every_network_that_ships_is_the_one_of_the_manifest():
    shipped = {path.name: path for path in files.shipped().glob("*.safetensors")}
    assert {*json.loads((files.shipped() / "manifest.json").read_text(encoding="utf-8"))} == {*shipped}
    for path in shipped.values():
        assert checkpoint.read_weights(path)
    for photographs in (True, False):  # the networks for photographs, and the paper's with those of Table 3
        sizes = [path.stat().st_size for name, path in shipped.items() if name.startswith("photo_") == photographs]
        assert sum(sizes) < 64 * 2**20


def test_the_command_trains_and_says_how_well(demo, monkeypatch, capsys):
    run = replace(trained.run_of("tnrd", "smoke"), dataset="demo")
    monkeypatch.setattr(trained, "run_of", lambda *_: run)
    assert companion(["train", "tnrd", "--profile", "smoke"]) == 0
    said = re.fullmatch(r"validation at σ = 25: (\d+\.\d\d) dB\n", capsys.readouterr().out)
    history = trained.train(run).history  # what is trained is read
    assert said and float(said[1]) == pytest.approx(history[-1]["psnr"][0], abs=0.006)
