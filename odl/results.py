"""Run or load: one JSON per run with its provenance, and the tables made of them."""

import base64
import hashlib
import json
import os
import platform
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from odl import PROTOCOL, data, datasets, judge, paper, paths, store
from odl.evaluate import LEVELS, evaluate, overall, task_of
from odl.experiment import PROFILES, Experiment, check_device
from odl.network import EncoderDecoder
from odl.restore import restorer
from odl.train import Trained, train


@dataclass(frozen=True)
class Result:
    """What one run measured; `path` is its JSON.

    `averaged` has the PSNR (dB) per level of the first trial, of the last weights and of averaged ones. `per_image`:
    score (l2 in ‰, psnr in dB) → a row per level of `evaluate.LEVELS`, a column per test crop, means over trials.
    """

    experiment: dict
    provenance: dict
    history: list[dict]
    evaluation: pd.DataFrame
    path: Path
    averaged: dict = field(default_factory=dict)
    per_image: dict = field(default_factory=dict)


def path_of(experiment: Experiment) -> Path:
    return paths.results() / f"{experiment.run_id}.json"


def load(experiment: Experiment, path: Path | None = None) -> Result | None:
    """The measured result of exactly this experiment, or None; of another measurement of it where `path` names one."""
    path = path or path_of(experiment)
    content = store.load(path, experiment.asdict())
    return content and as_result(content, path)


def as_result(content: dict, path: Path) -> Result:
    frame = pd.DataFrame(content["evaluation"])
    frame = frame.astype({name: float for name in frame if name.startswith(("l2", "psnr"))})  # null is NaN
    scores = {name: unpacked(text) for name, text in content.get("per_image", {}).items()}
    origin = (content["experiment"], content["provenance"], content["history"])
    return Result(*origin, frame, path, content.get("averaged", {}), scores)


def run_or_load(experiment: Experiment, device="auto", progress=None) -> Result:
    """The result from disk, else train, evaluate, write it, and keep the weights in `runs/`."""

    def measure():
        return train_and_evaluate(experiment, train, on_levels, device, progress)

    path = path_of(experiment)
    return as_result(store.run_or_load(path, experiment.asdict(), measure), path)


def on_levels(experiment, trained: Trained, device, progress) -> dict:
    """The scores of a run on the paper's levels, as its result holds them."""
    last, average = (restorer(n, experiment.precision, device) for n in (trained.network, trained.averaged))
    rows, images = evaluate(experiment, last, device, progress)
    once = evaluate(experiment, average, device, trials=1)[0]
    both = {"last": rows[rows.trial == 0], "averaged": once}
    return {
        "evaluation": rounded(rows),
        "averaged": {name: frame.set_index("level").psnr.round(5).to_dict() for name, frame in both.items()},
        "per_image": {score: packed(torch.stack([images[level][score] for level in images])) for score in images["1"]},
    }


def rounded(rows: pd.DataFrame) -> dict:
    """The columns of an evaluation as JSON has them, null where a number does not exist."""
    short = rows.round({name: 6 if name.startswith("l2") else 5 for name in rows})
    return {name: [None if v != v else v for v in column] for name, column in short.to_dict("list").items()}


def packed(scores: torch.Tensor) -> str:
    """Scores (levels, images) as half precision, row by row, in base64."""
    return base64.b64encode(scores.cpu().numpy().astype("<f2").tobytes()).decode()


def unpacked(text: str) -> np.ndarray:
    """The scores (levels, images) of `packed`."""
    return np.frombuffer(base64.b64decode(text), "<f2").reshape(len(LEVELS), -1).astype(float)


def train_and_evaluate(experiment, train, evaluate, device="auto", progress=None) -> dict:
    """What the result of a run holds: train, keep the weights in `runs/`, evaluate.

    `train(experiment, device, progress)` returns a `Trained`, and `evaluate(experiment, trained, device, progress)`
    the scores as a dict with at least `evaluation`.
    """
    start, cpu, device = time.monotonic(), time.process_time(), check_device(device)
    trained = train(experiment, device, progress and (lambda done: progress(0.9 * done)))
    seconds = {"train": round(time.monotonic() - start, 1), "train_core": round(time.process_time() - cpu, 1)}
    keep_weights(experiment, trained.network)
    start = time.monotonic()
    scores = evaluate(experiment, trained, device, progress and (lambda done: progress(0.9 + 0.1 * done)))
    seconds["evaluate"] = round(time.monotonic() - start, 1)
    return {
        "provenance": provenance(experiment, device) | {"seconds": seconds},
        "history": trained.history,
        **scores,
    }


def provenance(experiment: Experiment, device: str) -> dict:
    """What a number was measured with."""
    pack = data.load(experiment.dataset, "train", experiment.train_images)
    return {
        "commit": commit(),
        "device": device_name(device),
        "versions": {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]},
        "data_sha256": pack.sha256,
        "train_images": len(pack),
        "skipped_images": list(pack.skipped),
    }


def device_name(device: str) -> str:
    """The GPU's name, or how many threads the CPU was given."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return "CPU, 1 thread" if threads == 1 else f"CPU, {threads} threads"


def commit(*folders: Path) -> str:
    """The commit of the code, marked when odl or one of `folders` has changes; `unknown` outside a repository."""
    if os.environ.get("ODL_COMMIT"):  # where the repository did not come along
        return os.environ["ODL_COMMIT"]
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        answers = [
            subprocess.run([*git, *command], capture_output=True, text=True, check=True).stdout.strip()
            for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", ".", *map(str, folders)])
        ]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    name, changes = answers
    return f"{name}-dirty" if changes else name


# Networks


def network_of(experiment: Experiment) -> EncoderDecoder:
    """The trained network of a run, from `runs/`, else from the weights that ship. Raises FileNotFoundError."""
    return with_weights(EncoderDecoder(task_of(experiment).channels, experiment.width), experiment)


def with_weights(network, experiment):
    """The network with the trained weights of a run. Raises FileNotFoundError, or DamagedFile."""
    try:
        network.load_state_dict(weights_of(experiment))
    except RuntimeError as error:  # other names or shapes
        reason = str(error).splitlines()[0]
        raise paths.DamagedFile(f"the weights of {experiment.run_id} are of another network ({reason})") from None
    return network.eval()


def weights_of(experiment: Experiment) -> dict[str, torch.Tensor]:
    """The weights of a run in single precision, from `runs/`, else those that ship.

    Raises FileNotFoundError, or DamagedFile.
    """
    path = place_of_weights(experiment)
    if path is None:
        raise FileNotFoundError(f"no weights for {experiment.run_id}: train them with {command_of(experiment)}")
    if path.parent in (paths.models(), paths.shipped()):
        check_manifest(path)
    return {name: t.float() if t.is_floating_point() else t for name, t in read_weights(path).items()}


def place_of_weights(experiment: Experiment) -> Path | None:
    """The file with a run's weights: in `runs/`, in `data/models` under the root, or as shipped; None where none is."""
    name = experiment.run_id.replace("/", "-") + ".safetensors"
    places = (
        paths.runs() / experiment.run_id / "weights.safetensors",
        paths.models() / name,
        paths.shipped() / name,
    )
    return next((path for path in places if path.exists()), None)


def keep_weights(experiment: Experiment, network) -> None:
    """Write a run's weights to `runs/`, with the SHA-256 of all of them in the header."""
    weights = {name: t.detach().cpu().contiguous() for name, t in network.state_dict().items()}
    content = save(weights, {"sha256": hash_of(weights)})
    paths.write_atomically(paths.runs() / experiment.run_id / "weights.safetensors", content)


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors in a file of safetensors, checked against the SHA-256 in its header where it has one."""
    try:
        weights = load_file(path)
        with safe_open(path, "pt") as file:
            expected = (file.metadata() or {}).get("sha256")
    except SafetensorError as error:
        reason = str(error).splitlines()[0]
        raise paths.DamagedFile(f"{path}: not a whole file of safetensors ({reason}); delete it") from None
    if expected and expected != hash_of(weights):
        raise paths.DamagedFile(f"{path}: changed since it was written; delete it and train again")
    return weights


def hash_of(weights: dict[str, torch.Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name, t in sorted(weights.items()):
        total.update(f"{name} {t.dtype} {tuple(t.shape)} ".encode() + t.view(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def network_or_none(experiment: Experiment) -> EncoderDecoder | None:
    """The trained network of a run; None, with a line that says how to get it, where there are no weights."""
    try:
        return network_of(experiment)
    except FileNotFoundError as error:
        print(error)
        return None


def networks(experiments: list[Experiment]) -> dict[str, EncoderDecoder]:
    """schedule → trained network of the measured runs; one line names those whose weights are not here."""
    found, absent = {}, []
    for experiment in experiments:
        try:
            if load(experiment):
                found[experiment.schedule] = network_of(experiment)
        except FileNotFoundError:
            absent.append(experiment.run_id)
    if absent:
        print(f"No weights here for {', '.join(absent)}: numbers are shown, pictures left out.")
    return found


def all_rounder(task: str) -> Experiment:
    """The best on-demand run whose weights are here, for `odl.restore`: a long one, else the one that ships."""
    short = Experiment.of(task, "bsds500", "on_demand", profile="reference")
    long = [Experiment.of(task, "bsds500", "on_demand", profile="reference", **LONG["reference"])]
    if task == "denoise":  # at the resolution of photographs, for Table 3
        long.insert(0, db11_experiment("on_demand"))
    return next((run for run in long if place_of_weights(run)), short)


# For the networks behind pictures and for Table 3's.
LONG = {profile: {"epochs": 6 * PROFILES[profile]["epochs"]} for profile in ("reference", "gpu")}


def db11_experiment(schedule: str, profile: str = "reference", dataset: str = "bsds500-native") -> Experiment:
    """The denoiser of Table 3, trained on crops at native resolution; fixated means σ = 25."""
    severity = {"severity": 25.0} if schedule == "fixated_hard" else {}
    return Experiment.of("denoise", dataset, schedule, profile=profile, **LONG.get(profile, {}), **severity)


def command_of(experiment: Experiment) -> str:
    """The command line that makes this run."""
    e = experiment
    extra = "".join(f" --set {name}={value}" for name, value in e.overrides.items())
    return (
        f"python -m odl train --task {e.task} --dataset {e.dataset} --schedule {e.schedule} "
        f"--seed {e.seed} --profile {e.profile}{extra}"
    )


def check_manifest(path: Path) -> None:
    """Raise DamagedFile when shipped weights differ from the manifest."""
    manifest = paths.unseal(path.parent / "manifest.json")
    if hashlib.sha256(path.read_bytes()).hexdigest() != manifest.get(path.name):
        raise paths.DamagedFile(f"{path}: its SHA-256 is not the one in manifest.json; fetch the file again")


def ship(experiment: Experiment) -> Path:
    """Copy a run's weights to `data/models` in half precision and enter their hash in the manifest."""
    state = read_weights(paths.runs() / experiment.run_id / "weights.safetensors")
    half = {key: value.half() if value.is_floating_point() else value for key, value in state.items()}
    path = paths.models() / (experiment.run_id.replace("/", "-") + ".safetensors")
    content = save(half)
    paths.write_atomically(path, content)
    manifest_path = path.parent / "manifest.json"
    manifest = json.loads(manifest_path.read_text()) if manifest_path.exists() else {}
    manifest[path.name] = hashlib.sha256(content).hexdigest()
    paths.write_atomically(manifest_path, json.dumps(dict(sorted(manifest.items())), indent=1).encode() + b"\n")
    return path


# Tables


def frame() -> pd.DataFrame:
    """Every measured run, a row each: profile, dataset, task, run, l2 (‰), psnr (dB), device."""
    rows = []
    for path in sorted(paths.results().glob("*/*/*/*.json")):
        content = paths.unseal(path)
        if "1" not in content["evaluation"]["level"]:
            continue  # Table 2's blocks have no levels
        profile, dataset, task = path.relative_to(paths.results()).parts[:3]
        scores = overall(pd.DataFrame(content["evaluation"])).mean()
        row = {"profile": profile, "dataset": dataset, "task": task, "run": path.stem}
        rows.append(row | scores.round(3).to_dict() | {"device": content["provenance"]["device"]})
    return pd.DataFrame(rows)


def table1(results: list[Result], task: str) -> pd.DataFrame:
    """Table 1 of one task, the damaged images and the paper's rows: means over seeds and trials, the paper's numbers.

    Columns schedule (first `not_restored`), seeds (how many), l2 (‰), l2_sd, psnr (dB), psnr_sd (standard deviations
    over seeds), psnr_kept and psnr_hole (known pixels kept, and inside the missing ones, where pixels are missing);
    then ahead (dB by which on-demand is, over the seeds that both have), low and high (its 95 % interval), and verdict;
    then the paper's l2 and psnr on CelebA and SUN397.
    """
    runs, damaged = judge.keyed(results), baselines(results)
    rows = [{"schedule": NOT_RESTORED, "l2": damaged.l2_input, "psnr": damaged.psnr_input}]
    rows[0] |= {"psnr_hole": damaged.hole_input, "verdict": ""}
    for schedule in paper.SCHEDULES:
        celeba, sun397 = paper.TABLE1[task][schedule]
        found = [r for r in results if r.experiment["schedule"] == schedule]
        row = {"schedule": schedule} | over_seeds(found)
        row |= baselines(found)[["psnr_kept", "psnr_hole"]].to_dict()
        margins = judge.gaps(runs, task, "on_demand", schedule) if schedule != "on_demand" else []
        low, high = judge.interval(margins) if len(margins) > 1 else (float("nan"),) * 2
        row |= {"ahead": np.mean(margins) if margins else float("nan"), "low": low, "high": high}
        below = [""] if judge.below_input(runs, task, "on_demand", schedule) else []
        row["verdict"] = judge.judge({"": margins}, below=below).word if schedule != "on_demand" else ""
        for name, (l2, psnr) in (("celeba", celeba), ("sun397", sun397)):
            row |= {f"paper_{name}_l2": l2, f"paper_{name}_psnr": psnr}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(rows[-1])).astype({"seeds": "Int64"})


NOT_RESTORED = "not_restored"  # the damaged images themselves, where schedules go by name
SCORED = {"psnr": "all pixels", "psnr_kept": "known pixels kept", "psnr_hole": "missing pixels"}


def baselines(found: list[Result]) -> pd.Series:
    """Means over levels 1…6, trials and seeds: l2_input (‰), psnr_input, psnr_kept, psnr_hole, hole_input (dB)."""
    columns = ["l2_input", "psnr_input", "psnr_kept", "psnr_hole", "hole_input"]
    frames = [scores(r.evaluation)[lambda rows: rows.level.str.isdigit()][columns] for r in found]
    return pd.concat(frames).mean() if frames else pd.Series(np.nan, columns)


def scores(evaluation: pd.DataFrame) -> pd.DataFrame:
    """An evaluation with hole_input: PSNR (dB) of the damaged image inside its missing pixels.

    Inside is above the whole image by the share of it that is missing, in dB, whatever fills it, where the rest is
    known: by as much as the output's psnr_hole is below psnr_kept.
    """
    return evaluation.assign(hole_input=evaluation.psnr_input + evaluation.psnr_hole - evaluation.psnr_kept)


def level_table(results: list[Result]) -> pd.DataFrame:
    """PSNR (dB) per level, a row per schedule and the damaged images, means over seeds and trials.

    Columns scored (of `SCORED`: what pixels), schedule (first `not_restored`), level_1 … level_6, mean (of these six),
    easy and hard (the severities of the fixated models).
    """
    frames, rows = {}, []
    for result in results:
        frames.setdefault(result.experiment["schedule"], []).append(scores(result.evaluation))
    means = {schedule: pd.concat(part).groupby("level").mean(numeric_only=True) for schedule, part in frames.items()}
    everything = pd.concat(sum(frames.values(), [])).groupby("level").mean(numeric_only=True) if frames else None
    for column, scored in SCORED.items():
        given = {"psnr": "psnr_input", "psnr_hole": "hole_input"}.get(column)  # with known pixels kept it is itself
        parts = {NOT_RESTORED: everything[given]} if given and frames else {}
        for schedule, mean in (parts | {schedule: mean[column] for schedule, mean in means.items()}).items():
            levels = {f"level_{level}": mean[str(level)] for level in range(1, paper.N_LEVELS + 2)}
            ends = {"mean": sum(levels.values()) / len(levels), "easy": mean["easy"], "hard": mean["hard"]}
            rows.append({"scored": scored, "schedule": schedule} | levels | ends)
    columns = [*(f"level_{level}" for level in range(1, paper.N_LEVELS + 2)), "mean", "easy", "hard"]
    table = pd.DataFrame(rows, columns=["scored", "schedule", *columns]).astype(dict.fromkeys(columns, float))
    return table.dropna(subset="mean").reset_index(drop=True)


EXTRA_DATA = ("on-demand, half", "rigid joint, half", "rigid joint, all")  # the order of experiment.extra_data


def extra_data_runs(experiments: list[Experiment]) -> dict[str, list[Result]]:
    """The measured runs of `experiment.extra_data` by name, a result per seed; empty lists where nothing is."""
    found = [load(e) for e in experiments]
    return {name: [r for r in found[i :: len(EXTRA_DATA)] if r] for i, name in enumerate(EXTRA_DATA)}


def extra_data_table(runs: dict[str, list[Result]]) -> pd.DataFrame:
    """Sec. 6.6: columns run, train_images, seeds, l2 (‰), l2_sd, psnr (dB), psnr_sd (over seeds)."""
    rows = [
        {"run": name, "train_images": found[0].provenance["train_images"] if found else pd.NA} | over_seeds(found)
        for name, found in runs.items()
    ]
    return pd.DataFrame(rows).astype({"train_images": "Int64"})


def over_seeds(found: list[Result]) -> dict:
    """Means over levels 1…6, trials and seeds, and standard deviations over seeds: seeds, l2, l2_sd, psnr, psnr_sd."""
    means = pd.DataFrame([overall(r.evaluation).mean() for r in found], columns=["l2", "psnr"])
    row = {"seeds": len(means)}
    for column in means:
        row |= {column: means[column].mean(), f"{column}_sd": means[column].std()}
    return row


def record(**parameters) -> dict:
    """What a notebook was run with: its parameters, hashes and versions, and the results files behind what it shows."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    hashes = {"config": paths.seal_of(parameters), "data": data_hash(parameters.get("dataset"))}
    when = {"commit": commit(), "versions": versions, "time": time.strftime("%Y-%m-%d %H:%M")}
    return {"parameters": parameters, "sha256": hashes} | when | {"results": store.names_of_used()}


def data_hash(dataset: str | None) -> str | None:
    """SHA-256 of a set's packed pixels, None where it is not packed."""
    index = data.folder_of(dataset or "") / "index.json"
    return paths.unseal(index)["sha256"] if dataset and index.exists() else None


def fault_of(path: Path) -> str | None:
    """Why a results file is not one to publish: its protocol, or its commit; None where it is, or is no experiment."""
    content = paths.unseal(path) if path.suffix == ".json" else {}
    if not {"experiment", "provenance"} <= content.keys():
        return None
    commit = content["provenance"]["commit"]
    faults = {
        "of another protocol": content.get("protocol") != PROTOCOL,
        "of an unknown commit": commit == "unknown",
        "of code with uncommitted changes": commit.endswith("-dirty"),
    }
    return next((fault for fault, found in faults.items() if found), None)


def write_table(frame: pd.DataFrame, notebook: str, profile: str, dataset: str, task: str) -> Path:
    """Write the table a notebook shows to `data/results/<profile>/tables/`; nothing where no number in it is ours."""
    path = table_path(notebook, profile, dataset, task)
    measured = frame.notna()
    if "psnr" in frame:  # a row of what is still to be measured has the paper's numbers alone
        measured = frame.psnr.notna()
    elif "verdict" in frame:
        measured = frame.verdict != judge.MISSING
    if measured.any(axis=None):
        paths.write_atomically(store.used(path), frame.to_csv(index=False).encode())
    return path


def table_path(notebook: str, profile: str, dataset: str, task: str) -> Path:
    return paths.results() / profile / "tables" / f"{notebook}-{datasets.slug(dataset)}-{task}.csv"
