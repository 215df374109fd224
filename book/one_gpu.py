"""What one GPU has measured: profile gpu on faces, at the paper's width and batch, beside the runs of the CPU."""

import json
from itertools import product

import numpy as np
from measured import NOT_MEASURED, PAIR, PROFILE, markdown

from companion.pages import dose
from companion.runs import catalogue, gpu
from companion.verdicts import judge
from companion.verdicts.judge import number, plain
from companion.verdicts.predictions import beside
from odl import paper
from odl.experiment import PROFILES
from odl.machine import store

FACES = f"{catalogue.FACES}-native"
CURRICULUM = "cumulative_curriculum"
MEASURED = "device versions seeds gain dose lead lead_before margins foretold hits gates side fastest wall each"
CONTESTS = {"Equation 3 − equal shares": PAIR, "Cumulative curriculum − Equation 3": (CURRICULUM, PAIR[0])}


def load(profile: str = "gpu") -> judge.Measured:
    """The runs of `CONTESTS` by a profile, as many seeds of the campaign as there are."""
    return dose.load(catalogue.grid(profile, FACES, catalogue.SEEDS_OF_FACES, (*PAIR, CURRICULUM)))


def told(margins: list[float]) -> str:
    """Mean and interval from three seeds on; of fewer, each margin."""
    if len(margins) >= judge.ENOUGH:
        return judge.estimate(margins)
    return f"{' and '.join(map(number, margins))} dB" if margins else NOT_MEASURED


def margins() -> str:
    """Each contest on each task by the CPU's profile and by the GPU's."""
    rows, found = [], {"CPU": load(PROFILE), "GPU": load()}
    for task, (device, m) in product(paper.TASKS, found.items()):
        width = PROFILES["gpu" if device == "GPU" else PROFILE]["width"]
        rows.append(
            [plain(task), f"{width}, {device}", *(told(judge.gaps(m.runs, task, *p)) for p in CONTESTS.values())]
        )
    return markdown(["Faces", "Width", *CONTESTS], rows)


def lead(m: judge.Measured) -> str:
    """Of the curriculum on deblurring, the mean over seeds."""
    found = judge.gaps(m.runs, "deblur", CURRICULUM, PAIR[0])
    return judge.signed(np.mean(found)) if found else NOT_MEASURED


def facts() -> dict:
    """With what, on how much and how fast it was measured; the ends of the margins, and what was predicted of them."""
    m, ours = load(), PROFILES["gpu"]
    steps = ours["epochs"] * ours["iterations"]
    images = [p["epochs"] * p["iterations"] * p["batch_size"] for p in (ours, PROFILES[PROFILE])]
    found = {"steps": f"{steps:,}", "images": f"{images[0] / images[1]:.0f}"}
    if not m.runs:
        return found | dict.fromkeys(MEASURED.split(), NOT_MEASURED)
    first = next(iter(m.runs.values())).provenance
    pairs, few = {task: judge.paired(m.runs, task, *PAIR) for task in paper.TASKS}, ", too few for a word of the judge"
    gains = [margin for task in paper.TASKS for margin in judge.gaps(m.runs, task, *PAIR)]
    doses = [100 * run.history[-1]["dose"] for (_, name, _), run in m.runs.items() if name == PAIR[0]]
    rows = beside(m, "gpu")
    hits = rows[(rows.part != "") & rows.margin.notna()].hit
    found |= pace(m)
    return found | {
        "device": first["device"],
        "versions": f"PyTorch {first['versions']['torch']}",
        "seeds": judge.count_seeds(pairs) + (few if min(map(len, pairs.values())) < judge.ENOUGH else ""),
        "gain": f"{number(min(gains))} and {number(max(gains))} dB",
        "dose": f"{min(doses):.1f} to {max(doses):.1f} %",
        "lead": lead(m),
        "lead_before": lead(load(PROFILE)),
        "margins": len(CONTESTS) * len(paper.TASKS),
        "foretold": len(hits),
        "hits": "all of them" if hits.all() else f"{hits.sum()} of them",
        "gates": "All gates held" if not any(map(read, gpu.kept().glob("gates-*.json"))) else "Not all gates held",
    }


# How fast


def read(path) -> dict:
    return json.loads(store.used(path).read_bytes())


def probes() -> dict[str, dict]:
    """Card → milliseconds of a step, `eager` and by how many runs stand side by side."""
    paths = sorted(gpu.kept().glob("probe-*.json"))
    return {path.stem.removeprefix("probe-").replace("-", " "): read(path) for path in paths}


def pace(m: judge.Measured) -> dict:
    """How many runs side by side are fastest, their milliseconds a step, and what a run takes of the clock and card."""
    times = {int(n): ms for found in probes().values() for n, ms in found.items() if n.isdigit()}
    if not times:
        return dict.fromkeys(("side", "fastest", "wall", "each"), NOT_MEASURED)
    side = min(times, key=times.get)
    seconds = [run.provenance["seconds"]["train"] + run.provenance["seconds"]["evaluate"] for run in m.runs.values()]
    wall = np.median(seconds)
    found = {"side": side, "fastest": f"{times[side]:.2f} ms"}
    return found | {"wall": f"{wall:.0f} seconds", "each": f"{wall / side:.0f} seconds"}


def probe() -> str:
    """Milliseconds of the card for a step, by how it is launched."""
    rows = []
    for card, found in probes().items():
        names = {n: f"as a graph, {n} side by side" for n in found}
        names |= {"eager": "without a graph, alone", "1": "as a graph, alone"}
        rows += [[card, names[n], f"{ms:.2f}" if isinstance(ms, float) else ms] for n, ms in found.items()]
    header = ["Card", "Step", "Milliseconds of the card for a step"]
    return markdown(header, rows) if rows else f"A step on a GPU is {NOT_MEASURED}."


TABLES = {"gpu-margins": margins, "gpu-probe": probe}
