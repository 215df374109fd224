"""The whole book as one page to read through or print: book/print.html, from the built pages.

It lies beside the other pages, so their relative addresses of pictures and files hold.
"""

from pathlib import Path, PurePosixPath
from urllib.parse import urldefrag, urljoin

from bs4 import BeautifulSoup

NAME = "book/print"
CHROME = ".bd-sidebar-primary, .bd-sidebar-secondary, .bd-header, .bd-header-article, .prev-next-footer, .bd-footer"
CHROME += ", .bd-footer-content, #jb-print-docs-body, dialog"
ACTIVE = "script, .odl-lab, noscript, .headerlink, link[href*='/lab/'], input, .odl-scrub"


def write(html: Path, pages: list[str]) -> None:
    """Put the articles of all pages (`book/method`, in reading order) into the frame of the first."""
    frame = read(html / f"{pages[0]}.html")
    for part in frame.select(CHROME):
        part.decompose()
    for script in frame.select("script, link[rel=preload]"):
        if "mathjax" not in str(script).lower():  # what the others move is gone
            script.decompose()
    frame.html["data-theme"] = frame.html["data-mode"] = "light"
    frame.title.string = f"{frame.title.string.split(' — ')[-1]}, on one page"
    article = frame.select_one("article.bd-article")
    article.clear()
    for page in pages:
        article.append(chapter(read(html / f"{page}.html").select_one("article.bd-article"), page, pages))
    (html / f"{NAME}.html").write_text(str(frame), encoding="utf-8")


def read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def chapter(article, page: str, pages: list[str]):
    """Return an article without what needs a script; its ids begin with the page, links to pages stay in the book."""
    article.name, article["class"], article["id"] = "section", "odl-chapter", anchor(page)
    article.attrs.pop("role", None)
    for part in article.select(ACTIVE):
        part.decompose()
    for part in article.select("details.sd-dropdown:has(table)"):
        part["open"] = ""  # on paper nobody can open it
    for part in article.select("[class*=sd-tab]"):  # without their buttons tabs would stay closed
        if part.name == "label":
            part.name, part.attrs = "p", {"class": "odl-tab"}
        else:
            del part["class"]
    for element in article.select("[id]"):
        element["id"] = anchor(page, element["id"])
    for name in ("for", "aria-labelledby", "aria-describedby"):
        for element in article.select(f"[{name}]"):
            element[name] = " ".join(anchor(page, part) for part in element[name].split())
    scrolls = "pre, .pst-scrollable-table-container, .text_html, div.math, figure:has(img), .odl-wide-figure"
    for part in article.select(scrolls):
        part["tabindex"] = "0"  # scrolls on a phone, so keys must reach it; on the pages the theme's script sees to it
    for link in article.select("a[href]"):
        address, fragment = urldefrag(urljoin(f"{page}.html", link["href"]))
        target = str(PurePosixPath(address).with_suffix("")) if address else page
        if target in pages:
            link["href"] = "#" + anchor(target, fragment)
    return article


def anchor(page: str, fragment: str = "") -> str:
    return f"{page.replace('/', '-')}{'--' if fragment else ''}{fragment}"
