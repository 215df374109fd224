"""Sphinx extension: prose takes its numbers by name, `{{ feedback.moved }}`, from generated/facts.json."""

import json
from pathlib import Path

NOT_MEASURED = "to be measured"


def said(value, digits=0, unit="", signed=False) -> str:
    """Return `1,500,000`, `+0.02 dB`, `−0.02 to +0.01 dB`; text stays as it is."""
    if value is None or isinstance(value, str):
        return value or NOT_MEASURED
    values = dict.fromkeys(
        f"{x:{'+' * signed},.{digits}f}" for x in (value if isinstance(value, list | tuple) else [value])
    )
    return " to ".join(values).replace("-", "−") + unit


def substitute(app, config):
    facts = json.loads(Path(app.srcdir, "generated", "facts.json").read_text(encoding="utf-8"))
    config.myst_substitutions |= {
        name: {key: said(**number) for key, number in numbers.items()} for name, numbers in facts.items()
    }


def setup(app):
    app.connect("config-inited", substitute)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
