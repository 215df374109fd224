"""Figure 6: PSNR against the noise level (Sec. 6.7)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion import comparators, denoising
from companion.comparators import AUTHORS, DENOISERS, trained
from companion.denoising import COLOURS, SPECTRUM, TITLES, images_or_demo, reason, run_or_load
from companion.figures import picture_grid
from companion.judge import FAR, MISSING, Measured, Verdict, arithmetic, signed, verdict_on
from companion.prose import page


def table(
    curves, sigmas=SPECTRUM, dataset="db11", profile="reference", ours=None, measure=True, progress=None
) -> pd.DataFrame:
    """Figure 6, on clipped noise: system, told, sigma, psnr (dB, mean over the images).

    `curves` are systems, or pairs (system, σ that it is told whatever the noise).
    """
    pairs = [(curve, None) if isinstance(curve, str) else curve for curve in curves]
    todo = [(system, told, sigma) for system, told in pairs for sigma in sigmas]
    rows = []
    for i, (system, told, sigma) in enumerate(todo):
        show = progress and (lambda done, i=i: progress((i + done) / len(todo)))
        frame = run_or_load(system, sigma, True, told, dataset, profile, ours, show, measure)
        rows.append((system, told, sigma, frame.psnr.mean()))
    return pd.DataFrame(rows, columns=["system", "told", "sigma", "psnr"])


def lacking(table: pd.DataFrame) -> list[str]:
    """What a table of `spectrum` lacks: a line per reason that names the systems and, of some, the noise levels."""
    lacking = {}
    for (system, told), part in table.groupby(["system", table.told.fillna(0)], sort=False):
        missing = part.sigma[part.psnr.isna()]
        title = (
            comparators.LEARNED[system][0]
            if system in comparators.LEARNED
            else DENOISERS.get(system, {"title": system})["title"]
        )
        title += f", told {told:g}" if told else ""
        some = f" (σ = {', '.join(f'{sigma:g}' for sigma in missing)})" if len(missing) < len(part) else ""
        if len(missing):
            lacking.setdefault(reason(system).split(":")[0], []).append(title + some)
    return [f"{why}: {'; '.join(titles)}" for why, titles in lacking.items()]


CLASSICAL, LEARNED = ("bm3d", "ksvd", "wnnm"), ("mlp", "csf", "tnrd")
CURVES = ("on_demand", "bm3d", *((system, denoising.FIXED) for system in CLASSICAL), *LEARNED)


def curves(m: Measured) -> pd.DataFrame:
    """PSNR per σ, a column per curve: `on_demand`, `bm3d`, `bm3d25`, …; NaN where nothing is measured."""
    name = m.spectrum.system + m.spectrum.told.map(lambda told: "" if pd.isna(told) else f"{told:g}")
    wide = m.spectrum.assign(name=name).pivot(index="sigma", columns="name", values="psnr").astype(float)
    return wide.reindex(columns=["on_demand", "bm3d", *(f"{s}{denoising.FIXED}" for s in CLASSICAL), *LEARNED])


def whole_spectrum(m: Measured) -> Verdict:
    """The all-rounder, told nothing, is nowhere more than 0.5 dB behind BM3D, told the truth."""
    gap = curves(m).on_demand - curves(m).bm3d
    return verdict_on({f"σ = {sigma:g}": [v] if v == v else [] for sigma, v in gap.items()}, beyond=-0.5)


def loss_above_25(m: Measured, systems) -> dict:
    """System → the most that it is behind BM3D told the truth at a σ above 25 (dB); only what is measured."""
    gap = curves(m)[lambda frame: frame.index > denoising.FIXED]
    loss = gap[list(systems)].rsub(gap.bm3d, axis=0).max()
    return loss.dropna().to_dict()


def told_25(m: Measured) -> Verdict:
    """BM3D, K-SVD and WNNM told 25 against BM3D told the truth. No seed is involved."""
    loss = loss_above_25(m, [f"{system}{denoising.FIXED}" for system in CLASSICAL])
    words = ", ".join(f"{TITLES[name.removesuffix('25')]} {signed(-db)}" for name, db in loss.items())
    return arithmetic(min(loss.values()) > FAR, words) if loss else Verdict(MISSING)


def trained_at_25(m: Measured) -> Verdict:
    """MLP, CSF and TNRD, each trained once at σ = 25, against BM3D told the truth."""
    loss = loss_above_25(m, LEARNED)
    return verdict_on({system.upper(): [loss[system]] if system in loss else [] for system in LEARNED}, beyond=FAR)


def verdict(table: pd.DataFrame, results) -> str:
    """What a wrong σ costs, and how far the all-rounder is from BM3D told the truth."""
    m = Measured(spectrum=table)
    lines = {
        "Told 25 − BM3D told the truth, the lowest above σ = 25": told_25(m),
        "The same for what was retrained here at σ = 25": trained_at_25(m),
        "All-rounder − BM3D told the truth, nowhere below −0.5 dB": whole_spectrum(m),
    }
    absent = "\n".join(f"- {line[0].upper() + line[1:]}." for line in lacking(table))
    return page(lines, results, absent)


# Figure 6


def plot_noise(name: str, sigmas):
    """One photograph at every σ."""
    label, image = images_or_demo(name)[-1]
    side = min(image.shape)
    row = [denoising.add_awgn(image, label, sigma, True)[:side, :side] for sigma in sigmas]
    return picture_grid([row], [f"σ = {sigma:g}" for sigma in sigmas], size=1.5)


NOT_CLIPPED = {"linewidth": 0.8, "linestyle": "-.", "label": "noisy, where noise is not clipped"}


def plot_curves(table: pd.DataFrame):
    """PSNR against σ: on the left the paper's curves and DnCNN's, on the right everything that is fixed at σ = 25.

    In both the noisy photographs, and the same where noise is not clipped, which is 20 log₁₀(255/σ) for any image.
    """
    figure, axes = plt.subplots(1, 2, figsize=(9, 5.6), sharey=True)
    measured = table.dropna(subset="psnr").groupby(["system", table.told.fillna(0)], sort=False)
    curves = {(system, told or None): part for (system, told), part in measured}
    ours = ("on_demand", None)
    noisy = (denoising.NOISY, None)
    left = [ours, ("bm3d", None), ("bm3d", 25), ("mlp", None), ("dncnn", None), noisy]
    right = [ours, *(curve for curve in curves if is_fixed(*curve)), noisy]
    for axis, chosen, title in zip(axes, (left, right), ("as in the paper", "everything fixed at σ = 25"), strict=True):
        for curve in chosen:
            if curve in curves:
                axis.plot(curves[curve].sigma, curves[curve].psnr, label=curve_name(*curve), **look_of(*curve))
        if noisy in curves:
            sigma = curves[noisy].sigma
            axis.plot(sigma, 20 * np.log10(255 / sigma), **look_of(*noisy) | NOT_CLIPPED)
        axis.set(xlabel="noise σ (of 255)", title=title)
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    axes[0].set_ylabel("PSNR (dB), mean over the images")
    figure.tight_layout()
    return figure


def is_fixed(system: str, told) -> bool:
    """Whether a curve is that of a system made for σ = 25 or told it whatever comes."""
    learner = trained.LEARNERS.get(system)
    return bool(told) or system in ("fixated", *AUTHORS) or (learner is not None and learner.low == learner.high)


def curve_name(system: str, told) -> str:
    """`BM3D, told σ`, `BM3D, told 25`; nothing is added where a system is told nothing."""
    entry = DENOISERS.get(system, {"title": TITLES[system], "knows_sigma": False})
    return entry["title"] + (f", told {f'{told:g}' if told else 'σ'}" if entry["knows_sigma"] else "")


def look_of(system: str, told) -> dict:
    width = 2.4 if system == "on_demand" else 1.4
    if system == denoising.NOISY:
        return {"color": COLOURS[system], "linestyle": ":", "linewidth": width}
    line = "--" if is_fixed(system, told) else "-"
    return {"color": COLOURS[system], "linestyle": line, "linewidth": width, "marker": "o", "markersize": 4}


def show(table: pd.DataFrame):
    """PSNR (dB), a row per system, a column per σ."""
    table = table[table.groupby(["system", table.told.fillna(0)]).psnr.transform("count") > 0]
    names = [curve_name(row.system, None if pd.isna(row.told) else row.told) for row in table.itertuples()]
    named = table.assign(name=names)
    frame = named.pivot(index="name", columns="sigma", values="psnr").reindex(named.name.unique())
    frame.columns = [f"σ\u00a0=\u00a0{sigma:g}" for sigma in frame.columns]  # not broken over lines
    frame = frame.rename_axis("PSNR (dB)").reset_index()
    style = frame.style.format(precision=2, na_rep="–").hide(axis="index")
    return style.set_table_attributes('class="odl-table odl-dense"')
