"""Tells how work-items wait for their loads: which follow from others, and how many iterations have theirs under way.

A GPU issues instructions in order and stops where a value is needed that has not come. So it matters what compilers do
with a loop: one of a simple body is written out several times, all loads first. They can't where a load may see what
was stored before, where something is called (divisions and roots that round exactly, sines), at barriers, and where it
is not known how many iterations come. The numbers are those of NVIDIA's compilers for compute capability 9.0, as their
machine code shows them (docs/gpu-model.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perfmodel.counting.waits import ADDRESS, BESIDE, LATENCIES, MOST_UNDER_WAY, Wait
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.operations import (
    KernelOperations,
    is_multiplication,
    is_power_of_two,
    is_sum,
    operations_of_call,
)
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.static.liveness import words_around_loops, words_of
from perfmodel.opencl_c.static.loop_counters import note_number, parts_of
from perfmodel.opencl_c.static.scratch import ScratchArray, scratch_arrays
from perfmodel.opencl_c.static.steps import Steps
from perfmodel.opencl_c.static.unrolling import LONG, LONG_QUOTIENT, WHOLE, Unrolling
from perfmodel.opencl_c.types import Scalar, Vector, element_of, is_float

ONCE = 4
"""So many iterations at most have loads from local memory and private arrays under way together, unless loads from
global memory are moved along."""
ROOM, TAKEN, POINTER = 24, 1.5, 1.5
"""The words of registers for loads, as NVIDIA's compilers keep to 32; those that each live word takes of them, with
what is computed from it; and the words of each pointer but the first."""
FEWEST = 4
"""So many words are under way whatever is live, and twice as many where loads bring several."""
CALLED = frozenset(("pow", "sin", "cos", "tan", "fmod", "remainder", "remquo", "lgamma", "tgamma"))
"""Operations on floats that compilers call, or branch over: no load is moved across."""
EXACT = frozenset(("div", "sqrt"))
"""Operations that are called if they have to round correctly, as those of 64 bits always have."""
WAITED_FOR = {"global": ("global", "constant"), "local": ("local",), "private": ("private",)}
"""The spaces of memory whose loads share a wait; private arrays are waited for that lie in memory."""


@dataclass
class _Body:
    """A body is what an iteration of a loop does by itself, or what a kernel does outside of loops.

    Attributes:
        loaded: the arrays in global and private memory that it loads from.
        loads_local: whether it loads from local memory.
        apart: arrays whose places in the loop are constant distances apart and move by a constant, so that compilers
            see which of them meet.
        carried: registers whose values go on from iteration to iteration.
    """

    loaded: frozenset[str | None]
    loads_local: bool
    apart: frozenset[str] = frozenset()
    carried: frozenset[low.Register] = frozenset()
    levels: dict[low.Access, int] = field(default_factory=dict)
    times: dict[low.Access, int] = field(default_factory=dict)
    """Loads of each access that are issued together, as loops are written out."""
    words: dict[low.Access, int] = field(default_factory=dict)
    """Registers that a load of each access fills."""
    once: dict[low.Access, dict[str, int]] = field(default_factory=dict)
    """The loops, with their iterations, all of which are one round of an access, as a pragma asks to unroll them."""
    loads: list[low.Load] = field(default_factory=list)
    places: dict[object, list[tuple[int, int]]] = field(default_factory=dict)
    """The bytes that loads are off from each place, and their levels."""
    again: set[low.Access] = field(default_factory=set)
    """Loads at places where others have been that came before."""
    size: int = 0
    issued: int = 0
    """Its length, as `Unrolling.size_of` and `Unrolling.issued_of` give it."""
    depth: int = 0
    """Operations that come one after the other, at most, apart from those on what goes on to the next iteration."""
    stops: Counter[str] = field(default_factory=Counter)
    """Times that loads have to come before further ones of the same spaces are issued, by `_kind_of` space."""
    finished: dict[str, int] = field(default_factory=dict)
    """Up to which level they have come then."""

    def stop(self, *kinds: str) -> None:
        """Makes all that was loaded so far arrive before any further load, or before one from memory of some kinds."""
        last = max(self.levels.values(), default=0)
        for kind in kinds or WAITED_FOR:
            self.stops[kind] += 1
            self.finished[kind] = last

    def note_place(self, access: low.Access, place: object, offset: int) -> None:
        """Notes where a load goes, and whether one that came before has been there."""
        level = self.levels[access]
        here = self.places.setdefault((access.variable, place), [])
        if any(before < level and abs(other - offset) < BESIDE for other, before in here):
            self.again.add(access)
        here.append((offset, level))


class Waits:
    """Finds how each load of a kernel is waited for.

    Attributes:
        written_out: the loops that a compiler writes out as a whole, by name, each with its iterations.
        once_a_round: the loops by name, of those that a pragma asks to unroll, whose iterations share a round of a
            load, as none waits for its own.
    """

    def __init__(
        self, kernel: low.LoweredKernel, operations: KernelOperations, scratch: Mapping[str, ScratchArray]
    ) -> None:
        self.operations, self.scratch = operations, scratch
        nodes = (node for each in walks.simple_statements(kernel.body) for node in walks.accesses_of(each))
        stored = {node.access.variable for node in nodes if not isinstance(node, low.Load)}
        self.read_only = frozenset(each.name for each in kernel.parameters if each.is_restrict) - stored
        self.private = frozenset(each.name for each in kernel.objects if each.space == "private")
        self.kernel = kernel
        self.unrolling = Unrolling(operations, Origins(kernel.body), scratch)
        self.live = words_around_loops(kernel)
        self.found: dict[low.Access, Wait] = {}
        self.written_out: dict[str, int] = {}
        self.once_a_round: dict[low.Access, frozenset[str]] = {}
        self.known: dict[low.Register, int] = {}
        self.depths: dict[low.Register, int] = {}
        self.numbers: dict[low.Register, int] = {}
        self.changes: Counter[low.Register] = Counter()
        self.times = 1
        self.once: dict[str, int] = {}
        outside = _Body(*self._loaded(kernel.body))
        self._run(kernel.body, outside, 0)
        self._add(outside, 1, self._room(outside, 0))

    def of(self, access: low.Access) -> Wait:
        """Returns how a load is waited for."""
        return self.found.get(access, Wait())

    # --- bodies

    def _run(self, statements: Iterable[low.Statement], body: _Body, under: int, is_again: bool = False) -> int:
        """Goes through statements; what stands under a condition comes after the loads that this follows from.

        Loops within have been gone through if this is done again. Returns what `under` is for what comes next, where
        statements may have left for the end of a loop or scope around them.
        """
        waiting = list(statements)
        for number, statement in enumerate(waiting, 1):
            reached = under
            match statement:
                case low.Straight():
                    body.size += self.times * self.unrolling.size_of(statement)
                    body.issued += self.times * self.unrolling.issued_of(statement)
                    for simple in statement.statements:
                        self._simple(simple, body, under)
                case low.If():
                    reached = self._if(statement, waiting[number:], body, under, is_again)
                case low.Scope():
                    reached = self._run(statement.body, body, under, is_again)
                case low.Loop() if (iterations := self.unrolling.iterations_of(statement, self.numbers)) is not None:
                    self._inlined(statement, iterations, body, under, is_again)
                case low.Loop():
                    body.stop()
                    if not is_again:
                        self._loop(statement)
                    for register in walks.registers_set(parts_of(statement)):
                        self.known[register] = body.finished["global"]
                        self.depths[register] = body.depth
                        self.numbers.pop(register, None)
                case low.Leave():
                    pass
            if reached > under and walks.labels_left((statement,)):
                under = reached
        return under

    def _if(self, branch: low.If, rest: Sequence[low.Statement], body: _Body, under: int, is_again: bool) -> int:
        """Goes through what stands under a condition; if that is to leave, what comes next stands under it, too."""
        level = max(under, self.known.get(branch.condition, 0))
        is_branched, is_loading = self.unrolling.is_branched(branch), self.unrolling.is_loading(branch)
        if is_branched and level > 0:
            body.stop()
        reached = [self._run(each, body, level, is_again) for each in (branch.then, branch.otherwise)]
        is_left = level > 0 and bool(walks.labels_left((branch,)))
        if (is_branched and is_loading) or (is_left and self.unrolling.is_long(rest)):
            body.stop()
        return max(reached)

    def _loop(self, loop: low.Loop) -> None:
        parts, numbers = parts_of(loop), dict(self.numbers)
        (times, self.times), (once, self.once) = (self.times, 1), (self.once, {})
        self.known, self.depths = dict.fromkeys(self.known, 0), {}  # what came before has been waited for
        for register in walks.registers_set(parts):
            self.numbers.pop(register, None)
        loaded, loads_local = self._loaded(parts)
        carried = walks.carried_registers(parts)
        apart = _numbers_apart(loop)
        first, second = (_Body(loaded, loads_local, apart, carried) for _ in range(2))
        self._run(parts, first, 0)
        # Where loads come later because of what the iteration before has loaded, each iteration waits for its own.
        self._run(parts, second, 0, is_again=True)
        chained = {_kind_of(access) for access, level in first.levels.items() if second.levels[access] > level}
        copies = self.unrolling.copies_of(loop, first.size, first.issued, first.loads, numbers)
        self._add(first, copies, self._room(first, self.live.get(loop.name, 0)), chained)
        self.times, self.once, self.depths = times, once, {}

    def _inlined(self, loop: low.Loop, iterations: int, body: _Body, under: int, is_again: bool) -> None:
        """Goes through a loop that is written out as a whole, as a part of what is around it."""
        lengths = body.size, body.issued
        self._run((*loop.test, *loop.step), body, under, is_again)
        body.size, body.issued = lengths  # nothing is left of its counter
        stops, before = body.stops.copy(), set(body.times)
        self.written_out[loop.name] = iterations
        around, self.times = self.once, self.times * iterations
        if loop.unroll == WHOLE:
            self.once = {**around, loop.name: iterations}
        self._run(loop.body, body, under, is_again)
        self.times, self.once = self.times // iterations, around
        for access in body.times.keys() - before:
            if body.stops[_kind_of(access)] > stops[_kind_of(access)]:
                body.times[access] //= iterations  # each waits for its own
                body.once[access].pop(loop.name, None)
        for register in walks.registers_set(parts_of(loop)):
            self.numbers.pop(register, None)

    def _room(self, body: _Body, live: int) -> float:
        """Returns the words that loads may bring at once, beside those that are live.

        Compilers that are told how large work-groups are use as many registers as these leave to each work-item.
        """
        if self.kernel.work_group is not None:
            return MOST_UNDER_WAY
        pointers = {
            _apart_from_numbers(self._written_out(each.pointer)) for each in body.loads if each.access.space == "global"
        }
        taken = TAKEN * (live + POINTER * max(len(pointers) - 1, 0))
        fewest = FEWEST if max(body.words.values(), default=1) == 1 else 2 * FEWEST
        return min(max(ROOM - taken, fewest), MOST_UNDER_WAY)

    def _written_out(self, pointer: low.Expression) -> low.Expression:
        """Returns the address that a component's or field's constant offset is taken from, looked up through registers
        that are assigned once."""
        while isinstance(pointer, low.Offset) and isinstance(pointer.index, low.Constant):
            pointer = pointer.pointer
            if isinstance(pointer, low.Read) and pointer.register.parameter is None:
                given = self.operations.assigned.get(pointer.register, ())
                pointer = given[0] if len(given) == 1 else pointer
        return pointer

    def _place(self, pointer: low.Expression) -> tuple[object, int]:
        """Returns what a pointer is a constant number of bytes away from, and that number."""
        match pointer:
            case low.Read():
                return (pointer.register, self.changes[pointer.register]), 0
            case low.Constant(value=int(value)):
                return (), value
            case low.Convert():
                return self._place(pointer.operand)
            case low.Offset():
                (base, start), (index, further) = self._place(pointer.pointer), self._place(pointer.index)
                return (base, index, pointer.scale) if index else base, start + further * pointer.scale
            case low.Binary(operator="+" | "-"):
                (left, start), (right, further) = self._place(pointer.left), self._place(pointer.right)
                sign = 1 if pointer.operator == "+" else -1
                return (left, sign, right) if right else left, start + sign * further
        kind = pointer.operator if isinstance(pointer, low.Binary) else type(pointer)
        return (kind, *map(self._place, walks.parts(pointer))), 0

    def _add(self, body: _Body, copies: int, room: float, chained: Container[str] = ()) -> None:
        is_far = any(access.space in WAITED_FOR["global"] for access in body.levels)
        most = copies if is_far else min(copies, ONCE)
        # What is computed from what was loaded stays in registers as long, however soon local memory answers.
        words_of_all = sum(body.times[each] * body.words[each] for each in body.levels)
        side_by_side = min(max(room / max(words_of_all, 1), 1.0), copies)
        for kind, spaces in WAITED_FOR.items():
            own = {access: level for access, level in body.levels.items() if access.space in spaces}
            at_once = 1 if body.stops[kind] or kind in chained else most
            depth = body.depth / (1 if body.stops["global"] or chained else side_by_side)
            for place, level in enumerate(sorted(set(own.values())), 1):
                here = [each for each in own if own[each] == level]
                address = ADDRESS if place > 1 else 0
                # Local memory answers while others of its loads are issued, be they many.
                words = 0 if kind == "local" else sum(body.times[each] * (body.words[each] + address) for each in here)
                filled = words / room if kind != "local" else 1 / min(side_by_side, most)
                for each in here:
                    part = math.prod(body.once[each].values()) / body.times[each]
                    self.once_a_round[each] = frozenset(body.once[each])
                    share = max(1.0, filled * at_once) / at_once
                    self.found[each] = Wait(
                        share=share * part,
                        level=place,
                        depth=depth * part,
                        least=max(1.0, filled) * part,
                        is_again=each in body.again,
                    )

    # --- statements

    def _simple(self, statement: low.Simple, body: _Body, under: int) -> None:
        level = max((self._level(each, body, under) for each in walks.expressions_of(statement)), default=0)
        register = walks.register_set(statement)
        if isinstance(statement, low.Assign | low.Store):
            self._follow(statement, body)
        # To store what is there before anything is loaded waits for nothing.
        hidden = ""
        if level > 0 and isinstance(statement, low.Store | low.Atomic):
            hidden = self._hidden_by(statement, body)
        if isinstance(statement, low.Atomic):
            level += 1
        if register is not None:
            self.known[register] = max(level, under)
            self.changes[register] += 1
            note_number(statement, self.numbers)
        if isinstance(statement, low.Barrier):
            if statement.is_of_group:
                body.stop()
        elif any(map(self._is_called, walks.expressions_of(statement))):
            body.stop()
        elif hidden:
            body.stop(hidden)

    def _level(self, expression: low.Expression, body: _Body, under: int) -> int:
        """Returns how many loads come one after the other up to a value."""
        if isinstance(expression, low.Read):
            return self.known.get(expression.register, 0)
        level = max((self._level(part, body, under) for part in walks.parts(expression)), default=0)
        if isinstance(expression, low.Load) and self.unrolling.is_in_memory(expression.access):
            level = max(level, under, body.finished.get(_kind_of(expression.access), 0)) + 1
            body.levels[expression.access] = max(level, body.levels.get(expression.access, 0))
            body.times[expression.access] = self.times
            body.words[expression.access] = words_of(expression.type)
            body.once[expression.access] = dict(self.once)
            body.loads.append(expression)
            body.note_place(expression.access, *self._place(expression.pointer))
        return level

    def _follow(self, statement: low.Assign | low.Store, body: _Body) -> None:
        """Finds how many operations come one after the other up to what a statement assigns or stores."""
        register = walks.register_set(statement)
        if register is not None and not self.operations.counts(register):
            self.depths[register] = 0
            return
        carried = register if register in body.carried else None
        depth, _ = self._depth(statement.value, carried)
        if register is not None:
            self.depths[register] = depth
        body.depth = max(body.depth, depth)

    def _depth(self, expression: low.Expression, carried: low.Register | None) -> tuple[int, bool]:
        """Returns how many operations come one after the other up to a value, since its iteration began.

        Operations on what a statement itself hands on to the next iteration are a chain, and don't count; the second of
        the results is whether the value is one of these.
        """
        match expression:
            case low.Read():
                return self.depths.get(expression.register, 0), expression.register is carried
            case low.Load():
                found = (self.depths.get(each, 0) for each in walks.registers_read(expression.pointer))
                return max(found, default=0), False
        parts = list(walks.parts(expression))
        if is_sum(expression):  # takes in a product as one operation
            parts = [each for part in parts for each in (walks.parts(part) if is_multiplication(part) else (part,))]
        ways = [self._depth(part, carried) for part in parts]
        depth, is_carried = max((way for way, _ in ways), default=0), any(is_carried for _, is_carried in ways)
        return depth if is_carried else depth + self._latency(expression), is_carried

    def _latency(self, expression: low.Expression) -> int:
        """Returns how many simple operations take as long as an operation."""
        kinds = [(kind, dtype) for kind, dtype, times in self.operations.own(expression) if times > 0]
        is_quotient = any(kind in ("div", "mod") and not dtype.startswith("float") for kind, dtype in kinds)
        return LONG_QUOTIENT if is_quotient else max((LATENCIES.get(kind, 1) for kind, _ in kinds), default=0)

    def _loaded(self, statements: Iterable[low.Statement]) -> tuple[frozenset[str | None], bool]:
        """Returns the arrays in global memory, and the private ones in memory, that statements load from, and whether
        they load from local memory."""
        simple = walks.simple_statements(statements)
        nodes = (node.access for each in simple for node in walks.accesses_of(each) if isinstance(node, low.Load))
        loads = [access for access in nodes if self.unrolling.is_in_memory(access)]
        arrays = frozenset(access.variable for access in loads if access.space in ("global", "private"))
        return arrays, any(access.space == "local" for access in loads)

    def _hidden_by(self, statement: low.Store | low.Atomic, body: _Body) -> str:
        """Returns the kind of memory whose loads in this body may see what a statement stores; empty for none."""
        stored, kind = statement.access.variable, _kind_of(statement.access)
        if kind == "local":  # an array of it is an address as any other to the assembler
            return kind if body.loads_local else ""
        array = self.scratch.get(stored or "")
        if array is not None and array.is_spilled:
            return ""  # other elements are known to be others
        if kind != "global":
            return kind if stored in body.loaded else ""
        # The assembler knows nothing of `restrict`, only of loads from what no work-item of the kernel stores to.
        seen = body.loaded - self.read_only - self.private
        return kind if seen and not (seen == {stored} and stored in body.apart) else ""

    def _is_called(self, expression: low.Expression) -> bool:
        return any(_is_call(part, self.kernel.is_exact) for part in walks.walk(expression))


def _numbers_apart(loop: low.Loop) -> frozenset[str]:
    """Returns the arrays in global memory that a loop stores to, and whose accesses in it are all constant distances
    apart and move by a constant."""
    nodes = [node for each in walks.simple_statements(parts_of(loop)) for node in walks.accesses_of(each)]
    own = [(node.access.variable or "", node) for node in nodes if node.access.space == "global"]
    pointers: dict[str, list[low.Expression]] = {name: [] for name, node in own if not isinstance(node, low.Load)}
    if not pointers:
        return frozenset()
    steps = Steps(loop)
    for name, node in own:
        if name in pointers:
            pointers[name].append(node.pointer)
    return frozenset(
        array
        for array, places in pointers.items()
        if len(set(map(_apart_from_numbers, places))) == 1 and all(steps.of(each) for each in places)
    )


def _apart_from_numbers(pointer: low.Expression) -> object:
    """Returns a pointer without its constant offsets: pointers that differ by nothing else share a register."""
    match pointer:
        case low.Read():
            return pointer.register
        case low.Constant():
            return pointer.value
        case low.Convert():
            return _apart_from_numbers(pointer.operand)
        case low.Binary(operator="+" | "-", right=low.Constant()):
            return _apart_from_numbers(pointer.left)
        case low.Binary(operator="+", left=low.Constant()):
            return _apart_from_numbers(pointer.right)
    kind = pointer.operator if isinstance(pointer, low.Binary) else type(pointer)
    return kind, *map(_apart_from_numbers, walks.parts(pointer))


def _kind_of(access: low.Access) -> str:
    return "global" if access.space == "constant" else access.space


def of_arrays(kernel: low.LoweredKernel) -> Mapping[str, Wait]:
    """Returns how loads of each array of a kernel are waited for; of several, those that wait most."""
    found = Waits(kernel, KernelOperations(kernel, as_compiled=True), scratch_arrays(kernel)).found
    ordered = sorted(found.items(), key=lambda each: each[1].share)
    return {access.variable: wait for access, wait in ordered if access.variable is not None}


def _is_call(part: low.Expression, is_exact: bool) -> bool:
    """Returns whether a value is computed by a function that compilers call, or that has a slow way beside a fast."""
    if not isinstance(part, low.Binary | low.Call) or not isinstance(part.type, Scalar | Vector):
        return False
    if not is_float(part.type):
        return False
    is_double = element_of(part.type).dtype == "float64"
    called = CALLED | EXACT if is_exact or is_double else CALLED
    if isinstance(part, low.Binary):
        return part.operator == "/" and "div" in called and not is_power_of_two(part.right)
    return bool(set(operations_of_call(part)) & (called | LONG.keys() if is_double else called))
