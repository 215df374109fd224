"""Links that open a notebook in Colab or Binder, for a book that knows where its repository is published."""

import re
import sys
from pathlib import Path

import yaml

CONFIG = Path(__file__).resolve().parents[1] / "_config.yml"
BUTTON = "{.sd-btn .sd-btn-outline-primary}"


def repository() -> tuple[str, str] | None:
    """OWNER/NAME on GitHub and the branch, from `repository` in _config.yml; None where it has no address."""
    given = yaml.safe_load(CONFIG.read_text(encoding="utf-8")).get("repository") or {}
    url = given.get("url") or ""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", url)
    if url and not found:
        nearest = "nearest: https://github.com/OWNER/NAME"
        sys.exit(f"book: repository url {url!r} in _config.yml is none of GitHub; {nearest}")
    return (found[1], given.get("branch", "main")) if found else None


def buttons(notebook: str) -> str:
    """Two plain links for the top of a notebook's page; empty where no repository is known."""
    where = repository()
    if not where:
        return ""
    (name, branch), path = where, f"notebooks/{notebook}.ipynb"
    colab = f"https://colab.research.google.com/github/{name}/blob/{branch}/{path}"
    binder = f"https://mybinder.org/v2/gh/{name}/{branch}?urlpath=lab/tree/{path}"
    return f"\n\n[Open in Colab]({colab}){BUTTON} [Open in Binder]({binder}){BUTTON}"


def setup() -> str:
    """What to type in the first cell of each service, and whether this book shows the buttons."""
    where = repository()
    name, shown = "OWNER/NAME", "This copy of the book knows no repository, so it shows no buttons."
    if where:
        name, shown = where[0], "Every notebook's page has both buttons."
    return f"""{shown}

In Colab, first run this in a cell of its own:

```
!git clone --depth 1 https://github.com/{name}
%cd {name.split("/")[1]}
%pip install --quiet --editable .
```

In Binder, first run this, so that training starts no process for every core of a large machine:

```
%env OMP_NUM_THREADS=1
```"""
