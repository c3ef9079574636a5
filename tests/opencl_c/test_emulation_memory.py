"""Buffers: lazy, shared, random, and pointers into any of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.opencl_c.emulation import Emulation, LocalBytes, Random, Zeros, emulate
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read

COPY = """__kernel void k(__global const int *a, __global int *b, int stride) {
  size_t i = get_global_id(0); b[i * stride] = a[i * stride] + 1; }"""


def run(source: str, size: int, local: int, **arguments: Any) -> Emulation:
    options = {name: arguments.pop(name) for name in ("groups", "write_back") if name in arguments}
    return emulate(lower(read(source), "k"), size, local, arguments, **{"groups": "all", **options})


@pytest.mark.parametrize("stride", [1, 7, 1000, 10_000])
def test_large_arrays_are_copied_where_they_are_touched(stride: int) -> None:
    a = np.arange(64 * stride, dtype=np.int32)
    b = np.zeros(64 * stride + 5, np.int32)
    found = run(COPY, 64, 32, a=a, b=b, stride=stride)
    expected = b.copy()
    expected[: 64 * stride : stride] = a[::stride] + 1
    np.testing.assert_array_equal(found.array("b"), expected)
    assert not b.any()


def test_the_same_array_twice_is_the_same_memory() -> None:
    a = np.arange(64, dtype=np.int32)
    source = "__kernel void k(__global int *a, __global int *b) { int i = get_global_id(0); a[i] = 5; b[i] += 1; }"
    for other in (a, a.reshape(8, 8)):
        assert (run(source, 64, 32, a=a, b=other).array("b") == 6).all()
    assert run(source, 64, 32, a=a, b=a.copy()).array("b").ravel().tolist() == list(range(1, 65))


def test_writing_back_needs_memory_that_can_be_written() -> None:
    a = np.arange(64, dtype=np.int32)
    b = np.zeros(128, np.int32)
    run(COPY, 64, 32, a=a, b=b[:64], stride=1, write_back=True)
    assert b.tolist() == [*range(1, 65), *[0] * 64]
    with pytest.raises(KernelError, match="not contiguous"):
        run(COPY, 64, 32, a=a, b=b[::2], stride=1, write_back=True)


@pytest.mark.parametrize(("type_", "low", "high"), [("int", 0, 100), ("char", -5, 5), ("ulong", 7, 2**40)])
def test_random_numbers_are_in_their_range(type_: str, low: int, high: int) -> None:
    source = f"__kernel void k(__global {type_} *a) {{ a[get_global_id(0)] += 0; }}"
    found = run(source, 1 << 16, 256, a=Random(1 << 16, seed=1, low=low, high=high), groups=[0])
    values = found.array("a").astype(float)
    assert low <= values.min() <= low + (high - low) * 0.01
    assert high - 1 - (high - low) * 0.01 <= values.max() <= high - 1
    assert abs(values.mean() - (low + high - 1) / 2) < (high - low) * 0.01


def test_random_numbers_depend_on_seed_and_position_only() -> None:
    source = "__kernel void k(__global float *a) { a[get_global_id(0)] += 0; }"
    n = 1 << 20
    whole = run(source, n, 256, a=Random(n, seed=5), groups=[0]).array("a")
    other = run(source, n, 256, a=Random(n, seed=5), groups=[700, 3]).array("a")
    np.testing.assert_array_equal(whole, other)
    assert (whole != run(source, n, 256, a=Random(n, seed=6), groups=[0]).array("a")).mean() > 0.99
    assert len(np.unique(whole)) > 0.9 * n
    assert abs(np.corrcoef(whole[:-1], whole[1:])[0, 1]) < 0.01


def test_pointers_chosen_at_run_time() -> None:
    source = """__kernel void k(__global int *a, __global int *b, __local int *s) {
      int i = get_global_id(0), l = get_local_id(0);
      __global int *p = i % 3 ? a : b;
      for (int t = 0; t < 2; t++) { __global int *q = t ? a : b; p[i] += q[64 + i]; }
      __local int *r = l & 1 ? s : s + 32;
      r[l] = i;
      p[i] += r[l];
    }"""
    a, b = np.arange(128, dtype=np.int32), np.arange(128, dtype=np.int32) * 100
    found = run(source, 64, 32, a=a, b=b, s=LocalBytes(256))
    i = np.arange(64)
    assert found.array("a")[:64].tolist() == np.where(i % 3, i + 101 * (64 + i) + i, i).tolist()
    assert found.array("b")[:64].tolist() == np.where(i % 3, 100 * i, 100 * i + 101 * (64 + i) + i).tolist()
    assert found.findings == ()
    touched = dict(zip(found.variables, found.footprints["any_bytes"].sum(axis=0), strict=True))
    assert touched["global", "a"] == 4 * (64 + 42)


def test_groups_that_meet_barriers_at_different_times() -> None:
    source = """__kernel void k(__global int *out) {
      __local int s[32]; int i = get_global_id(0), l = get_local_id(0), x = 0;
      for (int t = 0; t < 2 + get_group_id(0) % 3; t++) { s[l] = i + t; barrier(1); x += s[31 - l]; END }
      out[i] = x; }"""
    assert run(source.replace("END", "barrier(1);"), 32 * 7, 32, out=Zeros(32 * 7)).findings == ()
    wrong = source.replace("END", "if (get_group_id(0) != 5 || t != 2) barrier(1);")
    findings = run(wrong, 32 * 7, 32, out=Zeros(32 * 7)).findings
    assert [(finding.kind, finding.group) for finding in findings] == [("race", (5, 0, 0))]
    alone = run(wrong, 32 * 7, 32, out=Zeros(32 * 7), groups=[5]).findings
    assert [str(finding) for finding in alone] == [str(finding) for finding in findings]


def test_offsets_and_axes() -> None:
    source = """__kernel void k(__global uint *out) {
      uint sum = 0;
      for (uint d = 0; d < 4; d++)
        sum = sum * 7 + get_global_id(d) + 2 * get_local_id(d) + 3 * get_group_id(d) + 5 * get_local_size(d)
            + get_num_groups(d) + get_global_offset(d) + get_global_size(d) + get_work_dim();
      out[(get_global_id(1) - 3) * 8 + get_global_id(0) - 1] = sum; }"""
    program = lower(read(source), "k")
    found = emulate(program, (8, 4), (4, 2), {"out": Zeros(32)}, groups="all", global_offset=(1, 3))
    expected = np.zeros((4, 8), np.uint32)
    for y in range(4):
        for x in range(8):
            total = 0
            for at, size, local, offset in ((x, 8, 4, 1), (y, 4, 2, 3), (0, 1, 1, 0), (0, 1, 1, 0)):
                total = total * 7 + at + offset + 2 * (at % local) + 3 * (at // local) + 5 * local
                total += size // local + offset + size + 2
            expected[y, x] = total % 2**32
    assert found.array("out").reshape(4, 8).tolist() == expected.tolist()


PAIRS = "typedef struct { uint first; float second; } pair;"
CHOSEN = f"""{PAIRS}
pair at(__local pair *near, __global const pair *far, int i) {{ return i < 4 ? near[i] : far[i]; }}
__kernel void k(__global const pair *far, __global float *out) {{
  __local pair near[8]; int i = get_global_id(0);
  if (i < 8) near[i] = (pair){{ 100 + i, 0.5f }};
  barrier(1);
  pair found = at(near, far, i);
  out[i] = found.first + found.second; }}"""


def test_a_struct_is_chosen_from_two_memories() -> None:
    far = np.zeros(8, [("first", np.uint32), ("second", np.float32)])
    far["first"], far["second"] = np.arange(8), 0.25
    found = run(CHOSEN, 8, 8, far=far, out=Zeros(8)).array("out")
    assert found.tolist() == [100.5, 101.5, 102.5, 103.5, 4.25, 5.25, 6.25, 7.25]


def test_structs_that_nobody_writes_are_drawn_once_for_several_emulations() -> None:
    """The second emulation finds all of a small array drawn already."""
    source = (
        f"{PAIRS} __kernel void k(__global const pair *a, __global float *o) {{ o[get_global_id(0)] = a->second; }}"
    )
    kernel = pm.Kernel.from_opencl(source, "k", 64, 32, {"a": 64, "o": 64})
    first, second = (pm.emulate(kernel, groups="all").array("o").copy() for _ in range(2))
    np.testing.assert_array_equal(first, second)
