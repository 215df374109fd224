"""Verdicts as data, and which files are behind each."""

import os

import pytest
from scipy import stats

from companion import judge
from companion.claims import as_json, claims
from companion.cli import companion
from companion.disk import files
from companion.runs import catalogue

SEEDS = [0, 1, 2]


def test_a_claim_with_parts_to_be_measured_has_no_word(monkeypatch):
    """Also where those that are measured lie below the paper's margin, and no other seed could change that."""
    parts = {"measured": [0.01, 0.02, -0.03], "not": []}
    found = judge.decide_claim(parts, {"measured": [0.02, 0.03, -0.02]}, printed={"measured": 0.3})
    claim = claims.CLAIMS[0]._replace(decide=lambda evidence: found)
    record = as_json.record_claim(1, claim, found)
    assert found.word == judge.EXCLUDED and record["verdict"] == judge.MISSING
    ends = stats.ttest_1samp(parts["measured"], 0).confidence_interval()
    assert [part["margin"] for part in record["parts"]] == [0.0, None]
    assert [part["interval"] for part in record["parts"]] == [pytest.approx([*ends], abs=5e-5), None]
    assert record["parts"][0]["composite"]["margin"] == 0.01
    monkeypatch.setattr(claims, "CLAIMS", [claim])
    assert [*claims.claims_table(claims.judge_claims(judge.Evidence())).verdict] == [judge.MISSING]


def test_a_page_names_the_result_files_that_it_shows():
    """Against names spelled out, and nothing that is not here."""
    found = catalogue.files_of("fixation-inpaint", "reference", "bsds500", SEEDS)
    own = files.results() / "reference" / "bsds500" / "inpaint"
    assert {path for path in found if "-seed" in path.name and path.stem[-1].isdigit()} == {
        own / f"{name}-seed{seed}.json" for name in ("fixated_easy", "fixated_hard", "on_demand") for seed in SEEDS
    }
    every = catalogue.files_of("scorecard", "reference", "bsds500", SEEDS)
    assert {*found} < {*every} and all(path.exists() for path in every)
    db11 = {*(files.results() / "reference" / "db11").glob("*.json")}
    assert db11 and db11 <= {*catalogue.files_of("table3", "reference", "bsds500", SEEDS)}
    assert not catalogue.files_of("table1-deblur", "reference", "bsds500", [99])


@pytest.mark.parametrize(
    "scale", [("demo", "bsds500", SEEDS), ("reference", "celeba", SEEDS), ("reference", "bsds500", [99])]
)
def test_nothing_is_taken_from_another_scale(scale, monkeypatch):
    """But for the paper's rivals on the eleven photographs, which have no other."""
    monkeypatch.delenv("ODL_ROOT", raising=False)
    table = claims.claims_table(claims.judge_claims(claims.load_evidence(*scale)))
    assert {*table.verdict[~table.claim.str.startswith(("BM3D", "MLP"))]} == {judge.MISSING}


def test_the_command_writes_a_sealed_file_also_where_nothing_is_measured(root, capsys):
    assert companion(["verdicts", "--profile", "smoke", "--dataset", "demo"]) == 0
    path = root / "data" / "results" / "smoke" / "tables" / "verdicts-demo.json"
    assert capsys.readouterr().out.strip() == os.fspath(path)
    content = files.unseal(path)
    assert content["protocol"] and {claim["verdict"] for claim in content["claims"]} <= {*judge.VERDICTS}
    assert companion(["verdicts", "--profile", "smok"]) == 2 and "nearest: 'smoke'" in capsys.readouterr().err
    assert '"seal": "' in path.read_text()
