"""Functions by which work-items exchange values, against numpy and by hand; the kernels beside run on a device too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.basics.errors import FeatureError
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import Machine, Zeros, emulate

VALUES = np.random.default_rng(0).integers(-99, 99, 70).astype(np.int32)
OPTIONS = ("-cl-std=CL3.0",)


def results(expression: str, subgroup_size: int = 8, items: int = 70, before: str = "") -> NDArray[np.int32]:
    """Returns an expression's values over one group; `v` is a work-item's own number, `l` its place in the group."""
    source = f"""__kernel void k(__global const int *a, __global int *out) {{
        const int l = get_local_id(0), v = a[l];
        {before}
        out[l] = {expression};
    }}"""
    machine = Machine(subgroup_size=subgroup_size)
    arguments: dict[str, Any] = {"a": VALUES, "out": Zeros(items)}
    found = emulate(lowered_kernel(source, "k", OPTIONS), items, items, arguments, machine=machine)
    assert not found.findings
    return found.array("out")


def rows(size: int, items: int = 70) -> list[NDArray[np.int32]]:
    return [VALUES[first : min(first + size, items)] for first in range(0, items, size)]


@pytest.mark.parametrize("size", [8, 16, 32])
def test_the_last_sub_group_may_be_smaller(size: int) -> None:
    sums = [np.full(len(row), row.sum()) for row in rows(size)]
    np.testing.assert_array_equal(results("sub_group_reduce_add(v)", size), np.concatenate(sums))
    scans = [np.cumsum(row) for row in rows(size)]
    np.testing.assert_array_equal(results("sub_group_scan_inclusive_add(v)", size), np.concatenate(scans))
    lengths = [np.full(len(row), len(row)) for row in rows(size)]
    np.testing.assert_array_equal(results("get_sub_group_size()", size), np.concatenate(lengths))
    numbers = np.arange(70) // size + 100 * -(-70 // size)
    np.testing.assert_array_equal(results("get_sub_group_id() + 100 * get_num_sub_groups()", size), numbers)


def test_clusters_are_parts_of_a_sub_group() -> None:
    values = VALUES[:64].reshape(-1, 4)
    found = results("sub_group_clustered_reduce_max(v, 4)", 16, 64)
    np.testing.assert_array_equal(found, np.repeat(values.max(axis=1), 4))
    found = results("sub_group_clustered_rotate(v, 1, 4)", 16, 64)
    np.testing.assert_array_equal(found, np.roll(values, -1, axis=1).ravel())
    found = results("sub_group_clustered_reduce_logical_xor(v > 0, 2)", 16, 64)
    np.testing.assert_array_equal(found, np.repeat((VALUES[:64].reshape(-1, 2) > 0).sum(axis=1) % 2, 2))


def test_only_who_is_active_takes_part() -> None:
    found = results("x", 16, 64, "int x = -7; if (l % 3) x = sub_group_non_uniform_reduce_mul(1 + (v & 1));")
    expected = np.full(64, -7)
    for first in range(0, 64, 16):
        active = [item for item in range(first, first + 16) if item % 3]
        expected[active] = np.prod(1 + (VALUES[active] & 1))
    np.testing.assert_array_equal(found, expected)


def test_a_loop_of_shuffles_sums_a_sub_group() -> None:
    loop = "int x = v; for (int d = 16; d > 0; d /= 2) x += sub_group_shuffle_down(x, d);"
    np.testing.assert_array_equal(results("x", 32, 64, loop)[::32], [row.sum() for row in rows(32, 64)])


KERNEL = """
__attribute__((intel_reqd_sub_group_size(16)))
__kernel void k(__global const float *a, __global float *out, const int n)
{
    __local float sums[4];
    float x = 0;
    for (int i = 0; i < n; i++)
        x += a[get_global_id(0) * n + i];
    x = sub_group_reduce_add(x);
    if (get_sub_group_local_id() == 0)
        sums[get_sub_group_id()] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_sub_group_id() == 0) {
        x = get_sub_group_local_id() < get_num_sub_groups() ? sums[get_sub_group_local_id()] : 0;
        x = sub_group_reduce_max(x) + sub_group_broadcast(x, 1);
        if (get_local_id(0) == 0)
            out[get_group_id(0)] = work_group_any(1) ? x : 0;
    }
}
"""


def test_they_are_counted_as_operations_of_their_own() -> None:
    kernel = pm.Kernel.from_opencl(KERNEL, "k", 640, 64, {"a": "640*n", "out": 640}, OPTIONS, n=5)

    def count(name: str) -> float:
        return float(pm.feature(name).eval(kernel))

    assert count("f_op_float32_add") == 640 * 5 + 640 + 160
    assert count("f_op_float32_max") == 160
    assert count("f_sync_collective_subgroup") == 640 + 160 + 160
    assert count("f_sync_collective_reduce") == 640 + 160
    assert count("f_sync_collective_broadcast_granularity:workgroup") == 10
    assert count("f_sync_collective_workgroup_vote") == 10
    assert count("f_mem_access_local_store") == 40
    assert count("f_mem_access_local_load") == 40
    emulated = kernel.as_emulated()
    for name in ("f_sync_collective_subgroup", "f_sync_collective_reduce", "f_op_float32_add"):
        assert pm.feature(name).eval(emulated) == count(name)
    with pytest.raises(FeatureError, match=r"'reduces'.*did you mean 'reduce'"):
        pm.feature("f_sync_collective_reduces")


def test_sub_groups_may_share_local_memory_behind_their_own_barrier() -> None:
    source = """__kernel void k(__global int *out) {
        __local int t[64];
        const int l = get_local_id(0);
        t[l] = l;
        BARRIER
        out[l] = t[l ^ 1];
    }"""
    ids = np.arange(64) ^ 1
    for barrier, kinds in (("sub_group_barrier(CLK_LOCAL_MEM_FENCE);", set()), ("", {"race"})):
        kernel = lowered_kernel(source.replace("BARRIER", barrier), "k", OPTIONS)
        found = emulate(kernel, 64, 64, {"out": Zeros(64)})
        assert {finding.kind for finding in found.findings} == kinds
        np.testing.assert_array_equal(found.array("out"), ids)
    assert not emulate(kernel, 64, 64, {"out": Zeros(64)}).barriers.any()
