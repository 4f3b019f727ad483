"""The command line: one module per command, the only room that prints or exits."""
