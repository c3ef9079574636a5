"""Private arrays lie in memory where their indices are not known to a compiler."""

import numpy as np
import pytest

import perfmodel as pm

FRAME = """__kernel void k(__global const float *x, __global const int *places, __global float *out, const int m,
                            const int n)
{{
    const int i = get_global_id(0);
    float own[8];
    {0}
    out[i] = own[0];
}}"""
ROUNDS = "for (int j = 0; j < 8; j++)"
BODIES = {
    "constant": ("own[0] = x[i]; own[3] = own[0];", False),
    "unrolled": (f"{ROUNDS} own[j] = x[i] + j; {ROUNDS} own[0] += own[7 - j];", False),
    "nested": (f"own[0] = 0; for (int k = 0; k < m; k++) {ROUNDS} own[j] = own[(j + 1) % 8] + x[k];", False),
    "table": (
        f"const int t[] = {{0, 4, 2, 6, 1, 5, 3, 7}}; {ROUNDS} own[t[j]] = x[i] + j; {ROUNDS} own[0] += own[t[j]];",
        False,
    ),
    "table of arguments": (f"int t[8]; {ROUNDS} t[j] = (j + m) & 7; {ROUNDS} own[t[j]] = x[i] + j;", True),
    "argument": ("own[0] = 1; own[m] = x[i];", True),
    "open loop": ("own[0] = 1; for (int j = 0; j < m; j++) own[j] = x[i];", True),
    "counted in an open loop": ("own[0] = 1; int t = 0; for (int j = 0; j < m; j++) { own[t] = x[i]; t++; }", True),
    "data": ("own[0] = 1; own[places[i]] = x[i];", True),
    "work-item": ("own[0] = 1; own[i & 7] = x[i];", True),
    "not unrolled": ("own[0] = 1;\n#pragma unroll 1\nfor (int j = 0; j < 8; j++) own[j] = x[i];", True),
}


@pytest.mark.parametrize("case", BODIES)
def test_arrays_are_in_memory_where_an_index_is_unknown(case: str) -> None:
    body, is_in_memory = BODIES[case]
    sizes = {"x": "n + m", "places": "n", "out": "n"}
    kernel = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", 64, sizes, n=1024, m=8)
    assert pm.feature("f_mem_scratch").eval(kernel) == (32 * 1024 if is_in_memory else 0)
    scratch = pm.feature("f_mem_access_scratch").eval(kernel)
    assert (scratch > 0) == is_in_memory


WORDS = 255
"""A work-item's registers; a few hold other values than those of arrays."""


def test_arrays_too_large_for_registers_are_in_memory_in_part() -> None:
    source = """__kernel void k(__global float *out)
    {
        float own[512];
        for (int j = 0; j < 512; j++) own[j] = j;
        out[get_global_id(0)] = own[17];
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", 64, 64, {"out": 64})
    spilled = pm.feature("f_mem_scratch").eval(kernel) / 64 / 4
    assert 512 - WORDS <= spilled <= 512 - WORDS + 16
    stored = pm.feature("f_mem_access_scratch_store").eval(kernel) / 64
    assert stored == pytest.approx(512 * spilled / 512)
    assert pm.feature("f_held_registers").eval(kernel) == pytest.approx(WORDS, abs=20)


def test_work_items_at_one_place_of_their_arrays_touch_one_block_together() -> None:
    body = "own[0] = 1; for (int j = 0; j < m; j++) own[j & 7] = x[i];"
    sizes = {"x": "n + m", "places": "n", "out": "n"}
    same = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", 64, sizes, n=1024, m=16)
    blocks = pm.feature("f_mem_transactions_scratch_store_block:128")
    assert blocks.eval(same) == (16 + 1) * 1024 / 32
    body = "own[0] = 1; for (int j = 0; j < m; j++) own[places[i]] = x[i];"
    apart = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", 64, sizes, n=1024, m=16)
    # 32 work-items at any of 8 places are expected at nearly all of them.
    assert blocks.eval(apart) == pytest.approx((16 * 8 * (1 - (7 / 8) ** 32) + 1) * 1024 / 32)


def test_of_arrays_that_find_no_room_together_the_largest_goes_to_memory_first() -> None:
    def scratch(first: int, second: int) -> float:
        source = f"""__kernel void k(__global const float *x, __global float *out)
        {{
            float a[{first}], b[{second}];
            for (int j = 0; j < {first}; j++) a[j] = x[get_global_id(0)] + j;
            for (int j = 0; j < {second}; j++) b[j] = a[j % {first}] * 2;
            out[get_global_id(0)] = a[1] + b[{second - 1}];
        }}"""
        kernel = pm.Kernel.from_opencl(source, "k", 64, 64, {"x": 64, "out": 64})
        return pm.feature("f_mem_scratch").eval(kernel) / 64 / 4

    assert scratch(128, 64) == 0
    for first, second in ((150, 120), (100, 250), (300, 300)):
        assert first + second - WORDS <= scratch(first, second) <= first + second - WORDS + 16


def test_work_items_at_one_place_share_sectors_by_eight() -> None:
    body = "own[0] = 1; for (int j = 0; j < m; j++) own[places[i]] = x[i];"
    sizes = {"x": "n + m", "places": "n", "out": "n"}
    apart = pm.Kernel.from_opencl(FRAME.format(body), "k", "n", 64, sizes, n=1024, m=16)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 8, (4000, 32))
    # A row of 32 elements of 4 bytes is four sectors, each of eight neighbours.
    sectors = np.mean([len({(row, lane // 8) for lane, row in enumerate(each)}) for each in rows])
    found = pm.feature("f_mem_transactions_scratch_store_block:32").eval(apart)
    assert found == pytest.approx((16 * sectors + 4) * 1024 / 32, rel=0.01)
