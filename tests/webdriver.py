"""A browser for the tests: Chromium over WebDriver, whose messages are JSON over HTTP."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
INSTALLED = bool(CHROMIUM and shutil.which("chromedriver"))
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
LOGS = {"browser": "ALL", "performance": "ALL"}  # the console, and the network
FLOATS = """
const base64 = (floats) => {
  const bytes = new Uint8Array(new Float32Array(floats).buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text);
};
"""


class Browser:
    """A headless Chromium, and the few verbs of WebDriver that these tests use."""

    def __init__(self, profile: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.driver = subprocess.Popen([shutil.which("chromedriver"), f"--port={port}"], **quiet)
        self.address = f"http://127.0.0.1:{port}"
        options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        match = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": LOGS}
        match["timeouts"] = {"script": 50_000}
        self.wait(lambda: self.send("GET", "/status")["ready"])
        session = self.send("POST", "/session", {"capabilities": {"alwaysMatch": match}})
        self.address += f"/session/{session['sessionId']}"
        self.version = f"Chromium {session['capabilities']['browserVersion']}"
        self.go("about:blank")  # not Chromium's own first page

    def send(self, method: str, path: str, content=None):
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self.address + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def wait(self, condition, seconds: float = 50):
        """Ask until the answer is true, then give it."""
        end = time.monotonic() + seconds
        while True:
            try:
                if answer := condition():
                    return answer
            except (OSError, RuntimeError):
                if time.monotonic() > end:
                    raise
            assert time.monotonic() < end, "the browser did not get there in time"
            time.sleep(0.05)

    def go(self, address: str) -> None:
        """Load a page."""
        self.send("POST", "/url", {"url": address})

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(args[0])].map((e) => e.textContent)", selector)

    def run(self, script: str, *values):
        """The value of an async function body."""
        body = f"const [done, ...args] = [arguments[arguments.length - 1], ...arguments]; {FLOATS}"
        body += f"(async () => {{ {script} }})().then(done, (error) => done({{ error: String(error) }}));"
        answer = self.send("POST", "/execute/async", {"script": body, "args": list(values)})
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def elements(self, selector: str) -> list[str]:
        found = self.send("POST", "/elements", {"using": "css selector", "value": selector})
        return [name for element in found for name in element.values()]

    def shown(self, selector: str) -> list[bool]:
        """Whether each element that a selector finds is displayed; needs no script of the page."""
        return [self.send("GET", f"/element/{element}/displayed") for element in self.elements(selector)]

    def type(self, selector: str, text: str) -> None:
        """Send keys to an element, or to a file input the path of a file."""
        self.send("POST", f"/element/{self.elements(selector)[0]}/value", {"text": text})

    def click(self, selector: str) -> None:
        self.send("POST", f"/element/{self.elements(selector)[0]}/click", {})

    def drag(self, selector: str, *points) -> None:
        """Press at the first point, relative to the element's middle in CSS pixels, and release at the last."""
        at = {"element-6066-11e4-a52e-4f735466cecf": self.elements(selector)[0]}
        moves = [{"type": "pointerMove", "origin": at, "x": x, "y": y, "duration": 30} for x, y in points]
        moves = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self.send("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": moves}]})

    def devtools(self, command: str, **parameters):
        """A command of the DevTools protocol."""
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind: str) -> list[dict]:
        """What was logged since the last call."""
        return self.send("POST", "/se/log", {"type": kind})

    def close(self) -> None:
        self.send("DELETE", "")
        self.driver.terminate()
        self.driver.wait(10)
