"""Makes every parallel simulation run observable by default."""

__version__ = "0.1.0"
