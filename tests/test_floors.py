"""The house has floors: what stands on one imports only from those below, and planning draws no figure."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = [  # from the ground up, a floor a line
    "odl odl.machine odl.data companion",  # names alone
    "odl.machine.files",
    "odl.machine.checkpoint odl.machine.device odl.machine.graphs odl.machine.provenance odl.machine.store "
    "odl.machine.weights",
    "odl.paper odl.network odl.damage",
    "odl.schedules odl.crops odl.data.sets",
    "odl.parameters odl.data.reader odl.rivals",
    "odl.corruptions odl.photographs odl.data.packs odl.experiment",
    "odl.data.download odl.evaluation odl.windows",
    "odl.learn",
    "odl.results",
    "odl.pretrained",
    "odl.__main__",
    "companion.published",
    "companion.judge companion.comparators.check companion.comparators.fields",
    "companion.prose companion.comparators.classical companion.comparators.csf companion.comparators.dncnn "
    "companion.comparators.ksvd companion.comparators.mlp companion.comparators.tnrd companion.comparators.wnnm",
    "companion.figures companion.pilot companion.sweep companion.comparators.trained companion.comparators.authors",
    "companion.tables companion.notebook companion.blocks companion.explanations companion.comparators",
    "companion.denoising companion.comparators.context_encoder",
    "companion.catalogue companion.gpu companion.pictures",
    "companion.plan companion.table1 companion.fixation companion.allocation companion.table2 companion.table3 "
    "companion.db11_spectrum companion.gallery companion.qualitative companion.extra_data companion.applications "
    "companion.dose",
    "companion.scorecard companion.__main__",
]
FLOOR = {module: floor for floor, line in enumerate(FLOORS) for module in line.split()}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {module_of(path): path for folder in ("odl", "companion") for path in sorted((ROOT / folder).rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Our modules that a file imports, anywhere in it; of a package's names those that are modules.

    What `odl` hands on, it hands on to users: `import odl` or `from odl import restore` counts as above everything.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name if "." in alias.name else f"{alias.name}.*" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            if node.module == "odl":
                found |= below - {"odl.PROTOCOL", "odl.__version__"}
            else:
                found |= below & FLOOR.keys() or {node.module}
    return {name for name in found if name.split(".")[0] in ("odl", "companion", "book", "bench", "tests")}


@pytest.mark.parametrize("module", FILES)
def test_imports_go_down(module):
    if module == "odl":  # hands on what it offers when it is asked for
        return
    above = {name for name in imported(FILES[module]) if FLOOR.get(name, len(FLOORS)) >= FLOOR[module]}
    assert not above, f"{module} imports {above}, which is not below it"


def test_what_does_not_draw_imports_no_matplotlib():
    """And `import odl` no torch; each before what would import it after all."""
    code = """import sys
def absent(*names): assert not {*names} & {*sys.modules}, {*names} & {*sys.modules}
import odl; absent("torch")
import odl.results; absent("matplotlib", "scipy.stats", "git")
import companion.sweep, companion.catalogue; absent("matplotlib")
print([getattr(odl, name) for name in odl.__all__])"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=True)
