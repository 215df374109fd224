"""A living companion to "On-Demand Learning for Deep Image Restoration" (Gao & Grauman, ICCV 2017).

>>> import odl
>>> network = odl.load("inpaint")                        # the pretrained on-demand network
>>> whole = odl.restore(photograph, "inpaint", mask=mask)  # of any size
>>> trained = odl.train(odl.Experiment.of("denoise", dataset="photographs/", profile="demo"))

"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"
PROTOCOL = 2  # of every number measured: raised by a change of the code that moves a golden run (tests/test_golden.py)
__all__ = ["EncoderDecoder", "Experiment", "SCHEDULES", "TASKS", "evaluate", "load", "restore", "train"]

HOMES = {
    "EncoderDecoder": "odl.network",
    "Experiment": "odl.experiment",
    "SCHEDULES": "odl.schedules",
    "TASKS": "odl.corruptions",
    "evaluate": "odl.evaluation",
    "load": "odl.pretrained",
    "restore": "odl.pretrained",
    "train": "odl.training",
}

if TYPE_CHECKING:
    from odl.corruptions import TASKS
    from odl.evaluation import evaluate
    from odl.experiment import Experiment
    from odl.network import EncoderDecoder
    from odl.pretrained import load, restore
    from odl.schedules import SCHEDULES
    from odl.training import train


def __getattr__(name: str):
    """What `odl` offers is imported when it is asked for, so that `import odl` does not wait for torch."""
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module 'odl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
