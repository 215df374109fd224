"""One GPU for half an hour: gates, a probe of how many runs side by side are fastest, and what comes home.

`python -m companion reproduce --profile gpu --budget 9min --pack FILE.zip`, called again, goes on where it stopped.
What a gate or the probe found is kept in `runs/gpu/` for the next call, and in `data/results/gpu/` for the book; on a
CPU everything runs too, without graphs.
"""

import hashlib
import io
import json
import os
import re
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import torch

from companion.runs import sweep
from odl import paper
from odl.crops import Pack
from odl.data import packs
from odl.experiment import Experiment
from odl.learn import Step, allocation, batches, build, train_epoch
from odl.machine import files
from odl.machine.checkpoint import encoded, hash_of, header, read_weights
from odl.machine.device import make_deterministic
from odl.machine.graphs import quickest, state_of
from odl.machine.provenance import origin
from odl.parameters import ParameterError
from odl.results import shipped_name
from odl.schedules import SCHEDULES, begin

SIDES = (1, 2, 4, 7)  # runs side by side that are probed
TINY = {"profile": "smoke", "precision": "bf16", "epochs": 2, "iterations": 25, "batch_size": 20}
EASY, HARD = [[20, 0, 0, 0, 0]], [[0, 0, 0, 0, 20]]  # images per level of every batch
SCORES = [34.0, 32.0, 30.0, 28.0, 26.0]  # of a validation before the hard epoch, by which weights of a loss differ
GATED = ["on_demand", "hard_mining", "group_dro"]  # kinds of captured step: a batch, its worst images, weighted losses
NETWORKS = 5  # that one call brings home: 11 MB each at width 64
LONGEST = 250  # bytes of an archive's name, to which a network's number is added


def prepare(todo: list[Experiment], device: str) -> int:
    """How many runs side by side are fastest here; without graphs where these differ or fail (`ODL_EAGER`).

    `todo` is what is to be trained, in bf16 as profile gpu has it: its schedules are gated, its first is timed.
    """
    make_deterministic()
    experiment, trained = todo[0], {run.schedule for run in todo}
    names = [GATED[0], *(name for name in GATED[1:] if name in trained)]
    card = "-" + slug(torch.cuda.get_device_name()) if device == "cuda" else ""
    failed = once(f"gates-{'-'.join(names)}{card}", lambda: gates(device, experiment.dataset, names))
    milliseconds = once(f"probe{card}", lambda: probe(experiment, device))
    sides = {int(name): ms for name, ms in milliseconds.items() if name.isdigit()}
    if card:
        found = {"provenance": origin(device), "gates": failed_on(card) | failed, "milliseconds": milliseconds}
        files.write_atomically(record_of(torch.cuda.get_device_name()), files.seal(found))
    if failed.keys() & {"captured", "error"} or not sides:
        os.environ["ODL_EAGER"] = "1"
    return 1 if failed.keys() & {"bundle", "error"} or not sides else min(sides, key=sides.get)


def failed_on(card: str) -> dict[str, list[str]]:
    """The gates that did not hold in any call on this machine: each names the kinds of step of its own runs."""
    found = {}
    for path in sorted((files.runs() / "gpu").glob(f"gates-*{card}.json")):
        for gate, runs in json.loads(path.read_bytes()).items():
            found[gate] = sorted({*found.get(gate, ()), *runs})
    return found


def slug(card: str) -> str:
    """The name of a GPU as files have it."""
    return re.sub(r"\W+", "-", card)


def record_of(card: str) -> Path:
    """What the gates and the probe found on a GPU, for the book: provenance, gates, milliseconds."""
    return files.results() / "gpu" / f"{slug(card)}.json"


def once(name: str, function) -> dict:
    """What `function` returns, kept for the next call; an error is an answer too, for this call alone."""
    path = files.runs() / "gpu" / f"{name}.json"
    if not path.exists():
        start = time.monotonic()
        try:
            found = function()
        except files.OneLine:
            raise
        except Exception as error:  # whatever a GPU does, the half hour goes on
            found = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(f"{name}: {found or 'all passed'} ({time.monotonic() - start:.0f} s)", flush=True)
        if "error" in found:
            return found
        files.write_atomically(path, json.dumps(found).encode())
    return json.loads(path.read_bytes())


# Gates


def gates(device: str, dataset: str = "demo", schedules=GATED) -> dict[str, list[str]]:
    """The gates that do not hold, with the runs that differ: a captured step is the plain one, a bundle each alone."""
    runs = [Experiment.of(*case, **TINY) for case in product(paper.TASKS, [dataset], schedules)]
    plain, alone = ([outcome(run, device, capture) for run in runs] for capture in (False, True))
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(partial(outcome, device=device, capture=True), runs))
    differ = {}
    for gate, ways in {"captured": (plain, alone), "bundle": (alone, together)}.items():
        differ[gate] = [run.run_id for run, one, other in zip(runs, *ways, strict=True) if one != other]
    return {gate: names for gate, names in differ.items() if names}


def outcome(run: Experiment, device: str, capture: bool) -> tuple[list[float], str]:
    """Losses of an easy epoch and a hard one, and the SHA-256 of weights and moments, to compare bit for bit."""
    with stream_of(device):
        step = step_of(run, device)
        take = quickest(step) if capture else step
        losses = [an_epoch(step, take, epoch, counts) for epoch, counts in enumerate((EASY, HARD))]
        state = {str(i): t.detach().cpu().contiguous() for i, t in enumerate(state_of(step))}
        return losses, hash_of(state)


def step_of(run: Experiment, device: str) -> Step:
    """The training step of a run."""
    images = loaded(run.dataset, run.train_images).to(device)
    return Step(run, begin(SCHEDULES[run.schedule]), images, *build(run, device))


@cache
def loaded(dataset: str, train_images: int) -> Pack:
    """The photographs of many short runs, whose bytes are checked once."""
    return packs.load(dataset, "train", train_images)


def an_epoch(step: Step, take, epoch: int = 0, counts=None) -> float:
    """Train an epoch by `take`, the step or its graphs, on such batches, without a validation. Returns the loss."""
    own, factors = allocation(step.run, step.schedule, epoch, SCORES if epoch else None)
    counts = own if counts is None else counts
    return train_epoch(step.run, step.network, step.optimizer, take, batches(step, epoch, counts, factors), epoch)


def stream_of(device: str):
    """`with` it, what is launched on a GPU runs beside other streams."""
    return torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else nullcontext()


# Probe


def probe(experiment: Experiment, device: str, sides=SIDES, iterations: int = 200) -> dict[str, float]:
    """Milliseconds of a step of one run: `eager`, and by how many runs stand side by side, as a sweep has them.

    What fails is `N failed`, with its error.
    """
    run, found = equal(experiment, iterations), {}
    for name, n, capture in [("eager", 1, False), *((str(n), n, True) for n in sides)]:
        try:
            found[name] = timed(run, device, n, capture)
        except RuntimeError as error:  # out of memory, or nothing to capture
            found[f"{name} failed"] = str(error)[:500]
    return found


def equal(run: Experiment, iterations: int) -> Experiment:
    """A run as long to a step that needs no other, with equal shares: it is timed in place of any."""
    return replace(run, schedule="rigid_joint", sharpness=1.0, severity=0.0, iterations=iterations)


def timed(run: Experiment, device: str, n: int, capture: bool) -> float:
    """Milliseconds a step, over the steps of n runs at once; the first epoch, which captures, is not timed."""
    streams = [stream_of(device) for _ in range(n)]

    def train(stream, made=None):
        with stream:
            step = made[0] if made else step_of(run, device)
            take = made[1] if made else quickest(step) if capture else step
            an_epoch(step, take, epoch=1 if made else 0)
            return step, take

    with ThreadPoolExecutor(n) as pool:
        steps = list(pool.map(train, streams))
        start = time.perf_counter()
        list(pool.map(train, streams, steps))
        return round(1000 * (time.perf_counter() - start) / (n * run.iterations), 4)


# What comes home


def archive_at(name: str) -> Path:
    """The path of an archive that can be written. Raises ParameterError or DiskError."""
    file = Path(os.path.expanduser(name)).resolve()
    if file.is_dir() or file.suffix != ".zip":
        nearest = file / "home.zip" if file.is_dir() else file.with_suffix(".zip")
        raise ParameterError(f"pack={name!r} is no file to be written; nearest: {nearest}")
    if len(os.fsencode(file.name)) > LONGEST:
        raise ParameterError(f"pack={name!r}: its name has more than {LONGEST} bytes, and the networks' are longer")
    files.need_writable(file.parent)
    return file


def pack(file: Path, jobs: list[sweep.Job]) -> None:
    """Write the results of the jobs, the gates and the probe to `home.zip`, a few networks to `home-1.zip` and so on.

    The networks are in half precision and in no archive before, the longest trained first. All files go by their
    places below the root: unpacked over a checkout they are as if measured there.
    """
    sent = files.runs() / "gpu" / "sent.txt"
    gone = sent.read_text(encoding="utf-8").splitlines() if sent.exists() else []
    runs = sorted((job.experiment for job in jobs if job.experiment), key=lambda e: -e.epochs * e.iterations)
    weights = [f"runs/{run.run_id}/weights.safetensors" for run in runs]
    ready = [name for name in weights if name not in gone and (files.root() / name).exists()][:NETWORKS]
    found = (m.path for job in jobs for m in (*job.needs, *job.measurements))
    paths = {path for path in found if path.suffix == ".json" and path.exists()}
    if torch.cuda.is_available() and (record := record_of(torch.cuda.get_device_name())).exists():
        paths.add(record)
    write_zip(file, {path.relative_to(files.root()).as_posix(): path.read_bytes() for path in sorted(paths)})
    for i, name in enumerate(ready, len(gone) + 1):  # one a file, because some services limit a file's size
        write_zip(file.with_stem(f"{file.stem}-{i}"), {name: halved(files.root() / name)})
    files.write_atomically(sent, "\n".join([*gone, *ready]).encode())


def write_zip(file: Path, members: dict[str, bytes]) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    files.write_atomically(file, content.getvalue())


def ship(run_id: str) -> Path:
    """Copy a run's weights to `data/models` in half precision and enter their hash in the manifest."""
    path = files.models() / shipped_name(run_id)
    content = halved(files.runs() / run_id / "weights.safetensors")
    files.write_atomically(path, content)
    manifest = path.parent / "manifest.json"
    with files.locked(files.runs() / "locks" / "manifest.lock"):
        hashes = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
        hashes[path.name] = hashlib.sha256(content).hexdigest()
        files.write_atomically(manifest, json.dumps(dict(sorted(hashes.items())), indent=1).encode() + b"\n")
    return path


def halved(path: Path) -> bytes:
    """Trained weights in half precision, with their owner in the header."""
    half = {k: t.half() if t.is_floating_point() else t for k, t in read_weights(path).items()}
    return encoded(half, header(path)[1])
