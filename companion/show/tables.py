"""Tables that several pages share: PSNR per level, means over seeds, and how a table is shown and kept."""

from pathlib import Path

import numpy as np
import pandas as pd

from companion import judge
from companion.disk import files
from companion.show import sentences
from companion.show.figures import TITLES
from companion.training.measurement import Result
from companion.words import number
from odl import paper
from odl.experiment import slug

SCORED = {"psnr": "all pixels", "psnr_kept": "known pixels kept", "psnr_hole": "missing pixels"}


def means(found: list[Result]) -> pd.DataFrame:
    """Return means over levels 1…6 and trials of the columns of `scores`, a row for each of the runs."""
    columns = ["l2", "psnr", "l2_input", "psnr_input", "psnr_kept", "psnr_hole", "hole_input"]
    frames = [scores(r.evaluation) for r in found]
    return pd.DataFrame([rows[rows.level.str.isdigit()][columns].mean() for rows in frames], columns=columns)


def scores(evaluation: pd.DataFrame) -> pd.DataFrame:
    """Return an evaluation with hole_input: PSNR (dB) of the damaged image inside its missing pixels.

    Inside is above the whole image by the share of it that is missing, in dB, whatever fills it, where the rest is
    known: by as much as the output's psnr_hole is below psnr_kept.
    """
    return evaluation.assign(hole_input=evaluation.psnr_input + evaluation.psnr_hole - evaluation.psnr_kept)


def level_table(results: list[Result], aside=()) -> pd.DataFrame:
    """Return PSNR (dB) per level, means over seeds and trials, for the damaged images and each schedule; `aside` last.

    Columns scored (of `SCORED`: what pixels), schedule (first `not_restored`), level_1 … level_6, mean (of these six),
    easy and hard (the severities of the fixated models).
    """
    levels = {level: f"level_{level}" for level in judge.LEVELS}
    columns = ["scored", "schedule", *levels.values(), "mean", "easy", "hard"]
    if not results:
        return pd.DataFrame(columns=columns).astype(dict.fromkeys(columns[2:], float))
    rows = pd.concat([scores(r.evaluation).assign(schedule=r.experiment["schedule"]) for r in results])
    damaged = {"psnr": rows.psnr_input, "psnr_hole": rows.hole_input}
    damaged["psnr_kept"] = np.nan  # with known pixels kept the damaged image is itself
    beside = [scores(r.evaluation).assign(schedule=r.experiment["schedule"]) for r in aside]
    rows = pd.concat([rows.assign(schedule="not_restored", **damaged), rows, *beside]).rename(columns=SCORED)
    rows = rows.melt(["schedule", "level"], SCORED.values(), "scored").dropna()
    table = rows.pivot_table("value", ["scored", "schedule"], "level", sort=False).rename(columns=levels)
    table["mean"] = table[levels.values()].mean(axis=1)
    return table.reset_index().reindex(columns=columns)


def over_seeds(found: list[Result]) -> dict:
    """Return seeds, l2, l2_sd, psnr, psnr_sd: means over levels 1…6, trials and seeds, deviations over seeds."""
    of_runs = means(found)
    mean, sd = of_runs.mean(), of_runs.std()
    return {"seeds": len(of_runs), "l2": mean.l2, "l2_sd": sd.l2, "psnr": mean.psnr, "psnr_sd": sd.psnr}


def aside(found: list[Result]) -> pd.DataFrame:
    """Return rows schedule, l2 (‰), psnr (dB) of what stands beside the schedules of a table."""
    return pd.DataFrame([{"schedule": r.experiment["schedule"]} | over_seeds([r]) for r in found])


def with_spread(means, deviations, digits: int = 2) -> list[str]:
    """Return `31.20 ± 0.04`: means, and beside them standard deviations over seeds, of which one seed has none."""
    pairs = zip(means, deviations, strict=True)
    return ["–" if pd.isna(x) else f"{x:.{digits}f}" + f" ± {sd:.{digits}f}" * pd.notna(sd) for x, sd in pairs]


def with_interval(value: float, low: float, high: float) -> str:
    """Return `+0.31<br>[+0.12, +0.50]`: a margin, and where there is one its interval, below it in a table."""
    interval = "" if pd.isna(low) else f"<br>[{number(low)}, {number(high)}]"
    return "–" if pd.isna(value) else f"{number(value)}{interval}"


def write_table(frame: pd.DataFrame, notebook: str, profile: str, dataset: str, task: str, network="paper") -> Path:
    """Write the table a notebook shows to `data/results/<profile>/tables/`; nothing where no number in it is ours.

    Where it cannot be written, a line says so and the page goes on.
    """
    path = table_path(notebook, profile, dataset, task, network)
    measured = frame.get("psnr", frame).notna()  # a row of what is still to be measured has the paper's numbers alone
    if "psnr" not in frame and "verdict" in frame:
        measured = frame.verdict != judge.MISSING
    if measured.any(axis=None):
        try:
            files.need_writable(path.parent)
            files.write_atomically(path, frame.to_csv(index=False).encode())
        except OSError as error:
            print(f"The table is shown and not written: {error}")
    return path


def table_path(notebook: str, profile: str, dataset: str, task: str, network: str = "paper") -> Path:
    """Return where a table of a notebook stands; those of another network than the paper's have its name."""
    name = f"{notebook}-{slug(dataset)}-{task}" + ("" if network == "paper" else f"-{network}")
    return files.results() / profile / "tables" / f"{name}.csv"


def show_table(frame: pd.DataFrame, digits: dict | None = None):
    """Show a table on the page, with titles for schedules."""
    frame = frame.replace({"schedule": TITLES}) if "schedule" in frame else frame
    formats = {c: "{:.2f}" for c in frame.select_dtypes("floating")} | (digits or {})
    style = frame.style.format(formats, na_rep="–").hide(axis="index")
    return style.set_table_attributes('class="odl-table"')


def show_levels(table: pd.DataFrame, task: str):
    """Show PSNR (dB) per level of `tables.level_table`; what is scored is named where there is a choice."""
    known = paper.TASKS[task]
    table = table.drop(columns="scored") if table.scored.nunique() < 2 else table
    names = {f"level_{i}": f"{i}: {low}–{high}" for i, (low, high) in enumerate(known["levels"], 1)}
    names |= {"mean": "mean 1–6"} | {name: f"only {sentences.severity_text(task, name)}" for name in ("easy", "hard")}
    return show_table(table.rename(columns=names))
