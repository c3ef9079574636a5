"""Draws when the kernels and copies of a program ran, in characters: a line for each, higher where busier."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.tables import seconds

HEIGHTS = " ▁▂▃▄▅▆▇█"
IDLE = "¦"
WIDTH, MOST_LINES, LONGEST_NAME = 80, 12, 24
LONGEST_IDLE = 0.05
"""A pause is cut to one column if it is longer than this part of the time in which something runs."""
MOST_CUT = 8
"""Pauses that are cut at most, the longest."""
OTHERS = "all others"

Interval = tuple[float, float]


@dataclass(frozen=True)
class Event:
    """A launch or a copy on the time line: what it is, and its seconds from the program's start on."""

    words: str
    start: float
    seconds: float


def time_line(events: Sequence[Event]) -> str:
    """Returns the lines of a picture; empty without events.

    The height of a character is the share of its column in which that kernel, or copy, ran.
    """
    if not events:
        return ""
    totals: dict[str, float] = {}
    for event in events:
        totals[event.words] = totals.get(event.words, 0.0) + event.seconds
    longest = sorted(totals, key=lambda name: totals[name], reverse=True)
    shown = set(longest if len(longest) <= MOST_LINES else longest[: MOST_LINES - 1])
    names = [name for name in totals if name in shown] + ([OTHERS] if len(shown) < len(totals) else [])
    margin = min(max(map(len, names)), LONGEST_NAME)
    whiles = _whiles(events)
    drawn = sum(end - start for start, end in whiles)
    free = WIDTH - margin - len(" |") - (len(whiles) - 1) - len(whiles)
    counts = [1 + (int(free * (end - start) / drawn) if drawn else 0) for start, end in whiles]
    edges = [np.linspace(start, end, count + 1) for (start, end), count in zip(whiles, counts, strict=True)]
    lines = []
    for name in names:
        own = [event for event in events if (event.words if event.words in shown else OTHERS) == name]
        parts = [_drawn(_covered(own, each)) for each in edges]
        lines.append(f"{name[:margin].ljust(margin)} |{IDLE.join(parts)}")
    first, last = whiles[0][0], whiles[-1][1]
    title = f"time line of {seconds(last - first)}; a column is about {seconds(drawn / sum(counts))}"
    idle = f" ({IDLE}: a long pause)" if len(whiles) > 1 else ""
    return "\n".join([title + idle, *(line.rstrip() for line in lines)])


def _whiles(events: Sequence[Event]) -> list[Interval]:
    """Returns the whiles in which something runs, with short ones between in which nothing does."""
    busy: list[Interval] = []
    for event in sorted(events, key=lambda each: each.start):
        end = event.start + event.seconds
        if busy and event.start <= busy[-1][1]:
            busy[-1] = (busy[-1][0], max(busy[-1][1], end))
        else:
            busy.append((event.start, end))
    pauses = sorted((after[0] - before[1] for before, after in itertools.pairwise(busy)), reverse=True)
    longest = max(LONGEST_IDLE * sum(end - start for start, end in busy), *pauses[MOST_CUT : MOST_CUT + 1], 0)
    joined = busy[:1]
    for start, end in busy[1:]:
        if start - joined[-1][1] <= longest:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _covered(events: Sequence[Event], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the share of each column, between two edges, in which one of the events runs."""
    found = np.zeros(len(edges) - 1)
    for event in events:
        overlap = np.minimum(edges[1:], event.start + event.seconds) - np.maximum(edges[:-1], event.start)
        found += np.clip(overlap, 0, None)
    width = edges[1] - edges[0]
    return np.asarray(found / width if width > 0 else np.ones_like(found))


def _drawn(shares: NDArray[np.float64]) -> str:
    """Returns a character for each share; the lowest for whatever is above nothing."""
    steps = np.ceil(np.clip(shares, 0, 1) * (len(HEIGHTS) - 1) - 1e-9).astype(int)
    return "".join(HEIGHTS[step] for step in steps)
