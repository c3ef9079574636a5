"""Adds up what the machine code of a kernel takes of a core: operations of each unit, and waits for results."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfmodel.basics.graphs import reached
from perfmodel.x86.flow import Block, Flow
from perfmodel.x86.matching import Part, Turn, turns_of
from perfmodel.x86.object_code import Binaries, Functions
from perfmodel.x86.origins import Executed
from perfmodel.x86.source import Source
from perfmodel.x86.stalls import stalls
from perfmodel.x86.units import units_of
from perfmodel.x86.vector_axis import vector_axis

VARIANT = "_ZGV"
"""The names of functions for vectors of work-items begin so."""


@dataclass(frozen=True)
class Work:
    """Holds the operations and cycles that a work-group takes of a core, on average.

    Attributes:
        units: operations of each unit, see `perfmodel.x86.units.UNITS`.
        waits: cycles in which nothing is done, as results are waited for.
        lanes: work-items of a vector; 1 where they are done one by one.
        axis: of a work-group, along which vectors lie.
    """

    units: Mapping[str, float]
    waits: float
    lanes: int
    axis: int


def work_of(binaries: Binaries, source: Source, lanes: int, is_vectorized: bool) -> Work:
    """Returns what the machine code of a kernel takes of a core.

    Args:
        lanes: work-items of a vector.
        is_vectorized: whether the driver has made vectors of work-items.

    Raises:
        ValueError: there is no such kernel in the binaries.
    """
    units: defaultdict[str, float] = defaultdict(float)
    waiting = 0.0
    entry = entry_of(binaries, source, lanes, is_vectorized)
    source = entry.source
    for part, executed in executed_code(entry):
        times = executed.times
        doubts = {
            number: _doubt(block, source, executed.turn(number).is_vector) for number, block in part.flow.blocks.items()
        }
        for number, block in part.flow.blocks.items():
            units["guesses"] += times[number] * doubts[number]
            for unit, amount in units_of(block.instructions).items():
                units[unit] += amount * times[number]
        waiting += stalls(part.flow, times, doubts)
    return Work(dict(units), waiting, lanes if entry.is_vector else 1, entry.axis)


@dataclass(frozen=True)
class Entry:
    """Tells where a launch's work-groups begin in machine code.

    Attributes:
        code: all functions of its binary.
        name: of the one.
        source: the kernel as it is executed, its first axis that along which vectors lie.
        axis: which of the work-group's axes that is.
        lanes: work-items of a vector.
        is_vector: whether work-items are done in vectors; those that fill none are done one by one besides.
        meets: whether work-items wait for each other.
    """

    code: Functions
    name: str
    source: Source
    axis: int
    lanes: int
    is_vector: bool
    meets: bool


def entry_of(binaries: Binaries, source: Source, lanes: int, is_vectorized: bool) -> Entry:
    """Returns where the work-groups of a kernel begin in its binaries; arguments and errors as of `work_of`."""
    code = Functions(binaries)
    variant = next(
        (name for name in code if re.fullmatch(rf"{VARIANT}[a-zA-Z0-9]+_{re.escape(source.name)}", name)), None
    )
    axis = vector_axis(code[source.name], lanes) if is_vectorized and source.name in code else 0
    axis = axis if axis < len(source.local_size) else 0
    source = source.along(axis)
    whole = source.local_size[0] >= lanes if variant is None else source.local_size[0] % lanes == 0
    is_vector = is_vectorized and whole
    name = variant if variant is not None and is_vector else source.name
    if not code.get(name):
        raise ValueError(f"the binary holds no kernel {source.name}")
    meets = variant is not None or bool(source.meetings)
    return Entry(code=code, name=name, source=source, axis=axis, lanes=lanes, is_vector=is_vector, meets=meets)


def executed_code(entry: Entry) -> Iterator[tuple[Part, Executed]]:
    """Iterates over a kernel and the functions that it calls, with how often a work-group executes their blocks."""
    code, lanes = entry.code, entry.lanes
    to_do = {entry.name: (1.0, Turn(entry.is_vector, 1.0))}
    while to_do:
        # A function's turn comes when all that call it have had theirs, as they say how often that is.
        name = next(name for name in to_do if not any(name in _called(code, other) for other in to_do))
        once, by_default = to_do.pop(name)
        part = Part(Flow(code[name]), entry.source, name == entry.name, entry.meets)
        turns = turns_of(part, lanes, entry.is_vector) if part.is_kernel else {}
        executed = Executed(part, turns, once, by_default, lanes)
        yield part, executed
        for number, block in part.flow.blocks.items():
            for callee in (each.callee for each in block.instructions):
                if code.get(callee) and name not in _called(code, callee):
                    before = to_do[callee][0] if callee in to_do else 0.0
                    to_do[callee] = before + executed.times[number], Turn(callee.startswith(VARIANT), 1.0)


def _called(code: Functions, name: str) -> set[str]:
    """Returns the functions that one calls, and those that these call, but for those that call each other."""

    def callees(of: str) -> set[str]:
        return {each.callee for each in code[of] if code.get(each.callee)}

    found = reached(callees(name), callees)
    return set() if name in found else found


def _doubt(block: Block, source: Source, is_vector: bool) -> float:
    """Returns how often a core guesses wrongly where the jump at a block's end goes."""
    jump = block.instructions[-1]
    if len(block.following) < 2 or not jump.jumps:
        return 0.0
    return source.doubt(jump.file, jump.line, jump.column, is_vector)
