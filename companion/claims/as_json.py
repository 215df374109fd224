"""Every verdict as data, to be cited: `data/results/<profile>/tables/verdicts-<dataset>.json`."""

import json
from pathlib import Path

from companion.claims import claims
from companion.disk import files
from companion.judge import Measured, Verdict
from odl import PROTOCOL
from odl.experiment import slug


def record(claim: claims.Claim, number: int, measured: Measured) -> dict:
    """One claim: its test, the verdict, what was measured in words, and each part in numbers."""
    found = claim.measure(measured)
    said = {name: getattr(claim, name) for name in ("kind", "place", "claim", "test", "paper")}
    return {"number": number} | said | {
        "verdict": found.said,
        "by_rule_2": found.by_rule2.said,
        "measured": found.measured,
        "parts": [part(found, name) for name in found.parts],
    }  # fmt: skip


def part(found: Verdict, name: str) -> dict:
    """A part's margin with unit and 95 % interval, null where there is none, and its word; the composite's likewise."""
    unit = found.unit if name in found.numbers else None
    told = {"part": name, "unit": unit} | numbers(found.numbers.get(name)) | {"verdict": found.parts[name][1]}
    if name in found.kept:
        told["composite"] = numbers(found.kept_numbers[name]) | {"verdict": found.kept[name][1]}
    return told


def numbers(found: tuple | None) -> dict:
    margin, *ends = [round(float(n), 4) for n in found] if found else [None]
    return {"margin": margin, "interval": ends or None}


def write(measured: Measured, profile: str, dataset: str) -> Path:
    """Write every verdict, sealed; it has neither date nor commit, so that the same results make the same file."""
    records = [record(claim, number, measured) for number, claim in claims.asked_of(dataset)]
    content = {"protocol": PROTOCOL, "profile": profile, "dataset": slug(dataset), "claims": records}
    content |= {"seal": files.seal_of(content)}
    path = files.results() / profile / "tables" / f"verdicts-{slug(dataset)}.json"
    files.write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
    return path
