"""A living companion to "On-Demand Learning for Deep Image Restoration" (Gao & Grauman, ICCV 2017).

>>> import odl
>>> network = odl.load("inpaint")                        # the pretrained on-demand network
>>> whole = odl.restore(photograph, "inpaint", mask=mask)  # of any size
>>> trained = odl.train(odl.Experiment.of("denoise", dataset="./photographs", profile="demo"))

The modules of this package are the paper and import nothing but each other, NumPy, pandas and PyTorch. `load`,
`restore`, `train` and `evaluate` are the companion's, handed on.
"""

from importlib import import_module

__version__ = "0.1.0"
# Version of the measuring protocol. Raise it when a change of the code moves a golden run (tests/test_golden.py).
PROTOCOL = 2
HOMES = {  # name → the module that is imported when it is asked for, so that `import odl` does not wait for torch
    **dict.fromkeys(("load", "restore"), "companion.restore.pretrained"),
    **dict.fromkeys(("train", "evaluate"), "companion.training.results"),
    **dict.fromkeys(("NETWORKS", "EncoderDecoder", "ResidualUNet"), "odl.network"),
    "TASKS": "odl.corruptions",
    "SCHEDULES": "odl.schedules",
    "Experiment": "odl.experiment",
    "Sampler": "odl.sampler",
}
__all__ = ["PROTOCOL", *HOMES]


def __getattr__(name: str):
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module 'odl' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *HOMES})
