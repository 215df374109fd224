"""The lab page: its networks, rules and corruptions are odl's, and its labs work in a browser, from file:// too."""

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from skimage.metrics import peak_signal_noise_ratio
from test_restore import trained_like
from webdriver import INSTALLED, Browser

from odl import PROTOCOL, paths, results
from odl.corruptions import TASKS, blur, delete, remove_square
from odl.data import grey
from odl.restore import inpaint_image
from odl.schedules import allocate, on_demand

ROOT = Path(__file__).resolve().parents[1]
LAB = ROOT / "book" / "lab"
sys.path.insert(0, str(ROOT / "book"))
import live  # noqa: E402

FRAGMENTS = ("fixation", "allocation", "inpaint")
PHONE = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}


class Lab(Browser):
    """A browser, and what the tests of this page ask of it."""

    page = None  # that is open, as it was loaded

    def open(self, page: Path) -> None:
        """Load a page and wait until each lab has started, or has said why it does not."""
        self.page = page
        self.go(page.as_uri())
        for lab in FRAGMENTS:
            self.wait(lambda lab=lab: self.run(f"return document.getElementById('lab-{lab}').dataset.ready"))

    def status(self, lab: str) -> str:
        return self.run(f"return document.querySelector('#lab-{lab} [role=status]').textContent")


def write_page(folder: Path) -> Path:
    """A small page around the labs, laid out like the book."""
    parts = [(LAB / f"{name}.html").read_text() for name in FRAGMENTS]
    stills = [f'<figure id="fig-lab-{name}">A still picture</figure>' for name in FRAGMENTS]
    [scripts] = re.findall(r"(?s)<link.*</script>", (ROOT / "book" / "lab.md").read_text())
    head = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    page = folder / "book" / "lab.html"
    page.parent.mkdir()
    page.write_text("\n".join([head, *stills, *parts, scripts]))
    return page


HISTORY = [[20.0, 19.5, 19.0, 18.0, 17.0], [24.0, 23.0, 21.0, 20.0, 18.0], [30.0, 27.0, 25.0, 23.0, 19.0]]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The lab with networks that are not trained, and a run's history that is made up."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODL_ROOT", str(folder / "root"))
        for seed, (task, schedule) in enumerate((t, s) for t in TASKS for s in live.SCHEDULES):
            experiment = live.reference(task, schedule)
            results.keep_weights(experiment, trained_like(TASKS[task].channels, seed, experiment.width))
        run, history = live.reference("inpaint", "on_demand"), [{"psnr": psnr} for psnr in HISTORY]
        content = {"protocol": PROTOCOL, "experiment": run.asdict(), "provenance": {}, "history": history}
        paths.write_atomically(results.path_of(run), paths.seal(content | {"evaluation": {}}))
        missing = live.write(folder / "_static" / "lab")
        if missing and missing.startswith("npm"):  # not installed, or offline
            pytest.skip(missing)
        assert missing is None
        yield write_page(folder)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if not INSTALLED:
        pytest.skip("Chromium or ChromeDriver is not installed")
    browser = Lab(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium, site):
    if chromium.page != site:
        chromium.open(site)
    return chromium


def as_floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.float32)


def as_text(x: torch.Tensor) -> str:
    return base64.b64encode(x.numpy().tobytes()).decode()


def network_as_shipped(task: str, schedule: str):
    """In half precision."""
    return results.network_of(live.reference(task, schedule)).half().float()


# Rules and networks


PSNRS = [[20.0] * 5, [22.1, 21.9, 21.6, 21.0, 20.3], [35, 30, 25, 20, 15], [60, 1, 1, 1, 1], [0.2, -3, 7, 7, 7]]


def test_allocation_is_the_schedules():
    if not shutil.which("node"):
        pytest.skip("Node.js is not installed")
    vectors = PSNRS + (1 + 59 * torch.rand(200, 5, generator=torch.Generator().manual_seed(0))).double().tolist()
    script = f"""import {{ allocate, onDemand }} from "{(LAB / "rules.js").as_uri()}";
    console.log(JSON.stringify({json.dumps(vectors)}.map((psnr) => allocate(onDemand(psnr)))));"""
    command = ["node", "--input-type=module", "--eval", script]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert answer == [allocate(on_demand(0.5, psnr, 5), 100).tolist() for psnr in vectors]


@pytest.mark.parametrize("task", TASKS)
def test_exported_networks_are_torchs(browser, task):
    x = torch.rand(2, TASKS[task].channels, 64, 64, generator=torch.Generator().manual_seed(1)) * 2 - 1
    for schedule in live.SCHEDULES:
        script = "const run = await odlLab.network(args[0], args[1]); return base64(await run(floats(args[2])));"
        answer = as_floats(browser.run(script, task, schedule, as_text(x)))
        with torch.inference_mode():
            assert np.abs(answer - network_as_shipped(task, schedule)(x).numpy().ravel()).max() < 1e-3


# The fixation lab


def set_fixation(browser, task: str, severity: float) -> dict:
    """Choose as a reader does; answers the images, the scores and the draws."""
    script = """
    const root = document.getElementById("lab-fixation");
    const [task, severity] = [root.querySelector("[name=task]"), root.querySelector("[name=severity]")];
    const until = async () => {
      while (root.dataset.drawn !== `${task.value} ${Number(severity.value)}`) await new Promise(requestAnimationFrame);
    };
    if (task.value !== args[0]) {
      task.value = args[0];
      task.dispatchEvent(new Event("change"));
      await until();
    }
    severity.value = args[1];
    severity.dispatchEvent(new Event("input"));
    await until();
    const shown = Object.fromEntries(Object.entries(root.shown).map(([key, image]) => [key, base64(image)]));
    const { top, left, uniform, normal } = root.chance;
    return { shown, scores: root.scores, top, left, uniform: base64(uniform), normal: base64(normal) };
    """
    answer = browser.run(script, task, severity)
    side = (1, TASKS[task].channels, 64, 64)
    answer["shown"] = {k: torch.from_numpy(as_floats(v).copy()).view(side) for k, v in answer["shown"].items()}
    return answer


def corrupted(task: str, x, severity: float, draws: dict):
    """The same damage by odl, from the page's draws."""
    if task == "inpaint":
        return remove_square(x, torch.tensor([[severity, draws["top"], draws["left"]]]), None)
    if task == "interpolate":
        uniform = torch.from_numpy(as_floats(draws["uniform"]).copy()).view(1, 1, 64, 64)
        return delete(x, uniform < severity / 100)
    if task == "deblur":
        return blur(x, torch.tensor([[severity, severity, 0.0]]), None)
    noise = torch.from_numpy(as_floats(draws["normal"]).copy()).view(1, 1, 64, 64)
    return (x + noise * severity / 127.5).clamp(-1, 1)


@pytest.mark.parametrize(
    "task, severities",
    {"inpaint": (5, 20, 32), "interpolate": (10, 80), "deblur": (0, 1, 5), "denoise": (10, 90)}.items(),
)
def test_fixation_lab_shows_what_torch_computes(browser, task, severities):
    for severity in severities:
        answer = set_fixation(browser, task, severity)
        shown, scores = answer["shown"], answer["scores"]
        assert torch.allclose(corrupted(task, shown["x"], severity, answer), shown["y"], atol=1e-5)
        for schedule in live.SCHEDULES:
            with torch.inference_mode():
                x_hat = network_as_shipped(task, schedule)(shown["y"])
            expected = peak_signal_noise_ratio(shown["x"].numpy(), x_hat.numpy(), data_range=2)
            assert abs(scores[schedule] - expected) < 0.05, (severity, schedule)


def test_fixation_lab_starts_with_the_books_photograph(browser):
    x = torch.from_numpy(np.asarray(live.square("chelsea.png")).copy()).permute(2, 0, 1).unsqueeze(0) / 127.5 - 1
    assert torch.allclose(set_fixation(browser, "inpaint", 20)["shown"]["x"], x, atol=1e-6)
    assert torch.allclose(set_fixation(browser, "denoise", 20)["shown"]["x"], grey(x), atol=1e-6)


def test_noise_of_the_page_is_normal(browser):
    noise = as_floats(set_fixation(browser, "denoise", 20)["normal"])
    assert abs(noise.mean()) < 0.08 and abs(noise.std() - 1) < 0.06 and 0.003 < (abs(noise) > 2.576).mean() < 0.02


def test_square_moves_by_mouse_and_by_keys(browser):
    start = set_fixation(browser, "inpaint", 20)
    assert (start["top"], start["left"]) == (22, 22)
    picture = "#lab-fixation canvas[data-show=y]"
    browser.type(picture, "\ue012\ue012\ue013")  # left, left, up
    moved = browser.wait(
        lambda: browser.run("return Object.values(document.getElementById('lab-fixation').chance).slice(2)")
    )
    assert moved == [21, 20]
    browser.drag(picture, (0, 0), (-60, 0))
    assert set_fixation(browser, "inpaint", 20)["left"] == 0


def test_a_picture_follows_the_slider_at_once(browser, record_property):
    script = """
    const root = document.getElementById("lab-fixation");
    const slider = root.querySelector("[name=severity]");
    const times = [];
    for (let i = 0; i < 60; i++) {
      slider.value = 5 + (i % 30);
      slider.dispatchEvent(new Event("input"));
      const wanted = `inpaint ${slider.value}`;
      while (root.dataset.drawn !== wanted) await new Promise((next) => setTimeout(next));
      times.push(Number(root.dataset.milliseconds));
    }
    return times.slice(20);
    """
    set_fixation(browser, "inpaint", 20)
    milliseconds = float(np.median(browser.run(script)))
    record_property("milliseconds", milliseconds)
    print(f"from slider to picture, median of 40: {milliseconds:.1f} ms")
    assert milliseconds < 250  # 30 on a quiet machine; the tests share theirs


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "text.png").write_text("not a picture")
    Image.new("RGB", (3, 3)).save(folder / "tiny.png")
    Image.new("1", (8000, 5000)).save(folder / "large.png")
    noise = np.random.default_rng(0).integers(0, 255, (90, 200, 3), np.uint8)
    Image.fromarray(noise).save(folder / "good.png")
    (folder / "cut.png").write_bytes((folder / "good.png").read_bytes()[:20])
    return folder


@pytest.mark.parametrize("lab", ["fixation", "inpaint"])
def test_bad_files_get_one_line_and_the_page_lives_on(browser, files, lab):
    browser.page = None  # the next test loads it anew
    said = {"text.png": "not a picture", "tiny.png": "3×3", "large.png": "40 megapixels", "cut.png": "cut.png"}
    for name, words in said.items():
        browser.type(f"#lab-{lab} input[type=file]", str(files / name))
        browser.wait(lambda words=words: words in browser.status(lab), 20)
        assert len(browser.status(lab)) < 120
    browser.type(f"#lab-{lab} input[type=file]", str(files / "good.png"))
    if lab == "fixation":
        middle = (
            torch.from_numpy(np.asarray(Image.open(files / "good.png").crop((55, 0, 145, 90))).copy()).float().mean()
        )
        browser.wait(lambda: abs(mean_of(browser) - middle) < 3, 20)
    else:
        browser.wait(lambda: "200×90" in browser.status(lab), 20)


def mean_of(browser) -> float:
    """Of the photograph in the fixation lab, on the 0–255 scale."""
    return (set_fixation(browser, "inpaint", 20)["shown"]["x"].mean().item() + 1) * 127.5


# The allocation lab


def test_allocation_lab_replays_what_the_run_did(browser):
    script = """
    const [root, epoch] = [document.getElementById("lab-allocation"), document.querySelector("[name=epoch]")];
    const counts = [];
    for (epoch.value = 0; ; epoch.value = Number(epoch.value) + 1) {
      epoch.dispatchEvent(new Event("input"));
      counts.push(root.counts);
      if (epoch.value === epoch.max) return counts;
    }
    """
    counts = browser.run(script)
    assert counts == [allocate(on_demand(0.5, psnr, 5), 100).tolist() for psnr in ([20] * 5, *HISTORY)]
    browser.click("#lab-allocation [data-do=play]")
    browser.wait(lambda: browser.run("return Number(document.querySelector('[name=epoch]').value)") >= 2)
    browser.click("#lab-allocation [data-do=play]")
    assert browser.run("return document.querySelector('[data-do=play]').textContent") == "Play"


def test_allocation_lab_takes_numbers(browser):
    browser.run("for (const box of document.querySelectorAll('#lab-allocation [type=number]')) box.value = 20")
    browser.run("document.getElementById('odl-level-5').value = ''")
    browser.type("#odl-level-5", "10")
    counts = browser.run("return document.getElementById('lab-allocation').counts")
    assert counts == allocate(on_demand(0.5, [20, 20, 20, 20, 10], 5), 100).tolist()
    assert "17, 17, 17, 16, 33" in browser.status("allocation")


# Inpaint your photo


def test_fill_is_inpaint_image(browser):
    assert "Draw over" in browser.status("inpaint")
    browser.click("#lab-inpaint [data-do=fill]")
    assert "Nothing is drawn" in browser.status("inpaint")
    browser.drag("#lab-inpaint canvas[data-show=y]", (-60, -30), (40, 30), (100, -20))
    browser.type("#lab-inpaint canvas[data-show=y]", "\ue014 \ue014 ")  # right, Space, right, Space
    browser.click("#lab-inpaint [data-do=fill]")
    browser.wait(lambda: "Filled" in browser.status("inpaint"))
    script = """
    const { photo, hole, filled } = document.getElementById("lab-inpaint");
    return { size: [photo.height, photo.width], photo: base64(photo.data), hole: base64(hole), filled: base64(filled) };
    """
    answer = browser.run(script)
    image = as_floats(answer["photo"]).reshape(*answer["size"], 4)[..., :3] / 255
    mask = as_floats(answer["hole"]).reshape(answer["size"]) > 0
    filled = (as_floats(answer["filled"]).reshape(3, *answer["size"]).transpose(1, 2, 0) + 1) / 2
    assert 500 < mask.sum() < mask.size / 4
    expected = inpaint_image(network_as_shipped("inpaint", "on_demand"), image, mask)
    assert np.allclose(filled[~mask], image[~mask], atol=1e-6)
    ours, theirs = (peak_signal_noise_ratio(image[mask], x[mask], data_range=1) for x in (filled, expected))
    assert abs(ours - theirs) < 0.05
    assert np.abs(filled - expected).max() < 1e-3


# The page


def test_page_fits_a_phone(browser):
    browser.send("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": PHONE})
    try:
        assert browser.run("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.send("POST", "/goog/cdp/execute", {"cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})


def test_every_control_has_a_name(browser):
    script = """
    const named = (e) => e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim();
    return [...document.querySelectorAll("input, select, button, canvas, progress")].filter((e) => !named(e)).length;
    """
    assert browser.run(script) == 0


def test_without_javascript_each_lab_is_hidden_and_its_picture_stands():
    page = (ROOT / "book" / "lab.md").read_text()
    for name in FRAGMENTS:
        fragment = (LAB / f"{name}.html").read_text()
        assert re.match(r"<section [^>]* hidden>", fragment)
        [still] = re.findall('data-still="([^"]+)"', fragment)
        assert f":name: {still}" in page


def test_without_npm_the_pictures_stand_and_the_page_says_why(chromium, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "NPM", tmp_path / "npm")
    monkeypatch.setenv("PATH", "")
    missing = live.write(tmp_path / "_static" / "lab")
    assert "npm" in missing and "\n" not in missing
    chromium.open(write_page(tmp_path))
    assert chromium.run("return document.querySelector('.odl-lab-note').textContent").count(missing)
    stands = "return ['fixation', 'allocation', 'inpaint'].map((n) => !document.getElementById(`fig-lab-${n}`).hidden)"
    assert chromium.run(stands) == [True, False, True]


def test_a_file_of_another_sum_is_refused(tmp_path, monkeypatch):
    def fetch(package, files):
        for name in files:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("something else")

    monkeypatch.setattr(live, "NPM", tmp_path)
    monkeypatch.setattr(live, "fetch", fetch)
    assert "is not the file" in live.write_runtime(tmp_path)
    assert not (tmp_path / "runtime.js").exists()


def test_without_weights_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    assert "python -m odl reproduce" in live.write(tmp_path / "lab")
    assert (tmp_path / "lab" / "data.js").exists()
    live.still_fixation()
    live.still_allocation()
