"""Values that follow from ids, sizes and constants decide what is done, however a kernel writes them."""

from __future__ import annotations

import warnings

import pytest

import perfmodel as pm

START = """__kernel void k(__global float *a, int n) {
    int x = get_global_id(0), lid = get_local_id(0);
    float s = a[x]; """
KERNELS = {
    # Unsigned numbers that may be below zero.
    "an int of a product of ids": """int at = (int)(get_group_id(0) * 8 - 1) * 16 + lid;
        if (at >= 0) s *= 2.0f; a[x] = s; }""",
    "an id less one": "int y = get_global_id(0) - 1; if (y >= 0) s *= a[y]; a[x] = s; }",
    "within a range": "int y = x - 3; if ((uint)y < (uint)n - 9) s *= 2.0f; a[x] = s; }",
    "a range's other side": "int y = x - 3; if ((uint)n - 9 > (uint)y) s *= 2.0f; a[x] = s; }",
    "outside of a range": "uint y = x; if (y - 5 >= 40u) s *= 2.0f; a[x] = s; }",
    "either way": "uint y = x; y = x < 20 ? y - 25 : y - 20; if ((int)y >= 0) s *= 2.0f; a[x] = s; }",
    # Flags, minima and maxima.
    "a minimum": "int m = x; if (100 < m) m = 100; for (int j = 0; j < m; j++) s = s * 2.0f + 1.0f; a[x] = s; }",
    "a flag": "int f = 0; if (x > 100) f = 1; if (x == 3) f = 1; if (f) s *= 2.0f; a[x] = s; }",
    "a flag of a loop": """bool f = false; for (int j = 0; j < 6; j++) if (x == j * 7) f = true;
        if (f) s *= 2.0f; a[x] = s; }""",
    "a maximum of a loop": """int m = 0; for (int i = 0; i < 4; i++) { int v = x - i * 3; if (v > m) m = v; }
        for (int j = 0; j < m; j++) s = s * 2.0f + 1.0f; a[x] = s; }""",
    # Variables that double or halve.
    "active halves beside": """int active = 8;
        for (int t = 8; t > 0; t >>= 1) { if (lid < active) s *= 2.0f; active >>= 1; } a[x] = s; }""",
    "active halves": """int active = n / 32;
        for (int i = 0; i < 4; i++) { if (lid < active) s *= 2.0f; active /= 2; } a[x] = s; }""",
    "a step doubles": """int step = 1; for (int i = 0; i < 4; i++) { if (lid % (2 * step) == 0) s *= 2.0f; step *= 2; }
        a[x] = s; }""",
    # Tables in constant memory.
    "offsets from a table": """for (int i = 0; i < 4; i++) {
        int at = x + offset[i]; if (at >= 0 && at < n) s += 2.0f * a[at]; } a[x] = s; }""",
    "turns from a table": """for (int i = 0; i < 3; i++)
        for (int j = 0; j < turns[i]; j++) s = s * 2.0f + 1.0f; a[x] = s; }""",
    "a clamped place of a table": """for (int j = 0; j < turns[min(x, 2)]; j++) s = s * 2.0f + 1.0f; a[x] = s; }""",
    "a struct": """for (int j = 0; j < shape.sides[1]; j++) s = s * 2.0f + 1.0f; if (shape.by > 0.25f) s *= 2.0f;
        if (x < shape.most) s *= 2.0f; if (shape.signs.y < 0) s *= 2.0f; a[x] = s; }""",
}
TABLES = """
typedef struct { short most; float by; int sides[2]; char2 signs; } Shape;
__constant int offset[4] = {1, 0, -1, 0};
__constant uchar turns[3] = {5, 2, 9};
__constant Shape shape = {3, 0.5f, {7, 2}, (char2)(1, -1)};
"""


def multiplications(kernel: pm.Kernel) -> tuple[float, float]:
    """Returns how many float multiplications there are, as counted and as all emulated groups do."""
    run = pm.emulate(kernel, groups="all")
    done = run.operations.query("use == 'values' and kind in ['mul', 'madd'] and dtype == 'float32'")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counted = sum(
            float(each.executions.workitem(kernel.sizes)) * each.per_execution
            for each in kernel.counts_for(32).operations
            if each.kind in ("mul", "madd") and each.dtype == "float32"
        )
    return counted, float(done["count"].sum()) * run.work_groups


@pytest.mark.parametrize("body", KERNELS.values(), ids=KERNELS)
def test_what_is_done_follows_from_known_values(body: str) -> None:
    kernel = pm.Kernel.from_opencl(TABLES + START + body, "k", 256, 16, {"a": "8*n"}, n=256)
    counted, emulated = multiplications(kernel)
    assert counted == emulated > 0


def test_an_unsigned_number_that_becomes_a_wider_one_is_not_negative() -> None:
    body = "uint y = x; long wide = y - 1; if (wide >= 0) s *= 2.0f; a[x] = s; }"
    kernel = pm.Kernel.from_opencl(START + body, "k", 256, 16, {"a": "n"}, n=256)
    with pytest.warns(pm.PerfmodelWarning, match="data decide"):
        assert pm.feature("f_op_float32_mul").eval(kernel) == 256


def test_an_index_of_size_t_may_step_back() -> None:
    source = """__kernel void k(__global float *a, __global float *b) {
        size_t x = get_global_id(0);
        b[x] = a[x + 3 - 4 + 1];
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", 256, 16, {"a": 256, "b": 256})
    (load,) = [each for each in kernel.counts_for(32).accesses if each.variable == "a"]
    assert load.footprint is not None
    assert load.footprint({}) == 256


@pytest.mark.parametrize("condition", ["b == 0", "!b", "(b != 0 ? b[0] : 0.0f) < 0"])
def test_null_pointers_are_no_numbers(condition: str) -> None:
    source = f"""__kernel void k(__global float *a, __global const float *b)
    {{
        if ({condition}) return;
        a[get_global_id(0)] = b[get_global_id(0)];
    }}"""
    kernel = pm.Kernel.from_opencl(source, "k", 64, 8, {"a": 64, "b": 64}).as_countable()
    stores = pm.feature("f_mem_access_global_store").eval(kernel)
    assert 0 <= stores <= 64
