"""Figures: whatever a reader's plot settings say, they are drawn."""

import io
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt

from companion.pages import allocation
from companion.show import figures
from odl import paper

DRAWN = """
import matplotlib.pyplot as plt
assert plt.rcParams["text.usetex"] and plt.rcParams["font.size"] == 30
from companion.show import figures
figure, axis = plt.subplots()
axis.set_title("a % and a σ")
figure.savefig("drawn.png")
assert not plt.rcParams["text.usetex"] and plt.rcParams["font.size"] == 10
"""


def drawn(figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="raw")
    plt.close(figure)
    return content.getvalue()


def test_what_a_reader_sets_later_changes_no_figure_of_a_page():
    """A style sheet, or LaTeX that is not there; what is drawn into a figure, and its ticks, are as by default, too."""

    def draw():
        figure, axes = figures.share_panels({"a % and a σ": [20, 25, 30, 35, 40]}, (4, 2))
        axes[0].bar(range(5), range(5), label="a_b")
        axes[0].legend()
        return drawn(figure)

    before = draw()
    plt.style.use("dark_background")
    plt.rcParams |= {"text.usetex": True, "font.size": 30, "axes.prop_cycle": plt.cycler(color="r")}
    assert draw() == before
    pages = {path for path in Path(figures.__file__).parents[1].rglob("*.py") if "plt.subplots(" in path.read_text()}
    assert pages == {Path(figures.__file__)}


def test_every_epoch_of_every_training_is_drawn():
    psnr, shares = [[30, 28, 26, 24, 22], [31, 29, 27, 25, 23]], [[20] * 5, [17, 18, 20, 21, 24]]
    history = [{"psnr": p, "allocation": s} for p, s in zip(psnr, shares, strict=True)]
    figure = allocation.plot_histories(one=history, the_same=history[::-1])
    for i, values in enumerate((psnr, psnr[::-1], shares, shares[::-1])):  # row by row
        lines = figure.axes[i].lines[: paper.N_LEVELS]
        assert [[*line.get_ydata()] for line in lines] == [[*level] for level in zip(*values, strict=True)]
    assert drawn(figure) and [axis.get_title() for axis in figure.axes] == ["one", "the same", "", ""]


def test_a_reader_s_settings_break_no_figure(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 30\ntext.latex.preamble: \\nonsense\n")
    env = os.environ | {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc"), "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, "-c", DRAWN], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "drawn.png").exists()
