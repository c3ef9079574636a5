"""The last coordinate of these isl sets counts the iterations of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import islpy as isl

from perfmodel.counting.domains import Domains
from perfmodel.counting.isl_names import isl_list


def points_where(condition: str, names: Sequence[str | None], domains: Domains) -> Any:
    """Returns the points of these coordinates at which a condition holds.

    Raises:
        isl.Error: the condition has a name that is none of them, nor a size.
    """
    sizes, coordinates = isl_list(sorted(domains.sizes)), ", ".join(map(str, names))
    text = f"[{sizes}] -> {{ [{coordinates}] : {condition} }}"
    return domains.remembered(text, lambda: isl.Set(text))


def with_counter(points: Any, own: str) -> Any:
    """Returns the same points for every iteration from 0 on."""
    points = points.add_dims(isl.dim_type.set, 1)
    last = points.dim(isl.dim_type.set) - 1
    points = points.set_dim_name(isl.dim_type.set, last, own)
    return points.lower_bound_val(isl.dim_type.set, last, isl.Val.int_from_si(isl.DEFAULT_CONTEXT, 0))


def moved(points: Any, own: str, by: int, domains: Domains) -> Any:
    """Returns points with the last coordinate moved."""
    return points.apply(_on_last(points, f"__0to = {own} + {by}", domains))


def later(points: Any, own: str, domains: Domains) -> Any:
    """Returns all points with a larger last coordinate than one of these."""
    return points.apply(_on_last(points, f"__0to > {own}", domains))


def _on_last(points: Any, relation: str, domains: Domains) -> Any:
    names = [points.get_dim_name(isl.dim_type.set, axis) for axis in range(points.dim(isl.dim_type.set))]
    sizes = isl_list(points.get_var_names(isl.dim_type.param))
    moved = [*names[:-1], "__0to"]
    text = f"[{sizes}] -> {{ [{', '.join(names)}] -> [{', '.join(moved)}] : {relation} }}"

    def made() -> Any:
        found = isl.Map(text)
        for axis, dimension in enumerate(names):
            found = found.set_dim_name(isl.dim_type.out, axis, dimension)
        return found

    return domains.remembered(text, made)


def constant_maximum(points: Any, own: str) -> int | None:
    last = points.dim(isl.dim_type.set) - 1
    try:
        value = points.dim_max_val(last)
    except isl.Error:
        return None
    return int(str(value)) if value.is_int() else None
