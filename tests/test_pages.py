"""Every page of the built book, in a browser: quiet, complete, offline, fit for a phone, accessible to axe-core.

The book is built for these tests unless _build/html is younger than everything that it is made of.
"""

import subprocess
import sys
from functools import cache
from urllib.parse import unquote, urldefrag

import build
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from filelock import FileLock
from page_facts import AXE, DESK, HTML, LAB, LOADED, PHONE, ROOT, bytes_of, load, look, network, requests, served
from PIL import Image
from test_lab import check_against_torch, set_fixation

from companion.disk import files

SOURCES = [*build.LINKED, "notebooks", "data/results"]
PAGES = [f"{file}.html" for file in build.toc()]
PRINT, SCORECARD = "book/print.html", "notebooks/scorecard.html"
ALL = [*PAGES, PRINT, "search.html", "genindex.html"]
MOST = dict.fromkeys((LAB, "book/problem.html", "book/others.html"), 40)  # megabytes of pages with networks; else 12

FACTS = """
const unset = (e) => !e.querySelector("mjx-container") || e.querySelector("mjx-merror, [data-mjx-error]");
return [document.documentElement.scrollWidth, [...document.querySelectorAll(".math")].filter(unset).length];
"""
OUT_OF_REACH = """
const end = (e) => e.getBoundingClientRect().right;
const reachable = (table) => {
  for (let box = table.parentElement; box && end(table) > innerWidth + 1; box = box.parentElement) {
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth) {
      return end(box) <= innerWidth + 1 && box.scrollWidth - box.clientWidth >= end(table) - end(box) - 2;
    }
  }
  return end(table) <= innerWidth + 1;
};
const tables = [...document.querySelectorAll("article table")].filter((table) => table.offsetHeight);
return tables.filter((table) => !reachable(table)).map((table) => table.textContent.slice(0, 60));
"""
CUT = """
const listings = [...document.querySelectorAll("article .highlight pre")].filter((pre) => pre.offsetHeight);
return listings.filter((pre) => pre.scrollWidth > pre.clientWidth + 1).map((pre) => pre.textContent.slice(0, 60));
"""
GLARING = """
const drawn = (image, style) => image.matches(".odl-drawn") && !style.filter.includes("invert");
return [...document.querySelectorAll("article img")].filter((image) => {
  const style = getComputedStyle(image);
  return style.backgroundColor !== "rgba(0, 0, 0, 0)" || drawn(image, style);
}).map((image) => image.src);
"""
THEME = "return document.documentElement.dataset.theme"


@pytest.fixture(scope="session")
def html():
    """The folder of the built book."""
    HTML.parent.mkdir(exist_ok=True)
    with FileLock(HTML.parent / "pages.lock"):
        files = [file for name in SOURCES for file in [ROOT / name, *(ROOT / name).rglob("*.*")] if file.is_file()]
        files = [file for file in files if not {"__pycache__", "tables"} & {*file.parts}]  # tables the build writes
        built = HTML / PRINT
        if not built.exists() or built.stat().st_mtime < max(file.stat().st_mtime for file in files):
            command = [sys.executable, ROOT / "book" / "build.py"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
            assert done.returncode == 0, done.stderr[-3000:]
    return HTML


@pytest.fixture(scope="session")
def soup(html):
    """A page of the book, parsed once."""
    return cache(lambda page: BeautifulSoup((html / page).read_text(), "html.parser"))


@pytest.fixture(scope="session")
def address(html):
    with served(html) as address:
        yield address


def complaints(browser) -> list[str]:
    return [entry["message"] for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.mark.parametrize("page", ALL)
def test_page_on_a_phone(chromium, axe, address, page):
    look(chromium)
    load(chromium, address + page)
    width, unset = chromium.run(FACTS)
    events = network(chromium)
    assert [url for url in requests(events) if not url.startswith((address, "data:", "blob:", "chrome"))] == []
    assert complaints(chromium) == []
    answers = [event["params"]["response"] for event in events if event["method"] == "Network.responseReceived"]
    assert [answer["url"] for answer in answers if answer["status"] >= 400] == []
    assert width <= PHONE["width"] and unset == 0
    assert chromium.run(OUT_OF_REACH) == []
    assert bytes_of(events) / 1e6 < MOST.get(page, 12)
    if page != PRINT:  # light on every screen, as paper is
        assert chromium.run(AXE, {"rules": {"color-contrast": {"enabled": False}}}) == []
        look(chromium, "dark")
        chromium.wait(lambda: chromium.run(THEME) == "dark")
        assert chromium.run(AXE, {"runOnly": ["color-contrast"]}) == []
        assert chromium.run(GLARING) == []
    look(chromium, screen=DESK)
    chromium.wait(lambda: chromium.run(THEME) == "light")
    assert chromium.run(CUT) == []
    assert chromium.run(AXE, {}) == []


def test_pages_from_the_file_system(chromium, html):
    look(chromium, screen=DESK)
    complaints(chromium)
    for page in (PAGES[0], "book/method.html", "book/feedback.html", LAB, SCORECARD, PRINT, "search.html"):
        chromium.go((html / page).as_uri())
        chromium.run(LOADED)
        assert complaints(chromium) == [], page


def test_lab_restores_on_its_page_as_torch_does(chromium, address):
    look(chromium, screen=DESK)
    complaints(chromium)
    chromium.go(address + LAB)  # from file:// in test_lab.py
    chromium.wait(lambda: chromium.run("return document.getElementById('lab-fixation').dataset.ready") == "yes")
    check_against_torch(set_fixation(chromium, "inpaint", 20), "inpaint", 20)
    assert complaints(chromium) == []


def test_lab_without_javascript_shows_still_pictures(chromium, html):
    look(chromium, screen=DESK)
    chromium.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.go((html / LAB).as_uri())
        shown = chromium.shown("[id^=fig-lab] img, noscript p")
        assert shown == [True] * 5
        assert chromium.shown(".odl-lab") == [False] * 4
    finally:
        chromium.devtools("Emulation.setScriptExecutionDisabled", value=False)


def test_search_finds_without_a_server(chromium, html):
    chromium.go(f"{(html / 'search.html').as_uri()}?q=fixation")
    found = "return document.querySelectorAll('#search-results li a').length"
    chromium.wait(lambda: chromium.run(found) > 3)


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_says_what_it_shows_and_every_figure_has_a_number(html, soup, page):
    article = soup(page).select_one("article.bd-article")
    for image in article.select("img"):
        assert len(image.get("alt", "")) > 12 and "/" not in image["alt"].split(" ")[0], image.get("src")
        path = (html / page).parent / image["src"]
        if path.suffix == ".png" and "odl-drawn" not in image.get("class", []):  # photographs, on a dark page too
            assert Image.open(path).convert("RGBA").getpixel((0, 0)) != (255, 255, 255, 255), path
    for figure in article.select("figure:not(.odl-demo)"):
        assert figure.select_one(".caption-number"), figure
        assert len(figure.select_one(".caption-text").get_text()) > 12
    assert not article.select("div.cell_output > img, div.cell_output > .output > img")  # outside of a figure


def test_print_page_holds_the_whole_book(html, soup):
    whole = soup(PRINT)
    titles = [soup(page).select_one("article h1").get_text() for page in PAGES]
    assert [heading.get_text() + "#" for heading in whole.select("article h1")] == titles
    ids = [element["id"] for element in whole.select("[id]")]
    assert len(ids) == len({*ids})
    known, tabs = {*ids}, soup("book/contest.html").select("article .sd-tab-content")
    assert tabs and {f"book-contest--{tab['id']}" for tab in tabs} <= known
    assert not whole.select("[class*=sd-tab], input, [aria-controls]")  # which would keep tabs closed
    titles = [label.get_text() for page in PAGES for label in soup(page).select("article .sd-tab-label")]
    assert [title.get_text() for title in whole.select("p.odl-tab")] == titles
    for link in whole.select("article a[href], main a[href]"):
        target, fragment = urldefrag(link["href"])
        if not target:
            assert not fragment or fragment in known, link
        elif "://" not in target and not target.startswith("mailto:"):
            assert (html / "book" / unquote(target)).exists(), link
    for image in whole.select("img"):
        assert (html / "book" / image["src"]).exists()


def test_printed_page_shows_titles_and_no_controls(chromium, html):
    look(chromium, screen=DESK)
    chromium.go((html / PRINT).as_uri())
    chromium.devtools("Emulation.setEmulatedMedia", media="print")
    assert chromium.shown("article h1") == [True] * len(PAGES)
    assert not any(chromium.shown("button, input, select, .bd-sidebar"))
    tables = chromium.shown("article table")
    assert len(tables) > 50 and all(tables)  # folded on the pages
    chromium.devtools("Emulation.setEmulatedMedia", media="")


def test_the_slider_of_the_first_page_moves_pictures_and_scores(chromium, html):
    look(chromium, screen=DESK)
    chromium.go((html / PAGES[0]).as_uri())
    at = "return [getComputedStyle(document.querySelector('.odl-demo')).getPropertyValue('--k'), "
    at += "document.querySelector('.odl-demo label b').textContent]"
    before = chromium.run(at)
    chromium.type("#odl-scrub", "\ue014")  # the right arrow
    after = chromium.run(at)
    assert int(after[0]) == int(before[0]) + 1 and int(after[1][:-2]) == int(before[1][:-2]) + 5
    names = chromium.texts(".odl-demo .odl-row b")
    assert names == ["damaged", "Feedback", "Equal shares", "10 % alone", "80 % alone", "Newer"]
    heard = "return document.querySelector('.odl-demo .odl-row').getAttribute('aria-label')"
    scores = chromium.texts(f".odl-strip span:nth-child({int(after[0]) + 1})")
    pairs = ", ".join(f"{name} {score}" for name, score in zip(names, scores, strict=True))
    assert chromium.run(heard) == f"PSNR at {after[1]} deleted: {pairs}."


def test_the_scorecard_has_a_row_for_every_claim_that_is_measured(soup):
    stored = [
        files.results() / f"reference/tables/scorecard-{name}-all.csv" for name in ("bsds500", "celeba10k-native")
    ]
    rows = [len(table.select("tbody tr:not(.odl-section)")) for table in soup(SCORECARD).select("table.odl-scorecard")]
    assert rows == [(pd.read_csv(path).verdict != "to be measured").sum() for path in stored]


@pytest.mark.parametrize("page", ["problem", "idea", "feedback", "contest", "others", "today"])
def test_a_guess_is_answered_in_sight_and_in_words(chromium, html, page):
    look(chromium, screen=DESK)
    chromium.go((html / "book" / f"{page}.html").as_uri())
    [question] = chromium.texts("form.odl-guess > fieldset > legend")
    assert "?" in question and chromium.shown(".odl-guess + .odl-found") == [False]
    chromium.click(".odl-guess input")
    assert chromium.shown(".odl-guess + .odl-found") == [True]
    heard = "return document.querySelector('.odl-guess [role=status]').textContent.trim()"
    assert chromium.run(heard).split() == chromium.texts(".odl-guess + .odl-found")[0].split() != []


SCREEN = """
const picture = document.querySelector(".odl-figure img"), before = document.createRange();
before.setStart(document.querySelector("article.bd-article"), 0);
before.setEndBefore(picture);
const words = before.toString().split(/\\s+/).filter((word) => /[\\p{L}\\p{N}]/u.test(word)).length;
const bottom = (element) => element.getBoundingClientRect().bottom + scrollY;
return { words, answer: bottom(document.querySelector(".odl-answer")), picture: bottom(picture) };
"""


@pytest.mark.parametrize(("width", "most"), [(1400, 1000), (390, 1600)])
def test_the_first_screen_answers(chromium, html, width, most):
    """At most 150 words, three sentences and a picture within a screen; on a phone within less than two."""
    look(chromium, screen=PHONE | {"width": width, "height": 1000, "mobile": width < 600})
    chromium.go((html / PAGES[0]).as_uri())
    found = chromium.run(SCREEN)
    assert found["words"] <= 150 and found["answer"] < found["picture"] < most
    assert len(chromium.texts(".odl-answer p")) == 3
    buttons = chromium.run("return [...document.querySelectorAll('article a.sd-btn')].map((a) => a.textContent.trim())")
    assert buttons == ["Play", "Run", "Teach"]
