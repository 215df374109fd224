"""A notebook as Colab, Kaggle and Binder run it: python -m tests.services [colab kaggle binder]

Each service is a new environment with its packages and without the companion, whose kernel executes a notebook that
stands alone, or in a clone. It needs the network, for packages only; the repository's address is a folder here.
Python is the service's where this machine has it, else the one that runs this.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
NOTEBOOK = "allocation.ipynb"
COMMON = "numpy pandas scipy scikit-image matplotlib pillow safetensors tqdm jinja2 platformdirs ipykernel ipywidgets"
HERE = "import importlib.metadata as m; print(*sorted({f'{d.name}=={d.version}' for d in m.distributions()}))"
NOWHERE = "/nowhere/at/all.git"


def pinned(*names: str) -> list[str]:
    """The versions that are tested here."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0] in names]


def binder() -> list[str]:
    """What its image has, with the versions of PyTorch and NumPy that are tested here."""
    content = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    return [*pinned("torch", "torchvision", "numpy"), *content["dependencies"][-1]["pip"], "ipykernel"]


PACKAGES = {  # Python, and what is installed before the first cell; Colab and Kaggle lack loky, pooch, PyWavelets
    "colab": ("3.13", ["torch==2.11.0", "torchvision==0.26.0", *COMMON.split()]),
    "kaggle": ("3.12", [*pinned("torch", "torchvision"), *COMMON.split()]),
    "binder": ("3.11", binder()),
}


@dataclass
class Service:
    """One service below `home`: its environment, its kernel, and the folder that it opens notebooks in."""

    name: str
    home: Path
    address: str

    @property
    def python(self) -> Path:
        return self.home / "venv" / "bin" / "python"

    @property
    def work(self) -> Path:
        return self.home / "work"

    def build(self) -> None:
        version, packages = PACKAGES[self.name]
        uv, python = BIN / "uv", interpreter(version)
        self.work.mkdir()
        subprocess.run([uv, "venv", "--quiet", "--seed", "--python", python, self.home / "venv"], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", self.python, *packages]
        subprocess.run(install, check=True, cwd=self.home)
        kernel = ["-m", "ipykernel", "install", "--prefix", self.home / "kernels", "--name", "service"]
        subprocess.run([self.python, *kernel], check=True, capture_output=True)

    def packages(self) -> set[str]:
        return {*subprocess.check_output([self.python, "-c", HERE], text=True, cwd=self.home).split()}

    def open(self, notebook: Path, address: str, **environment: str) -> str:
        """Execute a notebook, with that address in its first cell, where it lies; return what it says."""
        text = notebook.read_text(encoding="utf-8")
        given, found = re.subn(r'(?<="address = \\")[^"\\]*(?=\\")', address, text)
        assert found == 1
        notebook.write_text(given, encoding="utf-8")
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ODL_ROOT", "ODL_DATA")}
        env |= {"JUPYTER_PATH": str(self.home / "kernels" / "share" / "jupyter"), "OMP_NUM_THREADS": "1"} | environment
        command = [BIN / "papermill", notebook, self.home / "out.ipynb", "--cwd", notebook.parent]
        command += ["--kernel", "service", "-p", "profile", "smoke", "--log-output", "--no-progress-bar"]
        done = subprocess.run(command, env=env, cwd=self.home, capture_output=True, text=True)
        notebook.write_text(text, encoding="utf-8")
        return done.stdout + done.stderr + ("" if done.returncode else "\nFINISHED")

    def alone(self) -> Path:
        """The notebook without its repository."""
        return Path(shutil.copy(ROOT / "notebooks" / NOTEBOOK, self.work))


def interpreter(version: str) -> str:
    """The Python of that version, of the system or of pyenv; else the one that runs this."""
    pyenv = os.pathsep.join(map(str, Path.home().glob(f".pyenv/versions/{version}*/bin")))
    env = os.environ | {"PATH": f"{pyenv}{os.pathsep}{os.environ['PATH']}"}
    find = [BIN / "uv", "python", "find", "--no-python-downloads", version]
    found = subprocess.run(find, env=env, capture_output=True, text=True, cwd="/").stdout.strip()
    if not found:
        print(f"no Python {version} here; it is tried with {sys.version.split()[0]}")
    return found or sys.executable


def steps_alone(service: Service) -> Path:
    """Kaggle: nothing but the notebook is there, and some packages are missing. Returns the notebook."""
    before, notebook = service.packages(), service.alone()
    said = service.open(notebook, service.address)
    assert said.endswith("FINISHED") and "installing" in said, said
    after = service.packages()
    assert before < after  # nothing that was there is gone or of another version
    assert {"loky", "pooch", "pywavelets"} <= {name.split("==")[0].lower() for name in after - before}
    assert list(service.work.glob("on-demand-learning/data/results/smoke/demo/*/*.json")), "no results in the clone"
    return notebook


def steps_again(service: Service) -> None:
    """Colab: without an address, with one that is wrong, then as above, and again with what the first run has left."""
    before, notebook = service.packages(), service.alone()
    said = service.open(notebook, "")
    assert "set `address` in this cell" in said and "FINISHED" not in said, said
    said = service.open(notebook, NOWHERE)
    assert f"{NOWHERE} cannot be cloned" in said and "FINISHED" not in said, said
    assert service.packages() == before and {*service.work.iterdir()} == {notebook}
    notebook = steps_alone(service)
    after = service.packages()
    said = service.open(notebook, NOWHERE, PIP_NO_INDEX="1")  # without a network
    assert said.endswith("FINISHED") and "installing" not in said, said
    assert service.packages() == after


def steps_in_a_clone(service: Service) -> None:
    """Binder: the repository is there, and so is every package."""
    before, clone = service.packages(), service.work / "home"
    subprocess.run(["git", "clone", "--quiet", service.address, clone], check=True)
    said = service.open(clone / "notebooks" / NOTEBOOK, NOWHERE, PIP_NO_INDEX="1")
    assert said.endswith("FINISHED"), said
    assert service.packages() == before
    status = subprocess.check_output(["git", "status", "--porcelain"], cwd=clone, text=True)
    assert not status, status


STEPS = {"colab": steps_again, "kaggle": steps_alone, "binder": steps_in_a_clone}


def main(*names: str) -> None:
    for name in names or STEPS:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            address = Path(folder, "companion.git")
            subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, address], check=True)
            branch = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["branch"]
            subprocess.run(["git", "-C", address, "branch", "--quiet", "--force", branch, "HEAD"], check=True)
            service = Service(name, Path(folder), str(address))
            service.build()
            built = time.monotonic() - start
            STEPS[name](service)
        print(f"{name}: as it should be ({built:.0f} s to build, {time.monotonic() - start - built:.0f} s)", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
