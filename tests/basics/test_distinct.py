"""Distinct numbers are those that numpy finds, in order."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.basics.distinct import distinct


@pytest.mark.parametrize("shape", [(0,), (1,), (500,), (20, 30)])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64"])
@pytest.mark.parametrize("most", [40, 120])
@pytest.mark.parametrize("apart", [1, 2**40])
def test_distinct_numbers_are_numpys(shape: tuple[int, ...], dtype: str, most: int, apart: int) -> None:
    least = 0 if dtype == "uint64" else -most
    numbers = np.random.default_rng(1).integers(least, most, shape).astype(dtype)
    if numbers.itemsize == 8:
        numbers *= apart
    if dtype == "uint64":
        numbers += np.uint64(2**63)
    found = distinct(numbers)
    np.testing.assert_array_equal(found, np.unique(numbers))
    assert found.dtype == numbers.dtype
