"""The elements that an access touches are found here: a lattice where strides say it, or else isl sets of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import islpy as isl

from perfmodel.counting.domains import Domains, Region
from perfmodel.counting.footprints import ByGroup, Line, Touched, TouchedSets, addresses
from perfmodel.counting.isl_names import isl_list
from perfmodel.counting.lattices import Lattice, lattice
from perfmodel.counting.symbolic import EVERYWHERE, ZERO, Monomial, Polynomial, own_coordinate
from perfmodel.opencl_c.static.flattened_indices import by_weight, divided, is_scattered
from perfmodel.opencl_c.static.iteration_sets import points_where
from perfmodel.opencl_c.static.values import PointsTo


class TouchedElements:
    """Finds the elements that accesses touch, each by its coordinates along an array's axes.

    A flattened index ``i * n + j`` has one axis for each product of sizes in it, its weight; that ``j`` stays below
    ``n`` is taken for granted.
    """

    def __init__(self, domains: Domains) -> None:
        self.domains = domains

    def touched(
        self, direction: str, place: PointsTo, region: Region, item: int, unit: int, weights: list[Monomial], gap: int
    ) -> Touched:
        """Returns what an access touches of an array, and how its neighbours lie.

        Args:
            item, unit: bytes of the array's elements, and of what is accessed at once.
            weights: the products of sizes that an index is a sum of multiples of.
            gap: from one touched element to the next; 0 for one element.
        """
        line = Line(weights.index(()), (gap or 1) if len(weights) == 1 else (gap or None))
        line = replace(line, step=self._step(place, region, item, unit) if len(weights) == 1 else None)
        make = partial(self._sets, place, region, item, unit, weights)
        found = self.lattice(place, region, item, unit, weights)
        if found is not None:
            return Touched(direction, line, make, found)
        sets = make()
        return Touched(direction, None if sets.elements is None else line, lambda: sets)

    def _sets(self, place: PointsTo, region: Region, item: int, unit: int, weights: list[Monomial]) -> TouchedSets:
        elements = self.elements(place, region, item, unit, weights)
        along = addresses(elements, [1]) if elements is not None and len(weights) == 1 else elements
        return TouchedSets(elements, along, self.by_group(place, region, item, unit, weights))

    def lattice(self, place: PointsTo, region: Region, item: int, unit: int, weights: list[Monomial]) -> Lattice | None:
        """Returns what an access touches as a sum of steps; None where it is none."""
        single = place.offset.single if place.offset.pieces[0][0] == EVERYWHERE else None
        index = None if single is None else divided(single, item)
        box = None if index is None else self.domains.box(region.points)
        if index is None or box is None or is_scattered(index):
            return None
        along = by_weight(index, weights)
        axes = [along.get(weight, ZERO) for weight in weights]
        groups = self.domains.along("group", region.inames)
        return lattice(axes, max(unit // item, 1), box, groups, self.domains.unused("group", region.inames))

    def elements(self, place: PointsTo, region: Region, item: int, unit: int, weights: list[Monomial]) -> Any:
        """Returns the isl set of elements touched; None where it is none."""
        return self._image(place, region, item, unit, weights, ())

    def by_group(
        self, place: PointsTo, region: Region, item: int, unit: int, weights: list[Monomial]
    ) -> ByGroup | None:
        """Returns the pairs of a work-group and an element that it touches; None where they are no set."""
        axes = {axis: name for name, axis in self.domains.along("group", region.inames).items()}
        pairs = self._image(place, region, item, unit, weights, [axes[axis] for axis in sorted(axes)])
        if pairs is None:
            return None
        return ByGroup(pairs, tuple(self.domains.unused("group", region.inames)), frozenset(axes))

    def _image(
        self,
        place: PointsTo,
        region: Region,
        item: int,
        unit: int,
        weights: list[Monomial],
        before: Sequence[str],
    ) -> Any:
        names = [region.points.get_dim_name(isl.dim_type.set, d) for d in range(region.points.dim(isl.dim_type.set))]
        sizes = isl_list(sorted(self.domains.sizes))
        union = None
        parts = max(unit // item, 1)
        for condition, piece in place.offset.pieces:
            index = divided(piece, item)
            if index is None or is_scattered(index):
                return None
            along = self._coordinates(index, weights, region, names)
            coordinates = []
            for weight in weights:
                text = along.get(weight, ZERO).isl()
                if text is None:
                    return None
                coordinates.append(text)
            conditions = [f"({condition})"]
            if parts > 1:  # a vector touches several elements, one after the other
                coordinates[-1] = f"{coordinates[-1]} + part'"  # a name that no variable has
                conditions.append(f"0 <= part' < {parts}")
            coordinates = [*before, *coordinates]
            to = [own_coordinate(f"to{axis}") for axis in range(len(coordinates))]
            conditions += [f"{new} = {text}" for new, text in zip(to, coordinates, strict=True)]
            relation = " and ".join(conditions)
            if parts > 1:
                relation = f"exists (part' : {relation})"
            try:
                image = isl.Map(f"[{sizes}] -> {{ [{', '.join(names)}] -> [{', '.join(to)}] : {relation} }}")
            except isl.Error:  # a name that is no coordinate of the region: a loop whose iterations are a statistic
                return None
            touched = region.points.apply(image.align_params(region.points.space))
            union = touched if union is None else union | touched
        return None if union is None else union.coalesce()

    def _coordinates(
        self, index: Polynomial, weights: list[Monomial], region: Region, names: Sequence[str | None]
    ) -> dict[Monomial, Polynomial]:
        """Returns a flattened index by its products of sizes.

        ``i * n + n + j`` is place j of row i + 1, but ``i * n + n - 1 - j`` is a place of row i, counted from its end.
        """
        rows = by_weight(index, weights)
        columns = by_weight(index, weights, has_rows=False)
        if rows == columns or not self._may_be_negative(rows.get((), ZERO), region, names):
            return rows
        return rows if self._may_be_negative(columns.get((), ZERO), region, names) else columns

    def _may_be_negative(self, value: Polynomial, region: Region, names: Sequence[str | None]) -> bool:
        text = value.isl()
        if text is None:
            return True
        try:
            below = points_where(f"{text} < 0", names, self.domains)
        except isl.Error:
            return True
        return not (region.points & below).is_empty()

    def _step(self, place: PointsTo, region: Region, item: int, unit: int) -> int | None:
        """Returns the shortest way from one element that an access touches to the next; None where it is no number."""
        points, kind = region.points, isl.dim_type.set
        axes = [axis for axis in range(points.dim(kind)) if not points.plain_get_val_if_fixed(kind, axis).is_int()]
        moving = [points.get_dim_name(kind, axis) for axis in axes]
        found = []
        for _, piece in place.offset.pieces:
            steps = [None if step is None else step.constant for step in map(piece.coefficient, moving)]
            if None in steps:
                return None
            found += [min(abs(step) for step in steps if step)] if any(steps) else []
        step = max(found, default=unit)
        return 1 if step <= unit else step // item
