"""Evaluation: 20 trials × 6 levels × 1,000 images at width 64, measured on a part of it with `odl.evaluate`."""

from functools import partial
from statistics import median

from odl import data, paper, train
from odl.evaluate import LEVELS, evaluate
from odl.experiment import PROFILES, Experiment
from odl.restore import restorer
from odl.step import restore

from . import measure

TRIALS, IMAGES = PROFILES["paper"]["trials"], PROFILES["paper"]["test_images"]
WHOLE = TRIALS * (paper.N_LEVELS + 1) * IMAGES


def sizes(options: measure.Options) -> dict:
    """`images` are those of the contest; `several`, one of which they are, show whether time is linear in them."""
    full = {"width": 64, "trials": 2, "images": 100, "several": [50, 100, 200]}
    cuda = {"images": 1000, "several": [500, 1000, 2000]}
    return options.sizes(full, {"width": 4, "images": 4, "several": [2, 4]}, cuda)


def run(options: measure.Options) -> dict:
    size, dataset = sizes(options), measure.dataset(options)
    turns = {"eager fp32": turn(False, size["images"], dataset, options)}
    turns |= {n: turn(True, n, dataset, options) for n in size["several"]}
    seconds = measure.interleave(turns, options.rounds, "evaluation")
    slope = measure.slope(size["several"], seconds)
    seconds["ours"] = seconds[size["images"]]
    done = size["trials"] * len(LEVELS) * size["images"]

    def row(name):
        return {
            "contestant": name,
            "images measured": done,
            "measured (s)": median(seconds[name]),
            "ours, times as fast": measure.faster(seconds, name),
            "ms per image": 1000 * median(seconds[name]) / done,
            f"extrapolated to {WHOLE:,} images (s)": WHOLE * median(seconds[name]) / done,
        }

    return {
        "scale": size | {"dataset": dataset, "task": "inpaint", "levels": len(LEVELS)},
        "rows": [row("eager fp32"), row("ours")],
        "comparisons": [measure.comparison(seconds, "evaluation", "eager fp32")],
        "notes": [
            f"Extrapolated to {TRIALS} trials × {paper.N_LEVELS + 1} levels × {IMAGES:,} images.",
            f"From {size['several'][0]} to {size['several'][-1]} images time grows with slope {measure.cell(slope)}.",
        ],
    }


def turn(ours: bool, images: int, dataset: str, options: measure.Options):
    """Seconds of an evaluation of `images` images: two trials, levels 1–6 and both severities of fixated models.

    Ours folds BatchNorm and computes in bf16 where it is native; the other is a plain forward pass in fp32.
    """
    size, device = sizes(options), options.device
    numbers = {"width": size["width"], "trials": size["trials"], "test_images": images}
    experiment = Experiment.of("inpaint", dataset, "rigid_joint", profile="paper", **numbers)
    network = train.build(experiment, device)[0].eval()
    by = restorer(network, options.precision, device) if ours else partial(restore, network, precision="fp32")
    whole = partial(evaluate, experiment, by, device, pack=data.load(dataset, "test"))
    return partial(measure.seconds_of, whole, 1, device)
