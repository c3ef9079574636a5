"""Rounds that bring fresh sectors, against the sectors that a sub-group asks for iteration by iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.basics.errors import FeatureError

ROWS, COLUMNS, SECTOR, WIDTH = 256, 512, 32, 32
SOURCE = """__kernel void f(__global const float *a, __global const float *x, __global float *y, const int n)
{{
    const int i = get_global_id(0);
    float total = 0;
    for (int j = 0; j < n; ++j)
        total += {};
    y[i] = total;
}}
"""
# The text of what is added up, and the element of each array that work-item i reads in iteration j.
CASES: dict[str, tuple[str, list[Callable[[NDArray[Any], int], NDArray[Any]]]]] = {
    "rows": ("a[i * n + j]", [lambda i, j: i * COLUMNS + j]),
    "rows of odd length": ("a[i * 509 + j]", [lambda i, j: i * 509 + j]),
    "rows in two phases": ("a[i * 508 + j]", [lambda i, j: i * 508 + j]),
    "a vector": ("x[j]", [lambda i, j: j + 0 * i]),
    "windows": ("a[i + j]", [lambda i, j: i + j]),
    "windows apart": ("a[4 * i + 2 * j]", [lambda i, j: 4 * i + 2 * j]),
    "columns": ("a[j * 256 + i]", [lambda i, j: j * ROWS + i]),
    "rows by a vector": ("a[i * n + j] * a[j]", [lambda i, j: i * COLUMNS + j, lambda i, j: j + 0 * i]),
    "columns by a row": ("a[j * 256 + i] * a[i * n + j]", [lambda i, j: j * ROWS + i, lambda i, j: i * COLUMNS + j]),
}


@pytest.mark.parametrize("case", CASES)
def test_rounds_are_fresh_in_which_a_load_goes_to_new_sectors(case: str) -> None:
    text, places = CASES[case]
    kernel = pm.Kernel.from_opencl(
        SOURCE.format(text), "f", ROWS, 64, {"a": ROWS * COLUMNS, "x": COLUMNS, "y": ROWS}, n=COLUMNS
    ).as_compiled()
    lanes, fresh = np.arange(WIDTH), 0
    before: list[set[int]] = [set() for _ in places]
    for j in range(COLUMNS):
        now = [{int(place) * 4 // SECTOR for place in of(lanes, j)} for of in places]
        fresh += any(sectors - known for sectors, known in zip(now, before, strict=True))
        before = now
    found = pm.feature("f_mem_rounds_global_fresh").eval(kernel) / ROWS
    assert found == pytest.approx(fresh, rel=0.02)
    assert pm.feature("f_mem_rounds_global").eval(kernel) / ROWS == COLUMNS


def test_only_sectors_of_global_memory_are_fresh() -> None:
    with pytest.raises(FeatureError, match="only sectors of global memory are fresh"):
        pm.feature("f_mem_rounds_local_fresh")


AGAIN = """__kernel void f(__global const float *a, __global const float *b, __global float *y)
{
    const int i = get_global_id(0);
    for (int j = 0; j < 16; ++j) {
        y[j * 256 + i] = b[j * 256 + i] + a[j * 256 + i];
        y[(16 + j) * 256 + i] = a[j * 256 + i + OFFSET];
    }
}
"""


@pytest.mark.parametrize(("offset", "levels"), [("0", 1), ("1", 1), ("256", 2)])
def test_a_load_at_the_place_of_one_that_came_before_is_not_fresh(offset: str, levels: int) -> None:
    """The second load of an iteration waits by itself, as what is stored before it may be there."""
    kernel = pm.Kernel.from_opencl(
        AGAIN.replace("OFFSET", offset), "f", ROWS, 64, {"a": 18 * ROWS, "b": 18 * ROWS, "y": 32 * ROWS}
    ).as_compiled()
    assert pm.feature("f_mem_waits_global").eval(kernel) / ROWS == 2 * 16
    assert pm.feature("f_mem_rounds_global_fresh").eval(kernel) / ROWS == levels * 16


def test_only_arrays_that_caches_do_not_keep_are_fresh_beyond_what_they_keep() -> None:
    text, _ = CASES["rows by a vector"]
    text = text.replace("* a[j]", "* x[j]")
    kernel = pm.Kernel.from_opencl(
        SOURCE.format(text), "f", ROWS, 64, {"a": ROWS * COLUMNS, "x": COLUMNS, "y": ROWS}, n=COLUMNS
    ).as_compiled()
    n_bytes = 4 * ROWS * COLUMNS
    rounds = [
        pm.feature(f"f_mem_rounds_global_fresh{more}").eval(kernel) / ROWS
        for more in ("", f"_beyond:{n_bytes - 1}", f"_beyond:{n_bytes}")
    ]
    assert rounds == pytest.approx([COLUMNS / 8, COLUMNS / 8, 0])


def test_only_fresh_sectors_may_lie_beyond_a_cache() -> None:
    with pytest.raises(FeatureError, match="beyond:… is said of fresh sectors; write fresh too"):
        pm.feature("f_mem_rounds_global_beyond:1000")
