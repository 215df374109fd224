"""The curves of Figure 4 against a plain loop, and what a page draws beside them."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from conftest import tiny
from skimage.metrics import peak_signal_noise_ratio

from companion.data import packs
from companion.disk import files
from companion.pages import fixation
from companion.training import results
from odl import crops
from odl.corruptions import TASKS
from odl.evaluation import images_of


@pytest.mark.parametrize("task", ["inpaint", "deblur"])
def test_a_point_of_the_curve_against_a_plain_loop(demo, task, monkeypatch):
    experiment = tiny(task)
    severity = {"inpaint": 12, "deblur": 2.0}[task]
    monkeypatch.setitem(fixation.SPECTRUM, task, (severity,))
    row = [*fixation.measure(experiment, lambda y: 0.5 * y, "cpu").iloc[0]]
    assert row[:2] == [severity, False] and len(row) == 2 + len(fixation.PSNRS)
    x = images_of(experiment, packs.load("demo", "test"), 4, "test")
    generator = torch.Generator().manual_seed(crops.seed_of("spectrum", severity))
    y = TASKS[task].corrupt_between(x, severity, severity, generator, False)
    for found, shown in zip(row[2:4], (0.5 * y, y), strict=True):
        pairs = zip(x.numpy(), shown.numpy(), strict=True)
        expected = np.mean([peak_signal_noise_ratio(a, b, data_range=2) for a, b in pairs])
        assert found == pytest.approx(expected, abs=1e-3)
    assert np.isnan(row[4:]).all() == (task == "deblur")


def test_curves_are_drawn_beside_what_is_not_restored_and_left_out_without_weights(demo, capsys):
    experiment = tiny("interpolate")
    results.measurement_of(experiment).run("cpu")
    frame = fixation.spectrum([experiment])
    again = fixation.spectrum([experiment])  # from the table that the first wrote
    np.testing.assert_allclose(frame[fixation.PSNRS], again[fixation.PSNRS], atol=1e-3)
    [table] = files.results().rglob("fixation_spectrum*.csv")
    stored = table.read_bytes()
    assert fixation.spectrum([replace(experiment, seed=9)]).empty and table.read_bytes() == stored  # not trained
    (axis,) = fixation.plot_spectrum(frame, "interpolate").axes
    drawn = {line.get_label(): line.get_ydata() for line in axis.lines}
    np.testing.assert_allclose(drawn["not restored"], frame.psnr_input)
    np.testing.assert_allclose(drawn["on-demand, known pixels kept"], frame.psnr_kept)
    assert fixation.plot_holes(frame, "interpolate").axes
    plt.close("all")
    table.unlink()
    (files.runs() / experiment.run_id / "weights.safetensors").unlink()
    capsys.readouterr()
    assert fixation.spectrum([experiment]).empty
    said = capsys.readouterr().out
    assert said.startswith("A curve is left out: ") and said.count("\n") == 1
    assert "python -m odl train --task interpolate" in said and "--set epochs=1" in said
