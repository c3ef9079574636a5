"""Writes asynchronous copies from global to shared memory as loads and stores, done at once.

A program that waits for its copies, as it has to, can't tell the difference; what it moves is the same. What groups
copies and waits for them is kept, as it says how many are under way at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from perfmodel.basics.errors import SourceError
from perfmodel.ptx.syntax import Address, Guard, Immediate, Instruction, Operand, Register, Vector
from perfmodel.ptx.types import PREDICATE, TYPES, Type

_WORD = TYPES["b32"]
_VECTORS: dict[int, tuple[str, ...]] = {4: (), 8: ("v2",), 16: ("v4",)}


class Copies:
    """Writes the copies of one kernel, with registers of their own.

    Attributes:
        registers: their types, by name.
    """

    def __init__(self) -> None:
        self.registers: dict[str, Type] = {}
        self._count = 0

    def lowered(self, copy: Instruction, registers: Mapping[str, Type]) -> Iterator[Instruction]:
        """Yields the instructions in the place of a ``cp.async``; what groups copies or waits for them as it is.

        Args:
            registers: the types of the kernel's, by name.

        Raises:
            SourceError: for one that is not understood.
        """
        if copy.has("commit_group", "wait_group", "wait_all"):
            yield copy
            return
        match copy.operands:
            case (Address() as to, Address() as source, Immediate(value=int() as n_bytes), *rest) if (
                n_bytes in _VECTORS
            ):
                pass
            case _:
                raise SourceError(f"the copy {copy.name!r} is not understood, in PTX", "", copy.line, 1)
        words = tuple(self._register(_WORD) for _ in range(n_bytes // 4))
        moved: Operand = words[0] if len(words) == 1 else Vector(words)

        def made(
            opcode: str, modifiers: tuple[str, ...], type_: Type, *operands: Operand, guard: Guard | None
        ) -> Instruction:
            return replace(copy, opcode=opcode, modifiers=modifiers, types=(type_,), operands=operands, guard=guard)

        for word in words:
            yield made("mov", (), _WORD, word, Immediate(0), guard=None)
        guard = copy.guard
        if rest:
            loads = self._register(PREDICATE)
            if isinstance(rest[0], Register) and registers.get(rest[0].name) == PREDICATE:  # whether none is loaded
                yield made("not", (), PREDICATE, loads, rest[0], guard=None)
            else:  # so many bytes are loaded, the others are zero: all or none
                yield made("setp", ("ne",), TYPES["u32"], loads, rest[0], Immediate(0), guard=None)
            if guard is not None:
                own: Operand = guard.register
                if guard.is_negated:
                    own = self._register(PREDICATE)
                    yield made("not", (), PREDICATE, own, guard.register, guard=None)
                yield made("and", (), PREDICATE, loads, loads, own, guard=None)
            guard = Guard(loads, False)
        yield made("ld", ("global", "async", *_VECTORS[n_bytes]), _WORD, moved, source, guard=guard)
        yield made("st", ("shared", *_VECTORS[n_bytes]), _WORD, to, moved, guard=copy.guard)

    def _register(self, type_: Type) -> Register:
        name = f"%copied{self._count}"
        self._count += 1
        self.registers[name] = type_
        return Register(name)
