"""Algorithm 1 with data and checkpoints, the scores of a run and of its network, and the network it leaves."""

import base64
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from companion.data import packs
from companion.data.sets import DataError
from companion.disk import files
from companion.disk.provenance import origin, processor
from companion.training import checkpoint
from companion.training.device import check_device, prepare
from companion.training.graphs import quickest
from companion.training.measurement import Measurement, Result, lock_of
from odl import PROTOCOL, evaluation
from odl.device import arithmetic, pytorch_defaults
from odl.evaluation import TESTED, images_of, overall, task_of
from odl.experiment import Experiment, check, short
from odl.learn import build, learn
from odl.network import make
from odl.parameters import OneLine, ParameterError
from odl.schedules import SCHEDULES, Schedule, begin
from odl.windows import restorer

# Measurements of a run and of its network


def path_of(experiment: Experiment) -> Path:
    return files.results() / f"{experiment.run_id}.json"


def measurement_of(experiment: Experiment) -> Measurement:
    """Return the measurement of a run: it is trained, and its network tested on the paper's levels."""
    e = experiment
    work = 3 * e.epochs * e.iterations + work_of_levels(e)  # backward costs twice forward
    make = partial(train_and_evaluate, e, train, on_levels)
    return Measurement(path_of(e), e, make, work, tuple(map(measurement_of, needed_by(e))))


def work_of_levels(experiment) -> int:
    """Return the batches that are passed forward to test a network on the levels."""
    return experiment.trials * len(TESTED) * ceil(experiment.test_images / experiment.batch_size)


def measurement_beside(experiment, name: str, evaluate: Callable, work: float) -> Measurement:
    """Return a measurement of something more of a run's network, beside its result.

    `evaluate(experiment, network, device, progress)` returns the rows.
    """
    path = files.results() / f"{experiment.run_id}-{name}.json"
    make = partial(evaluate_network, experiment, evaluate)
    return Measurement(path, experiment, make, work, (measurement_of(experiment),))


def load_result(experiment: Experiment) -> Result | None:
    """Return the result of exactly this run, or None where it is not measured."""
    return measurement_of(experiment).load()


class Trained(NamedTuple):
    """A trained network, a dict for each epoch, and what training took, interrupted or not."""

    network: torch.nn.Module
    history: list[dict]
    seconds: list[float]  # of the clock, and of the processor by the whole process


def train(experiment, device="auto", progress=None) -> Trained:
    """Train one run, resuming from its checkpoint if there is one; `odl.learn.learn` says what the history holds.
    The network's weights are kept in `runs/`; a result is written by `measurement_of(experiment).run()` alone.

    `device` is cpu, cuda or auto; `progress(share done)` is called after every step. Whole epochs are kept: a
    checkpoint is written after the first that ends a minute after the last one, at the end, and when interrupted.
    A network of one's own is a row of `odl.NETWORKS`, a schedule of one's own a row of `odl.SCHEDULES`. Raises
    ParameterError, DataError, DiskError, or TrainingError when a number is not finite.
    """
    schedule = schedule_of(check(experiment))
    return train_with(experiment, device, progress, build, lambda e, *rest: learn(e, schedule, *rest, adapt=quickest))


@pytorch_defaults()
def train_with(experiment, device, progress, build, learn) -> Trained:
    """Train as `train` does, another network by `build(experiment, device)`, in another way by `learn(experiment,
    pack, x_validation, network, optimizer, history, on_epoch, progress)`. Checkpoints are named after the experiment,
    so another way to learn needs a schedule name of its own.
    """
    check(experiment)
    device = check_device(device)
    owner = checkpoint.owner_of(experiment)  # of the photographs as they are before
    prepare(device)
    with checkpoint.resumed(experiment, progress) as log:
        images = packs.load(experiment.dataset, "train", experiment.train_images).to(device)
        held_out = packs.load(experiment.dataset, "validation")
        x_validation = images_of(experiment, held_out, experiment.validation_images, "validation").to(device)
        log.put_back(*build(experiment, device))
        if len(log.history) < experiment.epochs:
            learn(experiment, images, x_validation, log.network, log.optimizer, log.history, log.add, progress)
        keep_weights(experiment, log.network, owner)
    return Trained(log.network.eval(), log.history, log.seconds)


def needed_by(experiment) -> list[Experiment]:
    """Return the runs from whose histories the schedule of this one is made."""
    needs = getattr(SCHEDULES.get(experiment.schedule), "needs", lambda seed: [])  # a context encoder is in no row
    return [replace(experiment, **other) for other in needs(experiment.seed)]


def schedule_of(experiment) -> Schedule:
    """Return the schedule of a run. Raises ParameterError where a run that it needs is not measured."""
    histories = []
    for needed in needed_by(experiment):
        if not (result := load_result(needed)):
            raise ParameterError(f"schedule={experiment.schedule!r} needs {needed.run_id} first: {command_of(needed)}")
        histories.append(result.history)
    return begin(SCHEDULES[experiment.schedule], histories)


@pytorch_defaults()
def evaluate(experiment, restore, device="auto", progress=None, levels=TESTED) -> tuple[pd.DataFrame, dict]:
    """Return the scores of `restore(y) -> x_hat` on the test crops of an experiment, as `odl.evaluation.evaluate` does.

    `device`, where y lies, is cpu, cuda or auto: where a network is, and for a function a GPU where there is one.
    Raises ParameterError.
    """
    pack, where = packs.load(check(experiment).dataset, "test"), check_device(device)
    if device == "auto" and isinstance(restore, torch.nn.Module):
        where = next((each.device for each in restore.parameters()), where)
    x = images_of(experiment, pack, experiment.test_images, "test").to(where)
    return evaluation.evaluate(experiment, restore, x, progress, levels)


def on_levels(experiment, trained: Trained, device, progress) -> dict:
    """Return the scores of a run on the paper's levels, as its result holds them."""
    rows, images = evaluate(experiment, restorer(trained.network, experiment.precision, device), device, progress)
    rounded = rows.round({name: 6 if name.startswith("l2") else 5 for name in rows}).to_dict("list")
    columns = {name: [None if v != v else v for v in column] for name, column in rounded.items()}  # no NaN in JSON
    scores = {score: torch.stack([images[level][score] for level in images]).cpu() for score in images["1"]}
    packed = {s: base64.b64encode(each.numpy().astype("<f2").tobytes()).decode() for s, each in scores.items()}
    return {"evaluation": columns, "per_image": packed}


def per_image(result: Result, score: str = "psnr") -> np.ndarray:
    """Return the mean over trials of `score` of each image, l2 in ‰ or psnr in dB: (8, images), in half precision.

    The rows are levels 1…6, easy and hard.
    """
    content = files.unseal(result.path)["per_image"][score]
    levels = result.evaluation.level.nunique()
    return np.frombuffer(base64.b64decode(content), "<f2").reshape(levels, -1).astype(float)


def train_and_evaluate(experiment, train, evaluate, device="auto", progress=None) -> dict:
    """Train a run and evaluate it. Returns what its result holds. Raises DataError.

    `train(experiment, device, progress)` returns a `Trained`, and `evaluate(experiment, trained, device, progress)`
    the scores as a dict with at least `evaluation`.
    """
    device, owner = check_device(device), checkpoint.owner_of(experiment)
    trained = train(experiment, device, progress and (lambda done: progress(0.9 * done)))
    wall, core = trained.seconds
    seconds = {"train": round(wall, 1), "train_core": round(core, 1)}
    start = time.monotonic()
    scores = evaluate(experiment, trained, device, progress and (lambda done: progress(0.9 + 0.1 * done)))
    seconds["evaluate"] = round(time.monotonic() - start, 1)
    if checkpoint.owner_of(experiment) != owner:
        raise DataError(f"{experiment.dataset}: its photographs changed while {experiment.run_id} ran; run it again")
    measured_with = provenance(experiment, device) | {"seconds": seconds}
    return {"provenance": measured_with, "history": trained.history} | scores


def evaluate_network(experiment, evaluate: Callable, device="auto", progress=None) -> dict:
    """Return what more is measured of a run's network; it is trained again where it is lost."""
    device, training = check_device(device), 0.9 * (place_of_weights(experiment) is None)  # share of the work
    with lock_of(path_of(experiment), progress):  # of several processes that lack the network one trains it
        if place_of_weights(experiment) is None:
            train(experiment, device, progress and (lambda share: progress(training * share)))
    network, start = load_network(experiment), time.monotonic()
    rows = evaluate(experiment, network, device, progress and (lambda s: progress(training + (1 - training) * s)))
    seconds = {"evaluate": round(time.monotonic() - start, 1)}
    measured_with = provenance(experiment, device) | {"seconds": seconds}
    return {"provenance": measured_with, "history": [], "evaluation": rows.to_dict("list")}


def provenance(experiment: Experiment, device: str) -> dict:
    """Return what a number is measured with."""
    pack = packs.load(experiment.dataset, "train", experiment.train_images)
    images = {"data_sha256": pack.sha256, "train_images": len(pack), "skipped_images": list(pack.skipped)}
    how = {"arithmetic": arithmetic(experiment.precision, device), "processor": processor()}
    return origin(device) | how | images


# Networks


class NoWeights(OneLine, FileNotFoundError):
    """A run has no weights here; the message is one line with the command that trains them."""


def load_network(experiment: Experiment) -> torch.nn.Module:
    """Return the trained network of a run (`place_of_weights`). Raises FileNotFoundError."""
    return with_weights(make(experiment.network, task_of(experiment).channels, experiment.width), experiment)


def with_weights(network, experiment):
    """Return the network with the trained weights of a run. Raises FileNotFoundError, or DamagedFile."""
    path = place_of_weights(experiment)
    if path is None:
        first = f"delete {path_of(experiment)}, and " if path_of(experiment).exists() else ""
        raise NoWeights(f"no weights for {experiment.run_id}: {first}train them with {command_of(experiment)}")
    try:
        network.load_state_dict(checkpoint.read_weights(path))
    except RuntimeError as error:  # other names or shapes
        reason = str(error).splitlines()[0]
        raise files.DamagedFile(f"the weights of {experiment.run_id} are of another network ({reason})") from None
    return network.eval()


def place_of_weights(experiment: Experiment) -> Path | None:
    """Return the file with a run's weights, or None: in `runs/`, in `data/models` under the root, or as shipped.

    Those in `runs/` count only if this run made them by this protocol, those that ship always; a reader's own code has
    none that ship.
    """
    name = shipped_name(experiment.run_id)
    trained_here = files.runs() / experiment.run_id / "weights.safetensors"
    if trained_here.exists() and checkpoint.owner_in(trained_here) in (None, checkpoint.owner_of(experiment)):
        return trained_here
    shipped = () if experiment.code else (files.models() / name, files.shipped() / name)
    return next(filter(Path.exists, shipped), None)


def shipped_name(run_id: str) -> str:
    """Return the name of the file of a run's weights in `data/models`."""
    return short(run_id.replace("/", "-"), 240) + ".safetensors"


def keep_weights(experiment: Experiment, network, owner: str) -> None:
    """Write a run's weights to `runs/`; `owner` is its `checkpoint.owner_of` from before the training."""
    kept = {name: t.detach().cpu().contiguous() for name, t in network.state_dict().items()}
    files.write_atomically(files.runs() / experiment.run_id / "weights.safetensors", checkpoint.encoded(kept, owner))


def ship(run_id: str, name: str = "") -> Path:
    """Copy a run's weights to `data/models` in half precision, under a name if it is given, and enter their hash."""
    trained_here, path = files.runs() / run_id / "weights.safetensors", files.models() / shipped_name(name or run_id)
    weights = checkpoint.read_weights(trained_here)
    half = {name: t.half() if t.is_floating_point() else t for name, t in weights.items()}
    content, manifest = checkpoint.encoded(half, checkpoint.owner_in(trained_here)), path.parent / "manifest.json"
    files.write_atomically(path, content)
    with files.locked(files.runs() / "locks" / "manifest.lock"):
        hashes = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
        hashes[path.name] = hashlib.sha256(content).hexdigest()
        files.write_atomically(manifest, json.dumps(dict(sorted(hashes.items())), indent=1).encode() + b"\n")
    return path


def command_of(experiment: Experiment) -> str:
    """Return the command line that makes this run."""
    names = "task", "dataset", "schedule", "seed", "profile"
    given = [f"--{name} {quote(str(getattr(experiment, name)))}" for name in names]
    given += [f"--set {quote(f'{name}={value}')}" for name, value in experiment.overrides.items()]
    return f"python -m odl train {' '.join(given)}"


def frame(words=(), on_bad: Callable | None = None) -> pd.DataFrame:
    """Return the runs measured by this protocol whose name (profile/dataset/task/run) has all of some words.

    A row each: profile, dataset, task, run, l2 (‰), psnr (dB), device. `on_bad(line)` is told of each file that is no
    whole result, and the others are returned.
    """
    rows = []
    for path in sorted(files.results().glob("*/*/*/*.json")):
        name = path.relative_to(files.results()).with_suffix("").as_posix()
        if not all(word in name for word in words):
            continue
        try:
            content = files.unseal(path)
            of_levels = content.get("history") and "psnr_input" in content.get("evaluation", ())
            if content.get("protocol") != PROTOCOL or not of_levels:
                continue  # something else than the levels of a run
            scores = overall(pd.DataFrame(content["evaluation"])).mean()
            row = dict(zip(("profile", "dataset", "task", "run"), name.split("/"), strict=True))
            rows.append(row | scores.round(3).to_dict() | {"device": content["provenance"]["device"]})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if not on_bad:
                raise
            on_bad(str(error) if isinstance(error, OneLine) else f"{path}: no result of a run ({error!r})")
    return pd.DataFrame(rows)
