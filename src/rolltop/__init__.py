"""Makes parallel simulation runs observable by default, and finds the topology that runs them fastest."""

__version__ = "0.1.0"
