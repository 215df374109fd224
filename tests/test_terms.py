"""One name for each thing: no page and no printed sentence has a word of the last column of the table of terms."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TERMS = ROOT / "book" / "references.md"
NOT = [
    term
    for row in re.findall(r"(?m)^\|(.*)\|$", TERMS.read_text(encoding="utf-8"))[2:]
    for term in row.split("|")[-1].strip().split(", ")
    if term
]
FORBIDDEN = re.compile(rf"(?i)\b({'|'.join(map(re.escape, NOT))})s?\b")
QUOTED = r"`[^`]*`|“[^”]*”|\(eq-[^)]*\)|[\w/]+\.py"  # code, another's word, a file
TEXTS = [
    ROOT / "README.md",
    *sorted((ROOT / "book").glob("*.md")),
    *sorted((ROOT / "book").glob("*.j2")),
    *sorted((ROOT / "book" / "lab").glob("*.[hj]*")),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
    *sorted((ROOT / "book" / "exercises").glob("*.ipynb")),
    *(path for folder in ("odl", "companion", "book", "bench") for path in sorted((ROOT / folder).glob("*.py"))),
]


def said(path: Path) -> str:
    """What a reader sees: the prose of a page or notebook, the strings of a program."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".md", ".j2", ".html"):
        return re.sub(r"(?ms)^```\w+$.*?^```$", "", text)
    if path.suffix in (".js", ".json"):
        return "\n".join(s for pair in re.findall(r'"([^"\n]*)"|`([^`]*)`', text) for s in pair if " " in s)
    if path.suffix == ".ipynb":
        cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        return "\n".join(cells)
    tree = ast.parse(text)
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join(text for text in strings if " " in text and "\n" not in text.strip())  # no names, no long comments


@pytest.mark.parametrize("path", [path for path in TEXTS if path != TERMS], ids=lambda path: path.name)
def test_each_thing_has_one_name(path):
    found = {match[0] for match in FORBIDDEN.finditer(re.sub(QUOTED, "", re.sub(r"(?m)^`{3,}.*$", "", said(path))))}
    assert not found, f"{path.name} says {found}; the table of terms in {TERMS.name} has the name"
