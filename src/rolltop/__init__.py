"""Runs parallel simulations observably by default and finds their fastest topology."""

__version__ = "0.1.0"
