"""Updates of the same places find what the ones before have left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from perfmodel.basics.in_turn import compared_in_turn, exchanged_in_turn, in_rounds, updated_in_turn

SPREADS = {"few": (5, 0.0), "many": (90, 0.0), "most at one": (90, 0.5)}
"""Updates go to so many places, and this part of them to one."""


def _updates(spread: str, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    many, at_one = SPREADS[spread]
    places = np.sort(np.where(random.random(200) < at_one, 7, random.integers(0, many, 200)))
    return random.integers(0, 100, many).astype(dtype), places, random.integers(0, 100, 200).astype(dtype)


def _by_loop(change: Callable[..., Any], cells: np.ndarray, places: np.ndarray, *values: np.ndarray) -> np.ndarray:
    found = np.empty(len(places), cells.dtype)
    for number, place in enumerate(places):
        found[number] = cells[place]
        cells[place] = change(cells[place], *(each[number] for each in values))
    return found


@pytest.mark.parametrize("function", [np.add, np.subtract, np.minimum, np.maximum])
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32", "float64"])
@pytest.mark.parametrize("spread", SPREADS)
def test_updates_are_those_of_a_loop(function: np.ufunc, dtype: str, spread: str) -> None:
    cells, places, values = _updates(spread, dtype)
    expected = cells.copy()
    with np.errstate(over="ignore"):
        before = _by_loop(function, expected, places, values)
    assert updated_in_turn(function, cells, places, values).tobytes() == before.tobytes()
    assert cells.tobytes() == expected.tobytes()


@pytest.mark.parametrize("spread", SPREADS)
def test_exchanges_are_those_of_a_loop(spread: str) -> None:
    cells, places, values = _updates(spread, "int32")
    expected = cells.copy()
    before = _by_loop(lambda old, new: new, expected, places, values)
    assert exchanged_in_turn(cells, places, values).tolist() == before.tolist()
    assert cells.tolist() == expected.tolist()


@pytest.mark.parametrize("spread", SPREADS)
def test_comparisons_are_those_of_a_loop(spread: str) -> None:
    cells, places, values = _updates(spread, "int32")
    cells, asked = cells % 3, np.arange(200) % 3
    expected = cells.copy()
    before = _by_loop(lambda old, one, new: new if old == one else old, expected, places, asked, values % 3)
    assert compared_in_turn(cells, places, asked, values % 3).tolist() == before.tolist()
    assert cells.tolist() == expected.tolist()


def test_rounds_go_through_all_updates_in_order() -> None:
    places = np.array([2, 2, 2, 5, 7, 7])
    assert [each.tolist() for each in in_rounds(places)] == [[0, 3, 4], [1, 5], [2]]
    assert not list(in_rounds(places[:0]))
