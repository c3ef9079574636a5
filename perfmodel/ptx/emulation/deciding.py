"""Finds what decides in a kernel where lanes go and what they access: the rest need not be computed to be counted.

What is loaded decides with what it follows from, which is also what the kernel itself stores there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Loop
from perfmodel.ptx.dataflow import (
    ACCESSING,
    BULK,
    LOADS,
    PRODUCTS,
    STORES,
    ParameterPlace,
    read,
    registers_in,
    written,
)
from perfmodel.ptx.parameters import has_loaded_pointer, roots, shared_variables
from perfmodel.ptx.syntax import Address, Instruction

_LINEAR = frozenset(("add", "sub", "mov", "cvt", "cvta", "shl", "mul", "mad", "setp", "not"))
_EXCHANGING = frozenset(("shfl", "vote", "match", "redux", "activemask"))
_ATOMIC = frozenset(("atom", "red"))
_SHARED = frozenset(("shared", "shared::cta"))
TESTS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"))


def is_always_run(instruction: Instruction) -> bool:
    """Returns whether an instruction is run even where nothing follows from its result: copies of tiles, barriers."""
    return instruction.opcode in BULK or instruction.opcode.startswith(("mbarrier.", "bar", "cp.async", "trap"))


def _takes_data(instruction: Instruction) -> bool:
    """Returns whether a result follows from what is in memory, or in registers of other lanes."""
    if instruction.opcode in ("bar", "barrier"):
        return instruction.has("red")
    return (instruction.opcode in ACCESSING and not instruction.has("param")) or instruction.opcode in _EXCHANGING


def _takes_memory(instruction: Instruction) -> bool:
    if instruction.opcode in PRODUCTS:
        return instruction.opcode == "wgmma.mma_async"
    return instruction.opcode in LOADS | _ATOMIC and not instruction.has("param")


def _places_of(instruction: Instruction) -> list[str]:
    """Returns the registers that say what an instruction accesses."""
    if is_always_run(instruction):
        return [name for each in instruction.operands for name in registers_in(each)]
    if instruction.opcode not in ACCESSING:
        return []
    found = [name for each in instruction.operands if isinstance(each, Address) for name in registers_in(each)]
    if instruction.opcode.startswith("wmma."):
        found += [name for each in instruction.operands[2:] for name in registers_in(each)]
    return found


@dataclass(frozen=True)
class _Place:
    """A place in memory that an instruction accesses.

    Attributes:
        space: ``shared``, ``local``, ``const`` or ``global``; empty where it may be any.
        arrays: parameters and parts of structs that point there, or variables in shared memory; none where that is not
            known.
    """

    space: str
    arrays: frozenset[str | ParameterPlace] = frozenset()

    def meets(self, other: _Place) -> bool:
        """Returns whether both may be the same place."""
        if self.space and other.space and self.space != other.space:
            return False
        return not self.arrays or not other.arrays or bool(self.arrays & other.arrays)


class Deciding:
    """Finds what decides in a kernel where lanes go, and what they access.

    Attributes:
        instructions: those that it follows from: their results have to be known.
    """

    def __init__(self, code: Code) -> None:
        self.code, self.flow = code, code.dataflow
        names = [b.guard.register.name for b in code.flow.blocks if b.guard is not None]
        names += [name for b in code.flow.blocks if b.index is not None for name in registers_in(b.index)]
        for block in code.flow.blocks:
            for each in block.instructions:
                if each.guard is not None:
                    names.append(each.guard.register.name)
                names += _places_of(each)
        self.instructions = self.flow.behind(tuple(names))
        self.depends_on_data = any(map(_takes_data, self.instructions))
        if self.depends_on_data:
            self._add_what_is_stored()
        self.names = {name for each in self.instructions for name in written(each)}

    def _add_what_is_stored(self) -> None:
        """Adds what the kernel itself stores where it loads what decides, and what that follows from."""
        everything = [each for block in self.code.flow.blocks for each in block.instructions]
        if any(each.opcode in BULK for each in everything):
            self.instructions = set(everything)
            return
        storing = [each for each in everything if each.opcode in STORES | _ATOMIC and not each.has("param")]
        places = {each: self._place(each) for each in storing}
        looked_at: set[Instruction] = set()
        while new := self.instructions - looked_at:
            looked_at |= new
            loaded = {self._place(each) for each in new if _takes_memory(each)}
            met = [each for each in storing if any(places[each].meets(place) for place in loaded)]
            storing = [each for each in storing if each not in met]
            self.instructions |= {*met, *self.flow.behind(tuple(name for each in met for name in read(each)))}

    def _place(self, instruction: Instruction) -> _Place:
        if instruction.opcode in PRODUCTS:
            return _Place("shared")
        if instruction.has(*_SHARED) or instruction.opcode in ("ldmatrix", "stmatrix"):
            return _Place("shared", frozenset(shared_variables(self.code, instruction)))
        if instruction.has("local", "const"):
            return _Place("local" if instruction.has("local") else "const")
        is_known = not has_loaded_pointer(self.code, instruction)
        arrays = frozenset[str | ParameterPlace](roots(self.code, instruction) if is_known else ())
        return _Place("global" if instruction.has("global") else "", arrays)

    @cached_property
    def changes_arrays(self) -> bool:
        """True where something that has to be run may write to global memory."""
        everything = [each for block in self.code.flow.blocks for each in block.instructions]
        writing = [each for each in everything if each.opcode in BULK | STORES | _ATOMIC and self.is_needed(each)]
        return any(each.opcode in BULK or not each.has("param", "local", *_SHARED) for each in writing)

    @cached_property
    def waits(self) -> bool:
        """True where barriers in shared memory decide, which go through phases."""
        return any(each.opcode.startswith("mbarrier.") for each in self.instructions)

    def is_needed(self, instruction: Instruction) -> bool:
        """Returns whether an instruction has to be run, and not only counted."""
        return instruction in self.instructions or is_always_run(instruction)

    def is_update(self, instruction: Instruction) -> bool:
        """Returns whether a comparison and exchange in global memory is one of a number that was loaded before with
        what is made of it: another lane's that comes between has it made again, and no lane go elsewhere."""
        if not instruction.has("cas") or instruction.has("shared", "shared::cta"):
            return False
        behind = self.flow.behind(tuple(registers_in(instruction.operands[-2])))
        return any(each is instruction or (each.opcode in LOADS and not each.has("param")) for each in behind)

    def plan(self, loop: Loop) -> Plan | None:
        """Returns how a loop's iterations follow from each other; None where that is not known."""
        blocks = [self.code.flow.blocks[number] for number in sorted(loop.blocks)]
        inside = [each for block in blocks for each in block.instructions]
        if self.waits or any(block.index is not None for block in blocks):
            return None
        if self.depends_on_data and any(_takes_data(each) for each in inside if each in self.instructions):
            return None
        set_inside = {name for each in inside for name in written(each)}
        carried = self.flow.alive[loop.header] & set_inside & self.names
        own = [each for each in inside if each in self.instructions]
        varying = set(carried)
        while True:
            more = {n for each in own if set(read(each)) & varying for n in written(each)} - varying
            if not more:
                break
            varying |= more
        for each in own:
            used = [name for name in read(each) if name in varying]
            if used and not self._is_linear(each, varying):
                return None
        if not all(self._steps(name, inside, carried, varying) for name in carried):
            return None
        tests = [each for each in own if each.opcode == "setp" and set(read(each)) & varying]
        guards = {block.guard.register.name for block in blocks if block.guard is not None}
        guards |= {each.guard.register.name for each in inside if each.guard is not None}
        if not guards & varying <= {name for each in tests for name in written(each)}:
            return None
        return Plan(loop, tuple(sorted(carried)), tuple(tests))

    def rough_plan(self, loop: Loop, may_end_earlier: bool = False) -> Plan | None:
        """Returns how a loop's counters go on, whatever data decide inside; None where data decide on its end too.

        Args:
            loop: a loop of the kernel.
            may_end_earlier: whether data may decide on its end besides, if its counters have one.
        """
        blocks = [self.code.flow.blocks[number] for number in sorted(loop.blocks)]
        if self.waits or any(block.index is not None for block in blocks):
            return None
        always = [block for block in blocks if self._is_always_met(block.number, loop)]
        inside = [each for block in blocks for each in block.instructions]
        steady = {each for block in always for each in block.instructions if each.guard is None}
        times = Counter(name for each in inside for name in written(each))
        set_inside = set(times)
        carried = self.flow.alive[loop.header] & set_inside
        set_inside -= _fixed(times, steady, carried)
        stepping = {name for name in carried if self._steps(name, inside, carried, set_inside, steady)}
        moving = set(stepping)
        while True:
            more = {
                name
                for each in steady
                if self._is_linear(each, set_inside) and each.opcode != "setp"
                for name in written(each)
                if name not in moving and set(read(each)) & set_inside <= moving and times[name] == 1
            }
            if not more:
                break
            moving |= more
        tests = []
        for block in blocks:
            if block.guard is not None and any(successor not in loop.blocks for successor in block.successors):
                name = block.guard.register.name
                found = [each for each in inside if name in written(each)]
                is_linear = len(found) == 1 and found[0].opcode == "setp" and self._is_linear(found[0], set_inside)
                if is_linear and set(read(found[0])) & set_inside <= moving and found[0] in steady:
                    tests.append(found[0])
                elif not may_end_earlier:
                    return None
        return Plan(loop, tuple(sorted(stepping)), tuple(tests)) if tests and stepping else None

    def _is_always_met(self, block: int, loop: Loop) -> bool:
        """Returns whether every iteration of a loop executes a block, and once."""
        flow = self.code.flow
        ends = [each for each in flow.predecessors[loop.header] if each in loop.blocks]
        return flow.around(block)[-1] is loop and all(flow.dominates(block, end) for end in ends)

    @staticmethod
    def _is_linear(instruction: Instruction, varying: set[str]) -> bool:
        """Returns whether an instruction's result moves by a constant step if its operands do."""
        if instruction.opcode not in _LINEAR or instruction.guard is not None:
            return False
        if any(type_.is_float for type_ in instruction.types):
            return False
        if instruction.opcode == "setp":
            names = [modifier for modifier in instruction.modifiers if modifier not in ("ftz",)]
            return len(names) == 1 and names[0] in TESTS
        moving = [any(name in varying for name in registers_in(operand)) for operand in instruction.operands[1:]]
        if instruction.opcode == "shl":
            return not moving[1]
        if instruction.opcode in ("mul", "mad"):
            return not instruction.has("hi") and not (moving[0] and moving[1])
        return True

    def _steps(
        self,
        name: str,
        inside: list[Instruction],
        carried: frozenset[str],
        varying: set[str],
        steady: Collection[Instruction] | None = None,
    ) -> bool:
        """Returns whether a register grows by what stays the same in the loop, also if it is computed there anew; by
        the steady instructions alone, if they are given."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            definitions = [each for each in inside if at in written(each)]
            if len(definitions) != 1 or not _adds(definitions[0]):
                return False
            if steady is not None and definitions[0] not in steady:
                return False
            before = [n for n in read(definitions[0]) if n in varying]
            if len(before) > 1:
                return False
            waiting += [n for n in before if n != name and not (n in carried and n in seen)]
        return True


def _adds(instruction: Instruction) -> bool:
    """Returns whether a whole number is made of another by an addition, or is the same in other bits."""
    if instruction.opcode == "cvt":
        return all(not type_.is_float and type_.bits >= 32 for type_ in instruction.types)
    return instruction.opcode in ("add", "sub", "mov")


def _fixed(times: Mapping[str, int], steady: Collection[Instruction], carried: frozenset[str]) -> set[str]:
    """Returns registers that a loop sets to the same in every iteration: what the launch gives, and what follows from
    that, which compilers leave where it is used. What a loop loads from one place again and again, as it might store
    there, is taken to stay the same.

    Args:
        times: how many instructions set each register that the loop sets.
    """
    fixed: set[str] = set()
    while True:
        more = {
            name
            for each in steady
            if each.opcode in _LINEAR or (each.opcode == "ld" and not each.has("volatile", "relaxed", "acquire"))
            if not (set(read(each)) & times.keys()) - fixed
            for name in written(each)
            if times[name] == 1 and name not in carried
        }
        if more <= fixed:
            return fixed
        fixed |= more


@dataclass(frozen=True, eq=False)
class Plan:
    """A loop may be skipped through: its registers that step by iterations, and the tests that these decide."""

    loop: Loop
    carried: tuple[str, ...]
    tests: tuple[Instruction, ...]
