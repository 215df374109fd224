"""The figure that moves on the first page: one photograph, more and more damage, the damaged picture itself and what
networks make of it, and below their curves what share of its training images the on-demand network gave each level.

Only CSS moves it: one number, --k, counts the severities, and everything else is computed from it. Where nothing moves,
because the reader prefers that or prints the page, it stands at one severity. A checkbox puts the known pixels back.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jinja2 import Template
from live import FIXATION, SCHEDULES, UNTRAINED, absent, address, as_input, networks, reference
from PIL import Image

from odl import paper, plots, results, store
from odl.corruptions import TASKS

TASK = "interpolate"
TEMPLATE = Path(__file__).with_name("landing.html.j2")
SEVERITIES = range(0, 95, 5)  # per cent deleted
STILL = 60
LABELS = {"not_restored": "Not restored"} | {name: SCHEDULES[name] for name in FIXATION}
WIDTH, HEIGHT, LEFT, FLOOR, HEAD = 640, 378, 44, 200, 24  # of the drawing; where its axes are; above them
SHARES, SCALE = 342, 2  # where the bars stand, and their height for a per cent
ROOM, CUT = 4, 45  # dB above the networks' curves, and where all curves are cut: next to no damage, next to no error
KINDS = {"raw": "psnr", "kept": "psnr_kept"}  # of a restored picture: column of the table
IDENTICAL = 99.95  # dB


def figure() -> str:
    """MyST: the moving figure, or a line that says what is missing."""
    path = results.table_path("fixation_spectrum", "reference", "bsds500", TASK)
    run, undrawn = results.load(reference(TASK, "on_demand")), "The moving figure of this page is not drawn:"
    found = networks(TASK)
    if "on_demand" not in found:
        return f"{undrawn} {UNTRAINED}."
    table = pd.read_csv(store.used(path)) if path.exists() else pd.DataFrame(columns=["schedule"])
    if not run or "on_demand" not in {*table.schedule}:
        return f"{undrawn} its curves are not measured; `papermill notebooks/fixation.ipynb -p task {TASK}` does it."
    shown = {name: found[name] for name in FIXATION if name in found and name in {*table.schedule}}
    return f"```{{raw}} html\n{html(shown, curves(table, list(shown)), run.history[-1]['allocation'])}\n```"


def curves(table: pd.DataFrame, names: list[str]) -> dict[str, pd.DataFrame]:
    """raw, kept → PSNR (dB) of what is not restored and of each network, a row per severity of the table."""
    damaged = table[table.schedule == "on_demand"].set_index("severity").psnr_input
    wide = {kind: table.pivot(index="severity", columns="schedule", values=key) for kind, key in KINDS.items()}
    return {kind: frame[names].assign(not_restored=damaged) for kind, frame in wide.items()}


def html(found: dict, measured: dict, shares: list[float]) -> str:
    """The figure of the networks `found`: schedule → network; measured: see `curves`; shares in per cent."""
    known, (*most, last) = paper.TASKS[TASK], [f"{share:.1f}" for share in shares]
    return Template(TEMPLATE.read_text()).render(
        names=["not_restored", *found],
        labels=LABELS,
        colours=plots.COLOURS,
        severities=SEVERITIES,
        still=STILL,
        known=known,
        measured=measured,
        written=written,
        shares=shares,
        listed=f"{', '.join(most)} and {last}",
        sheet=sheet(found),
        drawing=drawing(measured, list(found), shares, known),
        absent=absent(TASK, found),
    )


def written(psnr: float) -> str:
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
    picture = np.concatenate([np.concatenate([plots.to_picture(image) for image in row], 1) for row in rows])
    return address(Image.fromarray((picture * 255).round().astype(np.uint8)), "WebP", quality=88)


def drawing(measured: dict, names: list[str], shares: list[float], known: dict) -> str:
    """The curves with a line at the severity that is shown, and each level's share of the on-demand images."""
    inside, last = WIDTH - LEFT, SEVERITIES[-1]

    def x(severity):
        return LEFT + severity / last * inside

    ticks = [f'<text x="{x(s):.0f}" y="{FLOOR + 25}">{s}</text>' for s in range(0, last, 15)]
    low, high = known["levels"][-1]
    band = f'<rect x="{x(low):.1f}" width="{x(high) - x(low):.1f}" height="{FLOOR}" class="odl-band"/>'
    axis = f'<path d="M{LEFT},0 V{FLOOR} H{WIDTH}" class="odl-axis"/>'
    clip = f'<clipPath id="odl-clip"><rect x="{LEFT}" width="{inside}" height="{FLOOR}"/></clipPath>'
    step = inside / (len(SEVERITIES) - 1)
    mark = f'<path d="M{LEFT},0 V{FLOOR}" class="odl-mark" style="--step: {step:.3f}px"/>'
    words = [
        f'<text x="{(LEFT + WIDTH) / 2}" y="{FLOOR + 58}">{known["severity"]}</text>',
        '<text x="0" y="-8" class="odl-start">PSNR (dB)</text>',
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 2}">training images of “On-demand”, per cent</text>',
    ]
    bars = [bar(x, *interval, share) for interval, share in zip(known["levels"], [*shares, 0], strict=True)]
    drawn = [lines(kind, frame, names, x) for kind, frame in measured.items()]
    parts = [clip, band, axis, *ticks, *words, *drawn, *bars, mark]
    return f'<svg viewBox="0 {-HEAD} {WIDTH} {HEIGHT + HEAD}" aria-hidden="true">{"".join(parts)}</svg>'


def lines(kind: str, frame: pd.DataFrame, names: list[str], x) -> str:
    """The curves of one kind with the ticks of their scale; what is above the scale is cut."""
    top = min(np.ceil(frame[names].max().max()) + ROOM, CUT)
    bottom = np.floor(frame.min().min())

    def y(psnr):
        return (top - psnr) / (top - bottom) * FLOOR

    apart = 4 if top - bottom < 24 else 8
    ticks = [
        f'<text x="{LEFT - 8}" y="{y(p) + 5:.0f}" class="odl-end">{p}</text>'
        for p in range(int(bottom) + 2, int(top), apart)
    ]
    curves = []
    for name in ("not_restored", *names):
        points = " ".join(f"{x(severity):.1f},{y(psnr):.1f}" for severity, psnr in frame[name].items())
        look = f'stroke="{plots.COLOURS[name]}"' if name in plots.COLOURS else 'class="odl-dashed"'
        curves.append(f'<polyline {look} points="{points}"/>')
    return f'<g class="odl-{kind}">{"".join(ticks)}<g clip-path="url(#odl-clip)">{"".join(curves)}</g></g>'


def bar(x, low: float, high: float, share: float) -> str:
    """A level's per cent of the images; the bar lights up while the severity that is shown is one of that level."""
    first, last = (sum(severity < end for severity in SEVERITIES) for end in (low, high))
    left, width, top = x(low) + 2, x(min(high, SEVERITIES[-1])) - x(low) - 4, SHARES - SCALE * share
    place = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{SCALE * share:.1f}"'
    place += f' fill="{plots.COLOURS["on_demand"]}" class="odl-share" style="--first: {first}; --next: {last}"'
    return f'<rect {place}/><text x="{left + width / 2:.1f}" y="{top - 6:.1f}">{share:.1f}</text>'
