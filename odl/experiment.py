"""`Experiment`: the frozen description of one training run, and the validation of everything a user can pass."""

import ast
import difflib
import math
import os
import re
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path

from odl import datasets, paper, paths
from odl.schedules import SCHEDULES

# Where a profile departs from the paper (batch 100, rate 2e-4 throughout), the fidelity page says why.
PROFILES = {
    # Sized so that every notebook runs in seconds.
    "smoke": {
        **{"width": 8, "epochs": 2, "iterations": 3, "batch_size": 10, "learning_rate": 2e-3, "decay": 0.5},
        **{"precision": "fp32", "pool_images": 50, "validation_images": 16, "test_images": 16, "trials": 2},
    },
    # A laptop: all seven schedules of one task in three minutes on 2 cores.
    "demo": {
        **{"width": 16, "epochs": 20, "iterations": 100, "batch_size": 16, "learning_rate": 4e-3, "decay": 0.4},
        **{"precision": "fp32", "pool_images": 5_000, "validation_images": 100, "test_images": 200, "trials": 3},
    },
    # The measured results of the book, sized for two CPU cores; the pilot is in pilot.py.
    "reference": {
        **{"width": 32, "epochs": 50, "iterations": 200, "batch_size": 32, "learning_rate": 2e-3, "decay": 0.2},
        **{"precision": "bf16", "pool_images": 20_000, "validation_images": 200, "test_images": 500, "trials": 20},
    },
    # Half an hour of one GPU.
    "gpu": {
        **{"width": 64, "epochs": 100, "iterations": 200, "batch_size": 100, "learning_rate": 2e-4, "decay": 0.0},
        **{"precision": "bf16", "pool_images": 100_000, "validation_images": 500, "test_images": 500, "trials": 20},
    },
    # Sec. 6.2 and 6.3.
    "paper": {
        **{"width": 64, "epochs": 1500, "iterations": 1000, "batch_size": 100, "learning_rate": 2e-4, "decay": 0.0},
        **{"precision": "fp32", "pool_images": 1_000_000},
        **{"validation_images": 1000, "test_images": 1000, "trials": 20},
    },
}
PRECISIONS = ("fp32", "bf16", "fp64")  # fp64 for golden runs: 40 steps of Adam in fp32 differ between machines
VARIANTS = ("paper", "released")
DEVICES = ("auto", "cpu", "cuda")


class ParameterError(paths.OneLine, ValueError):
    """A parameter is wrong; the message is one line that names it, its value and the nearest good one."""


@dataclass(frozen=True)
class Experiment:
    """One run: `Experiment.of(task="inpaint", schedule="on_demand", profile="demo")`.

    The learning rate stays until the last share `decay` of training, in which it falls in a straight line to 0.
    `severity` moves the single severity of a fixated model (task's unit, 0: the paper's).
    `train_images` limits the training images (0: all that the paper uses of the set).
    `sharpness` is the k of B_i ∝ 1/P_i^k in on-demand learning (Eq. 3 has 1).
    """

    task: str
    dataset: str
    schedule: str
    seed: int
    profile: str
    width: int
    epochs: int
    iterations: int
    batch_size: int
    learning_rate: float
    decay: float
    precision: str
    pool_images: int
    validation_images: int
    test_images: int
    trials: int
    severity: float = 0.0
    train_images: int = 0
    variant: str = "paper"
    sharpness: float = 1.0

    @classmethod
    def of(cls, task="inpaint", dataset="demo", schedule="on_demand", seed=0, profile="demo", **overrides):
        """A validated experiment: a profile's numbers, any of them overridden. Raises ParameterError."""
        choice("profile", profile, PROFILES)
        unknown = set(overrides) - {field.name for field in fields(cls)}
        if unknown:
            name = sorted(unknown)[0]
            raise ParameterError(f"unknown parameter {name!r}{nearest(name, [f.name for f in fields(cls)])}")
        given = {"task": task, "dataset": dataset, "schedule": schedule, "seed": seed, "profile": profile}
        return cls(**given, **(PROFILES[profile] | overrides))

    def __post_init__(self):
        choice("task", self.task, paper.TASKS)
        choice("schedule", self.schedule, SCHEDULES)
        choice("variant", self.variant, VARIANTS)
        choice("precision", self.precision, PRECISIONS)
        known_dataset(self.dataset)
        integer("seed", self.seed, 0, 2**31)
        for name, low, high in (("width", 4, 256), ("epochs", 1, 10**6), ("iterations", 1, 10**6)):
            integer(name, getattr(self, name), low, high)
        for name in ("validation_images", "test_images", "batch_size", "pool_images"):
            integer(name, getattr(self, name), 1, 10**8)
        integer("trials", self.trials, 2, 10**4)
        integer("train_images", self.train_images, 0, 10**8)
        number("learning_rate", self.learning_rate, 1e-8, 1)
        number("decay", self.decay, 0, 1)
        number("sharpness", self.sharpness, -64, 64)
        if self.sharpness != 1 and self.schedule != "on_demand":
            raise ParameterError(
                f"sharpness={self.sharpness!r} belongs to schedule 'on_demand', not to {self.schedule!r}"
            )
        top = paper.TASKS[self.task]["levels"][-1][1]
        number("severity", self.severity, 0, top)
        if self.task == "inpaint" and self.severity != round(self.severity):
            nearest_side = round(self.severity)
            raise ParameterError(f"severity={self.severity!r} is not a whole number of pixels; nearest: {nearest_side}")
        if self.severity and not self.schedule.startswith("fixated"):
            raise ParameterError(f"severity={self.severity!r} belongs to a fixated schedule, not to {self.schedule!r}")

    @property
    def overrides(self) -> dict:
        """The numbers that differ from the profile's."""
        plain = PROFILES[self.profile] | {f.name: f.default for f in fields(self) if f.default is not MISSING}
        return {name: getattr(self, name) for name in plain if getattr(self, name) != plain[name]}

    @property
    def run_id(self) -> str:
        """`<profile>/<dataset>/<task>/<schedule>-seed<k>`, then whatever is overridden."""
        extra = "".join(f"-{name}={text(value)}" for name, value in self.overrides.items())
        folder = f"{self.profile}/{datasets.slug(self.dataset)}/{self.task}"
        return f"{folder}/{self.schedule}-seed{self.seed}{extra}"

    def asdict(self) -> dict:
        """The fields as JSON, without those that are as by default; a folder goes by its last name only."""
        plain = {f.name: f.default for f in fields(self)}
        given = {name: value for name, value in asdict(self).items() if value != plain[name]}
        return given | {"dataset": datasets.slug(self.dataset)}


def extra_data_sizes(dataset: str) -> tuple[int, int]:
    """Half and all of the training images for the test of Sec. 6.6."""
    # Paper: 100,000 and 200,000 faces of CelebA; here: 162,770, all that its official partition trains on,
    # and half and all of any other set, because none has as many.
    known_dataset(dataset)
    known = {"celeba": (100_000, 162_770), "sun397": (50_000, 100_000), "bsds500": (200, 400), "demo": (4, 9)}
    base = datasets.parse(dataset)[0]
    whole = 0 if base in known else len(datasets.list_images(dataset, datasets.find(dataset))["train"])
    return known.get(base, (max(1, whole // 2), whole))


def extra_data(task: str, dataset: str, profile: str, seeds: list[int]) -> list[Experiment]:
    """Sec. 6.6: on-demand and rigid joint learning with half of the training images, rigid joint with all of them."""
    half, whole = extra_data_sizes(dataset)
    standard = datasets.DATASETS.get(datasets.parse(dataset)[0], {}).get("train_images", whole)
    runs = (("on_demand", half), ("rigid_joint", half), ("rigid_joint", whole))
    return [
        Experiment.of(task, dataset, name, seed, profile, train_images=0 if n == standard else n)
        for seed in seeds
        for name, n in runs
    ]


def text(value) -> str:
    """A number as it stands in names, every digit of it: 25 and 25.0 are the same."""
    return str(value).removesuffix(".0")


def nearest(value, options) -> str:
    """`; nearest: …` when one option resembles the value."""
    match = difflib.get_close_matches(str(value), [str(option) for option in options], n=1, cutoff=0.5)
    return f"; nearest: {match[0]!r}" if match else ""


def choice(name: str, value, options) -> None:
    if not isinstance(value, str) or value not in options:
        raise ParameterError(f"{name}={value!r} is not one of {', '.join(options)}{nearest(value, options)}")


def number(name: str, value, low: float, high: float) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not low <= value <= high:
        hint = f"; nearest: {min(max(value, low), high)!r}" if good else ""
        raise ParameterError(f"{name}={value!r} is not a number from {low} to {high}{hint}")


def integer(name: str, value, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ParameterError(f"{name}={value!r} is not a whole number from {low} to {high}")
    if not low <= value <= high:
        raise ParameterError(f"{name}={value} is not from {low} to {high}; nearest: {min(max(value, low), high)}")


def duration(name: str, value: str) -> float:
    """Seconds of `90s`, `10min`, `8h` or `2d`. Raises ParameterError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h|d)", value)
    if not match:
        raise ParameterError(f"{name}={value!r} is not a time such as 90s, 10min, 8h or 2d")
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[match[2]]


def known_dataset(name, parameter: str = "dataset") -> None:
    base = datasets.parse(name)[0] if isinstance(name, str) and name else ""
    if base not in datasets.DATASETS and not os.path.isdir(base):
        raise ParameterError(datasets.unknown(str(name), parameter) + nearest(name, datasets.DATASETS))


def check_seeds(seeds) -> list[int]:
    """A list of seeds, or one seed. Raises ParameterError."""
    seeds = listed(seeds)
    seeds = seeds if isinstance(seeds, list | tuple) else [seeds]
    if not seeds:
        raise ParameterError("seeds=[] is empty; nearest: [0]")
    for seed in seeds:
        integer("seeds", seed, 0, 2**31)
    return list(dict.fromkeys(seeds))


def check_image(name: str, value) -> Path | None:
    """The path of an image: a file, or a demo photograph by its name; None for an empty string."""
    if value == "":
        return None
    photographs = [file for files in datasets.DEMO.values() for file in files]
    if value in photographs:
        return datasets.find("demo") / value
    if not isinstance(value, str) or not os.path.isfile(value):
        options = ", ".join(photographs)
        raise ParameterError(f"{name}={value!r} is neither a file nor one of {options}{nearest(value, photographs)}")
    return Path(value)


def check_systems(systems, known: str) -> list[str]:
    """A list of systems, each of `known`. Raises ParameterError."""
    systems = listed(systems)
    if not isinstance(systems, list) or not systems:
        raise ParameterError(f"systems={systems!r} is not a list of some of {', '.join(known.split())}")
    for system in systems:
        choice("systems", system, known.split())
    return list(dict.fromkeys(systems))


def check_sigmas(sigmas) -> list[float]:
    """A list of noise levels σ on the 0–255 scale. Raises ParameterError."""
    sigmas = listed(sigmas)
    if not isinstance(sigmas, list) or not sigmas:
        raise ParameterError(f"sigmas={sigmas!r} is not a list of numbers from 1 to 120; nearest: [25]")
    for sigma in sigmas:
        number("sigmas", sigma, 1, 120)
    return list(dict.fromkeys(sigmas))


def listed(value):
    """The list that text such as `[bm3d, ksvd]` or `[0, 1]` means: papermill's -p passes lists as text."""
    if not isinstance(value, str) or value[:1] + value[-1:] != "[]":
        return value
    return [word_or_number(word.strip(" '\"")) for word in value[1:-1].split(",") if word.strip()]


def word_or_number(word: str):
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word


def flag(name: str, value) -> None:
    if not isinstance(value, bool):
        raise ParameterError(f"{name}={value!r} is not True or False")


def check_device(device) -> str:
    """`auto` becomes cuda where there is one, else cpu. Raises ParameterError."""
    choice("device", device, DEVICES)
    if device == "cpu":
        return device
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ParameterError("device='cuda' is not available on this machine; nearest: 'cpu'")
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_parameters(namespace: dict, names: str) -> None:
    """Refuse a parameter that papermill injected and the notebook does not know. `names`: the known ones.

    `namespace` is the notebook's globals, which hold the cells that ran as `In`; papermill itself only logs a misspelt
    parameter. What else a reader has defined in the kernel is no concern, so that every cell can run again.
    """
    known = names.split()
    for name in (name for cell in namespace.get("In", []) for name in injected(cell)):
        if name not in known:
            raise ParameterError(f"unknown parameter {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    if "device" in namespace:
        choice("device", namespace["device"], DEVICES)
    if "profile" in namespace:
        choice("profile", namespace["profile"], PROFILES)
    if "train" in namespace:
        flag("train", namespace["train"])


def injected(cell: str) -> list[str]:
    """The names that a cell of papermill sets, but for its own PAPERMILL_…; none for any other cell."""
    if not cell.startswith("# Parameters\n"):
        return []
    names = [target.id for node in ast.parse(cell).body if isinstance(node, ast.Assign) for target in node.targets]
    return [name for name in names if not name.startswith("PAPERMILL_")]
