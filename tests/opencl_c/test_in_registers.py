"""Numbers that loops which are written out load again and again stay in registers: each is loaded once."""

from __future__ import annotations

import pytest

import perfmodel as pm

N, GROUP = 64, 8
FRAME = """__kernel void k(__global const float *restrict a, __global const float *restrict b,
                            __global float *restrict c, __local float *tile, const int n)
{{
    const int x = {columns} * get_global_id(0), y = {rows} * get_global_id(1);
    float sum[{rows}][{columns}] = {{{{0}}}};
    for (int k = 0; k < n; k++) {{
        {before}
        for (int u = 0; u < {rows}; u++)
            for (int v = 0; v < {columns}; v++) {{
                sum[u][v] += {body};
                {after}
            }}
    }}
    for (int u = 0; u < {rows}; u++)
        for (int v = 0; v < {columns}; v++) c[(y + u) * n + x + v] = sum[u][v];
}}"""
PRODUCT = "a[(y + u) * n + k] * b[k * n + x + v]"


def kernel_of(
    rows: int, columns: int, body: str = PRODUCT, before: str = "", after: str = "", restrict: str = "restrict"
) -> pm.Kernel:
    source = FRAME.format(rows=rows, columns=columns, body=body, before=before, after=after)
    source = source.replace("restrict", restrict)
    arrays: dict[str, int | str] = {"a": "64 * n * n", "b": "64 * n * n", "c": "64 * n * n", "tile": 4 * 64}
    return pm.Kernel.from_opencl(
        source, "k", ("n", "n"), (GROUP, GROUP), arrays, assumptions="n % 8 == 0 and n >= 8", n=N
    )


def loads(kernel: pm.Kernel, space: str = "global") -> float:
    """Returns the loads of one step of a work-item's outer loop."""
    return float(pm.feature(f"f_mem_access_{space}_load").eval(kernel)) / N**3


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (2, 2), (2, 8), (8, 8), (2, 32)])
def test_a_tile_of_results_loads_a_row_and_a_column(rows: int, columns: int) -> None:
    kernel = kernel_of(rows, columns)
    assert loads(kernel) == 2 * rows * columns
    assert loads(kernel.as_compiled()) == rows + columns


def test_rows_that_are_too_long_together_are_not_written_out_side_by_side() -> None:
    # A row of 40 is written out, and uses one element of a; two such rows are more than compilers write out.
    assert loads(kernel_of(2, 40).as_compiled()) == 2 + 2 * 40


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a[x + u + v]", 4 + 4 - 1),  # a window that slides
        ("a[x + 2 * u + v]", 2 * 3 + 4),
        ("a[x + 4 * u + v]", 4 * 4),
        ("a[(y + u) * n + x + v + k] * a[(y + u) * n + x + v + k + 1]", 4 * (4 + 1)),  # two windows, of a place more
        ("a[(y + u) * n + x + v + k] * a[(y + u + 1) * n + x + v + k]", (4 + 1) * 4),
        ("a[(y + u) * n + x + v + k] * a[(x + v) * n + y + u + k]", 2 * 16),
    ],
)
def test_windows_load_each_place_once(body: str, expected: int) -> None:
    kernel = kernel_of(4, 4, body)
    assert loads(kernel) == 16 * body.count("a[")
    assert loads(kernel.as_compiled()) == expected


def test_what_is_too_much_to_stay_is_loaded_again() -> None:
    """Each of four rows uses all 64 numbers, which do not stay in between."""
    source = """__kernel void k(__global const float *restrict a, __global float *restrict c, const int n)
    {
        float sum[4] = {0};
        #pragma unroll
        for (int r = 0; r < 4; r++)
            #pragma unroll
            for (int u = 0; u < 64; u++) sum[r] += a[get_global_id(0) + u * n];
        for (int r = 0; r < 4; r++) c[4 * get_global_id(0) + r] = sum[r];
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", "n", GROUP, {"a": "65 * n", "c": "4 * n"}, n=N)
    assert pm.feature("f_mem_access_global_load").eval(kernel.as_compiled()) == 4 * 64 * N


def test_what_does_not_move_at_all_is_loaded_once() -> None:
    assert loads(kernel_of(4, 4, "a[k] * b[k * n + x + v]").as_compiled()) == 1 + 4


@pytest.mark.parametrize("after", ["c[k] = sum[u][v];", "barrier(CLK_LOCAL_MEM_FENCE);"])
def test_what_may_have_changed_is_loaded_again(after: str) -> None:
    assert loads(kernel_of(4, 4, after=after, restrict="").as_compiled()) == 2 * 16


def test_stores_before_the_loops_and_to_other_memory_change_nothing() -> None:
    assert loads(kernel_of(4, 4, before="c[k] = 1;", restrict="").as_compiled()) == 4 + 4
    assert loads(kernel_of(4, 4, after="c[k] = sum[u][v];").as_compiled()) == 4 + 4
    assert loads(kernel_of(4, 4, after="tile[u] = sum[u][v];").as_compiled()) == 4 + 4


def test_local_memory_is_as_global_memory() -> None:
    body = "tile[u] * b[k * n + x + v]"
    assert loads(kernel_of(4, 4, body).as_compiled(), "local") == 4
    assert loads(kernel_of(4, 4, body, after="tile[8] = sum[u][v];").as_compiled(), "local") == 16
    assert loads(kernel_of(4, 4, body, after="c[k] = sum[u][v];").as_compiled(), "local") == 4


def test_loops_that_are_not_written_out_load_again() -> None:
    source = """__kernel void k(__global const float *restrict a, __global float *restrict c, const int n)
    {
        float sum = 0;
        for (int k = 0; k < n; k++) for (int u = 0; u < n; u++) sum += a[u];
        c[get_global_id(0)] = sum;
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", "n", GROUP, {"a": "n", "c": "n"}, assumptions="n % 8 == 0", n=N)
    assert loads(kernel.as_compiled()) == 1
