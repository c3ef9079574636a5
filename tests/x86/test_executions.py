"""Compares how often machine code is executed with what kernels do by their source, whatever a driver makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.kernels.arguments import Argument, Array, Scalar
from perfmodel.kernels.driver_code import TARGET
from perfmodel.kernels.opencl_program import OpenCLProgram
from tests.x86.core_kernels import PRODUCT, core, kernel, lanes, needs_driver

pytestmark = needs_driver


@pytest.mark.parametrize(
    ("turns", "pragma"),
    [("n", ""), ("64", ""), ("8", ""), ("n", "#pragma unroll 4"), ("64", "#pragma unroll"), ("n", "#pragma unroll 1")],
)
def test_loops_are_counted_whatever_is_unrolled(turns: str, pragma: str) -> None:
    found = core("floats", kernel(PRODUCT.format(turns=turns, pragma=f"\n{pragma}")))
    expected = 4096 * (8 if turns == "8" else 64) / lanes()
    assert found == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("copies", [2, 4, 8, 16])
def test_iterations_that_share_loads_are_counted_whatever_is_unrolled(copies: int) -> None:
    text = """size_t i = get_global_id(0); int l = get_local_id(0);
    __local float4 tile[64];
    float4 own = (float4)(b[i], b[i + 4096], b[i + 8192], b[i + 12288]); float3 sum = 0;
    for (int t = 0; t < n; t += 8) {{
        tile[l] = (float4)(b[l + t], b[l + t + 4096], b[l + t + 8192], b[l + t + 12288]);
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll {copies}
        for (int j = 0; j < 64; j++) {{
            float4 other = tile[(j + l) & 63];
            float3 d = other.xyz - own.xyz;
            float far = native_rsqrt(fma(d.x, d.x, fma(d.y, d.y, fma(d.z, d.z, 0.01f))));
            sum += -other.w * far * far * far * d;
        }}
        barrier(CLK_LOCAL_MEM_FENCE);
    }}
    a[i] = sum.x + sum.y + sum.z;"""
    one, several = (core("floats", kernel(text.format(copies=each))) for each in (1, copies))
    assert several == pytest.approx(one, rel=0.1)


@pytest.mark.parametrize("copies", [2, 4, 8])
def test_iterations_that_share_most_of_what_moves_them_are_counted_whatever_is_unrolled(copies: int) -> None:
    """Half of the instructions are there once for several iterations: those that put lanes and masks together."""
    text = """size_t own = get_global_id(0); float energy = 0; float3 force = 0;
    __global const float3 *bodies = (__global const float3 *)b;
    #pragma unroll {copies}
    for (int j = 0; j < 1024; j++) {{
        float x = bodies[j].x - bodies[own].x;
        float y = bodies[j].y - bodies[own].y;
        float z = bodies[j].z - bodies[own].z;
        if (x > 16) x -= 32; else if (x < -16) x += 32;
        if (y > 16) y -= 32; else if (y < -16) y += 32;
        if (z > 16) z -= 32; else if (z < -16) z += 32;
        float square = x * x + y * y + z * z;
        if (square < 6.25f && j != own) {{
            float sixth = square * square * square;
            force += (float3)(x, y, z) * (24 * (2 / (sixth * sixth * square) - 1 / (sixth * square)));
            energy += 4 * (1 / (sixth * sixth) - 1 / sixth);
        }}
    }}
    a[own] = energy;
    vstore3(force, own, a + 4096);"""
    one, several = (core("floats", kernel(text.format(copies=each))) for each in (1, copies))
    assert several == pytest.approx(one, rel=0.1)


def test_parts_of_a_loop_inside_and_outside_of_an_image_are_executed_as_often_as_its_iterations() -> None:
    text = """size_t row = get_global_id(0), i = get_global_id(1); __local float w[16][16];
    size_t y = get_local_id(0), x = get_local_id(1); int m = n / 7;
    if (y < m && x < m) w[y][x] = b[y * m + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row < n && i < n) {
        int h = (m - 1) >> 1; float s = 0;
        for (int k = -h; k <= h; k++)
            for (int l = -h; l <= h; l++) {
                int there = row + k;
                int at = i + l;
                float v = 0;
                if (0 <= there && there < n &&
                    0 <= at && at < n) {
                    v = a[there * n + at];
                }
                s += v * w[k + h][l + h];
            }
        a[row * n + i] = s;
    }"""
    found = core("floats", kernel(text, local=(16, 16), items=(64, 64)))
    assert found == pytest.approx(64 * 64 * 9**2 / lanes(), rel=0.2)


def test_ways_through_an_image_and_beside_it_are_one_way_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TARGET, "skx")
    text = """int i = get_global_id(0), row = get_global_id(1); float s = 0;
    for (int k = -4; k <= 4; k++)
        for (int l = -4; l <= 4; l++) {
            float v = 0;
            if (0 <= row + k && row + k < n && 0 <= i + l && i + l < n)
                v = a[(row + k) * n + i + l];
            s += v * b[(k + 4) * 9 + l + 4];
        }
    a[row * n + i] = s;"""
    found = core("floats", kernel(text, local=(16, 16), items=(64, 64)))
    assert found == pytest.approx(64 * 64 * 9**2 / lanes(), rel=0.1)


def test_groups_that_fill_no_vector_are_counted_one_by_one() -> None:
    text = PRODUCT.format(turns="n", pragma="")
    wide, narrow = (core("floats", kernel(text, local=local)) for local in (64, 2))
    assert wide == pytest.approx(4096 * 64 / lanes(), rel=0.1)
    assert 4096 * 64 / lanes() < narrow <= 4096 * 64 * 1.1  # a loop for one work-item may have vectors of its own


def test_the_part_that_fills_no_vector_counts_beside_vectors() -> None:
    text = "size_t i = get_global_id(0); a[i] = sqrt(b[i]);"
    widths = [4 * lanes() + more for more in range(3)]
    whole, one_more, two_more = (core("divides", kernel(text, local=width, items=64 * width)) for width in widths)
    assert one_more > whole
    assert two_more - one_more == pytest.approx(one_more - whole, rel=0.1)
    assert one_more - whole <= whole / 4 * 1.1  # a root of one number takes as long as a vector's, at most


def test_branches_are_executed_as_often_as_data_let_them() -> None:
    text = """size_t i = get_global_id(0);
    if (i < {some}) {{ float s = 0; for (int j = 0; j < n; j++) s += a[i] / b[j]; a[i] = s; }}"""
    some, all_ = (core("divides", kernel(text.format(some=some))) for some in (1024, 4096))
    assert some == pytest.approx(all_ / 4, rel=0.1)


def test_nested_loops_and_those_between_barriers() -> None:
    text = """size_t l = get_local_id(0), i = get_global_id(0); float s = 0;
    for (int t = 0; t < n; t++) {
        tile[l] = b[t * 64 + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < 16; j++)
            s += a[i] * tile[j + t % 3];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    a[i] = s;"""
    found = core("floats", kernel(text.replace("float s = 0;", "float s = 0; __local float tile[64];", 1)))
    assert found == pytest.approx(4096 * 64 * 16 / lanes(), rel=0.2)


def test_loops_of_a_function_are_its_own_where_work_items_meet_behind_them() -> None:
    text = """int power(int base, int times, int of) {
        int c = 1;
        for (int e = 0; e < times; e++)
            c = (c * base) % of;
        return c;
    }
    __kernel void k(__global float *a, int n) {
        for (int i = get_local_id(0); i < n; i += get_local_size(0)) {
            float s = 0;
            for (int j = 0; j < n + i; j++) {
                s += power(16, n + i - j, 8 * j + 1) / (float)(8 * j + 1);
                s -= (int)s;
            }
            a[i] = s;
        }
        END
    }"""
    arguments: list[Argument] = [Array("a", "float32", 4096, is_output=True), Scalar("n", "int32")]
    plain, meeting = (
        pm.Kernel(OpenCLProgram(text.replace("END", end), "k", 4096, 64, arguments), {}, None, n=64).as_core_code()
        for end in ("", "barrier(CLK_GLOBAL_MEM_FENCE);")
    )
    assert core("slots", meeting) == pytest.approx(core("slots", plain), rel=0.01)


def test_a_loop_s_straight_code_before_and_behind_a_barrier_is_executed_in_each_iteration() -> None:
    text = """size_t l = get_local_id(0), i = get_global_id(0); __local float tile[64];
    for (int t = 0; t < n; t++) {
        float x = b[t * 64 + l];
        tile[l] = x * x * x * x * x * x * x * x + 1.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        float y = tile[63 - l];
        a[t * 64 + i % 64] = y * y * y * y * y * y * y * y + 2.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
    }"""
    assert core("floats", kernel(text)) == pytest.approx(4096 * 64 * 16 / lanes(), rel=0.2)


def test_sums_in_registers_between_barriers_of_a_loop() -> None:
    """Work-items come back to code before the first barrier from behind the last one."""
    text = """size_t x = get_local_id(0), y = get_local_id(1); float sum[4]; __local float tile[16][16];
    for (int r = 0; r < 4; r++) sum[r] = 0;
    int k = 0;
    do {
        for (int j = y; j < 16; j += 16) tile[j][x] = b[x + (k + j) * 64];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < 16; j++) {
            #pragma unroll
            for (int r = 0; r < 4; r++)
                sum[r] += tile[j][x] * tile[(j + r) % 16][y];
        }
        k += 16;
        barrier(CLK_LOCAL_MEM_FENCE);
    } while (k < n);
    for (int r = 0; r < 4; r++) a[(get_global_id(1) * 4 + r) * 64 + get_global_id(0)] = sum[r];"""
    found = core("floats", kernel(text, local=(16, 16), items=(64, 64)))
    assert found == pytest.approx(4096 * 64 * 4 / lanes(), rel=0.3)


def test_along_axes_that_have_one_work_item_as_required_or_unasked_for_there_is_no_loop() -> None:
    text = """size_t i = get_global_id(1) * 64 + get_global_id(0);
    for (int f = 0; f < 3; f++) {
        float s = 0;
        for (int j = 0; j < n; j++)
            s += a[i + j] * b[f * 64 + j];
        a[f * 4096 + i] = s;
    }"""
    free = kernel(text, local=(16, 16, 1), items=(64, 64, 4))
    source = free.launch().source.replace("__kernel", "__kernel __attribute__((reqd_work_group_size(16, 16, 1)))")
    program = OpenCLProgram(source, "k", (64, 64, 4), (16, 16, 1), list(free.launch().arguments))
    required = pm.Kernel(program, {}, None, n=64).as_core_code()
    for of in (free, required):
        assert core("floats", of) == pytest.approx(64 * 64 * 4 * 3 * 64 / lanes(), rel=0.15)


def test_vectors_lie_along_the_axis_whose_work_items_touch_neighbouring_places() -> None:
    text = """int x = get_global_id({0}), y = get_global_id({1}); float s = 0;
    for (int j = 0; j < n; j++)
        s = s * b[y * n + x] + a[j];
    a[y * n + x] = s;"""
    of = {
        (first, local): core("floats", kernel(text.format(first, 1 - first), local=local, items=(64, 64)))
        for first in (0, 1)
        for local in ((64, 1), (1, 64))
    }
    for first, local in ((0, (64, 1)), (1, (1, 64))):
        assert of[first, local] == pytest.approx(4096 * 64 / lanes(), rel=0.15)
        assert of[1 - first, local] == pytest.approx(4096 * 64, rel=0.15)


HELPED = """float helper(__global const float *b, int turns) {{
    float s = 0;
    for (int j = 0; j < turns; j++)
        s += b[j] / (s + 2);
    return s;
}}
__kernel void k(__global float *a, __global const float *b, int n) {{
    size_t i = get_global_id(0);
    float s = helper(b + i, {first});
    if (i < 512)
        s += helper(b + 2 * i, {second});
    a[i] = s;
}}"""


@pytest.mark.parametrize(("first", "second"), [("n", "3 * n"), ("3 * n", "n")])
def test_a_function_s_code_is_counted_by_where_it_is_called_from(first: str, second: str) -> None:
    free = kernel("a[0] = 0;")
    arguments = list(free.launch().arguments)
    program = OpenCLProgram(HELPED.format(first=first, second=second), "k", 4096, 64, arguments)
    turns = [{"n": 64, "3 * n": 192}[each] for each in (first, second)]
    found = core("divides", pm.Kernel(program, {}, None, n=64).as_core_code())
    one = core("divides", kernel("size_t i = get_global_id(0); a[i] = a[i] / b[i];")) / 4096  # of one work-item
    assert found == pytest.approx(one * (4096 * turns[0] + 512 * turns[1]), rel=0.15)


def test_a_function_that_stays_one_is_executed_as_often_as_all_call_it() -> None:
    body = "size_t i = get_global_id(0); a[i] = {};"
    source = f"""__attribute__((noinline)) float helper(float x, int n) {{
        for (int j = 0; j < n; j++) x = x / (x + 1);
        return x;
    }}
    __kernel void k(__global float *a, __global const float *b, int n) {{
        {body.format(" + ".join(f"helper(b[i] + {number}, n)" for number in range(4)))}
    }}"""
    program = OpenCLProgram(source, "k", 4096, 64, list(kernel("a[0] = 0;").launch().arguments))
    one = core("divides", kernel(body.format("a[i] / b[i]")))
    assert core("divides", pm.Kernel(program, {}, None, n=64).as_core_code()) == pytest.approx(4 * 64 * one, rel=0.15)


def test_ways_through_a_built_in_function_exclude_each_other() -> None:
    body = "size_t i = get_global_id(0); a[i] = {};"
    length, root = (
        core("divides", kernel(body.format(what), local=2))
        for what in ("length((float3)(a[i], b[i], 1))", "sqrt(b[i])")
    )
    assert root <= length < 2 * root  # there are three roots in its code, in double precision


@pytest.mark.parametrize(("limit", "expected"), [(1000, 1), (-1, 0)])
def test_of_a_loop_s_versions_the_one_that_conditions_choose_is_counted(limit: int, expected: int) -> None:
    text = """size_t i = get_global_id(0); float s = 0;
    for (int j = 0; j < n; j++) { if (n < {}) s += a[j] / (b[i] + j); else s += a[j] * b[i]; }
    a[i] = s;""".replace("{}", str(limit))
    one = core("divides", kernel("size_t i = get_global_id(0); a[i] = a[i] / b[i];"))
    assert core("divides", kernel(text)) == pytest.approx(64 * one * expected, rel=0.15, abs=one)


UNTIL = """size_t i = get_global_id(0); int j = 0; float s = a[i];
while (j < n && b[(i * 64 + j) & 65535] < 0.9f) { s = s * 0.5f + 1; j++; }
a[i] = s + j;"""


def test_a_switch_of_single_work_items_hides_no_loop_of_vectors() -> None:
    """Those that fill no vector jump by a table to one case; vectors go through all cases, under masks."""
    cases = "".join(f"case {n}: x += exp(x * {n}.5f); break;\n" for n in range(12))
    text = f"""int i = get_global_id(0); float x = b[i];
    for (int t = 0; b[t] < 2.0f && t < n; t++)
        switch ((int)(12 * b[i + t])) {{ {cases} }}
    a[i] = x;"""
    one = core("functions", kernel("a[get_global_id(0)] = exp(b[get_global_id(0)]);"))
    assert core("functions", kernel(text)) == pytest.approx(64 * 12 * one, rel=0.1)


def test_ends_of_loops_that_data_decide_are_not_foreseen() -> None:
    random = np.random.default_rng(0).random(1 << 16, dtype=np.float32)
    regular = np.where(np.arange(1 << 16) % 64 == 9, 1.0, 0.0).astype(np.float32)
    zeros = np.zeros(1 << 16, np.float32)
    plain = pm.Kernel(kernel(UNTIL, local=4, items=1024).program.as_opencl(), {}, None, n=64)
    unlike, alike = (plain.as_observed({"a": zeros, "b": data}).as_core_code() for data in (random, regular))
    assert core("guesses", unlike) == pytest.approx(1024, rel=0.3)  # one for each work-item
    assert core("guesses", alike) == 0
    assert core("waits", unlike) > 1.5 * core("waits", alike)  # a core looks no further than it can guess
    assert core("guesses", kernel(PRODUCT.format(turns="n", pragma=""))) == 0


def test_branches_by_sorted_data_are_foreseen() -> None:
    text = """size_t i = get_global_id(0);
    if (b[i] > 0.5f) { float s = 1; for (int j = 0; j < n; j++) s = s * a[j] + 1; a[i] = s; }"""
    random = np.random.default_rng(0).random(1 << 16, dtype=np.float32)
    plain = pm.Kernel(kernel(text, local=4).program.as_opencl(), {}, None, n=64)
    found = {
        name: core("guesses", plain.as_observed({"a": random, "b": data}, groups="all").as_core_code())
        for name, data in (("as it is", random), ("sorted", np.sort(random[:4096]).repeat(16)))
    }
    assert found["as it is"] == pytest.approx(4096 / 2, rel=0.3)
    assert found["sorted"] < 4096 / 20


def test_lanes_that_are_stored_one_by_one_are_those_that_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler asks each lane of a vector whether it is to be stored where AVX2 has no such store."""
    monkeypatch.setenv(TARGET, "core-avx2")
    text = """size_t i = get_global_id(0); float best = 1;
    for (int j = 0; j < n; j++) { float v = b[i + j * 64]; if (v < best) { a[i * 3 + j] = j; best = v; } }"""
    falling = np.tile(np.linspace(1, 0, 1 << 8, dtype=np.float32), 1 << 8)
    few, many = (
        pm.Kernel(kernel(text).program.as_opencl(), {}, None, n=32).as_observed({"a": falling, "b": data})
        for data in (np.full(1 << 16, 2, np.float32), np.repeat(falling, 64)[: 1 << 16])
    )
    none, all_ = (core("stores", each.as_core_code()) for each in (few, many))
    assert none < 4096  # what is kept in frames
    assert all_ - none == pytest.approx(4096 * 32, rel=0.3)


def test_what_is_stored_under_a_mask_is_done_by_all_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler for AVX-512 asks no vector whether any of its lanes takes part in a round of a tree of sums."""
    monkeypatch.setenv(TARGET, "skx")
    tree = """__local float t[64]; int l = get_local_id(0); t[l] = b[l];
    for (int d = 32; d > 0; d /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) t[l] += t[l + d];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    a[get_global_id(0)] = t[0];"""
    rounds, vectors, groups = 6, 4, 64
    assert core("floats", kernel(tree)) == pytest.approx(rounds * vectors * groups, rel=0.15)


def test_what_a_condition_stores_is_done_as_often_as_it_holds() -> None:
    text = """__local float t[256];
    size_t x = get_local_id(0) + get_local_id(1), l = x;
    t[l] = b[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int p = 128; p >= 1; p >>= 1) {
        if (l < p)
            t[l] = t[l] * t[l + p] + 1;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        a[get_group_id(1)] = t[0];"""
    one_by_one = core("floats", kernel(text, local=(1, 256), items=(1, 4096)))
    assert one_by_one == pytest.approx(16 * 255, rel=0.1)


def test_loops_that_ask_after_each_of_several_iterations_are_executed() -> None:
    text = """size_t i = get_global_id(0); float x = b[i]; int k = 0;
    while (k < 200 && x < 2.0f) { x = x * x + 0.5f; k++; }
    a[i] = k;"""
    data = np.full(1 << 16, 1.6, np.float32)  # two iterations
    plain = pm.Kernel(kernel(text, local=(1, 64), items=(64, 64)).program.as_opencl(), {}, None, n=64)
    found = core("floats", plain.as_observed({"a": data, "b": data}).as_core_code())
    assert 4096 <= found <= 4 * 4096  # one iteration of two or three operations, and what is done of the next


def test_loops_of_a_macro_are_told_apart() -> None:
    loops = "for (int t = 0; t < 3; t++) { for (int j = 0; j < n; j++) s = s * b[j] + x; s += t; }"
    text = "size_t i = get_global_id(0); float s = 0, x = a[i];\n{loops}\na[i] = s;"
    plain = kernel(text.format(loops=loops))
    macro = kernel(f"#define LOOPS {loops}\n" + text.format(loops="LOOPS"))
    for unit in ("floats", "slots", "waits"):
        assert core(unit, macro) == pytest.approx(core(unit, plain), rel=0.05)
    assert core("floats", macro) == pytest.approx(4096 * 3 * 64 / lanes(), rel=0.25)


def test_a_loop_over_the_vectors_of_the_source_does_one_iteration_at_once() -> None:
    """Its vectors are the source's, be they as long as those that a compiler makes of its iterations."""
    text = """short16 before[65]; for (int j = 0; j < 65; j++) before[j] = 0;
    __global const char *read = (__global const char *)b + get_global_id(0) * 16; short16 most = 0;
    for (int k = 0; k < 16; k++) {
        for (int j = 0; j < n; j++) {
            short16 own = convert_short16(vload16(j + k, read));
            short16 now = max(max(before[j + 1] - (short)3, before[j] + own), (short16)0);
            before[j + 1] = now; most = max(most, now);
        }
    }
    vstore16(most, get_global_id(0), (__global short *)a);"""
    found = core("loads", kernel(text, local=1, items=128))
    assert found >= 128 * 16 * 64
