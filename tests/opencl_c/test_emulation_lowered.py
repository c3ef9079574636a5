"""The emulation of kernels built by hand: control flow, vectors, atomics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation import Zeros, code_of, emulate
from perfmodel.opencl_c.types import BOOL, INT, UINT, Vector
from tests.opencl_c.lowered_kernels import Builder, binary, item, number, read


def results(kernel: low.LoweredKernel, size: int, **arguments: Any) -> list[int]:
    found = emulate(kernel, size, 4, {"out": Zeros(size), **arguments}, groups="all")
    assert found.findings == ()
    values: list[int] = found.array("out").tolist()
    return values


def test_values_of_lanes_that_are_not_active_stay() -> None:
    b = Builder()
    out, x, small = b.array("out"), b.register("x"), b.register("small", BOOL)
    kernel = b.kernel(
        b.straight(low.Assign(x, number(7)), low.Assign(small, binary(item(), "<", 3))),
        b.if_(small, [b.straight(low.Assign(x, binary(read(x), "+", item())))]),
        b.straight(b.store(out, item(), read(x))),
    )
    assert results(kernel, 8) == [7, 8, 9, 7, 7, 7, 7, 7]


def test_a_result_set_before_leaving_a_scope_stays() -> None:
    b = Builder()
    out, result, odd = b.array("out"), b.register("result"), b.register("odd", BOOL)
    kernel = b.kernel(
        b.straight(low.Assign(odd, binary(binary(item(), "&", 1), "==", 1))),
        low.Scope(
            "call",
            (
                b.if_(odd, [b.straight(low.Assign(result, number(1))), low.Leave("call")]),
                b.straight(low.Assign(result, number(2))),
            ),
        ),
        b.straight(b.store(out, item(), read(result))),
    )
    assert results(kernel, 8) == [2, 1] * 4


def test_leaving_two_loops_at_once() -> None:
    b = Builder()
    out, i, j, n = b.array("out"), b.register("i"), b.register("j"), b.register("n")
    more, less, done = b.register("more", BOOL), b.register("less", BOOL), b.register("done", BOOL)
    inner = b.loop(
        "inner",
        (less, binary(read(j), "<", 4)),
        [
            b.straight(
                low.Assign(n, binary(read(n), "+", 1)),
                low.Assign(done, binary(binary(read(i), "*", read(j)), ">=", item())),
            ),
            b.if_(done, [low.Leave("all")]),
        ],
        [b.straight(low.Assign(j, binary(read(j), "+", 1)))],
    )
    outer = b.loop(
        "outer",
        (more, binary(read(i), "<", 5)),
        [b.straight(low.Assign(j, number(0))), inner],
        [b.straight(low.Assign(i, binary(read(i), "+", 1)))],
    )
    start = b.straight(low.Assign(i, number(0)), low.Assign(n, number(0)))
    after = b.straight(low.Assign(n, binary(read(n), "+", 100)))
    kernel = b.kernel(start, low.Scope("all", (outer, after)), b.straight(b.store(out, item(), read(n))))

    def alone(lane: int) -> int:
        count = 0
        for i in range(5):
            for j in range(4):
                count += 1
                if i * j >= lane:
                    return count
        return count + 100

    assert results(kernel, 16) == [alone(lane) for lane in range(16)]


def test_a_do_loop_tests_after_its_turn() -> None:
    b = Builder()
    out, n, more = b.array("out"), b.register("n"), b.register("more", BOOL)
    body = [b.straight(low.Assign(n, binary(read(n), "+", 1)))]
    kernel = b.kernel(
        b.straight(low.Assign(n, number(0))),
        b.loop("do", (more, binary(read(n), "<", item())), body, is_do=True),
        b.straight(b.store(out, item(), read(n))),
    )
    assert results(kernel, 8) == [1, 1, 2, 3, 4, 5, 6, 7]


def test_components_of_vectors_under_a_mask() -> None:
    b = Builder()
    two = Vector(INT, 2)
    out, v, small = b.array("out", two), b.register("v", two), b.register("small", BOOL)
    swapped = low.Pick(two, read(v), (1, 0))
    kernel = b.kernel(
        b.straight(low.Assign(v, low.Join(two, (number(5), item()))), low.Assign(small, binary(item(), "<", 2))),
        b.if_(small, [b.straight(low.Assign(v, number(-1), (1,)))], [b.straight(low.Assign(v, swapped))]),
        b.straight(b.store(out, item(), read(v))),
    )
    found = emulate(kernel, 4, 4, {"out": Zeros(4)})
    assert found.array("out").reshape(4, 2).tolist() == [[5, -1], [5, -1], [2, 5], [3, 5]]


OPERATIONS = {
    "add": lambda old, a, b: old + a,
    "sub": lambda old, a, b: old - a,
    "xchg": lambda old, a, b: a,
    "inc": lambda old, a, b: old + 1,
    "dec": lambda old, a, b: old - 1,
    "min": lambda old, a, b: min(old, a),
    "max": lambda old, a, b: max(old, a),
    "and": lambda old, a, b: old & a,
    "or": lambda old, a, b: old | a,
    "xor": lambda old, a, b: old ^ a,
    "cmpxchg": lambda old, a, b: b if old == a else old,
}


@settings(max_examples=20, deadline=None)
@given(
    lanes=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2**32 - 1), st.booleans()),
        min_size=4,
        max_size=20,
    )
)
@pytest.mark.parametrize("wants_old", [False, True])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_atomics_take_turns(operation: str, wants_old: bool, lanes: list[tuple[int, int, int, bool]]) -> None:
    lanes = lanes[: len(lanes) // 4 * 4]
    b = Builder()
    out, at, one, two, on = (b.array(name, UINT) for name in ("out", "at", "one", "two", "on"))
    memory, old, active = b.array("memory", UINT), b.register("old", UINT), b.register("active", BOOL)
    count = {"inc": 0, "dec": 0, "cmpxchg": 2}.get(operation, 1)
    operands = (b.load(one, item()), b.load(two, item()))[:count]
    atomic = low.Atomic(
        operation=operation,
        pointer=b.at(memory, b.load(at, item())),
        operands=operands,
        result=old if wants_old else None,
        access=b.access("atomic", memory, UINT),
    )
    kernel = b.kernel(
        b.straight(low.Assign(old, number(9, UINT)), low.Assign(active, binary(b.load(on, item()), "!=", 0))),
        b.if_(active, [b.straight(atomic)]),
        b.straight(b.store(out, item(), read(old))),
    )
    start = [0, 1, 2, 3, 2**31, 2**32 - 1]
    columns = {
        name: np.array([lane[position] for lane in lanes], np.uint32)
        for position, name in enumerate(("at", "one", "two", "on"))
    }
    arguments: dict[str, Any] = {**columns, "memory": np.array(start, np.uint32), "out": Zeros(len(lanes))}
    found = emulate(kernel, len(lanes), 4, arguments, groups="all")
    expected, olds = list(start), []
    for place, first, second, is_active in lanes:
        olds.append(expected[place] if is_active and wants_old else 9)
        if is_active:
            expected[place] = OPERATIONS[operation](expected[place], first, second) % 2**32
    assert found.array("memory").tolist() == expected
    assert found.array("out").tolist() == olds


def test_the_code_can_be_read() -> None:
    b = Builder()
    out, x = b.array("out"), b.register("total")
    kernel = b.kernel(b.straight(low.Assign(x, item()), b.store(out, item(), read(x))))
    assert "total = global_id_0.astype(" in code_of(kernel).text
