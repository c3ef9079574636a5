"""Says how a load is waited for, whatever it is counted from."""

from __future__ import annotations

from dataclasses import dataclass

MOST_UNDER_WAY = 16
"""So many loads of a work-item wait at most, as registers hold what they bring."""


@dataclass(frozen=True)
class Wait:
    """Tells how one load is waited for.

    Attributes:
        share: the part of a wait that an iteration has of it, as several have their loads under way together.
        level: how many loads of the same iteration come one after the other, up to this one.
    """

    share: float = 1.0
    level: int = 1
