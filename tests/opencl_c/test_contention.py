"""Atomics at places that data choose contend as often as the data say, comparisons until they succeed among them."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

NODES, GROUP, MEAN_LENGTH = 2**15, 64, 12
SOURCE = """
inline void add(volatile __global float *at, float value) {
    union { uint whole; float number; } before, after;
    do { before.number = *at; after.number = before.number + value; }
    while (atomic_cmpxchg((volatile __global uint *)at, before.whole, after.whole) != before.whole);
}
inline void add_again(__global float *at, float value) {
    uint before, after, found;
    *(float *)&before = *at;
    *(float *)&after = *(float *)&before + value;
    while ((found = atomic_cmpxchg((__global uint *)at, before, after)) != before) {
        before = found;
        *(float *)&after = *(float *)&before + value;
    }
}
__kernel void push(__global const int *rows, __global const int *columns, __global float *sums) {
    const int i = get_global_id(0);
    for (int e = rows[i]; e < rows[i + 1]; e++) FUNCTION(&sums[columns[e]], 1.0f);
}
__kernel void count(__global const int *rows, __global const int *columns, __global int *sums) {
    const int i = get_global_id(0);
    for (int e = rows[i]; e < rows[i + 1]; e++) atomic_inc(&sums[columns[e]]);
}"""


def graph() -> tuple[np.ndarray, np.ndarray]:
    """Returns rows that begin with the nodes that most of them have."""
    random = np.random.default_rng(3)
    lengths = random.geometric(1 / MEAN_LENGTH, NODES)
    rows = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    popular = random.random(rows[-1]) < 0.2
    columns = np.where(popular, NODES * random.random(rows[-1]) ** 6, random.integers(0, NODES, rows[-1]))
    return rows, np.concatenate([np.sort(row) for row in np.split(columns.astype(np.int32), rows[1:-1])])


@pytest.mark.parametrize(("name", "function"), [("push", "add"), ("push", "add_again"), ("count", "")])
def test_the_busiest_place_has_its_part_of_all_updates(name: str, function: str) -> None:
    rows, columns = graph()
    sizes = {"rows": NODES + 1, "columns": len(columns), "sums": NODES}
    options = [f"-DFUNCTION={function or 'add'}"]
    kernel = pm.Kernel.from_opencl(SOURCE, name, NODES, GROUP, sizes, options)
    observed = kernel.as_observed({"rows": rows, "columns": columns})
    made = np.bincount(columns, minlength=NODES)
    passes = pm.feature("f_mem_transactions_global_atomic_passes:32").eval(observed)
    contended = pm.feature("f_mem_contended_global_atomic_block:512").eval(observed)
    assert contended / passes == pytest.approx(made.reshape(-1, 128).sum(axis=1).max() / made.sum(), rel=0.4)
    if name == "push":
        assert pm.feature("f_mem_retries_global").eval(observed) == pytest.approx(made.max(), rel=0.4)
        pairs = float((made.astype(float) ** 2).sum()) / made.sum()  # tries, for each work-item that is under way
        assert pm.feature("f_mem_retries_global_all").eval(observed) == pytest.approx(pairs, rel=0.4)


NEAREST = """
__kernel void nearest(__global const int *x, __global const int *centres, __global uint *sums, int centres_of_all) {
    const int i = get_global_id(0);
    int best = 0, distance = 1 << 30;
    for (int k = 0; k < centres_of_all; k++)
        if (abs(x[i] - centres[k]) < distance) { distance = abs(x[i] - centres[k]); best = k; }
    atomic_add(&sums[best], x[i]);
}
__kernel void chosen(__global const int *x, __global const int *centres, __global uint *sums, int centres_of_all) {
    if (x[get_global_id(0)] > 0) {
        int place = 0;
        for (int k = 0; k < centres_of_all; k++) place += centres[k] & 1;
        atomic_add(&sums[place], 1);
    }
}
__kernel void counted(__global const int *x, __global const int *centres, __global uint *sums, int centres_of_all) {
    int place = 0;
    for (int k = 0; k < centres_of_all; k++) if (centres[k] > 5) place = k;
    if (x[get_global_id(0)] > 0) atomic_add(&sums[place], 1);
}"""


@pytest.mark.parametrize(("name", "of_each_subgroup"), [("nearest", 32), ("chosen", 1), ("counted", 1)])
def test_places_that_conditions_on_ids_choose_are_not_one_for_all_to_a_compiler(
    name: str, of_each_subgroup: int
) -> None:
    """Updates of one place are joined only where a compiler sees that it is one, and not where data make it one."""
    sizes: dict[str, int | str] = {"x": 4096, "centres": 8, "sums": 64}
    kernel = pm.Kernel.from_opencl(NEAREST, name, 4096, 64, sizes, centres_of_all=8)
    observed = kernel.as_observed({"x": np.full(4096, 9, np.int32), "centres": np.arange(8, dtype=np.int32)})
    passes = pm.feature("f_mem_transactions_global_atomic_passes:32").eval(observed.as_compiled())
    assert passes == pytest.approx(4096 // 32 * of_each_subgroup)


@pytest.mark.parametrize(("change", "is_made_again"), [("", True), ("place=(place+1)&1023;", False)])
def test_comparisons_that_go_on_to_the_next_place_are_not_made_again(change: str, is_made_again: bool) -> None:
    source = """kernel void insert(global int *table, global const int *keys) {
        int key = keys[get_global_id(0)], place = key & 255;
        for (;;) {
            int old = atomic_cmpxchg(table + place, 0, key);
            if (old == 0 || old == key)
                break;
            CHANGE
        }
    }"""
    kernel = pm.Kernel.from_opencl(source, "insert", 512, 64, {"table": 1024, "keys": 512}, [f"-DCHANGE={change}"])
    keys = np.repeat(np.arange(1, 257, dtype=np.int32), 2)
    observed = kernel.as_observed({"table": np.zeros(1024, np.int32), "keys": keys})
    assert (pm.feature("f_mem_retries_global").eval(observed) > 0) == is_made_again


SUMS = """
inline void add(volatile global float *place, float value) {
    float old = value;
    while ((old = atomic_xchg(place, atomic_xchg(place, LEFT) + old)) != LEFT);
}
kernel void sums(global float *out, global const int *keys) { add(out + keys[get_global_id(0)], 1.0f); }
"""


def test_sums_by_two_exchanges_are_made_once_by_each() -> None:
    """An exchange takes what is there and leaves zero, and another one gives back the sum; what others left in the
    meantime is added likewise. A processor's cores hardly ever meet so."""
    n, places = 4096, 64
    kernel = pm.Kernel.from_opencl(SUMS, "sums", n, 64, {"out": places, "keys": n}, ["-DLEFT=0.0f"])
    keys = np.random.default_rng(0).integers(0, places, n).astype(np.int32)
    counted = kernel.as_observed({"out": np.zeros(places, np.float32), "keys": keys}).as_compiled()
    assert pm.feature("f_mem_access_global_atomic").eval(counted) == 2 * n
    assert pm.feature("f_mem_retries_global").eval(counted) == 0


def test_exchanges_that_leave_something_else_are_counted_as_they_come() -> None:
    n, places = 256, 4
    kernel = pm.Kernel.from_opencl(SUMS, "sums", n, 64, {"out": places, "keys": n}, ["-DLEFT=-1.0f"])
    observed = kernel.as_observed({"out": np.full(places, -1, np.float32), "keys": np.arange(n, dtype=np.int32) % 4})
    assert pm.feature("f_mem_access_global_atomic").eval(observed.as_compiled()) > 2 * n
