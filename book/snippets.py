"""The Markdown that pages and README take from the code and from data/results: `SNIPPETS`, a function for each."""

import io
import json
import re
import runpy
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path
from statistics import median

import launch
import pandas as pd
import sources
import torch

from odl import claims, datasets, judge, paper, pilot, plan, results, scorecard, store
from odl.evaluate import overall
from odl.experiment import PROFILES, Experiment
from odl.network import ChannelwiseLinear, EncoderDecoder
from odl.schedules import HARD_MINING_WARM_UP

ROOT = Path(__file__).resolve().parents[1]
DATASET, PROFILE = "bsds500", "reference"  # what the book shows
SEEDS = range(10)
LEVELS = judge.LEVELS
NOT_MEASURED = "not measured yet"
SOLUTIONS = ROOT / "book" / "solutions"
PAGES = (ROOT / "README.md", ROOT / "data" / "README.md")  # hold tables between markers


# What is measured


def measured(task: str, *schedules: str, **overrides) -> tuple[results.Result, ...]:
    """The reference runs of some schedules that are on disk, all seeds."""
    wanted = [Experiment.of(task, DATASET, s, k, PROFILE, **overrides) for s in schedules for k in SEEDS]
    return tuple(run for run in map(results.load, wanted) if run)


def mean_psnr(task: str, schedule: str, level: str | None = None) -> float | None:
    """Mean PSNR over seeds, trials and levels 1…6, or at one level; None when nothing is measured."""
    runs = measured(task, schedule)
    if not runs:
        return None
    if level is None:
        return sum(overall(run.evaluation).psnr.mean() for run in runs) / len(runs)
    return pd.concat([run.evaluation for run in runs]).groupby("level").psnr.mean()[level]


def not_restored(task: str) -> float | None:
    """Mean PSNR of the damaged images over levels 1…6; None when nothing is measured."""
    runs = measured(task, "on_demand")
    return runs[0].evaluation.query("level in @LEVELS").psnr_input.mean() if runs else None


def seconds(runs) -> float:
    """Of the processor, where that was less than waiting for it: other work beside a run is none of its own."""
    used = [run.provenance["seconds"] for run in runs]
    return sum(s["evaluate"] + min(s[name] for name in ("train", "train_core") if name in s) for s in used)


def denoisers() -> list[Experiment]:
    """The two runs of Table 3."""
    return [results.db11_experiment(s, PROFILE, f"{DATASET}-native") for s in ("on_demand", "fixated_hard")]


def db11(system: str) -> float | None:
    """Mean PSNR over the eleven images at σ = 25, clipped noise."""
    path = results.paths.results() / PROFILE / "db11" / f"{system}-sigma25.json"
    return pd.Series(json.loads(store.used(path).read_text())["evaluation"]["psnr"]).mean() if path.exists() else None


def from_table(notebook: str, task: str, row: str, column: str) -> float | None:
    """A number of a table that a notebook has written, None where it has not; rows go by their first column."""
    path = results.table_path(notebook, PROFILE, DATASET, task)
    if not path.exists():
        return None
    value = pd.read_csv(store.used(path), index_col=0)[column].get(row)
    return None if pd.isna(value) else value


def last_shares() -> tuple[str, tuple]:
    """From the least to the most per cent of a batch that a level gets in the last epoch, over all on-demand runs."""
    runs = [run for task in paper.TASKS for run in measured(task, "on_demand")]
    shares = [share for run in runs for share in run.history[-1]["allocation"]]
    return (f"{min(shares):.1f} to {max(shares):.1f} % a level" if shares else NOT_MEASURED), tuple(runs)


# How things are written


def markdown(header: list[str], rows: list[list]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def duration(amount: float) -> str:
    """Seconds as a person says them."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if amount >= 2 * length:
            return f"{amount / length:.2g} {unit}" if amount < 10 * length else f"{amount / length:,.0f} {unit}"
    return f"{amount:.0f} s"


def flops(amount: float) -> str:
    for unit, size in (("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9)):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount / 1e6:.3g} MFLOP"


def decibels(*values: float | None) -> str:
    if not any(values):
        return NOT_MEASURED
    return "\u00a0/\u00a0".join("–" if value is None else f"{value:.2f}" for value in values)  # not broken over lines


def plain(task: str) -> str:
    return paper.TASKS[task]["title"].removeprefix("Image ").lower()


# The results table: a row is (place in the paper, notebook, parameters, the paper's number, ours, runs that made ours).


def result_rows():
    for task in paper.TASKS:
        schedules = ("on_demand", "fixated_easy", "fixated_hard")
        place = f"Fig. 4, {plain(task)}: on-demand / fixated easy / fixated hard / not restored"
        ours = decibels(*(mean_psnr(task, s) for s in schedules), not_restored(task))
        yield place, "fixation", {"task": task}, "curves only", ours, measured(task, *schedules)
    for task in paper.TASKS:
        pair = ("on_demand", "rigid_joint")
        place = (
            f"{'Supp. E' if task == 'denoise' else 'Table 1'}, {plain(task)}: on-demand / rigid joint / not restored"
        )
        celeba, sun397 = (decibels(*(paper.TABLE1[task][s][k][1] for s in pair)) for k in (0, 1))
        ours = decibels(*(mean_psnr(task, s) for s in pair), not_restored(task))
        runs = measured(task, *paper.SCHEDULES)
        yield place, "table1", {"task": task}, f"CelebA {celeba}<br>SUN397 {sun397}", ours, runs
    shares, runs = last_shares()
    yield "Sec. 6.6: allocation at the end, 20 % each at first", "allocation", {}, "more to harder levels", shares, runs
    yield "Fig. 2 and 5, Supp. C and G: restored images", "qualitative", {}, "pictures", "pictures", ()
    names = ("on-demand, half", "rigid joint, all")
    ours = decibels(*(from_table("extra_data", "inpaint", name, "psnr") for name in names))
    place = "Sec. 6.6, inpainting: on-demand on half / rigid joint on all images"
    yield place, "extra_data", {"task": "inpaint"}, "first ahead", ours, ()
    published = decibels(*(psnr for _, psnr in paper.TABLE2["on_demand"]))
    blocks = ("central_psnr", "arbitrary_psnr")
    ours = decibels(*(from_table("table2", "inpaint", "on_demand", block) for block in blocks))
    yield "Table 2, all-rounder inside the hole: centre / anywhere", "table2", {}, published, ours, ()
    systems = ("on_demand", "fixated", "bm3d")
    published = decibels(*(sum(row[s] for row in paper.TABLE3.values()) / len(paper.TABLE3) for s in systems))
    place = "Table 3, mean of eleven: all-rounder / fixated / BM3D"
    runs = tuple(run for run in map(results.load, denoisers()) if run)
    yield place, "table3", {"photographs": "db11"}, published, decibels(*map(db11, systems)), runs
    yield "Fig. 6: PSNR against σ", "db11_spectrum", {"photographs": "db11"}, "curves only", "curves", ()
    yield "Supp. H: Lena and all photographs", "gallery", {"photographs": "db11"}, "pictures", "pictures", ()
    yield "Supp. F: scars and objects removed", "applications", {}, "pictures", "pictures", ()
    yield "every claim, one by one", "scorecard", {}, "–", "verdicts", ()
    task = "interpolate"
    place = "Sec. 6.2 and 7: continuous levels, other N, mixtures; sharper feedback"
    yield place, "extensions", {"task": task}, "future work", "demonstration", ()


def options(notebook: str, given: dict) -> dict:
    """The parameters that make a row: those that the notebook declares, at the scale of the book."""
    path = ROOT / "notebooks" / f"{notebook}.ipynb"
    declared = {*given, "dataset", "profile"}
    if path.exists():
        cells = json.loads(path.read_text())["cells"]
        parameters = ["".join(c["source"]) for c in cells if "parameters" in c["metadata"].get("tags", [])]
        declared = set(re.findall(r"(?m)^(\w+) *=", "\n".join(parameters)))
    values = given | {"dataset": DATASET, "profile": PROFILE, "seeds": sources.seeds()}
    return {name: value for name, value in values.items() if name in declared}


def results_table(book=False) -> str:
    """The book links to executed pages, with the parameters of a row; README links to notebooks, with commands."""
    rows = []
    for place, notebook, given, published, ours, runs in result_rows():
        time = f"{duration(seconds(runs))}, {len(runs)} {'run' if len(runs) == 1 else 'runs'}" if runs else "–"
        rest = [published, ours, time.replace(" min", "\u00a0min").replace(" run", "\u00a0run")]
        if book:
            page = f"{notebook}-{given['task']}" if notebook == "table1" else notebook
            own = {
                name: value for name, value in options(notebook, given).items() if name not in ("dataset", "profile")
            }
            parameters = "".join(f"<br>`-p {name} {sources.word(value)}`" for name, value in own.items())
            rows.append([place, f"{{doc}}`{notebook} </notebooks/{page}>`{parameters}", *rest])
        else:
            command = sources.papermill(notebook, options(notebook, given))
            rows.append([place, f"[{notebook}](notebooks/{notebook}.ipynb)", f"`{command}`", *rest])
    columns = ["Notebook and parameters"] if book else ["Notebook", "Command"]
    return markdown(["In the paper", *columns, "Paper", "Ours", "Time"], rows)


def scale(book=False) -> str:
    """What the reference numbers were measured with."""
    runs = [run for task in paper.TASKS for run in measured(task, *paper.SCHEDULES, *paper.FIXATED)]
    if not runs:
        return f"The reference runs are {NOT_MEASURED}."
    lines = [claims.scale(runs)]
    if run := results.load(denoisers()[0]):
        e = run.experiment
        steps, rate = e["epochs"] * e["iterations"], e["learning_rate"]
        lines.append(f"Table 3 and Figure 6: width {e['width']}, {steps:,} iterations, rate {rate:g}.")
    return "\n".join(lines)


def verdicts(book=False) -> str:
    """The scorecard's measured claims, a line each, the core ones first."""
    card = scorecard.scorecard(PROFILE, DATASET, list(SEEDS))
    lines = [scorecard.counted(card), ""]
    for row in card[(card.kind != scorecard.BUILT_IN) & (card.verdict != judge.MISSING)].itertuples():
        word = row.verdict if row.verdict == judge.UNDECIDED else f"**{row.verdict}**"
        lines.append(f"- {word}: “{row.claim}” Here: {row.measured}. Paper: {row.paper}.")
    return "\n".join(lines)


def findings(book=False) -> str:
    """The paper's margins, from its tables."""
    rows = []
    for task in paper.TASKS:
        for k, name in enumerate(("CelebA", "SUN397")):
            psnr = {schedule: numbers[k][1] for schedule, numbers in paper.TABLE1[task].items()}
            ours = psnr.pop("on_demand")
            best, worst = max(psnr, key=psnr.get), min(psnr, key=psnr.get)
            rows.append(
                [
                    plain(task).capitalize(),
                    name,
                    f"{ours:.2f}",
                    f"{psnr[best]:.2f} ({paper.SCHEDULES[best].lower()})",
                    f"{ours - psnr[best]:+.2f}",
                    f"{psnr[worst]:.2f} ({paper.SCHEDULES[worst].lower()})",
                ]
            )
    return markdown(["Task", "Data set", "On-demand", "Best other schedule", "Margin", "Worst schedule"], rows)


def tasks(book=False) -> str:
    """The sub-tasks and the severities of the fixated models."""
    rows = [
        [facts["title"], facts["severity"], *(f"{a}–{b}" for a, b in facts["levels"]), facts["easy"], facts["hard"]]
        for facts in paper.TASKS.values()
    ]
    return markdown(["Task", "Severity", *(f"Level {n}" for n in range(1, 7)), "Fixated, easy", "Fixated, hard"], rows)


# The network, counted on the network itself


@cache
def layers(channels: int, width: int) -> list[tuple[str, int, int, int, int]]:
    """(name, output channels, output side, parameters, FLOP for one image) of each layer, with its BatchNorm."""
    found = []

    def record(module, inputs, output):
        parameters = sum(p.numel() for p in module.parameters())
        if isinstance(module, torch.nn.BatchNorm2d):
            *layer, before, flop = found.pop()
            found.append((*layer, before + parameters, flop))
            return
        name, places = {  # a weight is used once at every place of the smaller side
            torch.nn.Conv2d: ("down", output.shape[-1] ** 2),
            torch.nn.ConvTranspose2d: ("up", inputs[0].shape[-1] ** 2),
            ChannelwiseLinear: ("channel-wise", 1),
        }[type(module)]
        number = 1 + sum(other.startswith(name) for other, *_ in found)
        name = name if places == 1 else f"{name} {number}"
        found.append((name, output.shape[1], output.shape[2], parameters, 2 * module.weight.numel() * places))

    network = EncoderDecoder(channels, width).eval()
    for module in network.modules():
        if not list(module.children()) and list(module.parameters()):
            module.register_forward_hook(record)
    with torch.inference_mode():
        network(torch.zeros(1, channels, 64, 64))
    return found


def forward_flop(channels: int, width: int) -> int:
    return sum(flop for *_, flop in layers(channels, width))


def iteration_flop(channels: int, width: int, batch: int = paper.BATCH_SIZE) -> int:
    """Forward, and backward twice as much but for the input of the first layer, which needs no gradient."""
    return batch * (3 * forward_flop(channels, width) - layers(channels, width)[0][-1])


def parameter_counts(book=False) -> str:
    rows = []
    for (name, c, side, count, flop), (*_, grey, _) in zip(layers(3, 64), layers(1, 64), strict=True):
        rows.append([name, f"{c} × {side} × {side}", f"{count:,}", f"{grey:,}", flops(flop)])
    totals = [f"**{sum(count for *_, count, _ in layers(channels, 64)):,}**" for channels in (3, 1)]
    rows.append(["**all**", "", *totals, f"**{flops(forward_flop(3, 64))}**"])
    return markdown(["Layer", "Output (RGB)", "Parameters, RGB", "Parameters, grey", "Arithmetic, one image"], rows)


# Profiles and cost

MEANT_FOR = {
    "smoke": "the tests: every notebook in seconds",
    "demo": "a laptop: one task's seven schedules in minutes",
    "reference": "the numbers of this book",
    "gpu": "half an hour of one GPU",
    "paper": "the paper's full protocol, on a GPU",
}


def profiles_table(book=False) -> str:
    rows = []
    for name, p in PROFILES.items():
        iterations = p["epochs"] * p["iterations"]
        evaluation = f"{p['test_images']:,} × {p['trials']}"
        steps = f"{p['epochs']:,} × {p['iterations']:,}"
        arithmetic = flops(iterations * iteration_flop(3, p["width"], p["batch_size"]))
        rate = f"{p['learning_rate']:g}{falling(p)}"
        rows.append([f"`{name}`", p["width"], p["batch_size"], steps, rate, evaluation, arithmetic, MEANT_FOR[name]])
    header = [
        "Profile",
        "Width f",
        "Images a batch",
        "Epochs × iterations",
        "Learning rate",
        "Test crops × trials",
        "One run",
        "Meant for",
    ]
    return markdown(header, rows)


def falling(profile: dict) -> str:
    """How the learning rate ends, in words; empty where it stays."""
    return f", to 0 in a line from {1 - profile['decay']:.0%} of training" if profile["decay"] else ""


def departures(book=False) -> str:
    """What the profile of the book has otherwise than the paper's, and why."""
    ours, papers = PROFILES[PROFILE], PROFILES["paper"]
    steps, papers_steps = (p["epochs"] * p["iterations"] for p in (ours, papers))
    rows = [
        (
            "Width f of the network",
            *(p["width"] for p in (papers, ours)),
            "Its arithmetic is "
            f"{iteration_flop(3, papers['width'], 1) / iteration_flop(3, ours['width'], 1):.1f} times less",
        ),
        (
            "Images a batch",
            *(p["batch_size"] for p in (papers, ours)),
            "More steps for the same arithmetic; the fractions that Equation 3 asks for are carried to the next batch",
        ),
        (
            "Learning rate",
            *(f"{p['learning_rate']:g}{falling(p) or ', constant'}" for p in (papers, ours)),
            "A short run needs a high rate to leave its start, and an end without one to settle: at a constant rate "
            "scores jump from epoch to epoch by more than schedules differ",
        ),
        ("Iterations", f"{papers_steps:,}", f"{steps:,}", "What two cores can do for every schedule, task and seed"),
        (
            "Precision of products",
            "not stated",
            ours["precision"],
            "Speed; weights and statistics stay in 32 bits. It is part of an experiment, so that no pair mixes two",
        ),
        (
            "Pool of hard mining",
            *(f"{p['pool_images']:,}" for p in (papers, ours)),
            "The share of training spent on the whole pool is the paper's, so a shorter run meets fewer items: "
            f"{ours['batch_size'] * steps * HARD_MINING_WARM_UP / ours['pool_images']:.0f} passes over ours, "
            f"{papers['batch_size'] * papers_steps * HARD_MINING_WARM_UP / papers['pool_images']:.0f} over the paper's",
        ),
        ("Validation crops a level", *(f"{p['validation_images']:,}" for p in (papers, ours)), "Time of an epoch"),
        ("Test crops", *(f"{p['test_images']:,}" for p in (papers, ours)), "The test photographs are fewer"),
    ]
    return markdown(["", "Paper", f"`{PROFILE}`", "Why"], [list(row) for row in rows])


def piloted(book=False) -> str:
    """What the pilot measured, with one number of the book's profile changed at a time."""
    table = pilot.table(DATASET)
    if table.empty:
        return f"The pilot is {NOT_MEASURED}: `python -m odl reproduce` does it."
    rows = [
        [row.contestant, plain(row.task), f"{row.steps:,}", f"{row.core_seconds:,.0f}", *map("{:.2f}".format, row[5:])]
        for row in table.itertuples()
    ]
    header = ["Profile", "Task", "Steps", "Core-seconds", "Validation", "Test, last weights", "Test, averaged weights"]
    return markdown(header, rows)


def cost(book=False) -> str:
    """What the paper's protocol costs, from counted arithmetic and measured speed."""
    p = PROFILES["paper"]
    run = p["epochs"] * p["iterations"] * iteration_flop(3, p["width"])
    runs = 2 * len(paper.TASKS) * (len(paper.SCHEDULES) + len(paper.FIXATED))
    lines = [
        f"One run at the paper's scale is {flops(run)}: {p['epochs'] * p['iterations']:,} iterations of "
        f"{flops(iteration_flop(3, p['width']))}.",
        f"Nine schedules, four tasks and two data sets make {runs} runs.",
        "",
        markdown(
            ["Sustained training speed", "One run", f"All {runs} runs"],
            [[f"{t:g} TFLOP/s", duration(run / t / 1e12), duration(runs * run / t / 1e12)] for t in (1, 10, 50, 200)],
        ),
    ]
    state = 4 * 4 * sum(count for *_, count, _ in layers(3, p["width"])) / 1e6
    lines += [
        "",
        f"Weights, their running average and Adam's two moments take {state:.0f} MB, and so does a checkpoint.",
    ]
    reference = [run for task in paper.TASKS for run in measured(task, *paper.SCHEDULES, *paper.FIXATED)]
    if reference:
        speed = median(speed_of(r) for r in reference)
        lines += [
            "",
            f"The reference runs sustained {speed / 1e9:.0f} GFLOP/s each on {reference[0].provenance['device']} "
            f"at width {reference[0].experiment['width']} in {reference[0].experiment['precision']} "
            f"(median of {len(reference)} runs).",
            f"At that speed one run at the paper's scale would take {duration(run / speed)}.",
        ]
    return "\n".join(lines)


MS_PER_STEP = 1.0  # of the plan; times grow in proportion to it
FLEETS = (1, 8, 64)


def planned(gpus: int) -> plan.Plan:
    return plan.plan("paper", ["celeba", "sun397"], [0], gpus, MS_PER_STEP)


def plans(book=False) -> str:
    """What `python -m odl plan` says of a few numbers of GPUs."""
    named = {gpus: dict(plan.lines(planned(gpus))) for gpus in FLEETS}
    rows = [[name, *(named[gpus][name] for gpus in FLEETS)] for name in named[FLEETS[0]]]
    own = [row for row in rows if len(set(row[1:])) > 1]
    shared = [row[:2] for row in rows if len(set(row[1:])) == 1]
    header = [f"{MS_PER_STEP:g} ms a step", *(f"{gpus} GPU{'s' * (gpus > 1)}" for gpus in FLEETS)]
    return "\n".join([markdown(header, own), "", markdown(["Whatever the number of GPUs", ""], shared)])


def width(book=False) -> str:
    """Where more GPUs stop helping."""
    one, wide = planned(1), planned(10**4)
    grid = 2 * len(paper.TASKS) * (len(paper.SCHEDULES) + len(paper.FIXATED))
    gain = one.wall_seconds / wide.wall_seconds
    return (
        f"A run is one GPU, and runs do not depend on each other.\n"
        f"The paper's {grid} runs of seven schedules and two fixated models, on four tasks and two data sets, "
        f"and {one.runs - grid} more for its other tables are the width of the graph: "
        f"{one.runs} GPUs finish in the time of the longest run, {gain:.0f} times as fast as one, "
        f"and the next GPU has nothing to do.\n"
        f"More seeds make the graph wider, not longer."
    )


def feeding(book=False) -> str:
    """Packs of sets of faces of several sizes; the index grows as measured with the packing of the Speed page."""
    path = results.paths.results() / "benchmarks" / "cpu-2-threads" / "packing.json"
    if not path.exists():
        return f"The memory of reading is {NOT_MEASURED}."
    small, large = json.loads(path.read_text())["rows"]
    column = "reading, own memory (MB)"
    each = (large[column] - small[column]) / (large["files"] - small["files"]) * 1e6
    bytes_each = plan.pack_bytes("celeba") / datasets.DATASETS["celeba"]["images"]
    rows = [
        [f"{n:,}", plan.size(n * bytes_each), f"{plan.size(n * each)}{'' if n == large['files'] else ', extrapolated'}"]
        for n in (100_000, 1_000_000, 10_000_000)
    ]
    return markdown(["Faces of CelebA's size", "Pack", "Memory of a process that reads it"], rows)


def speed_of(run: results.Result) -> float:
    e = run.experiment
    channels = 1 if e["task"] == "denoise" else 3
    return (
        e["epochs"]
        * e["iterations"]
        * iteration_flop(channels, e["width"], e["batch_size"])
        / run.provenance["seconds"]["train"]
    )


def lessons(book=False) -> str:
    """What the commands of the teaching page take, from data/results/teaching.json."""
    path = results.paths.results() / "teaching.json"
    if not path.exists():
        return f"These times are {NOT_MEASURED}: `python book/lessons.py` does it."
    steps = json.loads(store.used(path).read_text())["steps"]
    rows = [
        [f"**{name}**", f"`{step['command']}`", duration(step["cpu_seconds"]), f"{step['memory_gb']:.1f} GB"]
        for name, step in steps.items()
    ]
    origin = next(iter(steps.values()))["provenance"]
    lines = [
        markdown(["Step", "Command", "Processor time", "Memory"], rows),
        "",
        f"Measured on {origin['threads']} cores ({origin['processor']}), on the demo photographs.",
    ]
    return "\n".join(lines)


# Data and variants


def data_table(book=False) -> str:
    rows = []
    for name, entry in datasets.DATASETS.items():
        url = entry.get("url", "").removesuffix("/")
        url = re.sub(r"raw\.githubusercontent\.com/([^/]+/[^/]+)/", r"github.com/\1/tree/", url)
        where = entry.get("where") or (f"<{url}>" if url else "inside the package scikit-image")
        where = where.replace("/", "/<wbr>") if book and "<" not in where else where  # a narrow page breaks it there
        rows.append([f"`{name}`", entry["title"], where, entry["size"], entry["terms"]])
    return markdown(["Name", "What", "Where from", "Size", "Terms"], rows)


def checksums(book=False) -> str:
    rows = []
    for name, entry in datasets.DATASETS.items():
        if "md5" in entry:
            rows.append([f"`{entry['archive']}`", f"MD5 `{entry['md5']}`"])
        if "sha256" in entry:
            rows.append([f"`{name}`: hashes and names of all files", f"SHA-256 `{entry['sha256']}`"])
        rows += [[f"`{name}/{file}`", f"SHA-256 `{digest}`"] for file, digest in entry.get("files", {}).items()]
    return markdown(["File", "Checksum"], rows)


def variant(book=False) -> str:
    """The two tasks that the released code feeds differently, each variant scored on its own corruptions."""
    rows = []
    for task in ("deblur", "denoise"):
        ours = mean_psnr(task, "on_demand")
        released = measured(task, "on_demand", variant="released")
        other = overall(released[0].evaluation).psnr.mean() if released else None
        rows.append([plain(task), *(f"{v:.2f} dB" if v else NOT_MEASURED for v in (ours, other))])
    return markdown(["On-demand, mean over levels 1–6", "as the paper says", "as the released code does"], rows)


# Exercises


def solution(page: str, book=False) -> str:
    """What the solution to a page's exercise prints, as a block of text."""
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            runpy.run_path(str(SOLUTIONS / f"{page}.py"))
    except FileNotFoundError:  # of a results file
        said = io.StringIO()
    return f"```text\n{said.getvalue().rstrip() or NOT_MEASURED}\n```"


SNIPPETS = {
    "results-table": results_table,
    "scale": scale,
    "verdicts": verdicts,
    "findings": findings,
    "tasks-table": tasks,
    "parameter-counts": parameter_counts,
    "profiles-table": profiles_table,
    "departures": departures,
    "pilot": piloted,
    "cost": cost,
    "lessons": lessons,
    "launch": launch.setup,
    "plans": plans,
    "width": width,
    "feeding": feeding,
    "data-table": data_table,
    "checksums": checksums,
    "variant": variant,
}
SNIPPETS |= {f"solution-{path.stem}": partial(solution, path.stem) for path in sorted(SOLUTIONS.glob("*.py"))}


def filled(text: str) -> str:
    """`text` with every `<!-- begin NAME -->` … `<!-- end NAME -->` filled anew."""

    def fresh(match):
        return f"<!-- begin {match[1]} -->\n{SNIPPETS[match[1]]()}\n<!-- end {match[1]} -->"

    return re.sub(r"(?s)<!-- begin ([\w-]+) -->\n.*?<!-- end \1 -->", fresh, text)


def fill(path: Path) -> None:
    path.write_text(filled(path.read_text()))
