"""Write what a class needs into _build/class, from the notebooks, pages and results: python book/classroom.py

lab.html   the lab as one file, which opens from anywhere and prints as a sheet
lecture/   a deck of reveal.js slides with speaker notes, which needs no network
students/  every exercise as a notebook, with stand-ins for the solution and with its tests; book/ without solutions
teachers/  the same notebooks as a course of nbgrader with solutions and what they print; sample answers with points
"""

import argparse
import base64
import re
import shutil
import sys
import time
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import build
import figures
import lab_page
import nbformat
from _ext.facts import said
from bs4 import BeautifulSoup
from exercises import NOTEBOOKS
from jinja2 import Environment, StrictUndefined
from measured import PROFILE, load
from nbconvert import SlidesExporter
from nbformat.v4 import new_markdown_cell, new_notebook, new_output
from pybtex.database import parse_file
from pybtex.richtext import Text
from sphinx.directives.code import LiteralIncludeReader

from companion import judge, words
from companion.claims import claims, scorecard
from companion.disk import files
from odl import paper, schedules

BOOK = build.ROOT / "book"
sys.path.append(str(BOOK / "_ext"))
from offline import write_mathjax  # noqa: E402

CLASS = build.BUILD / "class"
STAND_IN = {
    "code": "# YOUR CODE HERE\nanswer = None",
    "markdown": "\n\n".join(
        [
            "My prediction, with a reason, from before I measured:",
            "What causes the result, beside my prediction:",
            "What one seed, this scale or these photographs leave open:",
        ]
    ),
}
SOLUTION = re.compile(r"(?ms)^(?:# |<!-- )BEGIN SOLUTION.*?^(?:# |<!-- )END SOLUTION[^\n]*$")
ALONE = BOOK / "lab" / "alone.html.j2"
LECTURE = BOOK / "lecture.md.j2"
SET_UP = "set-up"  # the cell of a notebook that finds or fetches the companion
GATES = ("```{solution-start}", "```{solution-end}")
NBGRADER = f"""c = get_config()
c.CourseDirectory.course_id = "on-demand-learning"
c.ClearSolutions.code_stub = {{"python": {STAND_IN["code"]!r}}}
c.ClearSolutions.text_stub = {STAND_IN["markdown"]!r}
c.ExecutePreprocessor.timeout = 3600
"""


# Plain Markdown, for what reads no MyST


def plain(text: str) -> str:
    """Markdown without MyST: citations and code in full, exercises under a heading, no links into the book."""

    def cited(match):
        return f"({'; '.join(citations()[key] for key in match[1].split(','))})"

    text = re.sub(r"(?ms)^```\{exercise\} ([^\n]*)\n(?::[^\n]*\n)*(.*?)^```$", r"## Exercise: \1\n\2", text)
    text = re.sub(r"(?m)^```\{literalinclude\} (\S+)\n((?::.*\n)*)```$", code, text)
    text = re.sub(r"(?m)^\$\$ \(eq-[\w-]+\)$", "$$", text)
    text = re.sub(r" ?\(?\{(?:eq|numref)\}`[^`]*`\)?", "", text)
    text = re.sub(r"\{doc\}`(/[^`<]*)`", lambda match: f"“{title(match[1])}”", text)
    text = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", cited, text)
    return re.sub(r"\{\w+\}`([^`<]*?)(?: <[^`]*>)?`", r"\1", text).strip()


def title(page: str) -> str:
    """The heading of a page of the book: /book/method, /notebooks/fixation."""
    notebook, text = build.ROOT / f"{page[1:]}.ipynb", build.ROOT / f"{page[1:]}.md"
    first = nbformat.read(notebook, 4).cells[0].source if notebook.exists() else text.read_text(encoding="utf-8")
    return first.splitlines()[0].removeprefix("# ")


def code(match: re.Match) -> str:
    """The lines that a `literalinclude` of a notebook includes."""
    given = re.findall(r":([\w-]+): *(.*)", match[2])
    options = {name: int(value) if value.isdigit() else value.strip('"') for name, value in given}
    path, config = str(build.ROOT / "notebooks" / match[1]), SimpleNamespace(source_encoding="utf-8-sig")
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


# Notebooks


def without_solution(notebook):
    """A page of the book without the cells between the gates of its solution."""
    inside = [k for k, cell in enumerate(notebook.cells) if cell.source.startswith(GATES)]
    if inside:
        del notebook.cells[inside[0] : inside[-1] + 1]
    return notebook


def exercise(path: Path):
    """The notebook of an exercise, one of a page with the cell that finds or fetches the companion."""
    notebook = nbformat.read(path, 4)
    if not any(cell.id == SET_UP for cell in notebook.cells):
        algorithm1 = nbformat.read(build.ROOT / "notebooks" / "algorithm1.ipynb", 4)
        notebook.cells[2:2] = [cell for cell in algorithm1.cells if cell.id == SET_UP]  # before the imports
    return notebook


def for_teachers(notebook, printed: str = ""):
    """A stored notebook in plain Markdown, its solution with what it prints at the demo profile."""
    notebook.cells = [cell for cell in notebook.cells if not cell.source.startswith(GATES) and cell.id != "samples"]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source)
        elif "BEGIN SOLUTION" in cell.source and printed:
            cell.outputs = [new_output("stream", text=printed)]
    return notebook


def for_students(notebook):
    """The same, in which every solution has given way to a stand-in."""
    for cell in for_teachers(notebook).cells:
        cell.source = SOLUTION.sub(lambda _, kind=cell.cell_type: STAND_IN[kind], cell.source)
    return notebook


def samples() -> str:
    """Of each exercise three answers that the tests grade with all, half and none of their points."""
    parts = ["# Sample answers\n\nA student's words, the points of 2 that the tests give, and the answer in code.\n"]
    for path in NOTEBOOKS:
        cells = nbformat.read(path, 4).cells
        [title] = re.findall(r"\{exercise\} (.*)", "\n".join(cell.source for cell in cells))
        [code] = [cell.source for cell in cells if cell.id == "samples"]
        parts.append(f"## {title}\n\n`{path.stem}`\n\n```python\n{code}\n```\n")
    return "\n".join(parts)


def write_notebooks(folder: Path) -> None:
    """students/NAME.ipynb, the course of nbgrader and the sample answers in teachers/."""
    course = folder / "teachers" / "source" / "exercises"
    path = files.results() / "teaching.json"  # what the solutions printed at the demo profile
    measured = files.unseal(path).get("exercises", {}) if path.exists() else {}
    (folder / "students").mkdir(parents=True)
    course.mkdir(parents=True)
    for path in NOTEBOOKS:
        nbformat.write(for_students(exercise(path)), folder / "students" / path.name)
        printed = measured.get(path.stem, {}).get("prints", "")
        nbformat.write(for_teachers(exercise(path), printed), course / path.name)
    (folder / "teachers" / "samples.md").write_text(samples(), encoding="utf-8")
    (folder / "teachers" / "nbgrader_config.py").write_text(NBGRADER, encoding="utf-8")


# The book


def write_book(source: Path, html: Path) -> None:
    for path in (source / "notebooks").glob("*.ipynb"):
        nbformat.write(without_solution(nbformat.read(path, 4)), path)
    for path in (source / "generated").glob("exercise-*.md"):
        text = re.sub(r"(?s)\n````\{solution\}.*?\n````", "", path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
    build.build(source.parent)
    shutil.move(source.parent / "html", html)


def write_lab(page: Path, target: Path) -> None:
    """The lab as one file that opens from anywhere, from its built page: pictures, scripts and networks within it."""
    article = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").select_one("article")
    for part in article.select("link, script, noscript, .headerlink, .caption-number, .exercise"):
        part.decompose()
    for image in article.select("img[src]"):
        file = page.parent / image["src"]
        kind = "svg+xml" if file.suffix == ".svg" else "png"
        image["src"] = f"data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
    static = page.parents[1] / "_static" / "lab"
    ends = [static / "data.js", static / "lab.js"]
    order = [ends[0], *sorted(set(static.glob("*.js")) - {*ends}), ends[1]]  # what lab.js asks for lies before it
    given = {"style": (static / "lab.css").read_text(encoding="utf-8"), "article": article}
    given["scripts"] = [path.read_text(encoding="utf-8") for path in order]
    template = Environment(undefined=StrictUndefined).from_string(ALONE.read_text(encoding="utf-8"))
    target.write_text(template.render(given), encoding="utf-8")


# The lecture


def slides(text: str) -> list:
    """Cells from Markdown in which `---` parts the slides and `Notes:` begins what only the speaker sees."""
    cells = []
    for slide in re.split(r"(?m)^---$", text):
        for part, kind in zip(slide.split("\nNotes:\n"), ("slide", "notes"), strict=False):
            cells.append(new_markdown_cell(part.strip(), metadata={"slideshow": {"slide_type": kind}}))
    return cells


BLUR, NOISE = 2.0, 60.0  # σ of the photographs of the deck, in pixels and of 255
QUOTED = {"claims": claims, "judge": judge, "paper": paper, "schedules": schedules, "scorecard": scorecard}
QUOTED |= {"words": words, "BLUR": BLUR, "NOISE": NOISE}
SHOT = partial(lab_page.restorations, "astronaut.png", "deblur", BLUR)
DRAWN = {  # pictures of the deck alone
    "deck-title.png": partial(lab_page.restorations, "astronaut.png", "denoise", NOISE, ["on_demand"]),
    "deck-predict.png": partial(SHOT, []),
    "deck-fixation.png": partial(SHOT, ["on_demand", "fixated_hard"]),
    "deck-noise.png": partial(lab_page.restorations, "coffee.png", "denoise", NOISE, ["fixated_easy", "on_demand"]),
    "deck-seed.svg": partial(lab_page.still_seeds, [0]),
}


def write_picture(path: Path, source: Path) -> None:
    """Beside the deck, one of `DRAWN`, or of the laid-out book generated/NAME, or fig-PAGE-NAME.png of a page."""
    if path.name in DRAWN:
        return figures.save(DRAWN[path.name](), path)
    drawn = source / "generated" / path.name
    if drawn.exists():
        return shutil.copy2(drawn, path)
    page = nbformat.read(source / "notebooks" / f"{path.stem.split('-')[1]}.ipynb", 4)
    [cell] = [c for c in page.cells if c.metadata.get("mystnb", {}).get("figure", {}).get("name") == path.stem]
    path.write_bytes(base64.b64decode(cell.outputs[-1].data["image/png"]))


def write_lecture(source: Path, folder: Path) -> str | None:
    """The deck of the lecture; returns in a line why there is none."""
    vendored, missing = lab_page.vendored("reveal.js")
    if missing:
        return missing
    assets = folder / "assets"
    write_mathjax(assets / "mathjax")
    for path in [*vendored, BOOK / "slides.css"]:
        shutil.copy2(path, assets)
    m = load()
    numbers = figures.numbers()
    facts = {page: {name: said(**number) for name, number in numbers[page].items()} for page in ("problem", "feedback")}
    given = QUOTED | facts | {"m": m, "card": claims.claims_table(claims.judge_claims(m))}
    template = Environment(undefined=StrictUndefined, trim_blocks=True).from_string(LECTURE.read_text(encoding="utf-8"))
    text = template.render(given)
    for name in re.findall(r"!\[[^]]*\]\(assets/(\S+)\)", text):
        write_picture(assets / name, source)
    notebook = new_notebook(cells=slides(text), metadata={"title": "On-Demand Learning: a lecture"})
    exporter = SlidesExporter(template_file=str(BOOK / "slides.html.j2"))
    (folder / "lecture.html").write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
    return None


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    began, work = time.perf_counter(), CLASS / "_build"
    shutil.rmtree(CLASS, ignore_errors=True)
    write_notebooks(CLASS)
    pages = build.plan(PROFILE)
    print(f"{len(NOTEBOOKS)} exercises; executing {len(pages)} notebooks for the pages and slides", flush=True)
    build.execute_all(pages)
    print("building the pages and slides", flush=True)
    build.lay_out(pages, work / "source")
    missing = write_lecture(work / "source", CLASS / "lecture")
    write_book(work / "source", CLASS / "students" / "book")
    write_lab(CLASS / "students" / "book" / "book" / "lab.html", CLASS / "lab.html")
    shutil.rmtree(work)
    print(f"the class is ready after {time.perf_counter() - began:.0f} s: {CLASS}/")
    if missing:
        sys.exit(f"class: no slides: {missing}")


if __name__ == "__main__":
    build.run(main)
