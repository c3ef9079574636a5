"""Atomics are a direction of their own, and contend for the bytes that they go to."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("name", ["f_mem_contended_global_load_block:512", "f_mem_contended_global_atomic"])
def test_contention_is_of_atomics_or_stores_by_blocks(name: str) -> None:
    with pytest.raises(pm.PerfmodelError, match=r"atomic"):
        pm.feature(name)
