"""Loops that wait for other work-items or groups: they end with a sentence, and soon; others run as long as they do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import Emulation, LocalBytes, emulate

NUMBERS = np.zeros(64, np.int32)


def run(body: str, parameters: str = "", groups: str = "all", **arguments: Any) -> Emulation:
    source = f"__kernel void k(__global volatile int *flag, __global int *o{parameters}) {{\n{body}\n}}"
    return emulate(
        lowered_kernel(source, "k"), 64, 32, {"flag": NUMBERS, "o": NUMBERS.copy(), **arguments}, groups=groups
    )


GROUP_WAIT = """barrier(CLK_GLOBAL_MEM_FENCE);
if (get_local_id(0) == 0) {
  atomic_inc(flag);
  while (atomic_add(flag, 0) < get_num_groups(0)) ;
}
barrier(CLK_GLOBAL_MEM_FENCE);
o[get_global_id(0)] = flag[0];"""


@pytest.mark.parametrize(
    ("body", "line", "awaited"),
    {
        "spin": ("while (flag[0] == 0) ; o[get_global_id(0)] = 1;", 2, "flag[0] (line 2)"),
        "spin, counted": (
            "int spins = 0;\nwhile (atomic_add(&flag[3], 0) == 0) spins++;\no[get_global_id(0)] = spins;",
            3,
            "&flag[3] (line 3)",
        ),
        "lock": (
            "while (atomic_cmpxchg(flag, 0, 1) != 0) ;\no[0] += 1;\natomic_xchg(flag, 0);",
            2,
            "flag (line 2)",
        ),
        "ticket": (
            "int mine = atomic_inc(flag), now;\ndo {\n  now = flag[1];\n} while (now != mine);\natomic_inc(flag + 1);",
            3,
            "flag[1] (line 4)",
        ),
        "with a pause": ("while (flag[0] == 0) {\n  for (int b = 0; b < 50; b++) o[1] = b;\n}", 2, "flag[0] (line 2)"),
        "left from inside": (
            "for (;;) {\n  int seen = flag[get_global_id(0) ^ 1];\n  if (seen > 0) break;\n}",
            2,
            "flag[get_global_id(0) ^ 1] (line 3)",
        ),
        "chain of groups": (
            "int g = get_group_id(0);\nif (g > 0)\n  while (flag[g - 1] == 0) ;\nflag[g] = 1;",
            4,
            "flag[g - 1] (line 4)",
        ),
    }.values(),
)
def test_a_wait_ends_with_what_it_waits_for(body: str, line: int, awaited: str) -> None:
    words = rf"kernel\.cl:{line}:\d+: the loop of .* goes on for ever: .* to change {re.escape(awaited)}, "
    with pytest.raises(EmulationError, match=words + ".*; give arrays with which it ends, or emulate the group"):
        run(body)


def test_groups_wait_for_each_other_only_where_all_are_emulated() -> None:
    with pytest.raises(EmulationError, match=r"goes on for ever: .* change flag \(line 5\)"):
        run(GROUP_WAIT, groups="first")
    assert run(GROUP_WAIT).array("o").tolist() == [2] * 64


def test_a_histogram_that_tries_again_until_its_tag_stays() -> None:
    data = np.random.default_rng(3).integers(0, 256, 512).astype(np.uint8)
    body = """uint l = get_local_id(0), tag = l << 27, count;
h[l] = 0;
barrier(CLK_LOCAL_MEM_FENCE);
for (int i = get_global_id(0); i < 512; i += 64) {
  uint bin = data[i] & 31;
  do {
    count = tag | ((h[bin] & 0x07ffffffu) + 1);
    h[bin] = count;
  } while (h[bin] != count);
}
barrier(CLK_LOCAL_MEM_FENCE);
atomic_add(&o[l], h[l] & 0x07ffffffu);"""
    found = run(body, ", __global const uchar *data, __local volatile uint *h", data=data, h=LocalBytes(128))
    assert found.array("o")[:32].tolist() == np.bincount(data & 31, minlength=32).tolist()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int n = 0; n < 5000; n++) { while (1) { o[i] = 7; break; } }", 7),
        ("for (int n = 0; n < 5000; n++) for (int m = 0; m < 1; m++) o[i] = n & 1;", 1),
        ("int n = 0; while (o[i] < 5000) { if (++n % 3 == 0) o[i]++; }", 5000),
        ("int p[4] = {0, 0, 0, 0}; while (p[i & 3] < 5000) p[i & 3]++; o[i] = p[i & 3];", 5000),
        ("int n = 0; do { n = (n * 5 + 3) & 8191; } while (n != 0); o[i] = 2;", 2),
        ("float x = 1; while (x < 1e30f) { x *= 1.01f; flag[i] = 0; } o[i] = 4;", 4),
    ],
)
def test_what_goes_on_for_long_is_not_taken_for_a_wait(body: str, expected: int) -> None:
    assert run(f"int i = get_global_id(0);\n{body}").array("o").tolist() == [expected] * 64
