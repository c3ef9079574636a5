"""Tells what index arithmetic is left of loops that a compiler writes out as a whole.

Their counters are numbers in each copy of the body, and nothing is left of counting. Addresses that differ by a number
from copy to copy are one address with numbers beside it in the instructions: ``tile[16 * i + x]`` is computed once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from enum import IntEnum

from perfmodel.counting.chains import Operations
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.operations import KernelOperations, is_sum, joined_operands, summands
from perfmodel.opencl_c.static.loop_counters import start_of, step_of, whole_number
from perfmodel.opencl_c.types import LONG, Pointer, Scalar, Type

Loops = tuple[str, ...]


class Moves(IntEnum):
    """A value may differ between the iterations of some loops in these ways."""

    KNOWN = 0
    """It is a number that the compiler knows in each."""
    APART = 1
    """It is the same in all."""
    BY_NUMBERS = 2
    """It is the same but for a number that the compiler knows."""
    OTHERWISE = 3


class WrittenOut:
    """Tells the index arithmetic of one kernel.

    Args:
        written: the loops that a compiler writes out, by name.
    """

    def __init__(self, kernel: low.LoweredKernel, operations: KernelOperations, written: Container[str]) -> None:
        self.operations, self.written = operations, written
        loops = {loop.name: loop for loop in walks.loops(kernel.body)}
        self.order = {name: place for place, name in enumerate(loops)}
        self.counters: dict[str, frozenset[low.Register]] = {}
        self.within: dict[str, frozenset[low.Register]] = {}
        self.starts: dict[low.Register, low.Expression] = {}
        control: set[int] = set()
        for name, loop in loops.items():
            self.within[name] = frozenset(walks.registers_set((loop,)))
            counting = (*loop.test, *loop.step)
            if name in written:
                self.counters[name] = frozenset(walks.registers_set(counting))
                control |= {block.number for block in walks.straights(counting)}
                self._note_start(loop)
        self.control = frozenset(control)
        self._found: dict[tuple[int, Loops], tuple[Loops, Operations]] = {}

    def _note_start(self, loop: low.Loop) -> None:
        """Notes the start of a counter that is no constant, so that the counter's copies are constants beyond it."""
        step = step_of(loop)
        start = None if step is None else start_of(step, self.operations.assigned)
        if step is not None and start is not None and whole_number(start) is None:
            self.starts[step.register] = start

    def of_block(self, block: low.Straight, loops: Iterable[str]) -> list[tuple[Loops, Operations]]:
        """Returns the index arithmetic of a block, and which of the loops around it repeat it once only.

        Args:
            loops: the names of those around the block.
        """
        if block.number in self.control:
            return []
        around = tuple(sorted(loops, key=lambda name: self.order[name]))
        found = []
        for root, operations in self.operations.of(block).roots:
            key = id(root), around
            if key not in self._found:
                self._found[key] = self._left(root, operations, around)
            found.append(self._found[key])
        return found

    def _left(self, root: low.Expression, operations: Operations, around: Loops) -> tuple[Loops, Operations]:
        for start in range(len(around)):
            within = around[start:]
            if any(name in self.written for name in within):
                moves = _Moves(self, within)
                if moves.of(root) != Moves.OTHERWISE:
                    return within, moves.operations(root)
        return (), operations


class _Moves:
    """Tells how values move within some loops."""

    def __init__(self, kernel: WrittenOut, loops: Loops) -> None:
        self.own, self.assigned, self.starts = kernel.operations.own, kernel.operations.assigned, kernel.starts
        self.known: frozenset[low.Register] = frozenset().union(*(kernel.counters.get(name, ()) for name in loops))
        self.set_here: frozenset[low.Register] = frozenset().union(*(kernel.within[name] for name in loops))
        self.found: dict[low.Register, Moves] = {}

    def of(self, value: low.Expression) -> Moves:
        match value:
            case low.Constant():
                return Moves.KNOWN
            case low.Read():
                return self._register(value.register)
            case low.WorkItem() | low.ImageSize() | low.Address():
                return Moves.APART
            case low.Convert() | low.Reinterpret() | low.Unary(operator="-"):
                return self._converted(value)
            case low.Binary(operator="+" | "-"):
                return self._sum([self.of(value.left), self.of(value.right)])
            case low.Offset():
                index = self.of(value.index)
                is_far = isinstance(value.pointer.type, Pointer) and value.pointer.type.space != "local"
                return self._sum([self.of(value.pointer), _widened(index, value.index.type, LONG) if is_far else index])
            case low.Binary(operator="*"):
                return self._product(value)
            case low.Binary(operator="<<") if isinstance(value.right, low.Constant):
                return self.of(value.left)
            case low.Binary(operator="/" | "%") if not isinstance(value.right, low.Constant):
                return Moves.OTHERWISE  # which may fail where it is not asked for
        parts = walks.parts(value)
        moves = [self.of(part) for part in parts]
        if isinstance(value, low.Load):
            return Moves.APART if max(moves) <= Moves.APART else Moves.OTHERWISE
        if set(moves) <= {Moves.KNOWN}:
            return Moves.KNOWN
        is_apart = all(
            each is Moves.APART or isinstance(part, low.Constant) for each, part in zip(moves, parts, strict=True)
        )
        return Moves.APART if is_apart else Moves.OTHERWISE

    def _register(self, register: low.Register) -> Moves:
        if register in self.known:
            start = self.starts.get(register)
            return Moves.KNOWN if start is None else self._sum([Moves.KNOWN, self.of(start)])
        if register not in self.set_here:
            return Moves.APART
        if register not in self.found:
            self.found[register] = Moves.OTHERWISE  # what follows from itself
            values = self.assigned.get(register, ())
            if len(values) == 1:
                self.found[register] = self.of(values[0])
        return self.found[register]

    def _converted(self, value: low.Convert | low.Reinterpret | low.Unary) -> Moves:
        return _widened(self.of(value.operand), value.operand.type, value.type)

    def _sum(self, moves: Sequence[Moves]) -> Moves:
        return Moves.BY_NUMBERS if set(moves) == {Moves.KNOWN, Moves.APART} else max(moves)

    def _product(self, product: low.Binary) -> Moves:
        left, right = self.of(product.left), self.of(product.right)
        for number, other in ((product.left, right), (product.right, left)):
            if isinstance(walks.unconverted(number), low.Constant):
                return other
        return left if left == right and left <= Moves.APART else Moves.OTHERWISE

    def operations(self, value: low.Expression) -> Operations:
        """Returns the operations of what is the same in all iterations."""
        found = Operations()
        if self.of(value) is Moves.KNOWN:
            return found
        parts = walks.parts(value)
        if is_sum(value):
            parts = [part for part in summands(value) if self.of(part) is not Moves.KNOWN]
            found = joined_operands(parts, value)
        else:
            for kind, dtype, times in self.own(value):
                found[kind, dtype] += times
        if not isinstance(value, low.Load):  # whose address is another root
            for part in parts:
                found += self.operations(part)
        return found


def _widened(moves: Moves, source: Type, target: Type) -> Moves:
    """Returns how a value moves in a wider type: an unsigned sum may have wrapped around before."""
    is_wider = isinstance(source, Scalar) and isinstance(target, Scalar) and target.size > source.size
    may_wrap = is_wider and isinstance(source, Scalar) and not source.is_signed
    return Moves.OTHERWISE if moves is Moves.BY_NUMBERS and may_wrap else moves
