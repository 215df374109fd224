"""Sphinx extension: formulas render without a network, pages say nothing false to a screen reader, drawings are marked.

MathJax comes from the PyPI package sphinx-mathjax-offline. Of its 24 MB the book takes 2: the one script that
reads TeX and writes HTML, its fonts, and the TeX extensions which that script loads on demand.
"""

import re
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
from docutils import nodes
from PIL import Image

SCRIPT, FOLDERS = "tex-mml-chtml.js", ["output/chtml/fonts", "input/tex/extensions"]


def write_mathjax(target: Path) -> None:
    source = files("sphinx-mathjax-offline") / "static" / "mathjax"
    for folder in FOLDERS:
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
    shutil.copy2(source / SCRIPT, target)


def copy_mathjax(app, exception):
    if not exception and app.builder.format == "html":
        write_mathjax(Path(app.outdir, "_static", "mathjax"))


def correct_roles(app, page, template, context, doctree):
    """Let hidden cells go by the words on them, bibliographies be no empty lists, first cells head rows."""
    for wrong, right in (
        (r'<summary aria-label="Toggle hidden content">', "<summary>"),
        (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
        (r' role="doc-biblioentry"', ""),
        (r'(?s)(<tr class="row-(?:even|odd)">)<td([^>]*)>(.*?)</td>', r'\1<th scope="row"\2>\3</th>'),
        (r"<th([^>]*)>(?:<p></p>)?</th>", r"<td\1></td>"),  # an empty cell heads nothing
    ):
        context["body"] = re.sub(wrong, right, context.get("body", ""))


def mark_drawings(app, doctree):
    """Give class odl-drawn to what is drawn on white, which a dark page turns: photographs are at most 35 % white."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir, image["uri"])
        if path.suffix == ".svg" or (np.asarray(Image.open(path).convert("RGBA")).min(-1) >= 250).mean() >= 0.4:
            image["classes"].append("odl-drawn")


def setup(app):
    app.config.mathjax_path = f"mathjax/{SCRIPT}"
    app.connect("build-finished", copy_mathjax)
    app.connect("html-page-context", correct_roles)
    app.connect("doctree-read", mark_drawings)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
