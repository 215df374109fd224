"""Every verdict as data, to be cited: `data/results/<profile>/tables/verdicts-<dataset>.json`."""

import json
from pathlib import Path

import numpy as np

from companion.claims import claims
from companion.disk import files
from companion.judge import Decision, spread
from companion.words import describe
from odl import PROTOCOL
from odl.experiment import slug


def record_claim(number: int, claim: claims.Claim, found: Decision) -> dict:
    """Return a claim with its test, its verdict, what was measured in words, and each part in numbers.

    A part has its margin with unit and 95 % interval, null where there is none, and its word; so has its composite.
    """
    parts = []
    for name, part in found.parts.items():
        unit = found.unit if len(part.values) else None
        parts.append({"part": name, "unit": unit} | numbers(part.values) | {"verdict": part.full_word})
        if len(part.composite):
            parts[-1]["composite"] = numbers(part.composite) | {"verdict": part.composite_word}
    said = {name: getattr(claim, name) for name in ("kind", "place", "claim", "test", "paper")}
    words = {"verdict": found.published_word, "by_rule_2": found.by_rule2.published_word, "measured": describe(found)}
    return {"number": number} | said | words | {"parts": parts}


def numbers(values) -> dict:
    margin, *ends = (None if np.isnan(n) else round(float(n), 4) for n in spread(values))
    return {"margin": margin, "interval": None if None in ends else ends}


def write_claims(decisions: dict[str, Decision], profile: str, dataset: str) -> Path:
    """Write every verdict, sealed; it has neither date nor commit, so that the same results make the same file."""
    records = [record_claim(number, claim, decisions[claim.claim]) for number, claim in claims.asked_of(dataset)]
    content = {"protocol": PROTOCOL, "profile": profile, "dataset": slug(dataset), "claims": records}
    content |= {"seal": files.seal_of(content)}
    path = files.results() / profile / "tables" / f"verdicts-{slug(dataset)}.json"
    files.write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
    return path
