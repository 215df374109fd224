"""Table 2: the on-demand network beside context encoders on 32×32 blocks (Sec. 6.5)."""

from dataclasses import replace

import numpy as np
import pandas as pd

from companion import judge, published
from companion.comparators import INPAINTERS
from companion.comparators.holes import BLOCKS
from companion.judge import Decision, Evidence
from companion.measure.blocks import BIHARMONIC
from companion.show import sentences, tables
from companion.training.measurement import Result
from companion.training.results import load_result
from companion.words import estimate, signed

CENTRE, RANDOM = INPAINTERS
SPECIALIST = "fixated_hard"  # our own network for the central block alone
TITLES = INPAINTERS | {"on_demand": "On-demand", BIHARMONIC: "Biharmonic equation"}
TITLES |= {"not_restored": "Not restored: the grey filling"}
TITLES |= {SPECIALIST: "Our network, fixated on the centre, other crops"}
SHORT_TITLES = {"on_demand": "on-demand", CENTRE: "centre", RANDOM: "random regions"}
NOT_PRINTED = ((np.nan, np.nan),) * len(BLOCKS)
COLUMNS = ("l2", "l2_sd", "psnr", "psnr_sd", "paper_l2", "paper_psnr")


def blocks_table(measured: list[Result], own: list[Result] = ()) -> pd.DataFrame:
    """Return a row per method in the paper's order; then `own`, runs of `SPECIALIST`, on the central block.

    Columns per block (central_…, arbitrary_…): l2 (%) and psnr (dB), means over trials and seeds, l2_sd and psnr_sd
    (standard deviations over seeds), and the paper's l2 and psnr on CelebA. Methods that are not among the results are
    left out; `not_restored` comes first, then the equation that learns nothing.
    """
    of_seeds = {}
    for r in measured:
        of_seeds.setdefault(r.experiment["schedule"], []).append(r.evaluation.groupby("level")[["l2", "psnr"]].mean())
    printed = dict.fromkeys(("not_restored", BIHARMONIC), NOT_PRINTED) | published.TABLE2
    rows = []
    for method in (name for name in printed if name in of_seeds):
        row = [method]
        for block, papers in zip(BLOCKS, printed[method], strict=True):
            scores = pd.DataFrame([means.loc[block] for means in of_seeds[method]]) / [10, 1]  # ‰ to %
            mean, sd = scores.mean(), scores.std()
            row += [mean.l2, sd.l2, mean.psnr, sd.psnr, *papers]
        rows.append(row)
    frame = pd.DataFrame(rows, columns=["method", *(f"{block}_{name}" for block in BLOCKS for name in COLUMNS)])
    inside = pd.Series([inside_hole(run) for run in own], dtype=float)
    more = [{"method": SPECIALIST, "central_psnr": inside.mean(), "central_psnr_sd": inside.std()}] if own else []
    return pd.concat([frame, pd.DataFrame(more, columns=frame.columns).astype(frame.dtypes)], ignore_index=True)


def inside_hole(run: Result) -> float:
    """Return PSNR inside the central 32×32 block, which is the severity of `SPECIALIST`, on the test crops of a run."""
    return judge.score(run, ["hard"], "psnr_hole")


def own_runs(ours) -> list[Result]:
    """Return what is measured of `SPECIALIST` beside the experiments of the on-demand network."""
    return [run for run in (load_result(replace(experiment, schedule=SPECIALIST)) for experiment in ours) if run]


def show_blocks(table: pd.DataFrame):
    """Show per block ours ± standard deviations over seeds, and the paper's numbers."""
    shown = {("", "method"): table.method.map(TITLES)}
    for block in BLOCKS:
        shown |= {
            (f"{block} block", "L2 (%)"): tables.with_spread(table[f"{block}_l2"], table[f"{block}_l2_sd"], 3),
            (f"{block} block", "PSNR (dB)"): tables.with_spread(table[f"{block}_psnr"], table[f"{block}_psnr_sd"]),
            (f"{block} block", "paper: L2"): table[f"{block}_paper_l2"],
            (f"{block} block", "paper: PSNR"): table[f"{block}_paper_psnr"],
        }
    return tables.show_table(pd.DataFrame(shown)).set_table_attributes('class="odl-table odl-numbers"')


# Verdicts


def judge_block(evidence: Evidence, one: str, others, block: str) -> Decision:
    """Judge one method against others on a block, central or arbitrary; a note says if the centre encoder is weak."""
    labels = [TITLES[other] if len(others) > 1 else "" for other in others]
    pairs = {k: ("blocks", one, other, [block]) for k, other in zip(labels, others, strict=True)}
    found = judge.compare(evidence, pairs)
    encoder = [judge.score(run, ["central"]) for run in judge.runs_of(evidence.runs, CENTRE, ["blocks"])]
    own = [inside_hole(run) for run in judge.runs_of(evidence.runs, SPECIALIST, ["inpaint"])]
    if found.word == judge.MISSING or not own or np.mean(own) < np.mean(encoder):
        return found
    weak = f"; the centre encoder is weak, {np.mean(encoder):.2f} dB where our own fixated network has "
    return found.with_note(f"{weak}{np.mean(own):.2f}")


def judge_specialist(evidence: Evidence) -> Decision:
    """Judge our own network fixated on the central block against the on-demand network, inside it, on the same crops.

    It is to be measured until Table 2 is measured.
    """
    found = judge.compare(evidence, {"": ("inpaint", SPECIALIST, "on_demand", ["hard"], "psnr_hole")})
    ours = [judge.score(run, ["central"]) for run in judge.runs_of(evidence.runs, "on_demand", ["blocks"])]
    own = [inside_hole(run) for run in judge.runs_of(evidence.runs, SPECIALIST, ["inpaint"])]
    if found.word == judge.MISSING or not ours:
        return Decision(judge.MISSING)
    note = f"; {np.mean(own):.2f} dB, on-demand on the crops of Table 2 {np.mean(ours):.2f} dB, so there "
    return found.with_note(f"{note}{signed(np.mean(own) - np.mean(ours))}")


def places(evidence: Evidence, method: str) -> np.ndarray:
    """Return central minus arbitrary block (dB) of one method, for every seed."""
    runs = judge.paired(evidence.runs, "blocks", method)
    return np.array([judge.score(run, ["central"]) - judge.score(run, ["arbitrary"]) for [run] in runs])


def judge_centre_encoder(evidence: Evidence) -> Decision:
    """Judge what the centre encoder loses on an arbitrary block."""
    return judge.decide_claim({"": places(evidence, CENTRE)}, beyond=judge.LARGE_EFFECT)


def judge_both_blocks(evidence: Evidence) -> Decision:
    """Judge less than 1 dB between the two places for the on-demand network, either way."""
    gap, printed = places(evidence, "on_demand"), np.subtract(*(psnr for _, psnr in published.TABLE2["on_demand"]))
    other = f"; the paper's {signed(printed)} has the other sign" * bool(len(gap) and gap.mean() * printed < 0)
    return judge.decide_claim({"central": gap, "arbitrary": -gap}, beyond=-1, text=estimate(gap) + other)


def judge_classical(evidence: Evidence) -> Decision:
    """Judge the biharmonic equation, which has no seed, against the on-demand networks, inside either block."""
    fills, ours = judge.paired(evidence.runs, "blocks", BIHARMONIC), judge.paired(evidence.runs, "blocks", "on_demand")

    def leads(column: str) -> dict:
        scores = {b: [judge.score(run, [b], column) for [run] in ours] for b in BLOCKS}
        return {b: [judge.score(fill, [b], column) - db for [fill] in fills for db in scores[b]] for b in BLOCKS}

    return judge.decide_claim(leads("psnr"), confirm={b: np.negative(more) for b, more in leads("l2").items()})


def describe_blocks(results, ours=()) -> str:
    """Say Table 2's three statements beside the paper's numbers, and the classical fill; `ours`: on-demand runs."""
    runs = {("blocks", r.experiment["schedule"], r.experiment["seed"]): r for r in results}
    evidence = Evidence(runs | judge.keyed(own_runs(ours)))
    central = judge_block(evidence, CENTRE, ["on_demand"], "central")
    arbitrary = judge_block(evidence, "on_demand", [CENTRE, RANDOM], "arbitrary")
    lines = {
        "Centre encoder − on-demand, central block (paper: +1.42 dB)": central,
        "On-demand − each encoder, arbitrary block (paper: +8.51 and +4.11 dB)": arbitrary,
        "On-demand, central − arbitrary block, less than 1 dB (paper: +0.43 dB)": judge_both_blocks(evidence),
        "Biharmonic equation − on-demand, either block (not in the paper)": judge_classical(evidence),
    }
    trained = [r for r in results if r.experiment["schedule"] != BIHARMONIC]
    return sentences.page(lines, trained)
