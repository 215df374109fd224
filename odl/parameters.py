"""What a user may pass: every error is one line that names the parameter, its value and the nearest good one."""

import difflib
import math
import os
from numbers import Integral, Real

from odl.data import sets
from odl.machine import files

DEVICES = ("auto", "cpu", "cuda")


class ParameterError(files.OneLine, ValueError):
    """A parameter is wrong; the message is one line that names it, its value and the nearest good one."""


def nearest(value, options) -> str:
    """`; nearest: …` when one option resembles the value."""
    match = difflib.get_close_matches(str(value), [str(option) for option in options], n=1, cutoff=0.5)
    return f"; nearest: {match[0]!r}" if match else ""


def choice(name: str, value, options) -> None:
    if not isinstance(value, str) or value not in options:
        raise ParameterError(f"{name}={value!r} is not one of {', '.join(options)}{nearest(value, options)}")


def number(name: str, value, low: float, high: float) -> None:
    good = isinstance(value, Real) and not isinstance(value, bool) and -math.inf < value < math.inf  # nor NaN
    if not good or not low <= value <= high:
        hint = f"; nearest: {min(max(value, low), high)!r}" if good else ""
        raise ParameterError(f"{name}={value!r} is not a number from {low} to {high}{hint}")


def integer(name: str, value, low: int, high: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ParameterError(f"{name}={value!r} is not a whole number from {low} to {high}")
    if not low <= value <= high:
        raise ParameterError(f"{name}={value} is not from {low} to {high}; nearest: {min(max(value, low), high)}")


def known_dataset(name, parameter: str = "dataset") -> None:
    base = sets.parse(name)[0] if isinstance(name, str) and name else ""
    if base not in sets.DATASETS and not os.path.isdir(base):
        raise ParameterError(sets.unknown(str(name), parameter) + nearest(str(name).lower(), sets.DATASETS))
    if base not in sets.DATASETS and (meant := name.lower()).removesuffix("-native") in sets.DATASETS:
        raise ParameterError(f"{parameter}={name!r} is a folder here; nearest: {meant!r}, or './{name}' for the folder")


def check_device(device) -> str:
    """`auto` becomes cuda where PyTorch can use one, else cpu; a line says what stays idle. Raises ParameterError."""
    choice("device", device, DEVICES)
    if device == "cpu":
        return device
    from odl.machine.device import gpu  # and with it torch

    usable, reason = gpu()
    if device == "cuda" and not usable:
        raise ParameterError(
            f"device='cuda' is not available on this machine{reason and f': {reason}'}; nearest: 'cpu'"
        )
    return "cuda" if usable else "cpu"
