"""Every verdict as data, to be cited: `data/results/<profile>/tables/verdicts-<dataset>.json`."""

import json
from dataclasses import replace
from pathlib import Path

from companion.verdicts import claims
from companion.verdicts.judge import MISSING, Measured, Verdict
from odl import PROTOCOL
from odl.data import sets
from odl.machine import files, store

ON_DB11 = ("Table 3", "Fig. 6")  # places whose claims rest on all that is measured of the eleven photographs


class Noting(dict):
    """Results that note the files of those that are looked up."""

    def __init__(self, results: dict, noted: set[Path]):
        super().__init__(results)
        self.noted = noted

    def __getitem__(self, key):
        self.noted.add(super().__getitem__(key).path)
        return super().__getitem__(key)

    def get(self, key):
        found = super().get(key)
        self.noted |= {found.path} if found else set()
        return found


def record(claim: claims.Claim, number: int, measured: Measured) -> dict:
    """One claim: its test, the verdict, what was measured in words, each part in numbers, and the files behind it."""
    noted = set()
    found = claim.measure(replace(measured, runs=Noting(measured.runs, noted)))
    if claim.place.startswith(ON_DB11) and found.word != MISSING:
        noted |= {path for path in store.USED if path.parent.name == "db11" and path.suffix == ".json"}
    said = {name: getattr(claim, name) for name in ("kind", "place", "claim", "test", "paper")}
    return {"number": number} | said | {
        "verdict": found.said,
        "measured": found.measured,
        "parts": [{"part": name} | numbers(found, name) | {"verdict": word} for name, (_, word) in found.parts.items()],
        "files": sorted(path.relative_to(files.results()).as_posix() for path in noted),
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
