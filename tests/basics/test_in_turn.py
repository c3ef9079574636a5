"""Updates of the same places find what the ones before have left."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.basics.in_turn import updated_in_turn


@pytest.mark.parametrize("function", [np.add, np.subtract, np.minimum, np.maximum])
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32", "float64"])
def test_updates_are_those_of_a_loop(function: np.ufunc, dtype: str) -> None:
    random = np.random.default_rng(3)
    places = np.sort(random.integers(0, 5, 200))
    values = random.integers(0, 100, 200).astype(dtype)
    cells = random.integers(0, 100, 5).astype(dtype)
    expected, before = cells.copy(), np.empty(200, dtype)
    for number, (place, value) in enumerate(zip(places, values, strict=True)):
        before[number] = expected[place]
        expected[place] = function(expected[place], value)
    found = updated_in_turn(function, cells, places, values)
    assert found is not None
    assert found.tobytes() == before.tobytes()
    assert cells.tobytes() == expected.tobytes()


def test_updates_of_many_places_are_left_to_others() -> None:
    cells, places = np.zeros(9), np.arange(9)
    assert updated_in_turn(np.add, cells, places, np.ones(9)) is None
    assert not cells.any()
