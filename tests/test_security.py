"""What the code never does: unpickle, start a shell, evaluate text, keep names and places of the machine it ran on."""

import ast
import getpass
import re
import socket
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [path for folder in ("odl", "book") for path in sorted((ROOT / folder).rglob("*.py"))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
CALLS = {"eval", "exec", "os.system", "os.popen", "pandas.read_pickle", "pd.read_pickle", "subprocess.getoutput"}


def found_in(source: str) -> list[str]:
    """What a module does that it should not, by its syntax tree."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [f"import {name}" for name in names if name.split(".")[0] in MODULES]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            found += [name] if name in CALLS else []
            found += [f"{name} in a shell"] if given.get("shell", "False") != "False" else []
            found += [f"{name} of a pickle"] if given.get("allow_pickle", "False") != "False" else []
            found += [f"{name} unpickles"] if name == "torch.load" and given.get("weights_only") != "True" else []
            found += [f"{name} unpickles"] if name.endswith("yaml.load") else []
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_pickle_no_shell_no_eval(path):
    assert not found_in(path.read_text())


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_pickle_no_shell_no_eval_in_notebooks(notebook):
    for cell in nbformat.read(notebook, 4).cells:
        if cell.cell_type == "code":
            assert not found_in(cell.source)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from dill import loads",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(line, shell=True)",
        "os.system('ls')",
        "eval(text)",
        "yaml.load(text)",
        "pd.read_pickle(path)",
    ],
)
def test_what_should_not_be_there_is_found(source):
    assert found_in(source)


PLACES = re.compile(r"(?<![\w.])/(?:home|root|work|Users|mnt|tmp|var|private)/\w+|[A-Za-z]:\\+Users\\")


def told_by(text: str) -> list[str]:
    """Folders and names of a machine and of a person."""
    own = {str(Path.home()), str(ROOT), socket.gethostname(), getpass.getuser()} - {"root", "/root", "localhost", "/"}
    return PLACES.findall(text) + [
        name for name in own if len(name) > 3 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    ]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_carry_no_paths_and_no_names(notebook):
    """In cells and in metadata, which know nothing but the language."""
    content = nbformat.read(notebook, 4)
    assert not told_by(notebook.read_text())
    assert set(content.metadata) <= {"kernelspec", "language_info"}
    assert content.metadata.get("kernelspec", {}).get("name", "python3") == "python3"
    for cell in content.cells:
        assert set(cell.metadata) <= {"tags", "mystnb", "nbgrader"}, cell.metadata


def test_results_carry_no_paths_and_no_names():
    for path in sorted((ROOT / "data" / "results").rglob("*.json")):
        assert not told_by(path.read_text()), path


@pytest.mark.parametrize("text", ["see /" + "home/anna/x", str(ROOT / "odl"), r"C:\Users\anna", r"C:\\Users\\anna"])
def test_a_path_is_found(text):
    assert told_by(text)
