"""What the measured numbers say about the paper's claims: scale, verdicts, scorecard."""

import numpy as np
import pandas as pd

from odl import paper
from odl.corruptions import FILL
from odl.plots import psnr_inside


def scale(results) -> str:
    """One sentence on what a number was measured with."""
    e, where = results[0].experiment, results[0].provenance
    seeds = len({r.experiment["seed"] for r in results})
    return (
        f"Scale: width {e['width']} (paper: 64), {e['epochs'] * e['iterations']:,} iterations (paper: 1,500,000), "
        f"learning rate {e['learning_rate']:g} (paper: 2e-4), {where['train_images']:,} training images of "
        f"{e['dataset']} (paper: 100,000), {e['test_images']:,} test crops × {e['trials']} trials, "
        f"{seeds} {'seed' if seeds == 1 else 'seeds'}, {where['device']}, {where['precision']}."
    )


def table1_verdict(table: pd.DataFrame, results) -> str:
    """On-demand against the best other schedule and against rigid joint, beside the paper's margins."""
    rows = table.set_index("schedule").dropna(subset="psnr")
    if "on_demand" not in rows.index or len(rows) < 2:
        return "On-demand learning and an opponent are not both measured at this scale: no verdict."
    task, ours = results[0].experiment["task"], rows.psnr["on_demand"]
    others = rows.psnr.drop("on_demand").sort_values()
    best, worst = others.index[-1], others.index[0]
    margins = [paper.TABLE1[task]["on_demand"][k][1] - paper.TABLE1[task][best][k][1] for k in (0, 1)]
    seeds = len({r.experiment["seed"] for r in results if r.experiment["schedule"] == "on_demand"})
    order = "**ahead of every other schedule**" if ours > others.iloc[-1] else f"**behind {paper.SCHEDULES[best]}**"
    missing = [paper.SCHEDULES[s] for s in paper.SCHEDULES if s not in rows.index]
    return "\n\n".join(
        [
            f"On-demand learning reaches {ours:.2f} dB and is {order}: {ours - others.iloc[-1]:+.3f} dB against "
            f"{paper.SCHEDULES[best]} (paper: {margins[0]:+.2f} on CelebA, {margins[1]:+.2f} on SUN397). "
            f"The weakest is {paper.SCHEDULES[worst]} at {others.iloc[0]:.2f} dB.",
            "The p-value says that two trained networks differ on these test images; it says nothing about another "
            f"training seed. With {seeds} {'seed' if seeds == 1 else 'seeds'} a margin below 0.1 dB is no evidence for "
            "an ordering of schedules.",
            scale(results),
            *([f"Not measured at this scale: {', '.join(missing)}."] if missing else []),
        ]
    )


def applications_verdict(photograph, masks, repaired, results) -> str:
    """PSNR inside each defect before and after the repair."""
    if not results or any(x is None for x in repaired.values()):
        return "No trained network is here: no verdict."
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
