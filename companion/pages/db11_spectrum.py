"""Figure 6: PSNR against the noise level, of systems told it, told 25, and told nothing (Sec. 6.7)."""

from itertools import product

import pandas as pd

from companion import judge
from companion.judge import LARGE_EFFECT, MISSING, REPRODUCED, REVERSED, UNDECIDED, Decision, Evidence
from companion.measure import denoising
from companion.measure.denoising import FIXED, NOISY, SPECTRUM, SYSTEMS
from companion.show import sentences, tables
from companion.show.figures import subplots
from companion.words import signed

TOLD_SYSTEMS, TRAINED_SYSTEMS = ("bm3d", "ksvd", "wnnm"), ("csf", "tnrd")  # the MLP is no opponent
CURVES = [(name, None) for name in ("on_demand", "bm3d", *TRAINED_SYSTEMS)] + [(name, FIXED) for name in TOLD_SYSTEMS]


def curves_table(
    curves, sigmas=SPECTRUM, dataset="db11", profile="reference", ours=None, measure=True, device="auto"
) -> pd.DataFrame:
    """Return the curves of `denoising.curves_of` on clipped noise: system, trained_on, told, sigma, seed, psnr.

    psnr is in dB, the mean over the images. `ours` is system → its runs, one for each `seed`, as `denoising.our_runs`
    has them.
    """
    columns, rows = ["system", "trained_on", "told", "sigma", "seed", "psnr"], []
    for system, told in curves:
        for run, sigma in product((ours or {}).get(system, [None]), sigmas):
            images = denoising.rows_of(system, sigma, True, told, dataset, profile, run, measure, device)
            rows.append([*images[columns[:-1]].iloc[0], images.psnr.mean()])
    return pd.DataFrame(rows, columns=columns).astype({"told": float, "seed": "Int64"})


def by_curve(table: pd.DataFrame):
    """Return the rows of each curve, means over seeds: ((system, σ that it is told or 0 for the truth), rows)."""
    curve = ["system", "told"]
    means = table.fillna({"told": 0}).groupby([*curve, "sigma"], sort=False).psnr.mean().reset_index()
    return means.groupby(curve, sort=False)


def curve_name(system: str, told) -> str:
    """Return `BM3D, told σ`, `BM3D, told 25`; nothing is added where a system is told nothing."""
    entry = SYSTEMS[system]
    return entry.title + (f", told {f'{told:g}' if told else 'σ'}" if entry.knows_sigma else "")


def list_missing_curves(table: pd.DataFrame) -> list[str]:
    """Return what the table lacks: a line per reason that names the curves."""
    lacking = {}
    for (system, told), part in by_curve(table):
        if part.psnr.notna().all():
            continue
        name = SYSTEMS[system].name + (f", told {told:g}" if told else "")
        lacking.setdefault(SYSTEMS[system].reason, []).append(name)
    return [f"{why}: {'; '.join(names)}" for why, names in lacking.items()]


def show_curves(table: pd.DataFrame):
    """Show PSNR (dB), a row per system, a column per σ."""
    rows = {curve_name(*curve): part.set_index("sigma").psnr for curve, part in by_curve(table.dropna(subset="psnr"))}
    frame = pd.DataFrame(rows).T.reindex(columns=sorted({*table.sigma}))
    frame.columns = [f"σ\u00a0=\u00a0{sigma:g}" for sigma in frame.columns]  # not broken over lines
    return tables.show_table(frame.rename_axis("PSNR (dB)").reset_index()).set_table_attributes(denoising.DENSE)


# The figure


def plot_curves(table: pd.DataFrame):
    """Draw PSNR against σ: on the left the paper's systems and DnCNN, on the right everything that is fixed at σ = 25.

    In both the on-demand network and the noisy photographs.
    """
    figure, (left, right) = subplots(1, 2, figsize=(9, 4.9), sharey=True, layout="constrained")
    curves = {curve: part for curve, part in by_curve(table.dropna(subset="psnr"))}
    ours, noisy = ("on_demand", 0), (NOISY, 0)
    fixed = [(system, told) for system, told in curves if told or SYSTEMS[system].at_25]  # σ = 25 whatever comes

    def draw(axis, curve, **thin):
        part, system = curves[curve], curve[0]
        look = {"color": SYSTEMS[system].colour, "linewidth": 2.4 if system == "on_demand" else 1.4}
        look |= {"linestyle": "--" if curve in fixed else "-", "marker": "o", "markersize": 4}
        look |= {"linestyle": ":", "marker": ""} if system == NOISY else {}
        return axis.plot(part.sigma, part.psnr, label=curve_name(*curve), **thin or look)[0]

    for curve in (*((name, told or 0) for name, told in CURVES), ("dncnn", 0), noisy):
        if curve in curves:
            draw(left, curve)
    thin = {"color": "#0072B2", "alpha": 0.55, "linewidth": 1, "linestyle": "--"}
    drawn = [draw(right, curve, **thin) for curve in fixed]
    lines = {curve_name(*curve): draw(right, curve) for curve in (ours, noisy) if curve in curves}
    lines |= {f"each of {len(fixed)} systems fixed at 25": line for line in drawn[:1]}
    right.legend(lines.values(), lines, fontsize=8, loc="upper right")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    for axis, title in ((left, "the paper's systems, and DnCNN"), (right, "everything fixed at σ = 25")):
        axis.set(xlabel="noise σ (of 255)", title=title)
    left.set_ylabel("PSNR (dB), mean over the images")
    return figure


# Verdicts


def mean_curves(evidence: Evidence) -> pd.DataFrame:
    """Return mean PSNR per σ, a column per curve: `on_demand`, `bm3d`, `bm3d25`, …; NaN where nothing is measured."""
    name = evidence.spectrum.system + evidence.spectrum.told.map(lambda told: "" if pd.isna(told) else f"{told:g}")
    wide = evidence.spectrum.psnr.astype(float).groupby([evidence.spectrum.sigma, name]).mean().unstack()
    return wide.reindex(columns=[f"{system}{told or ''}" for system, told in CURVES])


def judge_whole_spectrum(evidence: Evidence) -> Decision:
    """Judge whether the on-demand network, told nothing, is nowhere more than 0.5 dB behind BM3D, told the truth."""
    ours = evidence.spectrum[evidence.spectrum.system == "on_demand"]
    seeds = ours.pivot(index="sigma", columns="seed", values="psnr").astype(float)
    gaps = seeds.sub(mean_curves(evidence).bm3d, axis="index")
    return judge.decide_claim({f"σ = {sigma:g}": [*gap.dropna()] for sigma, gap in gaps.iterrows()}, beyond=-0.5)


def loss_above_25(evidence: Evidence, systems) -> dict:
    """Return system → the most that it is behind BM3D told the truth at a σ above 25 (dB); only what is measured."""
    gap = mean_curves(evidence)[lambda frame: frame.index > FIXED]
    return gap[list(systems)].rsub(gap.bm3d, axis=0).max().dropna().to_dict()


def judge_told_25(evidence: Evidence) -> Decision:
    """Judge BM3D, K-SVD and WNNM told 25 against BM3D told the truth. No seed is involved."""
    loss = loss_above_25(evidence, [f"{system}{FIXED}" for system in TOLD_SYSTEMS])
    words = ", ".join(f"{SYSTEMS[name.removesuffix('25')].name} {signed(-db)}" for name, db in loss.items())
    if not loss:
        return Decision(MISSING)
    if missing := len(TOLD_SYSTEMS) - len(loss):
        return Decision(UNDECIDED, text=f"{words}, {missing} {MISSING}")
    word = REPRODUCED if min(loss.values()) > LARGE_EFFECT else REVERSED
    return Decision(word, text=f"{words}, no seeds needed: nothing is trained")


def judge_trained_at_25(evidence: Evidence) -> Decision:
    """Judge CSF and TNRD, each trained once at σ = 25, against BM3D told the truth, beyond what they lack at 25."""
    loss, at_25 = loss_above_25(evidence, TRAINED_SYSTEMS), mean_curves(evidence).reindex([FIXED]).iloc[0]
    lacks = {s: at_25.bm3d - at_25[s] - loss[s] for s in loss}
    gaps = {s.upper(): [lacks[s]] if pd.notna(lacks.get(s)) else [] for s in TRAINED_SYSTEMS}
    found = judge.decide_claim(gaps, beyond=-LARGE_EFFECT, sign=-1)
    return found.with_note(", each trained once, with no further seed planned" * all(gaps.values()))


def describe_curves(table: pd.DataFrame, results) -> str:
    """Say what a wrong σ costs, how far the on-demand network is from BM3D told the truth, and where it does harm."""
    evidence = Evidence(spectrum=table)
    lines = {
        "Told 25 − BM3D told the truth, the lowest above σ = 25": judge_told_25(evidence),
        "The same for what was retrained here at σ = 25, beyond its distance there": judge_trained_at_25(evidence),
        "On-demand − BM3D told the truth, nowhere below −0.5 dB": judge_whole_spectrum(evidence),
    }
    psnr = {system: part.set_index("sigma").psnr for (system, _), part in by_curve(table)}
    ours, noisy = (psnr.get(name, pd.Series(dtype=float)) for name in ("on_demand", NOISY))
    below = ", ".join(f"{sigma:g}" for sigma in ours.index[(ours - noisy).reindex(ours.index) < 0])
    notes = [f"the on-demand network is below the noisy photographs themselves at σ = {below}"] * bool(below)
    notes += list_missing_curves(table)
    absent = "\n".join(f"- {line[0].upper() + line[1:]}." for line in notes)
    known = results or any(line.word != MISSING for line in lines.values())
    return sentences.page(lines, results, absent) if known else absent or sentences.QUESTION_OPEN
