"""Every verdict as data, to be cited: `data/results/<profile>/tables/verdicts-<dataset>.json`."""

import json
from pathlib import Path

from companion.verdicts import claims
from companion.verdicts.judge import Measured, Verdict
from odl import PROTOCOL
from odl.data import sets
from odl.machine import files


def record(claim: claims.Claim, number: int, measured: Measured) -> dict:
    """One claim: its test, the verdict, what was measured in words, and each part in numbers."""
    found = claim.measure(measured)
    said = {name: getattr(claim, name) for name in ("kind", "place", "claim", "test", "paper")}
    return {"number": number} | said | {
        "verdict": found.said,
        "measured": found.measured,
        "parts": [{"part": name} | numbers(found, name) | {"verdict": word} for name, (_, word) in found.parts.items()],
    }  # fmt: skip


def numbers(found: Verdict, part: str) -> dict:
    """The margin of a part, its unit and its 95 % interval, null where there is none."""
    margin, *ends = [round(float(n), 4) for n in found.numbers[part]] if part in found.numbers else [None]
    return {"margin": margin, "unit": None if margin is None else found.unit, "interval": ends or None}


def write(measured: Measured, profile: str, dataset: str) -> Path:
    """Write every verdict, sealed; it has neither date nor commit, so that the same results make the same file."""
    records = [record(claim, number, measured) for number, claim in claims.asked_of(dataset)]
    content = {"protocol": PROTOCOL, "profile": profile, "dataset": sets.slug(dataset), "claims": records}
    content |= {"seal": files.seal_of(content)}
    path = files.results() / profile / "tables" / f"verdicts-{sets.slug(dataset)}.json"
    files.write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
    return path
