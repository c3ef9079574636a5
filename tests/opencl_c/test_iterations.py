"""Loops that are gone through one iteration after the other count as those that are counted at once: each iteration
loads, and waits, by itself."""

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
    "two loads of one iteration": (STRIDE + "s += a[j] * a[64 * n - 1 - j];", 64, 0),
    "a number of iterations, by a size": ("for (int j = i; j < 8 * n; j += n) s += a[j];", 8, 8),
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


ARRAYS: dict[str, int | str] = {"a": "64 * n + m", "c": "64 * n", "t": 4 * GROUP}


def value(body: str, name: str) -> float:
    kernel = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", GROUP, ARRAYS, assumptions="m >= 1", n=ITEMS, m=6)
    return pm.feature(name).eval(kernel) / ITEMS


@pytest.mark.parametrize("case", LOOPS)
def test_iterations_are_rounds_of_loads_and_links_of_chains(case: str) -> None:
    body, rounds, carried = LOOPS[case]
    # What is added to c[j] is loaded from it first, in the same iteration.
    assert value(body, "f_mem_rounds_global") == rounds
    assert value(body, "f_mem_rounds_global_granularity:longest") == rounds
    assert value(body, "f_op_float32_add_carried") == carried


def test_who_leaves_a_tree_waits_no_longer() -> None:
    assert value(TREE, "f_mem_rounds_local") == (32 + 16 + 8 + 4 + 2 + 1) / GROUP
    assert value(TREE, "f_mem_rounds_local_granularity:longest") == 6
    assert value(TREE, "f_op_float32_add_carried_granularity:longest") == 6


LOADS = "f_mem_access_global_load"
STRIDES = (
    "for (int j = i; j < 5 * n; j += get_global_size(0)) s += a[j];",
    "for (int j = i; j <= 5 * n - 1; j += n) s += a[j];",
    "for (int j = i; 5 * n > j; j += n) s += a[j];",
    "for (int j = i; !(j >= 5 * n); j += n) s += a[j];",
    "for (int j = i; j <= 5 * n; j += n) s += a[j];",
    "for (int j = i + 3; j < 5 * n; j += n) s += a[j];",
    "for (int j = i; j < 5 * n - 3; j += n) s += a[j];",
    "for (int j = n - 1 - i; j < 5 * n; j += n) s += a[j];",
    "for (int j = 2 * i; j < 6 * n; j += 2 * n) s += a[j];",
    "for (int j = i; j < 2 * n * m; j += n * m) s += a[j];",
    "for (int j = 5 * n - 1 - i; j >= 0; j -= n) s += a[j];",
    "for (uint j = i; j < 5 * n; j += n) s += a[j];",
    "for (int j = i; j < 7 * n; j += 2 * n) s += a[j];",
)


@pytest.mark.parametrize("body", STRIDES)
def test_steps_by_sizes_are_as_many_as_emulated(body: str) -> None:
    arrays: dict[str, int | str] = {"a": "20 * n", "c": "20 * n", "t": 4 * GROUP}
    source = FRAME.format(body)
    kernel = pm.Kernel.from_opencl(source, "k", "n", GROUP, arrays, assumptions="m >= 1", n=128, m=2)
    assert pm.feature(LOADS).eval(kernel) == pm.feature(LOADS).eval(kernel.as_emulated(groups="all"))


def test_steps_by_sizes_are_counted_for_all_sizes_however_many() -> None:
    for body in (STRIDE.replace("64", "1000"), STRIDE.replace("get_global_size(0)", "n").replace("64", "1000")):
        kernel = pm.Kernel.from_opencl(FRAME.format(body + "s += a[j];"), "k", "n", GROUP, ARRAYS, m=1)
        for n in (64, 128, 6400):
            assert pm.feature(LOADS).eval(kernel.at(n=n)) == 1000 * n
        assert kernel.counts_for(None).accesses == kernel.at(n=64).counts_for(None).accesses


def test_loops_may_have_any_names() -> None:
    source = """__kernel void k(__global const float *a, __global float *c, int n) {
        const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
        float s = 0;
        for (int FIRST = 0; FIRST < n; FIRST++)
            for (int SECOND = 0; SECOND < n; SECOND++) {
                if (FIRST == SECOND) continue;
                s += a[SECOND * n + FIRST + y + z];
            }
        c[(z * 8 + y) * 8 + x] = s;
    }"""
    counts = []
    for first, second in (("i", "j"), ("g", "g2"), ("l0", "to"), ("before1", "g1"), ("from", "to0")):
        text = source.replace("FIRST", first).replace("SECOND", second)
        kernel = pm.Kernel.from_opencl(
            text, "k", [8, 8, 8], [8, 4, 2], {"a": "n * n + 64", "c": 512}, assumptions="n >= 2", n=8
        )
        features = (
            "f_op_float32_add",
            "f_mem_footprint_global_load_block:32",
            "f_mem_transactions_global_load_block:32",
        )
        counts.append([pm.feature(name).eval(kernel) for name in features])
    assert counts[0][0] == 512 * 8 * 7
    assert counts[1:] == counts[:1] * 4


def test_long_loops_that_data_leave_count_as_often_as_they_are_seen() -> None:
    body = "for (int j = 0; j < 200.0f; ++j) { s += a[i + j]; if (a[i + j] > 1.45f) { s += 1.0f; break; } }"
    kernel = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", GROUP, ARRAYS, n=ITEMS, m=200)
    operations = pm.emulate(kernel, groups="all").operations
    added = operations.set_index(["kind", "dtype"])["count"]["add", "float32"] * ITEMS / GROUP
    assert pm.feature("f_op_float32_add").eval(kernel.as_observed()) == pytest.approx(added)
