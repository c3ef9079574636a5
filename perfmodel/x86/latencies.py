"""Says how long instructions wait for each other: the longest chain of one pass, and what each iteration adds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from perfmodel.x86.instructions import Instruction
from perfmodel.x86.units import PER_CYCLE, arguments_of, function_cycles

LOAD, FORWARDED, SPILLED = 5.0, 8.0, 4.0
"""Cycles until a load has its value, until a value that was stored is loaded again, and until one of the stack is."""
_CYCLES: tuple[tuple[float, tuple[str, ...]], ...] = (
    (20.0, ("vsqrtpd", "vsqrtsd", "vgather", "vpgather")),
    (14.0, ("vsqrt",)),
    (13.0, ("vdivpd", "vdivsd")),
    (12.0, ("idiv", "div")),
    (10.5, ("vdiv",)),
    (9.0, ("vdpp",)),
    (5.0, ("vucomis", "vcomis")),
    (4.0, ("vfm", "vfnm")),
    (1.0, ("vmin", "vmax", "vcmp")),
    (3.0, ("vadd", "vsub", "vmul", "vround", "vrndscale", "vcvt", "vpmul", "imul", "mul", "vrcp", "vrsqrt")),
    (3.0, ("vextracti", "vextractf", "vinserti", "vinsertf", "vperm2", "vpermd", "vpermps", "vpermq", "vpermpd")),
    (3.0, ("vbroadcast", "vpbroadcast", "vpmovsx", "vpmovzx", "vpextr", "vpinsr", "vextractps", "vmovmsk")),
    (0.0, ("mov", "nop", "j", "vzeroupper", "endbr64")),
)
"""Cycles until a result is there, by the beginnings of names, as they are on cores since 2019; others take one."""


TO_MASK, BLENDED = 4.0, 1.0
"""Cycles until a register for masks has what vectors are compared for, and until a vector is what a mask chooses."""
MASKS = frozenset((f"k{number}",) for number in range(8))
HANDED_OVER = ("v0", "v1")
"""The registers in which functions of vectors get numbers; the result is in the first."""
CALL, FUNCTION = 20.0, 1.2
"""Cycles until such a function has its result, and how many more for each that it keeps a core busy, on a Zen 3."""


def cycles_of(instruction: Instruction) -> float:
    """Returns the cycles until an instruction's result is there, from when its operands are."""
    name = instruction.name
    if name[0] == "v" and instruction.writes[:1] in MASKS:
        return TO_MASK
    if name.startswith("vmov") and instruction.is_masked:
        return BLENDED
    return _by_name(name, bool(instruction.loads))


@cache
def _by_name(name: str, is_load: bool) -> float:
    if name.startswith("vmov"):
        return 3.0 if name.startswith(("vmovd", "vmovq")) and not is_load else 0.0
    return next((cycles for cycles, names in _CYCLES if name.startswith(names)), 1.0)


def waits(code: Sequence[Instruction], passes: int = 3) -> tuple[float, float]:
    """Returns the cycles of the longest chain of one pass through some code, where each register is there at its
    beginning, and how many each further pass adds at most to a value, as it waits for the one before."""
    ready: dict[str, float] = {}
    stored: dict[str, float] = {}
    places: dict[str, tuple[str, ...]] = {}
    longest = 0.0
    before: dict[str, float] = {}
    handed: set[str] = set()  # written since the last call; no other register hands over what was there before it
    for number in range(passes):
        before = ready | stored
        for each in code:
            if each.callee:
                cycles = function_cycles(each.callee)
                taken = handed.intersection(HANDED_OVER[: arguments_of(each.callee)])
                start = max((ready.get(register, 0.0) for register in taken), default=0.0)
                ready[HANDED_OVER[0]] = start + CALL + FUNCTION * cycles / PER_CYCLE
                handed = {HANDED_OVER[0]} if cycles else set()
                continue
            handed.update(each.writes)
            values = [register for register in each.reads if register not in each.addressed]
            start = max((ready.get(register, 0.0) for register in values), default=0.0)
            if each.loads:
                known = max((ready.get(register, 0.0) for register in each.addressed), default=0.0)
                start = max(start, known + LOAD, stored.get(each.loads, 0.0))
            done = start + cycles_of(each)
            for register in each.writes:
                ready[register] = done
                for text in [text for text, names in places.items() if register in names]:
                    del stored[text], places[text]  # the same text is another address from now on
            if each.stores:
                stored[each.stores] = done + (SPILLED if "rsp" in each.stores else FORWARDED)
                places[each.stores] = each.addressed
            if not number:
                longest = max(longest, done)
    carried = max((done - before[value] for value, done in (ready | stored).items() if value in before), default=0.0)
    return longest, carried if passes > 1 else 0.0
