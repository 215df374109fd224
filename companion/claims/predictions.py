"""What we expected of the campaign on faces, written before two schedules were compared there, beside what came.

`predictions.csv` has a line for each claim that was predicted, and one for each part whose size was predicted: the
margin that we expected in dB, the interval that it should lie in, and the judge's word. Seen before it was written:
everything on bsds500, and on faces one on-demand network for inpainting alone (seed 0, 6,000 steps), which is compared
with nothing. The lines of blocks D, H and I were added later, when no two schedules had been compared on faces yet; the
line on equal shares against fixated models when Equation 3 had been compared with equal shares, and nothing with a
fixated model.

`predictions_gpu.csv` has the same of profile gpu, written before anything had been trained on a GPU, with the blocks A
to C of profile reference in view; the lines of block I came later, with A and B of profile gpu in view and nothing of
block I trained anywhere.

`predictions_today.csv` has the same of today's network, of recalibration, of the composite as feedback and of the
plateau, and in `then` what follows from each outcome. Seen before it was written: everything above; of today's network
its training on equal shares alone, 2,000 steps of seed 99 on each task, which chose its learning rate; and of
recalibration one look at shipped networks of scenes, one seed, on other photographs. No schedule but equal shares had
been trained in today's network, and nothing had been told the composite. The lines of block E3-staged came later, when
its question had been answered for fixated models, and no staged network had been scored with other statistics; those of
E2-10k and E2-30k when all else of these files was known, and the first six of 42 runs of width 8 were done, not read.
"""

from pathlib import Path

import pandas as pd

from companion.judge import MIN_SEEDS, MISSING, UNDECIDED, Decision, Part
from companion.show.tables import show_table
from companion.words import number

FILES = {"reference": "predictions.csv", "gpu": "predictions_gpu.csv", "today": "predictions_today.csv"}
COLUMNS = ["claim", "part", "expected", "low", "high", "word", "found", "margin", "hit"]


def load_predictions(which: str = "reference") -> pd.DataFrame:
    """Return block, claim, part (empty for the claim itself), expected, low, high (dB, may be empty), word and why.

    `which` is a row of `FILES`: a profile (any other has reference's), or `today`, which also has `then`, what follows.
    """
    file = Path(__file__).with_name(FILES.get(which, FILES["reference"]))
    return pd.read_csv(file, keep_default_na=False, na_values={name: [""] for name in ("expected", "low", "high")})


def predictions_table(decisions: dict[str, Decision], which: str = "reference") -> pd.DataFrame:
    """Return each prediction beside what was found: `COLUMNS`.

    The words are rule 2's, by which they were predicted, and rule 3's of `today`. A claim's prediction hits with its
    word; a part's when its mean margin lies in the predicted interval. A claim of one part has that part's margin.
    `hit` is None where nothing is measured, and of a claim that has too few seeds for a word.
    """
    rows = []
    for row in load_predictions(which).itertuples():
        found = decisions[row.claim] if which == "today" else decisions[row.claim].by_rule2
        lone = next(iter(found.parts.values())) if len(found.parts) == 1 else Part()
        part = found.parts.get(row.part, Part()) if row.part else lone
        word, margin = part.word if row.part else found.published_word, part.mean
        few = any(len(part.values) < MIN_SEEDS for part in found.parts.values())
        early = not row.part and found.word == UNDECIDED and few
        hit = (row.low <= margin <= row.high) if row.part else word == row.word
        hit = None if early or word == MISSING else bool(hit)
        rows.append((row.claim, row.part, row.expected, row.low, row.high, row.word, word, margin, hit))
    return pd.DataFrame(rows, columns=COLUMNS)


def show_predictions(table: pd.DataFrame):
    """Show the predictions beside what was found; a tick where they hit."""
    alone = table.claim + " (" + table.part + ")"
    rows = table.assign(
        claim=table.claim.where(table.part == "", ("– " + table.part).where(table.claim == table.claim.shift(), alone)),
        interval=[f"{number(r.low)} to {number(r.high)}" if r.low == r.low else "–" for r in table.itertuples()],
        hit=table.hit.map({True: "✓", False: "✗", None: "–"}),
    )
    names = {"interval": "predicted margin (dB)", "word": "predicted word", "margin": "found margin (dB)"}
    names["found"] = "found word"
    shown = rows[["claim", "interval", "word", "margin", "found", "hit"]]
    return show_table(shown.rename(columns=names), {"found margin (dB)": number})
