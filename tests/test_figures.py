"""Figures: whatever a reader's plot settings say, they are drawn."""

import os
import subprocess
import sys

DRAWN = """
import matplotlib.pyplot as plt
assert plt.rcParams["text.usetex"] and plt.rcParams["font.size"] == 30
from companion.show import figures
figure, axis = plt.subplots()
axis.set_title("a % and a σ")
figure.savefig("drawn.png")
assert not plt.rcParams["text.usetex"] and plt.rcParams["font.size"] == 10
"""


def test_a_reader_s_settings_break_no_figure(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 30\ntext.latex.preamble: \\nonsense\n")
    env = os.environ | {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc"), "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, "-c", DRAWN], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "drawn.png").exists()
