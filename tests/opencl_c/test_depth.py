"""Operations in a row: those on what each iteration loads are a loop's depth, those on what goes on to the next
iteration are carried."""

from __future__ import annotations

import pytest

from perfmodel.counting.waits import LATENCIES
from tests.opencl_c.test_waits import ITERATIONS, LOOP, waits

GLOBAL = "float x = a[j * n + i];"
STEP = "x = 0.5f * x + 0.25f;"
LOCAL = "__local float own[64]; const int l = get_local_id(0);"
PRIVATE = "float own[64];" + LOOP + "own[j] = a[j * n + i];"

# What stands in the loop, its operations in a row in each iteration, and the iterations that are done side by side.
BODIES = {
    "sums alone": (GLOBAL + "s += x;", 0, 16),
    "a product, which is one operation with the sum": (GLOBAL + "s += x * x;", 0, 16),
    "a multiply-add": (GLOBAL + STEP + "s += x;", 1, 16),
    "two": (GLOBAL + 2 * STEP + "s += x;", 2, 16),
    "six in a longer body": (GLOBAL + 6 * STEP + 6 * "t += x;", 6, 4),
    "thirty": (GLOBAL + 30 * STEP + 30 * "t += x;", 30, 2),
    "a hundred, too many to write out again": (GLOBAL + 110 * STEP + "s += x;", 110, 1),
    "the longer of two ways": (GLOBAL + "float y = x * x; x = y * y; x = x * x; s += x - y;", 4, 16),
    "what is stored": (GLOBAL + "c[j * n + i] = x * x * x;", 2, 16),
    "under a condition": (GLOBAL + "if (x > 0) x = x * x; s += x;", 1, 16),
    "a chain of products and a sum of it": (GLOBAL + "t = x * 2.0f; s += t * t;", 1, 16),
    "a Horner's step of the total": (GLOBAL + "s = s * x + x;", 0, 16),
    "whole numbers": ("int x = places[j * n + i]; s += (x ^ (x >> 15)) * 739982445;", 3 + 1, 16),
    "a whole quotient": ("int x = places[j * n + i]; s += x / m;", 14 + 1, 4),
    "a reciprocal root": (GLOBAL + "s += rsqrt(x);", LATENCIES["rsqrt"], 16),
    "a quotient": (GLOBAL + "s += x / t;", LATENCIES["div"], 4),
    "an exponential": (GLOBAL + "s += exp(x);", LATENCIES["exp"], 4),
    "a sine, which is called": (GLOBAL + "s += sin(x);", LATENCIES["sin"], 1),
}


def depth(body: str, space: str = "global") -> float:
    return waits(body, name=f"f_mem_depth_{space}")


@pytest.mark.parametrize("case", BODIES)
def test_operations_on_what_is_loaded_are_done_side_by_side(case: str) -> None:
    body, operations, at_once = BODIES[case]
    # What stands behind the loop, s * t, is on no loads outside of it.
    assert depth(LOOP + "{" + body + "}") == pytest.approx(operations * ITERATIONS / at_once)


def test_local_memory_and_private_arrays_have_depth_of_their_own() -> None:
    body = "{ float x = own[(PLACE + j * 7) % 64]; x = x * x; x = x * x; s += x; }"
    assert depth(LOCAL + LOOP + body.replace("PLACE", "l"), "local") == 2 * ITERATIONS / 4
    assert depth(PRIVATE + LOOP + body.replace("PLACE +", ""), "scratch") == 2 * ITERATIONS / 4
    assert depth(LOCAL + LOOP + body.replace("PLACE", "l")) == 0


def test_outside_of_loops_all_operations_stand_in_a_row() -> None:
    assert depth("s = a[i] * a[i + 1] + 2.0f; t = s * s;") == 3  # with the product that is stored
    assert depth("for (int j = 0; j < 8; j++) s += a[j * n + i];") == 2  # of a loop that is written out


CARRIED = {
    "what is set anew": (GLOBAL + "x = x * x; x = x * x; s += x;", 0),
    "what goes on": ("t = t * t; s += a[j * n + i];", 1),
    "what goes on, twice": ("t = t * t; t = t * 2.0f; s += a[j * n + i];", 2),
    "what an iteration sets before it goes on with it": ("t = a[j * n + i]; t = t * t; s += t;", 0),
}


@pytest.mark.parametrize("case", CARRIED)
def test_only_what_goes_on_to_the_next_iteration_is_carried(case: str) -> None:
    body, products = CARRIED[case]
    assert waits(LOOP + "{" + body + "}", name="f_op_float32_mul_carried") == products * ITERATIONS


def test_a_loop_within_carries_what_the_loop_around_it_sets_anew() -> None:
    body = LOOP + "{ float x = a[j * n + i]; for (int l = 0; l < m; l++) x = x * 0.5f; s += x; }"
    assert waits(body, name="f_op_float32_mul_carried") == ITERATIONS**2
    assert waits(body, name="f_op_float32_add_carried") == ITERATIONS


def test_nested_loops_are_gone_through_once_each() -> None:
    nested = "s += a[i + j12]; s *= 2.0f;"
    for level in range(12, 0, -1):
        nested = f"for (int j{level} = 0; j{level} < k; j{level}++) {{ {nested} }} s *= 2.0f;"
    body = f"const int k = m - {ITERATIONS - 2};" + nested
    assert waits(body, name="f_mem_rounds_global") == 2**12
    assert waits(body, name="f_op_float32_add_carried") == 2**12
    assert waits(body, name="f_op_float32_mul_carried") == sum(2**level for level in range(1, 13))
