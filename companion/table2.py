"""Table 2: the all-rounder beside context encoders on 32×32 blocks (Sec. 6.5)."""

import numpy as np
import pandas as pd
import torch

from companion import blocks
from companion.blocks import BLOCKS
from companion.comparators import INPAINTERS, context_encoder
from companion.denoising import TITLES
from companion.figures import picture_grid
from companion.judge import FAR, Measured, Verdict, compare, estimate, paired_p_value, score, summarize, verdict_on
from companion.prose import page
from odl import paper
from odl.corruptions import delete, draw_square, square_mask
from odl.results import Result


def table(measured: list[Result]) -> pd.DataFrame:
    """Table 2, a row per method in the paper's order, per block (central_…, arbitrary_…).

    Columns l2 (%), l2_se, psnr (dB), psnr_se, p_value (paired t-test of PSNR against ours over trials), and the
    paper's l2 and psnr on CelebA. Methods that are not among the results are left out; `not_restored` comes first.
    """
    trials = {r.experiment["schedule"]: r.evaluation.set_index(["level", "trial"]) for r in measured}
    rows = []
    published = {"not_restored": ((float("nan"), float("nan")),) * len(BLOCKS)} | paper.TABLE2
    for method in [m for m in published if m in trials]:
        row = {"method": method}
        for block, (l2, db) in zip(BLOCKS, published[method], strict=True):
            frame = trials[method].loc[block].assign(l2=lambda f: f.l2 / 10)
            p_value = float("nan")
            if "on_demand" in trials:
                both = frame[["psnr"]].join(trials["on_demand"].loc[block].psnr.rename("ours"), how="inner")
                p_value = paired_p_value(both.psnr, both.ours)
            measured = summarize(frame) | {"p_value": p_value, "paper_l2": l2, "paper_psnr": db}
            row |= {f"{block}_{name}": value for name, value in measured.items()}
        rows.append(row)
    names = ("l2", "l2_se", "psnr", "psnr_se", "p_value", "paper_l2", "paper_psnr")
    return pd.DataFrame(rows, columns=["method", *(f"{block}_{name}" for block in BLOCKS for name in names)])


CENTRE, RANDOM = INPAINTERS


# Inpainters (Table 2)


def on_block(m: Measured, one: str, others, block: str) -> Verdict:
    """One method against others on the central or on an arbitrary block."""
    return compare(m, {TITLES.get(other, ""): ("blocks", one, other, [block]) for other in others})


def random_behind(m: Measured) -> Verdict:
    """The all-rounder against the encoder with random region dropout on both blocks."""
    return compare(m, {block: ("blocks", "on_demand", RANDOM, [block]) for block in blocks.BLOCKS})


def places(m: Measured, method: str) -> np.ndarray:
    """Central minus arbitrary block (dB) of one method, for every seed."""
    runs = [run for key, run in m.runs.items() if key[:2] == ("blocks", method)]
    return np.array([score(run, ["central"]) - score(run, ["arbitrary"]) for run in runs])


def centre_fails(m: Measured) -> Verdict:
    """What the centre encoder loses on an arbitrary block."""
    return verdict_on({"": places(m, CENTRE)}, beyond=FAR)


def same_in_both(m: Measured) -> Verdict:
    """Less than 1 dB between the two places for the all-rounder, either way."""
    gap = places(m, "on_demand")
    return verdict_on({"central": gap, "arbitrary": -gap}, beyond=-1, text=estimate(gap))


def verdict(results) -> str:
    """Table 2's three statements, with the paper's numbers."""
    m = Measured({("blocks", r.experiment["schedule"], r.experiment["seed"]): r for r in results})
    lines = {
        "Centre encoder − all-rounder, central block (paper: +1.42 dB)": on_block(m, CENTRE, ["on_demand"], "central"),
        "All-rounder − each encoder, arbitrary block (paper: +8.51 and +4.11 dB)": on_block(
            m, "on_demand", [CENTRE, RANDOM], "arbitrary"
        ),
        "All-rounder, central − arbitrary block, less than 1 dB (paper: +0.43 dB)": same_in_both(m),
    }
    ours = [r for r in results if r.experiment["schedule"] == "on_demand"]
    return page(lines, ours, "The context encoders trained as long, with their adversarial loss." if results else "")


# Table 2


def plot_masks(x):
    """What each method of Table 2 trains on, on one crop x (1, 3, 64, 64)."""
    generator = torch.Generator().manual_seed(1)
    levels = torch.tensor([2.0, 4.0, 5.0])
    low, high = torch.tensor([paper.TASKS["inpaint"]["levels"][int(level) - 1] for level in levels]).float().unbind(1)
    squares = square_mask(draw_square(low, high, 64, generator), 64)
    masks = [blocks.block_masks("central", 1, generator), context_encoder.random_regions(3, generator), squares]
    row = [x[0], *(delete(x, mask[None])[0] for group in masks for mask in group)]
    return picture_grid([row], ["clean", "centre", "random", "random", "random", "squares", "squares", "squares"])


def pm(value, error, digits: int) -> str:
    """Value ± standard error, or a dash."""
    return "–" if pd.isna(value) else f"{value:.{digits}f} ± {error:.1g}"


def show(table: pd.DataFrame):
    """Table 2: per block ours ± standard errors and the paper's numbers."""
    shown = {("", "method"): table.method.map(TITLES)}
    for block in blocks.BLOCKS:
        part = {name: table[f"{block}_{name}"] for name in ("l2", "l2_se", "psnr", "psnr_se", "paper_l2", "paper_psnr")}
        shown |= {
            (f"{block} block", "L2 (%)"): [pm(*row, 3) for row in zip(part["l2"], part["l2_se"], strict=True)],
            (f"{block} block", "PSNR (dB)"): [pm(*row, 2) for row in zip(part["psnr"], part["psnr_se"], strict=True)],
            (f"{block} block", "paper: L2"): part["paper_l2"],
            (f"{block} block", "paper: PSNR"): part["paper_psnr"],
        }
    frame = pd.DataFrame(shown)
    style = frame.style.format(precision=2, na_rep="–").hide(axis="index")
    return style.set_table_attributes('class="odl-table odl-numbers"')


def plot_blocks(x, ours, encoders):
    """The central and a shifted block of one crop, filled by every method whose weights are here."""
    places = {"central": torch.tensor([[32.0, 16, 16]]), "shifted": torch.tensor([[32.0, 2, 28]])}
    networks = context_encoder.networks(ours, encoders)
    rows = []
    for place in places.values():
        mask = square_mask(place, 64)
        y = delete(x, mask)
        with torch.inference_mode():
            rows.append([x[0], y[0], *(blocks.inpaint(network, y, mask)[0] for network in networks.values())])
    names = {"on_demand": "all-rounder", "context_encoder_center": "centre", "context_encoder_random": "random drop"}
    columns = ["original", "missing", *(names[name] for name in networks)]
    return picture_grid(rows, columns, list(places), size=1.6)
