"""Exercises and what `make class` writes: one form of exercise, solutions that run, students' notebooks, slides."""

import base64
import inspect
import io
import json
import re
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from page_facts import network, requests
from PIL import Image

from odl.schedules import rigid_joint

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book"))
import classroom  # noqa: E402
import launch  # noqa: E402
import snippets  # noqa: E402

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
NO_CHAPTERS = {"introduction", "teaching", "references", "reproducibility"}  # nothing to practise
CHAPTERS = sorted(path.stem for path in (ROOT / "book").glob("*.md") if path.stem not in NO_CHAPTERS)
STEPS = ["**Predict.**", "**Change.**", "**Measure.**"]


@pytest.fixture
def shipped(demo):
    """A root with the demo photographs, and the results and weights that ship."""
    for folder in ("results", "models"):
        (demo / "data" / folder).symlink_to(ROOT / "data" / folder)


def solutions(notebook):
    """The cells that hold a solution."""
    return [cell for cell in notebook.cells if "BEGIN SOLUTION" in cell.source]


# One form of exercise


def check_exercise(text: str, name: str):
    [(label, body)] = re.findall(r"(?ms)^```\{exercise\} \S.*?\n:label: (\S+)\n(.*?)^```$", text)
    assert label == f"ex-{name}" and "{admonition} Exercise" not in text
    assert re.search(".*".join(map(re.escape, STEPS)), body, re.DOTALL)


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_chapter_ends_with_an_exercise_and_shows_the_solution_that_runs(name, shipped):
    text = (ROOT / "book" / f"{name}.md").read_text()
    check_exercise(text, name)
    [(label, solution)] = re.findall(r"(?ms)^````\{solution\} (\S+)\n:class: dropdown\n(.*?)^````$", text)
    assert label == f"ex-{name}"
    assert f"```{{literalinclude}} solutions/{name}.py\n" in solution
    assert f"```{{include}} /generated/solution-{name}.md\n" in solution
    said = snippets.solution(name).splitlines()
    if snippets.NOT_MEASURED in said:
        pytest.skip("the run that this solution reads is not measured: python -m companion reproduce")
    assert len(said) > 3 and all(re.search(r"\d", line) for line in said[1:-1]), said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_every_notebook_ends_with_an_exercise_and_a_marked_solution(path):
    notebook = nbformat.read(path, 4)
    check_exercise("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown"), path.stem)
    *_, start, code, text, end, _ = notebook.cells
    assert start.source == f"```{{solution-start}} ex-{path.stem}\n:class: dropdown\n```"
    assert end.source == "```{solution-end}\n```"
    assert solutions(notebook) == [code, text]
    assert code.source.startswith("# BEGIN SOLUTION\n") and code.source.endswith("\n# END SOLUTION")
    for cell in (code, text):  # as nbgrader wants them
        assert cell.metadata.nbgrader.solution and cell.metadata.nbgrader.schema_version == 3
    assert code.metadata.nbgrader.grade_id != text.metadata.nbgrader.grade_id


def test_noise_without_clipping_has_the_psnr_of_its_sigma(shipped):
    found = re.findall(r"σ = +(\d+), unclipped: ([\d.]+) dB", snippets.solution("fidelity"))
    assert len(found) == 3
    for sigma, psnr in found:
        assert abs(float(psnr) - 20 * np.log10(255 / float(sigma))) < 0.05


def test_crops_overlap_as_counted():
    """Against the mean over all pairs of places along both axes."""
    place = {n: np.arange(n - 63) for n in (96, 144)}
    along = [np.maximum(64 - abs(p[:, None] - p), 0).mean() / 64 for p in place.values()]
    [found] = re.findall(r"share (\d+)%", snippets.solution("data"))
    assert abs(int(found) / 100 - along[0] * along[1]) < 0.01


# Notebooks for students


@pytest.fixture(scope="module")
def students(tmp_path_factory):
    return classroom.write_students(tmp_path_factory.mktemp("students"))


@pytest.mark.parametrize("name", NAMES)
def test_students_get_no_solution(name, students):
    [path] = [path for path in students if path.stem == name]
    source, student = nbformat.read(ROOT / "notebooks" / path.name, 4), nbformat.read(path, 4)
    nbformat.validate(student)
    text, hidden = "\n".join(cell.source for cell in student.cells), solutions(source)
    rest = "\n".join(cell.source for cell in source.cells if cell not in hidden)
    own = {line.strip() for cell in hidden for line in cell.source.splitlines()[1:-1] if line.strip() not in rest}
    assert own and not [line for line in own if line in text]
    assert "SOLUTION" not in text and "{solution" not in text
    assert [cell.source for cell in student.cells if "nbgrader" in cell.metadata] == list(classroom.STAND_IN.values())
    assert "## Exercise: " in text and all(step in text for step in STEPS)
    assert not re.search(r"(?m)\{[\w:]+\}`|^(?:```|:::)\{", text), "MyST that Jupyter shows as it is"
    given, kept = (
        [cell.source for cell in notebook.cells if cell.cell_type == "code" and "nbgrader" not in cell.metadata]
        for notebook in (source, student)
    )
    assert given == kept


# fmt: off
@pytest.mark.parametrize("myst, plain", [
    ("Denoisers {cite}`dabov2007image,gu2014weighted` work ({eq}`eq-psnr`).",
     "Denoisers (Dabov et al., 2007; Gu et al., 2014) work."),
    ("{cite:t}`gao2017ondemand`", "(Gao and Grauman, 2017)"),
    ("See {doc}`the method </book/method>`.", "See the method."),
    ("{doc}`/notebooks/fixation` and {doc}`/book/data`", "“The fixation problem” and “Data”"),
    ("$$\na = b\n$$ (eq-a)\n\nText", "$$\na = b\n$$\n\nText"),
    ("```{literalinclude} ../odl/schedules.py\n:pyobject: rigid_joint\n```",
     f"```python\n{inspect.getsource(rigid_joint).rstrip()}\n```"),
    (":::{dropdown} From 1 file\n- this\n:::\n\nText", "Text"),
])
# fmt: on
def test_plain_markdown(myst, plain):
    assert classroom.plain(myst) == plain


# Slides


def as_executed(path: Path):
    """A stored notebook with an output in every cell that would show one, without running it."""
    notebook, picture = nbformat.read(path, 4), io.BytesIO()
    Image.new("RGB", (1000, 300), "teal").save(picture, "PNG")
    output = nbformat.v4.new_output("display_data", {"image/png": base64.b64encode(picture.getvalue()).decode()})
    for cell in notebook.cells:
        cell.source = classroom.build.MARK.sub("", cell.source)
        if cell.cell_type == "code" and ({"mystnb", "nbgrader"} & {*cell.metadata} or "print(" in cell.source):
            cell.outputs = [output]
    return notebook


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slides")
    missing = classroom.write_assets(folder / "assets")
    if missing:  # npm is not installed, or offline
        pytest.skip(missing)
    for path in NOTEBOOKS:
        classroom.write_deck(as_executed(path), folder / f"{path.stem}.html")
    return folder


CUT = """
return Reveal.getSlides().map((slide, i) => {
  const { h, v } = Reveal.getIndices(slide);
  Reveal.slide(h, v);
  return slide.scrollWidth > slide.clientWidth + 1 || slide.scrollHeight > slide.clientHeight + 1 ? i + 1 : 0;
}).filter(Boolean);
"""


@pytest.mark.parametrize("name", NAMES)
def test_slides_open_from_the_file_system_without_a_network(name, decks, chromium):
    chromium.log("browser"), chromium.log("performance")
    chromium.go((decks / f"{name}.html").as_uri())
    chromium.wait(lambda: chromium.run("return !!(window.Reveal?.isReady() && window.MathJax?.startup?.promise)"))
    chromium.run("await MathJax.startup.promise")
    across, slides = chromium.run("return [Reveal.getHorizontalSlides().length, Reveal.getTotalSlides()]")
    text = "\n".join(c.source for c in as_executed(ROOT / "notebooks" / f"{name}.ipynb").cells if c.cell_type != "code")
    assert slides > across == len(re.findall(r"(?m)\A#|^##? |^```\{exercise\}", text))
    first = chromium.run("return Reveal.getCurrentSlide().textContent")
    assert "Claim." in first and "{cite}" not in first
    chromium.run("Reveal.slide(1)")
    assert chromium.run("return Reveal.getCurrentSlide().textContent") != first
    assert chromium.run(CUT) == []
    links = chromium.run("return [...document.querySelectorAll('.slides a')].map((link) => link.href)")
    assert all(url.startswith("http") or url.split("#")[0].endswith(".html") for url in links)
    assert "(eq-" not in chromium.run("return document.querySelector('.slides').textContent")
    if "$" in text:
        assert chromium.run("return document.querySelectorAll('mjx-container').length")
    assert not [entry["message"] for entry in chromium.log("browser") if entry["level"] != "INFO"]
    asked = requests(network(chromium))
    assert asked and all(url.startswith(("file:", "data:")) for url in asked), asked


def test_slides_show_code_only_where_it_is_the_point(tmp_path):
    classroom.write_deck(as_executed(ROOT / "notebooks" / "allocation.ipynb"), tmp_path / "deck.html")
    text = re.sub(r"<[^>]+>", "", (tmp_path / "deck.html").read_text())
    assert "sweep.run_many" in text and "check_parameters" not in text and "notebook.record" not in text
    assert "https://" not in (tmp_path / "deck.html").read_text()


# The teaching page


def test_a_class_has_time_for_what_it_runs():
    """A plan gives each step at least its processor time, which is what one core would need."""
    text = (ROOT / "book" / "teaching.md").read_text()
    measured = json.loads((ROOT / "data" / "results" / "teaching.json").read_text())["steps"]
    planned = re.findall(r"(?m)^\| (\d+)–(\d+) \|.* step \*\*(\w+)\*\*", text)
    assert {name for *_, name in planned} >= {"fixation", "table1"}
    assert set(re.findall(r"step \*\*(\w+)\*\*", text)) <= set(measured)
    for begin, end, name in planned:
        assert 60 * (int(end) - int(begin)) >= measured[name]["cpu_seconds"]


def test_buttons_appear_with_a_repository_and_name_the_template(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "CONFIG", tmp_path / "_config.yml")

    def publish(url):
        launch.CONFIG.write_text(f"repository:\n  url: {url}\n  branch: v1\n")
        return re.findall(r"\]\((\S+)\)", launch.buttons("table1"))

    assert publish('""') == [] and "no buttons" in launch.setup()
    colab, binder = publish("https://github.com/someone/something.git")
    assert colab.endswith("/github/someone/something/blob/v1/notebooks/table1.ipynb")
    assert binder.endswith("/gh/someone/something/v1?urlpath=lab/tree/notebooks/table1.ipynb")
    assert "git clone --depth 1 https://github.com/someone/something\n" in launch.setup()
    with pytest.raises(SystemExit, match="repository url 'someone/something'.*nearest"):
        publish("someone/something")
