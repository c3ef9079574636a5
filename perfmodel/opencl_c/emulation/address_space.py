"""A kernel sees this memory: which region an access goes to, and between which addresses it must stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.access_patterns import Pattern
from perfmodel.opencl_c.emulation.footprints import Footprint, lazy_bytes
from perfmodel.opencl_c.emulation.lanes import Layout
from perfmodel.opencl_c.emulation.memory import ADDRESS_BITS, Buffer, Region
from perfmodel.opencl_c.types import Scalar, Type, Vector, element_of

CONSTANTS = 1
"""The buffer that holds the program's constant tables has this number."""
FRAME_ALIGNMENT = 128


def constant_address(offset: int) -> int:
    return (CONSTANTS << ADDRESS_BITS) + offset


def element_bytes(type_: Type) -> int:
    return element_of(type_).size if isinstance(type_, Scalar | Vector) else 8


def whole_frame(size: int) -> int:
    return max(-(-size // FRAME_ALIGNMENT), 1) * FRAME_ALIGNMENT


class Regions:
    """Holds the memory of one batch.

    Attributes:
        by_number: buffers of global and constant memory. has_wide_buffers: 32 bits may not count their bytes.
    """

    def __init__(
        self,
        kernel: low.LoweredKernel,
        buffers: Mapping[str, Buffer],
        constants: Buffer,
        locals_: Mapping[str, tuple[int, int]],
        local_bytes: int,
        layout: Layout,
    ) -> None:
        self.kernel, self.layout, self.buffers = kernel, layout, buffers
        self.by_number: dict[int, Buffer] = {buffer.origin >> ADDRESS_BITS: buffer for buffer in buffers.values()}
        self.by_number[CONSTANTS] = constants
        self.has_wide_buffers = any(buffer.size >= 1 << 31 for buffer in self.by_number.values())
        self.constants = constants
        self.local_frame, self.private_frame = whole_frame(local_bytes), whole_frame(kernel.private_bytes)
        self.local = Region(
            name="local memory",
            origin=0,
            size=local_bytes,
            data=np.zeros(self.local_frame * layout.groups, np.uint8),
            lane_offsets=layout.group_of * self.local_frame,
        )
        self.private = Region(
            name="private memory",
            origin=0,
            size=kernel.private_bytes,
            data=lazy_bytes(self.private_frame * layout.lanes),
            lane_offsets=np.arange(layout.lanes) * self.private_frame,
        )
        self.parts: dict[tuple[str, str], tuple[int, int]] = {("local", name): at for name, at in locals_.items()}
        for object_ in kernel.objects:
            # Objects of one name come from a function that is called more than once: any of them may be meant.
            first, last = object_.offset, object_.offset + object_.type.size
            if object_.space == "constant":
                first, last = constant_address(first), constant_address(last)
            known = self.parts.get((object_.space, object_.name), (first, last))
            self.parts[object_.space, object_.name] = min(first, known[0]), max(last, known[1])
        self.unit = self._smallest(("global", "constant"))
        self.local_unit = self._smallest(("local",))
        self._prepare()

    def _smallest(self, spaces: Iterable[str]) -> int:
        return min((self._element(access) for access in self.kernel.accesses if access.space in spaces), default=4)

    def _element(self, access: low.Access) -> int:
        buffer = self.buffers.get(access.variable or "") if access.space == "global" else None
        return (buffer.element if buffer is not None else None) or element_bytes(access.type)

    def _touching(self, space: str, directions: tuple[str, ...]) -> set[str | None]:
        """Returns variables that are accessed so, and None for accesses that nobody knows the variable of."""
        spaces = ("global", "constant") if space == "global" else (space,)
        return {
            access.variable
            for access in self.kernel.accesses
            if access.space in spaces and access.direction in directions
        }

    def _prepare(self) -> None:
        groups = self.layout.groups
        loaded, stored = self._touching("global", ("load",)), self._touching("global", ("store", "atomic"))
        for buffer in {id(buffer): buffer for buffer in self.by_number.values()}.values():
            buffer.loads = buffer.stores = None
            buffer.is_logged = False
        stride = None
        if None in loaded | stored:
            # An access may go to one buffer now and another then, with the same distance between the groups' marks.
            stride = Footprint(0, max(buffer.size for buffer in self.by_number.values()), self.unit).stride
        tables = {object_.name for object_ in self.kernel.objects if object_.space == "constant"}
        for name, buffer in [*self.buffers.items(), *((name, self.constants) for name in tables)]:
            if loaded & {name, None} and buffer.loads is None:
                buffer.loads = Footprint(groups, buffer.size, self.unit, stride)
            if stored & {name, None} and buffer.stores is None:
                buffer.stores = Footprint(groups, buffer.size, self.unit, stride)
                buffer.is_logged = True
        if any(access.space == "local" for access in self.kernel.accesses):
            size, unit = self.local.size, self.local_unit
            self.local.loads = Footprint(groups, size, unit, self.local_frame)
            self.local.stores = Footprint(groups, size, unit, self.local_frame)
            self.local.is_logged = True

    def at(self, pattern: Pattern, base: int) -> Region:
        """Returns the region that a pattern at some address is in."""
        space = pattern.accessor.access.space
        if space in ("local", "private"):
            return self.local if space == "local" else self.private
        return self.by_number[base + pattern.low >> ADDRESS_BITS]

    def of_access(self, access: low.Access) -> tuple[Region, int, int]:
        """Returns the region, and the addresses between which the access must stay."""
        part = self.parts.get((access.space, access.variable or ""))
        if access.space in ("local", "private"):
            region: Region = self.local if access.space == "local" else self.private
            return (region, *(part or (0, region.size)))
        if part is not None:
            return (self.constants, *part)
        buffer = self.buffers.get(access.variable or "")
        if buffer is None:
            return self.constants, 0, 0
        return buffer, buffer.origin, buffer.origin + buffer.size
