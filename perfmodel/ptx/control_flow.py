"""Recovers the control flow of a kernel: basic blocks, where ways meet again, and loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfmodel.basics.errors import SourceError
from perfmodel.basics.graphs import dominates, immediate_dominators, reached
from perfmodel.ptx.inlining import Kernel
from perfmodel.ptx.syntax import Guard, Instruction, Label, Operand, Symbol

EXIT = -1
"""The number of the place behind all blocks, where work-items have ended."""
_ENDING = frozenset(("bra", "brx", "ret", "exit"))


@dataclass(eq=False)
class Block:
    """A basic block is executed from its first to its last instruction.

    Attributes:
        instructions: without the one that ends it.
        ending: the instruction that says how it goes on, if there is one.
        guard: of a branch: on what it depends.
        successors: the numbers of the blocks behind it. Of a branch with a guard the first one is where the guard
            holds, the other one where it doesn't; of a choice by index they are in its order.
    """

    number: int
    instructions: list[Instruction] = field(default_factory=list)
    ending: Instruction | None = None
    guard: Guard | None = None
    index: Operand | None = None
    successors: tuple[int, ...] = ()

    @property
    def is_end(self) -> bool:
        """True where work-items that come here have ended."""
        return not self.instructions and self.successors == (EXIT,)


@dataclass(eq=False)
class Loop:
    """A loop: the block through which it is entered, all of its blocks, and the loop around it."""

    header: int
    blocks: frozenset[int]
    outer: Loop | None = None

    @property
    def name(self) -> str:
        return f"loop_{self.header}"


class ControlFlow:
    """The control flow of one kernel.

    Attributes:
        meeting: for each block, the first one that every way from it goes through, or `EXIT`.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.blocks = _blocks(kernel)
        predecessors: list[list[int]] = [[] for _ in self.blocks]
        for block in self.blocks:
            for successor in block.successors:
                if successor != EXIT:
                    predecessors[successor].append(block.number)
        self.predecessors = predecessors
        count = len(self.blocks)
        forward = [[s for s in block.successors if s != EXIT] for block in self.blocks]
        backward = [*(list(b) for b in predecessors), [b.number for b in self.blocks if EXIT in b.successors]]
        after = [[count if s == EXIT else s for s in block.successors] for block in self.blocks]
        self.dominators = immediate_dominators(0, forward.__getitem__, predecessors.__getitem__)
        meeting = immediate_dominators(count, backward.__getitem__, [*after, []].__getitem__)
        self.meeting = [EXIT if (found := meeting.get(number, count)) == count else found for number in range(count)]
        self.loops = self._loops()
        self._around: list[tuple[Loop, ...]] = [self._loops_around(number) for number in range(count)]

    def around(self, block: int) -> tuple[Loop, ...]:
        """Returns the loops around a block, the outermost first."""
        return self._around[block]

    def _loops_around(self, number: int) -> tuple[Loop, ...]:
        found = [loop for loop in self.loops if number in loop.blocks]
        return tuple(sorted(found, key=lambda loop: -len(loop.blocks)))

    def dominates(self, above: int, below: int) -> bool:
        return dominates(self.dominators, above, below)

    def _loops(self) -> list[Loop]:
        ends: dict[int, list[int]] = {}
        for block in self.blocks:
            for successor in block.successors:
                if successor != EXIT and self.dominates(successor, block.number):
                    ends.setdefault(successor, []).append(block.number)
        loops = [Loop(header, self._body(header, last)) for header, last in sorted(ends.items())]
        for loop in loops:
            around = [each for each in loops if each is not loop and loop.blocks < each.blocks]
            loop.outer = min(around, key=lambda each: len(each.blocks), default=None)
        return loops

    def _body(self, header: int, ends: list[int]) -> frozenset[int]:
        """Returns the blocks of a loop: those on the ways back from its ends to its header."""
        return frozenset(reached(ends, lambda number: () if number == header else self.predecessors[number])) | {header}


def _blocks(kernel: Kernel) -> list[Block]:
    labels: dict[str, int] = {}
    blocks = [Block(0)]
    is_ended = False
    for statement in kernel.body:
        if isinstance(statement, Label):
            if blocks[-1].instructions or is_ended:
                blocks.append(Block(len(blocks)))
                is_ended = False
            if statement.name in labels:
                raise SourceError(f"label {statement.name!r} is there twice, in PTX")
            labels[statement.name] = len(blocks) - 1
            continue
        if is_ended:
            blocks.append(Block(len(blocks)))
            is_ended = False
        if statement.opcode in _ENDING:
            blocks[-1].ending = statement
            is_ended = True
        else:
            blocks[-1].instructions.append(statement)
    for block in blocks:
        _end(block, labels, kernel, len(blocks))
    return _reached(blocks)


def _end(block: Block, labels: dict[str, int], kernel: Kernel, count: int) -> None:
    """Says how a block goes on."""
    after = block.number + 1 if block.number + 1 < count else EXIT
    ending = block.ending
    if ending is None:
        block.successors = (after,)
        return

    def target(name: str) -> int:
        if name not in labels:
            raise SourceError(f"label {name!r} is nowhere in the kernel, in PTX", "", ending.line, 1)
        return labels[name]

    match ending.opcode, ending.operands:
        case "bra", (Symbol() as to,):
            goes = target(to.name)
        case "brx", (index, Symbol() as to):
            block.index = index
            block.successors = tuple(target(name) for name in kernel.targets.get(to.name, ()))
            if not block.successors or ending.guard is not None:
                raise SourceError(f"{ending.name!r} has no list of targets, in PTX", "", ending.line, 1)
            return
        case (("ret" | "exit"), _):
            goes = EXIT
        case _:
            raise SourceError(f"{ending.name!r} has no target, in PTX", "", ending.line, 1)
    block.guard = ending.guard
    block.successors = (goes,) if ending.guard is None else (goes, after)
    if len(set(block.successors)) == 1:
        block.guard, block.successors = None, block.successors[:1]


def _reached(blocks: list[Block]) -> list[Block]:
    """Returns the blocks that are reached from the first one, numbered anew."""
    seen = reached([0], lambda number: (each for each in blocks[number].successors if each != EXIT))
    kept = [block for block in blocks if block.number in seen]
    numbers = {block.number: number for number, block in enumerate(kept)} | {EXIT: EXIT}
    for block in kept:
        block.number = numbers[block.number]
        block.successors = tuple(numbers[successor] for successor in block.successors)
    return kept
