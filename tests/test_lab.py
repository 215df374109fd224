"""The lab page: its networks, rules and corruptions are odl's, and its labs work in a browser, from file:// too."""

import base64
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import classroom
import demo
import lab_page
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from page_facts import AXE, PHONE, ROOT, look, network, requests
from PIL import Image
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import inpaint_biharmonic
from test_photographs import in_four_turns
from test_windows import trained_like

from companion.disk import files
from companion.disk.files import write_atomically
from companion.restore.fill import GONE
from companion.restore.pretrained import load_for_photographs
from companion.training import checkpoint, results
from odl import PROTOCOL
from odl.corruptions import FILL, TASKS, Task, blur, delete, remove_square
from odl.evaluation import errors, psnr
from odl.schedules import allocate, dose, on_demand
from odl.windows import inpaint_image

LAB = ROOT / "book" / "lab"

FRAGMENTS = ("fixation", "allocation", "seeds", "inpaint")


def open_lab(browser, page: Path) -> None:
    """Load a page and wait until each lab has started, or has said why it does not."""
    browser.go(page.as_uri())
    for lab in FRAGMENTS:
        browser.wait(lambda lab=lab: browser.run(f"return document.getElementById('lab-{lab}').dataset.ready"))


def status(browser, lab: str, part: str = "done") -> str:
    return browser.texts(f"#lab-{lab} [data-say={part}]")[0]


def guess(browser, lab: str, which: int) -> None:
    """Pick a guess, by keyboard: what comes after the question shows."""
    browser.type(f"#lab-{lab} [data-guess]:nth-of-type({which})", " ")
    browser.wait(lambda: status(browser, lab, "answer"))


def write_page(folder: Path) -> Path:
    """A small page around the labs, laid out like the book."""
    parts = [(LAB / f"{name}.html").read_text() for name in (*FRAGMENTS, "scripts")]
    stills = [f'<figure id="fig-lab-{name}">A still</figure>' for name in FRAGMENTS]
    head = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    page = folder / "book" / "lab.html"
    page.parent.mkdir()
    page.write_text("\n".join([head, "<article><h1>Lab</h1>", *stills, *parts, "</article>"]))
    return page


HISTORY = [[20.0, 19.5, 19.0, 18.0, 17.0], [24.0, 23.0, 21.0, 20.0, 18.0], [30.0, 27.0, 25.0, 23.0, 19.0]]
SHARES = [[20.0] * 5, [18.0, 18.9, 19.6, 20.7, 22.8], [17.4, 18.2, 19.9, 20.9, 23.6]]
DAMAGED = [41.0, 30.5, 22.0, 19.0, 16.0]  # PSNR of what is not restored
PAIRS = [(24.0, 23.9), (23.8, 24.0)]  # PSNR of on-demand and of rigid joint learning, a pair for each seed


def made_up_result(task: str, schedule: str = "on_demand", seed: int = 0, psnr=20.0) -> None:
    """A result file of a run, of numbers that no network has given."""
    experiment = replace(lab_page.reference(task, schedule), seed=seed)
    epochs = zip(HISTORY, SHARES, strict=True)
    history = [{"psnr": psnr, "allocation": shares, "dose": dose(shares)} for psnr, shares in epochs]
    trials = {"trial": [0] * 6 + [1] * 6, "psnr": [psnr] * 6 + [psnr + 1e-3 * psnr] * 6, "l2": [1.0] * 12}
    evaluation = trials | {"level": list("123456") * 2, "psnr_input": [*DAMAGED, 10.0] * 2, "psnr_hole": [psnr] * 12}
    content = {"protocol": PROTOCOL, "experiment": experiment.asdict(), "provenance": {}, "history": history}
    files.write_atomically(results.path_of(experiment), files.seal(content | {"evaluation": evaluation}))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The lab with networks that are not trained, and a run's history that is made up."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODL_ROOT", str(folder / "root"))
        for seed, (task, schedule) in enumerate((t, s) for t in TASKS for s in lab_page.OFFERED):
            experiment = lab_page.reference(task, schedule)
            network = trained_like(TASKS[task].channels, seed, experiment.width)
            results.keep_weights(experiment, network, checkpoint.owner_of(experiment))
        for seed, (ours, theirs) in enumerate(PAIRS):
            made_up_result("inpaint", "on_demand", seed, ours)
            made_up_result("inpaint", "rigid_joint", seed, theirs)
        missing = lab_page.write(folder / "_static" / "lab")
        if missing and missing.startswith("npm"):  # not installed, or offline
            pytest.skip(missing)
        assert missing is None
        yield write_page(folder)


@pytest.fixture
def browser(chromium, site):
    """A browser in which every question has been answered."""
    answered = "return [...document.querySelectorAll('[data-say=answer]')].filter((line) => line.textContent).length"
    if chromium.run("return location.href") != site.as_uri() or chromium.run(answered) < len(FRAGMENTS):
        open_lab(chromium, site)
        for lab in FRAGMENTS:
            guess(chromium, lab, 1)
        chromium.run("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    return chromium


def network_as_shipped(task: str, schedule: str):
    """In half precision."""
    return results.load_network(lab_page.reference(task, schedule)).half().float()


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
    const shown = Object.fromEntries(Object.entries(root.shown).map(([key, image]) => [key, [...image]]));
    const { top, left, uniform, normal } = root.chance;
    const { scores, holes } = root;
    return JSON.stringify({ shown, scores, holes, top, left, uniform: [...uniform], normal: [...normal] });
    """
    answer = json.loads(browser.run(script, task, severity))
    side = (1, TASKS[task].channels, 64, 64)
    answer["shown"] = {name: torch.tensor(image).view(side) for name, image in answer["shown"].items()}
    return answer


def damaged(task: str, x, severity: float, draws: dict):
    """The same damage by odl, from the page's draws."""
    if task == "inpaint":
        return remove_square(x, torch.tensor([[severity, draws["top"], draws["left"]]]), None)
    if task == "interpolate":
        return delete(x, torch.tensor(draws["uniform"]).view(1, 1, 64, 64) < severity / 100)
    if task == "deblur":
        return blur(x, torch.tensor([[severity, severity]]), None)
    noise = torch.tensor(draws["normal"]).view(1, 1, 64, 64)
    return (x + noise * severity / 127.5).clamp(-1, 1)


def check_against_torch(answer: dict, task: str, severity: float) -> None:
    """The damage, the restored pictures and the scores that the lab shows."""
    shown, scores = answer["shown"], answer["scores"]
    assert torch.allclose(damaged(task, shown["x"], severity, answer), shown["y"], atol=1e-5)
    restored = {"y": shown["y"]} | ({"fill": classical(shown["x"], shown["y"])} if task == "inpaint" else {})
    with torch.inference_mode():
        restored |= {name: network_as_shipped(task, name)(shown["y"]) for name in lab_page.networks(task)}
    assert set(scores) == set(restored)
    for name, x_hat in restored.items():
        assert (shown[name] - x_hat).abs().max() < 1e-3
        with np.errstate(divide="ignore"):  # where nothing is damaged
            expected = peak_signal_noise_ratio(shown["x"].numpy(), x_hat.numpy(), data_range=2)
        assert abs(scores[name] - min(expected, 100)) < 0.05, (severity, name)


def classical(x, y):
    """What scikit-image fills in where y is not x."""
    image, mask = ((z[0].permute(1, 2, 0).double().numpy() + 1) / 2 for z in (y, (y != x) * 2.0 - 1))
    filled = inpaint_biharmonic(image, mask.any(-1), channel_axis=-1)
    return torch.from_numpy(2 * filled - 1).permute(2, 0, 1).unsqueeze(0).float()


SHOWN = {"inpaint": (5, 20, 32), "interpolate": (10, 80), "deblur": (0, 1, 5), "denoise": (10, 90)}


@pytest.mark.parametrize("task, severity", [(task, severity) for task in SHOWN for severity in SHOWN[task]])
def test_fixation_lab_shows_what_torch_computes(browser, task, severity):
    check_against_torch(set_fixation(browser, task, severity), task, severity)


@pytest.mark.parametrize(("task", "severity"), [("inpaint", 32), ("interpolate", 80)])  # on the curves
def test_known_pixels_are_kept_as_odl_keeps_them(browser, task, severity):
    raw = set_fixation(browser, task, severity)
    x, y = raw["shown"]["x"], raw["shown"]["y"]
    browser.type("#lab-fixation [name=keep]", " ")  # by keyboard
    browser.wait(lambda: set_fixation(browser, task, severity)["scores"] != raw["scores"])
    kept = set_fixation(browser, task, severity)
    assert torch.equal(kept["shown"]["y"], y) and kept["scores"]["y"] == raw["scores"]["y"]
    given = Task(task, 3, TASKS[task].draw, lambda *_: y)
    for name in lab_page.networks(task):
        x_hat = raw["shown"][name]
        scored = errors(lambda _, x_hat=x_hat: x_hat, given, x, 1, torch.Generator())
        assert abs(kept["scores"][name] - psnr(scored["kept"]).item()) < 0.01
        assert abs(kept["holes"][name] - psnr(scored["hole"]).item()) < 0.01
        assert abs(raw["holes"][name] - kept["holes"][name]) < 1e-6
    drawn = "return document.getElementById('lab-fixation').dataset.curve ?? ''"
    browser.wait(lambda: browser.run(drawn).startswith(task))
    curve = browser.run("return document.getElementById('lab-fixation').curve")
    for kind, answer in {"raw": raw, "kept": kept}.items():
        assert curve[str(severity)][kind] == pytest.approx(answer["scores"], abs=1e-6)
    browser.wait(lambda: "known pixels kept" in status(browser, "fixation"))
    browser.type("#lab-fixation [name=keep]", " ")


def test_nothing_is_told_before_the_guess(chromium, site):
    open_lab(chromium, site)
    for lab in FRAGMENTS:
        assert not status(chromium, lab, "answer")
        assert not any(chromium.shown(f"#lab-{lab} [data-after]"))
        guess(chromium, lab, 2)
        assert chromium.run(f"return document.querySelector('#lab-{lab} [aria-pressed=true]').textContent")
        answer = status(chromium, lab, "answer")
        assert "predicted" in answer and all(chromium.shown(f"#lab-{lab} [data-after]"))
        if lab != "inpaint":  # where what is drawn is judged, a first answer stays
            guess(chromium, lab, 1)
            assert status(chromium, lab, "answer") == answer
    scores = chromium.run("return document.getElementById('lab-fixation').scores")
    for key in ("y", "fixated_hard", "on_demand"):
        assert f"{scores[key]:.1f} dB" in status(chromium, "fixation", "answer")
    assert f"{SHARES[-1][4]:.1f} of 100" in status(chromium, "allocation", "answer")
    scores = chromium.run("return document.getElementById('lab-inpaint').scores")
    second = scores["x_hat"] == max(scores[key] for key in ("whole", "x_hat", "fill"))
    assert status(chromium, "inpaint", "answer").startswith("As you" if second else "Not as you")
    chromium.type("#lab-inpaint [data-do=clear]", " ")  # with nothing drawn no guess is judged
    chromium.type("#lab-inpaint [data-guess]", " ")
    chromium.wait(lambda: status(chromium, "inpaint", "answer") == "Nothing is filled yet.")


def test_the_legend_has_a_line_and_a_score_for_every_curve_and_marks_the_best(browser):
    set_fixation(browser, "inpaint", 20)
    browser.wait(lambda: browser.run("return document.getElementById('lab-fixation').dataset.curve"))
    key = "return [...document.querySelectorAll('.odl-legend li')].map((item) => item.dataset.key)"
    scores = browser.run("return document.getElementById('lab-fixation').scores")
    assert set(browser.run(key)) == set(scores)
    for name, text in zip(browser.run(key), browser.texts(".odl-legend li [data-score]"), strict=True):
        assert text.startswith(f"{scores[name]:.1f} dB, ")
    lines = browser.run(
        "return [...document.querySelectorAll('.odl-curve polyline')].map((line) => line.style.strokeWidth)"
    )
    assert len(lines) == len(scores) + 2 and lines.count("10") == 2  # a dot where a fixated network is at home
    best = "return [...document.querySelectorAll('#lab-fixation [data-best]')].map((row) => row.dataset.key)"
    assert browser.run(best) == [max(scores, key=scores.get)]
    set_fixation(browser, "interpolate", 10)
    assert browser.run(best) == ["y"]  # these networks are not trained, and no classical fill takes part


def test_noise_of_the_page_is_normal(browser):
    noise = np.array(set_fixation(browser, "denoise", 20)["normal"])
    assert abs(noise.mean()) < 0.08 and abs(noise.std() - 1) < 0.06 and 0.003 < (abs(noise) > 2.576).mean() < 0.02


def test_square_moves_by_mouse_and_by_keys(browser):
    start = set_fixation(browser, "inpaint", 20)
    assert (start["top"], start["left"]) == (22, 22)
    picture = "#lab-fixation canvas[data-show=y]"
    browser.type(picture, "\ue012\ue012\ue013")  # left, left, up
    assert browser.run("return Object.values(document.getElementById('lab-fixation').chance).slice(2)") == [21, 20]
    browser.drag(picture, (0, 0), (-120, 0))
    assert set_fixation(browser, "inpaint", 20)["left"] == 0


@pytest.mark.parametrize("lab", ["fixation", "inpaint"])
def test_bad_files_get_one_line_and_the_page_lives_on(browser, tmp_path, lab):
    noise = np.random.default_rng(0).integers(0, 255, (90, 200, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "good.png")
    Image.new("RGB", (3, 3)).save(tmp_path / "tiny.png")
    Image.new("1", (8000, 5000)).save(tmp_path / "large.png")
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "cut.png").write_bytes((tmp_path / "good.png").read_bytes()[:20])
    said = {"text.png": "not a picture", "tiny.png": "3×3", "large.png": "40 megapixels", "cut.png": "cut.png"}
    for name, words in said.items():
        browser.type(f"#lab-{lab} input[type=file]", str(tmp_path / name))
        browser.wait(lambda words=words: words in status(browser, lab), 20)
        assert len(status(browser, lab)) < 120
    browser.type(f"#lab-{lab} input[type=file]", str(tmp_path / "good.png"))
    if lab == "fixation":
        middle = noise[:, 55:145].mean() / 127.5 - 1
        browser.wait(lambda: abs(set_fixation(browser, "inpaint", 20)["shown"]["x"].mean() - middle) < 0.025, 20)
    else:
        browser.wait(lambda: "200×90" in status(browser, lab), 20)
        assert not status(browser, lab, "answer")  # which was about another photograph
    browser.go("about:blank")  # the next test loads the page anew


def test_allocation_lab_replays_what_the_run_did(browser):
    script = """
    const [root, epoch] = [document.getElementById("lab-allocation"), document.querySelector("[name=epoch]")];
    const told = [];
    for (epoch.value = 1; ; epoch.value = Number(epoch.value) + 1) {
      epoch.dispatchEvent(new Event("input"));
      const psnr = [...root.querySelectorAll(".odl-own output")].map((box) => box.textContent);
      const shares = [...root.querySelectorAll(".odl-levels output")].map((share) => share.textContent);
      told.push([psnr, shares, root.querySelector("[data-say=run]").textContent]);
      if (epoch.value === epoch.max) return told;
    }
    """
    for done, (before, shares, words) in enumerate(browser.run(script)):
        assert not done or before == [f"{p:.1f} dB" for p in HISTORY[done - 1]]  # before the epoch
        assert shares == [f"{share:.1f}" for share in SHARES[done]]
        assert f"{250 * np.mean([dose(shares) for shares in SHARES]):.1f} images of 100" in words
        assert "−0.05 dB against equal shares: undecided" in words  # of `PAIRS`


def test_sharpness_replays_what_is_measured_and_says_what_is_not(browser):
    right, left, home = "\ue014", "\ue012", "\ue011"
    for key, words in {right: "No run with k = 4", left: "Measured on inpainting", home: "No run with k = −1"}.items():
        browser.type("[name=k]", key)
        assert words in status(browser, "allocation", "run")
        assert browser.shown("[data-part=epoch]") == [words.startswith("Measured")]
    psnr = browser.run("return [...document.querySelectorAll('.odl-own input')].map((box) => Number(box.value))")
    assert browser.texts(".odl-levels output") == [str(n) for n in allocate(np.array(psnr), 100)]  # shares as P
    browser.type("[name=k]", "\ue014\ue014")


def test_a_dot_crosses_the_line_while_p_stays_tiny(chromium, site):
    side = "return document.querySelector('.odl-lead i').style.left"
    open_lab(chromium, site)
    found = []
    for _ in range(3):
        found.append((float(chromium.run(side)[:-1]), chromium.texts("#lab-seeds [data-p]")[0]))
        if len(found) == 1:
            guess(chromium, "seeds", 2)  # which flips
        else:
            chromium.type("#lab-seeds [data-do=flip]", " ")  # by keyboard
    assert found[0] == found[2] and found[0][0] > 50 > found[1][0]
    for (_, text), ahead in zip(found, ("+0.10 dB", "−0.20 dB"), strict=False):
        margin, p = re.fullmatch(r"(\S+ dB), p = (\S+)", text).groups()
        assert margin == ahead and float(p.replace("−", "-")) < 0.05
    assert "1 of 1 dots crossed the line: inpainting" in status(chromium, "seeds")
    answer = status(chromium, "seeds", "answer")
    assert answer.startswith("As you predicted: over 2 seeds 1 of 1 dots") and "inpainting undecided" in answer


def test_the_fills_are_those_of_python(browser):
    browser.type("#lab-inpaint [data-do=clear]", " ")
    browser.type("#lab-inpaint [data-do=fill]", " ")
    assert "Nothing is drawn" in status(browser, "inpaint")
    browser.drag("#lab-inpaint canvas[data-show=y]", (-60, -30), (40, 30), (100, -20))
    browser.type("#lab-inpaint canvas[data-show=y]", "\ue014 \ue014 ")  # right, Space, right, Space
    browser.click("#lab-inpaint [data-do=fill]")
    browser.wait(lambda: "Filled" in status(browser, "inpaint"))
    script = """
    const { photo, hole, whole, x_hat, fill } = document.getElementById("lab-inpaint");
    const size = [photo.height, photo.width];
    return JSON.stringify([size, ...[photo.data, hole, whole, x_hat, fill].map((values) => [...values])]);
    """
    size, photo, hole, *planes = json.loads(browser.run(script))
    image = np.array(photo, np.float32).reshape(*size, 4)[..., :3] / 255
    mask = np.array(hole).reshape(size) > 0
    fills = (np.array(each, np.float32).reshape(3, *size).transpose(1, 2, 0) for each in planes)
    whole, filled, classical = ((each + 1) / 2 for each in fills)
    assert np.abs(classical - inpaint_biharmonic(image, mask, channel_axis=-1)).max() < 1e-4
    assert 500 < mask.sum() < mask.size / 4
    expected = inpaint_image(network_as_shipped("inpaint", "on_demand"), image, mask)
    assert np.allclose(filled[~mask], image[~mask], atol=1e-6)
    assert np.abs(filled - expected).max() < 1e-3
    gone = torch.from_numpy(np.where(mask, np.float32(GONE), image.transpose(2, 0, 1) * 2 - 1))
    square = np.pad(gone, [(0, 0), *((0, lab_page.LONGER_SIDE - side) for side in size)], "symmetric")
    told = in_four_turns(load_for_photographs("inpaint"), torch.from_numpy(square)[None])[0, :, : size[0], : size[1]]
    assert np.abs(whole - (told.clamp(-1, 1).permute(1, 2, 0).numpy() + 1) / 2).max() < 2e-3
    assert np.allclose(whole[~mask], image[~mask], atol=1e-6)
    scores = browser.run("return document.getElementById('lab-inpaint').scores")
    colour = np.broadcast_to(np.float32(FILL) / 255, image.shape)
    for key, inside in {"whole": whole[mask], "x_hat": filled[mask], "y": colour[mask]}.items():
        assert scores[key] == pytest.approx(peak_signal_noise_ratio(image[mask], inside, data_range=1), abs=0.01)
    browser.drag("#lab-inpaint canvas[data-show=y]", (-60, 50), (40, 50))  # another hole has other scores
    assert not browser.run("return document.getElementById('lab-inpaint').scores")
    assert not browser.run("return document.querySelector('#lab-inpaint [data-best]')")


def test_without_npm_the_pictures_stand_and_the_page_says_why(chromium, tmp_path, monkeypatch):
    monkeypatch.setattr(lab_page, "NPM", tmp_path / "npm")
    monkeypatch.setenv("PATH", "")
    row = {"task": "inpainting", "seed": 7, "ahead": 0.1, "p": 1e-9, "verdict": "undecided"}
    monkeypatch.setattr(lab_page, "seeds", lambda m: [row])
    missing = lab_page.write(tmp_path / "_static" / "lab")
    assert "npm" in missing and "\n" not in missing
    open_lab(chromium, write_page(tmp_path))
    assert missing in chromium.texts(".odl-lab-note")[0]
    stands = "return ['fixation', 'allocation', 'inpaint'].map((n) => !document.getElementById(`fig-lab-${n}`).hidden)"
    assert chromium.run(stands) == [True, False, True]
    assert "Only seed 7 is measured" in status(chromium, "seeds")


@pytest.fixture
def alone(site, tmp_path):
    """The lab as one file."""
    classroom.write_lab(site, tmp_path / "lab.html")
    return tmp_path / "lab.html"


def test_the_lab_as_one_file_needs_nothing_beside_it(chromium, alone):
    chromium.log("performance"), chromium.log("browser")
    open_lab(chromium, alone)
    for lab in FRAGMENTS:
        guess(chromium, lab, 1)
    check_against_torch(set_fixation(chromium, "inpaint", 20), "inpaint", 20)
    asked = requests(network(chromium))
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [alone.as_uri()]
    assert not [entry["message"] for entry in chromium.log("browser") if entry["level"] != "INFO"]


def test_the_lab_prints_as_a_sheet_with_the_questions_in_front(chromium, alone):
    open_lab(chromium, alone)
    chromium.devtools("Emulation.setEmulatedMedia", media="print")
    assert all(chromium.shown(".odl-guess legend, [id^=fig-lab]")) and not any(chromium.shown(".odl-lab canvas"))
    chromium.devtools("Emulation.setEmulatedMedia", media="")
    pdf = base64.b64decode(chromium.devtools("Page.printToPDF")["data"])
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_lab_is_accessible_and_fits_a_phone(chromium, axe, alone, scheme):
    look(chromium, scheme)
    open_lab(chromium, alone)
    for answered in (False, True):
        assert chromium.run("return document.documentElement.scrollWidth") <= PHONE["width"]
        assert chromium.run(AXE) == []
        for lab in () if answered else FRAGMENTS:
            guess(chromium, lab, 1)
        chromium.run("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    chromium.devtools("Emulation.clearDeviceMetricsOverride")


def test_a_file_of_another_sum_is_refused(tmp_path, monkeypatch):
    def fetch(package, files):
        for name in files:
            write_atomically(tmp_path / name, b"something else")

    monkeypatch.setattr(lab_page, "NPM", tmp_path)
    monkeypatch.setattr(lab_page, "fetch", fetch)
    kept, missing = lab_page.vendored("onnxruntime-web")
    assert kept == [] and "is not the file" in missing


def test_the_slider_of_the_first_page_scores_the_pictures_that_it_shows(tmp_path, monkeypatch):
    """Mean squared errors by hand at one severity, and the bars of the shares."""
    monkeypatch.setenv("ODL_ROOT", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        demo.figure()
    network = lab_page.networks(demo.TASK)["on_demand"]
    soup = BeautifulSoup(demo.html({"on_demand": network, "rigid_joint": network}, SHARES[-1]), "html.parser")
    x = lab_page.as_input("chelsea.png")
    y = TASKS[demo.TASK].corrupt_between(x, 5.0, 5.0, torch.Generator().manual_seed(5))
    strips = [[span.get_text() for span in strip.select("span")] for strip in soup.select(".odl-strip")]
    with torch.inference_mode():
        newer = load_for_photographs(demo.TASK)(torch.where((x != y).any(1, keepdim=True), GONE, x))
    assert len(strips) == 4 and {len(strip) for strip in strips} == {len(demo.SEVERITIES)}
    for strip, picture in ((strips[0], y), (strips[1], network(y)), (strips[3], newer)):
        error = ((picture.clamp(-1, 1) - x) / 2).square().mean().item()
        assert strip[0] == f"{-10 * np.log10(error):.1f} dB"
    assert not soup.select(".odl-strip")[3].select(".odl-best")  # it is compared with none of the others
    bars = [float(bar["style"].split("height: ")[1].split("px")[0]) for bar in soup.select(".odl-bars i")]
    assert bars == pytest.approx(
        [2 * share for pair in zip([20] * 5, SHARES[-1], strict=True) for share in pair], abs=0.06
    )
