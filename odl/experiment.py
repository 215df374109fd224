"""`Experiment`: the frozen description of one training run, and the profiles of numbers (Sec. 6.1 to 6.3)."""

import hashlib
import os
import re
from dataclasses import MISSING, asdict, dataclass, fields

import numpy as np

from odl import paper, rivals
from odl.identity import code_of, is_own
from odl.parameters import ParameterError, choice, integer, nearest, number
from odl.rivals import SCHEDULES  # the paper's, and what came later
from odl.schedules import on_demand

# Where a profile departs from the paper (batch 100, rate 2e-4 throughout), the fidelity page says why.
# fmt: off
PROFILES = {
    # Sized so that every notebook runs in seconds.
    "smoke": {
        "width": 8, "epochs": 2, "iterations": 3, "batch_size": 10, "learning_rate": 2e-3, "decay": 0.5,
        "precision": "fp32", "pool_images": 50, "validation_images": 16, "test_images": 16, "trials": 2,
    },
    # A laptop: all seven schedules of one task in three minutes on 2 cores.
    "demo": {
        "width": 16, "epochs": 20, "iterations": 100, "batch_size": 16, "learning_rate": 4e-3, "decay": 0.4,
        "precision": "fp32", "pool_images": 5_000, "validation_images": 100, "test_images": 200, "trials": 3,
    },
    # The measured results of the book, sized for two CPU cores; their pilot is in the tables of data/results.
    "reference": {
        "width": 32, "epochs": 50, "iterations": 200, "batch_size": 32, "learning_rate": 2e-3, "decay": 0.2,
        "precision": "bf16", "pool_images": 20_000, "validation_images": 200, "test_images": 500, "trials": 20,
    },
    # Half an hour of one GPU; its rate is higher than the paper's and falls, because it is shorter by 75 times.
    "gpu": {
        "width": 64, "epochs": 100, "iterations": 200, "batch_size": 100, "learning_rate": 5e-4, "decay": 0.2,
        "precision": "bf16", "pool_images": 20_000, "validation_images": 500, "test_images": 500, "trials": 20,
    },
    # Sec. 6.1 to 6.3.
    "paper": {
        "width": 64, "epochs": 1500, "iterations": 1000, "batch_size": 100, "learning_rate": 2e-4, "decay": 0.0,
        "precision": "fp32", "pool_images": 1_000_000, "validation_images": 1000, "test_images": 1000, "trials": 20,
    },
}
# fmt: on
# What a network changes of a profile's numbers. The residual U-Net takes half of the reference steps; its rate is the
# best of three by validation PSNR after 2,000 steps (equal shares, mean of four tasks, seed 99).
FOR_NETWORK = {"unet": {name: {"learning_rate": 2e-3, "beta1": 0.9, "warm_up": 0.02, "clip": 0.1} for name in PROFILES}}
FOR_NETWORK["unet"]["reference"] |= {"iterations": 100}
FOR_NETWORK["unet"]["gpu"] |= {"width": 32}
# Names of rows; a row by another one is a reader's, whatever it is. Another shipped row by a shipped name is not told.
SHIPPED = {*paper.AS_SHIPPED, *rivals.SHIPPED, "paper", "unet"}
PRECISIONS = ("fp32", "bf16", "fp64")  # fp64 for golden runs: 40 steps of Adam in fp32 differ between machines
WHOLE = {"seed": (0, 2**31), "width": (4, 256), "trials": (2, 10**4), "train_images": (0, 10**8)}  # parameter → ends
WHOLE |= dict.fromkeys(("epochs", "iterations"), (1, 10**6))
WHOLE |= dict.fromkeys(("validation_images", "test_images", "batch_size", "pool_images"), (1, 10**8))
REAL = {"learning_rate": (1e-8, 1), "decay": (0, 1), "sharpness": (-64, 64)}
REAL |= {"beta1": (0, 0.999), "warm_up": (0, 1), "clip": (0, 1e6)}


def python_number(name: str, value):
    """Return a number as Python and JSON have it: not NumPy's, and 30.0 epochs are 30."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if name in WHOLE and isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class Experiment:
    """One run: `Experiment.of(task="inpaint", schedule="on_demand", profile="demo")`."""

    task: str
    dataset: str
    schedule: str
    seed: int
    profile: str
    width: int  # feature maps of the first layer; the paper's 64 is an eighth of the 512 of Supp. B
    epochs: int  # validations, and divisions of a batch
    iterations: int  # training steps of an epoch
    batch_size: int
    learning_rate: float
    decay: float  # the last share of training, in which the rate falls in a straight line to 0
    precision: str  # of products
    pool_images: int  # crops in the pool of hard mining
    validation_images: int  # crops a level; photographs are cropped several times where they are fewer
    test_images: int  # crops a level and trial, likewise
    trials: int  # times that the test crops are damaged afresh
    severity: float = 0.0  # the one of a fixated model, in the task's unit (0: the paper's)
    train_images: int = 0  # photographs (0: all that the paper uses of the set)
    sharpness: float = 1.0  # k of B_i ∝ 1/P_i^k in on-demand learning (Eq. 3 has 1)
    network: str = "paper"  # a row of `odl.network.NETWORKS`
    beta1: float = 0.5  # first-moment decay of Adam
    warm_up: float = 0.0  # the first share of training, in which the rate rises in a straight line from 0
    clip: float = 0.0  # largest norm of a step's gradient (0: any)
    code: str = ""  # hash of what a reader added, of the task, the schedule and the network; found, never given

    @classmethod
    def of(cls, /, task="inpaint", dataset="demo", schedule="on_demand", seed=0, profile="demo", **overrides):
        """Return a validated experiment: the numbers of a profile and a network, any overridden. Raises ParameterError.

        `task`, `schedule` and `profile` are rows of `paper.TASKS`, `SCHEDULES` and `PROFILES`; `dataset` is one of
        `paper.DATASETS`, perhaps with -native for full resolution, or the path of a folder, with a slash; `seed` is 0
        to 2³¹. `overrides` are other fields, numbers within `WHOLE` and `REAL`.
        """
        choice("profile", profile, PROFILES)
        known = [field.name for field in fields(cls) if field.name != "code"]
        for name in sorted({*overrides} - {*known}):
            raise ParameterError(f"unknown parameter {name!r}{nearest(name, known)}")
        numbers = numbers_of(profile, overrides.get("network")) | overrides
        if isinstance(dataset, os.PathLike) and not is_folder(str(dataset)):  # a Path drops the ./ of a folder
            dataset = os.path.join(os.curdir, dataset)
        return cls(task, str(dataset), schedule, seed, profile, **numbers)

    def __post_init__(self):
        from odl.corruptions import TASKS  # here, because a misspelt command need not wait for torch
        from odl.network import NETWORKS

        for field in fields(self):
            object.__setattr__(self, field.name, python_number(field.name, getattr(self, field.name)))
        choice("task", self.task, paper.TASKS)
        choice("schedule", self.schedule, SCHEDULES)
        choice("network", self.network, NETWORKS)
        for name in (self.task, self.schedule, self.network):
            if not re.fullmatch(r"[\w -]{1,50}", name):
                allowed = "at most 50 letters, digits, spaces, - and _ alone"
                raise ParameterError(f"{name!r} names files, so it is made of {allowed}")
        choice("precision", self.precision, PRECISIONS)
        check_dataset(self.dataset)
        for name, ends in WHOLE.items():
            integer(name, getattr(self, name), *ends)
        for name, ends in REAL.items():
            number(name, getattr(self, name), *ends)
        schedule, scores = SCHEDULES[self.schedule], ["psnr", "rms_error", *["composite"] * (self.task in paper.MASKED)]
        tasks = getattr(schedule, "tasks", None)
        if tasks and self.task not in tasks:
            raise ParameterError(f"schedule={self.schedule!r} is for {' and '.join(tasks)}, not for {self.task!r}")
        if isinstance(feedback := getattr(schedule, "feedback", "psnr"), str):  # a class may find its own out
            choice("feedback", feedback, scores)
        if self.sharpness != 1 and schedule is not on_demand:
            raise ParameterError(f"sharpness={self.sharpness!r} belongs to 'on_demand', not to {self.schedule!r}")
        number("severity", self.severity, 0, max(map(max, paper.TASKS[self.task]["levels"])))
        if self.task == "inpaint" and round(self.severity) != self.severity:
            side = max(1, round(self.severity))  # 0 stands for the paper's
            raise ParameterError(f"severity={self.severity!r} is not a whole number of pixels; nearest: {side}")
        shipped = code_of([paper.TASKS[self.task]]) == code_of([paper.AS_SHIPPED.get(self.task)])
        levels = [] if shipped else [paper.TASKS[self.task]]
        rows = (self.task, TASKS.get(self.task)), (self.schedule, schedule), (self.network, NETWORKS[self.network])
        rows = [row for name, row in rows if row is not None and (name not in SHIPPED or is_own(row))]
        object.__setattr__(self, "code", code_of([*rows, *levels]))
        own = getattr(schedule, "fixated_on", None)  # "" where it has no severity of its own
        if own == "" and not self.severity:
            raise ParameterError(f"schedule={self.schedule!r} has no severity of its own: give one, as severity=5")
        if self.severity and own is None:
            raise ParameterError(f"severity={self.severity!r} belongs to a fixated schedule, not to {self.schedule!r}")

    @property
    def overrides(self) -> dict:
        """Return what differs from the profile's numbers, and from those of its network: field → value."""
        plain = numbers_of(self.profile, self.network)  # first, because files are named in this order
        more = [f for f in fields(self) if f.default is not MISSING and f.name not in (*plain, "code")]
        plain |= {f.name: f.default for f in more}
        return {name: getattr(self, name) for name in plain if getattr(self, name) != plain[name]}

    @property
    def run_id(self) -> str:
        """Return `<profile>/<dataset>/<task>/<schedule>-seed<k>` and what is overridden; 25 and 25.0 are the same."""
        extra = "".join(f"-{name}={str(value).removesuffix('.0')}" for name, value in self.overrides.items())
        name = short(f"{self.schedule}-seed{self.seed}{extra}", 200)
        return f"{self.profile}/{slug(self.dataset)}/{self.task}/{name}"

    def asdict(self) -> dict:
        """Return the fields as JSON, without those that are as by default; a folder goes by its `slug`."""
        plain = {f.name: f.default for f in fields(self)}
        given = {name: value for name, value in asdict(self).items() if value != plain[name]}
        return given | {"dataset": slug(self.dataset)}


def check_dataset(name, parameter: str = "dataset") -> None:
    """Raise ParameterError unless `name` is a set of `paper.DATASETS`, perhaps with -native, or a path with a slash."""
    if not isinstance(name, str) or not (is_folder(name) or name.removesuffix("-native") in paper.DATASETS):
        options = f"neither a set ({', '.join(paper.DATASETS)}) nor a folder, which has a slash, as ./photographs"
        raise ParameterError(f"{parameter}={name!r} is {options}{nearest(str(name).lower(), paper.DATASETS)}")


def is_folder(name: str) -> bool:
    """Return True if a data set is a folder of the reader's own: a path with a slash."""
    return "/" in name or os.sep in name


def slug(name: str) -> str:
    """Return the name of a data set in paths: itself, or the last part of a folder and a hash of where it is."""
    if not is_folder(name):
        return name
    folder = os.path.abspath(os.path.expanduser(name))
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]  # two folders may share their last part
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', os.path.basename(folder))[:80]}-{digest}"


def short(name: str, length: int = 255) -> str:
    """Return a file's name of at most so many bytes, the end of a longer one replaced by a hash of the whole."""
    if len(os.fsencode(name)) <= length:
        return name
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return os.fsencode(name)[: length - 17].decode(errors="ignore") + f"-{digest}"


def numbers_of(profile: str, network: str | None) -> dict:
    """Return the numbers of a profile as a network has them: field → value."""
    return PROFILES[profile] | (FOR_NETWORK.get(network, {}).get(profile, {}) if isinstance(network, str) else {})


def check(experiment) -> Experiment:
    """Return an experiment as it is. Raises ParameterError for anything else."""
    if not isinstance(experiment, Experiment):
        raise ParameterError(f"experiment={experiment!r} is none; it comes from odl.Experiment.of(task=…, schedule=…)")
    return experiment
