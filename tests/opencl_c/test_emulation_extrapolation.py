"""Iterations of loops that are left out: their counts are what a full run counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c.emulation import Emulation, Machine, Random, Zeros, emulate
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read


def both(source: str, size: Any, local: Any, groups: Any = (0,), **arguments: Any) -> tuple[Emulation, Emulation]:
    """Returns a full run and an extrapolated one, with the same counts."""
    program = lower(read(source), "k")
    full = emulate(program, size, local, arguments, groups=groups)
    short = emulate(program, size, local, arguments, groups=groups, extrapolate=True)
    for name in ("blocks", "branches", "barriers", "accesses"):
        np.testing.assert_array_equal(getattr(full, name), getattr(short, name), err_msg=name)
    assert not full.extrapolated
    assert not full.findings
    assert not short.findings
    return full, short


def loop(body: str, head: str = "int j = 0; j < n; j++") -> str:
    return f"""__kernel void k(int n, __global float *a, __global float *out) {{
      int i = get_global_id(0), l = get_local_id(0);
      __local float s[64];
      float sum = 0;
      for ({head}) {{ {body} }}
      out[i] = sum;
    }}"""


@pytest.mark.parametrize(
    "body",
    [
        "sum += a[j];",
        "sum += a[j * 64 + l];",
        "sum += a[l * n + j];",
        "sum += a[j + l];",
        "if (j % 3 == 0) sum += a[j * 3 + l];",
        "if (l < 13) sum += a[j * 5 + l]; else sum -= a[l];",
        "s[l] = a[j]; barrier(1); sum += s[63 - l]; barrier(1);",
        "for (int m = 0; m < n; m++) sum += a[j * 64 + m];",
        "for (int m = 0; m < 3; m++) { if (m == 1) continue; sum += a[j * 4 + m]; }",
        "s[(j * 3 + l) & 63] = j; sum += j; barrier(1);",
    ],
)
def test_counts_and_footprints_of_a_loop(body: str) -> None:
    n = 400
    full, short = both(loop(body), 128, 64, (0, 1), n=n, a=Random(64 * n + n), out=Zeros(128))
    assert short.extrapolated
    assert short.extrapolated[0].has_whole_footprint
    np.testing.assert_array_equal(full.footprints, short.footprints)
    with pytest.raises(EmulationError, match="extrapolated"):
        short.array("out")


@pytest.mark.parametrize(
    "head",
    [
        *("int j = n; j > 0; j--", "int j = 3; j <= n; j += 2", "int j = n - 1; j >= 0; j -= 3"),
        *("int j = 0; j != n; j++", "size_t j = 0; j < n; j++", "int j = 0; n > j; ++j"),
    ],
)
def test_heads_of_loops(head: str) -> None:
    _, short = both(loop("sum += a[j + l];", head), 64, 64, n=200, a=Random(300), out=Zeros(64))
    assert short.extrapolated


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("if (j < i) sum += a[j];", "int j = 0; j < n; j++"),
        ("if (a[j] > 0.5f) sum += 1;", "int j = 0; j < n; j++"),
        ("if (a[j] < 0) break; sum += 1;", "int j = 0; j < n; j++"),
        ("sum += a[min(j, 100)];", "int j = 0; j < n; j++"),
        ("sum += a[(int)(a[j] * 50)];", "int j = 0; j < n; j++"),
        ("sum += a[j];", "int j = 1; j < n; j *= 2"),
        ("sum += a[j];", "int j = 0; j < i; j++"),
        ("sum += a[j]; j += sum > 1000;", "int j = 0; j < n; j++"),
    ],
)
def test_loops_that_are_run_as_they_are(body: str, head: str) -> None:
    full, short = both(loop(body, head), 64, 64, n=150, a=Random(300), out=Zeros(64))
    assert not short.extrapolated
    np.testing.assert_array_equal(full.array("out"), short.array("out"))


@pytest.mark.parametrize("block", [32, 64, 128])
def test_blocks_of_memory_that_many_turns_share(block: int) -> None:
    program = lower(read(loop("for (int m = 0; m < n; m++) sum += a[m + l + j * 64];", "int j = 0; j < 3; j++")), "k")
    machine = Machine(transaction_bytes=block)
    arguments: dict[str, Any] = {"n": 300, "a": Random(600), "out": Zeros(64)}
    full, short = (emulate(program, 64, 64, arguments, machine=machine, extrapolate=each) for each in (False, True))
    np.testing.assert_array_equal(full.accesses, short.accesses)
    np.testing.assert_array_equal(full.footprints, short.footprints)
    assert short.extrapolated


def test_triangles() -> None:
    body = loop("for (int m = 0; m < j; m++) sum += a[m];", "int j = 0; j < n; j += 100")
    full, short = both(body, 64, 64, n=2000, a=Random(2000), out=Zeros(64))
    assert [each.name for each in short.extrapolated] == ["m"]
    assert full.steps > 2 * short.steps


def test_short_loops_are_not_looked_at_again_and_again() -> None:
    """Looking at an iteration costs more than running some."""
    body = loop("for (int m = 0; m < 100 + (j & 1); m++) sum += a[m];", "int j = 0; j < n; j++")
    full, short = both(body, 64, 64, n=20, a=Random(300), out=Zeros(64))
    (inner,) = [each for each in short.extrapolated if each.name == "m"]
    assert inner.iterations < 110
    np.testing.assert_array_equal(full.accesses, short.accesses)


def test_pointers_that_move() -> None:
    source = """__kernel void k(int n, __global float *a, __global float *out) {
      __global float *p = a + get_local_id(0);
      float sum = 0;
      for (int j = 0; j < n; j++) { sum += *p; p += 64; }
      out[get_global_id(0)] = sum;
    }"""
    full, short = both(source, 64, 64, n=300, a=Random(64 * 300), out=Zeros(64))
    assert (short.extrapolated[0].iterations, short.extrapolated[0].run < 20) == (300, True)
    np.testing.assert_array_equal(full.footprints, short.footprints)


def test_full_grids_are_never_extrapolated() -> None:
    program = lower(read(loop("sum += a[j];")), "k")
    arguments: dict[str, Any] = {"n": 200, "a": Random(200), "out": Zeros(64)}
    assert not emulate(program, 64, 64, arguments, groups="all", extrapolate=True).extrapolated


def test_loops_that_work_items_leave_one_after_the_other_are_counted_once_each() -> None:
    """Masks and patterns are many here, and few of them are met between two looks at the counts."""
    source = """
    __kernel void k(__global const float *a, __global float *out, const int n)
    {
        const int i = get_global_id(0);
        for (int j = i; j < 128; ++j) {
            float sum = 0;
            for (int t = 0; t < n; ++t)
                sum += a[t * n + i] * a[t * n + j];
            out[i * n + j] = sum;
        }
    }
    """
    n, kernel = 1024, lower(read(source), "k")
    arguments: dict[str, Any] = {"a": Random(n * n), "out": Zeros(n * n), "n": n}
    found = emulate(kernel, n, 64, arguments, groups="first", extrapolate=True)
    (inner,) = (loop for loop in found.extrapolated if loop.name == "t")
    assert inner.run < inner.iterations / 4
    executions = found.accesses["executions"].sum(axis=0).tolist()
    pairs = sum(128 - i for i in range(64))
    assert executions == [n * pairs, n * pairs, pairs]
