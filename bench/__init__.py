"""Measured bounds: what telemetry may cost at the most. ``make bench`` runs them all."""
