"""Sphinx extension: a table has its caption and its number as a figure has, wherever it comes from.

MyST-NB gives any output of a notebook a caption, but as a figure. One of class `odl-tabular` holds a table, so it is
numbered with the tables. A table in Markdown is put into the same frame, where it can scroll under its caption.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform


class tabular(nodes.figure):
    """A figure that holds a table."""


class CountAsTable(SphinxTransform):
    """Frame every table that has a caption, before Sphinx collects the labels."""

    default_priority = 400

    def apply(self):
        for figure in list(self.document.findall(nodes.figure)):
            if "odl-tabular" in figure["classes"]:
                self.replace(figure, tabular("", *figure.children))
        for table in list(self.document.findall(nodes.table)):
            if isinstance(table[0], nodes.title):
                title = table.pop(0)
                frame = tabular("", classes=["odl-tabular"])
                self.replace(table, frame)
                table["ids"], table["names"] = [], []
                frame += [table, nodes.caption("", "", *title.children)]

    def replace(self, old, new):
        """Let a node take the place, the names and the address of another."""
        old.replace_self(new)
        self.document.ids.update(dict.fromkeys(new["ids"], new))


def setup(app):
    visit = (lambda self, node: self.visit_figure(node)), (lambda self, node: self.depart_figure(node))
    app.add_enumerable_node(tabular, "table", html=visit)
    app.add_transform(CountAsTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
