"""What one GPU has measured: profile gpu on faces, at the paper's width and batch, beside the runs of the CPU."""

from collections import Counter
from itertools import product

import numpy as np
from measured import NOT_MEASURED, PAIR, PROFILE, listed, markdown
from measured import load as load_of

from companion.measure import gradients_and_pool
from companion.pages import dose
from companion.runs import catalogue, gpu
from companion.verdicts import judge
from companion.verdicts.judge import number, plain
from companion.verdicts.predictions import beside
from odl import paper
from odl.experiment import PROFILES
from odl.machine import files, store

FACES = f"{catalogue.FACES}-native"
CURRICULUM = "cumulative_curriculum"
CONTESTS = {
    "Equation 3 − equal shares": PAIR,
    "Cumulative curriculum − Equation 3": (CURRICULUM, PAIR[0]),
    "k = 4 − equal shares": (dose.NAMES[4], PAIR[1]),
}
MEASURED = "device versions seeds wide dose moved margins foretold hits words gates side fastest alone wall each"


def load() -> judge.Measured:
    """The runs of `CONTESTS` on a GPU, as many seeds of the campaign as there are; a page names how many."""
    scale = "gpu", FACES, catalogue.SEEDS_OF_FACES
    return dose.load(catalogue.grid(*scale, (*PAIR, CURRICULUM)) + catalogue.doses(*scale, [4]))


def margins() -> str:
    """Each contest on each task by the CPU's profile and by the GPU's, in dB."""
    rows, sets = [], {"CPU": (PROFILE, load_of(FACES)), "GPU": ("gpu", load())}
    for task, (device, (profile, m)) in product(paper.TASKS, sets.items()):
        found = [judge.gaps(m.runs, task, *pair) for pair in CONTESTS.values()]
        cells = [judge.estimate(gaps, "").replace(", ", ",\u00a0") if gaps else NOT_MEASURED for gaps in found]
        rows.append([plain(task), f"{PROFILES[profile]['width']}, {device}", *cells])
    return markdown(["Faces", "Width", *CONTESTS], rows)


def moved(m: judge.Measured) -> str:
    """From the CPU's to the GPU's mean margin of the curriculum, where the CPU's is decided and is not alike."""
    found, before = [], load_of(FACES)
    for task in paper.TASKS:
        old, new = (judge.gaps(runs, task, CURRICULUM, PAIR[0]) for runs in (before.runs, m.runs))
        if judge.decide(old) in (judge.REPRODUCED, judge.REVERSED) and new:
            found.append(f"from {number(np.mean(old))} to {number(np.mean(new))} dB on {plain(task)}")
    return listed(found) if found else NOT_MEASURED


def wide(m: judge.Measured) -> str:
    """Equation 3 against equal shares in one sentence, with the judge's word."""
    found, printed = dose.dose_against_margin(m, k=1), {plain(t): judge.printed_margin(m, t) for t in paper.TASKS}
    ends = {task: numbers[2:] for task, numbers in found.numbers.items()}  # from three seeds on
    above = all(ends.get(task) and ends[task][0] < margin for task, margin in printed.items())
    beside = f", with the paper's {judge.span(printed.values())} above every interval" * above
    means, seeds = [mean for mean, *_ in found.numbers.values()], {t: judge.gaps(m.runs, t, *PAIR) for t in paper.TASKS}
    return (
        f"On a GPU, with the paper's width and batch, Equation 3 minus equal shares is {judge.span(means)} from task "
        f"to task on faces ({judge.count_seeds(seeds)}): *{found.short}*{beside}."
    )


def facts() -> dict:
    """With what, on how much and how fast it was measured; the ends of the margins, and what was predicted of them."""
    m, ours = load(), PROFILES["gpu"]
    images = [p["epochs"] * p["iterations"] * p["batch_size"] for p in (ours, PROFILES[PROFILE])]
    found = {"steps": f"{ours['epochs'] * ours['iterations']:,}", "images": f"{images[0] / images[1]:.0f}"}
    pairs = {task: judge.paired(m.runs, task, *PAIR) for task in paper.TASKS}
    equal = catalogue.grid("gpu", FACES, catalogue.SEEDS_OF_FACES, PAIR[1:])
    rows = beside(judge.Measured(m.runs | gradients_and_pool.load_all(equal)), "gpu").dropna(subset="hit")
    hits, words = rows[rows.part != ""].hit, rows[rows.part == ""].hit
    if not all(pairs.values()) or hits.empty:
        return found | dict.fromkeys(MEASURED.split(), NOT_MEASURED)
    doses = [100 * run.history[-1]["dose"] for (_, name, _), run in m.runs.items() if name == PAIR[0]]
    cards = Counter(run.provenance["device"] for run in m.runs.values())
    return found | {
        "device": listed(f"one {card}" for card in cards),
        "versions": listed(f"PyTorch {run.provenance['versions']['torch']}" for run in m.runs.values()),
        "seeds": judge.count_seeds(pairs),
        "wide": wide(m),
        "dose": f"{min(doses):.1f} to {max(doses):.1f} %",
        "moved": moved(m),
        "margins": len(CONTESTS) * len(paper.TASKS),
        "foretold": len(hits),
        "hits": "all of them" if hits.all() else f"{hits.sum()} of them",
        "words": f"{words.sum()} of {len(words)}",
    } | pace(m, cards.most_common(1)[0][0])  # fmt: skip


# How fast


def record(card: str) -> dict:
    """What the gates and the probe found on a card; without gates and times where nobody has kept it."""
    path = gpu.record_of(card)
    return files.unseal(store.used(path)) if path.exists() else {"gates": None, "milliseconds": {}}


def pace(m: judge.Measured, card: str) -> dict:
    """What the gates said of a card; how many runs side by side are fastest on it, and what a run of ours took."""
    kept = record(card)
    gates = "All gates held: on small networks captured steps equalled plain ones, and runs side by side the same runs "
    gates += "alone, bit for bit."
    if kept["gates"] is None:
        gates = f"Gates are {NOT_MEASURED}."
    elif kept["gates"]:
        gates = f"Not all gates held: {listed(kept['gates'])}."
    times = {int(n): ms for n, ms in kept["milliseconds"].items() if n.isdigit()}
    if not times:
        return {"gates": gates} | dict.fromkeys(("side", "fastest", "alone", "wall", "each"), NOT_MEASURED)
    side = min(times, key=times.get)
    taken = [run.provenance["seconds"] for run in m.runs.values() if run.provenance["device"] == card]
    wall = np.median([seconds["train"] + seconds["evaluate"] for seconds in taken])
    found = {"gates": gates, "side": side, "fastest": f"{times[side]:.2f} ms", "alone": f"{times[min(times)]:.2f} ms"}
    return found | {"wall": f"{wall:.0f} seconds", "each": f"{wall / side:.0f} seconds"}


def probe() -> str:
    """Milliseconds of the card for a step, by how it is launched; what failed is not there."""
    rows = []
    for card in sorted({run.provenance["device"] for run in load().runs.values()}):
        for n, ms in record(card)["milliseconds"].items():
            if n == "eager" or n.isdigit():
                launch = {"eager": "without a graph, alone", "1": "as a graph, alone"}
                rows.append([card, launch.get(n, f"as a graph, {n} side by side"), f"{ms:.2f}"])
    header = ["Card", "Step", "Milliseconds of the card for a step"]
    return markdown(header, rows) if rows else f"A step on a GPU is {NOT_MEASURED}."


TABLES = {"gpu-margins": margins, "gpu-probe": probe}
