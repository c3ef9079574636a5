"""Updates of the same places in turn: what each finds there, and what they leave; or each as if it came alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ALONE = "alone"
"""The operation of a comparison and exchange that each lane makes as if no other came to its place."""
GIVEN_BACK = "given back"
"""The operation of an exchange that gives back a sum to where nothing was left, as if no other lane came there."""


def updated_in_turn(
    function: np.ufunc, cells: NDArray[Any], places: NDArray[np.int64], values: NDArray[Any]
) -> NDArray[Any] | None:
    """Updates cells by a function of what is there and a value, one update after the other, and returns what each
    found; None, with nothing done, where there are more places than updates of any one, which others do sooner.

    Args:
        places: of each update, in ascending order.
        values: of the cells' type.
    """
    firsts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    ends = np.r_[firsts[1:], len(places)]
    if not len(places) or len(firsts) >= (ends - firsts).max() or values.dtype != cells.dtype:
        return None
    found = np.empty(len(places), cells.dtype)
    for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
        cell = places[first]
        running = function.accumulate(np.r_[cells[cell], values[first:end]], dtype=cells.dtype)
        found[first:end], cells[cell] = running[:-1], running[-1]
    return found


def exchanged_alone(
    cells: NDArray[Any], places: NDArray[np.int64], expected: NDArray[Any], new: NDArray[Any]
) -> NDArray[Any]:
    """Puts new numbers where the expected ones are found, and returns what is found, for each update as if no other
    came to its place."""
    found: NDArray[Any] = cells[places]
    met = found == expected
    cells[places[met]] = new[met]
    return found
