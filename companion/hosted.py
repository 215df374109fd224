"""What the first cell of every notebook does where the companion is not installed, as in Colab, Kaggle and Binder.

Where the packages are there it installs nothing. It runs before anything is installed, so it imports the standard
library and `packaging`, which every kernel of Jupyter has.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

ROOT = Path(__file__).resolve().parents[1]
DRIVES = (Path("/content/drive/MyDrive"), Path("/kaggle/working"))  # Colab's, where it is mounted, and Kaggle's
COLAB = Path("/content")


class SetUpError(RuntimeError):
    """The notebook cannot run here; the message is one line that says what to do."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def set_up() -> None:
    """Install what is missing, put results where the service keeps them, and count the cores that are ours.

    Raises SetUpError.
    """
    if lacking := missing():
        install(lacking)
    if not os.environ.get("ODL_ROOT"):
        keep_results()
    from loky import cpu_count  # perhaps just installed

    if cpu_count() < (os.cpu_count() or 1):  # PyTorch counts those of the host
        os.environ.setdefault("OMP_NUM_THREADS", str(cpu_count()))


def missing() -> list[str]:
    """Of the packages that pyproject.toml asks for, those that are not here. Raises SetUpError where one is too old, or
    Python is.

    A service's package stays as it is, whether or not a kernel has loaded it: another PyTorch may not fit its GPU.
    """
    if sys.version_info < (3, 11):
        raise SetUpError("the companion needs Python 3.11 or newer: choose another kernel")
    import tomllib  # which an older Python lacks

    project = ROOT / "pyproject.toml"
    if not project.exists():  # a wheel, which came with its packages
        return []
    found = []
    for text in tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]:
        need = Requirement(text)
        try:
            here = version(need.name)
        except PackageNotFoundError:
            found.append(text)
            continue
        if not need.specifier.contains(here, prereleases=True):
            command = f"pip install '{text}'"
            raise SetUpError(f"{need.name} {here} is here, and {need} is needed: {command}, then restart the kernel")
    return found


def install(packages: list[str]) -> None:
    """Install packages for this kernel, with everything that is here pinned to its version. Raises SetUpError."""
    print("installing", ", ".join(packages))
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder, "constraints.txt")
        constraints.write_text("\n".join(pinned()), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--constraint", constraints, *packages]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        why = [line for line in said if line.lower().startswith("error:")] or said  # notices and hints come behind it
        raise SetUpError(f"pip could not install {', '.join(packages)} ({why[-1]}); install them, then run this again")


def pinned() -> list[str]:
    """Every package that is here, at the version that is imported, but for those whose version pip cannot read.

    A service's image has some of Debian's, too.
    """
    found = []
    for name in sorted({d.name for d in distributions() if d.name}):
        with suppress(InvalidRequirement, PackageNotFoundError):
            found.append(str(Requirement(f"{name}=={version(name)}")))
    return found


def keep_results() -> None:
    """Set `ODL_ROOT` to a folder that outlives the session, where there is one and this checkout is not in it."""
    drive = next((folder for folder in DRIVES if folder.is_dir()), None)
    if drive and not ROOT.is_relative_to(drive):
        os.environ["ODL_ROOT"] = str(drive / "on-demand-learning")
        print("results and checkpoints go to", os.environ["ODL_ROOT"])
    elif not drive and COLAB.is_dir() and ROOT.is_relative_to(COLAB):
        print("Colab deletes results at the end: mount a drive, restart the kernel, and they go to", DRIVES[0])
