"""Compares loops of machine code with those that follow from reachability alone, and waits with chains by hand."""

from __future__ import annotations

import random

import pytest

from perfmodel.x86.flow import Flow
from perfmodel.x86.instructions import Instruction
from perfmodel.x86.latencies import waits


def instruction(name: str, address: int = 0, target: int | None = None, **more: object) -> Instruction:
    given: dict[str, object] = {
        "file": "", "line": 0, "column": 0, "calls": (), "reads": (), "writes": (), "loads": "", "stores": "",
        "addressed": (), "bytes": 0, "callee": "",
    } | more  # fmt: skip
    return Instruction(address=address, name=name, target=target, **given)  # type: ignore[arg-type]


def some_code(seed: int, blocks: int = 12) -> tuple[list[Instruction], dict[int, set[int]]]:
    """Returns code of random jumps, and which block follows which."""
    chance = random.Random(seed)
    code, following = [], {}
    for number in range(blocks):
        code.append(instruction("nop", 10 * number))
        target = chance.randrange(blocks)
        kind = chance.choice(["jne", "jne", "jmp", "ret"]) if number < blocks - 1 else "ret"
        code.append(instruction(kind, 10 * number + 5, 10 * target if kind != "ret" else None))
        following[number] = {"jne": {number + 1, target}, "jmp": {target}, "ret": set[int]()}[kind]
    return code, following


def reached(start: int, following: dict[int, set[int]], without: int | None = None) -> set[int]:
    found, waiting = set[int](), [start]
    while waiting:
        number = waiting.pop()
        if number != without and number not in found:
            found.add(number)
            waiting += following[number]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_loops_follow_from_what_can_be_reached_without_what(seed: int) -> None:
    code, following = some_code(seed)
    live = reached(0, following)
    loops: dict[int, set[int]] = {}
    for latch in live:
        for head in following[latch]:
            if latch == head or latch not in reached(0, following, without=head):  # the head dominates the latch
                body = {n for n in live if latch in reached(n, following, without=head)} | {head}
                loops[head] = loops.get(head, set()) | body
    targets = {0} | {t for n in live for t in following[n]}
    flow = Flow(code)
    # A block that nothing jumps to is cut all the same, as one ends before it.
    assert set(flow.blocks) == live
    assert targets <= live
    assert {head: set(loop.blocks) for head, loop in flow.loops.items()} == loops
    for number, around in flow.around.items():
        assert set(around) == {head for head, body in loops.items() if number in body}


@pytest.mark.parametrize("seed", range(60))
def test_blocks_that_each_iteration_executes_are_those_without_which_it_does_not_end(seed: int) -> None:
    code, following = some_code(seed)
    flow = Flow(code)
    starts = {number: block.instructions[0].address // 10 for number, block in flow.blocks.items()}
    for number in flow.blocks:
        head = flow.innermost(number)
        ends = (
            flow.loops[head].latches if head is not None else [n for n in flow.blocks if not flow.blocks[n].following]
        )
        without = reached(0, following, starts[number])
        assert flow.is_always_executed(number) == all(starts[end] not in without for end in ends)


def test_a_switch_goes_to_all_that_nothing_else_leads_to() -> None:
    code = [
        instruction("cmp", 0), instruction("ja", 5, target=50),
        instruction("jmp", 10),
        instruction("add", 20), instruction("jmp", 25, target=50),
        instruction("sub", 30), instruction("jmp", 35, target=50),
        instruction("mov", 40),
        instruction("inc", 50), instruction("jne", 55, target=0),
        instruction("ret", 60),
    ]  # fmt: skip
    flow = Flow(code)
    assert [block.following for block in flow.blocks.values()] == [(1, 5), (2, 3, 4), (5,), (5,), (5,), (6, 0), ()]
    assert {head: set(loop.blocks) for head, loop in flow.loops.items()} == {0: set(range(6))}


def test_ways_that_exclude_each_other_are_those_that_only_one_block_leads_to() -> None:
    code = [
        instruction("cmp", 0), instruction("je", 5, target=30),
        instruction("add", 20), instruction("jmp", 25, target=40),
        instruction("sub", 30),
        instruction("cmp", 40), instruction("je", 45, target=60),
        instruction("mov", 50),
        instruction("ret", 60),
    ]  # fmt: skip
    flow = Flow(code)
    assert {number: flow.sides(number) for number in flow.blocks} == {0: (1, 2), 1: (), 2: (), 3: (), 4: (), 5: ()}


def test_sums_wait_for_themselves_and_products_do_not() -> None:
    total = instruction("vfmadd231ps", reads=("v0", "v1"), writes=("v0",), loads="[rax]", addressed=("rax",))
    step = instruction("add", reads=("rax",), writes=("rax", "flags"))
    assert waits([total, step])[1] == 4
    alone = instruction("vmulps", reads=("v1", "v2"), writes=("v3",))
    assert waits([alone, step])[1] == 1
    chased = instruction("mov", reads=("rax",), writes=("rax",), loads="[rax]", addressed=("rax",))
    assert waits([chased])[1] == 5
    divided = instruction("vdivps", reads=("v0", "v1"), writes=("v0",))
    assert waits([divided])[1] > 2 * waits([total])[1]


def test_what_is_stored_is_waited_for_by_who_loads_it() -> None:
    load = instruction("vaddss", reads=("v1", "rdi"), writes=("v1",), loads="[rdi]", addressed=("rdi",))
    store = instruction("vmovss", reads=("v1", "rdi"), stores="[rdi]", addressed=("rdi",))
    elsewhere = instruction("vmovss", reads=("v1", "rdi"), stores="[rdi + 4]", addressed=("rdi",))
    fresh = instruction("vxorps", writes=("v1",))
    assert waits([fresh, load, store])[1] > waits([fresh, load, elsewhere])[1]


def test_what_is_stored_lies_elsewhere_once_the_address_has_moved() -> None:
    load = instruction("vaddss", reads=("v1", "rdi"), writes=("v1",), loads="[rdi]", addressed=("rdi",))
    store = instruction("vmovss", reads=("v1", "rdi"), stores="[rdi]", addressed=("rdi",))
    fresh = instruction("vxorps", writes=("v1",))
    step = instruction("add", reads=("rdi",), writes=("rdi", "flags"))
    assert waits([fresh, load, store, step])[1] == 1


def test_a_function_waits_for_what_it_is_handed_since_the_last_call() -> None:
    """A register that a call may have overwritten hands nothing over, and one vector waits for no other."""
    call = instruction("call", reads=("rsp",), writes=("rsp",), callee="?")
    exp = instruction("call", reads=("rsp",), writes=("rsp",), callee="__ocl_svml_l9_expf8")
    power = instruction("call", reads=("rsp",), writes=("rsp",), callee="__ocl_svml_l9_powf8")
    fresh = instruction("vmovups", writes=("v0",), loads="[rax]", addressed=("rax",))
    used = instruction("vmovups", reads=("v0", "rdi"), stores="[rdi]", addressed=("rdi",))
    slow = instruction("vdivps", reads=("v5", "v6"), writes=("v1",))
    once = waits([fresh, call, used])[0]
    assert once > 10
    assert waits([fresh, call, used] * 4)[0] == once
    assert waits([fresh, exp, exp, used])[0] > 1.8 * waits([fresh, exp, used])[0]
    assert waits([fresh, slow, exp, used])[0] == waits([fresh, exp, used])[0]
    assert waits([fresh, slow, power, used])[0] > waits([fresh, power, used])[0]


def test_what_prepares_a_loop_and_what_goes_on_with_it_alone() -> None:
    """The loop of a vector's iterations is passed over to the one that does them one by one."""
    code = [
        instruction("cmp", 0), instruction("jb", 5, target=40),
        instruction("mov", 10),
        instruction("vaddps", 20), instruction("jne", 25, target=20),
        instruction("vhaddps", 30),
        instruction("add", 40), instruction("jne", 45, target=40),
        instruction("ret", 50),
    ]  # fmt: skip
    flow = Flow(code)
    assert flow.only_with(2) == {1, 3}
    assert flow.only_with(4) == {3, 5}
