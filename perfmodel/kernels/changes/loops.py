"""Says of a Loopy program's loops which may run side by side, how long they are, and what their work-items share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from loopy.kernel.data import GroupInameTag, IlpBaseTag, LocalInameTag, UnrollTag
from loopy.symbolic import WalkMapper, get_dependencies
from pymbolic.primitives import Variable

MOST_FETCHED = 64
"""Iterations of a loop, at most, whose data are fetched to local memory together."""


class Loops:
    """The loops of one Loopy kernel, by the names of their variables (inames)."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    @cached_property
    def is_parallel(self) -> bool:
        """True if any loop is shared out among work-items or work-groups."""
        return any(self._kind(loop) in ("group", "local") for loop in self._kernel.all_inames())

    def independent(self) -> list[str]:
        """Returns loops whose iterations write different places and read nothing that others write, the one along which
        memory is contiguous first."""
        found: list[str] | None = None
        for array, subscript in self._writes:
            names = [self._loop(index) for index in reversed(subscript)]
            fits = [name for name in names if name and not self._kind(name) and name not in self._reduced]
            others = [each for each in self._reads.get(array, []) if len(each) == len(subscript)]
            fits = [
                name
                for name in fits
                if all(each[subscript.index(self._variable(name))] == self._variable(name) for each in others)
            ]
            found = fits if found is None else [name for name in found if name in fits]
        return list(dict.fromkeys(found or []))

    def sequential(self) -> list[str]:
        """Returns loops that each work-item goes through by itself."""
        return [loop for loop in sorted(self._used) if not self._kind(loop)]

    def length(self, loop: str) -> int | None:
        """Returns the iterations of a loop; None where they depend on sizes."""
        try:
            return int(self._kernel.get_constant_iname_length(loop))
        except Exception:  # Loopy has no one error for a length that is no number
            return None

    def read_only(self) -> list[str]:
        """Returns the arrays in global memory that are read and not written."""
        written = {array for array, _ in self._writes}
        return sorted(array for array in self._reads if array not in written)

    def is_shared(self, array: str, loop: str = "") -> bool:
        """Returns True if work-items of a group read the same elements of an array, each of them in the given loop."""
        subscripts = self._reads[array]
        names = [self._names(subscript) for subscript in subscripts]
        if loop and not all(loop in each for each in names):
            return False
        local = [each for each in self._used if self._kind(each) == "local"]
        lacks_one = any(not set(local) <= each for each in names)
        return bool(local) and (lacks_one or (not loop and len(set(subscripts)) > 1))

    def swept(self, array: str, loop: str = "") -> list[str]:
        """Returns the loops along which an array is fetched for a work-group: those within one, and the given loop."""
        names = set().union(*(self._names(subscript) for subscript in self._reads[array]))
        within = {each for each in names if self._kind(each) in ("local", "unrolled")}
        if not loop:
            within |= {each for each in names if not self._kind(each) and self.length(each) is not None}
        return sorted(within | ({loop} & names))

    def outside(self, array: str, loop: str = "") -> list[str]:
        """Returns the loops around the fetching of an array."""
        swept = {*self.swept(array, loop)} - {loop}
        around = {each for each in self._used_with(array) if self._kind(each) not in ("local", "unrolled")}
        return sorted(around - swept)

    def left(self, array: str) -> list[str]:
        """Returns the loops of each work-item along which an array is read, and that are not split into short ones."""
        names = set().union(*(self._names(subscript) for subscript in self._reads[array]))
        split = {each for each in names if each.endswith("_outer") and f"{each[:-6]}_inner" in names}
        return sorted(each for each in names - split if not self._kind(each))

    def are_short(self, loops: Iterable[str]) -> bool:
        """Returns True if what is fetched along these loops is known to be little."""
        lengths = [self.length(loop) for loop in loops]
        return all(length is not None and length <= MOST_FETCHED for length in lengths)

    # --- what the program says

    def _kind(self, loop: str) -> str:
        """Returns what a loop's tag makes of it: group, local, unrolled, another, or empty for a loop as it is."""
        kinds = ((GroupInameTag, "group"), (LocalInameTag, "local"), ((IlpBaseTag, UnrollTag), "unrolled"))
        for tag in self._kernel.inames[loop].tags:
            return next((kind for types, kind in kinds if isinstance(tag, types)), "another")
        return ""

    @cached_property
    def _used(self) -> set[str]:
        return set().union(*(self._around(instruction) for instruction in self._kernel.instructions))

    @cached_property
    def _reduced(self) -> set[str]:
        return set().union(*(instruction.reduction_inames() for instruction in self._kernel.instructions))

    @staticmethod
    def _around(instruction: Any) -> set[str]:
        return {*instruction.within_inames, *instruction.reduction_inames()}

    def _used_with(self, array: str) -> set[str]:
        reads = [each for each in self._kernel.instructions if array in each.read_dependency_names()]
        return set().union(*(self._around(each) for each in reads))

    @cached_property
    def _writes(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Returns each write to an array in global memory, with its indices."""
        found = []
        for instruction in self._kernel.instructions:
            for assignee in getattr(instruction, "assignees", ()):
                found += [(name, indices) for name, indices in _subscripts(assignee) if name in self._kernel.arg_dict]
        return found

    @cached_property
    def _reads(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """Returns the indices with which each array in global memory is read."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        for instruction in self._kernel.instructions:
            expression = getattr(instruction, "expression", None)
            for name, indices in _subscripts(expression) if expression is not None else ():
                if name in self._kernel.arg_dict:
                    found.setdefault(name, []).append(indices)
        return found

    def _names(self, indices: tuple[Any, ...]) -> frozenset[str]:
        """Returns the loops that some indices depend on."""
        found: set[str] = set().union(*(get_dependencies(index) for index in indices))
        return frozenset(found & self._kernel.all_inames())

    def _loop(self, index: Any) -> str:
        """Returns the loop whose variable an index is; empty for any other index."""
        name = getattr(index, "name", "")
        return name if name in self._kernel.all_inames() and index == self._variable(name) else ""

    @staticmethod
    def _variable(name: str) -> Any:
        return Variable(name)


def _subscripts(expression: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yields the arrays that an expression names with indices, and the indices."""
    found: list[tuple[str, tuple[Any, ...]]] = []

    class Finder(WalkMapper):  # type: ignore[misc]
        """Notes each array with its indices."""

        def map_subscript(self, subscript: Any) -> None:
            found.append((subscript.aggregate.name, subscript.index_tuple))
            super().map_subscript(subscript)

    Finder()(expression)
    yield from found
