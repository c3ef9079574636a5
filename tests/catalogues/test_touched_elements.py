"""Footprints of elements that data place, against the blocks that numpy counts."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

SOURCE = """__kernel void f(__global const int *at, __global float *y)
{
    y[at[get_global_id(0)]] = 1.0f;
}
"""
ITEMS, GROUP = 65536, 256


@pytest.mark.parametrize("block", [1, 2, 4, 32])
def test_elements_that_data_place_are_touched_as_a_whole(block: int) -> None:
    at = np.random.default_rng(1).permutation(ITEMS).astype(np.int32)
    kernel = pm.Kernel.from_opencl(SOURCE, "f", ITEMS, GROUP, {"at": ITEMS, "y": ITEMS}).as_countable({"at": at})
    found = pm.feature(f"f_mem_footprint_global_store_granularity:workgroup_block:{block}").eval(kernel)
    parts = np.arange(4) if block < 4 else np.zeros(1, int)
    touched = (4 * at.reshape(-1, GROUP, 1) + parts) // block
    assert found == pytest.approx(sum(len(np.unique(group)) for group in touched) * block, rel=0.02)
