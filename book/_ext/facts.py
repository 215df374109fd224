"""Sphinx extension: prose takes its numbers by name, `{{ feedback.moved }}`, from generated/facts.json."""

import json
from pathlib import Path


def substitute(app, config):
    config.myst_substitutions |= json.loads(Path(app.srcdir, "generated", "facts.json").read_text(encoding="utf-8"))


def setup(app):
    app.connect("config-inited", substitute)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
