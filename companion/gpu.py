"""One GPU for half an hour: gates, a probe of how many runs side by side are fastest, and what comes home.

`python -m companion reproduce --profile gpu --budget 9min --pack FILE.zip`, called again, goes on where it stopped.
What a gate or the probe found is kept in `runs/gpu/`; on a CPU everything runs too, without graphs.
"""

import hashlib
import io
import json
import os
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import torch
from safetensors.torch import save

from companion import sweep
from odl import paper, training
from odl.data import packs
from odl.evaluation import images_of
from odl.experiment import Experiment
from odl.machine import files
from odl.machine.device import make_deterministic
from odl.machine.weights import read_weights
from odl.schedules import SCHEDULES
from odl.training import Step

SIDES = (1, 2, 4, 7)  # runs side by side that are probed
TINY = {"profile": "smoke", "epochs": 2, "iterations": 25, "batch_size": 20, "test_images": 6, "validation_images": 4}
NETWORKS = 5  # that one archive brings home: 11 MB each at width 64


def prepare(experiment: Experiment, device: str) -> int:
    """How many runs side by side are fastest here; without graphs where a gate has failed (`ODL_EAGER`).

    `experiment` is one whose steps are timed, in bf16 as profile gpu has them.
    """
    make_deterministic()
    failed = once("gates", lambda: gates(device, experiment.dataset))
    if failed.keys() & {"captured", "levels", "error"}:
        os.environ["ODL_EAGER"] = "1"
    milliseconds = once("probe", lambda: probe(experiment, device))
    sides = {int(name): ms for name, ms in milliseconds.items() if name.isdigit()}
    return 1 if "bundle" in failed or not sides else min(sides, key=sides.get)


def once(name: str, function) -> dict:
    """What `function` returns, kept for the next call; an error is an answer too."""
    path = files.runs() / "gpu" / f"{name}.json"
    if not path.exists():
        start = time.monotonic()
        try:
            found = function()
        except Exception as error:  # whatever a GPU does, the half hour goes on
            found = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(f"{name}: {found or 'all passed'} ({time.monotonic() - start:.0f} s)", flush=True)
        files.write_atomically(path, json.dumps(found).encode())
    return json.loads(path.read_bytes())


# Gates


def gates(device: str, dataset: str = "demo") -> dict[str, str]:
    """The gates that do not hold, with what they say."""
    failed = {}
    for name, gate in (("captured", captured_is_eager), ("levels", levels_are_data), ("bundle", bundle_is_alone)):
        try:
            gate(device, dataset)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"[:1000]
    return failed


def captured_is_eager(device: str, dataset: str, tasks=paper.TASKS, schedules=("on_demand", "hard_mining")) -> None:
    """Two epochs of 25 steps give the same losses, weights and moments bit for bit. Raises AssertionError."""
    for task, schedule in product(tasks, schedules):
        run = Experiment.of(task, dataset, schedule, **TINY)
        (eager_losses, eager), (losses, captured) = (outcome(run, device, capture) for capture in (False, True))
        assert losses == eager_losses, f"{task}, {schedule}: losses {losses} and {eager_losses}"
        assert all(map(torch.equal, captured, eager)), f"{task}, {schedule}: other weights"


def outcome(run: Experiment, device: str, capture: bool):
    """Losses and state of a step after two epochs."""
    step = step_of(run, device)
    step.capture &= capture
    losses = [training.train_epoch(step, epoch, training.allocation(run, 0, [])) for epoch in (0, 1)]
    return losses, [t.clone() for t in step.state()]


def step_of(run: Experiment, device: str) -> Step:
    pack = packs.load(run.dataset, "train", run.train_images).to(device)
    return Step(run, *training.build(run, device), pack)


def levels_are_data(device: str, dataset: str) -> None:
    """At a rate that moves nothing an easy epoch, a hard one and the easy one again, by one graph."""
    step = step_of(Experiment.of("inpaint", dataset, "rigid_joint", learning_rate=1e-8, **TINY), device)
    easy, hard = [[20, 0, 0, 0, 0]], [[0, 0, 0, 0, 20]]
    first, other, again = (training.train_epoch(step, 0, counts) for counts in (easy, hard, easy))
    assert len(step.graphs) <= 1 and abs(again - first) < 1e-5 < abs(other - first), (first, other, again)


def bundle_is_alone(device: str, dataset: str) -> None:
    """Every schedule trained among four side by side has the history that it has alone."""
    runs = [Experiment.of("interpolate", dataset, schedule, **TINY) for schedule in SCHEDULES]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(partial(history, device=device), runs))
    for run, one in zip(runs, together, strict=True):
        assert one == history(run, device), run.schedule


def history(run: Experiment, device: str) -> list[dict]:
    """The history of a run, in a stream of its own, without a checkpoint."""
    with stream_of(device):
        held_out = packs.load(run.dataset, "validation")
        x = images_of(run, held_out, run.validation_images, "validation").to(device)
        pack = packs.load(run.dataset, "train", run.train_images).to(device)
        state = training.State(*training.build(run, device), pack, x, [])
        for entry in training.epochs(run, state, device):
            state.history.append(entry)
        return state.history


def stream_of(device: str):
    return torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else nullcontext()


# Probe


def probe(experiment: Experiment, device: str, sides=SIDES, iterations: int = 200) -> dict[str, float]:
    """Milliseconds of a step of one run: `eager`, and by how many runs stand side by side, as a sweep has them."""
    run = replace(experiment, iterations=iterations)
    found = {"eager": timed(run, device, 1, capture=False)}
    return found | {str(n): timed(run, device, n, capture=True) for n in sides}


def timed(run: Experiment, device: str, n: int, capture: bool) -> float:
    """Milliseconds of a step of one of n runs; the first epoch, which captures, is not timed."""
    ready, errors, counts = threading.Barrier(n + 1, timeout=120), [], training.allocation(run, 0, [])

    def work():
        try:
            with stream_of(device):
                step = step_of(run, device)
                step.capture &= capture
                training.train_epoch(step, 0, counts)
                ready.wait()
                training.train_epoch(step, 1, counts)
        except Exception as error:
            errors.append(error)
            ready.abort()

    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    try:
        ready.wait()
    except threading.BrokenBarrierError:
        raise errors[0] if errors else TimeoutError(f"{n} runs side by side did not start in time") from None
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return round(1000 * (time.perf_counter() - start) / (n * run.iterations), 4)


# What comes home


def pack(file: Path, jobs: list[sweep.Job]) -> None:
    """Write every result, the gates and the probe, and a few networks in half precision that no archive held yet."""
    sent = files.runs() / "gpu" / "sent.txt"
    gone = sent.read_text(encoding="utf-8").splitlines() if sent.exists() else []
    weights = {job.name: files.runs() / job.name / "weights.safetensors" for job in jobs if job.experiment}
    ready = [name for name, path in weights.items() if path.exists() and name not in gone][:NETWORKS]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in (files.results(), files.runs() / "gpu"):
            for path in sorted(folder.rglob("*.json")):
                archive.write(path, path.relative_to(files.root()))
        for name in ready:
            archive.writestr(f"data/models/{name.replace('/', '-')}.safetensors", halved(weights[name]))
    files.write_atomically(file, content.getvalue())
    files.write_atomically(sent, "\n".join([*gone, *ready]).encode())


def ship(experiment: Experiment) -> Path:
    """Copy a run's weights to `data/models` in half precision and enter their hash in the manifest."""
    path = files.models() / f"{experiment.run_id.replace('/', '-')}.safetensors"
    content = halved(files.runs() / experiment.run_id / "weights.safetensors")
    files.write_atomically(path, content)
    manifest = path.parent / "manifest.json"
    hashes = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
    hashes[path.name] = hashlib.sha256(content).hexdigest()
    files.write_atomically(manifest, json.dumps(dict(sorted(hashes.items())), indent=1).encode() + b"\n")
    return path


def halved(path: Path) -> bytes:
    """Trained weights in half precision."""
    return save({k: t.half() if t.is_floating_point() else t for k, t in read_weights(path).items()})
