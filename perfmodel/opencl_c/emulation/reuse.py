"""Emulations of one kernel in groups of one size have something in common, which is kept between them here.

That is which lanes go together, the patterns of addresses with what they cost, and what is set up for a batch before
its memory: none of it depends on which groups run, nor on what memory holds. Small kernels spend most of their time on
it the first time that they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from perfmodel.opencl_c import lowered as low

_MOST = 8
"""One kernel's launches are kept in so many shapes."""
_MOST_ADDED_UP = 64
_MOST_PARTS = 4096
"""Numbers that were added up are remembered for so many sets, of at most so many parts."""

_Result = TypeVar("_Result")


class Kept(Protocol):
    """This is what is kept, once it refers neither to memory nor to its kernel; large ones are not."""

    @property
    def is_small(self) -> bool: ...


_Kept = TypeVar("_Kept", bound=Kept)


class Shelf(Generic[_Kept]):
    """A shelf holds what is kept of each kernel as long as the kernel lives, by the shape of launches."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[low.LoweredKernel, dict[Hashable, _Kept]] = WeakKeyDictionary()

    def taken(self, kernel: low.LoweredKernel, key: Hashable) -> _Kept | None:
        """Returns what an earlier batch left, for the one that asks alone."""
        return self._kept.get(kernel, {}).pop(key, None)

    def keep(self, kernel: low.LoweredKernel, key: Hashable, kept: _Kept) -> None:
        if not kept.is_small:
            return
        shapes = self._kept.setdefault(kernel, {})
        while len(shapes) >= _MOST:
            del shapes[next(iter(shapes))]
        shapes[key] = kept


class AddedUp(Generic[_Result]):
    """Remembers what follows from sets of counts."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Result] = {}

    def once(self, key: tuple[Any, ...] | None, work: Callable[[], _Result]) -> _Result:
        """Returns what follows from a key, worked out once where there is one."""
        if key is None or sum(map(len, key)) > _MOST_PARTS:
            return work()
        if key not in self._known:
            if len(self._known) >= _MOST_ADDED_UP:
                self._known.clear()
            self._known[key] = work()
        return self._known[key]
