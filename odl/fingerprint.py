"""A hash of everything in odl that a number depends on: the definitions that its function reaches, and its config.

Comments, docstrings and code that is not reached do not count, and of a table with a row for the run itself only
that row does: another number in one schedule leaves the other schedules' runs as they are. What is hashed is text, so
every version of Python finds the same hash.
"""

import ast
import hashlib
import io
import json
import re
import subprocess
import tarfile
import tempfile
import tokenize
from functools import cache, partial
from pathlib import Path

from odl import paper

FOLDER = Path(__file__).parent
FORMER = "odl.former"
SCHEDULES = (*paper.SCHEDULES, *paper.FIXATED)
# Where files lie, how they are kept and how parameters are checked changes no number; packs have a hash of their own.
OUTSIDE = {"odl.paths", "odl.store", "odl.experiment", "odl.datasets", "odl.fingerprint", "odl.data.load"}
KEPT = (
    "choose_precision",
    "take_snapshot",
    "save_checkpoint",
    "load_checkpoint",
    "read_checkpoint",
    "put_back",
    "finite",
)
KEPT += ("TrainingError", "CHECKPOINT_SECONDS")
OUTSIDE |= {f"odl.train.{name}" for name in KEPT}
OUTSIDE |= {"odl.results.provenance", "odl.results.keep_weights", "odl.denoising.provenance"}
OUTSIDE |= {"odl.results.db11_experiment"}  # which run is meant: the run itself is in the result
PACKING = (("odl.data", "read_image"), ("odl.datasets", "list_images"), ("odl.datasets", "parse"))


def of(measure: partial) -> str:
    """The hash of a measurement: a partial of a function of odl, with the experiments that it is of."""
    values = [*measure.args, *measure.keywords.values()]
    values += [v for value in values if isinstance(value, dict) for v in value.values()]
    experiments = [value.asdict() for value in values if hasattr(value, "asdict")]
    rest = [value for value in values if isinstance(value, str | float | int | None)]
    own = [e[key] for e in experiments for key in ("task", "schedule")] + [v for v in rest if isinstance(v, str)]
    return digest(code([(measure.func.__module__, measure.func.__name__)], own), experiments, rest)


def of_training(build, experiment) -> str:
    """The hash of what a checkpoint depends on; `build` makes the network, in the module of its `train`."""
    own = (experiment.task, experiment.schedule)
    return digest(code([(build.__module__, "train")], own), experiment.asdict())


def of_result(root: tuple[str, str], experiment: dict, folder: Path | None = None) -> str:
    """The hash of what a result depends on that the function `root`, (module, name), measures of `experiment`.

    `folder` holds another odl than this one.
    """
    own = strings_of(experiment) | ({"denoise"} if root[0] == "odl.denoising" else set())
    return digest(code([tuple(root)], own, folder), experiment)


def unchanged_since(commit: str, root: tuple[str, str], experiment: dict) -> bool:
    """Whether a result's code was at a commit what it is now; False where git does not know that commit."""
    folder = odl_at(commit)
    return folder is not None and of_result(root, experiment, folder) == of_result(root, experiment)


@cache
def odl_at(commit: str) -> Path | None:
    """A folder with odl as it was at a commit, until this process ends; None where git does not know it."""
    if not re.fullmatch("[0-9a-f]{7,40}", commit):
        return None  # unknown, or with changes that no commit has
    command = ["git", "-C", Path(__file__).parent, "archive", commit, "."]
    try:
        run = subprocess.run(command, capture_output=True)
    except OSError:
        return None
    if run.returncode:
        return None
    TEMPORARY.append(tempfile.TemporaryDirectory(prefix="odl-at-"))
    with tarfile.open(fileobj=io.BytesIO(run.stdout)) as archive:
        archive.extractall(TEMPORARY[-1].name, filter="data")
    return Path(TEMPORARY[-1].name)


TEMPORARY = []  # folders of `odl_at`, deleted when this list is


def strings_of(value) -> set[str]:
    """Every text in nested dicts and lists: the task, the schedule, the system of an experiment."""
    if isinstance(value, dict | list):
        return set().union(*map(strings_of, value.values() if isinstance(value, dict) else value))
    return {value} if isinstance(value, str) else set()


def of_source(text: str) -> str:
    """The hash of Python source with what it reaches in odl, training schedules apart: those belong to its runs."""
    found = {}
    for module, name in references(ast.parse(text), "", {}):
        reach(module, name, frozenset(), found)
    return digest({key: found[key] for key in found if key[0] != "odl.schedules"}, text)


def of_files(base: Path, files) -> str:
    """The hash of some files below `base`, by name and content."""
    return digest({(str(f.relative_to(base)), ""): hashlib.sha256(f.read_bytes()).hexdigest() for f in files})


def code(roots, own, folder: Path | None = None) -> dict[tuple, str]:
    """(module, name) → source of all definitions that `roots` reach, for a run that goes by the names `own`."""
    found = {}
    for module, name in roots:
        reach(module, name, frozenset(own), found, folder)
    return found


def digest(found: dict, *config) -> str:
    parts = [f"{module}.{name}\n{text}" for (module, name), text in sorted(found.items())]
    return hashlib.sha256("\n".join([*parts, json.dumps(config, sort_keys=True)]).encode()).hexdigest()


def reach(module: str, name: str, own: frozenset, found: dict, folder: Path | None = None) -> None:
    """Add a definition and, in turn, whatever it refers to."""
    if (module, name) in found or {module, f"{module}.{name}"} & OUTSIDE:
        return
    if name.startswith(tuple(f"{schedule.upper()}_" for schedule in SCHEDULES if schedule not in own)):
        return  # HARD_MINING_KEEP: a number of another schedule
    pieces = definitions(module, folder or FOLDER).get(name, [])
    pieces = [piece for piece in pieces if piece[0] is None or piece[0] in own] or pieces
    if pieces:
        found[module, name] = "\n".join(text for _, text, _ in pieces)
    for _, _, refers in pieces:
        for other in refers:
            reach(*other, own, found, folder)


@cache
def definitions(module: str, folder: Path) -> dict[str, list[tuple]]:
    """Name → pieces of its definition: (key of a row of a table, source, what it refers to); else the key is None.

    What odl.former holds counts in place of today's, which gives the same numbers.
    """
    place = folder.joinpath(*module.split(".")[1:])
    path = next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.exists()), None)
    if not module.startswith("odl") or path is None:
        return {}
    text = path.read_text()
    tree, found = ast.parse(text), {}
    plain = without_words(text, tree)
    imported = imports(tree)
    for name, (source, attribute) in imported.items():
        found[name] = [(None, "", [(source, attribute)])]
    for node in tree.body:
        for name in bound(node):
            for key, part in rows(node):
                found.setdefault(name, []).append((key, source_of(part, plain), references(part, module, imported)))
    former = {} if module.startswith(FORMER) else definitions(module.replace("odl", FORMER, 1), folder)
    return found | {name: pieces for name, pieces in former.items() if pieces[0][1]}  # what it imports has no source


def imports(tree) -> dict[str, tuple[str, str]]:
    """Imported name → (module of odl, name in it)."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("odl")]
    return {alias.asname or alias.name: (node.module, alias.name) for node in nodes for alias in node.names}


def bound(node) -> list[str]:
    """The names that a top-level statement defines or extends."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return []


def rows(node) -> list[tuple]:
    """The rows (key, value) of a table of constants, after what it is joined to; else the whole statement."""
    table = getattr(node, "value", None)
    joined = isinstance(table, ast.BinOp) and isinstance(table.op, ast.BitOr)
    first, last = ([(None, table.left)], table.right) if joined else ([], table)
    if isinstance(last, ast.Dict) and all(isinstance(key, ast.Constant) for key in last.keys):
        return first + [(key.value, value) for key, value in zip(last.keys, last.values, strict=True)]
    return [(None, node)]


def without_words(text: str, tree) -> str:
    """Source with its comments and docstrings blank, everything else where it was."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            first, last = node.body[0].lineno - 1, node.body[0].end_lineno
            lines[first:last] = [""] * (last - first)
    return "\n".join(lines)


def source_of(node, text: str) -> str:
    """A node's part of the text, decorators included and blank lines left out."""
    parts = [*getattr(node, "decorator_list", []), node]
    found = "\n".join(ast.get_source_segment(text, part) for part in parts)
    return "\n".join(line.rstrip() for line in found.splitlines() if line.strip())


def references(node, module: str, imported: dict) -> list[tuple[str, str]]:
    """The (module, name) that a piece of source names, whatever is local to it left out."""
    imported = imported | imports(node)
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    function = isinstance(node, ast.FunctionDef | ast.ClassDef)
    local = {part.id for part in names if function and isinstance(part.ctx, ast.Store)}
    local |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    found = [imported.get(part.id, (module, part.id)) for part in names if part.id not in local]
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in imported:
            found.append((".".join(imported[part.value.id]), part.attr))
    return sorted(set(found))
