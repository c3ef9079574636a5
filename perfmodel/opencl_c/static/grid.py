"""The launch of a kernel in OpenCL C is described here as functions of its sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import islpy as isl

from perfmodel.basics.errors import CountingError
from perfmodel.counting.domains import Domains
from perfmodel.counting.isl_names import isl_list, isl_name
from perfmodel.counting.symbolic import (
    ZERO,
    Bounds,
    Pieces,
    Polynomial,
    name,
    number,
    own_coordinate,
    plain,
    quotient,
    remainder,
)
from perfmodel.opencl_c.static.iteration_sets import points_where

_Active = TypeVar("_Active")


class Grid:
    """A grid has work-items and work-groups.

    Args:
        kernel: its name, for errors.
        sizes: names of the scalar arguments of integer type.
        global_size: of each axis, as a polynomial of the sizes.
        local_size: of each axis, numbers.
        assumptions: what is known of the sizes beside that they aren't negative, in isl's notation.

    Raises:
        CountingError: for a number of work-groups that is no affine function of the sizes.
    """

    def __init__(
        self,
        kernel: str,
        sizes: Sequence[str],
        global_size: Sequence[Polynomial],
        local_size: Sequence[int],
        assumptions: Sequence[str] = (),
    ) -> None:
        self.sizes, self.local_size, self.assumptions = tuple(sizes), tuple(local_size), tuple(assumptions)
        self.global_size = tuple(global_size)
        self._bounds: dict[str, tuple[int, int | None]] = dict.fromkeys(sizes, (0, None))
        self.groups = [
            quotient(total, number(items), self._bounds) for total, items in zip(global_size, local_size, strict=True)
        ]
        self.work_item: dict[tuple[str, int], Pieces] = {}
        self.dimensions: list[str] = []
        self.axes: dict[str, tuple[str, int]] = {}
        self.conditions: list[str] = []
        for axis, (total, groups, items) in enumerate(zip(global_size, self.groups, local_size, strict=True)):
            if groups.isl() is None:
                raise CountingError(
                    f"the number of work-groups of kernel {kernel!r} along axis {axis}, {groups}, is not affine in the "
                    "sizes; give one of them as a number, by build options or in the launch"
                )
            group = self._coordinate("group", axis, groups)
            item = self._coordinate("local", axis, number(items))
            values = {
                "get_group_id": group,
                "get_local_id": item,
                "get_global_id": group.scaled(items) + item,
                "get_num_groups": groups,
                "get_local_size": number(items),
                "get_enqueued_local_size": number(items),
                "get_global_size": total,
                "get_global_offset": ZERO,
            }
            self.work_item |= {(function, axis): plain(value) for function, value in values.items()}
        self.work_item["get_work_dim", 0] = plain(number(len(local_size)))
        self._linear(local_size)

    def _coordinate(self, kind: str, axis: int, extent: Polynomial) -> Polynomial:
        """Returns a coordinate of the grid as a polynomial; zero where there is only one."""
        if extent.constant == 1:
            return ZERO
        dimension = own_coordinate(f"{kind[0]}{axis}")
        self.dimensions.append(dimension)
        self.axes[dimension] = (kind, axis)
        self.conditions.append(f"0 <= {dimension} < {extent.isl()}")
        self._bounds[dimension] = (0, None if extent.constant is None else extent.constant - 1)
        return name(dimension)

    def _linear(self, local_size: Sequence[int]) -> None:
        linear, before = ZERO, 1
        for axis, items in enumerate(local_size):
            single = self.work_item["get_local_id", axis].single
            assert single is not None
            linear, before = linear + single.scaled(before), before * items
        self.work_item["get_local_linear_id", 0] = plain(linear)
        if len(local_size) == 1:
            self.work_item["get_global_linear_id", 0] = self.work_item["get_global_id", 0]

    def with_subgroups(self, size: int) -> Mapping[tuple[str, int], Pieces]:
        """Returns the values of work-item functions for sub-groups of so many work-items, those that are known."""
        single = self.work_item["get_local_linear_id", 0].single
        assert single is not None
        items = math.prod(self.local_size)
        values = {
            "get_sub_group_id": quotient(single, number(size), self._bounds),
            "get_sub_group_local_id": remainder(single, number(size), self._bounds),
            "get_max_sub_group_size": number(size),
            "get_num_sub_groups": number(-(-items // size)),
            "get_enqueued_num_sub_groups": number(-(-items // size)),
        }
        if items % size == 0:
            values["get_sub_group_size"] = number(size)
        return self.work_item | {(function, 0): plain(value) for function, value in values.items()}

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    def domains(self, subgroup_size: int | None) -> Domains:
        params = isl_list(sorted(self.sizes))
        known = [f"{isl_name(size)} >= 0" for size in self.sizes]
        # A launch has at least one work-group, and no part of one.
        known += [f"{groups.isl()} >= 1" for groups in self.groups if groups.constant is None]
        for total, items in zip(self.global_size, self.local_size, strict=True):
            if total.constant is None and (text := total.isl()) is not None:
                known.append(f"({text}) mod {items} = 0")
        assumptions = isl.Set(f"[{params}] -> {{ : {' and '.join([*known, *self.assumptions]) or 'true'} }}")
        counts = [self._function(params, groups) for groups in self.groups]
        return Domains(self.sizes, assumptions, counts, self.local_size, self.axes, {}, subgroup_size)

    def _function(self, params: str, value: Polynomial) -> Any:
        constant = value.constant
        return isl.PwAff(f"[{params}] -> {{ [({value.isl()})] }}") if constant is None else constant

    def everywhere(self, make: Callable[[Any, tuple[str, ...]], _Active], domains: Domains) -> _Active:
        """Returns all work-items of the launch."""
        points = points_where(" and ".join(self.conditions) or "true", self.dimensions, domains)
        return make(points.intersect_params(domains.assumptions), tuple(self.dimensions))
