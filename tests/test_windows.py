"""Images of any size: windows averaged, holes filled."""

import numpy as np
import pytest
import torch
from PIL import Image

from companion.pages import applications
from companion.show import pictures
from odl.network import EncoderDecoder, initialize
from odl.windows import inpaint_image, restore_image


def trained_like(channels: int, seed: int = 0, width: int = 8) -> EncoderDecoder:
    """A small network whose BatchNorm has statistics that are not the initial ones."""
    generator = torch.Generator().manual_seed(seed)
    network = initialize(EncoderDecoder(channels, width), generator)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)
        network.train()
        for _ in range(5):
            network(torch.rand(8, channels, 64, 64, generator=generator) * 2 - 1)
    return network.eval()


def picture(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    shape = (height, width, 3) if channels == 3 else (height, width)
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


@pytest.mark.parametrize(("height", "width", "channels", "stride"), [(70, 75, 1, 3), (64, 90, 3, 11), (96, 64, 3, 8)])
def test_averaged_windows_equal_a_plain_loop(height, width, channels, stride):
    network, image = trained_like(channels), picture(height, width, channels)
    total, count = np.zeros(image.shape), np.zeros(image.shape)
    for top in {*range(0, height - 64, stride), height - 64}:
        for left in {*range(0, width - 64, stride), width - 64}:
            window = torch.from_numpy(image[top : top + 64, left : left + 64].copy()).view(64, 64, channels)
            with torch.inference_mode():
                x_hat = network(window.permute(2, 0, 1)[None] * 2 - 1)[0].permute(1, 2, 0).numpy()
            total[top : top + 64, left : left + 64] += x_hat.reshape(image[:64, :64].shape)
            count[top : top + 64, left : left + 64] += 1
    expected = np.clip((total / count + 1) / 2, 0, 1)
    np.testing.assert_allclose(restore_image(network, image, stride=stride), expected, atol=1e-5)


def test_a_grey_network_restores_each_channel_of_a_colour_image_alone():
    network, image = trained_like(1), picture(70, 66)
    together = restore_image(network, image, stride=16)
    alone = [restore_image(network, image[..., c].copy(), stride=16) for c in range(3)]
    np.testing.assert_allclose(together, np.stack(alone, -1), atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 2), (10, 200), (63, 64), (64, 64), (33, 3)])
def test_any_size_keeps_its_shape(shape):
    restored = restore_image(trained_like(3), picture(*shape), stride=32)
    assert restored.shape == (*shape, 3) and np.isfinite(restored).all()


def test_inpainting_leaves_known_pixels_and_fills_holes_of_any_size():
    network, image = trained_like(3), picture(150, 140)
    mask = np.zeros((150, 140), bool)
    mask[20:120, 30:125] = True  # larger than a window
    mask[3, 3] = True
    shares = []
    filled = inpaint_image(network, np.where(mask[..., None], 4.0, image), mask, stride=16, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1)
    np.testing.assert_allclose(filled[~mask], image[~mask], atol=1e-6)
    assert np.isfinite(filled).all() and filled.max() <= 1  # what lies under the mask is never shown to the network


def test_a_small_hole_is_the_mean_over_the_windows_that_see_it():
    network, image = trained_like(3), picture(80, 64)
    mask = np.zeros((80, 64), bool)
    mask[30:40, 20:30] = True
    shown = np.where(mask[..., None], np.array([117, 104, 123]) / 255, image).astype(np.float32)
    votes = []
    for top in (0, 8, 16):
        window = torch.from_numpy(shown[top : top + 64].copy()).permute(2, 0, 1)[None] * 2 - 1
        with torch.inference_mode():
            votes.append((network(window)[0].permute(1, 2, 0).numpy()[30 - top : 40 - top, 20:30] + 1) / 2)
    filled = inpaint_image(network, image, mask, stride=8)
    np.testing.assert_allclose(filled[30:40, 20:30], np.clip(np.mean(votes, 0), 0, 1), atol=1e-5)


def test_a_photograph_is_reduced_and_a_small_one_stays_as_it_is(tmp_path):
    drawn = np.zeros((640, 800), np.uint8)
    np.fill_diagonal(drawn, 255)
    Image.fromarray(drawn).save(tmp_path / "scratch.png")
    shown = pictures.read_photograph(tmp_path / "scratch.png", 80)
    means = drawn.reshape(64, 10, 80, 10).mean((1, 3)) / 255
    assert shown.shape == (64, 80, 3) and np.abs(shown - means[..., None]).max() <= 0.5 / 255 + 1e-6
    Image.fromarray(drawn[:40, :50]).save(tmp_path / "small.png")
    assert pictures.read_photograph(tmp_path / "small.png", 80).shape == (40, 50, 3)


def test_psnr_inside_is_of_the_missing_pixels_alone():
    x, mask = np.full((8, 8, 3), 0.5), np.zeros((8, 8), bool)
    mask[2:4, 2:4] = True
    off = {"a": np.where(mask[..., None], 0.6, x)}
    table = applications.repairs_table(x, {"a": mask}, {"damaged": off})
    assert table.damaged[0] == pytest.approx(20) and table.missing[0] == 4 / 64
    assert applications.describe_repairs(table, [None]) == "No trained network is here."
