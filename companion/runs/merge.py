"""Results that were measured elsewhere, beside ours: `python -m companion merge home.zip`.

What `reproduce --pack` has written goes to `data/others/<device>/`, each file by its own name, and nothing of ours is
touched: two machines round differently, so their runs are compared and never paired.
"""

import json
import math
import os
import re
import zipfile
from collections import defaultdict
from pathlib import Path

import pandas as pd

from odl import PROTOCOL
from odl.evaluation import overall
from odl.machine import files
from odl.machine.provenance import arithmetic_of
from odl.parameters import ParameterError

RESULT = re.compile(r"data/results/((?:[\w-][\w =.-]*/){2,3}[\w-][\w =.-]*\.json)")
LARGEST = 64 << 20  # bytes of one result
COLUMNS = ["device", "profile", "dataset", "task", "run", "arithmetic", "seeds", "theirs (dB)", "ours (dB)"]


class Refused(Exception):
    """A file of an archive is not taken; the message is why."""


def others() -> Path:
    return files.root() / "data" / "others"


def merge(file: Path) -> dict[str, list[str]]:
    """Keep every sound result of an archive; what is refused: why → names. Raises ParameterError where none is one."""
    refused, file = defaultdict(list), Path(os.path.expanduser(file))
    try:
        if file.exists() and not file.is_file():  # a pipe would be waited for
            raise OSError("no regular file")
        archive = zipfile.ZipFile(file)
    except (OSError, zipfile.BadZipFile) as error:
        raise ParameterError(f"archive={str(file)!r} cannot be read ({error}); `reproduce --pack` writes one") from None
    with archive:
        # Beside results there is the record of a GPU's gates and probe; networks are in archives of their own.
        found = [info for info in archive.infolist() if re.match(r"data/results/(?!gpu/[\w-]+\.json$)", info.filename)]
        for info in found:
            try:
                keep(info.filename, read(archive, info))
            except Refused as why:
                refused[str(why)].append(info.filename)
    if not found:
        raise ParameterError(f"archive={str(file)!r} holds no results; `reproduce --pack` writes one that does")
    return dict(refused)


def read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict:
    """The content of a result whose seal is whole."""
    if not RESULT.fullmatch(info.filename) or info.file_size > LARGEST:
        raise Refused("no result of this companion")
    try:
        content = json.loads(archive.read(info))
        seal = content.pop("seal", None)
        device = content["provenance"]["device"]
        content["experiment"]["dataset"]
        sound = math.isfinite(score(content)) if of_levels(content) else len(pd.DataFrame(content["evaluation"]))
    except Exception:  # a damaged archive, or one with a password, raises anything
        sound = False
    if not sound:
        raise Refused("no result of this companion")
    if seal != files.seal_of(content):
        raise Refused("changed since it was measured: the seal is not its own")
    if not isinstance(device, str) or not re.search(r"\w", device):
        raise Refused("measured on a device without a name")
    return content


def keep(name: str, content: dict) -> None:
    """Write a result where those of its device lie, unless it is of another protocol, place or kind than ours."""
    if content.get("protocol") != PROTOCOL:
        raise Refused(f"of protocol {content.get('protocol')}, and this is protocol {PROTOCOL}")
    own = RESULT.fullmatch(name)[1]
    if not belongs(own, content["experiment"]):
        raise Refused("not the experiment that its name says")
    ours = files.results() / own
    if ours.exists():
        compare(content, files.unseal(ours))
    elif alike := on_these(own, content):
        same_photographs(content, alike)
    place = others() / files.short(re.sub(r"\W+", "-", device_of(content)).strip("-"), 80) / own
    if place.exists() and files.unseal(place) != content:
        raise Refused("not what this device has sent before")
    files.write_atomically(place, files.seal(content))


def device_of(content: dict) -> str:
    """The name of a GPU; of a CPU its threads and its model."""
    device, model = content["provenance"]["device"], content["provenance"].get("processor")
    return f"{device}, {model}" if device.startswith("CPU") and model else device


def belongs(own: str, experiment: dict) -> bool:
    """Whether an experiment is the one of its path: a run's, or a system's on photographs."""
    where = [str(experiment.get(key)) for key in ("dataset", "task", "schedule")]
    if "system" in experiment:
        where = [str(experiment["dataset"]), str(experiment["system"])]
    folder, _, name = "/".join(where).rpartition("/")
    return re.fullmatch(rf"[^/]+/{re.escape(folder)}/{re.escape(name)}(-.*)?\.json", own) is not None


def on_these(own: str, theirs: dict) -> dict | None:
    """A result of ours on the same data set and as many photographs, for a run that we lack; None without one."""
    dataset = own.split("/")[1]
    ours = map(files.unseal, sorted(files.results().glob(f"*/{dataset}/**/*.json")))
    count = theirs["provenance"].get("train_images")
    return next((content for content in ours if content.get("provenance", {}).get("train_images", -1) == count), None)


def same_photographs(theirs: dict, ours: dict) -> None:
    """Raise Refused where the two are not of the same pixels."""
    if ours["provenance"].get("data_sha256") != theirs["provenance"].get("data_sha256"):
        raise Refused("other photographs than ours: the hash of the pixels differs")


def compare(theirs: dict, ours: dict) -> None:
    """Raise Refused where the two are not one experiment on the same pixels in the same arithmetic."""
    if theirs["experiment"] != ours["experiment"]:
        raise Refused("other numbers of the experiment than ours has")
    same_photographs(theirs, ours)
    kind, other = (arithmetic_of(run["provenance"], ours["experiment"]) for run in (ours, theirs))
    if None not in (kind, other) and kind != other:
        raise Refused(f"other arithmetic than ours: {other}, not {kind}")


def table() -> pd.DataFrame:
    """PSNR of every run that was measured elsewhere beside the same of ours, as `COLUMNS`.

    A row is a run on one device in one arithmetic. Theirs is the mean over their seeds, ours over those of these seeds
    that are measured here.
    """
    rows = []
    for path in sorted(others().glob("*/*/*/*/*.json")):
        content = files.unseal(path)
        if not of_levels(content):
            continue
        _, *own = path.relative_to(others()).parts
        ours, run = files.results().joinpath(*own), re.sub(r"-seed\d+", "", path.stem)
        same = score(files.unseal(ours)) if ours.exists() else math.nan
        kind = arithmetic_of(content["provenance"], content["experiment"]) or "–"
        rows.append([device_of(content), *own[:3], run, kind, 1, score(content), same])
    means = {"seeds": "sum", "theirs (dB)": "mean", "ours (dB)": "mean"}
    return pd.DataFrame(rows, columns=COLUMNS).groupby(COLUMNS[:6], as_index=False).agg(means).round(2)


def of_levels(content: dict) -> bool:
    """Whether a result is a run's on the levels of its task."""
    return "psnr_input" in content["evaluation"]


def score(content: dict) -> float:
    """Mean PSNR over levels 1 to 6 and trials, in dB."""
    return float(overall(pd.DataFrame(content["evaluation"])).psnr.mean())
