"""What the pages say: sentences made from measured numbers, and the scale they were measured at."""

import re

import numpy as np

from companion import judge
from companion.judge import MISSING, Measured, Verdict, below_input, keyed, plain
from odl import paper

FIGURE2 = {  # the fixated model that the paper shows in pictures: the easy one for denoising only (Supp. C)
    **dict.fromkeys(("inpaint", "interpolate", "deblur"), "fixated_hard"),
    "denoise": "fixated_easy",
}

NOTHING = "No network of ours is measured at this scale."


def scale(results) -> str:
    """One sentence on what a number was measured with."""
    e, where = results[0].experiment, results[0].provenance
    seeds = {}
    for r in results:
        seeds.setdefault((r.experiment["task"], r.experiment["schedule"]), set()).add(r.experiment["seed"])
    return (
        f"Scale: width {e['width']} (paper: 64), {e['epochs'] * e['iterations']:,} training steps (1,500,000), "
        f"{where['train_images']:,} photographs of {e['dataset']} (100,000), "
        f"{judge.count_seeds(seeds)}, {where['device']}."
    )


def page(verdicts: dict[str, Verdict], results, *more: str) -> str:
    """A line per comparison, further sentences, and the scale; one line where nothing is measured."""
    known = any(verdict.word != MISSING for verdict in verdicts.values())
    lines = "\n".join(f"- {label}: {verdict}." for label, verdict in verdicts.items()) if known else ""
    first = lines if known or results else NOTHING
    return "\n\n".join(filter(None, (first, *more, results and scale(results))))


NO_DOSE = 0.0005  # of a batch: of the demo's 16 images less than a hundredth moves


def dose(results) -> str:
    """One sentence on how far on-demand learning left equal shares in these runs; empty where none is measured."""
    doses = [judge.dose_of(r) for r in results if r.experiment["schedule"] == "on_demand"]
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
    below = [names.get(s, s).lower() for s in schedules if below_input(m.runs, task, s)]
    return f"Below the damaged image itself in mean PSNR: {', '.join(below)}." if below else ""


def swamped_tasks(results, schedules) -> str:
    """`swamped` of every task, a line each."""
    m = Measured(keyed(results))
    said = {task: swamped(m, task, schedules) for task in paper.TASKS}
    return "\n".join(f"- {plain(task).capitalize()}. {text}" for task, text in said.items() if text)


def say(text: str):
    """A sentence made from measured numbers, as text on the page, with a minus where a number has one."""
    from IPython.display import Markdown

    return Markdown(re.sub(r"(?<=[\s(])-(?=\d)", "−", text))


def severity_text(task: str, name: str) -> str:
    """The severity of a fixated model, `easy` or `hard`, with its unit: 32×32, 80 %, σ = 5."""
    value = paper.TASKS[task][name]
    return {"inpaint": f"{value}×{value}", "interpolate": f"{value} %"}.get(task, f"σ = {value}")
