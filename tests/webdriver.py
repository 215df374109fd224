"""A browser for the tests: headless Chromium by selenium, with the few verbs that these tests use."""

import shutil
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
INSTALLED = bool(CHROMIUM and DRIVER)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
LOGS = {"browser": "ALL", "performance": "ALL"}  # the console, and the network


class Browser:
    def __init__(self, profile: Path):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", LOGS)
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
        self.driver.set_script_timeout(50)
        self.go, self.log, self.close = self.driver.get, self.driver.get_log, self.driver.quit
        self.go("about:blank")  # not Chromium's own first page

    def wait(self, condition, seconds: float = 50):
        """Ask until the answer is true, then give it."""
        return WebDriverWait(self.driver, seconds, 0.05, (WebDriverException,)).until(lambda _: condition())

    def run(self, script: str, *values):
        """The value of an async function body."""
        body = "const [done, ...args] = [arguments[arguments.length - 1], ...arguments];"
        body += f"(async () => {{ {script} }})().then(done, (error) => done({{ error: String(error) }}));"
        answer = self.driver.execute_async_script(body, *values)
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(args[0])].map((e) => e.textContent)", selector)

    def elements(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def shown(self, selector: str) -> list[bool]:
        """Whether each element that a selector finds is displayed; needs no script of the page."""
        return [element.is_displayed() for element in self.elements(selector)]

    def type(self, selector: str, text: str) -> None:
        """Send keys to an element, or to a file input the path of a file."""
        self.elements(selector)[0].send_keys(text)

    def click(self, selector: str) -> None:
        self.elements(selector)[0].click()

    def drag(self, selector: str, *points) -> None:
        """Press at the first point, relative to the element's middle in CSS pixels, and release at the last."""
        element, ((x, y), *rest) = self.elements(selector)[0], points
        self.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", element)
        act = ActionChains(self.driver, duration=30).move_to_element_with_offset(element, x, y)
        act.click_and_hold()
        for x, y in rest:
            act.move_to_element_with_offset(element, x, y)
        act.release().perform()

    def devtools(self, command: str, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)
