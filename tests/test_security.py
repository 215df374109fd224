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


def test_no_registry_hosts_no_places_and_no_names():
    """Files that people receive; what is run or measured here tells no names either, unless other files have the word.

    A user or a host may be called like one.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git repository")
    paths = [path for path in map(ROOT.joinpath, listed.stdout.split("\0")) if path.suffix in TEXT and path.is_file()]
    texts = {path: path.read_text(errors="ignore") for path in paths if path != Path(__file__)}
    for path, text in texts.items():
        assert not re.findall(f"{HOSTS}|{PLACES}", text), path
    made = {path for path in texts for place in ("notebooks", "data/results") if path.is_relative_to(ROOT / place)}
    words = {word for path in {*texts} - made for word in re.findall(r"\w+", texts[path])}
    names = {str(Path.home()), str(ROOT), socket.gethostname(), getpass.getuser()} - {"localhost", "/root", "/", *words}
    told = [r"(?<![\w.])/(?:tmp|var|private)/\w+"]
    told += [rf"(?<!\w){re.escape(name)}(?!\w)" for name in names if len(name) > 3]
    for path in made:
        assert not re.findall("|".join(told), texts[path]), path
