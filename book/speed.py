"""What the Speed page shows, from data/results/benchmarks: a folder per device, a JSON per benchmark."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import ticker
from measured import NOT_MEASURED, markdown

from bench.measure import cell
from companion.disk import files

ORDER = ("training", "corruptions")
COLUMNS = ("task", "contestant", "precision", "ms per step", "images/s", "ours, times as fast", "PSNR (dB)")
COLUMNS += ("difference from the loop", "counts")
FORMER = "scikit-image"  # a contestant in stored results, which `make bench` measures no longer


def measured() -> list[dict[str, dict]]:
    """Return benchmarks by name, in the order of the page, a dict per device."""
    devices = []
    for folder in sorted((files.results() / "benchmarks").glob("*/")):
        paths = [path for name in ORDER if (path := folder / f"{name}.json").exists()]
        devices.append({path.stem: files.unseal(path) for path in paths})
    return [found for found in devices if found]


def table(name: str) -> str:
    """Return a benchmark's tables, one per device. Raises FileNotFoundError where nobody has measured it."""
    blocks = [block(found[name]) for found in measured() if name in found]
    if not blocks:
        raise FileNotFoundError(f"benchmarks/*/{name}.json")
    return "\n\n".join(blocks)


def block(content: dict) -> str:
    """Return what the numbers are measured with, and the numbers."""
    known, sizes, rounds = content["provenance"], content["scale"], content["rounds"]
    names = {"dataset": "{}", "width": "width {}", "batch": "batches of {}"}
    scale = [text.format(sizes[key]) for key, text in names.items() if key in sizes]
    versions = [f"{name} {known['versions'].get(name, 'not installed')}" for name in ("torch", "deepinv")]
    where = [known["device"], known["processor"], known["capability"], f"ours in {sizes['precision_of_ours']}"]
    parts = [where, [f"{rounds} round{'s' * (rounds > 1)}", *scale], versions, [f"commit {known['commit']}"]]
    origin = f"*{'; '.join(', '.join(part) for part in parts)}.*"
    columns = [name for name in COLUMNS if name in content["rows"][0]]
    rows = [[cell(row[name]) for name in columns] for row in content["rows"] if row["contestant"] != FORMER]
    return f"{origin}\n\n{markdown(columns, rows)}"


def ratios():
    """Draw how many times as fast ours is, a bar per comparison, a panel per device; lines span the rounds."""
    devices = measured() or [{}]
    bars = [[bar for content in found.values() for bar in content["comparisons"]] for found in devices]
    bars = [[bar for bar in rows if bar["against"] != FORMER] for rows in bars]
    height = 1.0 + 0.27 * max(max(map(len, bars)), 4)
    figure, axes = plt.subplots(len(bars), 1, figsize=(8.2, height * len(bars)), squeeze=False, layout="constrained")
    for axis, found, rows in zip(axes[:, 0], devices, bars, strict=True):
        if not rows:
            axis.text(0.5, 0.5, NOT_MEASURED, ha="center", transform=axis.transAxes, color="#666666")
            axis.set(xticks=[], yticks=[])
            continue
        draw_ratios(axis, rows)
        axis.set_title(next(iter(found.values()))["provenance"]["device"], fontsize=10)
    return figure


def draw_ratios(axis, rows: list[dict]) -> None:
    table = pd.DataFrame(rows, columns=["what", "against", "counts", "median", "low", "high"])
    reach = table["median"] - table.low, table.high - table["median"]
    colours = np.where(table.counts, "#0072B2", "#BBBBBB")
    look = {"ecolor": "#222222", "elinewidth": 1}
    axis.barh(table.index, table["median"] - 1, left=1, height=0.66, color=colours, xerr=reach, error_kw=look)
    for place, row in enumerate(rows):
        text = f"{cell(row['median'])}×" + ("" if row["counts"] else ", gate failed")
        place = max(row["high"], 1), place
        axis.annotate(text, place, (4, 0), textcoords="offset points", va="center", fontsize=8)
    axis.axvline(1, color="#222222", linewidth=0.8)
    axis.set_yticks(table.index, table.what + " against " + table.against, fontsize=8)
    axis.set(xscale="log", ylim=(len(rows) - 0.5, -0.5), xlabel="ours is so many times as fast")
    axis.set_xlim(min(0.5, 0.8 * table.low.min()), 1.6 * max(2, table.high.max()))
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axis.xaxis.set_minor_locator(ticker.NullLocator())
    axis.grid(axis="y", visible=False)
