"""Says which part of the PTX each piece of machine code comes from, so that the one is executed as often as the other.

The disassembler names the line of PTX behind each instruction. The assembler copies loops' bodies, moves instructions
out of loops, and adds ways that are hardly ever gone; so a basic block of machine code is executed as often as the
block of PTX that most of its instructions come from, shared out over its copies in the loop that has most of them.
Instructions under a guard don't count there: short branches become such, which are issued whether it holds or not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from perfmodel.sass.loops import BRANCHES, Loop, loops_of
from perfmodel.sass.reading import LENGTH, Instruction

Origin: TypeAlias = frozenset[int]
"""Blocks of PTX by their numbers: one, or those that a function was copied to."""

NOWHERE: Origin = frozenset()

_CERTAIN = BRANCHES | {"EXIT", "RET"}
_ENDING = _CERTAIN | {"CALL"}
_PARTING, _MEETING = "BSSY", "BSYNC"
_UNTOLD = frozenset((_PARTING, _MEETING, "WARPSYNC", "NOP"))
"""The disassembler names the line of whatever comes before these, with which lanes part and meet."""
_ACCESSES = ("LDG", "STG", "LDS", "STS", "ATOM", "RED")
_MOVES = ("MOV", "UMOV", "IMAD.MOV", "CS2R", "HFMA2.MMA")
_OWN = "$__internal"
_RARE = ("slowpath", "mediumpath", "_rn_f64_full")
"""Words in the names of functions that are called where a number is out of the usual range."""


@dataclass(frozen=True)
class OriginatedBlock:
    """A basic block of machine code that is executed as often as blocks of PTX, shared out over its copies.

    Attributes:
        loop: the innermost loop that it lies in; None for none.
        origin: the blocks of PTX; empty where it is hardly ever executed, or holds copies of a loop's body that do what
            is left of its iterations, as all of them count where most copies are.
        copies: over which their executions are shared out.
        written_out: the header of the loop of PTX around it of which each iteration has a copy of its own, so that none
            is executed more often than the loop is begun; None where there is no such loop.
    """

    instructions: tuple[Instruction, ...]
    loop: Loop | None
    origin: Origin
    copies: int
    written_out: int | None = None


def originated(
    code: Sequence[Instruction], blocks: Mapping[int, Origin], around: Mapping[int, tuple[int, ...]]
) -> list[OriginatedBlock]:
    """Returns the basic blocks of machine code in their order.

    Args:
        blocks: the blocks of PTX that each line of it stands in.
        around: the headers of the loops of PTX around those of them that lie in loops, the outermost first; of these
            blocks alone there are copies.
    """
    basic = list(_basic_blocks(code))
    ways = _Ways(basic)
    loops = loops_of([each for number, piece in enumerate(basic) if number in ways.reached for each in piece])
    inside = [_innermost(loops, piece[0].place) for piece in basic]
    made: dict[Origin, dict[Loop | None, Counter[tuple[int, str]]]] = defaultdict(lambda: defaultdict(Counter))
    for number in sorted(ways.reached):
        for each in basic[number]:
            if each.line in blocks:
                made[blocks[each.line]][inside[number]][each.line, each.name] += 1
    homes = {origin: _home(by_loop) for origin, by_loop in made.items()}
    of_functions = {blocks[each.line] for number in ways.called for each in basic[number] if each.line in blocks}
    own = {origin: home for origin, home in homes.items() if origin not in of_functions}
    written_out = _written_out(own, made, around)
    found: list[OriginatedBlock] = []
    last: dict[Loop | None, Origin] = {}
    parted: dict[int | None, Origin] = {}
    for number, (piece, loop) in enumerate(zip(basic, inside, strict=True)):
        at_home: Counter[Origin] = Counter()
        unguarded: Counter[Origin] = Counter()
        left_over = 0
        for each in piece:
            if each.opcode in _UNTOLD:
                continue
            origin = blocks.get(each.line, NOWHERE)
            if origin in homes and homes[origin] is loop:
                at_home[origin] += 1
                unguarded[origin] += not each.guard or each.opcode in BRANCHES
            elif origin in homes and (each.line, each.name) in made[origin][homes[origin]]:
                left_over += 1
        if left_over > 2 * at_home.total():
            found.append(OriginatedBlock(instructions=piece, loop=loop, origin=NOWHERE, copies=1))
            continue
        telling = +unguarded or at_home
        before = parted.get(piece[-1].place + LENGTH, last.get(loop, NOWHERE))
        origin = telling.most_common(1)[0][0] if telling else before
        last[loop] = origin
        parted |= {each.target: origin for each in piece if each.opcode == _PARTING}
        is_copied = origin in homes and any(each in around for each in origin)
        copies = _copies(made[origin][homes[origin]]) if is_copied else 1
        is_executed = number in ways.reached and not _is_rare(piece[-1])
        found.append(
            OriginatedBlock(
                instructions=piece,
                loop=loop,
                origin=origin if is_executed else NOWHERE,
                copies=copies,
                written_out=written_out.get(origin),
            )
        )
    for caller, called in ways.calls:
        for number in called:
            origin = found[number].origin | found[caller].origin
            found[number] = replace(found[number], origin=origin, copies=found[caller].copies)
    return found


def _written_out(
    homes: Mapping[Origin, Loop | None],
    made: Mapping[Origin, Mapping[Loop | None, Counter[tuple[int, str]]]],
    around: Mapping[int, tuple[int, ...]],
) -> dict[Origin, int | None]:
    """Returns the outermost loop of PTX around each single block that has no loop of machine code of its own: the block
    is executed in the same as most of what lies around the loop, or in none."""
    loops_of = {origin: around.get(min(origin), ()) for origin in homes if len(origin) == 1}
    beside: dict[tuple[int, ...], Counter[Loop | None]] = defaultdict(Counter)
    for origin, loops in loops_of.items():
        beside[loops][homes[origin]] += made[origin][homes[origin]].total()
    mostly = {loops: found.most_common(1)[0][0] for loops, found in beside.items()} | {(): None}
    found: dict[Origin, int | None] = {}
    for origin, loops in loops_of.items():
        levels = ((loop, loops[:depth]) for depth, loop in enumerate(loops))
        found[origin] = next(
            (loop for loop, outer in levels if outer in mostly and mostly[outer] is homes[origin]), None
        )
    return found


def _home(by_loop: Mapping[Loop | None, Counter[tuple[int, str]]]) -> Loop | None:
    """Returns the loop in which a block of PTX is executed: the deepest one that has most of its lines, and of several
    that with most copies; what is left of iterations lies behind it, or in loops with fewer."""
    lines = {loop: len({line for line, _ in made}) for loop, made in by_loop.items()}
    most = max(lines.values())
    found = [loop for loop, count in lines.items() if 2 * count >= most]
    return max(found, key=lambda loop: (loop.depth if loop else 0, by_loop[loop].total()))


def _copies(made: Mapping[tuple[int, str], int]) -> int:
    """Returns how many copies there are of what lines became: how often an instruction is there says so, but for those
    that a line became several of, as moves of two words are, and those that copies share. Accesses to memory are
    neither, mostly."""
    accesses = [number for (_, name), number in made.items() if name.startswith(_ACCESSES)]
    computing = [number for (_, name), number in made.items() if not name.startswith(_MOVES)]
    times = Counter(accesses or computing or made.values())
    return max(times, key=lambda number: (times[number], number))


class _Ways:
    """The ways through basic blocks.

    Attributes:
        reached: the numbers of blocks that are reached from the first one.
        called: those of them that functions have, which loops go through without being around them.
        calls: pairs of a block that calls a function of the assembler's own, which no line of PTX stands for, and the
            blocks of that function.
    """

    def __init__(self, pieces: Sequence[tuple[Instruction, ...]]) -> None:
        self._pieces = pieces
        self._numbers = {piece[0].place: number for number, piece in enumerate(pieces)}
        self.reached = self._from(0)
        self.called: set[int] = set()
        self.calls: list[tuple[int, frozenset[int]]] = []
        waiting = sorted(self.reached)
        while waiting:
            number = waiting.pop()
            last = pieces[number][-1]
            if not last.calls or last.target not in self._numbers or _is_rare(last):
                continue
            called = self._from(self._numbers[last.target])
            self.called |= called
            if last.calls.startswith(_OWN):
                self.calls.append((number, called))
            else:
                waiting += called - self.reached
                self.reached |= called

    def _from(self, first: int) -> frozenset[int]:
        found: set[int] = set()
        waiting = [first]
        while waiting:
            number = waiting.pop()
            if number < len(self._pieces) and number not in found:
                found.add(number)
                waiting += self._successors(number)
        return frozenset(found)

    def _successors(self, number: int) -> Iterator[int]:
        """Yields the blocks behind one; where lanes have parted, others do in turn what is left out here."""
        last = self._pieces[number][-1]
        is_branch = last.opcode in BRANCHES
        if last.guard or last.opcode not in _CERTAIN or (is_branch and not last.operands.startswith("`")):
            yield number + 1
        if last.opcode == "BRX":  # to any place of a table
            yield from self._numbers.values()
        if is_branch and ".DIV" not in last.name and last.target in self._numbers:
            yield self._numbers[last.target]


def _is_rare(last: Instruction) -> bool:
    return any(word in last.calls for word in _RARE)


def _basic_blocks(code: Sequence[Instruction]) -> Iterator[tuple[Instruction, ...]]:
    targets = {each.target for each in code}
    piece: list[Instruction] = []
    for each in code:
        if piece and each.place in targets:
            yield tuple(piece)
            piece = []
        piece.append(each)
        if each.opcode in _ENDING:
            yield tuple(piece)
            piece = []
    if piece:
        yield tuple(piece)


def _innermost(loops: Sequence[Loop], place: int) -> Loop | None:
    around = [loop for loop in loops if loop.first <= place <= loop.last]
    return max(around, key=lambda loop: loop.depth, default=None)
