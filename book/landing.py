"""The figure that moves on the first page: one photograph, more and more damage, three networks, and below their curves
what share of its training images the all-rounder was given at each level.

Only CSS moves it: one number, --k, counts the severities, and everything else is computed from it. Where nothing moves,
because the reader prefers that or prints the page, it stands at one severity.
"""

import base64
import io

import numpy as np
import pandas as pd
import torch
from live import SCHEDULES, UNTRAINED, reference, square
from PIL import Image

from odl import paper, plots, results, store
from odl.corruptions import TASKS

TASK = "interpolate"
SEVERITIES = range(0, 95, 5)  # per cent deleted
STILL = 60
LABELS = {"on_demand": "all-rounder", "fixated_easy": "fixated, easy", "fixated_hard": "fixated, hard"}
WIDTH, HEIGHT, LEFT, FLOOR = 640, 408, 44, 200  # of the drawing; where its axes are
SHARES, SCALE = 372, 2  # where the bars stand, and their height for a per cent


def figure() -> str:
    """MyST: the moving figure, or a line that says what is missing."""
    path = results.table_path("fixation_spectrum", "reference", "bsds500", TASK)
    run, absent = results.load(reference(TASK, "on_demand")), "The moving figure of this page is not drawn:"
    try:
        networks = {schedule: results.network_of(reference(TASK, schedule)) for schedule in SCHEDULES}
    except FileNotFoundError:
        return f"{absent} {UNTRAINED}."
    if not run or not path.exists():
        return (
            f"{absent} its curves are not measured; `papermill notebooks/fixation.ipynb` does it, with `task={TASK}`."
        )
    measured = pd.read_csv(store.used(path)).pivot(index="severity", columns="schedule", values="psnr")
    shares = run.history[-1]["allocation"]
    return "\n".join(["```{raw} html", *html(networks, measured, shares), "```"])


def html(networks: dict, measured: pd.DataFrame, shares: list[float]) -> list[str]:
    last, still = len(SEVERITIES) - 1, list(SEVERITIES).index(STILL)
    known = paper.TASKS[TASK]
    frames = [f"{severity} % deleted" for severity in SEVERITIES]
    numbers = measured.loc[list(SEVERITIES)].map("{:.1f} dB".format)
    said = "; ".join(
        f"{LABELS[s]} {numbers[s].iloc[0]}, {numbers[s].loc[STILL]} and {numbers[s].iloc[-1]}" for s in SCHEDULES
    )
    return [
        f'<figure class="odl-moving" style="--last: {last}; --still: {still}">',
        '<input type="checkbox" id="odl-pause"><label for="odl-pause">Pause</label>',
        f'<div class="odl-stage" role="img" aria-label="Mean PSNR at {SEVERITIES[0]}, {STILL} and {SEVERITIES[-1]} % '
        f'deleted: {said}. Of its training images levels 1 to {len(shares)} get {listed(shares)} per cent.">',
        '<div class="odl-row">',
        picture(sheet(networks), 0, len(networks) + 1, "damaged", frames),
        *(picture(None, i, 0, LABELS[s], numbers[s], plots.COLOURS[s]) for i, s in enumerate(SCHEDULES, 1)),
        "</div>",
        drawing(measured, shares, known),
        "</div>",
        "<figcaption>",
        f"<p>{known['title']}, measured here: what three networks make of one photograph while more of it is deleted.",
        "The curves and the numbers are means over test images, not of this photograph.",
        f"One network has seen {known['easy']} % deleted alone, one {known['hard']} %, and each is good there alone.",
        "The all-rounder has learned from levels 1 to 5 on demand; the grey band is level 6, which it never saw.",
        f"Its last epoch gave them {listed(shares)} % of its images: more to the levels that it restores worse, but",
        "PSNR differs little between levels, and so do the shares.",
        "Photograph: Stefan van der Walt, CC0.</p>",
        "</figcaption></figure>",
    ]


def listed(shares: list[float]) -> str:
    *most, last = [f"{share:.1f}" for share in shares]
    return f"{', '.join(most)} and {last}"


def sheet(networks: dict) -> str:
    """A data: address: a row for the damaged photograph and for each network, a column per severity."""
    x = torch.from_numpy(np.asarray(square("chelsea.png")).copy()).permute(2, 0, 1).unsqueeze(0) / 127.5 - 1
    same = [torch.Generator().manual_seed(5) for _ in SEVERITIES]  # a deleted pixel stays deleted
    pairs = zip(SEVERITIES, same, strict=True)
    y = torch.cat([TASKS[TASK].corrupt_between(x, float(s), float(s), generator) for s, generator in pairs])
    with torch.inference_mode():
        rows = [y, *(network(y) for network in networks.values())]
    picture = np.concatenate([np.concatenate([plots.to_picture(image) for image in row], 1) for row in rows])
    content = io.BytesIO()
    Image.fromarray((picture * 255).round().astype(np.uint8)).save(content, "WebP", quality=88)
    return f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode()}"


def picture(address, row: int, rows: int, label: str, lines, colour="currentcolor") -> str:
    """One of the pictures, and below it its label and the line that goes with each severity."""
    source = f"<style>.odl-moving {{ --sheet: url({address}); --rows: {rows} }}</style>" if address else ""
    strip = "".join(f"<span>{line}</span>" for line in lines)
    return (
        f'{source}<div><div class="odl-frame" style="--row: {row}; border-color: {colour}"></div>'
        f'<b>{label}</b><div class="odl-strip"><div>{strip}</div></div></div>'
    )


def drawing(measured: pd.DataFrame, shares: list[float], known: dict) -> str:
    """The curves with a line at the severity that is shown, and each level's share of the all-rounder's images."""
    top, bottom = np.ceil(measured.max().max()), np.floor(measured.min().min())
    inside, last = WIDTH - LEFT, SEVERITIES[-1]
    x, y = (lambda s: LEFT + s / last * inside), (lambda p: (top - p) / (top - bottom) * FLOOR)
    ticks = [f'<text x="{x(s):.0f}" y="{FLOOR + 25}">{s}</text>' for s in range(0, last, 15)]
    levels = [
        f'<text x="{LEFT - 8}" y="{y(p) + 5:.0f}" class="odl-end">{p}</text>'
        for p in range(int(bottom) + 2, int(top), 4)
    ]
    paths = {n: " ".join(f"{x(s):.1f},{y(p):.1f}" for s, p in measured[n].items()) for n in SCHEDULES}
    curves = [f'<polyline stroke="{plots.COLOURS[name]}" points="{points}"/>' for name, points in paths.items()]
    low, high = known["levels"][-1]
    band = f'<rect x="{x(low):.1f}" width="{x(high) - x(low):.1f}" height="{FLOOR}" class="odl-band"/>'
    axis = f'<path d="M{LEFT},0 V{FLOOR} H{WIDTH}" class="odl-axis"/>'
    step = inside / (len(SEVERITIES) - 1)
    mark = f'<path d="M{LEFT},0 V{FLOOR}" class="odl-mark" style="--step: {step:.3f}px"/>'
    names = [
        f'<text x="{(LEFT + WIDTH) / 2}" y="{FLOOR + 58}">{known["severity"]}</text>',
        f'<text x="{LEFT + 8}" y="{FLOOR - 8}" class="odl-start">PSNR (dB)</text>',
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 2}">training images of the all-rounder, per cent</text>',
    ]
    bars = [bar(x, *interval, share) for interval, share in zip(known["levels"], [*shares, 0], strict=True)]
    parts = [band, axis, *ticks, *levels, *names, *curves, *bars, mark]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'


def bar(x, low: float, high: float, share: float) -> str:
    """A level's per cent of the images; the bar lights up while the severity that is shown is one of that level."""
    first, last = (sum(severity < end for severity in SEVERITIES) for end in (low, high))
    left, width, top = x(low) + 2, x(min(high, SEVERITIES[-1])) - x(low) - 4, SHARES - SCALE * share
    place = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{SCALE * share:.1f}"'
    place += f' fill="{plots.COLOURS["on_demand"]}" class="odl-share" style="--first: {first}; --next: {last}"'
    return f'<rect {place}/><text x="{left + width / 2:.1f}" y="{top - 6:.1f}">{share:.1f}</text>'
