"""The figure that moves on the first page: one photograph, more and more damage, the damaged picture itself and what
networks make of it, and below their curves what share of its training images the on-demand network gave each level.

Only CSS moves it: one number, --k, counts the severities, and everything else is computed from it. Where nothing moves,
because the reader prefers that or prints the page, it stands at one severity. A checkbox puts the known pixels back.
"""

import base64
import io

import numpy as np
import pandas as pd
import torch
from live import FIXATION, SCHEDULES, UNTRAINED, absent, as_input, networks, reference
from PIL import Image

from odl import paper, plots, results, store
from odl.corruptions import TASKS

TASK = "interpolate"
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
        return (
            f"{undrawn} its curves are not measured; `papermill notebooks/fixation.ipynb` does it, with `task={TASK}`."
        )
    shown = {name: found[name] for name in FIXATION if name in found and name in {*table.schedule}}
    shares = run.history[-1]["allocation"]
    return "\n".join(["```{raw} html", *html(shown, curves(table, list(shown)), shares), "```"])


def curves(table: pd.DataFrame, names: list[str]) -> dict[str, pd.DataFrame]:
    """raw, kept → PSNR (dB) of what is not restored and of each network, a row per severity of the table."""
    damaged = table[table.schedule == "on_demand"].set_index("severity").psnr_input
    wide = {kind: table.pivot(index="severity", columns="schedule", values=key) for kind, key in KINDS.items()}
    return {kind: frame[names].assign(not_restored=damaged) for kind, frame in wide.items()}


def html(found: dict, measured: dict, shares: list[float]) -> list[str]:
    """The figure of the networks `found`: schedule → network; measured: see `curves`; shares in per cent."""
    last, still = len(SEVERITIES) - 1, list(SEVERITIES).index(STILL)
    known, numbers = paper.TASKS[TASK], measured["raw"].map(written)
    said = "; ".join(
        f"{LABELS[name]} {numbers[name].iloc[0]}, {numbers[name].loc[STILL]} and {numbers[name].iloc[-1]}"
        for name in ("not_restored", *found)
    )
    own = {"fixated_easy": known["easy"], "fixated_hard": known["hard"]}
    fixated = [f"“{SCHEDULES[name]}” has trained on {own[name]} % deleted alone." for name in own if name in found]
    untrained = [f"{title} is not trained here: <code>{command}</code>." for title, command in absent(TASK, found)]
    return [
        f'<figure class="odl-moving" style="--last: {last}; --still: {still}">',
        '<input type="checkbox" id="odl-pause"><label for="odl-pause">Pause</label>',
        '<div class="odl-keep"><input type="checkbox" id="odl-keep">',
        '<label for="odl-keep">Keep known pixels</label></div>',
        f'<div class="odl-stage" role="img" aria-label="Mean PSNR at {SEVERITIES[0]}, {STILL} and {SEVERITIES[-1]} % '
        f'deleted: {said}. Of its training images levels 1 to {len(shares)} get {listed(shares)} per cent.">',
        f"<style>.odl-moving {{ --sheet: url({sheet(found)}); --rows: {1 + 2 * len(found)} }}</style>",
        f'<div class="odl-row" style="--pictures: {1 + len(found)}">',
        *(picture(name, i, len(found), measured) for i, name in enumerate(("not_restored", *found))),
        "</div>",
        drawing(measured, list(found), shares, known),
        "</div>",
        "<figcaption>",
        f"<p>{known['title']}, measured here: one photograph while more of it is deleted, not restored and restored.",
        "The curves and the numbers, the best of them in bold, are means over test images, not of this photograph.",
        *fixated,
        "“On-demand” has trained on levels 1 to 5; the grey band is level 6, which it never saw.",
        f"Its last epoch gave them {listed(shares)} % of its images.",
        *untrained,
        "Photograph: Stefan van der Walt, CC0.</p>",
        "</figcaption></figure>",
    ]


def written(psnr: float) -> str:
    return "identical" if psnr >= IDENTICAL else f"{psnr:.1f} dB"


def listed(shares: list[float]) -> str:
    *most, last = [f"{share:.1f}" for share in shares]
    return f"{', '.join(most)} and {last}"


def sheet(found: dict) -> str:
    """A data: address: rows for the damaged photograph, each network, and each again with the known pixels kept; a
    column per severity."""
    x = as_input("chelsea.png")
    same = [torch.Generator().manual_seed(5) for _ in SEVERITIES]  # a deleted pixel stays deleted
    pairs = zip(SEVERITIES, same, strict=True)
    y = torch.cat([TASKS[TASK].corrupt_between(x, float(s), float(s), generator) for s, generator in pairs])
    with torch.inference_mode():
        restored = [network(y) for network in found.values()]
    kept = [torch.where((y == x).all(1, keepdim=True), x, x_hat) for x_hat in restored]
    rows = [y, *restored, *kept]
    picture = np.concatenate([np.concatenate([plots.to_picture(image) for image in row], 1) for row in rows])
    content = io.BytesIO()
    Image.fromarray((picture * 255).round().astype(np.uint8)).save(content, "WebP", quality=88)
    return f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode()}"


def picture(name: str, row: int, down: int, measured: dict) -> str:
    """One of the pictures, and below it its name and its PSNR at each severity; kept ones are `down` rows below."""
    strips = [strip(name, kind, frame.loc[list(SEVERITIES)]) for kind, frame in measured.items()]
    colour = plots.COLOURS.get(name, "var(--odl-damaged)")
    place = f"--row: {row}; --down: {down if row else 0}; border-color: {colour}"
    place += "" if row else "; border-style: dashed"
    return f'<div><div class="odl-frame" style="{place}"></div><b>{LABELS[name]}</b>{"".join(strips)}</div>'


def strip(name: str, kind: str, scores: pd.DataFrame) -> str:
    """The lines that go with each severity, one of them visible; the damaged picture's say how much is deleted."""
    lines = []
    for severity, row in scores.iterrows():
        best = ' class="odl-best"' if row[name] == row.max() else ""
        said = f"{severity:.0f} %: " if name == "not_restored" else ""
        lines.append(f"<span{best}>{said}{written(row[name])}</span>")
    return f'<div class="odl-strip odl-{kind}"><div>{"".join(lines)}</div></div>'


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
