"""Changes Loopy programs by Loopy's own transformations: work-groups, several results of a work-item, tiles in local
memory, and unrolled loops."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.changes import Changed
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.loopy_program import LoopyProgram

if TYPE_CHECKING:
    from perfmodel.kernels.changes.loops import Loops

ROWS = (64, 128, 256)
"""Work-items of a work-group with one axis."""
GROUPS = ((16, 16), (32, 8), (32, 4), (8, 8))
"""Work-items of a work-group with two axes, the one along which memory is contiguous first."""
RESULTS = (2, 4)
"""Results of a work-item, one after the other along one axis."""
TILES = (16, 32)
"""Iterations of a loop whose data are fetched to local memory together."""
UNROLLED = (4, 8)
MULTIPLE = 64
"""Sizes are taken to be multiples of this at most, where they are."""
MOST_UNROLLED = 16
"""A loop of so many iterations at most is unrolled as a whole."""


@dataclass(frozen=True)
class Call:
    """A call of one of Loopy's functions on a program; its text is the line that does it."""

    function: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, program: Any) -> Any:
        import loopy as lp  # slow to import

        return getattr(lp, self.function)(program, *self.arguments, **self.options)

    def __str__(self) -> str:
        shown = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.options.items())]
        return f"program = lp.{self.function}(program, {', '.join(shown)})"


Way = tuple[str, str, list[Call]]
"""The part that is changed, in words how, and the calls that do it."""


def transformed(kernel: Kernel, program: LoopyProgram) -> Iterator[Changed]:
    """Yields kernels of the transformed program at the same sizes; Loopy has not yet written code for them.

    A program without work-groups gets these first; one that has them is changed within.
    """
    from perfmodel.counting.loopy.counts import muted  # these bring Loopy, which is slow to import
    from perfmodel.kernels.changes.loops import Loops

    loops = Loops(program.translation_unit.default_entrypoint)
    if loops.is_parallel:
        ways = _within(loops)
    else:
        known, condition = _multiples(kernel.sizes)
        ways = ((what, f"{words}{condition}", [*known, *calls]) for what, words, calls in _parallel(loops))
    for what, words, calls in ways:
        unit = program.translation_unit
        try:
            with warnings.catch_warnings(), muted():
                warnings.simplefilter("ignore")
                for call in calls:
                    unit = call(unit)
            made = Kernel(LoopyProgram(unit, program.statistics, program.budget), kernel.tags, None, **kernel.bound)
        except PerfmodelError:
            continue
        except Exception:  # Loopy raises anything, from its own errors to KeyError, where it cannot do a thing
            continue
        yield Changed(made, what, words, tuple(map(str, calls)))


def _multiples(sizes: Mapping[str, int]) -> tuple[list[Call], str]:
    """Returns the call that lets a program count on sizes being multiples of a power of two, as they are, and words."""
    known = {name: min(value & -value, MULTIPLE) for name, value in sizes.items() if value > 0}
    known = {name: multiple for name, multiple in known.items() if multiple >= min(ROWS[0], GROUPS[0][0])}
    if not known:
        return [], ""
    condition = " and ".join(f"{name} mod {multiple} = 0" for name, multiple in known.items())
    words = " and ".join(f"{name} a multiple of {multiple}" for name, multiple in known.items())
    return [Call("assume", (condition,))], f" ({words})"


def _parallel(loops: Loops) -> Iterator[Way]:
    """Yields ways to share loops out among work-items."""
    axes = loops.independent()
    if not axes:
        return
    if len(axes) == 1:
        for items in ROWS:
            yield "work-groups", f"work-groups of {items} along {axes[0]}", [_split(axes[0], items, 0)]
        for results, items in itertools.product(RESULTS, ROWS[:2]):
            words = f"work-groups of {items} along {axes[0]}, {results} results each"
            yield "work-groups", words, _split_with_results(axes[0], items, results, 0)
        return
    outer = [Call("tag_inames", ({name: f"g.{axis}"},)) for axis, name in enumerate(axes[2:3], 2)]
    for first, second in GROUPS:
        words = f"work-groups of {first} × {second} along {axes[0]} and {axes[1]}"
        yield "work-groups", words, [_split(axes[0], first, 0), _split(axes[1], second, 1), *outer]
    for results in RESULTS:
        first, second = GROUPS[0]
        words = f"work-groups of {first} × {second} along {axes[0]} and {axes[1]}, {results} results each"
        calls = [_split(axes[0], first, 0), *_split_with_results(axes[1], second, results, 1), *outer]
        yield "work-groups", words, calls
    rows = Call("tag_inames", ({axes[1]: "g.1"},))
    yield "work-groups", f"work-groups of 128 along {axes[0]}", [_split(axes[0], 128, 0), rows, *outer]
    first, second = GROUPS[0]
    words = f"work-groups of {first} × {second} along {axes[1]} and {axes[0]}"
    yield "work-groups", words, [_split(axes[1], first, 0), _split(axes[0], second, 1), *outer]


def _split(loop: str, items: int, axis: int) -> Call:
    return Call("split_iname", (loop, items), {"outer_tag": f"g.{axis}", "inner_tag": f"l.{axis}"})


def _split_with_results(loop: str, items: int, results: int, axis: int) -> list[Call]:
    return [
        Call("split_iname", (loop, items * results), {"outer_tag": f"g.{axis}"}),
        Call("split_iname", (f"{loop}_inner", items), {"outer_tag": "ilp", "inner_tag": f"l.{axis}"}),
    ]


def _within(loops: Loops) -> Iterator[Way]:
    """Yields ways to change a program that has work-groups: tiles in local memory, unrolled loops."""
    yield from _tiled(loops)
    yield from _fetched(loops)
    for loop in loops.sequential():
        length = loops.length(loop)
        if length is not None and 1 < length <= MOST_UNROLLED:
            yield loop, f"{loop} unrolled", [Call("tag_inames", ({loop: "unr"},))]
        elif not loop.endswith("_outer"):  # which is what is left of a loop that was split before
            for count in UNROLLED:
                words = f"{loop} unrolled {count} times"
                yield loop, words, [Call("split_iname", (loop, count), {"inner_tag": "unr"})]


def _tiled(loops: Loops) -> Iterator[Way]:
    """Yields ways to fetch what work-items share to local memory, some iterations of a loop at a time."""
    for loop in loops.sequential():
        length = loops.length(loop)
        shared = [array for array in loops.read_only() if loops.is_shared(array, loop)]
        if not shared or (length is not None and length <= min(TILES)) or loop.endswith("_outer"):
            continue
        for count in TILES:
            calls = [Call("split_iname", (loop, count))]
            for array in shared:
                sweep = [f"{loop}_inner" if each == loop else each for each in loops.swept(array, loop)]
                outside = [f"{loop}_outer" if each == loop else each for each in loops.outside(array, loop)]
                calls.append(_prefetch(array, sweep, outside))
            words = f"{' and '.join(shared)} through local memory, {count} iterations of {loop} at a time"
            yield f"{loop} and local memory", words, calls


def _fetched(loops: Loops) -> Iterator[Way]:
    """Yields ways to fetch what neighbouring work-items share to local memory, all of it at once."""
    for array in loops.read_only():
        sweep = loops.swept(array)
        if sweep and loops.is_shared(array) and loops.are_short([*sweep, *loops.left(array)]):
            call = _prefetch(array, sweep, loops.outside(array), bounding_box=True)
            yield array, f"{array} through local memory", [call]


def _prefetch(array: str, sweep: Sequence[str], outside: Iterable[str], bounding_box: bool = False) -> Call:
    options: dict[str, Any] = {"fetch_outer_inames": ",".join(outside), "default_tag": "l.auto"}
    if bounding_box:
        options["fetch_bounding_box"] = True
    return Call("add_prefetch", (array, list(sweep)), options)
