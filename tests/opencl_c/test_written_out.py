"""Index arithmetic that is left of loops that compilers write out as a whole, by hand."""

from __future__ import annotations

from collections import Counter

import pytest

import perfmodel as pm
from tests.opencl_c.test_waits import ARRAYS, FRAME, ITEMS, ITERATIONS, LOOP

EIGHT = "for (int l = 0; l < 8; l++) "
TILES = "__local float p[32][32], q[32][128]; const int x = get_local_id(0), y = get_local_id(0) / 8;"
COUNTED = {("compare", "int32"): ITERATIONS + 1, ("add", "int32"): ITERATIONS}
"""A loop of m iterations costs so much by itself."""

BODIES = {
    "nothing but numbers": (EIGHT + "s += a[l * 32 + i];", {}),
    "iterations that are a quotient": ("for (int l = 0; l < 32 / 4; l++) s += a[l * 32 + i];", {}),
    "a distance that is a number": (
        LOOP + "for (int l = j; l < j + 8; l++) s += a[l * 32 + i];",
        {("compare", "int32"): ITERATIONS + 1, ("add", "int32"): 2 * ITERATIONS, ("madd", "int32"): ITERATIONS},
    ),
    "a distance that is a number, and its end": (
        LOOP + "for (int l = j + 7; l >= j; l--) s += a[l * 32 + i];",
        {("compare", "int32"): ITERATIONS + 1, ("add", "int32"): 2 * ITERATIONS, ("madd", "int32"): ITERATIONS},
    ),
    "a row": (EIGHT + "s += a[i * 8 + l];", {("mul", "int32"): 1}),
    "a column, whose places are no numbers apart": (EIGHT + "s += a[l * n + i];", {("madd", "int32"): 8}),
    "a row in a loop": (LOOP + EIGHT + "s += a[j * n + i + l];", {**COUNTED, ("madd", "int32"): ITERATIONS}),
    "the element before": (LOOP + EIGHT + "s += a[j * n - l];", {**COUNTED, ("mul", "int32"): ITERATIONS}),
    "a way by a variable": (
        LOOP + EIGHT + "{ const int at = i + 2 * l; s += a[j * n + at]; }",
        {**COUNTED, ("madd", "int32"): ITERATIONS},
    ),
    "a remainder, which each has to find": (
        LOOP + EIGHT + "s += a[(j + l) & 63];",
        {**COUNTED, ("add", "int32"): 9 * ITERATIONS, ("bitwise", "int32"): 8 * ITERATIONS},
    ),
    "a condition on the counter": (LOOP + EIGHT + "if (l < 4) s += a[j];", COUNTED),
    "a condition on more": (
        LOOP + EIGHT + "if (l + j < n) s += a[j];",
        {("compare", "int32"): 9 * ITERATIONS + 1, ("add", "int32"): 9 * ITERATIONS},
    ),
    "unsigned sums, which may wrap around before they become addresses": (
        "const uint u = i;" + LOOP + EIGHT + "s += a[u + l];",
        {**COUNTED, ("add", "uint32"): 8 * ITERATIONS},
    ),
    "tiles of registers": (
        TILES + LOOP + "for (int h = 0; h < 4; h++) for (int k = 0; k < 2; k++) for (int l = 0; l < 2; l++) "
        "s += p[y + 8 * k][h] * q[h][x + l * 32];",
        {**COUNTED, ("shift", "uint64"): 1},  # the eighth of an id
    ),
    "loops that stay": (LOOP + "\n#pragma unroll 1\n" + EIGHT + "s += a[i + l];", None),
}


@pytest.mark.parametrize("case", BODIES)
def test_what_differs_by_numbers_is_computed_once(case: str) -> None:
    body, expected = BODIES[case]
    kernel = pm.Kernel.from_opencl(
        FRAME.format("restrict", body), "k", "n", 64, ARRAYS, n=ITEMS, m=ITERATIONS, assumptions="m >= 1"
    )
    found: Counter[tuple[str, str]] = Counter()
    for each in kernel.as_compiled().counts_for(32).index_operations or ():
        times = each.per_execution * each.executions.workitem({"n": ITEMS, "m": ITERATIONS})
        found[each.kind, each.dtype] += round(float(times) / ITEMS)
    if expected is None:  # each iteration counts and compares
        expected = {
            ("compare", "int32"): ITERATIONS + 1 + 9 * ITERATIONS,
            ("add", "int32"): (1 + 8 + 8) * ITERATIONS,
        }
    assert +found == Counter(expected)


def test_loops_gone_through_one_by_one_are_written_out_too() -> None:
    body = "int d = 1;" + LOOP + EIGHT + "{ s += a[j * n + i + l]; if (d > 4) t += s; d = l & 1 ? d * 2 : d; }"
    kernel = pm.Kernel.from_opencl(
        FRAME.format("restrict", body), "k", "n", 64, ARRAYS, n=ITEMS, m=ITERATIONS, assumptions="m >= 1"
    )
    assert pm.feature("f_op_int32_madd_index").eval(kernel.as_compiled()) == ITEMS * ITERATIONS
