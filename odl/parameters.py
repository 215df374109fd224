"""What a user may pass: every error is one line that names the parameter, its value and the nearest good one."""

import difflib
import math
import os
import re
from contextlib import suppress
from pathlib import Path

from odl.data import sets
from odl.machine import files

DEVICES = ("auto", "cpu", "cuda")


class ParameterError(files.OneLine, ValueError):
    """A parameter is wrong; the message is one line that names it, its value and the nearest good one."""


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
    """Seconds of `90s`, `10min` or `10m`, `8h` or `2d`. Raises ParameterError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|min|h|d)", value)
    if not match:
        raise ParameterError(f"{name}={value!r} is not a time such as 90s, 10min, 8h or 2d")
    return float(match[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[match[2]]


def known_dataset(name, parameter: str = "dataset") -> None:
    base = sets.parse(name)[0] if isinstance(name, str) and name else ""
    if base not in sets.DATASETS and not os.path.isdir(base):
        raise ParameterError(sets.unknown(str(name), parameter) + nearest(name, sets.DATASETS))


def check_seeds(seeds) -> list[int]:
    """A list of seeds, or one seed; as text `[0, 1]` or `0,1`. Raises ParameterError."""
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
    photographs = [file for files in sets.DEMO.values() for file in files]
    if value in photographs:
        return sets.find("demo") / value
    if not isinstance(value, str) or not os.path.isfile(os.path.expanduser(value)):
        options = ", ".join(photographs)
        raise ParameterError(f"{name}={value!r} is neither a file nor one of {options}{nearest(value, photographs)}")
    return Path(value).expanduser()


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
    """The list that text such as `[bm3d, ksvd]` or `0,1` means: papermill's -p passes lists as text."""
    match = re.fullmatch(r"\[(.*)\]|(.*,.*)", value, re.DOTALL) if isinstance(value, str) else None
    if not match:
        return value
    return [word_or_number(word.strip(" '\"")) for word in (match[1] or match[2] or "").split(",") if word.strip()]


def word_or_number(word: str):
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word


def truth(value):
    """The flag that text such as `false` means: papermill's -p knows `False` alone."""
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


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
