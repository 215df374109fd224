"""What the measured numbers say on each page: every word that ranks comes from `odl.judge`, and the scale."""

import numpy as np
import pandas as pd

from odl import denoising, measures, paper
from odl.corruptions import FILL
from odl.judge import MISSING, Verdict, below_input, keyed
from odl.measures import Measured, compare, plain
from odl.plots import psnr_inside
from odl.results import EXTRA_DATA

NOTHING = "Nothing is measured at this scale."


def scale(results) -> str:
    """One sentence on what a number was measured with."""
    e, where = results[0].experiment, results[0].provenance
    seeds = len({r.experiment["seed"] for r in results})
    return (
        f"Scale: width {e['width']} (paper: 64), {e['epochs'] * e['iterations']:,} iterations (paper: 1,500,000), "
        f"learning rate {e['learning_rate']:g} (paper: 2e-4), {where['train_images']:,} training images of "
        f"{e['dataset']} (paper: 100,000), {e['test_images']:,} test crops × {e['trials']} trials, "
        f"{seeds} {'seed' if seeds == 1 else 'seeds'}, {where['device']}."
    )


def page(verdicts: dict[str, Verdict], results, *more: str) -> str:
    """A line per comparison, further sentences, and the scale; one line where nothing is measured."""
    known = any(verdict.word != MISSING for verdict in verdicts.values())
    lines = "\n".join(f"- {label}: {verdict}." for label, verdict in verdicts.items()) if known else ""
    if not results and not known:
        return "\n\n".join(filter(None, (NOTHING, *more)))
    return "\n\n".join(filter(None, (lines, *more, results and scale(results))))


def table1_verdict(results, task: str) -> str:
    """On-demand minus each other schedule, and the claim that it leads all of them."""
    m, title = Measured(keyed(results)), paper.SCHEDULES
    lines = {f"On-demand − {title[r].lower()}": compare(m, {"": (task, "on_demand", r)}) for r in measures.RIVALS}
    lines |= {"The paper's claim, all six together": measures.best_of_seven(m, task)}
    return page(lines, results, swamped(m, task, paper.SCHEDULES), dose(results))


NO_DOSE = 0.0005  # of a batch: of the demo's 16 images less than a hundredth moves


def dose(results) -> str:
    """One sentence on how far on-demand learning left equal shares in these runs; empty where none is measured."""
    doses = [measures.dose_of(r) for r in results if r.experiment["schedule"] == "on_demand"]
    if not doses:
        return ""
    equal = ": its batches were equal shares, so its row is rigid joint's" if max(doses) < NO_DOSE else ""
    return (
        "On-demand's dose, the mean deviation of a level from its equal share, was "
        f"{100 * np.mean(doses):.2f} % of a batch{equal}."
    )


def swamped(m: Measured, task: str, schedules) -> str:
    """Which schedules leave the images worse than they were; empty where none does."""
    names = paper.SCHEDULES | paper.FIXATED
    below = [names[s].lower() for s in schedules if below_input(m.runs, task, s)]
    return f"Below the damaged image itself in mean PSNR: {', '.join(below)}." if below else ""


def swamped_tasks(results, schedules) -> str:
    """`swamped` of every task, a line each."""
    m = Measured(keyed(results))
    said = {task: swamped(m, task, schedules) for task in paper.TASKS}
    return "\n".join(f"- {plain(task).capitalize()}. {text}" for task, text in said.items() if text)


def applications_verdict(photograph, masks, repaired, results) -> str:
    """PSNR inside each defect before and after the repair."""
    if not results or any(x is None for x in repaired.values()):
        return "No trained network is here."
    damaged = {name: np.where(mask[..., None], np.float32(FILL) / 255, photograph) for name, mask in masks.items()}
    gains = [
        f"{name}: {psnr_inside(damaged[name], photograph, mask):.1f} → "
        f"{psnr_inside(repaired[name], photograph, mask):.1f} dB ({mask.mean():.1%} of the pixels)"
        for name, mask in masks.items()
    ]
    return (
        f"PSNR inside the mask, filled with grey → repaired: {'; '.join(gains)}. "
        "The known pixels are returned untouched. A large hole is closed with a smooth "
        f"patch, as the squared error asks. The paper gives pictures only.\n\n{scale(results)}"
    )


def fixation_verdict(results, task: str) -> str:
    """Each fixated model against the all-rounder: over the spectrum, and at its own severity."""
    m, column = Measured(keyed(results)), measures.hole_or_all(task)
    where = ", inside the hole" if task == "inpaint" else ""
    lines = {}
    for schedule, title in paper.FIXATED.items():
        own = schedule.removeprefix("fixated_")
        over, there = (
            (task, "on_demand", schedule, measures.LEVELS, column),
            (task, schedule, "on_demand", [own], column),
        )
        lines[f"On-demand − {title}, levels 1–6{where}"] = compare(m, {"": over})
        lines[f"{title} − on-demand at {paper.severity_text(task, own)}{where}"] = compare(m, {"": there})
    return page(lines, results, swamped(m, task, ("on_demand", *paper.FIXATED)))


def allocation_table(runs: dict) -> pd.DataFrame:
    """Shares of on-demand runs in per cent of a batch (task → Result or None).

    Columns task, level, first and last (epoch), least and most (of any epoch), dose (mean over epochs, a row's task's).
    """
    rows = []
    for task, result in runs.items():
        shares = np.array([epoch["allocation"] for epoch in result.history]) if result else np.zeros((0, 0))
        for level, column in enumerate(shares.T, 1):
            ends = {"first": column[0], "last": column[-1], "least": column.min(), "most": column.max()}
            rows.append({"task": task, "level": level} | ends | {"dose": 100 * measures.dose_of(result)})
    return pd.DataFrame(rows, columns=["task", "level", "first", "last", "least", "most", "dose"])


def allocation_verdict(table: pd.DataFrame, runs: dict) -> str:
    """Where the shares end and how large the dose is; runs: task → Result or None. No claim is decided by this."""
    if table.empty:
        return NOTHING
    lines = []
    for task, part in table.groupby("task", sort=False):
        last = part["last"].tolist()
        lines.append(
            f"- {paper.TASKS[task]['title']}: level 1 ends with {last[0]:.1f} % of the batch and level 5 with "
            f"{last[-1]:.1f} %; every level has between {part.least.min():.1f} % and {part.most.max():.1f} %, and "
            f"the dose is {part.dose.iloc[0]:.2f} %."
        )
    words = (
        f"Rigid joint learning has a dose of 0: every level gets 1/{paper.N_LEVELS} of the batch. That a lower PSNR "
        "gets more images is Equation 3 itself; whether it matters is a question of dose against margin."
    )
    found = [run for run in runs.values() if run]
    return "\n\n".join(filter(None, ("\n".join(lines), words, swamped_tasks(found, ["on_demand"]), scale(found))))


def qualitative_verdict(measured: dict, results) -> str:
    """On-demand minus its two opponents in mean PSNR; measured: task → results."""
    titles, lines = paper.SCHEDULES | paper.FIXATED, {}
    for task, found in measured.items():
        for other in ("rigid_joint", paper.FIGURE2[task]):
            label = f"{plain(task).capitalize()}, on-demand − {titles[other].lower()}"
            lines[label] = compare(Measured(keyed(found)), {"": (task, "on_demand", other)})
    return page(
        lines,
        results,
        swamped_tasks([r for found in measured.values() for r in found], titles),
        "Means over all test crops, levels 1–6: a few pictures prove nothing." if results else "",
    )


def extra_data_verdict(runs: dict, task: str) -> str:
    """The two halves of the claim; runs: name → results, as `results.extra_data_runs` has them."""
    ours, half, whole = EXTRA_DATA
    m = Measured({(task, name, r.experiment["seed"]): r for name in runs for r in runs[name]})
    lines = {f"{a} − {b}": compare(m, {"": (task, a, b)}) for a, b in ((ours, whole), (ours, half), (whole, half))}
    found = [r for name in runs for r in runs[name]]
    return page(lines, found)


def table2_verdict(results) -> str:
    """Table 2's three statements, with the paper's numbers."""
    m = Measured({("blocks", r.experiment["schedule"], r.experiment["seed"]): r for r in results})
    lines = {
        "Centre encoder − all-rounder, central block (paper: +1.42 dB)": measures.on_block(
            m, measures.CENTRE, ["on_demand"], "central"
        ),
        "All-rounder − each encoder, arbitrary block (paper: +8.51 and +4.11 dB)": measures.on_block(
            m, "on_demand", [measures.CENTRE, measures.RANDOM], "arbitrary"
        ),
        "All-rounder, central − arbitrary block, less than 1 dB (paper: +0.43 dB)": measures.same_in_both(m),
    }
    ours = [r for r in results if r.experiment["schedule"] == "on_demand"]
    return page(lines, ours, "The context encoders trained as long, with their adversarial loss." if results else "")


def table3_verdict(table: pd.DataFrame, results) -> str:
    """Our two networks against each other and against the published numbers."""
    m = Measured(table3=table[table.sigma == 25])
    lines = {"All-rounder − fixated at 25 (paper: −0.14 dB)": measures.near_specialist(m)}
    for system, title in (("on_demand", "The all-rounder"), ("fixated", "The model fixated at 25")):
        label = f"{title}, images above all six published numbers (paper: {measures.images_won(system)} of 11)"
        lines[label] = measures.wins(m, system)
    return page(lines, results)


def spectrum_verdict(table: pd.DataFrame, results) -> str:
    """What a wrong σ costs, and how far the all-rounder is from BM3D told the truth."""
    m = Measured(spectrum=table)
    lines = {
        "Told 25 − BM3D told the truth, the lowest above σ = 25": measures.told_25(m),
        "The same for what was retrained here at σ = 25": measures.trained_at_25(m),
        "All-rounder − BM3D told the truth, nowhere below −0.5 dB": measures.whole_spectrum(m),
    }
    absent = "\n".join(f"- {line[0].upper() + line[1:]}." for line in denoising.absent(table))
    return page(lines, results, absent)
