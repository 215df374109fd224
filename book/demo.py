"""The slider on the first page: one photograph, more and more of its pixels deleted, and what five networks make of it.

CSS shows the column of a sheet of pictures that the slider names; without JavaScript it stands at one severity.
"""

from pathlib import Path

import numpy as np
import torch
from jinja2 import Template
from lab_page import FIXATION, OFFERED, address, as_input, networks, reference
from PIL import Image

from companion.restore.fill import GONE
from companion.restore.pretrained import load_for_photographs
from companion.show import figures
from companion.training import results
from odl import paper
from odl.corruptions import FILL, TASKS
from odl.evaluation import psnr

TASK = "interpolate"
TEMPLATE = Path(__file__).with_name("demo.html.j2")
SEVERITIES = range(5, 95, 5)  # per cent deleted
STILL = 60
NEWER = "Newer"
TITLES = OFFERED | {"on_demand": "Feedback"}
TITLES |= {f"fixated_{own}": f"{paper.TASKS[TASK][own]} % alone" for own in ("easy", "hard")}


def figure() -> str:
    """Return the slider in MyST. Raises FileNotFoundError where the run behind its bars is not measured."""
    run = results.load_result(reference(TASK, "on_demand"))
    if not run:
        raise FileNotFoundError("the run behind the bars of the slider")
    shown = {name: network for name, network in networks(TASK).items() if name in FIXATION}
    return f"```{{raw}} html\n{html(shown, run.history[-1]['allocation'])}\n```"


def html(shown: dict, shares: list[float]) -> str:
    """Return the slider of the networks `shown`: schedule → network; `shares` of feedback in per cent."""
    x, corrupt = as_input("chelsea.png"), TASKS[TASK].corrupt_between
    y = torch.cat([corrupt(x, float(s), float(s), torch.Generator().manual_seed(5)) for s in SEVERITIES])  # one draw
    gone = (y == torch.tensor(FILL).view(1, 3, 1, 1) / 127.5 - 1).all(1, keepdim=True)
    with torch.inference_mode():
        rows = {"damaged": y} | {TITLES[name]: network(y) for name, network in shown.items()}
        rows[NEWER] = load_for_photographs(TASK)(torch.where(gone, GONE, y))  # told which pixels are missing
    scores = {name: psnr(((row.clamp(-1, 1) - x) / 2).square().mean((1, 2, 3))).tolist() for name, row in rows.items()}
    picture = np.concatenate([np.concatenate([figures.to_picture(image) for image in row], 1) for row in rows.values()])
    sheet = address(Image.fromarray((picture * 255).round().astype(np.uint8)), "WebP", quality=80)
    written = {name: [f"{score:.1f}" for score in each] for name, each in scores.items()}
    compared = [each for name, each in written.items() if name != NEWER]
    best = [max(map(float, column)) for column in zip(*compared, strict=True)]
    equal = [100 / paper.N_LEVELS] * paper.N_LEVELS
    bars = list(zip(equal, shares, strict=True))
    colours = {TITLES[name]: figures.COLOURS[name] for name in shown}
    template = Template(TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True, lstrip_blocks=True)
    given = {"rows": rows, "scores": written, "best": best, "sheet": sheet, "bars": bars, "colours": colours}
    return template.render(given, severities=list(SEVERITIES), still=list(SEVERITIES).index(STILL))
