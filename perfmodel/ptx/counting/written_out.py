"""Says how the copies of an access that a compiler wrote out follow each other in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.emulation.recording import NOWHERE

Steps = tuple[tuple[int, int], ...]
"""Bytes from a copy to the next one, and how many there are: of nested loops, the outermost first."""


def places_of(copies: Sequence[AccessAddresses]) -> list[int] | None:
    """Returns where the first thread of a block accesses by each of some copies of an access, when it first does; None
    where one goes to places of its own."""
    bases = [each.bases for each in copies if each.noted.is_regular and len(each.bases)]
    known = np.all([(each != NOWHERE).all(axis=0) for each in bases], axis=0) if bases else np.zeros(0)
    if len(bases) < len(copies) or not known.any():
        return None
    return [int(each[0, np.argmax(known)]) for each in bases]


def steps_of(places: Sequence[int]) -> Steps | None:
    """Returns the nested loops that go through these places; None where there are none."""
    rows = sorted(set(places))
    found: list[tuple[int, int]] = []
    while len(rows) > 1:
        step = min(after - before for before, after in pairwise(rows))
        there = set(rows)
        starts = [place for place in rows if place - step not in there]
        length = len(rows) // len(starts)
        if rows != sorted(start + step * number for start in starts for number in range(length)):
            return None
        found.append((step, length))
        rows = starts
    return tuple(reversed(found))
