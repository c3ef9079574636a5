"""Runs blocks of a PTX kernel's grid in numpy, all of their threads side by side, and records what they do."""

from __future__ import annotations
