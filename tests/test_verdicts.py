"""Verdicts as data say what the scorecard says, and which files are behind each."""

import json
import os
import re

import pytest

from companion.__main__ import main
from companion.runs import catalogue
from companion.verdicts import as_json, claims, judge
from odl.machine import files, store

SEEDS = [0, 1, 2]


@pytest.fixture(scope="module")
def written():
    """The verdicts on what comes with the repository, and the table of the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ODL_ROOT", raising=False)
        store.USED.clear()  # of what other tests read elsewhere
        measured = claims.load("reference", "bsds500", SEEDS)
        home = files.results()
        patch.setattr(as_json.files, "write_atomically", lambda path, content: kept.append(content))
        kept = []
        as_json.write(measured, "reference", "bsds500")
        as_json.write(measured, "reference", "bsds500")
    assert kept[0] == kept[1]  # the same results, the same file
    return json.loads(kept[0]), claims.score_all(measured), home


def test_every_claim_has_the_scorecard_s_word(written):
    content, table, _ = written
    for name in ("number", "claim", "verdict"):
        assert [claim[name] for claim in content["claims"]] == list(table[name])


def test_a_claim_with_parts_to_be_measured_has_no_word(monkeypatch):
    """Also where those that are measured lie below the paper's margin, and no other seed could change that."""
    parts = {"measured": [0.01, 0.02, -0.03], "not": []}
    found = judge.verdict_on(parts, printed={"measured": 0.3})
    claim = claims.CLAIMS[0]._replace(measure=lambda measured: found)
    assert found.word == judge.EXCLUDED and as_json.record(claim, 1, judge.Measured())["verdict"] == judge.MISSING
    monkeypatch.setattr(claims, "CLAIMS", [claim])
    assert [*claims.score_all(judge.Measured()).verdict] == [judge.MISSING]


def test_margins_are_numbers_with_their_intervals(written):
    """Those that the judge words, as in `+0.31 dB [+0.12, +0.50]: reproduced`, to the hundredth that words have."""
    content, table, _ = written
    for claim, shown in zip(content["claims"], table.parts, strict=True):
        worded = shown.split("; ") if shown else [None] * len(claim["parts"])
        for part, words in zip(claim["parts"], worded, strict=True):
            margin, interval = part["margin"], part["interval"] or []
            if part["verdict"] == judge.MISSING:
                assert margin is None
                continue
            assert not interval or interval[0] <= margin <= interval[1]
            if words:
                said = words.removeprefix(part["part"]).removesuffix(f": {part['verdict']}")
                digits = [float(n.replace("−", "-")) for n in re.findall(r"[+−]\d+(?:\.\d+)?", said)]
                assert digits == pytest.approx([margin, *interval], abs=0.0051 if "." in said else 0.51)
                assert part["unit"] in said and words.startswith(part["part"]) and words.endswith(part["verdict"])
    assert any(part["interval"] for claim in content["claims"] for part in claim["parts"])


def test_files_are_those_that_a_claim_compares(written):
    content, _, home = written
    for claim in content["claims"]:
        assert (claim["verdict"] == judge.MISSING) or claim["files"], claim["claim"]
        assert all((home / name).exists() for name in claim["files"])
    [own] = [c for c in content["claims"] if c["claim"].startswith("Inpainting: a fixated model fails")]
    models = ("fixated_easy", "fixated_hard", "on_demand")
    assert own["files"] == [f"reference/bsds500/inpaint/{name}-seed{seed}.json" for name in models for seed in SEEDS]
    weak = [c for c in content["claims"] if "the centre encoder is weak" in c["measured"]]
    for claim in weak:
        assert {f"reference/bsds500/inpaint/fixated_hard-seed{seed}.json" for seed in SEEDS} <= {*claim["files"]}
    assert weak
    faces = "celeba10k-native"
    [(number, claim)] = [c for c in claims.asked_of(faces) if c[1].claim.startswith("Minimax training is less far")]
    seeds = catalogue.SEEDS_OF_FACES
    own = as_json.record(claim, number, claims.load("reference", faces, seeds))["files"]
    names = [f"level_{level}-seed{seeds[0]}" for level in range(1, 6)]
    names += [f"{rule}-seed{seed}" for rule in ("minimax_gap", "on_demand") for seed in seeds[:3]]
    assert own == sorted(f"reference/{faces}/{task}/{name}.json" for task in judge.paper.TASKS for name in names)


@pytest.mark.parametrize(
    "scale", [("demo", "bsds500", SEEDS), ("reference", "celeba", SEEDS), ("reference", "bsds500", [99])]
)
def test_nothing_is_taken_from_another_scale(scale, monkeypatch):
    """But for the paper's rivals on the eleven photographs, which have no other."""
    monkeypatch.delenv("ODL_ROOT", raising=False)
    table = claims.score_all(claims.load(*scale))
    assert {*table.verdict[~table.claim.str.startswith(("BM3D", "MLP"))]} == {judge.MISSING}


def test_the_command_writes_a_sealed_file_also_where_nothing_is_measured(root, capsys):
    assert main(["verdicts", "--profile", "smoke", "--dataset", "demo"]) == 0
    path = root / "data" / "results" / "smoke" / "tables" / "verdicts-demo.json"
    assert capsys.readouterr().out.strip() == os.fspath(path)
    content = files.unseal(path)
    assert content["protocol"] and {claim["verdict"] for claim in content["claims"]} <= {*judge.VERDICTS}
    assert main(["verdicts", "--profile", "smok"]) == 2 and "nearest: 'smoke'" in capsys.readouterr().err
    path.write_text(path.read_text().replace(judge.MISSING, judge.REPRODUCED, 1))
    with pytest.raises(files.DamagedFile):
        files.unseal(path)
