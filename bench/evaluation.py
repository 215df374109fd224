"""Evaluation: 20 trials × 6 levels × 1,000 images at width 64, measured on a part of it with `odl.evaluate`."""

from functools import partial
from statistics import median

from odl import data, paper, train
from odl.evaluate import LEVELS, evaluate
from odl.experiment import PROFILES, Experiment
from odl.restore import restorer
from odl.step import restore

from . import measure

WHOLE = (PROFILES["paper"]["trials"], paper.N_LEVELS + 1, PROFILES["paper"]["test_images"])  # trials, levels, images
LINEAR = (0.9, 1.1)


def sizes(options: measure.Options) -> dict:
    """`images` are those of the contest; `several`, one of which they are, show whether time is linear in them."""
    full = {"width": 64, "trials": 2, "images": 100, "several": [50, 100, 200]}
    cuda = {"images": 1000, "several": [500, 1000, 2000]}
    return options.sizes(full, {"width": 4, "images": 4, "several": [2, 4]}, cuda)


def run(options: measure.Options) -> dict:
    size, dataset = sizes(options), measure.dataset(options)
    pack = data.load(dataset, "test")
    turns = {"eager fp32": turn(False, size["images"], pack, dataset, options)}
    turns |= {n: turn(True, n, pack, dataset, options) for n in size["several"]}
    seconds = measure.interleave(turns, options.rounds, "evaluation")
    seconds["ours"] = seconds[size["images"]]
    slope = measure.slope(size["several"], seconds)

    done, whole = size["trials"] * len(LEVELS) * size["images"], WHOLE[0] * WHOLE[1] * WHOLE[2]
    rows = [
        {
            "contestant": name,
            "images measured": done,
            "measured (s)": median(seconds[name]),
            "ours, times as fast": None if name == "ours" else measure.ratio(seconds, "ours", name),
            "ms per image": 1000 * median(seconds[name]) / done,
            f"extrapolated to {whole:,} images (s)": whole * median(seconds[name]) / done,
        }
        for name in ("eager fp32", "ours")
    ]
    return {
        "scale": size
        | {"dataset": dataset, "task": "inpaint", "levels": len(LEVELS), "precision_of_ours": options.precision},
        "rows": rows,
        "extrapolated_to": dict(zip(("trials", "levels", "images"), WHOLE, strict=True)),
        "linear": {"images": size["several"], "seconds": [median(seconds[n]) for n in size["several"]], "slope": slope}
        | {"expected": LINEAR, "passed": LINEAR[0] <= slope["median"] <= LINEAR[1]},
        "comparisons": [measure.comparison(seconds, "evaluation", "ours", "eager fp32")],
    }


def turn(ours: bool, images: int, pack, dataset: str, options: measure.Options):
    """Seconds of an evaluation of `images` images: two trials, levels 1–6 and both severities of fixated models.

    Ours folds BatchNorm and computes in bf16 where it is native; the other is a plain forward pass in fp32.
    """
    size = sizes(options)
    numbers = {"width": size["width"], "trials": size["trials"], "test_images": images}
    experiment = Experiment.of("inpaint", dataset, "rigid_joint", profile="paper", **numbers)
    network = train.build(experiment, options.device)[0].eval()
    plain = partial(restore, network, precision="fp32")
    answer = restorer(network, options.precision, options.device) if ours else plain
    return partial(
        measure.seconds_of, lambda: evaluate(experiment, answer, options.device, pack=pack), 1, options.device
    )
