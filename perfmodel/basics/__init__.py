"""Provides what every package uses: errors, JSON values, the registry, provenance, numbers and tables as text,
statistics."""
