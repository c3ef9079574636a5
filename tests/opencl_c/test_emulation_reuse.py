"""One emulation of a kernel leaves something for the next, which changes nothing of what that one finds."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c.emulation import Emulation, LocalBytes, Machine, Random, emulate
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read
from tests.opencl_c.kernel_files import Launch, launches
from tests.opencl_c.tally import arguments_of

SOURCE = """__kernel void k(__global int *a, __global int *o, __local int *s, int n)
{
  int i = get_global_id(0), l = get_local_id(0);
  s[l * 3 % 32] = a[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < (a[i] & 7); k++)
    o[i] += s[(l + k) % 32] * n;
  if (a[i] > 40) atomic_add(&o[a[i] & 15], 1);
}"""

SHIFTED = """__kernel void k(__global const float *a, __global float *o, int shift)
{
  int i = get_global_id(0);
  o[i + shift] += a[2 * i] + a[shift];
  o[2 * i + 64] = a[i];
}"""


def lowered() -> LoweredKernel:
    return lower(read(SOURCE), "k")


def run(kernel: LoweredKernel, seed: int = 0, local: int = 32, **options: Any) -> Emulation:
    a = np.random.default_rng(seed).integers(0, 64, 128).astype(np.int32)
    return emulate(kernel, 128, local, {"a": a, "o": np.zeros(128, np.int32), "s": LocalBytes(128), "n": 3}, **options)


def same(one: Emulation, other: Emulation) -> None:
    for name in ("groups", "blocks", "branches", "barriers", "accesses", "footprints"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert [str(finding) for finding in one.findings] == [str(finding) for finding in other.findings]
    assert (one.steps, one.variables) == (other.steps, other.variables)


def test_other_groups_data_and_machines() -> None:
    kernel = lowered()
    given: list[dict[str, Any]] = [
        {},
        {"seed": 1},
        {"groups": [2], "seed": 1},
        {"groups": [3, 1]},
        {"groups": "all"},
        {"groups": [1], "machine": Machine(subgroup_size=8, transaction_bytes=64)},
        {"groups": [1], "local": 16},
        {"groups": [1], "checks": False},
        {"groups": "all", "seed": 2},
        {},
    ]
    for options in given:
        again, new = run(kernel, **options), run(lowered(), **options)
        same(again, new)
        np.testing.assert_array_equal(again.array("o"), new.array("o"))


def test_after_an_emulation_that_failed() -> None:
    kernel = lowered()
    with pytest.raises(EmulationError):
        run(kernel, steps=1)
    same(run(kernel), run(lowered()))


@pytest.mark.parametrize("launch", launches(), ids=str)
def test_every_test_kernel_twice(launch: Launch) -> None:
    unit = read(launch.source, launch.options, launch.folders)
    kernel = lower(unit, launch.kernel)
    shape = launch.global_size, launch.local_size
    first, second = (emulate(kernel, *shape, arguments_of(launch), groups="sample") for _ in range(2))
    same(first, second)


def test_no_memory_is_kept() -> None:
    kernel = lowered()
    run(kernel)
    data = np.arange(128, dtype=np.int32)
    left = weakref.ref(data)
    emulate(kernel, 128, 32, {"a": data, "o": np.zeros(128, np.int32), "s": LocalBytes(128), "n": 3})
    del data
    gc.collect()
    assert left() is None


def test_no_kernel_is_kept() -> None:
    kernel = lowered()
    run(kernel)
    left = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert left() is None


def test_groups_anywhere_in_large_arrays() -> None:
    """Groups whose pages are alike find the same footprints, and others do not."""
    kernel, count = lower(read(SHIFTED), "k"), 1 << 20
    for group, shift in [(0, 0), (512, 0), (513, 0), (1024, 16383), (0, 1), (512, 1)]:
        arguments: dict[str, Any] = {"a": Random(count, 1), "o": Random(count, 2), "shift": shift}
        again, new = (
            emulate(each, 1 << 18, 32, arguments, groups=[group]) for each in (kernel, lower(read(SHIFTED), "k"))
        )
        same(again, new)
        for name in ("a", "o"):
            np.testing.assert_array_equal(again.array(name), new.array(name))


def test_results_stay_when_others_follow() -> None:
    kernel, count = lower(read(SHIFTED), "k"), 1 << 20
    kept = []
    for seed in range(4):
        emulation = emulate(kernel, 1 << 18, 32, {"a": Random(count, seed), "o": Random(count, seed), "shift": 3})
        array = emulation.array("o")[64:96]
        kept.append((array, array.copy()))
        emulation.array("a")[:] = 0  # is the caller's own
        del emulation, array
    for now, then in kept:
        np.testing.assert_array_equal(now, then)
    assert len({then.tobytes() for _, then in kept}) == len(kept)
    again = emulate(kernel, 1 << 18, 32, {"a": Random(count, 0), "o": Random(count, 0), "shift": 3})
    np.testing.assert_array_equal(again.array("o")[64:96], kept[0][1])
