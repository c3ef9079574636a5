"""Numbers in memory that a loop goes on updating are in registers while it runs, where nothing else can see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import LocalBytes, emulate
from perfmodel.opencl_c.optimization import optimized

ITEMS, TURNS = 64, 32
FRAME = """__kernel void k(__global const float *restrict a, __global float *restrict c, __global float *d,
                           __global float *e, __local float *given, const int m, const int n)
{{
    const int i = get_global_id(0), lid = get_local_id(0);
    __local float own[64], other[64];
    own[lid] = i; other[lid] = 2 * i; given[lid] = 3 * i;
    {0}
    d[i] = own[lid] + other[lid] + given[lid] + c[i];
}}"""
LOOP = "for (int k = 0; k < m; k++) "
KEPT = {
    "a sum in local memory": (LOOP + "own[lid] += a[k * n + i];", "local"),
    "two arrays, told apart": (LOOP + "{ own[lid] += a[k * n + i]; other[lid] += own[lid] * 0.5f; }", "local"),
    "a sum where no pointer else leads": (LOOP + "c[i] += a[k * n + i];", "global"),
    "an inner loop's, and the outer's": (LOOP + "for (int l = 0; l < 3; l++) own[lid] += a[k * n + i + l];", "local"),
    "where every iteration stores, and one of two ways adds": (
        LOOP + "{ if (a[k * n + i] > 0.5f) own[lid] += 1; own[lid] += a[k * n + i]; }",
        "local",
    ),
}
IN_MEMORY = {
    "places that move": (LOOP + "own[k & 63] += a[k * n + i];", "local"),
    "two places": (LOOP + "{ own[lid] += a[k * n + i]; own[0] += 1; }", "local"),
    "a store under a condition": (LOOP + "if (a[k * n + i] > 0.5f) own[lid] += 1;", "local"),
    "a barrier": (LOOP + "{ own[lid] += a[k * n + i]; barrier(CLK_LOCAL_MEM_FENCE); }", "local"),
    "an array that another pointer may lead to": (LOOP + "given[lid] += a[k * n + i];", "local"),
    "arrays that may overlap": (LOOP + "d[i] += e[k * n + i];", "global"),
    "a way out of the loop around": (
        "for (int u = 0; u < 2; u++) { " + LOOP + "{ own[lid] += 1; if (a[k * n + i] > 2.0f) return; } }",
        "local",
    ),
}
ARRAYS: dict[str, int | str] = {"a": "n * m + 4", "c": "n", "d": "n", "e": "n * m", "given": 4 * 64}


def stores(body: str, space: str) -> float:
    """Returns what a work-item stores to a space, as compiled."""
    kernel = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", ITEMS, ARRAYS, n=ITEMS, m=TURNS)
    return float(pm.feature(f"f_mem_access_{space}_store").eval(kernel.as_compiled())) / ITEMS


@pytest.mark.filterwarnings("ignore::perfmodel.basics.errors.PerfmodelWarning")
@pytest.mark.parametrize("case", KEPT)
def test_what_only_a_loop_updates_is_stored_behind_it(case: str) -> None:
    body, space = KEPT[case]
    assert stores(body, space) < 8


@pytest.mark.filterwarnings("ignore::perfmodel.basics.errors.PerfmodelWarning")
@pytest.mark.parametrize("case", IN_MEMORY)
def test_what_others_may_see_stays_in_memory(case: str) -> None:
    body, space = IN_MEMORY[case]
    assert stores(body, space) > 12


@pytest.mark.parametrize("case", [*KEPT, *IN_MEMORY])
@pytest.mark.parametrize("turns", [0, 5])
def test_the_results_are_the_same(case: str, turns: int) -> None:
    body, _ = (KEPT | IN_MEMORY)[case]
    kernel = lowered_kernel(FRAME.format(body), "k")
    random = np.random.default_rng(1)
    found = []
    for form in (kernel, optimized(kernel)):
        random = np.random.default_rng(1)
        arrays = {name: random.uniform(0, 1, 1024).astype(np.float32) for name in "acde"}
        given: dict[str, Any] = {**arrays, "given": LocalBytes(256), "m": np.int32(turns), "n": np.int32(ITEMS)}
        run = emulate(form, (ITEMS,), (ITEMS,), given, groups="all", checks=False)
        found.append([run.array(name).tobytes() for name in "cde"])
    assert found[0] == found[1]
