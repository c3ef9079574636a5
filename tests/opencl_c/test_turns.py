"""Loops that are gone through one iteration after the other count as those that are counted at once: each turn loads,
and waits, by itself."""

from __future__ import annotations

import pytest

import perfmodel as pm

ITEMS, GROUP = 1024, 64
FRAME = """
__kernel void k(__global const float *restrict a, __global float *restrict c, __local float *t, int n, int m)
{{
    const int i = get_global_id(0), l = get_local_id(0);
    float s = 0;
    {}
    c[i] = s;
}}"""
STRIDE = "for (int j = i; j < 64 * n; j += get_global_size(0)) "
TREE = "for (int h = 32; h > 0; h /= 2) { if (l < h) t[l] += t[l + h]; barrier(CLK_LOCAL_MEM_FENCE); }"

# Of each work-item: rounds of loads from global memory, and additions that wait for each other.
LOOPS = {
    "one after the other, by sizes": (STRIDE + "s += a[j];", 64, 64),
    "two loads of one turn": (STRIDE + "s += a[j] * a[64 * n - 1 - j];", 64, 0),
    "a number of turns, by a size": ("for (int j = i; j < 8 * n; j += n) s += a[j];", 8, 8),
    "halves": ("for (int j = 64; j > 0; j /= 2) s += a[j];", 7, 7),
    "two such loops": (STRIDE + "s += a[j];" + "for (int j = 64; j > 0; j /= 2) s += a[j];", 64 + 7, 64 + 7),
    "a loop in such a loop": ("for (int j = 64; j > 0; j /= 2) for (int k = 0; k < m; k++) s += a[j + k];", 42, 42),
    "such a loop in a loop": ("for (int k = 0; k < m; k++) for (int j = 64; j > 0; j /= 2) s += a[j + k];", 42, 42),
    "such loops in each other": (
        "for (int j = 64; j > 0; j /= 2) for (int k = 4; k > 0; k /= 2) s += a[j + k];",
        7 * 3,
        7 * 3,
    ),
    "a flag": ("int f = 0; for (int j = 0; j < 20; j++) { if (f) s += a[j]; if (j == 3) f = 1; }", 16, 16),
    "written out": ("\n#pragma unroll\nfor (int j = 64; j > 0; j /= 2) s += a[j];", 1, 7),
    "sums that don't wait for each other": (STRIDE + "c[j] += a[j];", 64, 0),
    "once only": ("for (int j = 1; j > 0; j /= 2) s += a[j];", 1, 0),
}


def value(body: str, name: str) -> float:
    arrays: dict[str, int | str] = {"a": "64 * n + m", "c": "64 * n", "t": 4 * GROUP}
    kernel = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", GROUP, arrays, assumptions="m >= 1", n=ITEMS, m=6)
    return pm.feature(name).eval(kernel) / ITEMS


@pytest.mark.parametrize("case", LOOPS)
def test_turns_are_rounds_of_loads_and_links_of_chains(case: str) -> None:
    body, rounds, carried = LOOPS[case]
    # What is added to c[j] is loaded from it first, in the same turn.
    assert value(body, "f_mem_rounds_global") == rounds
    assert value(body, "f_mem_rounds_global_granularity:longest") == rounds
    assert value(body, "f_op_float32_add_carried") == carried


def test_who_leaves_a_tree_waits_no_longer() -> None:
    assert value(TREE, "f_mem_rounds_local") == (32 + 16 + 8 + 4 + 2 + 1) / GROUP
    assert value(TREE, "f_mem_rounds_local_granularity:longest") == 6
    assert value(TREE, "f_op_float32_add_carried_granularity:longest") == 6
