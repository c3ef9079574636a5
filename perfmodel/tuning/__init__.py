"""Selects the configurations that are worth measuring, and adapts that to tuners."""
