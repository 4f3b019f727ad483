"""Telemetry for the workers and services of a parallel simulator."""
