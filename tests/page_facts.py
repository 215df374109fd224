"""What a page of the built book weighs, and how soon the lab restores: python tests/page_facts.py

Writes data/results/book/pages.json. Every page is loaded with an empty cache, as it lies on the disk, uncompressed.
"""

import functools
import json
import tempfile
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from webdriver import Browser

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
KEPT = ROOT / "data" / "results" / "book" / "pages.json"
LAB = "book/lab.html"
LOGS = {"browser": "ALL", "performance": "ALL"}
LOADED = """
await new Promise((next) => (document.readyState === "complete" ? next() : addEventListener("load", next)));
if (document.querySelector(".math") && window.MathJax) await MathJax.startup.promise;
"""
RESTORED = """
const root = document.getElementById("lab-fixation");
while (!root.dataset.drawn) await new Promise((next) => setTimeout(next, 5));
return performance.now() / 1000;
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path):
    """The address of a folder on the loopback interface."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def load(browser: Browser, address: str) -> None:
    """Load a page until its formulas are set, from an empty cache and with empty logs."""
    browser.devtools("Network.clearBrowserCache")
    for kind in LOGS:
        browser.log(kind)
    browser.go(address)
    browser.run(LOADED)


def network(browser: Browser) -> list[dict]:
    """The events of the network since the last call."""
    return [json.loads(entry["message"])["message"] for entry in browser.log("performance")]


def bytes_of(events: list[dict]) -> int:
    return sum(e["params"]["encodedDataLength"] for e in events if e["method"] == "Network.loadingFinished")


def first_restoration(browser: Browser, address: str) -> float:
    """Seconds from the start of loading the lab to its first restored picture."""
    load(browser, address + LAB)
    return browser.run(RESTORED)


def main():
    pages = sorted(
        page.relative_to(HTML).as_posix() for name in ("book", "notebooks") for page in HTML.glob(f"{name}/*")
    )
    with tempfile.TemporaryDirectory() as profile, served(HTML) as address:
        browser = Browser(Path(profile), LOGS)
        try:
            weights = {}
            for page in pages:
                load(browser, address + page)
                weights[page] = round(bytes_of(network(browser)) / 1e6, 2)
            seconds = [round(first_restoration(browser, address), 2) for _ in range(5)]
        finally:
            browser.close()
    facts = {"megabytes": weights, "first_restoration_seconds": seconds, "browser": browser.version}
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{KEPT.relative_to(ROOT)}: {len(weights)} pages; first restoration after {min(seconds)} s at best")


if __name__ == "__main__":
    main()
