"""Checks that a launch can happen: it has whole work-groups, none of them empty or larger than any device takes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import KernelError

_Name = TypeVar("_Name", bound=Hashable)

MAX_WORK_GROUP = 2**16
"""Work-items of the largest work-group; the largest that any known device takes has 8,192."""
MAX_WORK_ITEMS = 2**64 - 1
"""Work-items along an axis: OpenCL counts them in a size_t."""


def check_shape(
    kernel: str, global_size: Sequence[Any], local_size: Sequence[Any], sizes: Mapping[str, Any] | None = None
) -> None:
    """Refuses a launch that cannot happen on any device.

    Args:
        global_size, local_size: work-items of the launch and of a work-group along each axis: numbers, or arrays that
            broadcast against each other and the sizes.
        sizes: what these follow from, to say at which of them a launch cannot happen.

    Raises:
        KernelError: for axes that do not go together, and for the first sizes at which the launch is empty, is no whole
            number of work-groups, or has work-groups of more than `MAX_WORK_GROUP` work-items.
    """
    shape = _Shape(kernel, global_size, local_size, sizes or {})
    if not 1 <= len(global_size) <= 3 or len(global_size) != len(local_size):
        shape.refuse(True, "; give 1 to 3 axes, the same for both")
    for axis, (total, group) in enumerate(zip(global_size, local_size, strict=True)):
        shape.refuse_where((total < 1) | (group < 1), f", which is empty along axis {axis}; enlarge it")
        shape.refuse_where(group > MAX_WORK_GROUP, _TOO_LARGE)
        shape.refuse_where(
            _rest(total, group) != 0,
            f", which is no whole number of work-groups along axis {axis}; choose other sizes, or round the global "
            "size up",
        )
        shape.refuse_where(total > MAX_WORK_ITEMS, f", more than {MAX_WORK_ITEMS} along axis {axis}; use smaller sizes")
    shape.refuse_where(math.prod(local_size) > MAX_WORK_GROUP, _TOO_LARGE)


def check_extent(kernel: str, array: str, extent: Any, sizes: Mapping[str, Any]) -> None:
    """Refuses a launch with an array of no element, or with none of its local memory."""
    empty = extent < 1
    if empty is not False and np.any(empty):
        if not sizes:
            raise KernelError(f"array {array!r} of kernel {kernel!r} has no element; give it some")
        at = listed(first_of(empty, sizes))
        raise KernelError(f"array {array!r} of kernel {kernel!r} has no element at {at}; choose other sizes")


_TOO_LARGE = f"; no device takes work-groups of more than {MAX_WORK_GROUP} work-items, so use a smaller local size"


def _rest(total: Any, group: Any) -> Any:
    if isinstance(group, int) and group.bit_count() == 1 and group < 2**63:  # many times as fast over arrays
        return total & (group - 1)
    return total % group


class _Shape:
    """One launch at all of its sizes, as errors describe it."""

    def __init__(
        self, kernel: str, global_size: Sequence[Any], local_size: Sequence[Any], sizes: Mapping[str, Any]
    ) -> None:
        self.kernel, self.sizes = kernel, sizes
        self._axes = [
            (part, axis, size) for part, axes in enumerate((global_size, local_size)) for axis, size in enumerate(axes)
        ]

    def refuse_where(self, wrong: Any, why: str) -> None:
        """Raises KernelError of the first sizes at which something is wrong, if there are any."""
        if wrong is not False and np.any(wrong):
            self.refuse(wrong, why)

    def refuse(self, wrong: Any, why: str) -> NoReturn:
        axes: dict[tuple[int, int] | str, Any] = {(part, axis): size for part, axis, size in self._axes}
        here = first_of(wrong, {**axes, **self.sizes})
        totals, groups = (" × ".join(str(here[key]) for key in axes if key[0] == part) for part in (0, 1))
        at = listed({name: here[name] for name in self.sizes}) if self.sizes else ""
        raise KernelError(
            f"kernel {self.kernel!r} is launched with {totals or 'no'} work-items in groups of {groups or 'none'}"
            f"{' at ' * bool(at)}{at}{why}"
        )


def first_of(wrong: NDArray[np.bool_], sizes: Mapping[_Name, Any]) -> dict[_Name, int]:
    """Returns the first sizes, as arrays have them, at which something is wrong."""
    shape = np.broadcast_shapes(np.shape(wrong), *(np.shape(size) for size in sizes.values()))
    first = int(np.argmax(np.broadcast_to(wrong, shape)))
    return {name: int(np.broadcast_to(size, shape).flat[first]) for name, size in sizes.items()}


def listed(sizes: Mapping[str, int]) -> str:
    """Returns sizes as a message lists them."""
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "no sizes"
