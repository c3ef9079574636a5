"""Distinct numbers are those that numpy finds, in order."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.basics.distinct import distinct


@pytest.mark.parametrize("shape", [(0,), (1,), (500,), (20, 30)])
def test_distinct_numbers_are_numpys(shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(1).integers(-40, 40, shape)
    found = distinct(numbers)
    np.testing.assert_array_equal(found, np.unique(numbers))
    assert found.dtype == numbers.dtype
