"""Compares the addresses of scattered accesses with numpy over all work-items."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

SIDE = 512


def kernel(index: str) -> pm.Kernel:
    source = f"""__kernel void k(__global float *o, __global const float *a) {{
    const uint x = get_global_id(1), y = get_global_id(0);
    o[x * {SIDE} + y] = a[{index}];
}}"""
    extents = {"o": SIDE * SIDE, "a": SIDE * SIDE}
    return pm.Kernel.from_opencl(source, "k", (SIDE, SIDE), (256, 1), extents)


def places(index: str) -> np.ndarray:
    """Returns addresses in bytes, by x and y, computed with 32-bit unsigned numbers."""
    x, y = np.meshgrid(np.arange(SIDE, dtype=np.uint32), np.arange(SIDE, dtype=np.uint32), indexing="ij")
    with np.errstate(over="ignore"):
        found = eval(index.replace("u", ""), {"x": x, "y": y})
    return np.asarray(found, dtype=np.int64) * 4


INDICES = [
    f"((x * y) % {SIDE}u) * {SIDE}u + y",
    f"((y - x) % {SIDE}u) * {SIDE}u + 5u",
    f"((y * 40503u) % {SIDE}u) * {SIDE}u + (x * 7u) % {SIDE}u",
    f"(x * {SIDE}u + y) * 2654435761u % {SIDE * SIDE}u",
    "(x * x + y) & 127u",
]


@pytest.mark.parametrize("index", INDICES)
def test_blocks_of_groups_are_those_of_all_groups(index: str) -> None:
    made = kernel(index)
    lines = places(index).reshape(-1, 256) // 32
    by_group = sum(len(np.unique(line)) for line in lines) * 32
    scattered = float(pm.feature("f_mem_scattered_global_load_block:32").eval(made))
    # Eight of a thousand groups are looked at.
    assert scattered == pytest.approx(by_group, rel=0.15)
    by_subgroup = sum(len(np.unique(line)) for line in lines.reshape(-1, 32))
    transactions = float(pm.feature("f_mem_transactions_global_load_block:32").eval(made))
    assert transactions == pytest.approx(by_subgroup, rel=0.15)


@pytest.mark.parametrize("index", INDICES)
def test_reach_is_about_what_the_launch_touches(index: str) -> None:
    made = kernel(index)
    touched = len(np.unique(places(index) // 32)) * 32
    (access,) = [a for a in made.counts.accesses if a.direction == "load" and a.space == "global"]
    assert access.reach is not None
    assert touched / 1.5 < access.reach < touched * 1.5  # some addresses are more likely than others
    beyond = float(pm.feature(f"f_mem_scattered_global_load_block:32_reach:>{2 * touched}").eval(made))
    assert beyond == 0


def test_products_of_ids_are_sampled() -> None:
    made = kernel("x * y")
    lines = (places("x * y").reshape(-1, 32) // 32).tolist()
    found = float(pm.feature("f_mem_transactions_global_load_block:32").eval(made))
    assert found == pytest.approx(sum(len(set(line)) for line in lines), rel=0.15)


def test_what_data_decide_is_not_sampled() -> None:
    source = """__kernel void k(__global float *o, __global const float *a, __global const int *t) {
    int i = get_global_id(0);
    o[i] = a[t[i]];
}"""
    made = pm.Kernel.from_opencl(source, "k", 4096, 256, {"o": 4096, "a": 4096, "t": 4096})
    access = next(a for a in made.counts.accesses if a.variable == "a")
    assert access.addresses is None
    assert access.reach is None
    assert pm.feature("f_mem_scattered_global_load_block:32").eval(made) == 0
    # A block for each work-item, and an array at most.
    assert pm.feature("f_mem_footprint_global_load_var:{a}_block:32").eval(made) == 4096 * 4


def test_what_a_cache_keeps_is_left_out_by_beyond() -> None:
    made = kernel("(x * x + y) & 127u")
    name = "f_mem_footprint_global_load_granularity:workgroup_block:32"
    assert pm.feature(name).eval(made) > 0
    assert pm.feature(f"{name}_beyond:65536").eval(made) == 0


TILED = """kernel void tiled(global const float *a, global float *b, local float *s) {
    int item = get_local_id(1) * 16 + get_local_id(0);
    for (int turn = 0; turn < 8; turn++) {
        int flat = turn * 256 + item, row = flat % WIDTH, column = flat / WIDTH;
        s[column * WIDTH + row] = a[column * 2048 + get_group_id(0) * WIDTH + row];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    b[get_group_id(0) * 256 + item] = s[item];
}"""


@pytest.mark.parametrize("width", [8, 16, 32, 128])
def test_places_of_flat_ids_that_are_split_again_are_those_in_the_first_iterations(width: int) -> None:
    extents = {"a": 2048 * 256, "b": 256 * 16, "s": 4 * 2048}
    options = [f"-DWIDTH={width}"]
    made = pm.Kernel.from_opencl(TILED, "tiled", (16 * 16, 16), (16, 16), extents, options=options)
    assert not made.counts.can_be_observed
    given = made.as_countable({"a": np.zeros(2048 * 256, np.float32)})
    assert given.counts == made.counts
    assert not given.is_observed
    item = np.arange(256)
    lines = (item // width * 2048 + item % width).reshape(8, 32) // 8
    once = sum(len(np.unique(line)) for line in lines)
    transactions = pm.feature("f_mem_transactions_global_load_block:32").eval(made)
    assert transactions == once * 8 * 16
    assert pm.feature("f_mem_footprint_global_load").eval(made) == 4 * 2048 * 16


def test_banks_of_local_memory_are_those_of_places() -> None:
    source = """kernel void k(global float *o, local float *s) {
    int i = get_local_id(0);
    s[i % 8 * 32 + i / 8] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = s[i];
}"""
    made = pm.Kernel.from_opencl(source, "k", 4096, 64, {"o": 4096, "s": 4 * 256})
    # Eight work-items of a sub-group at a time are one row of 32 words apart.
    assert pm.feature("f_mem_transactions_local_store_banks:32").eval(made) == 4096 // 32 * 8


WIDTH, HEIGHT, KEPT = 2048, 1024, 2**19


@pytest.mark.parametrize("column", ["(x * 9 + y * 5)", "(x * x * 3 + y)", "(x / 4 + y * 16)", "(y * 8)"])
def test_misses_of_a_last_level_cache_are_those_of_the_accesses_before(column: str) -> None:
    source = f"""__kernel void k(__global float *o, __global const float *a) {{
    const uint x = get_global_id(1), y = get_global_id(0);
    o[x * {WIDTH} + y] = a[y * {4 * WIDTH} + {column} % {4 * WIDTH}];
}}"""
    extents = {"o": WIDTH * HEIGHT, "a": 4 * WIDTH * WIDTH}
    made = pm.Kernel.from_opencl(source, "k", (WIDTH, HEIGHT), (256, 1), extents)
    x, y = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), indexing="ij")
    columns = eval(column.replace("/", "//"), {"x": x, "y": y}) % (4 * WIDTH)
    sectors = ((y * 4 * WIDTH + columns) // 8).ravel()
    last = np.full(sectors.max() + 1, -(2**40))
    last[sectors] = np.arange(len(sectors)) - len(sectors)  # the launch before
    missed = 0
    for start in range(0, len(sectors), WIDTH):  # no sector twice in a row of work-items
        own = sectors[start : start + WIDTH]
        missed += int(np.sum(start - last[own] > KEPT))
        last[own] = start
    found = float(pm.feature("f_mem_scattered_global_load_missed_block:32").eval(made))
    assert found / 32 / len(sectors) == pytest.approx(
        missed / len(sectors), abs=0.1
    )  # where launches meet, some find what the one before left


TABLE = """__constant float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__kernel void k(__global const float *a, __global float *o, const int m, const int n) {
    const int i = get_global_id(0);
    float s = 0;
    for (int j = 0; j < END; j++) s += weights[PLACE] * a[i + j * n];
    o[i] = s;
}"""


@pytest.mark.parametrize(("end", "place", "is_loaded"), [("5", "j", False), ("m", "(j&7)", True), ("5", "(i&7)", True)])
def test_places_of_tables_that_are_known_are_operands(end: str, place: str, is_loaded: bool) -> None:
    options = [f"-DEND={end}", f"-DPLACE={place}"]
    kernel = pm.Kernel.from_opencl(TABLE, "k", "n", 64, {"a": "5 * n", "o": "n"}, options=options, m=5, n=4096)
    feature = pm.feature("f_mem_access_global_load_tag:constant")
    assert float(feature.eval(kernel)) > 0
    assert (float(feature.eval(kernel.as_compiled())) > 0) is is_loaded
