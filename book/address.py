"""Write the repository's address and branch from _config.yml to where they must stand alone: python book/address.py

A notebook that was opened without its repository fetches it from there, and CITATION.cff is read by programs.
"""

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
CELL = r'(?<="{} = \\")[^"\\]*(?=\\"  # of)'  # in a notebook's first cell, as JSON
CODE = re.compile(r"(?m)^repository-code: .*\n")


def address() -> tuple[str, str]:
    """The address in _config.yml, empty where it has none, and the branch."""
    known = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    return (known["url"] or "").rstrip("/"), known["branch"]


def with_address(url: str, branch: str) -> dict[Path, str]:
    """The files that hold the address, with these in them."""
    found = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    for name, value in {"address": url, "branch": branch}.items():
        found = {path: re.sub(CELL.format(name), value, text) for path, text in found.items()}
    citation = ROOT / "CITATION.cff"
    lines = CODE.sub("", citation.read_text(encoding="utf-8"))
    found[citation] = lines.replace("license: ", f"repository-code: {url}\nlicense: ", 1) if url else lines
    return found


def check() -> None:
    """End where a file has another address than _config.yml: a button would open a notebook that finds nothing."""
    if old := [p.name for p, text in with_address(*address()).items() if p.read_text(encoding="utf-8") != text]:
        sys.exit(f"book: another address than in _config.yml stands in {', '.join(old)}: python book/address.py")


if __name__ == "__main__":
    for path, text in with_address(*address()).items():
        path.write_text(text, encoding="utf-8")
