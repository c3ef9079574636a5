"""A race is that work-items touch the same memory without a barrier between them, one of them writing.

Accesses are logged as patterns and addresses. At a barrier the log is gone through, unless the very same accesses were
between two barriers before, as in most loops: then nothing new can be found. Between groups no barrier helps, so for
memory that the kernel writes it is kept which group wrote and read each word.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.lazy_bytes import lazy_bytes
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.batch_context import Context, Logged
from perfmodel.opencl_c.emulation.lanes import Integers, Mask
from perfmodel.opencl_c.emulation.memory import Region

_ROWS = 1 << 20
"""So many accesses between two barriers are looked at together; races further apart may be missed."""
_MOST_REMEMBERED = 4096
_MOST_LOOKED_AT = 512
"""The pairs of accesses are told apart for so many conflicting words."""
_MOST_TOLD = 48
_GROUP_BITS = 40
_NOBODY, _SEVERAL = 0, -1


@dataclass
class _Touches:
    """Words touched by lanes have one row each: the word, its lane, and the number of the event that did it."""

    word: Integers
    lane: Integers
    event: Integers


class Races:
    """Looks for races in one batch; `groups` are kept over all batches."""

    def __init__(self, context: Context, groups: GroupRaces) -> None:
        self.context, self.groups = context, groups
        self._scratch: dict[Region, tuple[NDArray[np.int32], NDArray[np.uint8]]] = {}
        self.most_logged = max(_ROWS // context.layout.lanes, 256)
        self._seen: set[tuple[Logged, ...]] = set()
        # Lanes whose part of a logged access is over, because only their groups met a barrier.
        self._over: dict[int, NDArray[np.bool_]] = {}

    def barrier(self, mask: Mask | None) -> None:
        """Ends a log where the groups of the active lanes met a barrier; None is the end."""
        log = self.context.log
        self._look(log)
        if mask is None or mask.is_full:
            log.clear()
            self._over.clear()
            return
        # Other groups are still between two barriers, with all that they have accessed.
        passed = mask.items_of_groups > 0
        lanes = passed[self.context.layout.group_of]
        kept: list[Logged] = []
        over: dict[int, NDArray[np.bool_]] = {}
        for position, event in enumerate(log):
            gone = lanes | self._over.get(position, False)
            if not gone[event[0].mask.lanes].all():
                over[len(kept)] = gone
                kept.append(event)
        log[:] = kept
        self._over = over

    def shorten(self) -> None:
        """Looks at a log that has grown long, and forgets it but for its most recent part."""
        log = self.context.log
        if self._over:
            self._look(log)
            log.clear()
            self._over.clear()
            return
        log[:] = dict.fromkeys(log)
        if len(log) > self.most_logged // 2:
            self._look(log)
            del log[: -self.most_logged // 4]

    def _look(self, log: list[Logged]) -> None:
        if not log:
            return
        key = tuple(log)
        if not self._over:
            if key in self._seen:
                return
            if len(self._seen) >= _MOST_REMEMBERED:
                self._seen.clear()
            self._seen.add(key)
        regions: dict[Region, list[int]] = {}
        for position, (pattern, base, _) in enumerate(log):
            regions.setdefault(self.context.regions.at(pattern, base), []).append(position)
        for region, every in regions.items():
            positions = self._distinct(log, every)
            if any(log[position][0].accessor.is_store for position in positions):
                self._look_at(region, log, positions)
            self.groups.note(region, self.context, [log[position] for position in positions])

    def _distinct(self, log: list[Logged], positions: list[int]) -> list[int]:
        return list({(log[position], id(self._over.get(position))): position for position in positions}.values())

    def _look_at(self, region: Region, log: list[Logged], positions: list[int]) -> None:
        touches = self._touches(region, log, positions)
        accessors = [log[position][0].accessor for position in positions]
        is_store = np.array([accessor.is_store for accessor in accessors])
        touches = self._suspicious(region, touches, is_store)
        order = np.lexsort((touches.lane, touches.word))
        word, lane, event = touches.word[order], touches.lane[order], touches.event[order]
        if not len(word):
            return
        new = np.ones(len(word), bool)
        new[1:] = word[1:] != word[:-1]
        starts = new.nonzero()[0]
        writes = is_store[event]
        atomic = np.array([accessor.access.direction == "atomic" for accessor in accessors])[event]
        several = np.minimum.reduceat(lane, starts) != np.maximum.reduceat(lane, starts)
        # What one event does at once to one word is looked at when it happens.
        several &= np.minimum.reduceat(event, starts) != np.maximum.reduceat(event, starts)
        several &= np.logical_or.reduceat(writes, starts) & ~np.logical_and.reduceat(atomic, starts)
        ends = np.append(starts[1:], len(word))
        for run in several.nonzero()[0][:_MOST_LOOKED_AT].tolist():
            part = slice(starts[run], ends[run])
            self._tell(lane[part], [log[positions[number]] for number in event[part].tolist()])

    def _suspicious(self, region: Region, touches: _Touches, is_store: NDArray[np.bool_]) -> _Touches:
        """Returns touches of words that somebody writes and several lanes touch: mostly none, found without sorting."""
        unit = unit_of(self.context, region)
        if region not in self._scratch:
            words = len(region.data) // unit + 16
            self._scratch[region] = lazy_bytes(words * 4).view(np.int32), lazy_bytes(words)
        lanes, flags = self._scratch[region]
        word = touches.word & ((1 << _GROUP_BITS) - 1)
        lanes[word] = touches.lane
        others = lanes[word] != touches.lane
        flags[word] = 0
        flags[word[is_store[touches.event]]] = 1
        flags[word[others]] |= 2
        chosen = flags[word] == 3
        return _Touches(touches.word[chosen], touches.lane[chosen], touches.event[chosen])

    def _touches(self, region: Region, log: list[Logged], positions: list[int]) -> _Touches:
        words, lanes, events = [], [], []
        is_local = region.lane_offsets is not None
        layout = self.context.layout
        unit = unit_of(self.context, region)
        for number, position in enumerate(positions):
            pattern, base, _ = log[position]
            touched = words_of(pattern.offsets + base - region.origin, pattern.accessor.bytes, unit)
            lane = pattern.mask.lanes
            gone = self._over.get(position)
            if gone is not None:
                stays = ~gone[lane]
                touched, lane = touched[:, stays], lane[stays]
            # Words of different groups are different ones: races between groups are looked for elsewhere.
            stride = self.context.regions.local_frame // unit if is_local else 1 << _GROUP_BITS
            words.append((touched + layout.group_of[lane] * stride).ravel())
            lanes.append(np.tile(lane, len(touched)))
            events.append(np.full(touched.size, number))
        return _Touches(np.concatenate(words), np.concatenate(lanes), np.concatenate(events))

    def _tell(self, lanes: Integers, events: list[Logged]) -> None:
        """Reports all pairs of accesses that conflict in one word."""
        told: set[tuple[int, int]] = set()
        for first, (one, _, value) in enumerate(events[:_MOST_TOLD]):
            for second in range(first):
                other, _, other_value = events[second]
                accesses = one.accessor.access, other.accessor.access
                pair = accesses[0].number, accesses[1].number
                if lanes[first] == lanes[second] or events[first] is events[second] or pair in told:
                    continue
                if _are_harmless(accesses[0], accesses[1], value, other_value):
                    continue
                told.add(pair)
                self._report(accesses, int(lanes[first]), int(lanes[second]))

    def _report(self, accesses: tuple[low.Access, low.Access], lane: int, other: int) -> None:
        layout = self.context.layout
        pair = sorted(
            zip((lane, other), accesses, strict=True), key=lambda each: (each[1].direction == "load", each[1].number)
        )
        (writer, write), (toucher, touch) = pair
        does = "reads" if touch.direction == "load" else "writes"
        message = (
            f"{write.text} is written by work-item {layout.local_ids(writer)}, and work-item "
            f"{layout.local_ids(toucher)} of the group {does} it as "
            f"{touch.text} at {touch.place} without a barrier between"
        )
        detail = tuple(sorted({access.place for access in accesses}))
        self.context.find("race", write.place, message, writer, 1, detail)


class GroupRaces:
    """Keeps which group has written and read each word of global memory, for all batches of a run of several groups."""

    def __init__(self, are_several: bool) -> None:
        self._are_several = are_several
        self._kept: dict[Region, dict[str, NDArray[np.int32]]] = {}

    def note(self, region: Region, context: Context, events: Iterable[Logged]) -> None:
        if region.lane_offsets is not None or not self._are_several:
            return
        kept = self._kept.get(region)
        unit = unit_of(context, region)
        if kept is None:
            count = region.size // unit + 16
            kept = self._kept[region] = {
                name: lazy_bytes(-(-count * 4 // 4096) * 4096).view(np.int32) for name in ("load", "store", "atomic")
            }
        for pattern, base, value in events:
            self._note(region, kept, context, pattern, base, unit, value)

    def _note(
        self,
        region: Region,
        kept: dict[str, NDArray[np.int32]],
        context: Context,
        pattern: Any,
        base: int,
        unit: int,
        value: float | int | None,
    ) -> None:
        access = pattern.accessor.access
        words = words_of(pattern.offsets + base - region.origin, pattern.accessor.bytes, unit)
        group = context.layout.group_numbers[context.layout.group_of[pattern.mask.lanes]]
        group = np.broadcast_to(group, words.shape).ravel()
        words = words.ravel()
        # What everybody sets to the same number is set to it, whoever comes last.
        conflicts = ("store", "atomic") if access.direction == "load" else ("load", "store", "atomic")
        for kind in conflicts:
            if kind == access.direction == "atomic" or (kind == "store" == access.direction and value is not None):
                continue
            known = kept[kind][words]
            wrong = ((known != _NOBODY) & (known != group)).nonzero()[0]
            if len(wrong):
                self._report(context, pattern, int(wrong[0]) % len(pattern.mask.lanes), kind, len(wrong))
        mine = kept[access.direction]
        before = mine[words]
        mine[words] = np.where((before == _NOBODY) | (before == group), group, _SEVERAL)
        # Groups of this very access that touch the same word.
        after = mine[words]
        lost = ((after != group) & (after != _SEVERAL)).nonzero()[0]
        if len(lost):
            if access.direction == "store" and value is None:
                self._report(context, pattern, int(lost[0]) % len(pattern.mask.lanes), "store", len(lost))
            mine[words[lost]] = _SEVERAL

    def _report(self, context: Context, pattern: Any, position: int, kind: str, count: int) -> None:
        access, lane = pattern.accessor.access, int(pattern.mask.lanes[position])
        does = {"load": "reads", "store": "writes", "atomic": "changes"}
        message = f"{access.text}: one group {does[access.direction]} what another one {does[kind]}, in whatever order"
        context.find("race", access.place, message, lane, count, "groups")


def unit_of(context: Context, region: Region) -> int:
    return context.regions.local_unit if region.lane_offsets is not None else context.regions.unit


def words_of(offsets: Integers, size: int, unit: int) -> Integers:
    """Returns numbers of the words of so many bytes that accesses touch: (words of one, accesses)."""
    first = offsets // unit
    return np.asarray(first + np.arange(max(size // unit, 1))[:, np.newaxis])


def _are_harmless(one: low.Access, other: low.Access, value: Any, other_value: Any) -> bool:
    directions = {one.direction, other.direction}
    if directions <= {"load"} or directions == {"atomic"}:
        return True
    # Everybody writes the same number.
    return directions == {"store"} and value is not None and value == other_value
