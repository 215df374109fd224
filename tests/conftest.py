"""Nothing is written to the repository: every test gets a root of its own, with the demo pack linked into it."""

import tempfile
from contextlib import ExitStack, contextmanager
from unittest import mock

import pytest
import torch
from hypothesis import configuration, settings
from threadpoolctl import threadpool_limits
from webdriver import INSTALLED, Browser

from companion.data import download, sets
from companion.disk import files
from companion.restore import fill, photographs
from companion.training import checkpoint, results
from odl import paper
from odl.corruptions import TASKS
from odl.experiment import FOR_NETWORK, Experiment
from odl.network import NETWORKS, EncoderDecoder, ResidualUNet
from odl.parameters import OneLine
from odl.schedules import SCHEDULES

TINY = {"profile": "smoke", "epochs": 1, "iterations": 1, "batch_size": 10, "test_images": 4, "validation_images": 4}
torch.set_num_threads(1)
threadpool_limits(1)  # of BLAS, too
configuration.set_hypothesis_home_dir(tempfile.gettempdir())
settings.register_profile("odl", deadline=None, derandomize=True, database=None)
settings.load_profile("odl")


def tiny(task="inpaint", schedule="on_demand", **numbers) -> Experiment:
    """A run of well under a second."""
    return Experiment.of(task, schedule=schedule, **(TINY | numbers))


def refused(act, *words: str, kind=OneLine) -> str:
    """The message of the error that `act()` raises: one line that has these words."""
    with pytest.raises(kind) as error:
        act()
    message = str(error.value)
    assert "\n" not in message and all(word in message for word in words), message
    return message


def pytest_collection_modifyitems(items):
    """The pages first: what takes longest should not start last. The book that they wait for has its own limit."""
    for item in items:
        if "html" in item.fixturenames:
            item.add_marker(pytest.mark.timeout(300, func_only=True))
    items.sort(key=lambda item: item.path.name != "test_pages.py")


@pytest.fixture(scope="session")
def demo_pack(tmp_path_factory):
    """The demo photographs, packed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODL_ROOT", str(tmp_path_factory.mktemp("packed")))
        return download.prepare("demo")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty root for data, results and runs."""
    monkeypatch.setenv("ODL_ROOT", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def no_shared_data(monkeypatch):
    """No data sets but those of the root."""
    monkeypatch.delenv("ODL_DATA", raising=False)


def link(pack):
    """Into the present root, once."""
    home = sets.home("demo")
    home.mkdir(parents=True, exist_ok=True)
    if not (home / pack.name).exists():
        (home / pack.name).symlink_to(pack)


@pytest.fixture
def demo(root, demo_pack):
    """A root with the demo pack."""
    link(demo_pack)
    return root


@pytest.fixture
def elsewhere(demo_pack, tmp_path, monkeypatch):
    """`with elsewhere():` is in another root that has the demo pack too."""

    @contextmanager
    def inside():
        with monkeypatch.context() as patch:
            patch.setenv("ODL_ROOT", str(tmp_path / "elsewhere"))
            link(demo_pack)
            yield

    return inside


@pytest.fixture
def resumes_exactly(elsewhere):
    """Check that a run interrupted after a share goes on for so many iterations and ends as it does in one piece."""

    def check(train, experiment, share, iterations):
        expected, seen = train(experiment), []

        def interrupt(done):
            if done > share:
                raise KeyboardInterrupt

        with elsewhere():
            with pytest.raises(KeyboardInterrupt):
                train(experiment, progress=interrupt)
            resumed = train(experiment, progress=seen.append)
        assert len(seen) == iterations and resumed.history == expected.history
        for name, value in resumed.network.state_dict().items():
            assert torch.equal(value, expected.network.state_dict()[name]), name

    return check


@pytest.fixture
def noise(monkeypatch):
    """The paper's network of every task: a small one that nobody trained; it restores unless another is asked for."""

    def untrained(task):
        torch.manual_seed(0)
        return EncoderDecoder(TASKS[task].channels, 4).eval()

    monkeypatch.setattr("companion.restore.pretrained.load", untrained)
    monkeypatch.setattr("companion.restore.chosen.weights_of", lambda task: None)


@pytest.fixture
def photo_tasks():
    """The three tasks for photographs, their network and schedule in the tables of `odl`, for one test."""
    with ExitStack() as stack:
        for table in (paper.TASKS, TASKS, SCHEDULES, NETWORKS, FOR_NETWORK):
            stack.enter_context(mock.patch.dict(table))
        photographs.add()
        yield


@pytest.fixture
def photo_networks(root):
    """The three networks for photographs, untrained, as the default of `restore`: task → network."""
    return {task: ship_untrained(task)[0] for task in photographs.PHOTO_TASKS}


def ship_untrained(task, seed=0, width=8):
    """A network of random weights, all in half precision, which ships from the present root: it, and its file."""
    network = (fill.ToldUNet if task == "photo_fill" else ResidualUNet)(3, width)
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0, 0.1 if parameter.ndim > 1 else 0.01, generator=generator)
        parameter.data = parameter.data.half().float()
    run = files.runs() / task / "weights.safetensors"
    files.write_atomically(run, checkpoint.encoded(network.state_dict(), "nobody"))
    return network.eval(), results.ship(task, task)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if not INSTALLED:
        pytest.skip("Chromium or ChromeDriver is not installed")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def axe(chromium):
    """axe-core in every page that is loaded from now on."""
    import lab_page

    files, missing = lab_page.vendored("axe-core")
    if missing:
        pytest.skip(missing)
    chromium.devtools("Page.addScriptToEvaluateOnNewDocument", source=files[0].read_text())
