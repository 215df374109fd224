"""What tests ask of a page in the browser: how it looks and what it loads."""

import functools
import json
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from webdriver import LOGS, Browser

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
LAB = "book/lab.html"
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
DESK = PHONE | {"width": 1280, "mobile": False}
AXE = """
const found = await axe.run(document, { resultTypes: ["violations"], ...args[0] });
return found.violations.flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.target.join(" ")}`));
"""
LOADED = """
await new Promise((next) => (document.readyState === "complete" ? next() : addEventListener("load", next)));
if (document.querySelector(".math") && window.MathJax) await MathJax.startup.promise;
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


def look(browser: Browser, scheme="light", screen=PHONE) -> None:
    """Set the screen and what the reader prefers."""
    browser.devtools("Emulation.setDeviceMetricsOverride", **screen)
    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


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


def requests(events: list[dict]) -> list[str]:
    """The addresses that were asked for."""
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def bytes_of(events: list[dict]) -> int:
    return sum(e["params"]["encodedDataLength"] for e in events if e["method"] == "Network.loadingFinished")
