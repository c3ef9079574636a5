"""Some compilers move sums to the conditions under which they are stored, and keep all that these add up in registers.

LLVM "sinks" what only one branch needs into that branch. Where loops are written out and several results are stored,
each under a condition, every load of theirs still stands before the first branch, and its value lives until the last
one: hundreds of words, which spill. Its full unrolling ends at so many instructions of straight code
(``-unroll-threshold`` of loops with a pragma: 16 * 1024), beyond which sums go around a loop and stay where they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.static.liveness import words_of
from perfmodel.opencl_c.types import element_of, is_float
from perfmodel.opencl_c.visitor import walk

FEWEST_RESULTS = 2
"""One result's sum is moved with all that it loads, and nothing waits."""
LOADING = 2
"""Instructions of a load: its address and itself."""


@dataclass(frozen=True)
class MovedSums:
    """Tells what a work-item keeps where sums are moved.

    Attributes:
        words: loaded before the first condition and needed behind it; 0 where no sums can be moved.
        steps: instructions of the straight code, before repeated loads are joined.
    """

    words: int = 0
    steps: int = 0


@dataclass(frozen=True)
class _Placed:
    """A statement, the loops around it, and the branches that it is in."""

    statement: low.Simple
    loops: tuple[str, ...]
    branches: tuple[int, ...]


def moved_sums(kernel: low.LoweredKernel, written_out: Mapping[str, int]) -> MovedSums:
    """Returns what a work-item of a kernel keeps, if a compiler moves its sums.

    Args:
        written_out: the loops that a compiler writes out as a whole, by name, each with its iterations.
    """
    straight = [
        (each, prod(written_out[name] for name in each.loops))
        for each in _placed(kernel.body)
        if all(name in written_out for name in each.loops)
    ]
    results = [
        (each, copies)
        for each, copies in straight
        if each.branches and isinstance(each.statement, low.Store) and each.statement.access.space == "global"
    ]
    if sum(copies for _, copies in results) < FEWEST_RESULTS:
        return MovedSums()
    inside = {each.branches[-1] for each, _ in results}
    before = [(each, copies) for each, copies in straight if not inside.intersection(each.branches)]
    needed = _loads_behind(kernel, [each.statement for each, _ in results])
    words = sum(
        copies * words_of(node.access.type)
        for each, copies in before
        for node in walks.accesses_of(each.statement)
        if node in needed
    )
    return MovedSums(words, _steps(before)) if words else MovedSums()


def _placed(
    body: Sequence[low.Statement], loops: tuple[str, ...] = (), branches: tuple[int, ...] = ()
) -> Iterator[_Placed]:
    for statement in body:
        match statement:
            case low.Straight():
                yield from (_Placed(each, loops, branches) for each in statement.statements)
            case low.If():
                yield from _placed((*statement.then, *statement.otherwise), loops, (*branches, id(statement)))
            case low.Scope():
                yield from _placed(statement.body, loops, branches)
            case low.Loop():
                yield from _placed(statement.body, (*loops, statement.name), branches)


def _loads_behind(kernel: low.LoweredKernel, stores: Sequence[low.Simple]) -> set[low.Expression]:
    """Returns the loads from global and local memory that stored values follow from, by registers and private
    arrays."""
    origins, own = Origins(kernel.body), defaultdict(list)
    for statement in walks.simple_statements(kernel.body):
        if isinstance(statement, low.Store) and statement.access.space == "private":
            own[statement.access.variable].append(statement.value)
    found: set[low.Expression] = set()
    seen: set[str | None] = set()
    waiting = [each.value for each in stores if isinstance(each, low.Store)]
    while waiting:
        values, waiting = waiting, []
        for origin in origins.behind(values):
            if not isinstance(origin, low.Load):
                continue
            variable = origin.access.variable
            if origin.access.space in ("global", "local"):
                found.add(origin)
            elif origin.access.space == "private" and variable not in seen:
                seen.add(variable)
                waiting += own[variable]
    return found


def _steps(straight: Sequence[tuple[_Placed, int]]) -> int:
    """Returns the instructions of straight code: operations on floats, accesses, and what is loaded for each of its
    uses."""
    loaded = {
        each.statement.register
        for each, _ in straight
        if isinstance(each.statement, low.Assign) and isinstance(each.statement.value, low.Load)
    }
    return sum(copies * _instructions(each.statement, loaded) for each, copies in straight if each.loops)


def _instructions(statement: low.Simple, loaded: set[low.Register]) -> int:
    if isinstance(statement, low.Assign) and statement.register in loaded:
        return 0
    found = sum(LOADING if node.access.space in ("global", "local") else 1 for node in walks.accesses_of(statement))
    for part in (part for expression in walks.expressions_of(statement) for part in walk(expression)):
        if isinstance(part, low.Read):
            found += LOADING * (part.register in loaded)
        elif isinstance(part, low.Binary | low.Call) and is_float(part.type):
            found += element_of(part.type) == part.type
    return found
