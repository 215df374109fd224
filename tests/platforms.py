"""What works with other versions: python -m tests.platforms 3.11 torch==2.4.0 torchvision==0.19.0

In a new environment of that Python, with what uv installs for the other arguments and the wheel of the last commit, it
does what a user would, and adds a row to data/results/platforms.json. It needs the network, and 6 GB for a while.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from companion.disk import files, provenance

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ["pytest", "pytest-timeout", "hypothesis", "selenium", "papermill", "ipykernel", "ipywidgets"]
VERSIONS = """import json, platform, importlib.metadata as m
names = "torch torchvision numpy pandas pillow scikit-image".split()
print(json.dumps({"python": platform.python_version(), **{name: m.version(name) for name in names}}))"""
PHOTOGRAPHS = """import pathlib, shutil, skimage
for photograph in pathlib.Path(skimage.__file__).parent.glob("data/*.png"): shutil.copy(photograph, "photos")"""
CHECKS = {  # the first three in a folder where the repository is not
    "odl.load": ["-c", "import odl; odl.load('inpaint')"],
    "restore": ["-m", "odl", "restore", "--task", "deblur", "--stride", "32", "photos/chelsea.png", "restored.jpg"],
    "train on a folder": ["-m", "odl", "train", "--profile", "smoke", "--dataset", "photos"],
    "notebook": ["-m", "papermill", "notebooks/table1.ipynb", "{home}/out.ipynb", "-p", "profile", "smoke"],
    "golden runs": ["-m", "pytest", "-p", "no:cacheprovider", "--timeout=0", "tests/test_golden.py", "-k", "a_golden"],
}


def main(python: str, *asked: str) -> None:
    uv, start = str(Path(sys.executable).with_name("uv")), time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        home, source = Path(temporary), Path(temporary, "source")
        source.mkdir()
        (home / "photos").mkdir()
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "x", "-C", source], input=archive, check=True)
        subprocess.run([uv, "build", "-q", "--wheel", "-o", home, source], check=True)
        subprocess.run([uv, "venv", "-q", "--python", python, home / "venv"], check=True)
        own = home / "venv" / "bin" / "python"
        install = [uv, "pip", "install", "-q", "--python", own]
        subprocess.run([*install, *asked, *PACKAGES, *home.glob("*.whl")], check=True, cwd=ROOT)
        env = os.environ | {"ODL_ROOT": str(home / "root"), "PATH": f"{own.parent}{os.pathsep}{os.environ['PATH']}"}
        env.pop("PYTHONPATH", None)
        subprocess.run([own, "-c", PHOTOGRAPHS], cwd=home, check=True)
        versions = json.loads(subprocess.check_output([own, "-c", VERSIONS], cwd=home))
        row = {"asked": " ".join(asked), "versions": versions, "commit": provenance.commit(), "checks": {}}
        for name, command in CHECKS.items():
            where = source if name in ("golden runs", "notebook") else home
            command = [own, *(part.replace("{home}", str(home)) for part in command)]
            done = subprocess.run(command, cwd=where, env=env, capture_output=True, text=True)
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            row["checks"][name] = (
                "yes" if done.returncode == 0 else said[-1][:200] if said else f"exit {done.returncode}"
            )
            print(name, row["checks"][name], "" if done.returncode == 0 else done.stdout[-1500:] + done.stderr[-1500:])
        row["seconds"] = round(time.monotonic() - start)
    path = ROOT / "data" / "results" / "platforms.json"
    rows = files.unseal(path)["rows"] if path.exists() else []
    rows = [old for old in rows if old["versions"] != versions] + [row]
    files.write_atomically(path, files.seal({"rows": sorted(rows, key=lambda r: list(r["versions"].values()))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
