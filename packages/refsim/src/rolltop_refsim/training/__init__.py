"""Training and evaluation of the reference simulation's policy."""
