"""The Markdown that pages and README take from the code and from data/results: `SNIPPETS`, a function for each."""

import io
import re
import runpy
import tempfile
from contextlib import redirect_stdout
from functools import cache, partial
from math import ceil
from pathlib import Path
from statistics import median

import nbformat
import pandas as pd
import sources
import torch
from papermill import inspect_notebook
from torch.utils.flop_counter import FlopCounterMode

from companion import published
from companion.measure import denoising
from companion.pages import dose, scorecard, table3
from companion.runs import catalogue, pilot, plan
from companion.runs.plan import step_flop
from companion.show import sentences, tables
from companion.verdicts import claims, judge
from companion.verdicts.judge import plain
from odl import paper, results
from odl.data import sets
from odl.experiment import PROFILES, Experiment
from odl.machine import files, store
from odl.network import EncoderDecoder
from odl.schedules import HARD_MINING_WARM_UP

ROOT = Path(__file__).resolve().parents[1]
DATASET, PROFILE = "bsds500", "reference"  # what the book shows
SETS = {"bsds500": "scenes", "celeba10k-native": "faces"}  # shown beside each other where they are measured
SEEDS = list(range(20))
NOT_MEASURED = judge.MISSING
EXERCISES = sorted((ROOT / "book" / "exercises").glob("*.ipynb"))  # of the pages
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))  # and of the notebooks that have one
NOTEBOOKS = [*(path for path in NOTEBOOKS if "```{exercise}" in path.read_text(encoding="utf-8")), *EXERCISES]
PAGES = (ROOT / "README.md", ROOT / "data" / "README.md")  # hold tables between markers


# What is measured


def measured(task: str, *schedules: str, **overrides) -> tuple[results.Result, ...]:
    """The reference runs of some schedules that are on disk, all seeds."""
    wanted = [Experiment.of(task, DATASET, s, k, PROFILE, **overrides) for s in schedules for k in SEEDS]
    return tuple(run for run in map(results.load, wanted) if run)


def shown_on(page: str, task: str = "inpaint") -> tuple[results.Result, ...]:
    """The reference runs of a page that are on disk, all seeds."""
    return tuple(run for run in map(results.load, catalogue.runs(page, task, DATASET, PROFILE, SEEDS)) if run)


def book_runs() -> list[results.Result]:
    """The reference runs of every schedule and task."""
    return [run for task in paper.TASKS for run in measured(task, *published.SCHEDULES, *published.FIXATED)]


def mean_psnr(task: str, schedule: str) -> float | None:
    """Mean PSNR over seeds, trials and levels 1…6; None when nothing is measured."""
    found = [judge.score(run) for run in measured(task, schedule)]
    return sum(found) / len(found) if found else None


def not_restored(task: str) -> float | None:
    """Mean PSNR of the damaged images over levels 1…6; None when nothing is measured."""
    runs = measured(task, "on_demand")
    return judge.score(runs[0], column="psnr_input") if runs else None


def seconds(runs) -> float:
    """Of the processor, where that was less than waiting for it: other work beside a run is none of its own."""
    used = [run.provenance["seconds"] for run in runs]
    return sum(s["evaluate"] + min(s[name] for name in ("train", "train_core") if name in s) for s in used)


def db11(system: str) -> float | None:
    """Mean PSNR over the eleven images and all seeds at σ = 25, noise not clipped, as published."""
    rows = table3.table([system], profile=PROFILE, ours=denoising.our_runs(PROFILE, seeds=SEEDS), measure=False)
    psnr = rows.psnr[~rows.clipped].mean()
    return None if pd.isna(psnr) else psnr


def from_table(notebook: str, task: str, row: str, column: str) -> float | None:
    """A number of a table that a notebook has written, None where it has not; rows go by their first column."""
    path = tables.table_path(notebook, PROFILE, DATASET, task)
    if not path.exists():
        return None
    value = pd.read_csv(store.used(path), index_col=0)[column].get(row)
    return None if pd.isna(value) else value


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


flops = partial(plan.size, units={"PFLOP": 1e15, "TFLOP": 1e12, "GFLOP": 1e9, "MFLOP": 1e6})


def decibels(*values: float | None) -> str:
    if not any(values):
        return NOT_MEASURED
    return "\u00a0/\u00a0".join("–" if value is None else f"{value:.2f}" for value in values)  # not broken over lines


# The results table


def result_rows() -> list[tuple]:
    """(place in the paper, notebook, parameters, the paper's number, ours, runs that made ours) of each row."""
    rows = []
    for task in paper.TASKS:
        shown = ("on_demand", "fixated_easy", "fixated_hard")
        figure = "Supp. D" if task == "denoise" else "Fig. 4"
        place = f"{figure}, {plain(task)}: on-demand / fixated on easy / fixated on hard / not restored"
        rows.append((place, "fixation", {"task": task}, "curves only", means(task, *shown), shown_on("fixation", task)))
    for task in paper.TASKS:
        pair = ("on_demand", "rigid_joint")
        table = "Supp. E" if task == "denoise" else "Table 1"
        place = f"{table}, {plain(task)}: on-demand / rigid joint / not restored"
        celeba, sun397 = (decibels(*(published.TABLE1[task][s][k][1] for s in pair)) for k in (0, 1))
        printed, runs = f"CelebA {celeba}<br>SUN397 {sun397}", shown_on("table1", task)
        rows.append((place, "table1", {"task": task}, printed, means(task, *pair), runs))
    on_demand = [run for run in shown_on("allocation") if run.experiment["seed"] == SEEDS[0]]  # as its command has it
    shares = [share for run in on_demand for share in run.history[-1]["allocation"]]  # of the last epoch
    last = f"{min(shares):.1f} to {max(shares):.1f} % a level" if shares else NOT_MEASURED
    every_k = dose.table(catalogue.every_k(PROFILE, DATASET, SEEDS)).set_index(["task", "k"]).margin["inpaint"]
    margins = [NOT_MEASURED if pd.isna(every_k[k]) else judge.signed(every_k[k]) for k in (1, 4)]
    sharper = [run for k in catalogue.DOSES for run in measured("inpaint", "on_demand", sharpness=k)]
    halves = (from_table("extra_data", "inpaint", row, "psnr") for row in ("on-demand, half", "rigid joint, all"))
    holes = (from_table("table2", "inpaint", "on_demand", block) for block in ("central_psnr", "arbitrary_psnr"))
    papers_holes = decibels(*(psnr for _, psnr in published.TABLE2["on_demand"]))
    systems, photographs = ("on_demand", "fixated", "bm3d"), {"photographs": "db11"}
    long = denoising.our_systems(PROFILE)["on_demand"]
    steps = long.epochs * long.iterations
    papers_means = decibels(*pd.DataFrame(published.TABLE3).mean(axis=1)[list(systems)])
    # fmt: off
    return rows + [
        ("Sec. 6.6: allocation at the end, 20 % each at first",
         "allocation", {}, "more to harder levels", last, on_demand),
        ("Dose, inpainting: margin over equal shares of Equation 3; of 1/P⁴",
         "dose", {"task": "inpaint"}, judge.span(claims.paper_gaps("on_demand", "rigid_joint", ["inpaint"])),
         "; ".join(margins), [*sharper, *measured("inpaint", "on_demand", "rigid_joint")]),
        ("Fig. 2 and 5, Supp. C and G: restored images", "qualitative", {}, "pictures", "pictures", ()),
        ("Sec. 6.6, inpainting: on-demand on half / rigid joint on all images",
         "extra_data", {"task": "inpaint"}, "first ahead", decibels(*halves), shown_on("extra_data")),
        ("Table 2, on-demand inside the hole: centre / anywhere", "table2", {}, papers_holes, decibels(*holes), ()),
        (f"Table 3, mean of eleven: on-demand / fixated at 25 (both after {steps:,} steps) / BM3D",
         "table3", photographs, papers_means, decibels(*map(db11, systems)),
         shown_on("table3")),
        ("Fig. 6: PSNR against σ", "db11_spectrum", photographs, "curves only", "curves", ()),
        ("Supp. H: Lena and all photographs", "gallery", photographs, "pictures", "pictures", ()),
        ("Supp. F: scars and objects removed", "applications", {}, "pictures", "pictures", ()),
        ("every claim, one by one", "scorecard", {}, "–", "verdicts", ()),
    ]
    # fmt: on


def means(task: str, *schedules: str) -> str:
    """Mean PSNR of some schedules, and of the damaged images."""
    return decibels(*(mean_psnr(task, schedule) for schedule in schedules), not_restored(task))


def options(notebook: str, given: dict) -> dict:
    """The parameters that make a row: those that the notebook declares, at the scale of the book."""
    declared = inspect_notebook(ROOT / "notebooks" / f"{notebook}.ipynb")
    values = given | {"dataset": DATASET, "profile": PROFILE, "seeds": sources.seeds()}
    return {name: value for name, value in values.items() if name in declared}


def results_table(book=True) -> str:
    """The book links to executed pages, with the parameters of a row; README links to notebooks, with commands."""
    rows = []
    for place, notebook, given, printed, ours, runs in result_rows():
        values = options(notebook, given)
        if book:
            page = f"{notebook}-{given['task']}" if notebook == "table1" else notebook
            own = [f"<br>`-p {k} {sources.word(v)}`" for k, v in values.items() if k not in ("dataset", "profile")]
            where = [f"{{doc}}`{notebook} </notebooks/{page}>`{''.join(own)}"]
        else:
            command = sources.papermill(notebook, values | {"train": False})
            where = [f"[{notebook}](notebooks/{notebook}.ipynb)", f"`{command}`"]
        time = f"{duration(seconds(runs))}, {len(runs)} {'run' if len(runs) == 1 else 'runs'}" if runs else "–"
        rows.append([place, *where, printed, ours, time.replace(" min", "\u00a0min").replace(" run", "\u00a0run")])
    columns = ["Notebook and parameters"] if book else ["Notebook", "Command"]
    return markdown(["In the paper", *columns, "Paper", "Here", "Time"], rows)


def scale() -> str:
    """What the reference numbers were measured with."""
    runs = book_runs()
    return (
        sentences.scale(runs)[:-1] + ", unless told otherwise." if runs else f"The reference runs are {NOT_MEASURED}."
    )


def verdicts() -> str:
    """The scorecard's measured claims, a line each, the core ones first."""
    card = claims.score_all(claims.load(PROFILE, DATASET, SEEDS))
    lines = [scorecard.counted(card), ""]
    for row in card[(card.kind != claims.BUILT_IN) & (card.verdict != judge.MISSING)].itertuples():
        word = row.verdict if row.verdict == judge.UNDECIDED else f"**{row.verdict}**"
        lines.append(f"- {word}: “{row.claim}” Here: {row.measured}. Paper: {row.paper}.")
    return "\n".join(lines)


def tasks() -> str:
    """The levels and the severities of the fixated models."""
    rows = [
        [facts["title"], facts["severity"], *(f"{a}–{b}" for a, b in facts["levels"]), facts["easy"], facts["hard"]]
        for facts in paper.TASKS.values()
    ]
    header = ["Task", "Severity", *(f"Level {n}" for n in range(1, 7)), "Fixated on easy", "Fixated on hard"]
    return markdown(header, rows)


# The network, counted on the network itself


@cache
def layers(channels: int, width: int) -> list[tuple[str, int, int, int, int]]:
    """(name, output channels, output side, parameters, FLOP for one image) of each layer, with its BatchNorm."""
    with torch.device("meta"):
        network, x = EncoderDecoder(channels, width), torch.zeros(1, channels, 64, 64)
    parts = {f"down {i + 1}": network.encoder[3 * i : 3 * i + 3] for i in range(4)}
    parts |= {"channel-wise": network.bottleneck}
    parts |= {f"up {i + 1}": network.decoder[3 * i : 3 * i + 3] for i in range(4)}
    found = []
    for name, part in parts.items():
        with FlopCounterMode(display=False) as counted:
            x = part(x)
        parameters = sum(p.numel() for p in part.parameters())
        found.append((name, *x.shape[1:3], parameters, counted.get_total_flops()))
    return found


def run_flop(p: dict) -> int:
    """Of a whole training run, by the numbers of a profile or of an experiment."""
    channels = 1 if p.get("task") == "denoise" else 3
    return p["epochs"] * p["iterations"] * step_flop(channels, p["width"], p["batch_size"])


def parameter_counts() -> str:
    colour, grey = layers(3, 64), layers(1, 64)
    rows = [
        [name, f"{c} × {side} × {side}", f"{count:,}", f"{other:,}", flops(flop)]
        for (name, c, side, count, flop), (*_, other, _) in zip(colour, grey, strict=True)
    ]
    totals = [f"{sum(layer[3] for layer in found):,}" for found in (colour, grey)]
    totals.append(flops(sum(layer[4] for layer in colour)))
    rows.append(["**all**", "", *(f"**{total}**" for total in totals)])
    return markdown(["Layer", "Output (RGB)", "Parameters, RGB", "Parameters, grey", "Arithmetic, one image"], rows)


# Profiles and cost


def falling(profile: dict) -> str:
    """How the learning rate ends, in words; empty where it stays."""
    return f", falling linearly to 0 over the last {profile['decay']:.0%} of training" if profile["decay"] else ""


MEANT_FOR = {
    "smoke": "the tests: every notebook in seconds",
    "demo": "a laptop: one task's seven schedules in minutes",
    "reference": "the numbers of this book",
    "gpu": "half an hour of one GPU",
    "paper": "the paper's full protocol, on a GPU",
}


def profiles_table() -> str:
    rows = []
    for name, p in PROFILES.items():
        steps, evaluation = f"{p['epochs']:,} × {p['iterations']:,}", f"{p['test_images']:,} × {p['trials']}"
        rate, arithmetic = f"{p['learning_rate']:g}{falling(p)}", flops(run_flop(p))
        rows.append([f"`{name}`", p["width"], p["batch_size"], steps, rate, evaluation, arithmetic, MEANT_FOR[name]])
    header = ["Profile", "Width f", "Images a batch", "Epochs × steps", "Learning rate"]
    return markdown([*header, "Test crops × trials", "One run", "Meant for"], rows)


def departures() -> str:
    """What the profile of the book has otherwise than the paper's, and why."""
    both = PROFILES["paper"], PROFILES[PROFILE]

    def each(name):
        return [f"{p[name]:,}" for p in both]

    steps = [p["epochs"] * p["iterations"] for p in both]
    rates = [f"{p['learning_rate']:g}{falling(p) or ', constant'}" for p in both]
    arithmetic = [step_flop(3, p["width"], 1) for p in both]
    drawn = [p["batch_size"] * n * HARD_MINING_WARM_UP / p["pool_images"] for p, n in zip(both, steps, strict=True)]
    # fmt: off
    rows = [
        ["Width f of the network", *each("width"), f"{arithmetic[0] / arithmetic[1]:.1f} times less arithmetic"],
        ["Images a batch", *each("batch_size"), "More steps for the same arithmetic; the fractions that Equation 3 "
         "asks for are carried to the next batch"],
        ["Learning rate", *rates, "A short run needs a high rate to leave its start, and an end without one to settle: "
         "at a constant rate scores jump from epoch to epoch by more than on-demand and rigid joint learning differ"],
        ["Training steps", *(f"{n:,}" for n in steps), "What two cores can do for every schedule, task and seed"],
        ["Precision of products", "not stated", both[1]["precision"], "Speed; weights and statistics stay in 32 bits. "
         "It is part of an experiment, so that no pair mixes two"],
        ["Pool of hard mining", *each("pool_images"), "The share of training spent on the whole pool is the paper's, "
         f"so a shorter run meets an item less often: {drawn[1]:.0f} times on average, the paper's {drawn[0]:.0f}"],
        ["Validation crops a level", *each("validation_images"), "Time of an epoch"],
        ["Test crops", *each("test_images"), "The test photographs are fewer: each is cropped several times"],
    ]
    # fmt: on
    return markdown(["", "Paper", f"`{PROFILE}`", "Why"], rows)


def piloted() -> str:
    """What the pilot measured, with one number of the book's profile changed at a time."""
    table = pilot.table(DATASET)
    if table.empty:
        return f"The pilot is {NOT_MEASURED}: `python -m companion reproduce` does it."
    rows = [
        [row.contestant, plain(row.task), f"{row.steps:,}", f"{row.core_seconds:,.0f}", *map("{:.2f}".format, row[5:])]
        for row in table.itertuples()
    ]
    header = ["Profile", "Task", "Steps", "Core-seconds", "Validation", "Test"]
    return markdown(header, rows)


GRID = 2 * len(paper.TASKS) * (len(published.SCHEDULES) + len(published.FIXATED))  # the paper's runs on two data sets


def cost() -> str:
    """What the paper's protocol costs, from counted arithmetic and measured speed."""
    p = PROFILES["paper"]
    run, steps = run_flop(p), p["epochs"] * p["iterations"]
    speeds = [[f"{t:g} TFLOP/s", duration(run / t / 1e12), duration(GRID * run / t / 1e12)] for t in (1, 10, 50, 200)]
    state = plan.STATES * 4 * sum(layer[3] for layer in layers(3, p["width"])) / 1e6
    step = flops(step_flop(3, p["width"], p["batch_size"]))
    text = f"""One run at the paper's scale is {flops(run)}: {steps:,} steps of {step}.
Nine schedules, four tasks and two data sets make {GRID} runs.

{markdown(["Sustained training speed", "One run", f"All {GRID} runs"], speeds)}

Weights and Adam's two moments take {state:.0f} MB, and so does a checkpoint."""
    runs = book_runs()
    if not runs:
        return text
    e, speed = runs[0].experiment, median(run_flop(r.experiment) / r.provenance["seconds"]["train"] for r in runs)
    return f"""{text}

The reference runs sustained {speed / 1e9:.0f} GFLOP/s each on {runs[0].provenance["device"]} at width {e["width"]} \
in {e["precision"]} (median of {len(runs)} runs).
At that speed one run at the paper's scale would take {duration(run / speed)}."""


MS_PER_STEP = 1.0  # of the plan; times grow in proportion to it
FLEETS = (1, 8, 64)


def plans() -> str:
    """What `python -m companion plan` says of a few numbers of GPUs."""
    sets = ["celeba", "sun397"]
    named = {gpus: dict(plan.lines(plan.plan("paper", sets, [0], gpus, MS_PER_STEP))) for gpus in FLEETS}
    rows = [[name, *(named[gpus][name] for gpus in FLEETS)] for name in named[FLEETS[0]]]
    own, shared = [row for row in rows if len({*row[1:]}) > 1], [row[:2] for row in rows if len({*row[1:]}) == 1]
    header = [f"{MS_PER_STEP:g} ms a step", *(f"{gpus} GPU{'s' * (gpus > 1)}" for gpus in FLEETS)]
    return "\n".join([markdown(header, own), "", markdown(["Whatever the number of GPUs", ""], shared)])


def lessons() -> str:
    """What the commands of the teaching page take, from data/results/teaching.json."""
    steps = files.unseal(store.used(files.results() / "teaching.json"))["steps"]
    rows = []
    for name, step in steps.items():
        cost = duration(step["cpu_seconds"]), f"{step['memory_gb']:.1f} GB"
        rows.append([f"**{name}**", f"`{step['command']}`", *cost])
    origin = next(iter(steps.values()))["provenance"]
    table = markdown(["Step", "Command", "Processor time", "Memory"], rows)
    return f"{table}\n\nMeasured on {origin['threads']} cores ({origin['processor']}), on the demo photographs."


def first_command() -> str:
    """How long README's first command takes: Table 1 on the demo photographs, of which one run was there when timed."""
    step, runs = files.unseal(files.results() / "teaching.json")["steps"]["table1"], len(published.SCHEDULES)
    minutes = ceil(step["seconds"] * runs / (runs - 1) / 60)
    return f"That takes about {minutes} minutes on {step['provenance']['threads']} cores, without a GPU or a download."


def tried(name: str) -> str:
    """The rows of a results file as a table."""
    found = files.unseal(store.used(files.results() / f"{name}.json"))["rows"]
    rows = [row.get("versions", row) | row.get("checks", {}) for row in found]
    return markdown(list(rows[0]), [list(row.values()) for row in rows])


# Data and variants


TERMS = {
    "demo": "ship with scikit-image, whose docstrings give their origins; read on this machine, never copied here",
    "bsds500": "non-commercial research and education",
    "celeba": "non-commercial research, no redistribution of any portion",
    "celeba10k": "as celeba, of which it is a portion",
    "sun397": "non-commercial research",
    "db11": "no licence stated: never redistribute",
}


def data_table(book=True) -> str:
    rows = []
    for name, entry in sets.DATASETS.items():
        url = entry.get("url", "").removesuffix("/")
        url = re.sub(r"raw\.githubusercontent\.com/([^/]+/[^/]+)/", r"github.com/\1/tree/", url)
        where = entry.get("where") or (f"<{url}>" if url else "inside the package scikit-image")
        where = where.replace("/", "/<wbr>") if book and "<" not in where else where  # a narrow page breaks it there
        rows.append([f"`{name}`", entry["title"], where, entry["size"], TERMS[name]])
    return markdown(["Name", "What", "Where from", "Size", "Terms"], rows)


def checksums() -> str:
    rows = []
    for name, entry in sets.DATASETS.items():
        if "md5" in entry:
            rows.append([f"`{entry['archive']}`", f"MD5 `{entry['md5']}`"])
        if "sha256" in entry:
            rows.append([f"`{name}`: hashes and names of all files", f"SHA-256 `{entry['sha256']}`"])
    return markdown(["File", "Checksum"], rows)


# Exercises


def exercises() -> str:
    """What a class can do: every exercise with its minutes and its difficulty, the short ones first."""
    rows = []
    for path in NOTEBOOKS:
        [task] = [c.source for c in nbformat.read(path, as_version=4).cells if "```{exercise}" in c.source]
        [(title, label, minutes, how)] = re.findall(r"\{exercise\} (.*)\n:label: (\S+)\n\n\*(\d+) minutes, (\w+)", task)
        [question] = re.findall(r"(?s)\*\*Predict\.\*\* (.*?)\n\n", task)
        page = label.replace("table1", "table1-inpaint")  # one of the four pages of this notebook has it
        first = " ".join(question.split()).partition("?")[0]
        rows.append([f"{minutes} min, {how}", f"{{ref}}`{title} <{page}>`, `{path.stem}`", f"{first}?"])
    return markdown(["Takes", "Exercise and notebook", "Predict"], sorted(rows))


def exercise(path: Path) -> str:
    """MyST: the exercise of a page and, of the same notebook, the solution with what it prints; its tests must pass."""
    notebook = nbformat.read(path, as_version=4)
    _, task, imports, *cells, text = (sources.MARK.sub("", cell.source) for cell in notebook.cells)
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "solution.py")
        script.write_text("\n\n".join([imports, *cells]), encoding="utf-8")
        try:
            with redirect_stdout(said):
                runpy.run_path(str(script))
        except FileNotFoundError:  # of a results file
            said.truncate(0)
    code = re.sub(r"from companion import notebook\n?", "", imports).strip() + f"\n\n{cells[0].strip()}"
    shown = f"```python\n{code}\n```\n\n```text\n{said.getvalue().rstrip() or NOT_MEASURED}\n```"
    return f"{task}\n\n````{{solution}} ex-{path.stem}\n:class: dropdown\n\n{shown}\n\n{text.strip()}\n````"


# fmt: off
SNIPPETS = {
    "results-table": results_table,
    "tasks-table": tasks, "parameter-counts": parameter_counts, "profiles-table": profiles_table,
    "departures": departures, "pilot": piloted, "cost": cost, "plans": plans,
    "lessons": lessons, "exercises": exercises, "data-table": data_table, "checksums": checksums,
}
# fmt: on
SNIPPETS |= {f"exercise-{path.stem}": partial(exercise, path) for path in EXERCISES}
SNIPPETS |= {name: partial(tried, name) for name in ("platforms", "pictures", "colour")}


README = {"scale": scale, "verdicts": verdicts}
README |= {
    "first-command": first_command,
    "results-table": partial(results_table, book=False),
    "data-table": partial(data_table, book=False),
}


def filled(text: str) -> str:
    """`text` of a README with every `<!-- begin NAME -->` … `<!-- end NAME -->` filled anew."""

    def fresh(match):
        return f"<!-- begin {match[1]} -->\n{(SNIPPETS | README)[match[1]]()}\n<!-- end {match[1]} -->"

    return re.sub(r"(?s)<!-- begin ([\w-]+) -->\n.*?<!-- end \1 -->", fresh, text)
