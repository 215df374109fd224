"""The book's sources: what pages name exists, and what is generated is up to date."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from odl import PROTOCOL, paths, pilot
from odl.experiment import PROFILES

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "book").glob("*.md"))
CITING = [*PAGES, *sorted((ROOT / "notebooks").glob("*.ipynb"))]
TEXT = {".py", ".md", ".ipynb", ".toml", ".txt", ".yml", ".yaml", ".cff", ".bib", ".css", ".js", ".json", ".csv", ""}


@pytest.fixture(scope="module")
def figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "book"))
        return importlib.import_module("figures")


@pytest.fixture(scope="module")
def snippets(figures):
    return figures.snippets


def entries(node):
    """Every `file` and `root` of the table of contents."""
    if isinstance(node, list):
        return [file for part in node for file in entries(part)]
    own = [node[key] for key in ("file", "root") if key in node]
    return own + [file for part in ("parts", "chapters", "sections") for file in entries(node.get(part, []))]


def test_every_entry_of_the_contents_exists():
    for entry in entries(yaml.safe_load((ROOT / "_toc.yml").read_text())):
        template = re.sub(r"-\w+$", "", entry)
        sources = [ROOT / f"{entry}.md", ROOT / f"{entry}.ipynb", ROOT / f"{template}.ipynb"]
        assert any(path.exists() for path in sources), entry


def test_every_page_is_in_the_contents():
    listed = entries(yaml.safe_load((ROOT / "_toc.yml").read_text()))
    assert {f"book/{page.stem}" for page in PAGES} <= set(listed)


@pytest.mark.parametrize("page", CITING, ids=lambda page: page.stem)
def test_every_citation_is_in_the_bibliography(page):
    known = set(re.findall(r"(?m)^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text()))
    cited = re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", page.read_text())
    assert {key.strip() for keys in cited for key in keys.split(",")} <= known


@pytest.mark.parametrize("page", CITING, ids=lambda page: page.stem)
def test_included_code_exists(page):
    text = page.read_text()
    if page.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    for target, options in re.findall(r"```\{literalinclude\} (\S+)\n((?::.*\n)*)", text):
        source = (page.parent / target).read_text()
        for name, value in re.findall(r":([\w-]+): *(.*)\n", options):
            value = value.strip('"')
            if name == "pyobject":
                names = [rf"^ {{{4 * i}}}(?:def|class) {part}\b" for i, part in enumerate(value.split("."))]
                assert re.search("(?ms)" + ".*?".join(names), source), f"{target} has no {value}"
            elif name.startswith(("start-", "end-")):
                assert value in source, f"{target} has no line {value!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_included_tables_and_figures_are_generated(page, figures):
    sources = {f"{Path(name).stem}-source" for name in figures.FIGURES}
    for target in re.findall(r"/generated/([\w.-]+)", page.read_text()):
        assert target in figures.FIGURES or target.removesuffix(".md") in {*figures.TABLES, *sources}, target


def test_tables_in_readmes_are_what_the_results_files_say(snippets):
    for page in snippets.PAGES:
        assert page.read_text() == snippets.filled(page.read_text()), f"{page}: run python book/figures.py --readme"


def test_counted_arithmetic_is_the_networks(snippets):
    """Against a count by hand for width 64: two outer layers, six of equal cost between them, the linear map."""
    outer, middle, linear = 2 * 16 * 3 * 64 * 32**2, 2 * 16 * 64 * 128 * 16**2, 2 * 512 * 16 * 16
    assert snippets.forward_flop(3, 64) == 2 * outer + 6 * middle + linear
    assert snippets.iteration_flop(3, 64) == 100 * (3 * (2 * outer + 6 * middle + linear) - outer)


def test_departures_and_the_pilot_are_of_the_profiles(snippets, root, monkeypatch):
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in snippets.departures().splitlines()[2:]]
    said = {name: (theirs, ours) for name, theirs, ours, _ in rows}
    for name, field in (("Width f of the network", "width"), ("Images a batch", "batch_size")):
        assert said[name] == tuple(str(PROFILES[p][field]) for p in ("paper", "reference"))
    assert said["Learning rate"] == ("0.0002, constant", "0.002, to 0 in a line from 80% of training")
    assert all(f"`{name}`" in snippets.profiles_table() for name in PROFILES)
    assert "not measured yet" in snippets.piloted()
    row = ("width 16", "inpaint", 5600, 600.4, 22.123, 23.0, 23.5)
    columns = ["contestant", "task", "steps", "core_seconds", "validation", "last", "averaged"]
    monkeypatch.setattr(pilot, "table", lambda _: pd.DataFrame([row], columns=columns))
    assert "| width 16 | inpainting | 5,600 | 600 | 22.12 | 23.00 | 23.50 |" in snippets.piloted()


def test_snippets_are_written_when_nothing_is_measured(tmp_path):
    """Pages build from an empty results folder too."""
    code = "import figures\nfor name, table in figures.TABLES.items():\n    text, source = "
    code += "figures.with_source(name, table)\n    assert text and not source, name\n"
    code += "print(figures.snippets.results_table())"
    environment = {"ODL_ROOT": str(tmp_path), "PYTHONPATH": str(ROOT / "book"), "PATH": ""}
    run = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "not measured yet" in run.stdout


def test_a_strict_build_ends_with_the_names_of_results_not_to_publish(root, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "book"))
    build, path = importlib.import_module("build"), root / "data" / "results" / "smoke" / "one.json"
    content = {"protocol": PROTOCOL, "experiment": {}, "provenance": {"commit": "0123abc"}}
    paths.write_atomically(path, paths.seal(content))
    build.check_current("smoke")
    paths.write_atomically(path, paths.seal(content | {"provenance": {"commit": "0123abc-dirty"}}))
    with pytest.raises(SystemExit, match="1 of 1 results"):
        build.check_current("smoke")
    assert "smoke/one.json is of code with uncommitted changes" in capsys.readouterr().err


def text_files_of_the_project():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git repository")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).suffix in TEXT]


def test_no_registry_hosts_and_no_machine_paths():
    """Files that people receive name neither where packages were fetched here nor where they lay."""
    hosts = r"(?:index-url|registry\.npmjs|\"resolved\": *\"http|https?://[\w.:-]+/(?:simple|pypi)\b)"
    folders = r"(?<![\w.])/(?:" + "|".join(["home", "root", "work", "Users", "mnt"]) + r")/\w+"
    for path in text_files_of_the_project():
        if path.exists() and path != Path(__file__):
            found = re.search(f"{hosts}|{folders}", path.read_text(errors="ignore"))
            assert not found, f"{path}: {found[0]}"
