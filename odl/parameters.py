"""What a user may pass: every error is one line that names the parameter, its value and the nearest good one."""

import difflib
import math
from numbers import Integral, Real


class OneLine(Exception):
    """An error whose message is one line that tells a user what is wrong and what to do."""

    def _render_traceback_(self):  # what IPython and papermill print
        return [f"{type(self).__name__}: {self}"]


class ParameterError(OneLine, ValueError):
    """A parameter is wrong; the message is one line that names it, its value and the nearest good one."""


def nearest(value, options) -> str:
    """Return `; nearest: …` where one option resembles the value."""
    match = difflib.get_close_matches(str(value), [str(option) for option in options], n=1, cutoff=0.5)
    return f"; nearest: {match[0]!r}" if match else ""


def choice(name: str, value, options) -> None:
    """Raise ParameterError for a value that is none of the options."""
    if not isinstance(value, str) or value not in options:
        raise ParameterError(f"{name}={value!r} is not one of {', '.join(options)}{nearest(value, options)}")


def number(name: str, value, low: float, high: float) -> None:
    """Raise ParameterError for what is no finite number from low to high."""
    good = isinstance(value, Real) and not isinstance(value, bool) and -math.inf < value < math.inf  # nor NaN
    if not good or not low <= value <= high:
        hint = f"; nearest: {min(max(value, low), high)!r}" if good else ""
        raise ParameterError(f"{name}={value!r} is not a number from {low} to {high}{hint}")


def integer(name: str, value, low: int, high: int) -> None:
    """Raise ParameterError for what is no whole number from low to high."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ParameterError(f"{name}={value!r} is not a whole number from {low} to {high}")
    if not low <= value <= high:
        raise ParameterError(f"{name}={value} is not from {low} to {high}; nearest: {min(max(value, low), high)}")
