"""Loads and stores of a kernel are carried out and recorded here, one access at a time.

A `Handler` is made for each access of the generated code and each batch. Addresses come in parts, ``pointer + (index +
extra) * scale``, because mostly all but one part is the same for all lanes: then the pattern of addresses is that of
the remaining part, known without computing any address, and at once if it is the very array of last time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.access_patterns import Accessor, Pattern
from perfmodel.opencl_c.emulation.batch_context import Context
from perfmodel.opencl_c.emulation.footprints import Footprint
from perfmodel.opencl_c.emulation.lanes import Integers, Mask, Values
from perfmodel.opencl_c.emulation.memory import ADDRESS_BITS, PAGE, Region

_REMEMBERED_BYTES = 1 << 25
"""One access remembers the patterns of addresses of so many bytes."""
_REMEMBERED_PLACES = 1 << 14
"""One pattern remembers so many addresses at which it was met."""

_Key: TypeAlias = tuple[Mask, bytes, int, str]


class Handler(Accessor):
    """A handler carries out one access of the kernel, in one batch after another.

    Args:
        fold: adds the counts of a handler's patterns to the totals, before it forgets them.

    Attributes:
        met: patterns and low bits of addresses that were counted since the counts were last taken.
        placed: patterns that are known at some address.
    """

    def __init__(self, context: Context, access: low.Access, scale: int, fold: Callable[[Handler], None]) -> None:
        super().__init__(access, context.machine)
        self.context, self.scale, self.fold = context, scale, fold
        self.patterns: dict[_Key, Pattern] = {}
        self.met: list[tuple[Pattern, int]] = []
        self.placed: list[Pattern] = []
        self._components = np.arange(self.width)[:, np.newaxis] if self.is_vector else None

        self._is_global = access.space in ("global", "constant")
        # Without a known variable, a pointer into any buffer may turn up.
        self._is_anywhere = self._is_global and access.variable is None
        self._wide_index = context.regions.has_wide_buffers
        # Atomics may be misaligned or out of bounds as stores are.
        self._misaligned = self.alignment - 1
        self._footprint: Footprint | None = None
        self._last: Pattern
        self._last_key = b""
        self._last_scale = 0
        self._last_first = 0

    def begin(self) -> None:
        """Goes to the memory of a batch."""
        self.region, self._low, self._high = self.context.regions.of_access(self.access)
        self._last_mask: Mask | None = None
        self._last_part: Values = None
        self._last_pointer: Values = None
        self._last_index: Values = None
        self._last_sum: Values = None
        self._go_to(self.region)

    def end(self) -> None:
        """Forgets the memory, and what was counted."""
        for pattern, _ in self.met:
            pattern.counts.clear()
        self.met.clear()
        self.forget()
        self._footprint = None
        del self.region, self._data
        del self._last_mask, self._last_part, self._last_pointer, self._last_index, self._last_sum

    def _go_to(self, region: Region) -> None:
        if self._footprint is not None:
            self._footprint.mark_pending()
        self.region = region
        self._origin = region.origin
        self._data: NDArray[Any] = region.view(self.dtype)
        self.lane_offsets = region.lane_offsets
        self._footprint = region.stores if self.is_store else region.loads
        layout = self.context.layout
        self.group_stride = (
            self._footprint.stride if self._footprint and self.lane_offsets is None and layout.groups > 1 else 0
        )
        # One group's frame, or global memory, has one place for what all lanes ask for alike.
        self._is_shared = self.lane_offsets is None or (self.access.space == "local" and layout.groups == 1)
        self._is_logged = self.context.logs and region.is_logged
        is_read = not self.is_store and not self.access.is_kept
        is_local = self.access.space == "local" and region.stores is not None
        self._is_checked = self.context.checks and is_local and is_read

    # --- where

    def _locate(self, mask: Mask, pointer: Values, index: Values, extra: Values) -> tuple[Pattern, int]:
        """Returns the pattern of the active lanes' addresses, and the first one's address."""
        shift = 0
        if index is None:
            part, start, scale = pointer, 0, 1
        else:
            if extra is not None:
                if not extra.ndim:
                    shift = int(extra)
                elif not index.ndim:
                    shift, index = int(index), extra
                else:
                    index = index + extra
            if not pointer.ndim:
                part, scale = index, self.scale
                start = int(pointer) + shift * scale
            elif not index.ndim:
                part, scale = pointer, 1
                start = (int(index) + shift) * self.scale
            else:
                if pointer is not self._last_pointer or index is not self._last_index:
                    self._last_pointer, self._last_index = pointer, index
                    self._last_sum = self._addresses(pointer, index, None)
                part, start, scale = self._last_sum, shift * self.scale, 1
        if part is self._last_part and mask is self._last_mask:
            return self._last, start + self._last_first
        if not part.ndim:
            first, key = int(part) * scale, b""
            pattern = self._find(mask, key, scale, part, None)
        else:
            if scale != 1 and (self._wide_index or part.dtype.itemsize < 4):
                part = part.astype(np.int64)
            values = part if mask.is_full else part[mask.lanes]
            number = values[0]
            relative = values - number
            first = int(number) * scale
            key = relative.tobytes()
            if key == self._last_key and mask is self._last_mask and scale == self._last_scale:
                pattern = self._last
            else:
                pattern = self._find(mask, key, scale, part, relative)
        self._last_part, self._last_mask, self._last_key, self._last_scale = part, mask, key, scale
        self._last, self._last_first = pattern, first
        return pattern, start + first

    def _find(self, mask: Mask, key: bytes, scale: int, part: Values, relative: Values) -> Pattern:
        found_by = (mask, key, scale, part.dtype.char)
        pattern = self.patterns.get(found_by)
        if pattern is None:
            if relative is None:
                offsets = np.zeros(len(mask.lanes), np.int64)
            else:
                # Differences of unsigned indices have wrapped around to what they are as signed ones.
                offsets = relative.view(f"i{relative.dtype.itemsize}").astype(np.int64) * scale
            if len(self.patterns) * (len(key) + 64) * 4 > _REMEMBERED_BYTES:
                self.fold(self)
                if self._footprint is not None:
                    self._footprint.mark_pending()
                self.patterns.clear()
                self.placed.clear()
            pattern = self.patterns[found_by] = Pattern(self, mask, offsets)
        return pattern

    def _addresses(self, pointer: Values, index: Values, extra: Values) -> Values:
        if index is None:
            return pointer
        if extra is not None:
            index = index + extra
        return pointer + index.astype(np.int64) * self.scale

    def _misses(self, pattern: Pattern, base: int) -> bool:
        """Returns whether some address is not in the region, or not where typed views serve."""
        if self._is_anywhere:
            region = self.context.regions.by_number.get(base + pattern.low >> ADDRESS_BITS)
            if region is not None and region is not self.region:
                self._go_to(region)
                self._low, self._high = region.origin, region.origin + region.size
        return (
            base + pattern.low < self._low
            or base + pattern.high > self._high
            or bool(base & self._misaligned)
            or not pattern.is_regular
        )

    def locate(self, mask: Mask, pointer: Values, index: Values, extra: Values) -> tuple[Pattern, int, bool]:
        """Returns the pattern, the first active lane's address, and whether to go the slow way; counts the access."""
        pattern, base = self._locate(mask, pointer, index, extra)
        missed = False
        if (
            base + pattern.low < self._low
            or base + pattern.high > self._high
            or base & self._misaligned
            or not pattern.is_regular
        ) and self._misses(pattern, base):
            missed = True
            # Patterns are exact only for addresses near each other.
            addresses = self._active_addresses(mask, pointer, index, extra)
            relative = addresses - addresses[0]
            base = int(addresses[0])
            pattern = self._find(mask, relative.tobytes(), 1, relative, relative)
            self._last_part, self._last_mask = None, None
        phase = base & self.phases
        counts = pattern.counts
        count = counts.get(phase)
        if count is None:
            self.met.append((pattern, phase))
            counts[phase] = 1
        else:
            counts[phase] = count + 1
        if base not in pattern.known and not missed:
            self._meet(pattern, base)
        return pattern, base, missed

    def _active_addresses(self, mask: Mask, pointer: Values, index: Values, extra: Values) -> Integers:
        addresses = self._addresses(pointer, index, extra)
        return np.broadcast_to(addresses, (mask.layout.lanes,))[mask.lanes].astype(np.int64)

    def _meet(self, pattern: Pattern, base: int) -> None:
        """Does what need only be done the first time that a pattern comes at an address."""
        if len(pattern.known) >= _REMEMBERED_PLACES:
            pattern.known.clear()
        elif not pattern.known:
            self.placed.append(pattern)
        pattern.known.add(base)
        self.context.trace(pattern, base)
        start = base + pattern.low - self._origin >> self.shift
        if self.region.is_lazy:
            page, phase = divmod(start * self.element, PAGE)
            self.region.ensure_pages(pattern.pages(phase) + page)
        if self._is_checked:
            self._check_initialised(pattern, start)
        if self._footprint is not None:
            self._footprint.meet(pattern, start)

    def forget(self) -> None:
        """Makes all accesses count as met for the first time, so that they are traced."""
        for pattern in self.placed:
            pattern.known.clear()
        self.placed.clear()

    def mark_ahead(self, pattern: Pattern, addresses: Integers) -> None:
        if self._footprint is None:
            return
        inside = (addresses + pattern.low >= self._low) & (addresses + pattern.high <= self._high)
        self._footprint.mark_at(pattern, (addresses[inside] + pattern.low - self._origin) >> self.shift)

    # --- quick ways

    def load(self, mask: Mask, pointer: Values, index: Values = None, extra: Values = None) -> Values:
        pattern, base, missed = self.locate(mask, pointer, index, extra)
        if missed:
            return self._load_slowly(mask, self._active_addresses(mask, pointer, index, extra))
        if self._is_logged:
            self.context.log.append((pattern, base, None))
        start = base + pattern.low - self._origin >> self.shift
        if pattern.is_uniform and self._is_shared:
            if self.is_vector:
                return self._data[start : start + self.width, np.newaxis].copy()
            return self._data[start]
        return self._data[start:][pattern.index]

    def store(self, mask: Mask, value: Values, pointer: Values, index: Values = None, extra: Values = None) -> None:
        pattern, base, missed = self.locate(mask, pointer, index, extra)
        if missed:
            self._store_slowly(mask, value, self._active_addresses(mask, pointer, index, extra))
            return
        start = base + pattern.low - self._origin >> self.shift
        if value.ndim and not mask.is_full and value.shape[-1] > 1:
            value = value[..., mask.lanes]
        data = self._data[start:]
        data[pattern.active] = value
        if self._is_logged:
            self.context.log.append((pattern, base, None if value.ndim else value.item()))
            if value.ndim and pattern.has_repeats and self.context.checks:
                self._check_repeats(pattern, data, value)

    def place(self, pattern: Pattern, base: int) -> tuple[NDArray[Any], Integers]:
        """Returns memory as numbers of the access's type, and the positions of what the active lanes access in it."""
        start = base + pattern.low - self._origin >> self.shift
        return self._data, pattern.active + start

    def log(self, pattern: Pattern, base: int) -> None:
        if self._is_logged:
            self.context.log.append((pattern, base, None))

    # --- slow ways

    def _load_slowly(self, mask: Mask, addresses: Integers) -> Values:
        shape = (self.width, mask.layout.lanes) if self.is_vector else (mask.layout.lanes,)
        result = np.zeros(shape, self.dtype)
        for region, chosen in self.reachable(mask, addresses):
            lanes = mask.lanes[chosen]
            offsets = self.filled(region, lanes, addresses[chosen])
            found = region.data[offsets].view(self.dtype)
            result[..., lanes] = found.T if self.is_vector else found[:, 0]
            if region.loads is not None:
                self._mark_bytes(region.loads, lanes, offsets)
        return result

    def _store_slowly(self, mask: Mask, value: Values, addresses: Integers) -> None:
        shape = (self.width, mask.layout.lanes) if self.is_vector else (mask.layout.lanes,)
        values = np.broadcast_to(value, shape)
        for region, chosen in self.reachable(mask, addresses):
            lanes = mask.lanes[chosen]
            offsets = self.filled(region, lanes, addresses[chosen])
            rows = np.ascontiguousarray(values[..., lanes].T).reshape(len(lanes), self.width)
            region.data[offsets] = rows.view(np.uint8)
            if region.stores is not None:
                self._mark_bytes(region.stores, lanes, offsets)

    def filled(self, region: Region, lanes: Integers, addresses: Integers) -> Integers:
        """Returns the offsets of all bytes at lanes' addresses, a row each, once the region has their contents."""
        starts = addresses - region.origin
        if region.lane_offsets is not None:
            starts = starts + region.lane_offsets[lanes]
        offsets = np.asarray(starts[:, np.newaxis] + np.arange(self.bytes))
        region.ensure(offsets.ravel())
        return offsets

    def _mark_bytes(self, footprint: Footprint, lanes: Integers, offsets: Integers) -> None:
        if self._is_global:
            offsets = offsets + (self.context.layout.group_of[lanes] * footprint.stride)[:, np.newaxis]
        footprint.mark_bytes(offsets.ravel())

    def reachable(self, mask: Mask, addresses: Integers) -> list[tuple[Region, Integers]]:
        """Returns regions and positions of the addresses that are within them; the others become findings."""
        misaligned = (addresses & (self.access.alignment - 1) != 0).nonzero()[0]
        if len(misaligned) and self.context.checks:
            self._report("misaligned", mask, misaligned, addresses, f"no multiple of {self.access.alignment}")
        if not self._is_anywhere:
            inside = (addresses >= self._low) & (addresses + self.bytes <= self._high)
            found = [(self.region, inside.nonzero()[0])]
        else:
            inside = np.zeros(len(addresses), bool)
            found = []
            for number in distinct(addresses >> ADDRESS_BITS).tolist():
                region = self.context.regions.by_number.get(number)
                if region is not None:
                    end = region.origin + region.size
                    chosen = (addresses >= region.origin) & (addresses + self.bytes <= end)
                    inside |= chosen
                    found.append((region, chosen.nonzero()[0]))
        outside = (~inside).nonzero()[0]
        if len(outside):
            self._report("out of bounds", mask, outside, addresses, "")
        return [(region, chosen) for region, chosen in found if len(chosen)]

    # --- findings

    def _report(self, kind: str, mask: Mask, chosen: Integers, addresses: Integers, why: str) -> None:
        address, lane = int(addresses[chosen[0]]), int(mask.lanes[chosen[0]])
        access = self.access
        does = {"load": "reads", "store": "writes", "atomic": "changes"}[access.direction]
        if self._is_anywhere:
            region = self.context.regions.by_number.get(address >> ADDRESS_BITS)
            low_end = 0 if region is None else region.origin
            size = 0 if region is None else region.size
            name = "no argument's memory" if region is None else f"'{region.name}'"
        else:
            low_end, size = self._low, self._high - self._low
            name = f"'{access.variable}'" if access.variable else f"{access.space} memory"
        if self._is_anywhere and region is None:
            where = f"at address {address:#x}, which is in {name}"
        else:
            where = f"at byte {address - low_end} of {name}, {why or f'which has {size}'}"
        message = f"{access.text} {does} {self.bytes} bytes {where}"
        self.context.find(kind, access.place, message, lane, len(chosen), access.text)

    def _check_initialised(self, pattern: Pattern, start: int) -> None:
        stores = self.region.stores
        assert stores is not None
        missing = stores.view(self.element)[pattern.active + start] == 0
        if not missing.any():
            return
        if missing.ndim == 2:
            missing = missing.any(axis=0)
        chosen = missing.nonzero()[0]
        lane = int(pattern.mask.lanes[chosen[0]])
        message = f"{self.access.text} reads local memory that nobody has written"
        self.context.find("uninitialised", self.access.place, message, lane, len(chosen), self.access.text)

    def _check_repeats(self, pattern: Pattern, data: NDArray[Any], value: Values) -> None:
        bits = f"u{self.element}"  # of which also those of no number are equal to themselves
        wrong = data[pattern.active].view(bits) != np.ascontiguousarray(value, data.dtype).view(bits)
        if wrong.ndim == 2:
            wrong = wrong.any(axis=0)
        if not wrong.any():
            return
        places = np.atleast_2d(pattern.active)[0]
        # The last one to write a word wins; races between groups are told elsewhere.
        reverse, inverse = np.unique(places[::-1], return_index=True, return_inverse=True)[1:]
        winner = pattern.mask.lanes[::-1][reverse][inverse[::-1]]
        group_of = self.context.layout.group_of
        chosen = (wrong & (group_of[winner] == group_of[pattern.mask.lanes])).nonzero()[0]
        if len(chosen):
            lane = int(pattern.mask.lanes[chosen[0]])
            message = f"{self.access.text} is written by several work-items at once, with different values"
            self.context.find("race", self.access.place, message, lane, len(chosen), "at once")
