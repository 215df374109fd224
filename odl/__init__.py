"""A living companion to "On-Demand Learning for Deep Image Restoration" (Gao & Grauman, ICCV 2017)."""

__version__ = "0.1.0"

PROTOCOL = 2  # how numbers are measured; raised with every change that moves them, and older results are not shown
