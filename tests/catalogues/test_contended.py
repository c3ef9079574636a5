"""Atomics are a direction of their own, and contend for the bytes that they go to."""

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm

SOURCE = """__kernel void count(__global const int *keys, __global int *bins, __global int *total, const int n)
{
    const int i = get_global_id(0);
    atomic_inc(&bins[keys[i]]);
    atomic_add(total, 1);
}"""
N, BINS = 4096, 1 << 14


def kernel() -> pm.Kernel:
    return pm.Kernel.from_opencl(SOURCE, "count", "n", 256, {"keys": "n", "bins": BINS, "total": 1}, n=N)


def test_atomics_are_neither_loads_nor_stores() -> None:
    assert pm.feature("f_mem_access_global_atomic").eval(kernel()) == 2 * N
    assert pm.feature("f_mem_access_global_load").eval(kernel()) == N
    assert pm.feature("f_mem_access_global_store").eval(kernel()) == 0
    assert pm.feature("f_mem_bytes_global_atomic_var:bins").eval(kernel()) == 4 * N
    assert pm.feature("f_mem_footprint_global_atomic_var:total").eval(kernel()) == 4


def test_what_goes_to_one_place_is_done_one_after_the_other() -> None:
    keys = np.random.default_rng(0).permutation(BINS)[:N].astype(np.int32)
    observed = kernel().as_countable({"keys": keys})
    found = pm.feature("f_mem_contended_global_atomic_block:512").eval(observed)
    assert found == N / 32  # each sub-group's update of the total; those of bins are spread over all of them
    assert pm.feature("f_mem_contended_global_store_block:512").eval(observed) == 0


def test_transfers_copy_what_atomics_change_both_ways() -> None:
    launch = kernel().with_transfers().launch()
    assert launch.copied_in == ("keys", "bins", "total")
    assert launch.copied_out == ("bins", "total")


MEETING = """__kernel void meet(__global const int *keys, __global int *bins, __global int *sums, const int n)
{
    const int i = get_global_id(0), l = get_local_id(0);
    __local int own[64];
    own[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&own[keys[i]]);
    atomic_add(&own[l % 4], l);
    atomic_max(&own[0], l);
    atomic_add(&sums[l / 8 * 8], 1);
    if (l % 2)
        atomic_inc(&bins[keys[i]]);
}"""


def passes_by_hand(keys: NDArray[np.int32], is_of_banks: bool) -> float:
    """Returns what atomics on bins that data choose take: the most at a bank, or at one place of each sector."""
    total = 0
    for own in keys.reshape(-1, 32):
        met = np.bincount(own if is_of_banks else own[1::2], minlength=64)
        total += int(met.reshape(2, 32).sum(axis=0).max() if is_of_banks else met.reshape(8, 8).max(axis=1).sum())
    return total


def test_atomics_of_a_subgroup_that_meet_take_a_pass_each() -> None:
    n = 64 * 16  # as many groups as are emulated
    keys = (np.random.default_rng(5).random(n) ** 3 * 64).astype(np.int32)
    kernel = pm.Kernel.from_opencl(MEETING, "meet", "n", 64, {"keys": "n", "bins": 64, "sums": 64}, n=n)
    given = {"keys": keys}
    observed = kernel.as_countable(given)
    subgroups = n / 32
    for each in (observed, observed.as_compiled()):
        # of the sums, 8 of 32 meet at each of 4 sectors
        assert pm.feature("f_mem_contended_global_atomic_block:512").eval(each) == pytest.approx(
            max(subgroups * 4 * 8, passes_by_hand(keys, False))
        )
        assert pm.feature("f_mem_transactions_global_atomic_passes:32").eval(each) == pytest.approx(
            subgroups * 4 * 8 + passes_by_hand(keys, False)
        )
    for each in (observed, observed.as_compiled(), kernel.as_emulated(given, groups="all")):
        # of l % 4, 8 of 32 meet at each of 4 banks; what all have for one place is added up first
        assert pm.feature("f_mem_transactions_local_atomic_banks:32").eval(each) == pytest.approx(
            passes_by_hand(keys, True) + subgroups * (8 + 1)
        )


def test_what_nobody_looked_at_meets_as_if_by_chance() -> None:
    few = pm.Kernel.from_opencl(SOURCE, "count", "n", 256, {"keys": "n", "bins": 8, "total": 1}, n=N)
    found = pm.feature("f_mem_contended_global_atomic_block:512").eval(few)
    assert 7 * N / 32 < found < 9 * N / 32  # the most of 32 in 8 places


@pytest.mark.parametrize(
    "name",
    [
        *("f_mem_contended_global_load_block:512", "f_mem_contended_global_atomic"),
        *("f_mem_transactions_global_load_passes:32", "f_mem_transactions_local_atomic_passes:32"),
    ],
)
def test_contention_is_of_atomics_or_stores_by_blocks(name: str) -> None:
    with pytest.raises(pm.PerfmodelError, match=r"atomic"):
        pm.feature(name)
