"""The reference driving simulation."""
