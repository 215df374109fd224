"""What the pages say: sentences made from measured numbers, and the scale they were measured at."""

import inspect
from functools import partial

import numpy as np

from companion import judge
from companion.words import conclude, count_seeds, from_to
from odl import paper

QUESTION_OPEN = "Not all that this page compares is measured, so its question is open."


def scale(results) -> str:
    """Return one sentence on what a number was measured with."""
    e, where, seeds = results[0].experiment, results[0].provenance, {}
    for r in results:
        seeds.setdefault(str(r.experiment | {"seed": None}), set()).add(r.experiment["seed"])

    range_of = partial(from_to, say="{:,}".format, to="–")
    width = range_of(r.experiment["width"] for r in results)
    steps = range_of(r.experiment["epochs"] * r.experiment["iterations"] for r in results)
    photographs = range_of(r.provenance["train_images"] for r in results)
    return (
        f"Scale: width {width} (paper: 64), {steps} steps of {e['batch_size']} images (1,500,000 of 100), "
        f"{photographs} photographs of {e['dataset']} (100,000), {count_seeds(seeds.values())}, {where['device']}."
    )


def page(verdicts: dict[str, judge.Decision], results, *more: str) -> str:
    """Return a line per comparison, further sentences, and the scale; one line where nothing of it is measured."""
    known = any(verdict.word != judge.MISSING for verdict in verdicts.values())
    lines = "\n".join(f"- {label}: {conclude(verdict)}." for label, verdict in verdicts.items()) if known else ""
    first = lines if known or results and not verdicts else QUESTION_OPEN
    return "\n\n".join(filter(None, (first, *more, results and scale(results))))


NEGLIGIBLE_DOSE = 0.0005  # of a batch: of the demo's 16 images less than a hundredth moves


def dose(results) -> str:
    """Return one sentence on how far on-demand learning left equal shares; empty where none is measured."""
    doses = [judge.dose_of(r) for r in results if r.experiment["schedule"] == "on_demand"]
    if not doses:
        return ""
    equal = ": its batches were equal shares, so its row is rigid joint's" if max(doses) < NEGLIGIBLE_DOSE else ""
    share = f"{100 * np.mean(doses):.2f} % of a batch"
    return f"On-demand's dose, the mean deviation of a level from its equal share, was {share}{equal}."


def say(text: str):
    """Show sentences made from measured numbers as text on the page."""
    from IPython.display import Markdown

    return Markdown(text)


def code(*functions):
    """Return the source of functions as code on the page."""
    return say("\n\n".join(f"```python\n{inspect.getsource(function).rstrip()}\n```" for function in functions))


def severity_text(task: str, name: str) -> str:
    """Return the severity of a fixated model, `easy` or `hard`, with its unit: 32×32, 80 %, σ = 5, else its number."""
    value = paper.TASKS[task][name]
    other = f"σ = {value}" if "σ" in paper.TASKS[task]["severity"] else f"{value}"
    return {"inpaint": f"{value}×{value}", "interpolate": f"{value} %"}.get(task, other)
