"""Transactions that are counted once where accesses share blocks (``distinct``), and only those that the iteration
before has not made (``fresh``)."""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError

ITEMS, ITERATIONS = 1024, 64
SUBGROUPS = ITEMS / 32
FRAME = """typedef struct {{ float x, y, z, w; }} Point;
__kernel void k(__global const float *a, __global const Point *p, __global float *o, const int m, const int n)
{{
    const int i = get_global_id(0);
    float s = 0;
    {}
    o[i] = s;
}}"""
LOOP = "for (int j = 0; j < m; j++) "
ARRAYS: dict[str, int | str] = {"a": "2 * n * m + 16 * m", "p": "n * m", "o": "n"}

# Blocks of 32 bytes that a sub-group's loads touch: all, those of distinct accesses, and the fresh ones of either.
# 32 floats side by side are 4 blocks, and rows that they walk 32.
BODIES = {
    "rows": (LOOP + "s += a[i * m + j];", 64 * 32, 64 * 32, 64 * 32 / 8, 64 * 32 / 8),
    "columns": (LOOP + "s += a[j * n + i];", 64 * 4, 64 * 4, 64 * 4, 64 * 4),
    "one place": (LOOP + "s += a[j];", 64, 64, 64 * 4 / 128, 64 * 4 / 128),
    "half a line further": (LOOP + "s += a[i + 16 * j];", 64 * 4, 64 * 4, 64 * 4 / 2, 64 * 4 / 2),
    "one element further": (LOOP + "s += a[i + j];", 64 * 4, 64 * 4, 64 * 4 / 32, 64 * 4 / 32),
    "no loop": ("s = a[i];", 4, 4, 4, 4),
    "neighbours": ("s = a[i] + a[i + 1] + a[i + 2];", 3 * 4, 4, 3 * 4, 4),
    "neighbours in a loop": (
        LOOP + "s += a[i * m + j] + a[i * m + j + 1];",
        2 * 64 * 32,
        64 * 32,
        2 * 64 * 32 / 8,
        64 * 32 / 8,
    ),
    "two rows of a grid": (LOOP + "s += a[j * n + i] + a[(j + 1) * n + i];", 2 * 64 * 4, 64 * 4, 2 * 64 * 4, 64 * 4),
    "two loops": (LOOP + "s += a[j * n + i];" + LOOP + "s += a[j * n + i + 1];", 512, 512, 512, 512),
    "other strides": ("s = a[i] + a[2 * i];", 4 + 8, 4 + 8, 4 + 8, 4 + 8),
    "two arrays": ("s = a[i] + o[i];", 4 + 4, 4 + 4, 4 + 4, 4 + 4),
    "fields of a struct": ("s = p[i].x + p[i].y + p[i].w;", 3 * 16, 16, 3 * 16, 16),
    "fields at one place": (LOOP + "s += p[j].x * p[j].y;", 2 * 64, 64, 2 * 64 * 16 / 128, 64 * 16 / 128),
}


def blocks(body: str, words: str = "") -> float:
    kernel = pm.Kernel.from_opencl(
        FRAME.format(body), "k", "n", 64, ARRAYS, assumptions="m >= 1 and n >= 64", n=ITEMS, m=ITERATIONS
    )
    return float(pm.feature(f"f_mem_transactions_global_load_block:32{words}").eval(kernel)) / SUBGROUPS


@pytest.mark.parametrize("case", BODIES)
def test_blocks_that_accesses_share_and_blocks_of_iterations_before(case: str) -> None:
    body, *expected = BODIES[case]
    assert [blocks(body, words) for words in ("", "_distinct", "_fresh", "_distinct_fresh")] == expected
    assert blocks(body, "_fresh_distinct") == expected[-1]


def test_work_groups_smaller_than_a_sub_group_have_shorter_rows() -> None:
    body = FRAME.format(LOOP + "s += a[i + 2 * j];")
    kernel = pm.Kernel.from_opencl(body, "k", "n", 16, ARRAYS, n=ITEMS, m=ITERATIONS)
    found = pm.feature("f_mem_transactions_global_load_block:32_fresh").eval(kernel)
    assert found == ITEMS / 16 * ITERATIONS * 2 * (2 / 16)  # of 16 floats side by side, 2 blocks, 2 floats are new


def test_a_word_twice_is_refused() -> None:
    with pytest.raises(FeatureError, match="distinct"):
        pm.feature("f_mem_transactions_global_load_block:32_distinct_distinct")


# Blocks that sub-groups touch of which not all work-items take part.
OF_SOME = {
    "a quarter of rows": ("if (get_local_id(0) % 4 == 0) s = a[i * m];", 8),
    "one of a sub-group": ("if (get_local_id(0) % 32 == 0) s = a[i];", 1),
    "all": ("if (get_local_id(0) >= 0) s = a[i];", 4),
}


@pytest.mark.parametrize("case", OF_SOME)
def test_work_items_that_take_no_part_touch_no_blocks(case: str) -> None:
    body, expected = OF_SOME[case]
    assert blocks(body) == pytest.approx(expected)


# Blocks that stores of rows touch, and those that they come to after a while.
STORES = {
    "a loop": (LOOP + "o[i * m + j] = s;", 64 * 32, 64 * 32 / 8),
    "four at once": ("for (int j = 0; j < 4; j++) o[4 * i + j] = s;", 4 * 16, 4 * 16),
    "vectors": ("for (int j = 0; j < 2; j++) v[2 * i + j] = s;", 2 * 32, 2 * 32),
}


@pytest.mark.parametrize("case", STORES)
def test_stores_that_follow_each_other_at_once_come_to_no_block_again(case: str) -> None:
    body, *expected = STORES[case]
    source = FRAME.format(body).replace("o[i] = s;", "").replace("const int n", "const int n, __global float4 *v")
    kernel = pm.Kernel.from_opencl(
        source, "k", "n", 64, {"a": "n", "p": "n", "o": "n * m", "v": "2 * n"}, n=ITEMS, m=ITERATIONS
    ).as_compiled()
    name = "f_mem_transactions_global_store_block:32"
    assert [float(pm.feature(name + words).eval(kernel)) / SUBGROUPS for words in ("", "_fresh")] == expected


@pytest.mark.parametrize(
    ("place", "comes_again"),
    [("k * 4096 + 4 * i + j", False), ("i * 4096 + 4 * k + j", True), ("i * 4096 + 8 * k + j", False)],
)
def test_what_comes_again_to_written_out_loops_is_what_the_loop_around_them_leaves(
    place: str, comes_again: bool
) -> None:
    """Iterations that are written out load together; the next ones find a sector again that these took a part of."""
    text = f"""__kernel void sums(__global const float *a, __global float *out, int n)
    {{
        int i = get_global_id(0);
        float sum = 0;
        for (int k = 0; k < n; k++) {{
            #pragma unroll
            for (int j = 0; j < 4; j++)
                sum += a[{place}];
        }}
        out[i] = sum;
    }}"""
    knl = pm.Kernel.from_opencl(text, "sums", 1024, 256, {"a": 4096 * 1024, "out": 1024}, n=500).as_compiled()
    assert (pm.feature("f_mem_transactions_global_load_block:32_again").eval(knl) > 0) == comes_again
