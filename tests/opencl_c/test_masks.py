"""Conditions that lanes of a vector may decide differently mask what stands behind them, and keep no vector from it."""

from __future__ import annotations

from typing import Any

import pytest

import perfmodel as pm

GROUPS, SIZE, WIDTH = 10, 64, 16
VECTORS = GROUPS * SIZE // WIDTH


def counted(body: str, feature: str = "f_op_float32_add") -> float:
    source = f"""
    __kernel void masks(__global const float *x, __global const int *a, __global float *y, const int n)
    {{
        const int l = get_local_id(0), i = get_global_id(0), g = get_group_id(0);
        float t = x[i];
        {body}
        y[i] = t;
    }}"""
    length = GROUPS * SIZE
    arrays: dict[str, Any] = {"x": length, "a": length, "y": length}
    kernel = pm.Kernel.from_opencl(source, "masks", length, SIZE, arrays, n=4)
    return float(pm.feature(f"{feature}_granularity:vector{WIDTH}").eval(kernel.as_compiled()))


ADD = "t += 1.5f;"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ADD, VECTORS),
        (f"if (l < 3) {{ {ADD} }}", VECTORS),
        (f"if (g < 3) {{ {ADD} }}", 3 * SIZE // WIDTH),
        (f"if (n > 4) {{ {ADD} }}", 0),
        (f"if (g < 3) {{ if (l == 0) {{ {ADD} }} }}", 3 * SIZE // WIDTH),
        (f"if (l < 3) {{ if (g < 3) {{ {ADD} }} }}", 3 * SIZE // WIDTH),
        (f"if (l < 3) t *= 3; else {{ {ADD} }}", VECTORS),
        (f"for (int k = 0; k < n; ++k) if (l < k) {{ {ADD} }}", 4 * VECTORS),
        (f"for (int d = 32; d; d >>= 1) {{ barrier(CLK_LOCAL_MEM_FENCE); if (l < d) {{ {ADD} }} }}", 6 * VECTORS),
        (f"for (int k = 0; k < n; ++k) {{ if (l == k) continue; {ADD} }}", 4 * VECTORS),
        (f"if (l < 3) for (int k = 0; k < n; ++k) {{ {ADD} }}", 4 * VECTORS),
    ],
)
def test_a_vector_does_all_that_some_lane_might(body: str, expected: int) -> None:
    assert counted(body) == expected


def test_loops_that_lanes_end_differently_go_on_as_long_as_one_of_them_does() -> None:
    longest = sum(lane + WIDTH for lane in range(0, SIZE, WIDTH))  # of each vector, its last lane's
    assert counted(f"for (int k = 0; k <= l; ++k) {{ {ADD} }}") == GROUPS * longest
    assert counted(f"if (l < 20) for (int k = 0; k <= l; ++k) {{ {ADD} }}") == GROUPS * (16 + 20)


def test_vectors_that_leave_the_kernel_as_a_whole_do_no_more() -> None:
    assert counted(f"if (i >= 100) return; {ADD}") == -(-100 // WIDTH)


@pytest.mark.parametrize(("place", "expected"), [("i", 4 * VECTORS), ("k", VECTORS)])
def test_data_mask_where_lanes_load_them_from_places_of_their_own(place: str, expected: int) -> None:
    text = f"""__kernel void masks(__global const int *a, __global float *y, const int n)
    {{
        const int i = get_global_id(0);
        float t = i;
        for (int k = 0; k < n; ++k)
            if (a[{place}] > 0) t += 1.5f;
        y[i] = t;
    }}"""
    length, statistics = GROUPS * SIZE, {"if_6": 0.25}
    kernel = pm.Kernel.from_opencl(
        text, "masks", length, SIZE, {"a": length, "y": length}, statistics=statistics, n=4
    ).as_compiled()
    assert pm.feature(f"f_op_float32_add_granularity:vector{WIDTH}").eval(kernel) == expected


def test_masked_branches_are_those_that_lanes_may_decide_differently() -> None:
    body = f"for (int k = 0; k < n; ++k) {{ if (l < k) {{ {ADD} }} if (g < k) {{ {ADD} }} }}"
    assert counted(body, "f_branch_if_masked") == 4 * VECTORS
    assert counted(body, "f_branch_loop_masked") == 0
    assert counted(f"for (int k = l; k < n; ++k) {{ {ADD} }}", "f_branch_loop_masked") > 0


@pytest.mark.parametrize(("often", "unforeseen"), [(0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (0.75, 0.5), (1.0, 0.0)])
@pytest.mark.parametrize("done", ["y[3 * i] = 1;", "atomic_inc(&few);", "atomic_inc(&sums[i & 3]);"])
def test_branches_lane_by_lane_count_as_far_as_nobody_foresees_them(done: str, often: float, unforeseen: float) -> None:
    text = f"""__kernel void masks(__global const int *a, __global uchar *y, __global uint *sums)
    {{
        __local uint few;
        const uint i = get_global_id(0);
        if (a[i] > 0) {done}
        sums[4 + i] = few;
    }}"""
    length = GROUPS * SIZE
    extents = {"a": length, "y": 3 * length, "sums": 4 + length}
    kernel = pm.Kernel.from_opencl(text, "masks", length, SIZE, extents, statistics={"if_5": often}).as_compiled()
    branched = pm.feature(f"f_mem_lanes_branched_width:{WIDTH}").eval(kernel)
    assert branched == pytest.approx(VECTORS * unforeseen)


def test_words_under_masks_of_data_need_no_branches() -> None:
    text = """__kernel void masks(__global const int *a, __global int *y)
    {
        const uint i = get_global_id(0);
        if (a[i] > 0) y[3 * i] = 1;
    }"""
    length = GROUPS * SIZE
    kernel = pm.Kernel.from_opencl(
        text, "masks", length, SIZE, {"a": length, "y": 3 * length}, statistics={"if_4": 0.5}
    ).as_compiled()
    assert pm.feature(f"f_mem_lanes_global_store_gathered_width:{WIDTH}").eval(kernel) == VECTORS
    assert pm.feature(f"f_mem_lanes_branched_width:{WIDTH}").eval(kernel) == 0


@pytest.mark.parametrize(
    ("index", "test", "waits"),
    [("size_t", "", 0), ("uint", "", 1), ("size_t", "if (get_local_id(0) < 40)", 1), ("size_t", "if (n > 3)", 0)],
)
def test_vectors_wait_for_what_is_loaded_out_of_sight_or_under_a_mask(index: str, test: str, waits: int) -> None:
    text = f"""__kernel void masks(__global const float *x, __global float *y, const int n)
    {{
        const {index} i = get_global_id(0);
        float t = 0;
        {test} t = x[i];
        y[(size_t)get_global_id(0)] = t;
    }}"""
    length = 2**20
    kernel = pm.Kernel.from_opencl(text, "masks", length, SIZE, {"x": length, "y": length}, n=4).as_compiled()
    found = pm.feature(f"f_mem_missed_waits_keeps:32768_width:{WIDTH}").eval(kernel)
    assert found == pytest.approx(waits * length / WIDTH, rel=0.4)
