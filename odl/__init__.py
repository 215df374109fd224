"""A living companion to "On-Demand Learning for Deep Image Restoration" (Gao & Grauman, ICCV 2017)."""

__version__ = "0.1.0"
PROTOCOL = 2  # of every number measured: raised by a change of the code that moves a golden run (tests/test_golden.py)
