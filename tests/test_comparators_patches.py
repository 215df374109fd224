"""K-SVD and WNNM against independent computations: plain loops, NumPy's SVD, brute-force minimization."""

import numpy as np
import pytest
import skimage.data
import torch
from skimage.metrics import peak_signal_noise_ratio
from sklearn.linear_model import orthogonal_mp

from companion.comparators import DENOISERS, ksvd, wnnm
from companion.measure import denoising

PHOTOGRAPH = skimage.data.camera()[100:164, 200:280]
SYSTEMS = ("ksvd", "wnnm")


def noisy(sigma):
    return denoising.add_awgn(PHOTOGRAPH, "patches", sigma, False)


@pytest.mark.parametrize("system", SYSTEMS)
def test_ahead_of_a_simpler_system_and_the_same_again(system):
    x, y = PHOTOGRAPH / 255, noisy(25)
    x_hats = [y, *(DENOISERS[name].denoise(y, 25) for name in (system, "nlm"))]
    before, after, simpler = (peak_signal_noise_ratio(x, np.clip(x_hat, 0, 1).astype(float)) for x_hat in x_hats)
    assert after > max(before + 6, simpler)
    part, again = (DENOISERS[system].denoise(y[:30, :30], 25) for _ in range(2))
    np.testing.assert_array_equal(part, again)


@pytest.mark.parametrize("system", SYSTEMS)
def test_small_images_and_every_sigma_give_finite_images(system):
    for shape, sigma in (((16, 16), 100), ((16, 24), 255), ((23, 17), 0.1)):
        y = noisy(25)[: shape[0], : shape[1]]
        x_hat = DENOISERS[system].denoise(y, sigma)
        assert x_hat.shape == shape and np.isfinite(x_hat).all()
        assert np.abs(x_hat - y).max() < 0.02 or sigma > 1


def patches_without_mean(count):
    windows = np.lib.stride_tricks.sliding_window_view(noisy(25).astype(float), (8, 8)).reshape(-1, 64)
    chosen = windows[np.random.default_rng(0).permutation(len(windows))[:count]]
    return chosen - chosen.mean(1, keepdims=True)


@pytest.mark.parametrize("error", [1.15 * 25 / 255, 0.03, 0])
def test_pursuit_is_the_orthogonal_matching_pursuit_of_scikit_learn(error):
    x, dictionary = patches_without_mean(60), ksvd.dct_dictionary()
    atoms, coefficients, residual = ksvd.pursue(torch.from_numpy(x), dictionary, error)
    end = {"tol": 64 * error**2} if error else {"n_nonzero_coefs": 32}  # with no error allowed ours ends at 32 atoms
    expected = orthogonal_mp(dictionary.numpy(), x.T, **end).T  # (60, 256)
    expected[(x**2).sum(1) <= 64 * error**2] = 0  # where scikit-learn takes one atom all the same
    found = np.zeros_like(expected)
    for row, chosen, values in zip(found, atoms.numpy(), coefficients.numpy(), strict=True):
        row[chosen[chosen >= 0]] = values[chosen >= 0]
    assert (expected != 0).any(1).sum() > 30
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(residual, x - expected @ dictionary.numpy().T, atol=1e-8)


def test_an_improved_atom_is_the_best_rank_one_fit():
    x, dictionary = torch.from_numpy(patches_without_mean(300)), ksvd.dct_dictionary()
    atoms, coefficients, residual = ksvd.pursue(x, dictionary, 0.05)
    k = atoms[atoms >= 0].bincount().argmax().item()
    rows, columns = ksvd.users_of(atoms, 256)[k]
    assert sorted(rows.tolist()) == np.argwhere((atoms == k).any(1).numpy())[:, 0].tolist()
    left = residual[rows] + coefficients[rows, columns, None] * dictionary[:, k]
    ksvd.improve(dictionary[:, k], coefficients, residual, rows, columns)
    u, s, v = np.linalg.svd(left.numpy(), full_matrices=False)
    np.testing.assert_allclose(left - residual[rows], s[0] * np.outer(u[:, 0], v[0]), atol=1e-10)
    assert dictionary[:, k].norm().item() == pytest.approx(1)


def test_singular_values_are_where_reweighting_by_brute_force_ends():
    s, sigma, n = np.linspace(0.05, 4, 80), 25 / 255, 80
    grid = np.linspace(0, 4, 8001)
    x, weight = s, np.zeros_like(s)
    for _ in range(100):
        weight = 2 * np.sqrt(2) * np.sqrt(n) / (x + 1e-9)
        x = grid[(0.5 * (grid - s[:, None]) ** 2 / sigma**2 + weight[:, None] * grid).argmin(1)]
    assert (np.diff(weight) <= 0).all()  # a larger singular value has a smaller weight: each can be shrunk alone
    expected = wnnm.singular_values(torch.from_numpy(s), sigma, n).numpy()
    assert 10 < (x == 0).sum() < 70
    near = np.abs(s**2 - 4 * np.sqrt(8 * n) * sigma**2) < 0.05  # there the grid is too coarse for so steep a curve
    np.testing.assert_allclose(expected[~near], x[~near], atol=2e-3)


def test_groups_are_the_nearest_patches_of_the_window():
    x = torch.from_numpy(skimage.data.camera()[100:140, 150:260] / 255).float()
    patches = wnnm.patches_of(x, 7)
    h, w, _ = patches.shape
    keys, groups = wnnm.match(patches, 50)
    assert keys[0] == 0 and keys[-1] == h * w - 1 and groups.shape == (len(keys), 50)
    windows = np.lib.stride_tricks.sliding_window_view(x.numpy(), (7, 7))
    np.testing.assert_array_equal(patches.reshape(h, w, 7, 7), windows)
    for key, group in zip(keys.tolist()[::23], groups.tolist()[::23], strict=True):
        row, column = divmod(key, w)
        distance = ((windows - windows[row, column]) ** 2).sum((2, 3))
        near = np.s_[max(0, row - 30) : row + 31, max(0, column - 30) : column + 31]
        assert key in group and len(set(group)) == 50
        assert all(abs(index // w - row) <= 30 and abs(index % w - column) <= 30 for index in group)
        expected = np.sort(distance[near].ravel())[:50]
        np.testing.assert_allclose(np.sort(distance.ravel()[group]), expected, atol=1e-4)
