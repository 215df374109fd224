"""Run or load: Algorithm 1 with data and checkpoints, one JSON per run with its provenance, its trained network."""

import base64
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
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
from companion.training import checkpoint, store
from companion.training.device import check_device, prepare
from companion.training.graphs import quickest
from companion.training.store import identity
from odl import PROTOCOL, evaluation
from odl.device import arithmetic, pytorch_defaults
from odl.evaluation import TESTED, images_of, overall, task_of
from odl.experiment import Experiment, check, short
from odl.learn import build, learn
from odl.network import make
from odl.parameters import OneLine, ParameterError
from odl.schedules import SCHEDULES, Schedule, begin
from odl.windows import restorer


@dataclass(frozen=True)
class Result:
    """What one run measured; `path` is its JSON."""

    experiment: dict
    provenance: dict
    history: list[dict]
    evaluation: pd.DataFrame
    path: Path

    @cached_property
    def level_means(self) -> dict[str, dict[str, float]]:
        """The mean over trials of each column of the evaluation: column → level → mean."""
        return self.evaluation.groupby("level").mean().to_dict()


def path_of(experiment: Experiment) -> Path:
    return files.results() / f"{experiment.run_id}.json"


def load(experiment: Experiment, path: Path | None = None) -> Result | None:
    """The measured result of exactly this experiment, or None; of another measurement of it where `path` names one."""
    path = path or path_of(experiment)
    content = store.load(path, identity(experiment))
    return content and as_result(content, path)


def as_result(content: dict, path: Path) -> Result:
    rows = content["evaluation"]
    scores = {name: np.array(rows[name], float) for name in rows if name.startswith(("l2", "psnr"))}  # null is NaN
    return Result(content["experiment"], content["provenance"], content["history"], pd.DataFrame(rows | scores), path)


class Trained(NamedTuple):
    """A trained network, a dict for each epoch, and what training took, interrupted or not."""

    network: torch.nn.Module
    history: list[dict]
    seconds: list[float]  # of the clock and of the processor


def train(experiment, device="auto", progress=None) -> Trained:
    """Train one run, resuming from its checkpoint if there is one; `odl.learn.learn` says what the history holds.
    The network's weights are kept in `runs/`.

    `device` is cpu, cuda or auto; `progress(share done)` is called after every step. Whole epochs are kept: a
    checkpoint is written after the first that ends a minute after the last one, at the end, and when interrupted.
    A network of one's own is a row of `odl.NETWORKS`, a schedule of one's own a row of `odl.SCHEDULES`. Raises
    ParameterError, DataError, DiskError, or TrainingError when a number is not finite.
    """
    return train_with(experiment, device, progress, build, partial(by_schedule, schedule_of(check(experiment))))


@pytorch_defaults()
def train_with(experiment, device, progress, build, learn) -> Trained:
    """Train as `train` does, by `build(experiment, device)` and `learn(experiment, pack, x_validation, network,
    optimizer, history, on_epoch, progress)`. Checkpoints and weights go by the experiment alone, so whatever learns
    otherwise has the name of a schedule of its own.
    """
    check(experiment)
    device = check_device(device)
    owner = checkpoint.owner_of(experiment)  # of the photographs as they are before
    prepare(device)
    with checkpoint.resumed(experiment) as log:
        images = packs.load(experiment.dataset, "train", experiment.train_images).to(device)
        held_out = packs.load(experiment.dataset, "validation")
        x_validation = images_of(experiment, held_out, experiment.validation_images, "validation").to(device)
        log.put_back(*build(experiment, device))
        if len(log.history) < experiment.epochs:
            learn(experiment, images, x_validation, log.network, log.optimizer, log.history, log.add, progress)
        keep_weights(experiment, log.network, owner)
    return Trained(log.network.eval(), log.history, log.seconds)


def by_schedule(schedule: Schedule, experiment, *rest) -> None:
    """Algorithm 1 with this schedule, in the quickest way that this machine has."""
    learn(experiment, schedule, *rest, adapt=quickest)


def needed_by(experiment) -> list[Experiment]:
    """The runs from whose histories the schedule of this one is made."""
    needs = getattr(SCHEDULES[experiment.schedule], "needs", lambda seed: [])  # a function's row has none
    return [replace(experiment, **other) for other in needs(experiment.seed)]


def schedule_of(experiment) -> Schedule:
    """The schedule of a run, ready to be asked. Raises ParameterError where a run that it needs is not measured."""
    found = {run: load(run) for run in needed_by(experiment)}
    for run in (run for run, result in found.items() if result is None):
        raise ParameterError(f"schedule={experiment.schedule!r} needs {run.run_id} first: {command_of(run)}")
    return begin(SCHEDULES[experiment.schedule], [result.history for result in found.values()])


def run_or_load(experiment: Experiment, device="auto", progress=None) -> Result:
    """The result from disk, else train, evaluate, write it, and keep the weights in `runs/`."""
    path, measure = path_of(experiment), lambda: train_and_evaluate(experiment, train, on_levels, device, progress)
    return as_result(store.run_or_load(path, identity(experiment), measure), path)


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
    """The scores of a run on the paper's levels, as its result holds them."""
    rows, images = evaluate(experiment, restorer(trained.network, experiment.precision, device), device, progress)
    short = rows.round({name: 6 if name.startswith("l2") else 5 for name in rows}).to_dict("list")
    columns = {name: [None if v != v else v for v in column] for name, column in short.items()}  # no NaN in JSON
    scores = {score: torch.stack([images[level][score] for level in images]).cpu() for score in images["1"]}
    packed = {s: base64.b64encode(each.numpy().astype("<f2").tobytes()).decode() for s, each in scores.items()}
    return {"evaluation": columns, "per_image": packed}


def per_image(result: Result, score: str = "psnr") -> np.ndarray:
    """What is kept of each image: the mean over trials of `score`, l2 in ‰ or psnr in dB; (8, images), in half
    precision, the rows being levels 1…6, easy and hard."""
    content = files.unseal(result.path)["per_image"][score]
    levels = result.evaluation.level.nunique()
    return np.frombuffer(base64.b64decode(content), "<f2").reshape(levels, -1).astype(float)


def train_and_evaluate(experiment, train, evaluate, device="auto", progress=None) -> dict:
    """What the result of a run holds: train, evaluate. Raises DataError.

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


def provenance(experiment: Experiment, device: str) -> dict:
    """What a number was measured with."""
    pack = packs.load(experiment.dataset, "train", experiment.train_images)
    images = {"data_sha256": pack.sha256, "train_images": len(pack), "skipped_images": list(pack.skipped)}
    how = {"arithmetic": arithmetic(experiment.precision, device), "processor": processor()}
    return origin(device) | how | images


# Networks


class NoWeights(OneLine, FileNotFoundError):
    """A run has no weights here; the message is one line with the command that trains them."""


def network_of(experiment: Experiment) -> torch.nn.Module:
    """The trained network of a run (`place_of_weights`). Raises FileNotFoundError."""
    return with_weights(make(experiment.network, task_of(experiment).channels, experiment.width), experiment)


def with_weights(network, experiment):
    """The network with the trained weights of a run. Raises FileNotFoundError, or DamagedFile."""
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
    """The file with a run's weights: in `runs/`, in `data/models` under the root, or as shipped; None where none is.

    Those in `runs/` may be of the same name and of another protocol, or of photographs that have changed since.
    """
    name = shipped_name(experiment.run_id)
    trained_here = files.runs() / experiment.run_id / "weights.safetensors"
    if trained_here.exists() and checkpoint.is_of(trained_here, checkpoint.owner_of(experiment)):
        return trained_here
    return next(filter(Path.exists, (files.models() / name, files.shipped() / name)), None)


def shipped_name(run_id: str) -> str:
    """The file of a run's weights in `data/models`."""
    return short(run_id.replace("/", "-"), 240) + ".safetensors"


def keep_weights(experiment: Experiment, network, owner: str) -> None:
    """Write a run's weights to `runs/`; `owner` is its `checkpoint.owner_of` from before the training."""
    kept = {name: t.detach().cpu().contiguous() for name, t in network.state_dict().items()}
    files.write_atomically(files.runs() / experiment.run_id / "weights.safetensors", checkpoint.encoded(kept, owner))


def ship(run_id: str) -> Path:
    """Copy a run's weights to `data/models` in half precision and enter their hash in the manifest."""
    trained_here, path = files.runs() / run_id / "weights.safetensors", files.models() / shipped_name(run_id)
    weights = checkpoint.read_weights(trained_here)
    half = {name: t.half() if t.is_floating_point() else t for name, t in weights.items()}
    content, manifest = checkpoint.encoded(half, checkpoint.header(trained_here)[1]), path.parent / "manifest.json"
    files.write_atomically(path, content)
    with files.locked(files.runs() / "locks" / "manifest.lock"):
        hashes = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
        hashes[path.name] = hashlib.sha256(content).hexdigest()
        files.write_atomically(manifest, json.dumps(dict(sorted(hashes.items())), indent=1).encode() + b"\n")
    return path


def command_of(experiment: Experiment) -> str:
    """The command line that makes this run."""
    e = experiment
    extra = "".join(f" --set {name}={value}" for name, value in e.overrides.items())
    return (
        f"python -m odl train --task {quote(e.task)} --dataset {quote(e.dataset)} --schedule {quote(e.schedule)} "
        f"--seed {e.seed} --profile {e.profile}{extra}"
    )


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
            if content.get("protocol") != PROTOCOL or "psnr_input" not in content.get("evaluation", ()):
                continue  # something else than the levels of a run
            scores = overall(pd.DataFrame(content["evaluation"])).mean()
            row = dict(zip(("profile", "dataset", "task", "run"), name.split("/"), strict=True))
            rows.append(row | scores.round(3).to_dict() | {"device": content["provenance"]["device"]})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if not on_bad:
                raise
            on_bad(str(error) if isinstance(error, OneLine) else f"{path}: no result of a run ({error!r})")
    return pd.DataFrame(rows)
