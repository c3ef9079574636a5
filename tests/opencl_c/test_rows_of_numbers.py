"""Rows whose length is a number: of what memory moves, only the blocks are part that are touched."""

from __future__ import annotations

import pytest

import perfmodel as pm

ITEMS = 64
COPY = "__kernel void k(__global const {type} *a, __global float *b, int n, int m) {{ const int x = get_global_id(0),"
COPY += " y = get_global_id(1); b[y * n + x] = {value}; }}"
# Bytes of blocks of 64 for each work-item's 4, where rows are longer than what is touched of them.
INDICES = {
    "rows side by side": ("float", "a[y * 1000 + x]", 4),
    "rows of a size": ("float", "a[y * m + x]", 4),
    "two rows": ("float", "a[y * 1000 + x] + a[y * 1000 + x + 1000]", 4 * 65 / 64),
    "every other element": ("float", "a[y * 1000 + 2 * x]", 8),
    "every other element, of a size": ("float", "a[y * m + 2 * x]", 8),
    "an element of each row": ("float", "a[y * 64000 + x * 1000]", 64),
    "vectors": ("float4", "a[y * 1000 + x].x", 16),
    "what two structs of four numbers hold": ("float", "a[4 * (y * 64 + x)] + a[4 * (y * 64 + x) + 1]", 16),
}


@pytest.mark.parametrize("case", INDICES)
def test_gaps_between_rows_are_not_moved(case: str) -> None:
    type_, value, expected = INDICES[case]
    source = COPY.format(type=type_, value=value)
    arrays = {"a": "128 * n * n * 1000", "b": "n * n"}
    kernel = pm.Kernel.from_opencl(source, "k", ("n", "n"), (32, 8), arrays, n=ITEMS, m=1000, assumptions="m >= n")
    moved = pm.feature("f_mem_footprint_global_load_block:64_var:a").eval(kernel)
    assert moved / ITEMS**2 == pytest.approx(expected, rel=1e-3)
