"""Says how a load is waited for, whatever it is counted from."""

from __future__ import annotations

from dataclasses import dataclass

MOST_UNDER_WAY = 16
"""So many words are under way to a work-item's registers at most."""
ADDRESS = 2
"""The words of an address that follows from what was loaded, which stand in registers as well."""
BESIDE = 32
"""Loads less than so many bytes apart mostly go to one sector."""

LATENCIES = {
    **dict.fromkeys(("native", "rsqrt", "exp2", "log2", "sin", "cos"), 5),
    **dict.fromkeys(("sqrt", "exp", "exp10", "log", "log10"), 8),
    **dict.fromkeys(("div", "tanh", "tan"), 12),
    **dict.fromkeys(("erf", "pow", "fmod"), 20),
}
"""So many simple operations, of 4 cycles each, a function takes that the special-function units begin."""


@dataclass(frozen=True)
class Wait:
    """Tells how one load is waited for.

    Attributes:
        share: the part of a wait that an iteration has of it, as several have their loads under way together.
        least: the waits of a loop that has fewer iterations than have theirs under way together.
        level: how many loads of the same iteration come one after the other, up to this one.
        depth: operations of the loads' loop body that come one after the other, over the iterations that do them side
            by side.
        is_again: whether a load that has come before it in its iteration was at the same place, or beside it.
    """

    share: float = 1.0
    level: int = 1
    depth: float = 0.0
    least: float = 1.0
    is_again: bool = False
