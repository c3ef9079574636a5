"""Memory accesses of a Loopy kernel's instructions: how often, with which strides, and what they touch together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import islpy as isl
import loopy as lp
from loopy.diagnostic import LoopyError, UnableToDetermineAccessRangeError
from loopy.kernel.array import VectorArrayDimTag
from loopy.kernel.data import (
    AddressSpace,
    IlpBaseTag,
    UnrollTag,
    VectorizeTag,
)
from loopy.symbolic import CoefficientCollector, LinearSubscript, get_access_map, get_dependencies, simplify_using_aff
from pymbolic import flatten, var

from perfmodel.counting.access_classes import access_class
from perfmodel.counting.budget import unless_too_hard
from perfmodel.counting.counts import AccessCount, Footprint, Stride
from perfmodel.counting.domains import Region
from perfmodel.counting.footprints import MOST_WORK, ByGroup, Footprints, Line, Touched, TouchedSets, addresses
from perfmodel.counting.frequency import ALWAYS
from perfmodel.counting.loopy.domains import LoopyDomains
from perfmodel.counting.loopy.expressions import access_tags, index_of, subscripts, variable_of
from perfmodel.counting.points import ELEMENTS
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.counting.strides import polynomial, symbolic
from perfmodel.counting.symbolic import ZERO, Pieces, Polynomial, plain

SPACES = {AddressSpace.GLOBAL: "global", AddressSpace.LOCAL: "local", AddressSpace.PRIVATE: "private"}


class Accesses:
    """Collects the accesses of all instructions of one kernel."""

    def __init__(self, kernel: Any, domains: LoopyDomains) -> None:
        self.kernel = kernel
        self.domains = domains
        self.touched = Footprints(domains)
        self._coefficients: dict[tuple[Any, str], Any] = {}
        self._linear_indices: dict[Any, Mapping[str, int] | None] = {}

    def of(self, instruction: Any, region: Region, loops: tuple[str, ...]) -> list[AccessCount]:
        """Returns the accesses of an instruction; sizes and loop variables are no accesses."""
        stores = list(instruction.assignees)
        loads = subscripts(instruction.expression)
        loads += [load for store in stores for index in index_of(store) for load in subscripts(index)]
        return [
            *self._all(loads, "load", region, loops, instruction.id),
            *self._all(stores, "store", region, loops, instruction.id),
        ]

    def of_predicate(
        self, predicate: Any, region: Region, loops: tuple[str, ...], instruction: str
    ) -> list[AccessCount]:
        """Returns the loads with which a predicate is decided."""
        return self._all(subscripts(predicate), "load", region, loops, instruction)

    def _all(
        self, expressions: Iterable[Any], direction: str, region: Region, loops: tuple[str, ...], instruction: str
    ) -> list[AccessCount]:
        found = [self._access(expression, direction, region, loops, instruction) for expression in expressions]
        return [access for access in found if access is not None]

    def _access(
        self, expression: Any, direction: str, region: Region, loops: tuple[str, ...], instruction: str
    ) -> AccessCount | None:
        name = variable_of(expression).name
        array = self.kernel.arg_dict.get(name) or self.kernel.temporary_variables.get(name)
        space = SPACES.get(getattr(array, "address_space", None))
        if array is None or space is None or isinstance(array, lp.ValueArg):
            return None
        whole, region = region, self._once(region, VectorizeTag)  # a vector is loaded and stored at once
        loops = tuple(loop for loop in loops if not self.kernel.iname_tags_of_type(loop, VectorizeTag))
        index = None
        if get_dependencies(index_of(expression)) & region.moving:
            strides: Mapping[str, Stride] = dict.fromkeys(region.inames | set(loops))
        else:
            strides = self._strides(array, expression, region.inames | set(loops))
            index = self._index(array, expression, region)
        body = self._once(region, UnrollTag, IlpBaseTag)
        executions = self.domains.executions(region)
        used = region.inames & strides.keys()
        local, group = (
            {axis: strides[iname] for iname, axis in self.domains.along(kind, used).items()}
            for kind in ("local", "group")
        )
        return AccessCount(
            space=space,
            variable=name,
            tags=access_tags(expression),
            dtype=array.dtype.numpy_dtype.name,
            bits=8 * array.dtype.itemsize * _components(array),
            direction=direction,
            local_strides=local,
            group_strides=group,
            loop_strides={loop: strides.get(loop, polynomial(0)) for loop in loops},
            executions=executions,
            body=tuple(loop for loop in loops if loop in body.inames),
            rounds=executions if body is region else self.domains.executions(body),
            footprint=self._footprint(space, name, array, expression, direction, whole),
            text=str(expression),
            instruction=instruction,
            pattern=access_class(index, 1, space, self.domains, region),
        )

    def _index(self, array: Any, access: Any, region: Region) -> Pieces | None:
        """Returns the index into the flattened array; None where data or a private variable decide on it."""
        total = ZERO
        bounds = self.domains.bounds(region)
        for position, step in zip(index_of(access), _steps(array, access), strict=True):
            if step is None:  # among a vector's components, which are accessed at once
                continue
            place, by = symbolic(position, bounds), symbolic(step, bounds)
            if place is None or by is None or not place.names() <= region.inames | self.domains.sizes:
                return None
            total = total + place * by
        return plain(total)

    def _once(self, region: Region, *tag_types: type) -> Region:
        """Returns a region with all iterations of the loops that have such a tag taken for one."""
        loops = {i for i in region.inames if self.kernel.iname_tags_of_type(i, tag_types)}
        if not loops:
            return region
        kept = region.inames - loops
        return replace(region, points=region.points.project_out_except(kept, [isl.dim_type.set]), inames=kept)

    # --- strides

    def _strides(self, array: Any, access: Any, inames: frozenset[str]) -> Mapping[str, Stride]:
        """Returns the stride along each loop variable that the index uses, in elements of the flattened array."""
        used = get_dependencies(index_of(access))
        # What a private variable holds may depend on any of them.
        unknown = any(
            self.kernel.temporary_variables[name].address_space == AddressSpace.PRIVATE
            for name in used & self.kernel.temporary_variables.keys()
        )
        if unknown:
            return dict.fromkeys(inames)
        return {iname: self._stride(array, access, iname) for iname in sorted(inames & used)}

    def _stride(self, array: Any, access: Any, iname: str) -> Stride:
        total: Any = 0
        for position, step in zip(index_of(access), _steps(array, access), strict=True):
            coefficient = self._coefficient(position, iname)
            if coefficient is None or (step is None and coefficient):  # not affine, or among a vector's components
                return None
            total = total + coefficient * (step or 0)
        return polynomial(flatten(total)) if get_dependencies(total) <= self.domains.sizes else None

    def _coefficient(self, position: Any, iname: str) -> Any:
        """Returns a loop variable's coefficient in an index; None where the index is not affine in it."""
        key = position, iname
        linear = self._linear(position)
        if linear is not None and self.domains.are_independent(frozenset(self.kernel.all_inames() & linear.keys())):
            return linear.get(iname, 0)
        if key not in self._coefficients:
            try:
                simplified = simplify_using_aff(self.kernel, position)
                self._coefficients[key] = CoefficientCollector([iname])(simplified).get(var(iname), 0)
            except (LoopyError, RuntimeError):
                self._coefficients[key] = None
        return self._coefficients[key]

    # --- footprints

    def _footprint(
        self, space: str, name: str, array: Any, access: Any, direction: str, region: Region
    ) -> QuasiPolynomial | None:
        """Returns the number of distinct elements; each work-group has local elements of its own, and registers have
        none."""
        if space == "private":
            return None
        by_group = self._by_group(access, region)
        if space == "local":
            if by_group is None:
                return None
            return unless_too_hard(
                lambda: self.domains.finished(
                    self.domains.cardinality(by_group.pairs, ELEMENTS) * self.domains.product(by_group.repeats)
                ),
                MOST_WORK,
            )
        elements = self._elements(index_of(access), region)
        line, along = (None, None) if elements is None else self._line(array, access, elements, region)
        extents = array.shape if isinstance(array.shape, tuple) else ()
        touched = Touched(direction, line, partial(TouchedSets, elements, along, by_group))
        self.touched.add(name, array.dtype.numpy_dtype.name, self._size(array), extents, touched)
        return unless_too_hard(lambda: self.touched.number(elements), MOST_WORK)

    def _by_group(self, access: Any, region: Region) -> ByGroup | None:
        axes = {axis: iname for iname, axis in self.domains.along("group", region.inames).items()}
        pairs = self._elements((*(var(axes[axis]) for axis in sorted(axes)), *index_of(access)), region)
        if pairs is None:
            return None
        repeats = self.domains.unused("group", region.inames)
        return ByGroup(pairs, tuple(repeats), frozenset(axes))

    def _elements(self, index: tuple[Any, ...], region: Region) -> Any:
        """Returns the isl set of elements that an index reaches in a region; None where it can't be derived."""
        if region.factor != ALWAYS and not get_dependencies(index) <= region.inames | self.domains.sizes:
            return None
        try:
            linear = [found for place in index if (found := self._linear(place)) is not None]
            if len(linear) == len(index):
                return _image(region.points, linear)
            return get_access_map(region.points, index).range()
        except (UnableToDetermineAccessRangeError, isl.Error):
            return None

    def _linear(self, place: Any) -> Mapping[str, int] | None:
        """Returns an index by its names' coefficients, its constant as that of no name; None where it is not linear."""
        if place not in self._linear_indices:
            found = symbolic(place, {})
            self._linear_indices[place] = None if found is None else _coefficients(found)
        return self._linear_indices[place]

    def _line(self, array: Any, access: Any, elements: Any, region: Region) -> tuple[Line | None, Any]:
        """Returns the direction in which elements lie next to each other, and the elements to be looked at along it."""
        index = index_of(access)
        strides: list[Any] = [getattr(tag, "stride", None) for tag in array.dim_tags or ()]
        if isinstance(access, LinearSubscript) or (index and not strides):
            strides = [1]
        if not index or len(strides) != len(index):
            return None, None
        by_address = all(isinstance(stride, int) for stride in strides)
        if by_address:
            axis, weights = 0, strides
            elements = addresses(elements, strides)
        elif 1 in strides:
            axis = strides.index(1)
            weights = [int(position == axis) for position in range(len(index))]
        else:
            return None, None
        steps = []
        for iname in region.inames:
            coefficients: list[Any] = [
                self._coefficient(place, iname) if w else 0 for place, w in zip(index, weights, strict=True)
            ]
            if not all(isinstance(c, int) for c in coefficients):
                return Line(axis, 1), elements
            steps.append(abs(sum(c * w for c, w in zip(coefficients, weights, strict=True))))
        return Line(axis, math.gcd(*steps) or (1 if by_address else None)), elements

    def footprints(self) -> tuple[Footprint, ...]:
        """Returns what all accesses collected so far touch together."""
        return self.touched.footprints()

    def _size(self, array: Any) -> QuasiPolynomial | None:
        """Returns the number of an array's elements; None where its shape is not given in the sizes."""
        if not isinstance(array.shape, tuple) or not get_dependencies(array.shape) <= self.domains.sizes:
            return None
        return polynomial(flatten(math.prod(array.shape)))


def _coefficients(index: Polynomial) -> Mapping[str, int] | None:
    """Returns the coefficients of names, the constant as that of no name; None where there is more than these."""
    found = {}
    for monomial, by in index.terms.items():
        (atom, power), *others = monomial or (("", 1),)
        if not isinstance(atom, str) or power != 1 or others:
            return None
        found[atom] = by
    return found


def _image(points: Any, places: Sequence[Mapping[str, int]]) -> Any:
    """Returns the places to which linear functions of a set's points and of its parameters lead; None where they need
    other names."""
    dims, known = points.dim(isl.dim_type.set), points.get_var_dict()
    related = points.insert_dims(isl.dim_type.set, dims, len(places))
    space = isl.LocalSpace.from_space(related.space)
    for axis, place in enumerate(places):
        leads = isl.Constraint.alloc_equality(space).set_coefficient_val(isl.dim_type.set, dims + axis, _value(-1))
        for name, by in place.items():
            if name and name not in known:
                return None
            value = _value(by)
            leads = leads.set_coefficient_val(*known[name], value) if name else leads.set_constant_val(value)
        related = related.add_constraint(leads)
    return related.project_out(isl.dim_type.set, 0, dims)


def _value(number: int) -> Any:
    return isl.Val(str(number))


def _steps(array: Any, access: Any) -> list[Any]:
    """Returns the stride of each index of an access; None for the index of a vector's component."""
    if isinstance(access, LinearSubscript) or array.dim_tags is None:  # one dimension, perhaps of unknown length
        return [1] * len(index_of(access))
    return [getattr(tag, "stride", None) for tag in array.dim_tags]


def _components(array: Any) -> int:
    """Returns the number of components of a vector, for an array with an axis of them; else 1."""
    for tag, extent in zip(array.dim_tags or (), array.shape or (), strict=False):
        if isinstance(tag, VectorArrayDimTag):
            return int(extent)
    return 1
