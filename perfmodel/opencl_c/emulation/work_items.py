"""The values of ``get_global_id`` and its like are made here for a batch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c.emulation.lanes import Integers, Layout, Values

Size3 = tuple[int, int, int]
_AT_ONCE = 8
"""The values of so many batches are remembered."""


class WorkItems:
    """Holds the values of a batch; `subgroup_size` is that of the sub-groups that the kernel itself asks about."""

    def __init__(self, layout: Layout, global_size: Size3, offset: Size3, dimensions: int, subgroup_size: int) -> None:
        self.layout, self.global_size, self.offset, self.dimensions = layout, global_size, offset, dimensions
        self.subgroup_size = subgroup_size
        self._known: dict[tuple[str, int | None], Values] = {}

    def value(self, function: str, axis: Any) -> Values:
        """Returns the value of all lanes; the axis may be a value of the kernel itself."""
        if axis is not None and isinstance(axis, np.ndarray):
            if (axis != axis[0]).any():
                raise EmulationError(f"{function} is asked for different axes by different work-items")
            axis = axis[0]
        key = function, None if axis is None else int(axis)
        if key not in self._known:
            value = self._value(*key)
            # What is the same everywhere stays one number, which is quicker.
            dtype = np.uint32 if function == "get_work_dim" or "sub_group" in function else np.uint64
            if isinstance(value, np.ndarray):
                value = value[0] if (value == value[0]).all() else value.astype(dtype)
            self._known[key] = value if isinstance(value, np.ndarray) else dtype(value)
        return self._known[key]

    def _value(self, function: str, axis: int | None) -> int | Integers:
        sizes, local, ids = self.global_size, self.layout.local_of, self.layout.local_along
        group = self.layout.group_along
        if function == "get_work_dim":
            return self.dimensions
        if function == "get_local_linear_id":
            return local
        if axis is None and "sub_group" in function:
            return self._of_subgroups(function)
        if function == "get_global_linear_id":
            along = [group(a) * self.layout.local_size[a] + ids[a] for a in range(3)]
            result: Integers = (along[2] * sizes[1] + along[1]) * sizes[0] + along[0]
            return result
        if axis is None:
            raise EmulationError(f"the emulation has no work-item function {function!r}")
        inside = 0 <= axis < 3
        size = self.layout.local_size[axis] if inside else 1
        match function:
            case "get_local_id":
                return ids[axis] if inside else 0
            case "get_local_size" | "get_enqueued_local_size":
                return size
            case "get_group_id":
                return group(axis) if inside else 0
            case "get_global_id":
                return group(axis) * size + ids[axis] + self.offset[axis] if inside else 0
            case "get_global_size":
                return sizes[axis] if inside else 1
            case "get_num_groups":
                return sizes[axis] // size if inside else 1
            case "get_global_offset":
                return self.offset[axis] if inside else 0
        raise EmulationError(f"the emulation has no work-item function {function!r}")

    def _of_subgroups(self, function: str) -> int | Integers:
        layout, size = self.layout, self.subgroup_size
        own = layout.local_of // size
        match function:
            case "get_sub_group_id":
                return own
            case "get_sub_group_local_id":
                return layout.local_of % size
            case "get_sub_group_size":
                return np.minimum(size, layout.items - own * size)
            case "get_max_sub_group_size":
                return size
        return -(-layout.items // size)


@lru_cache(_AT_ONCE)
def work_items(place: tuple[Size3, Size3, tuple[int, ...], int], launch: tuple[Size3, Size3, int, int]) -> WorkItems:
    """Returns the values of a batch at a place (see `Layout`) in a launch (see `WorkItems`)."""
    local, groups, numbers, subgroup_size = place
    return WorkItems(Layout(local, groups, np.array(numbers, np.int64), subgroup_size), *launch)
