"""A kernel sees this memory: which region an access goes to, and between which addresses it must stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from perfmodel.basics.lazy_bytes import lazy_bytes
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.access_patterns import Pattern
from perfmodel.opencl_c.emulation.footprints import Footprint
from perfmodel.opencl_c.emulation.lanes import Layout
from perfmodel.opencl_c.emulation.memory import ADDRESS_BITS, Buffer, Region
from perfmodel.opencl_c.types import Scalar, Type, Vector, element_of

CONSTANTS = 1
"""The buffer that holds the program's own variables has this number."""
FRAME_ALIGNMENT = 128


def constant_address(offset: int) -> int:
    return (CONSTANTS << ADDRESS_BITS) + offset


def element_bytes(type_: Type) -> int:
    return element_of(type_).size if isinstance(type_, Scalar | Vector) else 8


def whole_frame(size: int) -> int:
    return max(-(-size // FRAME_ALIGNMENT), 1) * FRAME_ALIGNMENT


class Regions:
    """Holds the memory of one batch after another.

    Attributes:
        layout, buffers, local, private, by_number: of the batch that runs; `by_number` has the buffers of global and
            constant memory.
        has_wide_buffers: 32 bits may not count their bytes.
        parts: of local variables and those of the program, where they start and end.
        unit, local_unit: bytes of the smallest number that is accessed in global and in local memory.
    """

    layout: Layout
    buffers: Mapping[str, Buffer]
    by_number: dict[int, Buffer]
    constants: Buffer
    local: Region
    private: Region

    def __init__(
        self,
        kernel: low.LoweredKernel,
        buffers: Mapping[str, Buffer],
        locals_: Mapping[str, tuple[int, int]],
        local_bytes: int,
        layout: Layout,
    ) -> None:
        self._local_bytes, self._private_bytes = local_bytes, kernel.private_bytes
        self.local_frame, self.private_frame = whole_frame(local_bytes), whole_frame(kernel.private_bytes)
        self._local_offsets = layout.group_of * self.local_frame
        self._private_offsets = np.arange(layout.lanes) * self.private_frame
        self.parts: dict[tuple[str, str], tuple[int, int]] = {("local", name): at for name, at in locals_.items()}
        for object_ in kernel.objects:
            # Objects of one name come from a function that is called more than once: any of them may be meant.
            first, last = object_.offset, object_.offset + object_.type.size
            if object_.is_of_program:
                first, last = constant_address(first), constant_address(last)
            known = self.parts.get((object_.space, object_.name), (first, last))
            self.parts[object_.space, object_.name] = min(first, known[0]), max(last, known[1])

        def smallest(*spaces: str) -> int:
            sizes = (_element(access, buffers) for access in kernel.accesses if access.space in spaces)
            return min(sizes, default=4)

        self.unit, self.local_unit = smallest("global", "constant"), smallest("local")
        self.has_wide_buffers = max([kernel.constant_bytes, *(each.size for each in buffers.values())]) >= 1 << 31
        self._loaded, self._stored = _touching(kernel, ("load",)), _touching(kernel, ("store", "atomic"))
        # An access may go to one buffer now and another then, with the same distance between the groups' marks.
        self._is_anywhere = None in self._loaded | self._stored
        self._tables = [object_.name for object_ in kernel.objects if object_.is_of_program]
        self._has_local = any(access.space == "local" for access in kernel.accesses)

    def hold(self, buffers: Mapping[str, Buffer], constants: Buffer, layout: Layout) -> None:
        """Sets up the memory of a batch, of which nothing is touched yet."""
        self.layout, self.buffers, self.constants = layout, buffers, constants
        self.by_number = {buffer.origin >> ADDRESS_BITS: buffer for buffer in buffers.values()}
        self.by_number[CONSTANTS] = constants
        groups = layout.groups
        self.local = Region(
            name="local memory",
            origin=0,
            size=self._local_bytes,
            data=np.zeros(self.local_frame * groups, np.uint8),
            lane_offsets=self._local_offsets,
        )
        self.private = Region(
            name="private memory",
            origin=0,
            size=self._private_bytes,
            data=lazy_bytes(self.private_frame * layout.lanes),
            lane_offsets=self._private_offsets,
        )
        for buffer in self.by_number.values():
            buffer.loads = buffer.stores = None
            buffer.is_logged = False
        stride = None
        if self._is_anywhere:
            stride = Footprint(0, max(buffer.size for buffer in self.by_number.values()), self.unit).stride
        for name, buffer in [*buffers.items(), *((name, constants) for name in self._tables)]:
            if buffer.loads is None and (name in self._loaded or None in self._loaded):
                buffer.loads = Footprint(groups, buffer.size, self.unit, stride)
            if buffer.stores is None and (name in self._stored or None in self._stored):
                buffer.stores = Footprint(groups, buffer.size, self.unit, stride)
                buffer.is_logged = True
        if self._has_local:
            size, unit = self.local.size, self.local_unit
            self.local.loads = Footprint(groups, size, unit, self.local_frame)
            self.local.stores = Footprint(groups, size, unit, self.local_frame)
            self.local.is_logged = True

    def release(self) -> None:
        """Forgets the memory."""
        del self.layout, self.buffers, self.by_number, self.constants, self.local, self.private

    def touched(self) -> Iterable[Region]:
        """Returns the regions whose footprints somebody asks for."""
        return {id(region): region for region in (*self.by_number.values(), self.local)}.values()

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


def _element(access: low.Access, buffers: Mapping[str, Buffer]) -> int:
    buffer = buffers.get(access.variable or "") if access.space == "global" else None
    return (buffer.element if buffer is not None else None) or element_bytes(access.type)


def _touching(kernel: low.LoweredKernel, directions: tuple[str, ...]) -> set[str | None]:
    """Returns variables in global and constant memory that are accessed so, and None for accesses of which nobody knows
    the variable."""
    return {
        access.variable
        for access in kernel.accesses
        if access.space in ("global", "constant") and access.direction in directions
    }
