"""Counts what emulated blocks of a PTX kernel did, in the form that features know."""

from __future__ import annotations
