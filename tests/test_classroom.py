"""Exercises and what `make class` writes: one form of exercise, tests that grade it, notebooks, book, lecture."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import build
import classroom
import exercises
import figures
import measured
import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from page_facts import ROOT, network, requests
from PIL import Image

from companion import judge
from companion import notebook as pages
from companion.claims import claims

EXERCISES = exercises.NOTEBOOKS  # of notebooks, and of the pages in prose
OTHERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in EXERCISES]
CHAPTERS = [path.stem for path in exercises.OF_PAGES]
STEPS = ["**Predict.**", "**Change.**", "**Measure.**"]


@pytest.fixture
def shipped(demo):
    """A root with the demo photographs, and the results and weights that ship."""
    for folder in ("results", "models"):
        (demo / "data" / folder).symlink_to(ROOT / "data" / folder)


def solutions(notebook):
    """The cells that hold a solution."""
    return [cell for cell in notebook.cells if "BEGIN SOLUTION" in cell.source]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_shows_the_solution_that_passes_with_its_samples(name, shipped):
    assert f"```{{include}} /generated/exercise-{name}.md\n```" in (ROOT / "book" / f"{name}.md").read_text()
    shown = exercises.exercise(ROOT / "book" / "exercises" / f"{name}.ipynb")  # runs its tests
    assert "````{dropdown} Solution\n" in shown and "import notebook" not in shown and "<details>" not in shown
    said = re.search(r"(?s)```text\n(.*?)\n```", shown)[1].splitlines()
    assert len(said) > 1 and all(re.search(r"\d", line) for line in said), said


WRONG = [(None, "still the stand-in"), ({}, "no 'x'"), ({"x": "7"}, "the form"), ({"x": 7}, "hold: x is even")]


@pytest.mark.parametrize("answer, why", WRONG)
def test_a_wrong_answer_gets_one_helpful_line(answer, why):
    with pytest.raises(pages.NotYet, match=why):
        pages.grade(answer, lambda answer: {"x is even": np.add(answer["x"], 0) % 2 == 0})
    assert pages.grade({"x": 8}, lambda answer: {"x is even": answer["x"] % 2 == 0}) == pages.PASSED


NOISY = {sigma: 20 * np.log10(255 / sigma) - 0.3 for sigma in range(12, 121, 12)}  # of one crop, as luck has it
READ_OFF = {sigma: {"not_restored": db, "on_demand": 29, "fixated_hard": 22} for sigma, db in NOISY.items()}
RUN = SimpleNamespace(history=[{"psnr": [30.0, 28.0, 26.0, 24.0, 22.0]}])
EXACT = {"1/PSNR": [17.13, 18.35, 19.76, 21.41, 23.35], "squared error": [6.5, 10.3, 16.32, 25.87, 41.01]}
COUNTS = {"1/PSNR": [17, 18, 20, 21, 24], "squared error": [7, 10, 16, 26, 41]}


@pytest.mark.parametrize(
    ("name", "answer", "given", "points"),
    [
        ("paper_scale", {1000: 0.016, 100: 0.14, 10: 0.63}, {}, 2),
        ("paper_scale", {1000: 0.01, 100: 0.1, 10: 0.5}, {}, 0),
        ("lab", READ_OFF, {}, 2),
        ("scorecard", {"3 seeds": 0.05, "until decided": 0.17}, {"judge": judge}, 2),
        ("scorecard", {"3 seeds": 0.05, "until decided": 1 - 0.95**8}, {"judge": judge}, 1),
        ("allocation", COUNTS, {"measured": [RUN], "np": np}, 2),
        ("allocation", EXACT, {"measured": [RUN], "np": np}, 0),
        ("allocation", COUNTS, {"measured": [], "np": np}, None),
    ],
)
def test_an_answer_gets_what_the_exercise_says(name, answer, given, points):
    """Two digits are enough, and so is one photograph, but no usual mistake; what is not measured is not tested."""
    [path] = [path for path in EXERCISES if path.stem == name]
    cells = nbformat.read(path, 4).cells
    [test] = [cell.source for cell in cells if cell.metadata.get("nbgrader", {}).get("locked")]
    imports = "".join(cell.source for cell in cells if cell.id == "imports")
    graded = SimpleNamespace(grade=lambda answer, statements: None)
    exec(f"{imports}\nnotebook = graded\n{test}", namespace := {"answer": answer, "graded": graded} | given)
    assert pages.graded(answer, namespace["statements"])[0] == points


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    pytest.importorskip("nbgrader", reason="the optional extra `class`")
    folder = tmp_path_factory.mktemp("class")
    classroom.write_notebooks(folder)
    return folder


@pytest.mark.parametrize("path", EXERCISES, ids=NAMES)
def test_students_get_no_solution_and_teachers_get_it_apart(path, written):
    source, student = nbformat.read(path, 4), nbformat.read(written / "students" / path.name, 4)
    nbformat.validate(student)
    text, hidden = "\n".join(cell.source for cell in student.cells), solutions(source)
    rest = "\n".join(cell.source for cell in source.cells if cell not in hidden)
    own = {line.strip() for cell in hidden for line in cell.source.splitlines()[1:-1] if line.strip() not in rest}
    assert own and not [line for line in own if line in text] and "SOLUTION" not in text
    answers = [cell for cell in student.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    assert [cell.source for cell in answers] == list(classroom.STAND_IN.values())
    assert not any("jupyter" in cell.metadata for cell in answers)  # nothing folds what a student writes
    [set_up] = [cell.source for cell in student.cells if cell.id == classroom.SET_UP]
    assert set_up == next(c.source for c in student.cells if c.cell_type == "code")
    given, kept = (
        [c.source for c in book.cells if c.cell_type == "code" and not c.metadata.get("nbgrader", {}).get("solution")]
        for book in (source, student)
    )
    assert [code for code in given if "check_samples" not in code] == kept[set_up not in given :]
    assert "check_samples" in (written / "teachers" / "samples.md").read_text()
    teacher = nbformat.read(written / "teachers" / "source" / "exercises" / path.name, 4)
    assert [cell.source for cell in solutions(teacher)] == [cell.source for cell in hidden]


@pytest.mark.parametrize("path", sorted({*EXERCISES, *OTHERS}), ids=lambda path: path.stem)
def test_notebooks_are_plain_markdown(path):
    """Jupyter shows MyST as it is: a role, a directive, the label of an equation."""
    cells = nbformat.read(path, 4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert not re.search(r"(?m)\{[\w:]+\}`|^(?:```|:::)\{|^\$\$ \(", text)
    if path in EXERCISES:
        assert "## Exercise: " in text and all(step in text for step in STEPS)


def test_students_notebooks_need_no_name_that_the_solution_alone_has(written):
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821"]
    done = subprocess.run([*command, written / "students"], capture_output=True, text=True)
    assert done.returncode == 0 and "No Python files" not in done.stderr, done.stdout


def test_nbgrader_gives_the_points_of_the_tests(written, shipped):
    """The course as a teacher runs it: three students hand in the samples, one the stand-in."""
    course, folder = written / "teachers", Path(sys.executable).parent
    [graded] = [c.source for c in nbformat.read(ROOT / "book/exercises/method.ipynb", 4).cells if c.id == "samples"]
    for which, name in enumerate(("full", "half", "wrong", "idle")):
        source = written / "students" if name == "idle" else course / "source" / "exercises"
        notebook = nbformat.read(source / "method.ipynb", 4)
        if name != "idle":
            [code] = [cell for cell in solutions(notebook) if cell.cell_type == "code"]
            code.source += f"\n{graded.rpartition('notebook.')[0]}answer = [*samples.values()][{which}][1]"
        (course / "submitted" / name / "exercises").mkdir(parents=True)
        nbformat.write(notebook, course / "submitted" / name / "exercises" / "method.ipynb")
    places = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    for command in ("generate_assignment", "autograde"):
        given = [sys.executable, "-m", "nbgrader", command, "exercises", "--notebook", "method"]
        subprocess.run(given, cwd=course, env=os.environ | places, check=True, capture_output=True)
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        scores = {each.student.id: each.score for each in book.assignment_submissions("exercises")}
    assert scores == {"full": 2, "half": 1, "wrong": 0, "idle": 0}


@pytest.fixture(scope="module")
def deck(tmp_path_factory):
    """The lecture, with a plain picture in place of every figure."""
    folder = tmp_path_factory.mktemp("slides")

    def plain(path, *_):
        if path.suffix == ".svg":
            path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="500"/>')
        else:
            Image.new("RGB", (1000, 500), "teal").save(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classroom, "write_picture", plain)
        missing = classroom.write_lecture(folder, folder / "lecture")
    if missing:  # npm is not installed, or offline
        pytest.skip(missing)
    return folder / "lecture" / "lecture.html"


SLIDES = """
return Reveal.getSlides().map((slide, i) => {
  Reveal.slide(i);
  const cut = [slide, ...slide.querySelectorAll("p, li, table, h1, h2")];
  const end = slide.getBoundingClientRect();
  return {
    words: slide.innerText.split(/\\s+/).filter((word) => /[\\p{L}\\d]/u.test(word)).length,
    fits: cut.every((e) => e.scrollWidth <= e.clientWidth + 1 && e.getBoundingClientRect().bottom <= end.bottom + 1),
    pictures: [...slide.querySelectorAll("img")].filter((image) => image.naturalWidth > 0 && image.alt).length,
    vote: slide.innerText.includes("Vote"),
    noted: Boolean(Reveal.getSlideNotes(slide)),
  };
});
"""


def test_every_slide_fits_says_little_and_has_a_picture_or_a_vote(deck, chromium):
    chromium.log("browser"), chromium.log("performance")
    chromium.devtools("Emulation.setDeviceMetricsOverride", width=1280, height=720, deviceScaleFactor=1, mobile=False)
    chromium.go(deck.as_uri())
    chromium.wait(lambda: chromium.run("return !!(window.Reveal?.isReady() && window.MathJax?.startup?.promise)"))
    chromium.run("await MathJax.startup.promise; Reveal.configure({ transition: 'none' })")
    slides = chromium.run(SLIDES)
    assert 10 <= len(slides) <= 15
    assert [i for i, slide in enumerate(slides, 1) if not slide["fits"]] == []
    assert max(slide["words"] for slide in slides) <= 60
    assert all(slide["noted"] and (slide["pictures"] or slide["vote"]) for slide in slides)
    assert sum(slide["pictures"] > 0 for slide in slides) >= 10 and sum(slide["vote"] for slide in slides) >= 5
    text = chromium.run("return document.querySelector('.slides').textContent")
    assert not re.search(r"\{\w+\}`|\{\{|SOLUTION|\(eq-", text)
    assert not [entry["message"] for entry in chromium.log("browser") if entry["level"] != "INFO"]
    asked = requests(network(chromium))
    assert asked and all(url.startswith(("file:", "data:")) for url in asked), asked
    chromium.devtools("Emulation.clearDeviceMetricsOverride")


def test_the_lecture_quotes_the_judge_and_types_no_number(deck):
    text, stored = BeautifulSoup(deck.read_text(), "html.parser").get_text(), classroom.LECTURE.read_text()
    card = claims.claims_table(claims.judge_claims(measured.load()))
    assert not re.findall(r"[+−-]?\d+\.\d+ (?:dB|%)", re.sub(r"(?s)\{[{%].*?[%}]\}", "", stored))
    [fixated] = card[card.claim.str.startswith("Fixation")].verdict
    assert fixated == judge.REPRODUCED and "falls behind elsewhere: confirmed. Equal shares cure it" in text


def test_the_deck_has_a_photograph_that_the_fixated_network_ruins():
    axes = classroom.DRAWN["deck-fixation.png"]().axes
    scores = {axis.get_title(): float(axis.get_xlabel()[:-3]) for axis in axes[1:]}
    assert scores["on-demand"] > scores["damaged"] > scores["fixated on hard"] + 10


def test_every_picture_of_the_lecture_is_drawn_for_the_book():
    for name in {*re.findall(r"\(assets/(\S+)\)", classroom.LECTURE.read_text(encoding="utf-8"))} - {*classroom.DRAWN}:
        page, _, figure = name.removeprefix("fig-").removesuffix(".png").partition("-")
        path = ROOT / "notebooks" / f"{page}.ipynb"
        assert name in figures.FIGURES or f'"name": "{figure}"' in path.read_text(encoding="utf-8"), name


def test_a_class_has_time_for_what_it_runs():
    """A plan gives each step at least its processor time, which is what one core would need."""
    text = (ROOT / "book" / "teaching.md").read_text()
    measured = json.loads((ROOT / "data" / "results" / "teaching.json").read_text())["steps"]
    planned = re.findall(r"(?m)^\| (\d+)–(\d+) \|.* step \*\*(\w+)\*\*", text)
    assert {name for *_, name in planned} >= {"fixation", "table1"}
    assert set(re.findall(r"step \*\*(\w+)\*\*", text)) <= set(measured)
    waits = [f"{measured[name]['seconds'] / 60:.1f}" for name in ("fixation", "table1")]
    assert "{} minutes for **fixation** and {} for **table1**".format(*waits) in text
    for begin, end, name in planned:
        assert 60 * (int(end) - int(begin)) >= measured[name]["cpu_seconds"]


def test_buttons_appear_with_a_repository_and_name_the_template(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ROOT", tmp_path)

    def publish(url):
        (tmp_path / "_config.yml").write_text(f"repository:\n  url: {url}\n  branch: v1\n")
        return re.findall(r"\]\((\S+)\)", build.buttons("table1"))

    assert publish('""') == publish("https://git.example.org/someone/something") == []
    colab, kaggle, binder = publish("https://github.com/someone/something.git")
    assert colab.endswith("/github/someone/something/blob/v1/notebooks/table1.ipynb")
    assert kaggle.endswith("?src=https://github.com/someone/something/blob/v1/notebooks/table1.ipynb")
    assert binder.endswith("/gh/someone/something/v1?urlpath=lab/tree/notebooks/table1.ipynb")
