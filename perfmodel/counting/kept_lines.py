"""Says for how long a cache keeps lines that are touched at random, where those that were used least recently go first.

A line that is touched r times in a unit of time has been touched in the last t of these with a chance of 1 - exp(-r t).
A cache keeps it for the time in which as many bytes are touched as there is room for (H. Che, Y. Tung, Z. Wang,
Hierarchical Web caching systems: modeling, design and experimental results, 2002, section III).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST, HALVINGS = 20.0, 30
"""Lines that are kept e^20 times as long as if none came again stay; so often the range in which the logarithm of the
time lies is halved."""


def time_kept(keeps: Any, once: Any, *again: Any) -> NDArray[np.float64]:
    """Returns for how long lines are kept, elementwise.

    Args:
        keeps: bytes that the cache has room for.
        once: bytes that are touched in a unit of time and do not come again.
        again: the bytes of some lines, and how often each of these is touched in a unit of time; of other lines, the
            same.
    """
    lines = list(zip(again[::2], again[1::2], strict=True))
    shortest = keeps / (once + sum(n_bytes * rate for n_bytes, rate in lines))
    least, most = np.zeros(np.shape(shortest)), np.full(np.shape(shortest), LONGEST)
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        time = shortest * np.exp(middle)
        fits = once * time - sum(n_bytes * np.expm1(-rate * time) for n_bytes, rate in lines) < keeps
        least, most = np.where(fits, middle, least), np.where(fits, most, middle)
    return np.asarray(shortest * np.exp((least + most) / 2))
