"""A schedule, a task and a network of one's own are each a function and a row that everything takes and errors list."""

import subprocess
import sys
from functools import partial

import cloudpickle
import conftest
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from conftest import refused

from companion.cli import main
from companion.data import packs
from companion.disk import files
from companion.runs import sweep
from companion.training import results
from odl import corruptions, evaluation, paper, windows
from odl.corruptions import Task, draw_amount
from odl.experiment import FOR_NETWORK, Experiment
from odl.identity import code_of, described, is_own
from odl.learn import hard_pool
from odl.network import NETWORKS, EncoderDecoder, ResidualUNet
from odl.parameters import ParameterError
from odl.rivals import one_level
from odl.schedules import SCHEDULES, Fixated, Schedule, on_demand

SPECKLE = {"title": "Speckle removal", "severity": "speckle σ (%)", "easy": 10, "hard": 90}
SPECKLE |= {"levels": tuple((20 * k, 20 * k + 20) for k in range(6))}


def inverse(done, psnr, n):
    """More images for what is restored well."""
    return np.ones(n) if psnr is None else np.asarray(psnr)


def speckle(x, severity, generator):
    """Each pixel times a factor around 1."""
    noise = torch.randn(x.shape, generator=generator, device=x.device)
    light = (x + 1) / 2 * (1 + severity.view(-1, 1, 1, 1) / 100 * noise)
    return 2 * light.clamp(0, 1) - 1


@pytest.fixture(scope="module")
def added(demo_pack, tmp_path_factory):
    """What a cell of a notebook does; in one root, so that each run is trained once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODL_ROOT", str(tmp_path_factory.mktemp("root")))
        conftest.link(demo_pack)
        patch.setitem(SCHEDULES, "inverse", inverse)
        patch.setitem(paper.TASKS, "speckle", SPECKLE)
        patch.setitem(corruptions.TASKS, "speckle", Task("speckle", 3, draw_amount, speckle))
        yield
    plt.close("all")


def tiny(schedule="inverse", **numbers):
    return conftest.tiny("speckle", schedule, width=4, **numbers)


@pytest.mark.parametrize("schedule", ["rigid_joint", "hard_mining", "fixated_easy"])
def test_a_task_is_trained_and_tested_by_every_schedule(added, schedule):
    """On each level by its own severities: the damaged images get worse."""
    experiment = tiny(schedule=schedule)
    assert results.measurement_of(experiment).run("cpu").path == files.results() / f"{experiment.run_id}.json"
    scores = results.load_result(experiment).evaluation.groupby("level").psnr_input.mean()
    assert scores[list("123456")].is_monotonic_decreasing
    assert results.load_network(experiment)


def test_a_damage_may_write_in_place_and_must_return_images(added):
    def in_place(x, severity, generator):
        x[:, :, ::2] = -1
        return x

    experiment, x = tiny(), torch.rand(2, 3, 64, 64)
    before, y = x.clone(), Task("speckle", 3, draw_amount, in_place).corrupt(x, 3, torch.Generator())
    assert (x == before).all() and (y[:, :, ::2] == -1).all() and (y[:, :, 1::2] == x[:, :, 1::2]).all()
    low = torch.tensor([3.0, 4.0])
    Task("speckle", 3, lambda low, high, *_: low.add_(1), speckle).corrupt_between(x, low, low, torch.Generator())
    assert low.tolist() == [3, 4]  # of the next batch, too
    for bad in (lambda x, *_: None, lambda x, *_: x.numpy(), lambda x, *_: x.double(), lambda x, *_: x[..., 1:]):
        own = Task("speckle", 3, draw_amount, bad)
        refused(lambda own=own: own.corrupt(x, 3, torch.Generator()), "task 'speckle' made", kind=ParameterError)
    given = {"(1, 3": lambda y: y[:1], "ndarray": lambda y: y.numpy(), "NoneType": lambda y: None}
    for found, restore in given.items():
        refused(lambda r=restore: results.evaluate(experiment, r), f"restore returned {found}", kind=ParameterError)


@pytest.mark.parametrize("task", paper.TASKS)
def test_a_network_may_write_in_place_into_what_it_restores(task):
    x = torch.rand(4, corruptions.TASKS[task].channels, 64, 64) * 2 - 1
    beside, within = (
        evaluation.errors(restore, corruptions.TASKS[task], x, 3, torch.Generator().manual_seed(0))
        for restore in (lambda y: y * 0.5, lambda y: y.mul_(0.5))
    )
    assert beside.keys() == within.keys() and all(torch.equal(beside[name], within[name]) for name in beside)


def test_hard_minings_pool_cuts_off_what_leaves_the_range(added, monkeypatch):
    """And does not wrap it round, as 8 bits would: white would be black."""
    bright = Task("speckle", 3, draw_amount, lambda x, *_: 3 * x)
    monkeypatch.setitem(corruptions.TASKS, "speckle", bright)
    x, y = hard_pool(tiny("hard_mining", pool_images=20), packs.load("demo", "train")).float() / 127.5 - 1
    assert (3 * x).abs().max() > 1
    torch.testing.assert_close(y, (3 * x).clamp(-1, 1), atol=2.01 / 127.5, rtol=0)


def test_a_schedule_cannot_change_what_is_measured(demo, monkeypatch):
    def meddling(done, psnr, n):
        if psnr is not None:
            psnr.clear()
        return np.ones(n)

    for name, schedule in (("meddling", meddling), ("even", lambda done, psnr, n: np.ones(n))):
        monkeypatch.setitem(SCHEDULES, name, schedule)
    one, other = (results.train(conftest.tiny("denoise", name, width=4, epochs=2)) for name in ("meddling", "even"))
    assert [epoch["psnr"] for epoch in one.history] == [epoch["psnr"] for epoch in other.history]


@pytest.mark.parametrize("bad", [lambda x: (x + 1) * 127.5, lambda x: x / 0, lambda x: x * float("nan")])
def test_a_damage_on_another_scale_is_refused_at_the_first_batch(added, bad, monkeypatch):
    own = Task("speckle", 3, draw_amount, lambda x, *_: bad(x))
    monkeypatch.setitem(corruptions.TASKS, "speckle", own)
    for act in (
        lambda: own.corrupt(torch.rand(2, 3, 64, 64), 3, torch.Generator()),
        lambda: results.train(tiny(seed=9)),
    ):
        refused(act, "task 'speckle' made values from ", "of images in [-1, 1]", kind=ParameterError)


def test_errors_and_help_list_what_was_added(added, capsys):
    for wrong, nearest in ({"task": "speckel"}, "speckle"), ({"schedule": "invers"}, "inverse"):
        refused(lambda wrong=wrong: Experiment.of(**wrong), f"{nearest}; nearest: '{nearest}'", kind=ParameterError)
    assert main(["train", "--task", "speckle", "--schedule", "invers", "--profile", "smoke"]) == 2
    assert "nearest: 'inverse'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert {"speckle", "inverse"} <= set(capsys.readouterr().out.replace(",", " ").split())


def test_half_an_addition_says_what_is_missing(demo, monkeypatch):
    refused(lambda: Task("haze", 3, draw_amount, speckle), "'haze' needs a row in odl.paper.TASKS first")
    for wrong in ({"levels": SPECKLE["levels"][:5]}, {"levels": range(6)}, {"levels": [(1, 2, 3)] * 6}, {"easy": "x"}):
        monkeypatch.setitem(paper.TASKS, "haze", SPECKLE | wrong)
        refused(lambda: Task("haze", 3, draw_amount, speckle), "levels 1 to 6, easy and hard")
    monkeypatch.setitem(paper.TASKS, "haze", SPECKLE)
    refused(lambda: Task("haze", 2, draw_amount, speckle), "channels=2", kind=ParameterError)
    haze = Experiment.of("haze", profile="smoke")
    for train in (results.train, lambda experiment: sweep.run_many([experiment], "cpu")):
        refused(lambda train=train: train(haze), "task='haze'", kind=ParameterError)
    monkeypatch.setitem(SCHEDULES, "../mid", Fixated())
    refused(lambda: Experiment.of(schedule="../mid", severity=1.0), "'../mid' names files", kind=ParameterError)
    monkeypatch.setitem(SCHEDULES, "mid", Fixated())
    refused(lambda: Experiment.of(schedule="mid"), "schedule='mid' has no severity", kind=ParameterError)
    assert Experiment.of(schedule="mid", severity=5.0).severity == 5
    for returned, words in (
        (np.ones(4), "returned array([1., 1., 1., 1.]), not 5 weights"),
        (-np.ones(5), ": weights=[-1.0, "),
        *((np.stack([np.ones(5), [1, 1, 1, 1, bad]]), "no factors of a loss") for bad in (-1, np.nan, np.inf)),
        (np.stack([np.ones(5), np.zeros(5)]), "no factors of a loss"),
    ):
        monkeypatch.setitem(SCHEDULES, "own", lambda *_, returned=returned: returned)
        own = Experiment.of(schedule="own", profile="smoke")
        refused(lambda own=own: results.train(own), "'own'", words, kind=ParameterError)


def test_a_schedule_with_a_memory_gives_the_same_shares_interrupted_or_not(demo, monkeypatch, resumes_exactly):
    """It counts the epochs; one is interrupted after the third."""

    class Counting:
        asked = 0

        def __call__(self, done, psnr, n):
            self.asked += 1
            return np.arange(1, n + 1) ** float(self.asked)

    monkeypatch.setitem(SCHEDULES, "counting", Counting)
    resumes_exactly(results.train, conftest.tiny("denoise", "counting", width=4, epochs=5), share=0.6, iterations=2)


def test_workers_are_told_what_was_added(added, monkeypatch):
    """Functions that exist in this cell alone, too."""
    share = torch.tensor(0.9).item()
    monkeypatch.setitem(SCHEDULES, "local", lambda done, psnr, n: np.eye(n)[0] * share + 0.1 / n)
    monkeypatch.setitem(NETWORKS, "own", lambda channels, width: Tiny(channels, width))
    monkeypatch.setitem(FOR_NETWORK, "own", {"smoke": {"learning_rate": 1e-3}})
    experiments = [tiny(schedule=schedule, seed=1, batch_size=50) for schedule in ("inverse", "local")]
    experiments.append(tiny(network="own"))
    beside = sweep.run_many(experiments, "cpu", workers=2)
    assert all(map(results.place_of_weights, experiments))
    assert beside[1].history[0]["allocation"] == [92, 2, 2, 2, 2]
    assert [run.history for run in beside] == [results.train(experiment).history for experiment in experiments]


class Tiny(torch.nn.Module):
    """One convolution, from PyTorch's own first weights."""

    def __init__(self, channels, width):
        super().__init__()
        self.body = torch.nn.Conv2d(channels, channels, width + 1, padding=width // 2)

    def forward(self, y):
        return y + self.body(y)


@pytest.fixture
def tiny_network(added, monkeypatch):
    monkeypatch.setitem(NETWORKS, "tiny", Tiny)


@pytest.mark.parametrize(("task", "schedule"), [("denoise", "hard_mining"), ("inpaint", "on_demand")])
def test_a_network_is_trained_tested_loaded_and_restores(tiny_network, task, schedule):
    experiment = conftest.tiny(task, schedule, network="tiny", width=4)
    measured = results.measurement_of(experiment).run()
    assert experiment.run_id.endswith("-network=tiny") and measured.evaluation.psnr.notna().all()
    network = results.load_network(experiment)
    assert isinstance(network, Tiny)
    image = np.random.default_rng(0).random((70, 80, 3), np.float32)
    assert windows.restore_image(network, image, stride=32).shape == image.shape


def test_no_run_loads_the_checkpoint_or_the_result_of_another_network(tiny_network, monkeypatch):
    """Of the same name, and with weights of the same shapes; nor of a schedule or a task that has changed since."""

    class Other(Tiny):
        def forward(self, y):
            return y - self.body(y)

    own, seen = partial(conftest.tiny, "speckle", "inverse", network="tiny", width=4, epochs=2), []
    for table, name, row in (
        (NETWORKS, "tiny", Tiny),
        (NETWORKS, "tiny", Other),
        (SCHEDULES, "inverse", lambda done, psnr, n: np.arange(1.0, n + 1)),
        (SCHEDULES, "inverse", lambda done, psnr, n: np.arange(n, 0.0, -1)),
        (paper.TASKS, "speckle", SPECKLE | {"levels": tuple((10 * k, 10 * k + 20) for k in range(6))}),
        (corruptions.TASKS, "speckle", Task("speckle", 3, draw_amount, lambda x, severity, generator: 0.9 * x)),
    ):
        monkeypatch.setitem(table, name, row)
        assert results.load_result(own()) is None
        seen.append((own().run_id, results.measurement_of(own()).run().evaluation.psnr.mean()))
        assert results.load_result(own()) is not None
    assert [len({*column}) for column in zip(*seen, strict=True)] == [1, 6]


@pytest.mark.parametrize("text", [
    "class Mine(Fixated):\n  def __call__(self, *_): return {}\nrow = Mine()",
    "class Mine:\n  def weights(self, *_): return {}\nrow = Mine().weights",
    "class row(torch.nn.Module):\n  @property\n  def factor(self): return {}",
    "@torch.no_grad()\ndef row(*_): return {}",
    "def make(k):\n  return lambda *_: k\nrow = make({})",
    "def make(k):\n  f = lambda *_: k\n  return lambda *_: f()\nrow = make({})",  # a decorator's
    "def make(k):\n  f = lambda n: n and g(n - 1)\n  g = lambda n: k + f(n)\n  return f\nrow = make({})",
    "class Mine:\n  def __init__(self, k): self.k, self.f = k, lambda: self\nrow = Mine({})",
    *(f"row = partial(max, {table})" for table in ("np.eye(5)[{}]", "torch.eye(5)[{}]", "range({})")),
])  # fmt: skip
def test_a_changed_row_is_another_run(text):
    """Also where it is an instance, hides behind a decorator or in a closure, or holds a table.

    It is the same when made again.
    """
    codes = []
    for k in (1, 1, 2):
        exec(text.format(k), place := globals() | {"__name__": "__main__"})
        codes.append(code_of([place["row"]]))
    assert codes[0] == codes[1] != codes[2]


def test_super_an_empty_cell_and_what_a_class_or_a_module_holds_change_no_code():
    class Local(Tiny):
        def forward(self, y):
            return super().forward(y) + later

    assert Local.forward.__closure__ and len(described(Local.forward)) == len(described(Tiny.forward)) == 3
    module = torch
    assert described(lambda: (Local, module))[3] == ["Local", "torch"]
    later = 1


def test_what_was_executed_without_a_module_is_ones_own():
    exec("def row(*_): return {}\nclass Row: pass", place := {})
    assert is_own(place["row"]) and is_own(place["Row"]) and is_own(place["Row"]())


def test_a_row_by_a_name_of_ones_own_is_ones_own_even_where_all_of_it_ships(monkeypatch):
    """Else the result of the row before it, by the same name, would be taken for its own."""
    made = [partial(one_level, 1), partial(one_level, 5), Schedule(on_demand), Schedule(on_demand, "composite")]
    codes = []
    for row in made:
        monkeypatch.setitem(SCHEDULES, "mine", row)
        codes.append(Experiment.of(schedule="mine").code)
    for row in (EncoderDecoder, ResidualUNet):
        monkeypatch.setitem(NETWORKS, "mine", row)
        codes.append(Experiment.of(network="mine").code)
    assert len({*codes, ""}) == len(codes) + 1
    there = "import odl; from odl.schedules import *; odl.SCHEDULES['mine'] = Schedule(on_demand); "
    there += "from odl.experiment import Experiment; print(Experiment.of(schedule='mine').code)"  # which comes last
    told = subprocess.run([sys.executable, "-c", there], capture_output=True, text=True, timeout=100, check=True)
    assert told.stdout.strip() == codes[2]


def test_changed_levels_of_the_papers_task_are_another_run_for_which_no_weights_ship(monkeypatch):
    experiment = partial(Experiment.of, "inpaint", "bsds500", profile="reference")
    assert experiment().code == "" and results.place_of_weights(experiment())
    monkeypatch.setitem(paper.TASKS, "inpaint", paper.TASKS["inpaint"] | {"levels": SPECKLE["levels"]})
    assert experiment().code and results.place_of_weights(experiment()) is None


def test_the_same_code_is_the_same_run_wherever_it_was_defined():
    """In another process, too, from which cloudpickle brings it without its source."""

    def made(k):
        return [lambda done, psnr, n, k=k: np.ones(n) * k, lambda done, psnr, n: np.ones(n) * k]

    pickled = cloudpickle.dumps(made(1))
    there = "import cloudpickle; from odl.identity import code_of; "
    there += f"print(code_of(cloudpickle.loads({pickled!r})))"
    told = subprocess.run([sys.executable, "-c", there], capture_output=True, text=True, timeout=100, check=True)
    assert told.stdout.strip() == code_of(made(1))
    assert code_of([]) == "" and Experiment.of().code == ""
