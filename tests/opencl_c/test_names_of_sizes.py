"""Sizes may have names that mean something else to isl, which counts points."""

from __future__ import annotations

import pytest

import perfmodel as pm

SOURCE = """__kernel void k(__global float *a, const int N)
{
    const int i = get_global_id(0);
    float s = 0;
    for (int j = 0; j <= i; j++) s += a[j];
    if (i < N) for (int j = 0; j < N; j += 2) s += a[i * N + j];
    a[i] = s;
}
"""
N = 128


@pytest.mark.parametrize("name", ["max", "Min", "mod", "floor", "exists", "NaN", "n"])
def test_sizes_may_have_names_that_are_words_of_isl(name: str) -> None:
    kernel = pm.Kernel.from_opencl(
        SOURCE.replace("N", name),
        "k",
        f"2 * {name}",
        64,
        {"a": f"2 * {name} * {name}"},
        assumptions=f"{name} % 32 == 0 and {name} >= 64",
    ).at(**{name: N})
    # Each of 2 N work-items sums up to its own place, and each of the first N every second element of its row.
    sums = sum(i + 1 for i in range(2 * N)) + N * N // 2
    assert pm.feature("f_op_float32_add").eval(kernel) == sums
    assert pm.feature("f_mem_bytes_global_load").eval(kernel) == 4 * sums
