"""Sphinx extension: formulas render without a network.

MathJax comes from the PyPI package sphinx-mathjax-offline. Of its 24 MB the book takes 2: the one script that
reads TeX and writes HTML, its fonts, and the TeX extensions which that script loads on demand.
"""

import shutil
from importlib.resources import as_file, files
from pathlib import Path

PARTS = ["tex-mml-chtml.js", "output/chtml/fonts", "input/tex/extensions"]


def write_mathjax(target: Path) -> None:
    """Copy `PARTS` into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    with as_file(files("sphinx-mathjax-offline") / "static" / "mathjax") as source:
        for part in PARTS:
            if (source / part).is_dir():
                shutil.copytree(source / part, target / part, dirs_exist_ok=True)
            else:
                shutil.copy2(source / part, target / part)


def copy_mathjax(app, exception):
    """Give the built pages their MathJax, in `_static/mathjax`."""
    if not exception and app.builder.format == "html":
        write_mathjax(Path(app.outdir, "_static", "mathjax"))


def setup(app):
    app.config.mathjax_path = "mathjax/tex-mml-chtml.js"
    app.connect("build-finished", copy_mathjax)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
