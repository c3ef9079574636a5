"""Boxes are sets whose coordinates each have bounds of their own: their points are a product, which isl need not
count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import islpy as isl

Extent: TypeAlias = "int | Any"
"""A number of values: a whole number, or an isl function of the sizes, which is defined where there are any."""


@dataclass(frozen=True)
class Box:
    """A box has so many points along each coordinate.

    Attributes:
        extents: by coordinate, in their order; those without a name have their number.
        starts: the least value of coordinates; None where sizes decide on it.
        sizes: isl set of the sizes for which there are points; None where these are all that are assumed.
    """

    extents: Mapping[str, Extent]
    starts: Mapping[str, int | None]
    sizes: Any


def box_of(points: Any, assumptions: Any, one_object: Callable[[Any], Any]) -> Box | None:
    """Returns an isl set as a box; None where it is none, or none that is seen at a glance.

    Args:
        assumptions: isl set of what is known of the sizes.
        one_object: makes one object of extents that are equal functions of the sizes.
    """
    parts = points.get_basic_sets()
    if len(parts) != 1 or parts[0].dim(isl.dim_type.div):
        return None
    coordinates, of_sizes = isl.dim_type.set, isl.dim_type.param
    n_axes, n_sizes = points.dim(coordinates), points.dim(of_sizes)
    lows: list[list[int | None]] = [[] for _ in range(n_axes)]
    highs: list[list[int | None]] = [[] for _ in range(n_axes)]
    has_sizes = False
    for constraint in parts[0].get_constraints():
        of_size = n_sizes > 0 and constraint.involves_dims(of_sizes, 0, n_sizes)
        has_sizes = has_sizes or of_size
        axis = next((axis for axis in range(n_axes) if constraint.involves_dims(coordinates, axis, 1)), None)
        if axis is None:
            continue
        if constraint.involves_dims(coordinates, axis + 1, n_axes - axis - 1):
            return None
        by = constraint.get_coefficient_val(coordinates, axis).to_python()
        rest = None if of_size else constraint.get_constant_val().to_python()
        if constraint.is_equality():
            if rest is None or rest % by:
                return None
            lows[axis].append(-rest // by)
            highs[axis].append(-rest // by)
        elif by > 0:
            lows[axis].append(None if rest is None else -(rest // by))
        else:
            highs[axis].append(None if rest is None else rest // -by)
    extents: dict[str, Extent] = {}
    starts: dict[str, int | None] = {}
    for axis, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if not low or not high:
            return None
        name = points.get_dim_name(coordinates, axis) or str(axis)
        least, most = _most(low), _most([None if h is None else -h for h in high])
        starts[name] = least
        if least is None or most is None:
            extents[name] = one_object(points.dim_max(axis) - points.dim_min(axis) + 1)
        elif -most < least:
            return None
        else:
            extents[name] = -most - least + 1
    sizes = points.params() if has_sizes else None
    return Box(extents, starts, None if sizes is None or assumptions.is_subset(sizes) else sizes)


def _most(values: list[int | None]) -> int | None:
    """Returns the largest of several values; None where one is not known."""
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None
