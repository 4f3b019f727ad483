"""What the series say: numbers in, estimates out. Pure numpy, no I/O."""
