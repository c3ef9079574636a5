"""Memory accesses of a lowered kernel are counted here: how often, with which strides, and what they touch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

from perfmodel.counting.access_classes import access_class
from perfmodel.counting.atomics import Update
from perfmodel.counting.budget import unless_too_hard
from perfmodel.counting.counts import AccessCount, Executions, Footprint, Stride
from perfmodel.counting.domains import Domains, Region
from perfmodel.counting.footprints import MOST_WORK, Footprints, Touched, TouchedSets
from perfmodel.counting.points import ELEMENTS
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.counting.symbolic import (
    ZERO,
    Bounds,
    Monomial,
    Polynomial,
    coordinate,
    is_coordinate,
)
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.meeting import retried, updates
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.promotion import apart_from_others
from perfmodel.opencl_c.static.access_tags import tags_of
from perfmodel.opencl_c.static.flattened_indices import by_weight, divided, interior, row_of, weights_of
from perfmodel.opencl_c.static.iteration import Iteration
from perfmodel.opencl_c.static.private_accesses import private_accesses
from perfmodel.opencl_c.static.repeated_loads import ALL, RepeatedLoads
from perfmodel.opencl_c.static.sampling import AddressSampler, SampledAddresses, addresses_of_group
from perfmodel.opencl_c.static.scratch import ScratchArray
from perfmodel.opencl_c.static.steps import Steps
from perfmodel.opencl_c.static.touched_elements import TouchedElements
from perfmodel.opencl_c.static.unrolling import WHOLE
from perfmodel.opencl_c.static.values import PointsTo, Value
from perfmodel.opencl_c.static.vectorization import Vectorization
from perfmodel.opencl_c.static.waits import Waits

HIDDEN = frozenset(("hidden",))
"""Tags an access of which a processor's compiler does not see whether neighbours touch neighbouring places."""


@dataclass(frozen=True)
class GlobalArray:
    """Describes an argument that is an array in global or constant memory, or an image.

    Attributes:
        dtype: numpy's name of what its elements are.
        item: bytes of an element.
        size: elements, as a polynomial of the sizes; None if unknown.
        pixel: of an image, the bytes that a pixel takes in memory; None for other arrays.
    """

    dtype: str
    item: int
    size: Polynomial | None
    pixel: int | None = None


LARGEST = 8
"""Bytes of the largest numbers that an array of bytes may be taken to have."""

_Unplaced = tuple[low.Access, low.Expression, PointsTo | None, Region]
"""An access of which it is still to be found out what it touches: its address, and where it is executed."""


class StaticAccesses:
    """Collects the accesses of one kernel."""

    def __init__(
        self,
        domains: Domains,
        arrays: Mapping[str, GlobalArray],
        sampler: AddressSampler | None,
        scratch: Mapping[str, ScratchArray],
        waits: Waits,
        vectorization: Vectorization,
        is_compiled: bool,
        bounds: Bounds,
        table_bytes: Mapping[str, int],
    ) -> None:
        self.domains, self.arrays, self.sampler, self.scratch = domains, arrays, sampler, scratch
        self.table_bytes = table_bytes
        self.waits, self.vectorization, self.is_compiled, self.bounds = waits, vectorization, is_compiled, bounds
        self.found: list[tuple[AccessCount, _Unplaced | None]] = []
        self._steps_of: dict[str, Steps] = {}
        self.repeated = RepeatedLoads(waits.written_out, apart_from_others(waits.kernel))
        self.elements, self.touched = TouchedElements(domains), Footprints(domains)
        self.waiting: list[tuple[str, str, PointsTo | None, Region, int]] = []

    def add(
        self,
        access: low.Access,
        direction: str,
        pointer: low.Expression,
        place: Value,
        region: Region,
        loops: Sequence[low.Loop],
        iterations: Sequence[Iteration],
    ) -> None:
        """Adds one execution of an access at every point of a region."""
        known = place if isinstance(place, PointsTo) else None
        space = "global" if access.space == "constant" else access.space
        if space == "private" and access.variable in self.scratch:
            space = "scratch"
        unit = access.bytes
        strides = self._strides(known, unit, region, loops)
        if known is None:
            strides |= self._steps(pointer, unit, loops)
        elif direction == "load" and self._is_operand(access, strides, loops):
            return
        pattern = access_class(known.offset if known else None, unit, space, self.domains, region)
        is_kept = self.is_compiled and direction == "load" and space in ("global", "local")
        address = None if known is None else known.offset.single
        executed, part = self.repeated.left(access, address, region, loops) if is_kept else (region, ALL)
        executions = self.domains.executions(executed).scaled(float(part))
        count = self._count(access, space, direction, pointer, strides, region, executions, loops, iterations, pattern)
        self.found.append((count, (access, pointer, known, region)))
        variable = access.variable
        if space == "global" and variable is not None and variable in self.arrays:
            self.waiting.append((variable, direction, known, region, unit))

    def _is_operand(self, access: low.Access, strides: Mapping[str, Stride], loops: Sequence[low.Loop]) -> bool:
        """Returns True for a place in a table of constant memory that is known once loops are written out: machine
        instructions have it as an operand, and load nothing."""
        if not self.is_compiled or access.space != "constant" or access.variable in self.arrays:
            return False
        written = {coordinate(loop.name) for loop in loops if loop.name in self.waits.written_out}
        return all(stride == _stride(ZERO) for name, stride in strides.items() if name not in written)

    @property
    def needs_numbers(self) -> bool:
        """Returns whether the access that was added last has an address that sizes decide on."""
        count, rest = self.found[-1] if self.found else (None, None)
        if count is None or rest is None or self.sampler is not None or not count.has_unknown_address:
            return False
        access, pointer, place, _ = rest
        return access.space in ("global", "constant", "local") and self._sampled(pointer, place) is None

    def private(
        self, assign: low.Assign, operations: KernelOperations, region: Region, loops: Sequence[low.Loop]
    ) -> None:
        """Adds the private variables that a statement reads and writes."""
        found = private_accesses(assign, operations, self.domains, region, loops)
        self.found += [(count, None) for count in found]

    def _count(
        self,
        access: low.Access,
        space: str,
        direction: str,
        pointer: low.Expression,
        strides: Mapping[str, Stride],
        region: Region,
        executions: Executions,
        loops: Sequence[low.Loop],
        iterations: Sequence[Iteration],
        pattern: str,
    ) -> AccessCount:
        local, group = (
            {axis: strides[name] for name, axis in self.domains.along(kind, region.inames).items() if name in strides}
            for kind in ("local", "group")
        )
        written = self.waits.written_out.keys()
        whole = {loop.name for loop in loops if loop.unroll == WHOLE and loop.name in written}
        unrolled = self.waits.once_a_round.get(access, whole)
        around = [loop.name for loop in loops if loop.name not in (written if self.is_compiled else unrolled)]
        # Of loops that were gone through one by one, it is known how many iterations a compiler writes out.
        again = [each for each in iterations if each.loop.unroll != WHOLE or each.loop.name in written - unrolled]
        once = region.without({coordinate(name) for name in unrolled})
        wait = self.waits.of(access)
        innermost = next((coordinate(loop.name) for loop in reversed(loops) if loop.name not in written), None)
        entered = None
        if wait.share < wait.least and innermost in once.inames:
            entered = self.domains.executions(once.without({innermost}))
        share = self.scratch[access.variable or ""].share if space == "scratch" else 1.0
        return AccessCount(
            space=space,
            variable=access.variable or "?",
            tags=self._tags(access, pointer),
            dtype=access.dtype,
            bits=8 * self._bytes(access),
            direction=direction,
            local_strides=local,
            group_strides=group,
            loop_strides={loop.name: strides.get(coordinate(loop.name), _stride(ZERO)) for loop in loops},
            executions=executions.scaled(share),
            body=(*around, *map(str, again)),
            rounds=self.domains.executions(once).scaled(share),
            footprint=None,
            text=access.text,
            instruction=str(access.place),
            pattern=pattern,
            wait=wait.share,
            level=wait.level,
            depth=wait.depth,
            is_again=wait.is_again,
            reach=self.table_bytes.get(access.variable or ""),
            entered=None if entered is None else entered.scaled(share),
            least=wait.least,
            update=self._update(access, local),
            is_tried_again=access.number in self._retried,
        )

    def _update(self, access: low.Access, local: Mapping[int, Stride]) -> Update | None:
        """Returns what an atomic does; a place that ids turn out not to move is seen to be one for all."""
        update = self._updates.get(access.number)
        return replace(update, is_of_all=True) if update is not None and not local else update

    @cached_property
    def _retried(self) -> Mapping[int, bool]:
        return retried(self.waits.kernel) if self._updates else {}

    @cached_property
    def _updates(self) -> Mapping[int, Update]:
        return updates(self.waits.kernel)

    def _bytes(self, access: low.Access) -> int:
        """Returns the bytes that an access moves; pixels are read as more than they are."""
        array = self.arrays.get(access.variable or "")
        return access.bytes if array is None or array.pixel is None else array.pixel

    def _tags(self, access: low.Access, pointer: low.Expression) -> frozenset[str]:
        """Returns what tells an access from others that go another way: to images, constants, lane by lane."""
        array = self.arrays.get(access.variable or "")
        tags = tags_of(access, array is not None, array is not None and array.pixel is not None)
        return tags | HIDDEN if self.vectorization.hides_neighbours(pointer) else tags

    def accesses(self) -> tuple[AccessCount, ...]:
        """Returns all accesses, with what each touches."""
        return tuple(count if rest is None else self._placed(count, *rest) for count, rest in self.found)

    def _placed(
        self,
        count: AccessCount,
        access: low.Access,
        pointer: low.Expression,
        place: PointsTo | None,
        region: Region,
    ) -> AccessCount:
        footprint = unless_too_hard(lambda: self._footprint(access, place, region), MOST_WORK)
        count = replace(count, footprint=footprint)
        strides = (*count.local_strides.values(), *count.group_strides.values(), *count.loop_strides.values())
        is_far = access.space in ("global", "constant")
        if None not in strides and (footprint is not None or not is_far):
            return count
        sampled = self._sampled(pointer, place) if is_far or access.space == "local" else None
        if sampled is None:
            return count
        sampled = sampled.scaled(Fraction(self._bytes(access), access.bytes))
        if None in count.local_strides.values():
            count = replace(count, addresses=sampled.groups)
        if not is_far:
            return count
        known = [each for each in (count.reach, sampled.reach) if each is not None]
        return replace(count, reach=min(known, default=None), missed=sampled.missed)

    def _sampled(self, pointer: low.Expression, place: PointsTo | None) -> SampledAddresses | None:
        if self.sampler is None:
            single = None if place is None else place.offset.single
            lanes = None if single is None else addresses_of_group(single, self.domains)
            return None if lanes is None else SampledAddresses((lanes,), None, None)
        found, piece = self.sampler.addresses(pointer), None if place is None else place.offset.single
        if found is not None or piece is None:
            return found
        return self.sampler.addresses_in_loops(piece, self.domains.axes, self.bounds)

    # --- strides

    def _strides(
        self, place: PointsTo | None, unit: int, region: Region, loops: Sequence[low.Loop]
    ) -> dict[str, Stride]:
        """Returns strides along each coordinate and loop that moves the access, in elements of what is accessed."""
        names = sorted(region.inames | {coordinate(loop.name) for loop in loops})
        if place is None:
            return dict.fromkeys(names)
        found: dict[str, Stride] = {}
        pieces = interior([piece for _, piece in place.offset.pieces], names)
        for name in names:
            steps = {piece.coefficient(name) for piece in pieces}
            step = steps.pop() if len(steps) == 1 else None
            if step is None or any(map(is_coordinate, step.names())):
                found[name] = None
            elif step.terms:
                found[name] = _stride(step, unit)
        return found

    def _steps(self, pointer: low.Expression, unit: int, loops: Sequence[low.Loop]) -> dict[str, Stride]:
        """Returns the strides along those loops whose step alone says by how much the address moves, wherever it
        begins."""
        found: dict[str, Stride] = {}
        for loop in loops:
            if loop.name not in self._steps_of:
                self._steps_of[loop.name] = Steps(loop)
            step = self._steps_of[loop.name].of(pointer)
            if step is not None:
                found[coordinate(loop.name)] = _stride(Polynomial({(): step}), unit)
        return found

    # --- footprints

    def _footprint(self, access: low.Access, place: PointsTo | None, region: Region) -> QuasiPolynomial | None:
        """Returns how many distinct elements this access touches; in local memory, those of each work-group."""
        if place is None or access.space == "private":
            return None
        item = access.bytes
        indices = [divided(piece, item) or ZERO for _, piece in place.offset.pieces]
        weights = list(dict.fromkeys([*(weight for index in indices for weight in weights_of(index)), ()]))
        found = self.elements.lattice(place, region, item, item, weights)
        if found is not None:
            factors = found.by_group() if access.space == "local" else found.elements()
            if factors is not None:
                return self.touched.of_factors(factors, found.sizes)
        if access.space == "local":
            by_group = self.elements.by_group(place, region, item, item, weights)
            if by_group is None:
                return None
            return self.domains.finished(
                self.domains.cardinality(by_group.pairs, ELEMENTS) * self.domains.product(by_group.repeats)
            )
        elements = self.elements.elements(place, region, item, item, weights)
        return None if elements is None else self.touched.number(elements)

    def footprints(self) -> tuple[Footprint, ...]:
        """Returns what all accesses collected so far touch together, by array and direction."""
        arrays = self._arrays_of_numbers()
        shapes: dict[str, list[Monomial]] = {}
        for name, _, place, _, _ in self.waiting:
            shape = shapes.setdefault(name, [])
            for _, piece in place.offset.pieces if place is not None else ():
                index = divided(piece, arrays[name].item)
                shape += [weight for weight in weights_of(index or ZERO) if weight not in shape]
        for shape in shapes.values():
            if () not in shape:
                shape.append(())
            shape.sort(key=lambda monomial: (sum(power for _, power in monomial), str(monomial)), reverse=True)
        gaps = self._gaps(shapes, arrays)
        for name, direction, place, region, unit in self.waiting:
            array, weights = arrays[name], shapes[name]
            touched = None
            if place is not None:
                gap = gaps.get(name, 0)
                find = partial(self.elements.touched, direction, place, region, array.item, unit, weights, gap)
                touched = unless_too_hard(find, MOST_WORK)
            size = None if array.size is None else array.size.quasipolynomial()
            extents = [*(["1"] if len(weights) == 1 else []), *(row_of(weights) for _ in weights)]
            self.touched.add(name, array.dtype, size, extents, touched or Touched(direction, None, TouchedSets))
        self.waiting.clear()
        return self.touched.footprints()

    def _arrays_of_numbers(self) -> dict[str, GlobalArray]:
        """Returns the arrays that are accessed; those of bytes as such of larger numbers, where all accesses are of
        these, at multiples of their size."""
        items: dict[str, int] = {}
        for name, _, place, _, unit in self.waiting:
            array = self.arrays[name]
            terms = [c for _, piece in place.offset.pieces for c in piece.terms.values()] if place is not None else [1]
            sizes = () if array.size is None else array.size.terms.values()
            items[name] = math.gcd(items.get(name, LARGEST), unit, *terms, *sizes)
        found = {name: self.arrays[name] for name in items}
        for name, item in items.items():
            array = found[name]
            if array.item == 1 < item:
                size = None if array.size is None else divided(array.size, item)
                found[name] = replace(array, dtype=f"uint{8 * item}", item=item, size=size)
        return found

    def _gaps(self, shapes: Mapping[str, Sequence[Monomial]], arrays: Mapping[str, GlobalArray]) -> dict[str, int]:
        """Returns how far apart an array's elements touched are at least, along its axis of weight one; 0 for one."""
        found: dict[str, int] = {}
        starts: dict[str, int] = {}
        for name, _, place, region, unit in self.waiting:
            array = arrays[name]
            for _, piece in place.offset.pieces if place is not None else ():
                index = by_weight(divided(piece, array.item) or ZERO, shapes[name]).get((), ZERO)
                start = index.terms.get((), 0)
                steps = [index.coefficient(coordinate) for coordinate in region.inames]
                numbers = [None if step is None else step.constant for step in steps]
                apart = [1 if n is None else n for n in numbers]
                if unit > array.item:
                    apart.append(1)
                found[name] = math.gcd(found.get(name, 0), start - starts.setdefault(name, start), *apart)
        return found


def _stride(value: Polynomial, unit: int = 1) -> Stride:
    found = divided(value, unit)
    return None if found is None else found.quasipolynomial()
