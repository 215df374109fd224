"""What is measured of whole photographs, and the cards that tell it."""

import numpy as np
import pytest
import skimage
from conftest import refused, ship_untrained
from scipy import ndimage
from skimage.metrics import peak_signal_noise_ratio

from companion.cli import companion
from companion.disk import files
from companion.measure import cards, denoising
from companion.measure import photographs as measured
from companion.pages import table3
from companion.restore import photographs
from companion.training import results
from odl.parameters import ParameterError

SIDE = 40


@pytest.mark.parametrize("row", measured.ROWS)
def test_each_row_damages_every_photograph_as_it_says(row):
    scores = []
    for _, x, y, mask in measured.cases_of(row, 200):
        assert x.shape == y.shape == (200, 200, 3)[: x.ndim] and y.dtype == np.uint8
        assert (mask is not None) == (measured.task_of(row) in ("inpaint", "interpolate"))
        if mask is not None:
            assert {*np.unique(mask.view(np.uint8))} == {0, 1}
            assert (y[mask] == 255).all() and (y[~mask] == x[~mask]).all()
            if "lost" in row:
                assert mask.mean() == pytest.approx(int(row.split()[0]) / 100, abs=0.01)
            if "square" in row:
                assert mask.sum() <= (48**2 if "48" in row else 6 * 400) and mask.sum() > 390
        scores.append(peak_signal_noise_ratio(x, y))
    again = [y for _, _, y, _ in measured.cases_of(row, 200)]
    assert all(np.array_equal(y, z) for y, (_, _, z, _) in zip(again, measured.cases_of(row, 200), strict=True))
    assert 3 < np.mean(scores) < 40


def test_the_photographs_are_whole():
    shapes = [(512, 512, 3), (512, 512), (300, 451, 3), (400, 600, 3), (427, 640, 3)]
    assert [x.shape for x in measured.images_of().values()] == shapes


def test_noise_and_blur_are_as_strong_as_their_rows_say():
    rng, flat = np.random.default_rng(0), np.full((300, 300, 3), 120, np.uint8)
    for row, sigma in (("noise 15", 15), ("noise 25", 25)):
        assert np.std(measured.ROWS[row][1](flat, rng)[0] - 120.0) == pytest.approx(sigma, rel=0.02)
    assert np.var(measured.ROWS["Poisson, peak 30"][1](flat, rng)[0] - 120.0) == pytest.approx(120 * 255 / 30, rel=0.03)
    x = skimage.data.astronaut()[:100, :120]
    blurred = measured.ROWS["blur 2"][1](x, rng)[0].astype(int)
    assert np.abs(blurred - ndimage.gaussian_filter(x.astype(float), (2, 2, 0), mode="mirror")).max() < 0.7
    moved = measured.ROWS["motion 9"][1](x, rng)[0].astype(int)
    assert np.abs(moved - ndimage.uniform_filter1d(x.astype(float), 9, axis=1, mode="mirror")).max() < 0.7
    for radius in (3, 5):
        assert measured.disc(radius).sum() == pytest.approx(1) and (measured.disc(radius) > 0).sum() in (29, 81)


def test_what_learns_nothing_restores():
    """Each rival on the damage that it is for, better than the damaged photograph."""
    for row in ("noise 25", "blur 2", "mask: dust", "60 % lost"):
        _, x, y, mask = next(measured.cases_of(row, 96))
        for rival in measured.RIVALS[measured.task_of(row)].values():
            restored = np.clip(rival(y / 255, mask), 0, 1)
            assert restored.shape == x.shape
            assert peak_signal_noise_ratio(x / 255, restored) > peak_signal_noise_ratio(x, y), (row, rival)
        grey = next(measured.cases_of(row, 64))[2][..., 0] / 255
        for rival in measured.RIVALS[measured.task_of(row)].values():
            assert rival(grey, None if mask is None else np.eye(64) > 0).shape == (64, 64)


def test_a_row_is_measured_once_kept_and_told(photo_networks, monkeypatch):
    result = measured.measurement_of("blur 2", SIDE).run("cpu")
    means, again = result.evaluation.groupby("system").psnr.mean(), []
    by_hand = [-10 * np.log10(np.mean((y / 255 - x / 255) ** 2)) for _, x, y, _ in measured.cases_of("blur 2", SIDE)]
    assert means["damaged"] == pytest.approx(np.mean(by_hand), abs=1e-3) and len(result.evaluation) == 5 * 5
    assert {*means.index} == {"damaged", "paper", "photographs", "unsharp mask", "Richardson–Lucy, σ 2"}
    now = measured.measure
    monkeypatch.setattr(measured, "measure", lambda row, *rest, **how: again.append(row) or now(row, *rest, **how))
    for row in ("blur 2", "mask: dust", "mask: dust"):
        measured.measurement_of(row, SIDE).run("cpu")
    assert again == ["mask: dust"]
    table = measured.table(side=SIDE)
    assert [*table.damage] == ["blur 2", "mask: dust"] and table.rival[1] == "biharmonic"
    assert table.photographs[0] == round(means["photographs"], 2) and table.paper[0] == round(means["paper"], 2)
    ship_untrained("photo_deblur", seed=1)
    assert measured.measurement_of("blur 2", SIDE).load() is None  # of other weights
    assert [*measured.table(side=SIDE).damage] == ["mask: dust"]
    refused(lambda: measured.measurement_of("blur 3"), "nearest: 'blur", kind=ParameterError)
    names = {measured.measurement_of(row).path.name for row in (*measured.ROWS, *measured.ON_DB11)}
    assert len(names) == len(measured.ROWS) + 6 == 29 and "30-lost.json" in names


def test_noise_on_db11_is_that_of_table_3(photo_networks, monkeypatch):
    there = [("Barbara", np.uint8(skimage.data.camera()[:80, :80]))]
    monkeypatch.setattr(denoising, "grey_photographs", lambda *_: there)
    [(name, x, y, mask)] = measured.cases_of("DB11, noise 25, not clipped")
    assert mask is None and np.array_equal(y, denoising.add_awgn(x, name, 25, False)) and y.max() > 1
    row = measured.measurement_of("DB11, noise 25").run("cpu").evaluation
    assert [*row.system] == ["damaged", "photographs", "paper", "non-local means"] and row.psnr[0] < 22
    own = table3.denoisers_table([denoising.NOISY], measure=False).query("system == 'photographs'")
    assert [*own.psnr] == [row.psnr[1]] and own.clipped.all() and [*own.image] == ["Barbara"]


def test_a_trained_network_ships_restores_is_measured_and_has_a_card(photo_tasks, demo, monkeypatch, capsys):
    for task in photographs.PHOTO_TASKS:
        experiment = photographs.run_of(task, "demo", "smoke", width=4, test_images=6, validation_images=6)
        result = results.measurement_of(experiment).run("cpu")
        assert companion(["ship", experiment.run_id]) == 0
        place, card = (files.models() / f"{task}.{suffix}" for suffix in ("safetensors", "md"))
        assert capsys.readouterr().out.split() == [str(place), str(card)]
        text = card.read_text()
        means = result.evaluation.groupby("level")[["psnr_input", "psnr"]].mean()
        for level in "123456":
            assert f"| {means.psnr_input[level]:.2f} | {means.psnr[level]:.2f} |" in text
        assert "6 steps of 10 crops" in text and "Not measured on photographs" in text and "`demo`" in text
    whole = measured.images_of
    monkeypatch.setattr(measured, "images_of", lambda side=None: whole(SIDE))
    monkeypatch.setattr(measured, "ROWS", {row: measured.ROWS[row] for row in ("mask: dust", "noise 25")})
    assert companion(["photographs", "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].split()[:3] == ["damage", "damaged", "photographs"] and "noise 25" in said
    means = measured.measurement_of("mask: dust").load().evaluation.groupby("system").psnr.mean().round(2)
    text = (files.models() / "photo_fill.md").read_text()
    assert f"| mask: dust | {means.damaged:.1f} |" in text and "noise 25" not in text
    assert ("Below what learns nothing: mask: dust (by" in text) == (means.biharmonic > means.photographs)
    assert "Below the damaged photograph: in none of the 1 rows" in text


@pytest.mark.parametrize("task", photographs.PHOTO_TASKS)
def test_the_card_that_ships_tells_what_is_stored(task):
    card = files.shipped() / f"{task}.md"
    if not card.exists():
        pytest.skip("its weights do not ship yet")
    assert card.read_text(encoding="utf-8") == cards.card(task)


def test_what_readme_and_the_page_say_of_photographs_is_measured():
    """Twenty-three kinds of damage, all made better; hardly any noise is the one where a classical method is ahead.

    Chapter 5 says of thin scratches that the smooth surface is between the two networks, and of a large square that it
    is ahead of the paper's.
    """
    table = measured.table(measured.ROWS).set_index("damage")
    assert len(table) == 23 and (table.photographs > table.damaged).all()
    assert [*table.index[table.photographs < table.rival_psnr]] == ["noise 5"]
    scratches = table.loc["mask: scratches"]
    assert scratches.photographs > scratches.rival_psnr > scratches.paper and scratches.rival == "biharmonic"
    square = table.loc["mask: a square of 48"]
    assert square.rival_psnr > square.paper and square.rival == "biharmonic"
