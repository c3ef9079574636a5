"""Emulations of one kernel in groups of one size have something in common, which is kept between them here.

That is which lanes go together, and the patterns of addresses with what they cost: none of it depends on which groups
run, nor on what memory holds. Small kernels spend most of their time on it the first time that they are met.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.access_handlers import Handler
from perfmodel.opencl_c.emulation.lanes import Layout, Masks
from perfmodel.opencl_c.emulation.recording import Recorder

_MOST_LANES = 1 << 20
"""Masks and patterns of so many lanes together are kept; more come from data, which repeat nothing."""
_MOST = 8
"""One kernel's launches are kept in so many shapes."""


@dataclass
class Kept:
    """Holds the masks of a batch, the patterns of each access, and the costs of patterns at some place."""

    masks: Masks
    patterns: list[dict[Any, Any]] = field(default_factory=list)
    costs: dict[Any, Any] = field(default_factory=dict)


_KEPT: WeakKeyDictionary[low.LoweredKernel, dict[Hashable, Kept]] = WeakKeyDictionary()


def taken(kernel: low.LoweredKernel, key: Hashable, layout: Layout) -> Kept:
    """Returns what an earlier batch left, for the one that asks alone; or else new masks."""
    return _KEPT.get(kernel, {}).pop(key, None) or Kept(Masks(layout))


def lend(kept: Kept, handlers: Sequence[Handler], recorder: Recorder) -> None:
    """Gives what was kept to the accesses of a batch."""
    for handler, patterns in zip(handlers, kept.patterns, strict=False):
        handler.patterns = patterns
        for pattern in patterns.values():
            pattern.accessor = handler
    recorder.known = kept.costs


def keep(kernel: low.LoweredKernel, key: Hashable, kept: Kept, handlers: Sequence[Handler], recorder: Recorder) -> None:
    """Keeps what a batch has found, but nothing of its memory."""
    lanes = kept.masks.full.layout.lanes
    number = len(kept.masks) + sum(len(handler.patterns) for handler in handlers) + len(recorder.known)
    if number * lanes > _MOST_LANES:
        return
    kept.patterns, kept.costs = [handler.patterns for handler in handlers], recorder.known
    for patterns in kept.patterns:
        for pattern in patterns.values():
            pattern.counts.clear()
            pattern.known.clear()
            del pattern.accessor
    shapes = _KEPT.setdefault(kernel, {})
    while len(shapes) >= _MOST:
        del shapes[next(iter(shapes))]
    shapes[key] = kept
