"""Frozen nouns without I/O: what the other rooms talk about."""
