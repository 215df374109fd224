"""The figure that moves on the first page: one photograph, more and more damage, the damaged picture itself and what
networks make of it, and below their curves what share of its training images the on-demand network gave each level.

CSS moves it: one number, --k, counts the severities, and everything else is computed from it; a slider sets it by hand.
Where nothing moves, because the reader prefers that or prints the page, it stands at one severity. A checkbox puts the
known pixels back.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jinja2 import Template
from lab_page import FIXATION, OFFERED, address, as_input, networks, reference
from measured import written
from PIL import Image

from companion.show import figures
from companion.training import results
from odl import paper
from odl.corruptions import TASKS

TASK = "interpolate"
TEMPLATE = Path(__file__).with_name("landing.html.j2")
SEVERITIES = range(0, 95, 5)  # per cent deleted
STILL = 60
LABELS = {"not_restored": "Not restored"} | {name: OFFERED[name] for name in FIXATION}
WIDTH, LEFT, FLOOR = 640, 44, 200  # of the drawing; where its axes are
ROOM, CUT = 4, 45  # dB above the networks' curves, and where all curves are cut: next to no damage, next to no error
KINDS = {"raw": "psnr", "kept": "psnr_kept"}  # of a restored picture: column of the table
IDENTICAL = 99.95  # dB


def figure() -> str:
    """MyST: the moving figure. Raises FileNotFoundError where its curves are not measured."""
    run, table = results.load(reference(TASK, "on_demand")), written("fixation_spectrum", TASK)
    if not run or table is None:
        raise FileNotFoundError("the curves of the moving figure")
    found = networks(TASK)
    shown = {name: found[name] for name in FIXATION if name in {*table.schedule}}
    return f"```{{raw}} html\n{html(shown, curves(table, list(shown)), run.history[-1]['allocation'])}\n```"


def curves(table: pd.DataFrame, names: list[str]) -> dict[str, pd.DataFrame]:
    """raw, kept → PSNR (dB) of what is not restored and of each network, a row per severity of the table."""
    damaged = table[table.schedule == "on_demand"].set_index("severity").psnr_input
    wide = {kind: table.pivot(index="severity", columns="schedule", values=key) for kind, key in KINDS.items()}
    return {kind: frame[names].assign(not_restored=damaged) for kind, frame in wide.items()}


def html(found: dict, measured: dict, shares: list[float]) -> str:
    """The figure of the networks `found`: schedule → network; measured: see `curves`; shares in per cent."""
    *most, last = [f"{share:.1f}" for share in shares]
    known = paper.TASKS[TASK]
    # fmt: off
    return Template(TEMPLATE.read_text(encoding="utf-8")).render(
        names=["not_restored", *found], labels=LABELS, colours=figures.COLOURS, severities=SEVERITIES, still=STILL,
        known=known, measured=measured, written=decibels, sheet=sheet(found),
        shares=shares, listed=f"{', '.join(most)} and {last}", bars=zip(known["levels"], [*shares, 0], strict=True),
        scales={kind: scale(frame) for kind, frame in measured.items()},
        x=x, y=y, below=below, width=WIDTH, left=LEFT, floor=FLOOR,
    )
    # fmt: on


def decibels(psnr: float) -> str:
    return "identical" if psnr >= IDENTICAL else f"{psnr:.1f} dB"


def sheet(found: dict) -> str:
    """A data: address: rows for the damaged photograph, each network, and each again with the known pixels kept; a
    column per severity."""
    x = as_input("chelsea.png")
    corrupt = TASKS[TASK].corrupt_between
    y = torch.cat([corrupt(x, float(s), float(s), torch.Generator().manual_seed(5)) for s in SEVERITIES])  # one draw
    with torch.inference_mode():
        restored = [network(y) for network in found.values()]
    kept = [torch.where((y == x).all(1, keepdim=True), x, x_hat) for x_hat in restored]
    rows = [y, *restored, *kept]
    picture = np.concatenate([np.concatenate([figures.to_picture(image) for image in row], 1) for row in rows])
    return address(Image.fromarray((picture * 255).round().astype(np.uint8)), "WebP", quality=88)


# The drawing: severities to the right, PSNR downwards


def x(severity: float) -> float:
    return LEFT + severity / SEVERITIES[-1] * (WIDTH - LEFT)


def y(psnr: float, bottom: float, top: float) -> float:
    return (top - psnr) / (top - bottom) * FLOOR


def scale(frame: pd.DataFrame) -> dict:
    """Where the axis of one kind of picture ends, and its ticks; what is above is cut."""
    top = min(np.ceil(frame.drop(columns="not_restored").max().max()) + ROOM, CUT)
    bottom = np.floor(frame.min().min())
    return {"ends": (bottom, top), "ticks": range(int(bottom) + 2, int(top), 4 if top - bottom < 24 else 8)}


def below(severity: float) -> int:
    """How many of the severities that are shown are less than this one: a bar lights up at those of its level."""
    return sum(shown < severity for shown in SEVERITIES)
