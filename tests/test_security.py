"""Loading executes nothing, and no file keeps names and places of the machine that made it.

That the code unpickles nothing, starts no shell and evaluates no text, `ruff` checks by its rules S.
"""

import getpass
import hashlib
import io
import pickle
import re
import socket
import struct
import subprocess
from pathlib import Path

import pytest
import torch
from conftest import refused, tiny

from companion.disk import files
from companion.training import checkpoint, results

ROOT = Path(__file__).resolve().parents[1]
TEXT = {".py", ".md", ".ipynb", ".toml", ".txt", ".yml", ".yaml", ".cff", ".bib", ".css", ".js", ".json", ".csv", ""}
HOSTS = r"index-url|registry\.npmjs|\"resolved\": *\"http|https?://[\w.:-]+/(?:simple|pypi)\b"
PLACES = r"(?<![\w.])/(?:home|root|work|Users|mnt)/\w+|[A-Za-z]:\\+Users\\"


class Harm:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_loading_a_run_executes_nothing(demo, tmp_path):
    """Pickles, a header that lies and a flood of zeros, with the hash that whoever wrote them can compute."""
    experiment, mark, buffer = tiny(), tmp_path / "mark", io.BytesIO()
    folder = files.runs() / experiment.run_id
    torch.save({"network": Harm(mark), "optimizer": {}, "history": [], "experiment": {}}, buffer)
    for harm in (pickle.dumps(Harm(mark), 2), buffer.getvalue(), struct.pack("<Q", 2**62) + b"{}", bytes(10_000)):
        files.write_atomically(folder / "checkpoint.pt", hashlib.sha256(harm).digest() + harm)
        assert checkpoint.load_checkpoint(folder, experiment) is None
        files.write_atomically(folder / "weights.safetensors", harm)
        refused(lambda: results.load_network(experiment), "weights.safetensors")
    assert not mark.exists()


def told_by(text: str) -> list[str]:
    """Folders and names of a machine and of a person."""
    own = {str(Path.home()), str(ROOT), socket.gethostname(), getpass.getuser()} - {"root", "/root", "localhost", "/"}
    names = [name for name in own if len(name) > 3 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    return re.findall(rf"{PLACES}|(?<![\w.])/(?:tmp|var|private)/\w+", text) + names


def test_no_registry_hosts_no_places_and_no_names():
    """Files that people receive; what is run or measured here tells no names either."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git repository")
    for path in (ROOT / name for name in listed.stdout.split("\0") if name):
        if path.suffix in TEXT and path.exists() and path != Path(__file__):
            text = path.read_text(errors="ignore")
            assert not re.findall(f"{HOSTS}|{PLACES}", text), path
            if any(path.is_relative_to(ROOT / place) for place in ("notebooks", "data/results")):
                assert not told_by(text), path
