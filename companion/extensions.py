"""Beyond the paper: continuous levels, N sub-tasks, sharper feedback, mixtures of distortions (Sec. 6.2 and 7).

The paper names these as future work. A run here is the paper's with one thing changed, and pairs with it by seed.
"""

from dataclasses import dataclass, fields, replace
from functools import partial
from math import ceil

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.ticker import PercentFormatter
from scipy.integrate import cumulative_trapezoid, trapezoid

from companion import judge, sweep
from companion.figures import level_names, picture_grid
from companion.judge import WITHIN, number, score, signed
from companion.prose import scale
from companion.tables import show_table
from odl import crops, paper, results
from odl.corruptions import TASKS
from odl.evaluation import LEVELS, evaluate
from odl.experiment import Experiment
from odl.machine import store
from odl.parameters import choice, flag, integer
from odl.results import Result
from odl.schedules import allocate_batches, dose, on_demand
from odl.training import Step, Trained, build, fit, train_epoch, validate
from odl.windows import restorer

N_VALUES = (2, 5, 10, 20)
K_VALUES = (0, 1, 4, 16)  # the paper's shares hardly move at k = 1; 16 moves half of a batch
MIXTURE = ("inpaint", "interpolate", "deblur")  # the three tasks on colour images
FEEDBACK = ("levels", "tasks")
GRID = 2001  # points on which a density is integrated
SCALE = {  # in place of the profile's numbers: 28 runs in seconds, and in half an hour of one CPU core
    "smoke": {"width": 4, "iterations": 1, "batch_size": 20, "validation_images": 4, "test_images": 4},
    "reference": {"epochs": 10, "iterations": 20, "validation_images": 100, "trials": 3},
}


@dataclass(frozen=True)
class Extension(Experiment):
    """A run that goes beyond the paper; with every default it is the paper's run of the same name.

    `levels` is N. `continuous` draws severities from a density in place of levels.
    `mixture` joins tasks by +, and each image gets one of them; `feedback` decides over tasks × `levels` or over
    `tasks` alone.
    """

    levels: int = paper.N_LEVELS
    continuous: bool = False
    mixture: str = ""
    feedback: str = "levels"

    def __post_init__(self):
        super().__post_init__()
        choice("schedule", self.schedule, ("on_demand", "rigid_joint"))
        choice("variant", self.variant, ("paper",))
        integer("levels", self.levels, 1, 100)
        flag("continuous", self.continuous)
        choice("feedback", self.feedback, FEEDBACK)
        for task in self.tasks[1:]:
            choice("mixture", task, MIXTURE)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.mixture.split("+")) if self.mixture else (self.task,)


def runs(task: str, dataset: str, profile: str, seeds: list[int]) -> dict[str, list[Extension]]:
    """Every run of the page by name, a list with one per seed."""
    of = partial(Extension.of, dataset=dataset, profile=profile, **SCALE.get(profile, {}))
    given = {"task": task, "schedule": "on_demand"}
    variants = {"rigid joint": given | {"schedule": "rigid_joint"}, "on-demand": given}
    variants |= {"continuous": given | {"continuous": True}}
    variants |= {f"N = {n}": given | {"levels": n} for n in N_VALUES}
    variants |= {f"k = {k}": given | ({"sharpness": k} if k else {"schedule": "rigid_joint"}) for k in K_VALUES}
    variants |= {f"specialist: {name}": given | {"task": name} for name in MIXTURE}
    mixed = given | {"task": MIXTURE[0], "mixture": "+".join(MIXTURE)}
    variants |= {"mixture, rigid joint": mixed | {"schedule": "rigid_joint"}, "mixture, on-demand": mixed}
    variants |= {"mixture, on-demand over tasks": mixed | {"feedback": "tasks"}}
    longer = len(MIXTURE) * of(**given).epochs
    variants |= {"mixture, on-demand, longer": mixed | {"epochs": longer}}
    return {name: [of(**(v | {"seed": seed})) for seed in seeds] for name, v in variants.items()}


# Sub-tasks and densities


def severity_range(task: str) -> tuple[float, float]:
    """Where the severities of levels 1…5 begin and end; a missing side of s pixels stands for [s, s + 1)."""
    levels = paper.TASKS[task]["levels"]
    return levels[0][0], levels[paper.N_LEVELS - 1][1] + whole(task)


def whole(task: str) -> int:
    """1 where severities are whole numbers, else 0."""
    return int(task == "inpaint")


def intervals(task: str, n: int) -> list[tuple[float, float]]:
    """Lowest and highest severity of n equal sub-tasks; for n = 5 the paper's levels."""
    edges = np.linspace(*severity_range(task), n + 1)
    return [(float(low), float(high) - whole(task)) for low, high in zip(edges, edges[1:], strict=False)]


def sub_tasks(run: Extension) -> list[tuple]:
    """(task, lowest severity, highest severity) of every sub-task of a run, the tasks one after another."""
    return [(TASKS[task], *interval) for task in run.tasks for interval in intervals(task, run.levels)]


def weights(run: Extension, psnr=None) -> np.ndarray:
    """P_i^-k from the last validation PSNR in dB of each sub-task, or of its whole task: (tasks, N); equal at first."""
    shape = (len(run.tasks), run.levels)
    if psnr is None or run.schedule == "rigid_joint":
        return np.ones(shape)
    p = np.reshape(psnr, shape)
    if run.feedback == "tasks":
        p = np.broadcast_to(p.mean(1, keepdims=True), shape)
    return on_demand(0, p, run.levels) ** run.sharpness  # Eq. 3 at sharpness 1


def shares_of(run: Extension, psnr=None) -> np.ndarray:
    """Share of a batch of each sub-task in per cent, before images are whole: (tasks · N,)."""
    w = weights(run, psnr).flatten()
    return 100 * w / w.sum()


def density(psnr, task: str, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Severities and a density on them that follows P^-k; P lies in the middle of each sub-task, linear between.

    psnr: dB per sub-task, None for a uniform density. Outside the first and the last middle P is constant.
    """
    severity = np.linspace(*severity_range(task), GRID)
    if psnr is None:
        p = np.ones(GRID)
    else:
        middles = (np.arange(len(psnr)) + 0.5) / len(psnr) * np.ptp(severity) + severity[0]
        p = on_demand(0, np.interp(severity, middles, psnr), GRID) ** sharpness
    return severity, p / trapezoid(p, severity)


def quantiles(severity, p, n: int) -> np.ndarray:
    """Edges of n intervals that hold the same share of a density: (n + 1,)."""
    cumulative = cumulative_trapezoid(p, severity, initial=0)
    return np.interp(np.linspace(0, 1, n + 1), cumulative / cumulative[-1], severity)


def divide(run: Extension, psnr=None) -> tuple[np.ndarray, np.ndarray]:
    """The batches of an epoch (n, B, 3), and the mean images of a batch per sub-task, from the last PSNR in dB.

    An image has the number of its task, its lowest and its highest severity. Fractions of an image are carried as in
    `allocate_batches`. Continuous: one batch for all, in which image j draws from the interval that holds the j-th of
    B equal shares of the density, so that it follows the density as exactly as B images can.
    """
    if run.continuous:
        edges = quantiles(*density(psnr, run.task, run.sharpness), run.batch_size)
        batch = np.stack([np.zeros(run.batch_size), edges[:-1], edges[1:] - whole(run.task)], 1)
        bins = np.linspace(*severity_range(run.task), run.levels + 1)
        return batch[None], np.histogram((edges[:-1] + edges[1:]) / 2, bins)[0]
    counts = allocate_batches(weights(run, psnr).flatten(), run.batch_size, run.iterations)[0]
    rows = np.array([(i, *bounds) for i, task in enumerate(run.tasks) for bounds in intervals(task, run.levels)])
    which = np.tile(np.arange(len(rows)), run.iterations).repeat(counts.flatten())
    return rows[which].reshape(run.iterations, run.batch_size, 3), counts.mean(0)


# Training


class MixedStep(Step):
    """A training step in which each image has a task of its own; with a single task it is the paper's step."""

    def __init__(self, run, *rest):
        super().__init__(run, *rest)
        self.which = torch.zeros_like(self.index)  # number of each image's task

    def assign(self, batches: np.ndarray) -> None:
        """Say to which task and between which severities the images of the coming batches (n, B, 3) belong."""
        self.tasks, self.lows, self.highs = torch.from_numpy(batches).to(self.low).unbind(2)

    def select(self, i: int, index) -> None:
        super().select(i, index)
        self.which.copy_(self.tasks[i % len(self.tasks)])

    def draw(self):
        """Every task corrupts every image and keeps its own, so that the draws do not depend on who gets what."""
        tasks = [TASKS[name] for name in self.experiment.tasks]
        if len(tasks) == 1:
            return super().draw()
        x = y = crops.crop(self.pack, self.index, self.generator)
        for i, task in enumerate(tasks):
            corrupted = task.corrupt_between(x, self.low, self.high, self.generator)
            y = torch.where((self.which == i).view(-1, 1, 1, 1), corrupted, y)
        return x, y


def train(run: Extension, device="cpu", progress=None) -> Trained:
    """Train one run, resuming from its checkpoint if there is one, as `odl.training.train`.

    psnr, allocation (in per cent of a batch) and dose of the history are over all sub-tasks.
    """

    def epochs(state):
        step = MixedStep(run, state.network, state.optimizer, state.pack)
        for epoch in range(len(state.history), run.epochs):
            batches, counts = divide(run, state.history[-1]["psnr"] if state.history else None)
            loss = train_epoch(step, epoch, batches, progress)
            scores = validate(run, state.network, state.x_validation, device, sub_tasks(run))
            allocated = (100 * counts / run.batch_size).round(6).tolist()
            yield {"loss": loss, "psnr": scores, "allocation": allocated, "dose": dose(counts)}

    state = fit(run, build, epochs, device)
    return Trained(state.network.eval(), None, state.history)


def evaluate_tasks(run: Extension, trained: Trained, device, progress) -> dict:
    """The scores on the paper's six levels of every task of a run, as its result holds them."""
    restore, n, frames = restorer(trained.network, run.precision, device), len(run.tasks), []
    for i, task in enumerate(run.tasks):
        share = progress and (lambda done, i=i: progress((i + done) / n))
        single = replace(run, task=task, mixture="")
        frames.append(evaluate(single, restore, device, share)[0].assign(task=task))
    return {"evaluation": results.rounded(pd.concat(frames, ignore_index=True))}


def run_or_load(run: Extension, device="auto", progress=None) -> Result:
    """The result from disk, else train, evaluate and write it; a run as in the paper is left to `odl.results`."""
    if run.asdict() == plain(run).asdict():
        return results.run_or_load(plain(run), device, progress)

    def measure():
        return results.train_and_evaluate(run, train, evaluate_tasks, device, progress)

    path = results.path_of(run)
    return results.as_result(store.run_or_load(path, run.asdict(), measure), path)


def plain(run: Extension) -> Experiment:
    """The paper's run with the same numbers."""
    return Experiment(**{f.name: getattr(run, f.name) for f in fields(Experiment)})


def job_of(run: Extension) -> sweep.Job:
    """The job that trains and evaluates one run."""
    training = run.epochs * (3 * run.iterations + validation_batches(run))
    evaluation = len(run.tasks) * run.trials * len(LEVELS) * ceil(run.test_images / run.batch_size)
    one = sweep.Measurement(partial(results.load, run), partial(run_or_load, run), training + evaluation)
    return sweep.Job(run.run_id, (one,), run)


def measure(runs: dict[str, list[Extension]], device="auto", train=True) -> pd.DataFrame:
    """The `gaps` of all runs; what is missing is trained with one progress bar, with `train` false it is left out."""
    if train:
        sweep.run_jobs([job_of(run) for run in dict.fromkeys(run for seeds in runs.values() for run in seeds)], device)
    return gaps(runs)


def validation_batches(run: Extension) -> int:
    """Batches passed forward after each epoch."""
    return len(run.tasks) * run.levels * ceil(run.validation_images / run.batch_size)


# What came out


QUESTIONS = {  # question → (run, the run beside which it is judged), each on the page's task
    "continuous levels": [("continuous", "on-demand"), ("rigid joint", "on-demand")],
    "number of sub-tasks": [(f"N = {n}", "on-demand") for n in N_VALUES if n != paper.N_LEVELS],
    "sharpness": [(f"k = {k}", "on-demand") for k in K_VALUES if k != 1],
    "mixture: feedback": [
        ("mixture, on-demand", "mixture, rigid joint"),
        ("mixture, on-demand over tasks", "mixture, rigid joint"),
    ],
    "mixture: specialists": [
        (mixed, f"specialist: {task}")
        for mixed in ("mixture, on-demand", "mixture, on-demand, longer")
        for task in MIXTURE
    ],
}
COLUMNS = ["question", "run", "against", "tasks", "seed", "psnr", "gap"]


def gaps(runs: dict[str, list[Extension]]) -> pd.DataFrame:
    """Mean PSNR (dB) over levels 1…6 of each measured run, and its gap to the run of the same seed beside it.

    Columns question, run, against, tasks (on which both are measured), seed, psnr, gap.
    """
    rows = []
    for question, pairs in QUESTIONS.items():
        for one, other in pairs:
            for a, b in zip(map(results.load, runs[one]), map(results.load, runs[other]), strict=True):
                if a and b:
                    tasks = tuple(t for t in runs[one][0].tasks if t in runs[other][0].tasks)
                    psnr, beside = (np.mean([score(on_task(r, t)) for t in tasks]) for r in (a, b))
                    seed = a.experiment["seed"]
                    rows.append((question, one, other, "+".join(tasks), seed, psnr, psnr - beside))
    return pd.DataFrame(rows, columns=COLUMNS)


def on_task(result: Result, task: str) -> Result:
    """The rows of one task of a result."""
    rows = result.evaluation
    return replace(result, evaluation=rows[rows.task == task] if "task" in rows else rows)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per comparison of `gaps`: means over seeds of psnr and gap (dB), and how many seeds."""
    by = frame.groupby(["question", "run", "against", "tasks"], sort=False)
    return by.agg(psnr=("psnr", "mean"), gap=("gap", "mean"), seeds=("seed", "count")).reset_index()


def validation_share(run: Extension) -> float:
    """Share of training's arithmetic that validation takes; a backward pass counts as two forward ones."""
    images = len(run.tasks) * run.levels * run.validation_images
    return images / (images + 3 * run.iterations * run.batch_size)


def cost(runs: dict[str, list[Extension]]) -> pd.DataFrame:
    """Columns N and the share of validation in the arithmetic of an epoch, in these runs and in the paper's."""
    rows = []
    for n in N_VALUES:
        ours = runs[f"N = {n}"][0]
        theirs = Extension.of(ours.task, ours.dataset, profile="paper", levels=n)
        rows.append((n, validation_share(ours), validation_share(theirs)))
    return pd.DataFrame(rows, columns=["N", "ours", "paper"])


def moved(result: Result) -> float:
    """Per cent of the last batches that is not where equal shares would have it."""
    allocated = np.array(result.history[-1]["allocation"])
    return np.abs(allocated - allocated.mean()).sum() / 2


def sentences(frame: pd.DataFrame, runs: dict[str, list[Extension]]) -> str:
    """What this demonstration measured, from `gaps`, with the scale and what is missing; no verdict."""
    if frame.empty:
        return "Nothing is measured at this scale."
    parts = ["A demonstration: runs this short decide nothing, and no verdict is drawn from them.\n"]
    for question, rows in summary(frame).groupby("question", sort=False):
        words = [f"{row.run} − {row.against} {signed(row.gap)}" for row in rows.itertuples()]
        parts.append(f"- **{question.capitalize()}.** {'; '.join(words)}.")
    shares = cost(runs).set_index("N")
    ends = [
        f"{shares.loc[n, 'ours']:.0%} at N = {n} (the paper's epochs: {shares.loc[n, 'paper']:.1%})" for n in (5, 20)
    ]
    parts.append(f"- **Cost of N.** Validation takes {' and '.join(ends)} of the arithmetic.")
    last = {k: result for k in K_VALUES for result in map(results.load, runs[f"k = {k}"][:1]) if result}
    shifts = [f"{moved(result):.1f} % with k = {k}" for k, result in last.items() if k]
    parts.append(f"- **Share of a batch moved** from equal shares, last epoch: {', '.join(shifts) or '–'}.")
    found = [result for name in runs for result in map(results.load, runs[name]) if result]
    absent = [name for name in runs if not all(map(results.load, runs[name]))]
    parts += ["", scale(found), f"The longer mixture trains {len(MIXTURE)} times as long."]
    return "\n".join(parts + ([f"Not measured for every seed: {', '.join(absent)}."] if absent else []))


GIVEN = (36, 33, 30, 27, 24)  # dB: made-up scores of levels 1 to 5 with a large gap
SEED_MARKS = "os^Dv"
N_COLOURS = dict(zip(N_VALUES, ("#CC79A7", "#D55E00", "#56B4E9", "#009E73"), strict=True))
K_COLOURS = dict(zip(K_VALUES, ("#0072B2", "#D55E00", "#E69F00", "#555555"), strict=True))
MIXED = {"mixture, on-demand": "#D55E00", "mixture, on-demand, longer": "#0072B2"}


def plot_rule(task: str, runs: dict):
    """Before any training, with made-up scores: densities for several N and without levels; images per level for k."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for n in N_VALUES:
        middle = (np.arange(n) + 0.5) / n * paper.N_LEVELS - 0.5
        run = runs[f"N = {n}"][0]
        shares = shares_of(run, np.interp(middle, np.arange(paper.N_LEVELS), GIVEN))
        draw_shares(left, task, shares, color=N_COLOURS[n], label=f"N = {n}", linewidth=3.5 if n == 5 else 1.4)
    draw_density(left, task, GIVEN, color="black", label="continuous", linewidth=1.8)
    left.legend(fontsize=8)
    for k in K_VALUES:
        draw_counts(right, k, shares_of(runs[f"k = {k}"][0], GIVEN))
    right.set(ylabel="per cent of the batch", xlabel="level and its PSNR (dB)")
    right.set_xticks(range(1, 6), [f"{level}\n{p}" for level, p in enumerate(GIVEN, 1)])
    right.legend(fontsize=8)
    return figure


def draw_shares(axis, task: str, counts, **look) -> None:
    """Images per sub-task as a density of severities, 1 where all severities are equally likely."""
    edges = np.linspace(*severity_range(task), len(counts) + 1)
    axis.stairs(np.array(counts) / np.sum(counts) * len(counts), edges, baseline=None, **look)


def draw_density(axis, task: str, psnr, **look) -> None:
    """The density of continuous levels, 1 where all severities are equally likely."""
    severity, p = density(psnr, task)
    axis.plot(severity, p * np.ptp(severity), **look)
    axis.axhline(1, color="0.4", linestyle=":", linewidth=1)
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.9), max(high, 1.1))  # else a shift of a thousandth fills the picture
    axis.set(xlabel=paper.TASKS[task]["severity"], ylabel="density, relative to uniform")


def draw_counts(axis, k, counts) -> None:
    """Per cent of the batch per level with sharpness k."""
    look = {"color": K_COLOURS[k], "linewidth": 1.5 if k else 4, "markersize": 4}  # k = 1 may lie on k = 0
    axis.plot(range(1, len(counts) + 1), 100 * np.array(counts) / np.sum(counts), "o-", label=f"k = {k}", **look)


def plot_mixture(x):
    """Photographs (n, 3, 64, 64), clean and under each task of the mixture at rising levels."""
    levels = torch.arange(len(x)) % paper.N_LEVELS + 1
    rows = {"clean": x}
    rows |= {task: TASKS[task].corrupt(x, levels, torch.Generator().manual_seed(3)) for task in MIXTURE}
    return picture_grid(list(rows.values()), [f"level {level}" for level in levels], list(rows))


def dots(axis, groups: dict, colour="#D55E00", shift=0.0, label=None) -> None:
    """Gaps in dB, a column per group and a mark per seed; in the grey band differences are called equivalent."""
    empty = not axis.lines and not any(groups.values())
    look = {"color": colour, "markersize": 6, "markerfacecolor": "none"}
    for column, margins in enumerate(groups.values()):
        for mark, margin in zip(SEED_MARKS, margins, strict=False):
            axis.plot(column + shift, margin, mark, **look)
    axis.plot([], [], "o", label=label, **look)
    if empty:
        axis.text(0.5, 0.6, "not measured yet", transform=axis.transAxes, ha="center", color="0.4")
    axis.axhspan(-WITHIN, WITHIN, color="0.9", zorder=0, linewidth=0)
    axis.axhline(0, color="0.4", linewidth=1)
    axis.set_xticks(range(len(groups)), list(groups))
    axis.set(xlim=(-0.6, len(groups) - 0.4), ylabel="gap (dB)")
    axis.grid(axis="x", visible=False)


def gaps_of(frame: pd.DataFrame, question: str) -> dict:
    """run → gaps, one per seed."""
    return {run: list(part.gap) for run, part in frame[frame.question == question].groupby("run", sort=False)}


def loaded(runs) -> list:
    return [result for result in map(results.load, runs) if result]


def plot_continuous(task: str, runs: dict):
    """Shares and densities that training ended with, and the gap of continuous levels on each of the six levels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    pairs = [(results.load(a), results.load(b)) for a, b in zip(runs["continuous"], runs["on-demand"], strict=True)]
    for i, (ours, levels) in enumerate(pair for pair in pairs if all(pair)):
        look = {"linestyle": ("-", "--")[i % 2], "linewidth": 1.6}
        names = (None, None) if i else ("five levels", "continuous")
        draw_shares(left, task, levels.history[-1]["allocation"], color="#D55E00", label=names[0], **look)
        draw_density(left, task, ours.history[-1]["psnr"], color="black", label=names[1], **look)
        left.legend(fontsize=8)
        ours, levels = (r.evaluation.groupby("level").psnr.mean()[list(judge.LEVELS)] for r in (ours, levels))
        right.plot(range(6), ours - levels, SEED_MARKS[i], color="black", markerfacecolor="none")
    dots(right, dict.fromkeys(level_names(task), []))
    right.set(xlabel=f"level: {paper.TASKS[task]['severity']}")
    return figure


def plot_numbers(frame: pd.DataFrame, cost: pd.DataFrame):
    """Gap to N = 5 for other N, and what share of an epoch's arithmetic validation takes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    dots(left, gaps_of(frame, "number of sub-tasks"))
    left.set_title("against N = 5", fontsize=10)
    for column, title, colour in (("ours", "these runs", "#D55E00"), ("paper", "the paper's epochs", "#0072B2")):
        right.plot(cost.N, cost[column], "o-", color=colour, label=title)
    right.yaxis.set_major_formatter(PercentFormatter(1))
    right.set(xlabel="N", ylabel="validation's share of arithmetic", ylim=(0, None), xticks=cost.N)
    right.legend(fontsize=8)
    return figure


def plot_sharpness(frame: pd.DataFrame, runs: dict):
    """Images per level in the last epoch for every k, first seed, and the gap to k = 1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for k in K_VALUES:
        for result in loaded(runs[f"k = {k}"][:1]):
            draw_counts(left, k, result.history[-1]["allocation"])
            left.legend(fontsize=8)
    left.set(xlabel="level", ylabel="per cent of the batch", xticks=range(1, 6))
    dots(right, gaps_of(frame, "sharpness"))
    right.set_title("against k = 1", fontsize=10)
    return figure


def plot_mixtures(frame: pd.DataFrame):
    """Gap of the mixtures to each task's specialist, and of feedback to rigid joint learning on the mixture."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(3, 2), layout="constrained")
    for i, (run, colour) in enumerate(MIXED.items()):
        part = frame[(frame.question == "mixture: specialists") & (frame.run == run)]
        groups = {task: list(part.gap[part.tasks == task]) for task in MIXTURE}
        dots(left, groups, colour, 0.3 * i - 0.15, ("as many steps as one", "as many steps as all three")[i])
    left.legend(fontsize=8)
    left.set_title("one network against the specialist of each task", fontsize=10)
    feedback = gaps_of(frame, "mixture: feedback")
    dots(right, {run.replace("mixture, on-demand", "on demand").strip(): v for run, v in feedback.items()})
    right.set_title("against rigid joint learning on the mixture", fontsize=10)
    return figure


def show(frame: pd.DataFrame):
    """Every comparison of `extensions.gaps`: PSNR, and the gap of each seed."""
    table = summary(frame)
    by = frame.groupby(["question", "run", "against"], sort=False).gap
    names = {"question": "question", "run": "run", "against": "beside", "psnr": "PSNR (dB)"}
    shown = table[list(names)].rename(columns=names)
    shown["question"] = table.question.where(~table.question.duplicated(), "")
    shown["gap of each seed (dB)"] = [",\u00a0".join(map(number, part)) for _, part in by]
    return show_table(shown).set_table_attributes('class="odl-table odl-words"')
