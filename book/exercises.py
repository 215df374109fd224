"""The exercises: their table for teachers, and each with its solution and what that prints, for a page."""

import io
import re
import runpy
import tempfile
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import nbformat
import sources
from measured import NOT_MEASURED, ROOT, markdown

OF_PAGES = sorted((ROOT / "book" / "exercises").glob("*.ipynb"))
IN_WORDS = re.compile(r"</?details>(?:<summary>.*</summary>)?")  # what folds the words of a solution in a notebook
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NOTEBOOKS = [*(path for path in NOTEBOOKS if "## Exercise: " in path.read_text(encoding="utf-8")), *OF_PAGES]


def exercises() -> str:
    """Return what a class can do: every exercise with its minutes and its difficulty, the short ones first."""
    rows = []
    for path in NOTEBOOKS:
        [task] = [c.source for c in nbformat.read(path, as_version=4).cells if "## Exercise: " in c.source]
        [(title, minutes, how)] = re.findall(r"## Exercise: (.*)\n\n\*(\d+) minutes, (\w+)", task)
        [question] = re.findall(r"(?s)\*\*Predict\.\*\* (.*?)\n\n", task)
        page = f"{path.stem}.md" if path in OF_PAGES else f"../notebooks/{path.stem}.ipynb"
        page = page.replace("table1", "table1-inpaint")  # one of the four pages of this notebook has it
        first = " ".join(question.split()).partition("?")[0]
        rows.append([f"{minutes} min, {how}", f"[{title}]({page}), `{path.stem}`", f"{first}?"])
    return markdown(
        ["Takes", "Exercise and notebook", "Predict"], sorted(rows, key=lambda row: (int(row[0].split()[0]), row))
    )


def exercise(path: Path) -> str:
    """Return in MyST a page's exercise and, from its notebook, the solution with its output; its tests must pass."""
    notebook = nbformat.read(path, as_version=4)
    _, task, imports, *cells, text = (sources.MARK.sub("", cell.source) for cell in notebook.cells)
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "solution.py")
        script.write_text("\n\n".join([imports, *cells]), encoding="utf-8")
        try:
            with redirect_stdout(said):
                runpy.run_path(str(script))
        except FileNotFoundError:  # of a results file
            said.truncate(0)
    code = re.sub(r"from companion import notebook\n?", "", imports).strip() + f"\n\n{cells[0].strip()}"
    shown = f"```python\n{code}\n```\n\n```text\n{said.getvalue().rstrip() or NOT_MEASURED}\n```"
    return f"{task}\n\n````{{dropdown}} Solution\n{shown}\n\n{IN_WORDS.sub('', text).strip()}\n````"


TABLES = {"exercises": exercises} | {f"exercise-{path.stem}": partial(exercise, path) for path in OF_PAGES}
