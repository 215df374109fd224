"""Evaluation: 20 trials × 6 levels × 1,000 images at width 64, measured on a part of it with `odl.evaluate`."""

from functools import partial
from statistics import median

from odl import paper
from odl.data import packs
from odl.evaluation import TESTED, evaluate
from odl.experiment import PROFILES
from odl.learn import build
from odl.machine.device import forward
from odl.windows import restorer

from . import measure

TRIALS, IMAGES = PROFILES["paper"]["trials"], PROFILES["paper"]["test_images"]
WHOLE = TRIALS * (paper.N_LEVELS + 1) * IMAGES


def sizes(options: measure.Options) -> dict:
    full = {"width": 64, "trials": 2, "images": 100}
    return options.sizes(full, {"width": 4, "images": 4}, {"images": 1000})


def run(options: measure.Options) -> dict:
    size = sizes(options)
    turns = {name: turn(name == "ours", options) for name in ("eager fp32", "ours")}
    seconds = measure.interleave(turns, options.rounds, "evaluation")
    done = size["trials"] * len(TESTED) * size["images"]
    rows = []
    for name in turns:
        each = median(seconds[name]) / done
        cells = {"contestant": name, "images measured": done, "measured (s)": done * each}
        cells |= {"ours, times as fast": measure.faster(seconds, name), "ms per image": 1000 * each}
        rows.append(cells | {f"extrapolated to {WHOLE:,} images (s)": WHOLE * each})
    return {
        "scale": size | {"dataset": measure.dataset(options), "task": "inpaint", "levels": len(TESTED)},
        "rows": rows,
        "comparisons": [measure.comparison(seconds, "evaluation", "eager fp32")],
        "notes": [f"Extrapolated to {TRIALS} trials × {paper.N_LEVELS + 1} levels × {IMAGES:,} images."],
    }


def turn(ours: bool, options: measure.Options):
    """Seconds of an evaluation: two trials, levels 1–6 and both severities of fixated models.

    Ours folds BatchNorm and computes in bf16 where it is native; the other is a plain forward pass in fp32.
    """
    size, device = sizes(options), options.device
    numbers = {"width": size["width"], "trials": size["trials"], "test_images": size["images"]}
    experiment = measure.experiment(options, **numbers)
    network = build(experiment, device)[0].eval()
    by = restorer(network, options.precision, device) if ours else partial(forward, network, precision="fp32")
    whole = partial(evaluate, experiment, by, device, pack=packs.load(experiment.dataset, "test"))
    return partial(measure.seconds_of, whole, 1, device)
