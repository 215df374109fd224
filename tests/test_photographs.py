"""Damage that photographs meet, and the network that is told the mask, against independent computations."""

import io
import math
from functools import partial
from pathlib import Path
from unittest import mock

import made
import numpy as np
import pytest
import skimage
import torch
from conftest import refused, ship_untrained
from PIL import Image
from scipy import ndimage
from test_corruptions import generator
from torch import nn

import odl
from companion.cli import companion
from companion.cli import main as run_odl
from companion.restore import chosen, fill, image_files, photographs, pretrained, tiles
from companion.restore.tiles import restore_whole
from companion.training import results
from odl import corruptions, paper
from odl.evaluation import in_its_channels
from odl.network import NETWORKS, ResidualUNet


def pictures(n=8, seed=0, grey=0):
    """Smooth pictures (n, 3, 64, 64) around the middle of [-1, 1], the first of them grey."""
    noise = np.random.default_rng(seed).standard_normal((n, 3, 64, 64))
    x = torch.from_numpy(ndimage.gaussian_filter(noise, (0, 0, 4, 4), mode="mirror") * 4).float().clamp(-0.6, 0.6)
    x[:grey] = x[:grey, :1]
    return x


def eight_bits(y):
    """y in [-1, 1] as a picture file has it, by Pillow."""
    pixels = np.clip((np.moveaxis(y, 1, -1) + 1) * 127.5, 0, 255)
    file, kept = io.BytesIO(), []
    for picture in np.uint8(np.rint(pixels)):
        Image.fromarray(picture).save(file := io.BytesIO(), "PNG")
        kept.append(np.asarray(Image.open(file)))
    return np.moveaxis(np.stack(kept), -1, 1) / 127.5 - 1


# Noise


def noisy(x, sigma, kind, quality=0.5, seed=0):
    severity = torch.tensor([[sigma, kind, quality]]).expand(len(x), 3)
    return photographs.add_noise(x.clone(), severity, generator(seed))


@pytest.mark.parametrize("kind", [0.1, 0.5, 0.7])
@pytest.mark.parametrize("sigma", [5.0, 25.0])
def test_noise_has_its_standard_deviation(kind, sigma):
    x = pictures(40)
    assert (noisy(x, sigma, kind) - x).std().item() * 127.5 == pytest.approx(sigma, rel=0.03)


def test_poisson_noise_is_stronger_where_there_is_more_light():
    x = torch.full((20, 3, 64, 64), -0.5)
    x[..., 32:] = 0.5
    error = 127.5 * (noisy(x, 10.0, 0.7) - x)
    dark, light = error[..., :32].var().item(), error[..., 32:].var().item()
    assert light / dark == pytest.approx(3, rel=0.05) and (light + dark) / 2 == pytest.approx(100, rel=0.05)
    assert noisy(torch.full((1, 3, 64, 64), -1.0), 30.0, 0.7).eq(-1).all()  # no light, no photons


def test_noise_is_clipped_and_rounded_where_a_file_would_be():
    x = pictures()
    plain, clipped = noisy(x, 60.0, 0.1).numpy(), noisy(x, 60.0, 0.5).numpy()
    assert np.abs(plain).max() > 1.5
    np.testing.assert_allclose(clipped, eight_bits(plain), atol=1e-6)
    for kind in (0.5, 0.7, 0.9):
        levels = (noisy(x, 60.0, kind).double() + 1) * 127.5
        assert levels.min() >= 0 and levels.max() <= 255 and (levels - levels.round()).abs().max() < 1e-4


@pytest.mark.parametrize(("quality", "share"), [(60, 0.0), (95, 0.9999)])
def test_some_noise_is_saved_as_jpeg(quality, share):
    x = pictures(4, grey=1)
    before = noisy(x, 20.0, 0.5)
    for y, image in zip(noisy(x, 20.0, 0.9, share), before, strict=True):
        pixels = np.uint8(np.rint((image.permute(1, 2, 0).numpy() + 1) * 127.5))
        Image.fromarray(pixels).save(file := io.BytesIO(), "JPEG", quality=quality)
        off = np.abs((y.permute(1, 2, 0).numpy() + 1) * 127.5 - np.asarray(Image.open(file)))
        assert off.max() <= 2 and off.mean() < 0.5  # a grey file keeps no colour, which rounds once less


# Blur


def blurred(x, width, kind, shape, noisy=0.9, sigma=0.0):
    severity = torch.tensor([[width, kind, shape, noisy, sigma]]).expand(len(x), 5)
    return photographs.add_blur(x, severity, generator())


KERNELS = {"round": (0.1, 0.3), "unequal": (0.4, 0.6), "unequal across": (0.4, 0.2), "disc": (0.6, 0.5)}
KERNELS |= {f"motion {angle}": (0.8, angle / 64) for angle in (0, 7, 16, 24, 32, 50)}


def response(width, kind, shape):
    """The kernel, as the answer to one bright pixel: (41, 41) of sum 1."""
    x = torch.zeros(1, 3, 64, 64)
    x[..., 32, 32] = 1
    with mock.patch.object(photographs, "stored", lambda y: y):
        y = blurred(x, width, kind, shape)[0, 0]
    return y.numpy()[12:53, 12:53]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("width", [1.0, 2.3, 3.4])
def test_every_blur_is_a_convolution_with_mirrored_borders_by_a_kernel_of_its_width(name, width):
    kernel, x = response(width, *KERNELS[name]), pictures(2)
    assert kernel.sum() == pytest.approx(1, abs=1e-5) and kernel.min() > -1e-6
    place = np.arange(-20, 21)
    down, across = (kernel.sum(axis) @ place**2 for axis in (1, 0))
    assert np.sqrt((down + across) / 2) == pytest.approx(width, rel=0.02)
    assert abs(kernel.sum(0) @ place) < 1e-3 and abs(kernel.sum(1) @ place) < 1e-3
    expected = ndimage.convolve(x.double().numpy(), kernel[None, None].astype(float), mode="mirror")
    np.testing.assert_allclose(blurred(x, width, *KERNELS[name]).numpy(), eight_bits(expected), atol=1 / 127.5 + 1e-6)


def test_a_disc_is_flat_and_a_motion_is_as_long_and_turned_as_it_says():
    disc = response(3.0, 0.6, 0.0)
    near = np.hypot(*np.mgrid[-20:21, -20:21])
    assert disc[near < 4.5].std() < 0.06 * disc[near < 4.5].mean() and disc[near > 7.5].max() < 1e-6
    for angle in (0, 10, 40):
        place, kernel = np.mgrid[-20:21, -20:21], response(3.0, 0.8, angle / 64)
        down, both, across = ((kernel * a * b).sum() for a, b in ((place[0], place[0]), place, (place[1], place[1])))
        spread, turns = np.linalg.eigh([[down, both], [both, across]])
        assert np.sqrt(12 * spread[1]) == pytest.approx(np.sqrt(24) * 3, rel=0.05) and spread[0] < 0.3
        assert abs(turns[:, 1] @ (np.sin(np.pi * angle / 64), np.cos(np.pi * angle / 64))) > 0.999


def test_blur_wider_than_the_longest_motion_is_gaussian():
    wide = response(4.5, 0.8, 0.1)
    one = np.outer(wide.sum(1), wide.sum(0))
    np.testing.assert_allclose(wide, one, atol=1e-4)


def test_half_of_the_blurred_images_have_noise():
    x = torch.zeros(60, 3, 64, 64)
    severity = photographs.draw_blur(torch.full((60,), 2.0), torch.full((60,), 2.0), 64, generator(1))
    with mock.patch.object(photographs, "stored", lambda y: y):
        found = photographs.add_blur(x, severity, generator()).flatten(1).std(1) * 127.5
    expected = torch.where(severity[:, 3] < 0.5, severity[:, 4], 0)
    torch.testing.assert_close(found[::3], expected[::3], rtol=0.05, atol=1e-4)
    assert 15 < (expected > 0).sum() < 45 and 4 < expected.max() <= 6


# Missing pixels


def masked(n, amount, kind, second=0.9, seed=0, size=64):
    severity = photographs.draw_mask(*torch.full((2, n), float(amount)), size, generator(seed))
    severity[:, 1], severity[:, 2] = kind, second
    return photographs.missing(severity, size, generator(seed)).numpy()


def test_single_pixels_are_lost_by_their_share():
    for amount, share in ((0, 0.30), (50, 0.625), (100, 0.95)):
        assert masked(50, amount, 0.1).mean() == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("kind", [0.3, 0.5, 0.7, 0.9])
def test_masks_of_the_bank_grow_and_no_image_is_whole(kind):
    shares = []
    for amount in (0, 50, 100):
        found = masked(200, amount, kind)
        assert found.any((1, 2)).all()
        shares.append(found.mean())
    assert shares == sorted(shares) and shares[0] > 0.001 and shares[2] > 2 * shares[0] and shares[2] < 0.6
    assert masked(200, 50, kind, second=0.1).mean() > shares[1]
    assert masked(20, 50, kind, size=48).shape == (20, 48, 48)


def test_scratches_and_dust_are_thin_and_holes_reach_48_pixels():
    for kind, widest in ((0.3, 12), (0.5, 16)):  # where several cross
        depth = [ndimage.distance_transform_edt(mask).max() for mask in masked(100, 30, kind)]
        assert np.median(depth) < widest / 4 and max(depth) < widest
    sides = [
        max(box[0].stop - box[0].start for box in ndimage.find_objects(ndimage.label(mask)[0]))
        for mask in masked(200, 100, 0.9)
    ]
    assert 40 <= np.quantile(sides, 0.8) <= 64


def test_a_bank_of_masks_is_turned_and_mirrored():
    """All eight ways, of one place of one mask."""
    u = torch.zeros(8, 6)
    u[:, 4], u[:, 5] = torch.tensor([0.1, 0.3, 0.6, 0.8] * 2), torch.tensor([0.1] * 4 + [0.9] * 4)
    found = photographs.from_bank(torch.ones(8).long(), torch.full((8,), 0.5), u, 64).numpy()
    expected = {np.rot90(turned, k).tobytes() for turned in (found[0], found[0].T) for k in range(4)}
    assert {mask.tobytes() for mask in found} == expected and len(expected) == 8


def test_the_marker_is_where_pixels_are_missing_and_nowhere_else(photo_tasks):
    x, task = pictures(40), corruptions.TASKS["photo_fill"]
    for level in range(1, 7):
        y = task.corrupt(x, level, generator(level))
        gone = (y == fill.GONE).all(1, keepdim=True)
        assert gone.flatten(1).any(1).all() and torch.equal(y, torch.where(gone, fill.GONE, x))


# All three


@pytest.mark.parametrize("task", photographs.PHOTO_TASKS)
def test_damage_is_of_its_generator_alone_and_keeps_grey_grey(photo_tasks, task):
    x, task = pictures(30, grey=10), corruptions.TASKS[task]
    levels = torch.arange(30) % 5 + 1
    one, same, other = (task.corrupt(x, levels, generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert torch.equal(one[:10], one[:10, :1].expand(10, 3, 64, 64)) and one.dtype == torch.float32
    drawn = [generator(), generator()]
    for each, level in zip(drawn, (1, 5), strict=True):
        task.corrupt(x, level, each)
    assert torch.equal(*(each.get_state() for each in drawn))  # as many draws, whatever the level


def test_every_third_crop_is_grey(photo_tasks):
    experiment = photographs.run_of("photo_fill", "demo", "smoke")
    x = pictures(10)
    for first in range(4):
        found = in_its_channels(experiment, x.clone(), first)
        grey = [bool((image == image[:1]).all()) for image in found]
        assert grey == [(first + i) % 3 == 0 for i in range(10)]
        assert torch.equal(found[[not each for each in grey]], x[[not each for each in grey]])


# The network that is told the mask


def plain_push_pull(values, weight):
    """One channel of push-pull, pixel by pixel."""
    height, width = values.shape
    if max(height, width) == 1:
        return values
    half = -(-height // 2), -(-width // 2)
    means, known = np.zeros(half), np.zeros(half)
    for i, j in np.ndindex(half):
        part = slice(2 * i, 2 * i + 2), slice(2 * j, 2 * j + 2)
        known[i, j] = min(1, 4 * weight[part].mean())
        means[i, j] = (values[part] * weight[part]).sum() / weight[part].sum() if weight[part].any() else 0
    coarse = plain_push_pull(means, known)
    out = np.zeros((height, width))
    for i, j in np.ndindex(height, width):
        y, x = (max(0, (k + 0.5) * n / m - 0.5) for k, n, m in ((i, half[0], height), (j, half[1], width)))
        top, left = int(y), int(x)
        below, right = min(top + 1, half[0] - 1), min(left + 1, half[1] - 1)
        upper = coarse[top, left] * (1 - x + left) + coarse[top, right] * (x - left)
        lower = coarse[below, left] * (1 - x + left) + coarse[below, right] * (x - left)
        guess = upper * (1 - y + top) + lower * (y - top)
        out[i, j] = weight[i, j] * values[i, j] + (1 - weight[i, j]) * guess
    return out


@pytest.mark.parametrize("size", [(8, 8), (7, 12), (1, 9), (13, 2)])
def test_push_pull_equals_a_plain_loop(size):
    rng = np.random.default_rng(0)
    values, known = rng.random(size), rng.random(size) < 0.3
    known.flat[0] = True
    given = torch.from_numpy(values * known)[None, None], torch.from_numpy(known.astype(float))[None, None]
    np.testing.assert_allclose(fill.push_pull(*given)[0, 0], plain_push_pull(values * known, known * 1.0), atol=1e-9)


@pytest.mark.parametrize("size", [(64, 64), (65, 71), (5, 9), (1, 1), (3, 200)])
def test_the_told_network_keeps_known_pixels_bit_for_bit_and_starts_from_the_guess(size):
    network, y = fill.ToldUNet(3, 8), torch.rand(2, 3, *size, generator=generator()) * 2 - 1
    gone = torch.rand(2, 1, *size, generator=generator(1)) < 0.4
    y = torch.where(gone, fill.GONE, y)
    known = (~gone).float()
    start = network(y)
    assert torch.equal(start, torch.where(gone, fill.push_pull(y * known, known), y)) and start.abs().max() <= 1
    nn.init.normal_(network.tail.weight, generator=generator())
    moved = network(y)
    assert torch.equal(moved[~gone.expand_as(y)], y[~gone.expand_as(y)])
    assert not gone.any() or not torch.equal(moved, start)


def test_the_told_network_learns_from_missing_pixels_alone():
    network, y = fill.ToldUNet(3, 8), pictures(2)
    y[..., 20:30, 20:40] = fill.GONE
    nn.init.normal_(network.tail.weight, generator=generator())
    network(y)[..., :20].sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in network.parameters())
    network(y).square().sum().backward()
    assert all(p.grad.any() for p in network.parameters())


# Training


@pytest.mark.parametrize("task", photographs.PHOTO_TASKS)
def test_a_network_for_photographs_is_trained_goes_on_and_is_measured(photo_tasks, demo, resumes_exactly, task):
    experiment = photographs.run_of(task, "demo", "smoke", width=4, test_images=6, validation_images=6)
    resumes_exactly(results.train, experiment, share=0.6, iterations=3)
    measured = results.measurement_of(experiment).run("cpu")
    assert len(measured.history) == 2 and measured.evaluation.psnr.notna().all()
    assert type(results.load_network(experiment)) is NETWORKS[photographs.NETWORK[task]]
    assert experiment.learning_rate == 2e-3 and experiment.clip == 0.1
    long = photographs.run_of(task)
    assert len(long.run_id) < 200 and long.beta1 == 0.9


def test_the_command_trains_one_task_or_all_and_goes_on(photo_tasks, demo, monkeypatch, capsys):
    short = partial(photographs.run_of, dataset="demo", profile="smoke", width=4, test_images=6, validation_images=6)
    monkeypatch.setattr(photographs, "run_of", short)
    assert companion(["photographs", "--train", "--task", "photo_fil", "--device", "cpu"]) == 2
    assert "nearest: 'photo_fill'" in capsys.readouterr().err
    assert companion(["photographs", "--train", "--task", "photo_fill", "--device", "cpu"]) == 0
    assert [*capsys.readouterr().out.split()] == [str(results.path_of(short("photo_fill")))]
    monkeypatch.setattr(results, "train", lambda e, *_: (_ for _ in ()).throw(KeyboardInterrupt(e.task)))
    assert companion(["photographs", "--train", "--device", "cpu"]) == 130
    assert "what was done is kept" in capsys.readouterr().err and results.load_result(short("photo_denoise")) is None


# Whole photographs


def scene(height, width, seed=0):
    """A photograph of astronauts and coffee, (height, width, 3) uint8."""
    x = np.concatenate([skimage.data.astronaut()[:400], skimage.data.coffee()], 1)
    return np.ascontiguousarray(np.tile(x, (1 + height // 400, 1 + width // 1112, 1))[seed : seed + height, :width])


@torch.inference_mode()
def in_four_turns(network, y):
    return torch.stack([network(y.rot90(turn, (2, 3))).rot90(-turn, (2, 3)) for turn in range(4)]).mean(0)


@pytest.mark.parametrize("task", photographs.PHOTO_TASKS)
@pytest.mark.parametrize("size", [(200, 333), (127, 256), (65, 513)])
def test_a_photograph_in_tiles_is_as_it_is_in_one_piece(photo_networks, task, size):
    network, y = photo_networks[task], torch.from_numpy(scene(*size)).permute(2, 0, 1)[None].float() / 127.5 - 1
    if task == "photo_fill":
        y[..., 20:30, 10:250] = y[..., torch.rand(size, generator=generator()) < 0.1] = fill.GONE
    said, whole = [], in_four_turns(network, y)
    assert (whole - y).abs().mean() > 0.05
    for tile in (64, 128, 1024):
        torch.testing.assert_close(restore_whole(network, y, "fp32", said.append, tile), whole, atol=1e-3, rtol=0)
        assert said == sorted(said) and said[-1] == 1 and len(said) == 4 * math.prod(-(-side // tile) for side in size)
        said.clear()
    assert "correction" not in vars(network)


def test_tiles_without_a_hole_are_not_looked_at(photo_networks):
    network, y, seen = photo_networks["photo_fill"], torch.zeros(1, 3, 256, 256), []
    y[..., 10:20, 200:210] = fill.GONE
    network.head.register_forward_hook(lambda module, given, out: seen.append(given[0].shape[2:]))
    restore_whole(network, y, tile=64)
    assert seen == 4 * [(60, 60)]  # 64 and one margin both ways, in planes of half the size; turned four times


def test_the_margin_of_a_tile_is_more_than_the_network_sees():
    network = ResidualUNet(3, 4)
    for parameter in network.parameters():
        nn.init.constant_(parameter, 0.1)  # these let everything through
    y = torch.zeros(1, 3, 256, 256, requires_grad=True)
    for row in range(120, 129):
        [moved] = torch.autograd.grad(network.correction(y)[..., row, row].sum(), y)
        rows = moved.abs().sum((0, 1, 3)).nonzero()
        assert row - rows.min() <= tiles.MARGIN and rows.max() - row <= tiles.MARGIN
        assert row - rows.min() > 30


@pytest.mark.parametrize("task", paper.TASKS)
@pytest.mark.parametrize("kind", ["float", "uint8", "grey", "Pillow", "alpha", "grey in colour", "bool"])
@pytest.mark.parametrize("network", ["photographs", "paper"])
def test_a_photograph_comes_back_as_it_was_given(photo_networks, network, task, kind):
    x, mask = scene(70, 90), np.zeros((70, 90), bool)
    mask[20:40, 30:60] = True
    grey, given = x[..., 0], mask if task in paper.MASKED else None
    images = {"float": x / 255, "uint8": x, "grey": grey, "Pillow": Image.fromarray(x), "bool": grey > 99}
    images |= {"alpha": Image.fromarray(np.dstack([x, grey])), "grey in colour": np.dstack([grey] * 3)}
    image = images[kind]
    restored = odl.restore(image, task, given, network=network)
    assert type(restored) is type(image) or isinstance(image, Image.Image)
    before, after = np.asarray(image), np.asarray(restored)
    assert after.shape == before.shape and (after.dtype == before.dtype or kind == "bool")
    assert (after != before).any() and (given is None or (after[~mask] == before[~mask]).all())
    if kind == "alpha":
        assert (after[..., 3] == grey).all()
    if kind == "grey in colour" and network == "photographs":
        assert (after == after[..., :1]).all()
        np.testing.assert_array_equal(after[..., 0], odl.restore(grey, task, given))


@pytest.mark.parametrize("task", paper.TASKS)
def test_a_photograph_is_restored_by_the_network_of_its_damage(photo_networks, task, monkeypatch):
    """As the network itself does, of the whole image turned by four quarters."""
    monkeypatch.setattr(pretrained, "quick_precision", lambda device: "fp32")
    x, gone = scene(120, 150), np.random.default_rng(0).random((120, 150)) < 0.3
    y = torch.from_numpy(x).permute(2, 0, 1)[None].float() / 127.5 - 1
    if task in paper.MASKED:
        y = torch.where(torch.from_numpy(gone), fill.GONE, y)
    x_hat = in_four_turns(photo_networks[chosen.TRAINED_ON[task]], y)[0]
    expected = ((x_hat.permute(1, 2, 0) + 1) / 2).clamp(0, 1).numpy()
    found = odl.restore(x / 255, task, gone if task in paper.MASKED else None)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    hidden = np.where(gone[..., None], np.nan, x / 255)
    if task in paper.MASKED:
        np.testing.assert_array_equal(odl.restore(hidden, task, gone), found)


@pytest.mark.parametrize("task", paper.TASKS)
def test_what_ships_is_as_good_in_bf16(task, monkeypatch):
    if chosen.weights_of(task) is None:
        pytest.skip("its weights do not ship yet")
    x, gone = scene(160, 200), np.random.default_rng(0).random((160, 200)) < 0.4
    noise = np.random.default_rng(1).normal(0, 15 / 255, x.shape)
    y = np.clip(ndimage.gaussian_filter(x / 255, (1, 1, 0)) if task == "deblur" else x / 255 + noise, 0, 1)
    score = []
    for precision in ("fp32", "bf16"):
        monkeypatch.setattr(pretrained, "quick_precision", lambda device, precision=precision: precision)
        z = odl.restore(y, task, gone if task in paper.MASKED else None, device="cpu")
        score.append(-10 * np.log10(np.mean((z - x / 255) ** 2)))
    assert score[1] == pytest.approx(score[0], abs=0.01)


def test_what_ships_is_the_default_and_the_paper_can_be_asked_for(root, noise, monkeypatch):
    x = scene(70, 80)
    by_paper = odl.restore(x, "deblur")
    monkeypatch.undo()
    monkeypatch.setenv("ODL_ROOT", str(root))
    refused(lambda: odl.restore(x, "deblur", network="photograph"), "nearest: 'photographs'")
    _, place = ship_untrained("photo_deblur")
    assert chosen.weights_of("deblur") == place and chosen.check_call("deblur", None) == "photographs"
    assert not np.array_equal(odl.restore(x, "deblur"), by_paper)
    assert not np.array_equal(odl.restore(x, "deblur"), odl.restore(x, "deblur", network="paper"))
    refused(lambda: odl.restore(x, "deblur", stride=8), "stride=8 belongs to network='paper'")
    place.write_bytes(place.read_bytes()[:-1] + b"x")
    refused(lambda: odl.restore(x, "deblur"), "its SHA-256 is not the one in manifest.json")


def test_a_network_for_photographs_is_read_once_a_process(photo_networks, monkeypatch):
    reads, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or read_bytes(path))
    for task in ("denoise", "denoise", "inpaint", "interpolate"):
        odl.restore(scene(64, 64), task, np.eye(64) > 0 if task in paper.MASKED else None)
    names = [path.name for path in reads if path.suffix != ".json"]
    assert names == ["photo_denoise.safetensors", "photo_fill.safetensors"]


def test_the_command_restores_a_folder(photo_networks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made.album(tmp_path / "in", 2)
    Image.fromarray(np.uint8(np.eye(70, 80) * 255)).save("mask.png")
    assert run_odl(["restore", "--task", "inpaint", "--mask", "mask.png", "in", "out"]) == 0
    assert capsys.readouterr().err == "one mask for 2 photographs: mask.png\n"
    before, after = (np.asarray(Image.open(f"{folder}/1.png")) for folder in ("in", "out"))
    assert ((before != after).any(-1) <= (np.eye(70, 80) > 0)).all() and (before != after).any()
    assert run_odl(["restore", "--task", "denoise", "--stride", "64", "--network", "paper", "in/0.png", "a/new/"]) == 0
    assert Path("a/new/0.png").exists() and "one mask" not in capsys.readouterr().err


def test_masks_of_photographs_are_told_from_inverted_ones():
    """Of what people mark on a photograph none is told to be inverted, and its inverse always."""
    masks = photographs.mask_bank()[0].numpy()
    assert {*np.unique(masks.view(np.uint8))} == {0, 1}  # Pillow's true is 255, a number to compiled code
    for mask in masks[::20]:
        assert image_files.doubt_of_mask(mask, "inpaint") is None
        assert "invert the mask" in image_files.doubt_of_mask(~mask, "inpaint")
    lost = np.random.default_rng(0).random((192, 192)) < 0.9
    assert image_files.doubt_of_mask(lost, "interpolate") is None


def test_mean_psnr_weighs_errors_as_the_mean_of_their_logarithms():
    """The gradient of the weighted errors is that of the negative mean PSNR, up to one factor."""
    mse = torch.tensor([1e-4, 4e-4, 1e-3, 3e-3, 5e-3], dtype=torch.float64, requires_grad=True)
    (10 * mse.log10()).mean().backward()
    shares, factors = photographs.mean_psnr(0.5, -10 * np.log10(mse.detach().numpy()), 5)
    assert (shares == 1).all() and np.ptp(mse.grad.numpy() / factors) < 1e-9 * mse.grad.max()
    assert (photographs.mean_psnr(0, None, 5) == 1).all()
