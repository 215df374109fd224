"""Nothing is written to the repository: every test gets a root of its own, with the demo pack linked into it."""

import tempfile

import pytest
import torch
from hypothesis import configuration, settings
from webdriver import INSTALLED, Browser

from odl import data, datasets

torch.set_num_threads(1)
configuration.set_hypothesis_home_dir(tempfile.gettempdir())
settings.register_profile("odl", deadline=None, derandomize=True, database=None)
settings.load_profile("odl")


@pytest.fixture(scope="session")
def demo_pack(tmp_path_factory):
    """The demo photographs, packed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODL_ROOT", str(tmp_path_factory.mktemp("packed")))
        return data.prepare("demo")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty root for data, results and runs."""
    monkeypatch.setenv("ODL_ROOT", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def demo(root, demo_pack):
    """A root with the demo pack."""
    home = datasets.home("demo")
    home.mkdir(parents=True)
    (home / demo_pack.name).symlink_to(demo_pack)
    return root


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if not INSTALLED:
        pytest.skip("Chromium or ChromeDriver is not installed")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
