"""Bytes that sub-groups load again in later passes, against the sectors that a simulated sub-group has had before."""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError

ROWS, COLUMNS, SECTOR = 256, 512, 32
NAME = "f_mem_repeated_global_load_block:32"
SOURCE = """__kernel void f(__global const float *a, __global const float *x, __global float *y, const int n)
{{
    const int i = get_global_id(0);
    float total = 0;
    {}
    y[i] = total;
}}
"""
LOOP = "for (int j = 0; j < n; ++j) "
# The body, and for each loop in it the elements of `a` that a work-item i loads, in their order.
CASES = {
    "one pass": (LOOP + "total += a[i * n + j];", [1]),
    "three passes of a loop": ("for (int p = 0; p < 3; ++p) " + LOOP + "total = fabs(a[i * n + j] - total);", [3]),
    "two loops": (LOOP + "total += a[i * n + j];" + LOOP + "total = fabs(a[i * n + j] - total);", [1, 1]),
    "another array in between": (LOOP + "total += a[i * n + j];" + LOOP + "total += x[j];", [1]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_earlier_passes_brought_is_loaded_again(case: str) -> None:
    body, passes = CASES[case]
    kernel = pm.Kernel.from_opencl(
        SOURCE.format(body), "f", ROWS, 64, {"a": ROWS * COLUMNS, "x": COLUMNS, "y": ROWS}, n=COLUMNS
    )
    known: set[int] = set()
    again = 0
    for _ in range(sum(passes)):
        for item in range(ROWS):
            last = -1
            for column in range(COLUMNS):
                sector = (item * COLUMNS + column) * 4 // SECTOR
                again += sector != last and sector in known
                last = sector
                known.add(sector)
    assert pm.feature(NAME).eval(kernel) == again * SECTOR


def test_each_column_of_another_matrix_is_loaded_once() -> None:
    source = SOURCE.format(LOOP + "total += a[i * n + j] * x[j * 256 + i];")
    arrays = {"a": ROWS * COLUMNS, "x": ROWS * COLUMNS, "y": ROWS}
    assert pm.feature(NAME).eval(pm.Kernel.from_opencl(source, "f", ROWS, 64, arrays, n=COLUMNS)) == 0


def test_sub_groups_that_go_through_the_same_repeat_it_once() -> None:
    source = """__kernel void f(__global const float *a, __global const float *b, __global float *c, const int n)
    {
        const int j = get_global_id(0), i = get_global_id(1);
        float total = 0;
        for (int p = 0; p < 2; ++p)
            for (int k = 0; k < n; ++k)
                total = fabs(a[(2 * i + p) * n + k] * b[k * n + j] - total);
        c[i * n + j] = total;
    }"""
    n, tile = 256, 16
    kernel = pm.Kernel.from_opencl(
        source, "f", (n, n // 2), (tile, tile), {"a": n * n, "b": n * n, "c": n * n // 2}, n=n
    )
    groups = (n // tile) * (n // 2 // tile)
    assert pm.feature(NAME).eval(kernel) == groups * n * tile * 4  # of b, which the second pass goes through again


@pytest.mark.parametrize("name", ["f_mem_repeated_global_block:32", "f_mem_repeated_global_load", "f_mem_repeated_x"])
def test_only_loads_from_global_memory_by_blocks_are_repeated(name: str) -> None:
    with pytest.raises(FeatureError):
        pm.feature(name)
