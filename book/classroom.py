"""Write what a class needs into _build/class, from the built book, notebooks and results: python book/classroom.py

lab.html   the lab as one file, which opens from anywhere and prints as a sheet
lecture/   a deck of reveal.js slides with speaker notes, which needs no network
students/  every exercise as a notebook, in which nbgrader has put stand-ins for the solution; with its tests
teachers/  the same notebooks with solutions, as a course of nbgrader; sample answers with points
"""

import argparse
import base64
import re
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import build
import figures
import lab_page
import nbformat
from bs4 import BeautifulSoup
from exercises import NOTEBOOKS
from jinja2 import Environment, StrictUndefined
from measured import load
from nbconvert import SlidesExporter
from nbformat.v4 import new_markdown_cell, new_notebook

from companion import judge, words
from companion.claims import claims, scorecard
from odl import paper, schedules

BOOK = build.ROOT / "book"
sys.path.append(str(BOOK / "_ext"))
from offline import write_mathjax  # noqa: E402

CLASS = build.BUILD / "class"
STAND_IN = {
    "code": "# YOUR CODE HERE\nanswer = None",
    "markdown": "My prediction, with a reason, from before I measured:\n\n"
    "What causes the result, beside my prediction:\n\n"
    "What one seed, this scale or these photographs leave open:",
}
ALONE = BOOK / "lab" / "alone.html.j2"
LECTURE = BOOK / "lecture.md.j2"
SET_UP = "set-up"  # the cell of a notebook that imports the companion or says how to get it
NBGRADER = f"""c = get_config()
c.CourseDirectory.course_id = "on-demand-learning"
c.ClearSolutions.code_stub = {{"python": {STAND_IN["code"]!r}}}
c.ClearSolutions.text_stub = {STAND_IN["markdown"]!r}
c.ExecutePreprocessor.timeout = 3600
"""


# Notebooks


def exercise(path: Path):
    """Return the notebook of an exercise, its solution unfolded; one of a page gets the set-up cell of the others."""
    notebook = nbformat.read(path, 4)
    if not any(cell.id == SET_UP for cell in notebook.cells):
        algorithm1 = nbformat.read(build.ROOT / "notebooks" / "algorithm1.ipynb", 4)
        notebook.cells[2:2] = [cell for cell in algorithm1.cells if cell.id == SET_UP]  # before the imports
    notebook.cells = [cell for cell in notebook.cells if cell.id != "samples"]
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.pop("jupyter", None)
    return notebook


def samples() -> str:
    """Return, for each exercise, three answers that the tests grade with all, half and none of their points."""
    parts = ["# Sample answers\n\nA student's words, the points of 2 that the tests give, and the answer in code.\n"]
    for path in NOTEBOOKS:
        cells = nbformat.read(path, 4).cells
        [title] = re.findall(r"(?m)^## Exercise: (.*)", "\n".join(cell.source for cell in cells))
        [code] = [cell.source for cell in cells if cell.id == "samples"]
        parts.append(f"## {title}\n\n`{path.stem}`\n\n```python\n{code}\n```\n")
    return "\n".join(parts)


def write_notebooks(folder: Path) -> None:
    """Write students/NAME.ipynb without solutions, and in teachers/ the course of nbgrader and the sample answers."""
    from nbgrader.preprocessors import ClearSolutions  # of the extra `class`

    clear = ClearSolutions(code_stub={"python": STAND_IN["code"]}, text_stub=STAND_IN["markdown"])
    course = folder / "teachers" / "source" / "exercises"
    (folder / "students").mkdir(parents=True)
    course.mkdir(parents=True)
    for path in NOTEBOOKS:
        nbformat.write(exercise(path), course / path.name)
        nbformat.write(clear.preprocess(exercise(path), {})[0], folder / "students" / path.name)
    (folder / "teachers" / "samples.md").write_text(samples(), encoding="utf-8")
    (folder / "teachers" / "nbgrader_config.py").write_text(NBGRADER, encoding="utf-8")


# The lab


def write_lab(page: Path, target: Path) -> None:
    """Write the lab as one file that opens from anywhere: its built page with pictures, scripts and networks inside."""
    article = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").select_one("article")
    for part in article.select('link, script, noscript, .headerlink, .caption-number, section[id^="exercise"]'):
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
    """Return cells from Markdown in which `---` parts the slides and `Notes:` begins what only the speaker sees."""
    cells = []
    for slide in re.split(r"(?m)^---$", text):
        for part, kind in zip(slide.split("\nNotes:\n"), ("slide", "notes"), strict=False):
            cells.append(new_markdown_cell(part.strip(), metadata={"slideshow": {"slide_type": kind}}))
    return cells


BLUR, NOISE = 2.0, 60.0  # σ of the photographs of the deck, in pixels and of 255
QUOTED = {"claims": claims, "judge": judge, "paper": paper, "schedules": schedules, "scorecard": scorecard}
QUOTED |= {"words": words, "BLUR": BLUR}
SHOT = partial(lab_page.restorations, "astronaut.png", "deblur", BLUR)
DRAWN = {  # pictures of the deck alone
    "deck-title.png": partial(lab_page.restorations, "astronaut.png", "denoise", NOISE, ["on_demand"]),
    "deck-predict.png": partial(SHOT, []),
    "deck-fixation.png": partial(SHOT, ["on_demand", "fixated_hard"]),
    "deck-seed.svg": partial(lab_page.still_seeds, [0]),
}


def write_picture(path: Path, source: Path) -> None:
    """Write beside the deck one of `DRAWN`, or generated/NAME of the laid-out book, or fig-PAGE-NAME.png of a page."""
    generated = source / "generated" / path.name
    if path.name in DRAWN:
        figures.save(DRAWN[path.name](), path)
    elif generated.exists():
        shutil.copy2(generated, path)
    else:
        page = nbformat.read(source / "notebooks" / f"{path.stem.split('-')[1]}.ipynb", 4)
        [cell] = [c for c in page.cells if c.metadata.get("mystnb", {}).get("figure", {}).get("name") == path.stem]
        path.write_bytes(base64.b64decode(cell.outputs[-1].data["image/png"]))


def write_lecture(source: Path, folder: Path) -> str | None:
    """Write the deck of the lecture; returns in a line why there is none."""
    vendored, missing = lab_page.vendored("reveal.js")
    if missing:
        return missing
    assets = folder / "assets"
    write_mathjax(assets / "mathjax")
    for path in [*vendored, BOOK / "slides.css"]:
        shutil.copy2(path, assets)
    evidence = load()
    given = figures.numbers() | QUOTED  # both have `paper`
    given |= {"evidence": evidence, "card": claims.claims_table(claims.judge_claims(evidence))}
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
    began, lab = time.perf_counter(), build.BUILD / "html" / "book" / "lab.html"
    if not lab.exists():
        sys.exit("class: the lab and the slides are made of the built book: make book")
    shutil.rmtree(CLASS, ignore_errors=True)
    write_notebooks(CLASS)
    missing = write_lecture(build.BUILD / "source", CLASS / "lecture")
    write_lab(lab, CLASS / "lab.html")
    print(f"the class is ready after {time.perf_counter() - began:.0f} s: {CLASS}/")
    if missing:
        sys.exit(f"class: no slides: {missing}")


if __name__ == "__main__":
    build.run(main)
