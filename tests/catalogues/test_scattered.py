"""Work-groups that touch a little all over an array bring it from memory again and again; others do not."""

from __future__ import annotations

import warnings

import pytest

import perfmodel as pm

ITEMS, LOADS, SPAN = 8192, 16, 2**23
NAME = "f_mem_scattered_global_load_missed_block:32_reach:>8000000"
SOURCE = """uint hash(uint x) {{ x *= 2654435761u; return x ^ (x >> 15); }}
__kernel void k(__global const float *a, __global float *o, const int m, const int n)
{{
    const uint i = get_global_id(0);
    float s = 0;
    for (int j = 0; j < m; j++) s += a[{}];
    o[i] = s;
}}"""
PLACES = {
    "all over": ("hash(i + j * n) & (8388608 - 1)", ITEMS * LOADS * 32),
    "near": ("(i * 512 + (hash(i + j * n) & 511)) & (8388608 - 1)", 0),
    "in order": ("i + j * n", 0),
}


@pytest.mark.parametrize("case", PLACES)
def test_groups_that_touch_a_little_of_every_page_jump_about(case: str) -> None:
    place, expected = PLACES[case]
    kernel = pm.Kernel.from_opencl(SOURCE.format(place), "k", "n", 128, {"a": SPAN, "o": "n"}, n=ITEMS, m=LOADS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.PerfmodelWarning)
        counted = kernel.as_compiled().as_countable()
    assert pm.feature(NAME).eval(counted) == pytest.approx(expected, rel=0.01)
