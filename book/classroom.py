"""Write the notebooks for students and the slides of every notebook: python book/classroom.py PROFILE.

Both come from the notebooks of the book, and go to _build/class: in `students` solutions give way to stand-ins, and
`slides` are reveal.js decks that need no network. Slides show what PROFILE shows, so the notebooks are executed first.
"""

import argparse
import re
import shutil
import sys
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import build
import live
import nbformat
from nbconvert import SlidesExporter
from pybtex.database import parse_file
from pybtex.richtext import Text
from sphinx.directives.code import LiteralIncludeReader

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
sys.path.append(str(BOOK / "_ext"))
from offline import write_mathjax  # noqa: E402

CLASS = ROOT / "_build" / "class"
STAND_IN = {"code": "# YOUR CODE HERE\nraise NotImplementedError()", "markdown": "YOUR ANSWER HERE"}  # as nbgrader's
SOLUTION = re.compile(r"(?ms)^(?:# |<!-- )BEGIN SOLUTION.*?^(?:# |<!-- )END SOLUTION[^\n]*$")
GATE = re.compile(r"(?m)\A```\{solution-(?:start|end)\}")
UNSEEN = {"parameters", "injected-parameters", "remove-cell"}  # tags of cells that no slide shows
LONG = 350  # characters of text that leave no room for a figure on the same slide


# Plain Markdown, for what reads no MyST


def plain(text: str) -> str:
    """Markdown without MyST: citations and code in full, exercises under a heading, no links into the book."""

    def cited(match):
        return f"({'; '.join(citations()[key] for key in match[1].split(','))})"

    text = re.sub(r"(?ms)^(:{3,})\{dropdown\}.*?^\1$", "", text)
    text = re.sub(r"(?ms)^```\{exercise\} ([^\n]*)\n(?::[^\n]*\n)*(.*?)^```$", r"## Exercise: \1\n\2", text)
    text = re.sub(r"(?m)^```\{literalinclude\} (\S+)\n((?::.*\n)*)```$", code, text)
    text = re.sub(r"(?m)^\$\$ \(eq-[\w-]+\)$", "$$", text)
    text = re.sub(r" ?\(?\{(?:eq|numref)\}`[^`]*`\)?", "", text)
    text = re.sub(r"\{doc\}`(/[^`<]*)`", lambda match: f"“{title(match[1])}”", text)
    text = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", cited, text)
    return re.sub(r"\{\w+\}`([^`<]*?)(?: <[^`]*>)?`", r"\1", text).strip()


def title(page: str) -> str:
    """The heading of a page of the book: /book/method, /notebooks/fixation."""
    path = ROOT / f"{page[1:]}.ipynb"
    text = (
        nbformat.read(path, 4).cells[0].source if path.exists() else path.with_suffix(".md").read_text(encoding="utf-8")
    )
    return text.splitlines()[0].removeprefix("# ")


def code(match: re.Match) -> str:
    """The lines that a `literalinclude` of a notebook includes."""
    given = re.findall(r":([\w-]+): *(.*)", match[2])
    options = {name: int(value) if value.isdigit() else value.strip('"') for name, value in given}
    path, config = str(ROOT / "notebooks" / match[1]), SimpleNamespace(source_encoding="utf-8-sig")
    return f"```python\n{LiteralIncludeReader(path, options, config).read()[0].rstrip()}\n```"


@cache
def citations() -> dict[str, str]:
    """Bibliography key → names and year."""
    found = {}
    for key, entry in parse_file(BOOK / "references.bib").entries.items():
        names = [str(Text(" ".join(map(str, person.rich_last_names)))) for person in entry.persons["author"]]
        authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        found[key] = f"{authors}, {entry.fields['year']}"
    return found


# Notebooks for students


def for_students(notebook):
    """A stored notebook in which every solution has given way to a stand-in."""
    notebook.cells = [cell for cell in notebook.cells if not GATE.match(cell.source)]
    for cell in notebook.cells:
        cell.source = SOLUTION.sub(STAND_IN.get(cell.cell_type, ""), cell.source)
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source)
    return notebook


def write_students(folder: Path) -> list[Path]:
    """Every notebook for students; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    for path in notebooks:
        nbformat.write(for_students(nbformat.read(path, as_version=4)), folder / path.name)
    return [folder / path.name for path in notebooks]


# Slides


def on_slides(notebook):
    """A page of the book cut into slides: a slide for each heading, below it one for each figure that needs room."""
    cells, text = [], ""  # text: of the cell before, where that is text
    for cell in notebook.cells:
        tags, solution = set(cell.metadata.get("tags", [])), "nbgrader" in cell.metadata
        before, text = text, ""
        if cell.cell_type == "markdown":
            cell.source = "" if GATE.match(cell.source) else plain(cell.source)
            cell.source = shown = text = re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.html)", cell.source)
            kind = "slide" if cell.source.startswith("#") else "-" if before or solution else "subslide"
        else:
            step = not cell.outputs and before and "hide-input" not in tags  # what a section is about, but no picture
            shown = (cell.outputs or step) and not tags & UNSEEN
            kind = "-" if step or (0 < len(before) < LONG and not solution) else "subslide"
            cell.metadata.transient = {"remove_source": bool(cell.outputs) and not solution}
        if shown:
            cell.metadata.slideshow = {"slide_type": kind}
            cells.append(cell)
    notebook.cells = cells
    notebook.metadata.title = re.sub(r"^#+ ", "", cells[0].source.splitlines()[0])
    return notebook


def write_assets(folder: Path) -> str | None:
    """What every deck loads; returns in a line what could not be had."""
    files, missing = live.vendored("reveal.js")
    if not missing:
        folder.mkdir(parents=True, exist_ok=True)
        for path in [*files, BOOK / "slides.css"]:
            shutil.copy2(path, folder)
        write_mathjax(folder / "mathjax")
    return missing


def write_deck(notebook, path: Path) -> None:
    """A notebook with its outputs as reveal.js slides."""
    exporter = SlidesExporter(template_file=str(BOOK / "slides.html.j2"))
    path.write_text(exporter.from_notebook_node(on_slides(notebook))[0], encoding="utf-8")


def write_slides(pages, folder: Path) -> str | None:
    """A deck for each executed page; returns in a line why there are none."""
    missing = write_assets(folder / "assets")
    for page in pages if not missing else ():
        build.tidy(page)
        notebook = nbformat.read(build.SOURCE / "notebooks" / f"{page.name}.ipynb", as_version=4)
        write_deck(notebook, folder / f"{page.name}.html")
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", nargs="?", default="reference", choices=build.DATASETS)
    profile = parser.parse_args().profile

    began = time.perf_counter()
    shutil.rmtree(CLASS, ignore_errors=True)
    students = write_students(CLASS / "students")
    print(f"{len(students)} notebooks for students: {CLASS.relative_to(ROOT)}/students/")
    pages = build.plan(profile)
    print(f"executing {len(pages)} notebooks at profile {profile} for the slides, two at a time", flush=True)
    build.execute_all(pages)
    (build.SOURCE / "notebooks").mkdir(parents=True, exist_ok=True)
    missing = write_slides(pages, CLASS / "slides")
    if missing:
        sys.exit(f"class: no slides: {missing}")
    print(f"{len(pages)} decks after {time.perf_counter() - began:.0f} s: {CLASS.relative_to(ROOT)}/slides/")


if __name__ == "__main__":
    main()
