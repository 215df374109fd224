"""Whether on-demand learning makes up for half of the training images (Sec. 6.6)."""

import matplotlib.pyplot as plt
import pandas as pd

from companion import catalogue
from companion.catalogue import EXTRA_DATA
from companion.figures import history_frame
from companion.judge import WITHIN, Measured, Verdict, compare
from companion.pictures import photographs
from companion.prose import page
from companion.tables import over_seeds, show_table
from odl.crops import Pack
from odl.experiment import Experiment
from odl.results import Result, load


def halves(name: str, half: int, whole: int) -> tuple[Pack, Pack]:
    """The first `half` training images and the rest up to `whole`; where they are not here, the demo photographs."""
    train = photographs(name, "train", whole)
    half = half if len(train) == whole else len(train) // 2
    return train.take(half), train.take(len(train), half)


def runs(experiments: list[Experiment]) -> dict[str, list[Result]]:
    """The measured runs of `catalogue.extra_data_experiments` by name, one per seed; empty lists where nothing is."""
    found = [load(e) for e in experiments]
    return {name: [r for r in found[i :: len(EXTRA_DATA)] if r] for i, name in enumerate(EXTRA_DATA)}


def table(runs: dict[str, list[Result]]) -> pd.DataFrame:
    """Sec. 6.6: columns run, train_images, seeds, l2 (‰), l2_sd, psnr (dB), psnr_sd (over seeds)."""
    rows = [
        {"run": name, "train_images": found[0].provenance["train_images"] if found else pd.NA} | over_seeds(found)
        for name, found in runs.items()
    ]
    return pd.DataFrame(rows).astype({"train_images": "Int64"})


OURS_HALF, RIGID_HALF, RIGID_ALL = catalogue.EXTRA_DATA


def extra_images(m: Measured) -> Verdict:
    """What twice the images are worth to rigid joint learning: no more than 0.1 dB."""
    return compare(m, {"": ("inpaint", RIGID_ALL, RIGID_HALF)}, beyond=WITHIN, sign=-1)


def half_the_images(m: Measured) -> Verdict:
    """On-demand with half of the images against rigid joint with all of them."""
    return compare(m, {"": ("inpaint", OURS_HALF, RIGID_ALL)})


def verdict(runs: dict, task: str) -> str:
    """The two halves of the claim; runs: name → results, as `extra_data.runs` has them."""
    ours, half, whole = EXTRA_DATA
    m = Measured({(task, name, r.experiment["seed"]): r for name in runs for r in runs[name]})
    lines = {f"{a} − {b}": compare(m, {"": (task, a, b)}) for a, b in ((ours, whole), (ours, half), (whole, half))}
    found = [r for name in runs for r in runs[name]]
    return page(lines, found)


# Extra data


def show(table: pd.DataFrame):
    """The extra-data test; ± is a standard deviation over seeds."""
    names = {"run": "run", "train_images": "images", "seeds": "seeds", "l2": "L2 (‰)"}
    names |= {"psnr": "PSNR (dB)", "psnr_sd": "± (dB)"}
    return show_table(table[list(names)].rename(columns=names), {"images": "{:,}"})


def plot_curves(measured: dict, axis=None):
    """Mean validation PSNR over levels against epoch; measured: name → list of results, a thin line per seed."""
    axis = axis or plt.subplots(figsize=(6.5, 3.4), layout="constrained")[1]
    for k, (name, runs) in enumerate(measured.items()):
        for i, result in enumerate(runs):
            curve = history_frame(result).groupby("epoch").psnr.mean()
            look = {"color": ("#D55E00", "#56B4E9", "#0072B2")[k], "linestyle": ("-", "--", ":")[k], "linewidth": 2}
            axis.plot(curve, label=None if i else name, **look)
    axis.set(xlabel="epoch", ylabel="validation PSNR (dB)")
    axis.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
    if measured:
        axis.legend(fontsize=9, loc="lower right")
    return axis.figure
