"""Counts what sub-groups ask of memory at once: ``f_mem_transactions_global_load_block:128``, ``…_local_banks:32``.

A GPU's memory works for whole sub-groups: global memory in aligned blocks (Panwar et al., section IV-C, "coalesced
memory accesses"), local memory in banks, each of which serves one word at a time (ibid., "bank conflicts").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.atomics import Update, bank_passes, expected_passes, sector_passes
from perfmodel.counting.banks import WORD_BYTES, bank_cycles, share_places
from perfmodel.counting.counts import LINE_BYTES, SUBGROUP_SIZE, AccessCount, Blocks, KernelCounts
from perfmodel.counting.evaluation import Block, alike, quotient
from perfmodel.features.group_addresses import of_group
from perfmodel.features.memory_access import (
    ZERO,
    AccessFamily,
    AccessFeature,
    AccessPattern,
    Floats,
    Sizes,
)
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import Granularity


def blocks(addresses: NDArray[np.int64], item: int, block: int) -> float:
    """Returns the number of distinct aligned blocks of `block` bytes among accesses of `item` bytes, on average over
    rows of addresses."""
    touched = [addresses // block]
    if item > 1 and np.any((addresses + item - 1) // block != touched[0]):
        touched.append((addresses + item - 1) // block)
    return float(_distinct(np.concatenate(touched, axis=-1))[1].sum(axis=-1).mean())


def cycles_of_banks(
    addresses: NDArray[np.int64], item: int, banks: int, are_shared: bool = False, are_copied: bool = False
) -> float:
    """Returns the cycles that local memory takes, on average over rows; see `perfmodel.counting.banks`."""
    rows = np.atleast_2d(addresses)
    return float(bank_cycles(rows, item, banks, are_shared=are_shared, are_copied=are_copied)[0].mean())


def passes_of_banks(addresses: NDArray[np.int64], item: int, banks: int, **others: Any) -> float:
    """Returns the passes of atomics in local memory, on average over rows; see `perfmodel.counting.atomics`."""
    return float(bank_passes(np.atleast_2d(addresses), item, banks, **others).mean())


def passes_of_sectors(addresses: NDArray[np.int64], item: int, block: int) -> float:
    """Returns the same of global memory."""
    return float(sector_passes(np.atleast_2d(addresses), block).mean())


def _distinct(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Returns each row sorted, and a mask of the numbers that are there for the first time."""
    ordered = np.sort(np.atleast_2d(rows), axis=-1)
    is_first = np.ones(ordered.shape, bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=is_first[:, 1:])
    return ordered, is_first


FLAGS = ("distinct", "fresh", "again", "joint")
KINDS: Mapping[str, Callable[..., float]] = {"block": blocks, "banks": cycles_of_banks}
OF_ATOMICS: Mapping[str, Callable[..., float]] = {"sector_passes": passes_of_sectors, "bank_passes": passes_of_banks}
"""Atomics have these in place of `KINDS`."""
QUESTIONS = {**KINDS, **OF_ATOMICS}
PASSES = "passes"
"""The word for the passes of atomics in global memory, by sectors of so many bytes."""
LARGEST_GROUP = 1024
"""So many work-items of a work-group are looked at together, which are all of them on NVIDIA's GPUs."""


def between_sizes(touched: Blocks, size: int, item: int = 1) -> float:
    """Returns how many blocks of `size` bytes are touched, from the numbers of larger and smaller ones.

    Args:
        item: bytes of an element, which is touched as a whole.
    """
    known = dict(touched)
    if 1 in known:
        known[item] = known[1] / item
    bytes_, numbers = zip(*sorted(known.items()), strict=True)
    return float(np.exp(np.interp(np.log(size), np.log(bytes_), np.log(np.maximum(numbers, 1e-9)))))


def bytes_touched(touched: Blocks, block: int, counts: KernelCounts, sizes: Sizes, item: int = 1) -> Floats:
    """Returns the bytes of the blocks that all work-groups touch, each counted by itself, as emulated ones did."""
    return counts.work_groups(sizes) * between_sizes(touched, block, item) * block


@dataclass(frozen=True)
class BySubgroups:
    """Asks for the mean number of blocks (or cycles) over the sub-groups of a group; the last may be partly empty.

    Attributes:
        update: what an atomic does.
        are_shared, are_copied: as for `perfmodel.counting.banks.bank_cycles`.
    """

    kind: str
    size: int
    width: int
    update: Update | None = None
    are_shared: bool = False
    are_copied: bool = False

    @property
    def period(self) -> int:
        return self.size if self.kind in ("block", "sector_passes") else self.size * WORD_BYTES

    def __call__(self, addresses: NDArray[np.int64], item: int) -> float:
        needs = QUESTIONS[self.kind]
        if self.update is not None:
            is_shared = bool(addresses.min() == addresses.max())
            if self.update.is_combined and is_shared:
                return 1.0
            if self.kind == "bank_passes":
                subgroups = math.ceil(len(addresses) / self.width)
                needs = partial(needs, update=self.update, subgroups=subgroups, is_shared=is_shared)
        if self.kind == "banks":
            needs = partial(cycles_of_banks, are_shared=self.are_shared, are_copied=self.are_copied)
        whole = len(addresses) // self.width * self.width
        if whole == 0:
            return needs(addresses[None], item, self.size)
        found = needs(addresses[:whole].reshape(-1, self.width), item, self.size)
        if whole == len(addresses):
            return found
        rest = needs(addresses[None, whole:], item, self.size)
        return (found * (whole // self.width) + rest) / (whole // self.width + 1)


@dataclass(frozen=True)
class BlockBytes:
    """Asks for the bytes of the blocks that a group touches, for each of its work-items."""

    block: int

    @property
    def period(self) -> int:
        return self.block

    def __call__(self, addresses: NDArray[np.int64], item: int) -> float:
        return blocks(addresses, item, self.block) * self.block / len(addresses)


def moved_by(*strides: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Returns strides along axes or loops in a form that can be compared."""
    return tuple(tuple(sorted((str(axis), str(stride)) for axis, stride in each.items())) for each in strides)


def side_by_side(access: AccessCount) -> Any:
    """Returns a key that accesses of one loop body share if they go through an array side by side; the access itself
    where data decide on its places."""
    strides = (access.local_strides, access.group_strides, access.loop_strides)
    if any(None in each.values() for each in strides):
        return id(access)
    return access.variable, access.direction, access.body, moved_by(*strides)


def block_bytes(counts: KernelCounts, access: AccessCount, sizes: Sizes, block: int) -> Floats:
    """Returns bytes of the blocks that a group touches in one execution, for each of its work-items: as many as lead to
    another block by the loop's step, where addresses are not known."""
    known = of_group(counts, access, sizes, BlockBytes(block))
    return max(block, access.bits // 8) * moved_on(access, block, sizes) if known is None else known


def part_of_record(access: AccessCount, counts: KernelCounts, block: int) -> float:
    """Returns the part of its own blocks that an access counts with, where others of its loop body are always as far
    from it, as those of a record's other fields: they share the blocks that the record lies in."""
    if access.shared is not None:
        return between_sizes(access.shared, block)
    if access.addresses is None:
        return 1.0
    what = (access.variable, access.direction, access.body, access.addresses)
    fields = [a for a in counts.accesses if (a.variable, a.direction, a.body, a.addresses) == what]
    record = sum(field.bits // 8 for field in fields)
    return min(max(record, block) / sum(max(field.bits // 8, block) for field in fields), 1.0)


def moved_on(access: AccessCount, block: int, sizes: Sizes) -> Floats:
    """Returns the part of the innermost loop's iterations in which its step leads a work-item, wherever it began, to
    another block."""
    *_, step = (None, *access.loop_strides.values())
    return np.asarray(1.0) if step is None else np.minimum(np.abs(step(sizes)) * (access.bits // 8) / block, 1.0)


def separate_runs(access: AccessCount, block: int, items: Floats) -> Floats:
    """Returns in how many runs the places of a sub-group's work-items lie side by side, where strides don't say it.

    A run that begins anywhere touches a block for each of its own sizes, and one more but for the size of its last
    element; so the blocks that are touched tell how many runs there are.

    Args:
        items: the work-items that take part.
    """
    item = access.bits // 8
    if access.touched is None or item >= block:
        return items
    runs = (between_sizes(access.touched, block) - items * item / block) / (1 - item / block)
    found: Floats = np.clip(runs, 1.0, np.maximum(items, 1.0))
    return found


def _are_at_one_place(access: AccessCount, sizes: Sizes) -> bool:
    """Returns whether all copies that a compiler made of an access go to where the first goes."""
    steps = [step for loop, step in access.loop_strides.items() if loop not in access.body]
    return all(step is not None and not np.any(step(sizes)) for step in steps)


class TransactionFeature(AccessFeature):
    """Executions by sub-groups, of 32 work-items unless said, each times its blocks (or cycles of the busiest bank).

    Addresses follow from the strides along the local axes, with the group's first work-item at a block's start. Of an
    index that is not affine, they are those of the first work-items, if these are known; else each
    work-item has any block of its array, and a bank of its own. Of a kernel that was emulated, they are what was
    recorded. Atomics in local memory take a cycle for each work-item at a bank, as words that meet are changed one
    after the other; with ``passes``, atomics in global memory ask for a sector as often as most work-items meet at one
    of its places. With ``fresh``, only blocks count that the innermost loop's iteration before has not accessed, by
    its step; with ``again``, those that it has to ask for again, where the first-level cache has lost what the wait
    before has brought: iterations that wait together ask once. With ``distinct``, accesses of one loop body that go
    through an array side by side (fields of a struct, neighbours of a point, the next elements of a row) count once,
    as they share blocks. With ``joint``, so do the sub-groups of a work-group.
    """

    unit = "transaction"

    def __init__(
        self,
        name: FeatureName,
        pattern: AccessPattern,
        kind: str,
        size: int,
        subgroup_size: int = SUBGROUP_SIZE,
        is_distinct: bool = False,
        is_fresh: bool = False,
        is_again: bool = False,
        is_joint: bool = False,
    ) -> None:
        super().__init__(name, replace(pattern, granularity=Granularity("subgroup", subgroup_size)))
        self.kind, self.size, self.width = kind, size, subgroup_size
        self.is_distinct, self.is_fresh, self.is_again, self.is_joint = is_distinct, is_fresh, is_again, is_joint

    def total(self, pattern: AccessPattern, counts: KernelCounts, sizes: Sizes) -> Floats:
        if not self.is_distinct:
            return super().total(pattern, counts, sizes)
        most: dict[Any, Floats] = {}
        for access, found in self.each(pattern, counts, sizes):
            key = side_by_side(access)
            most[key] = np.maximum(most.get(key, np.asarray(0.0)), found)
        return sum(most.values(), np.asarray(0.0))

    def weight(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        found = self.at_once(counts, access, sizes)
        if self.is_fresh:
            return found * self.fresh_part(counts, access, sizes)
        return found * self.again_part(counts, access, sizes) if self.is_again else found

    def again_part(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns the part of an access's blocks that come again where no cache keeps them from one wait to the next:
        one for each wait, but for those that the loop's steps bring; none of iterations that are all written out, which
        wait together."""
        if not access.body:
            return np.asarray(0.0)
        waits = access.wait * quotient(access.rounds.workitem(sizes), access.executions.workitem(sizes), 1.0)
        rolled = {loop: step for loop, step in access.loop_strides.items() if loop in access.body}
        if not access.copies and [*access.loop_strides][-1:] != [*rolled][-1:]:
            # Iterations that a programmer or a compiler writes out wait together; then a loop around them moves on.
            between = self.fresh_part(counts, replace(access, loop_strides=rolled), sizes)
            return np.asarray(np.minimum(waits, 1.0) * (1.0 - between))
        part: Floats = np.maximum(np.minimum(waits, 1.0) - self.fresh_part(counts, access, sizes), 0.0)
        return part

    def fresh_part(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns the part of an access's blocks that the innermost loop's iteration before has not accessed.

        A loop moves what a sub-group accesses side by side by its step: whole blocks of work-items that lie apart, and
        a part of their row where they lie next to each other. Where all are at one place, measured times say that it
        brings a whole line. Stores of iterations that are unrolled follow each other at once, none after a while; those
        of copies that a compiler made of a body share its step, or come again where they all go to one place.
        """
        is_store = access.direction == "store"
        steps = [step for loop, step in access.loop_strides.items() if not is_store or loop in access.body]
        step = steps[-1] if steps else None
        beside = access.local_strides.get(0, ZERO)
        if is_store and access.copies and _are_at_one_place(access, sizes):
            return self.fresh_part(counts, replace(access, copies=()), sizes) / math.prod(access.copies)
        if step is None:
            return np.asarray(1.0)
        item = access.bits // 8
        if beside is None:
            touched = None if access.touched is None else between_sizes(access.touched, self.size)
            moved = moved_on(access, self.size, sizes)
            if not touched:
                return moved
            runs = separate_runs(access, self.size, self.items_at_once(access, sizes))
            return np.minimum(moved * runs / touched, 1.0)
        apart, neighbours = np.abs(beside(sizes)) * item, np.minimum(counts.local_size[0](sizes), self.width)
        row = np.where(apart <= self.size, np.maximum(apart * neighbours, self.size), self.size)
        row = np.where(apart == 0, np.maximum(LINE_BYTES, self.size), row)
        copies = math.prod(access.copies) if is_store else 1
        part: Floats = np.minimum(np.abs(step(sizes)) * item / copies / row, 1.0)
        return part

    def at_once(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns the transactions (or cycles) of one execution, on average over the sub-groups of a work-group."""
        compute = partial(self._at_once, counts, access, sizes)
        key = (TransactionFeature, id(access), self.kind, self.size, self.width, self.is_joint)
        found: Floats = sizes.once(key, compute) if isinstance(sizes, Block) else compute()
        return found

    def items_at_once(self, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns how many of a sub-group's work-items take part in one execution, on average."""
        made = self.pattern.granularity.executions(access.executions, self.name)(sizes)
        return quotient(access.executions.workitem(sizes), made, 0.0)

    def _at_once(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        is_of_banks = self.kind == "banks" and access.space == "local"
        kind = "bank_passes" if is_of_banks and access.direction == "atomic" else self.kind
        width, sharing = self.width, np.asarray(1.0)
        if self.is_joint:
            group = math.prod(size(sizes) for size in counts.local_size)
            width, sharing = LARGEST_GROUP, np.ceil(np.minimum(group, LARGEST_GROUP) / self.width)
        if access.recorded is not None:
            made = self.pattern.granularity.executions(access.executions, self.name)(sizes)
            recorded = access.recorded(width, kind, self.size)
            return quotient(recorded, made * sharing, 0.0)
        question = BySubgroups(
            kind=kind,
            size=self.size,
            width=width,
            update=update_of(access) if kind in OF_ATOMICS else None,
            are_shared=share_places(access.direction, access.space, is_constant="constant" in access.tags),
            are_copied="copied" in access.tags,
        )
        found = of_group(counts, access, sizes, question) if access.space != "scratch" else None
        if found is not None:
            return self.of_active(found / sharing, counts, access, sizes)
        if access.passes is not None and (is_of_banks or kind == "sector_passes"):
            return np.asarray(access.passes)
        if kind == "sector_passes":
            return self.passes_anywhere(counts, access, sizes)
        if self.kind == "banks":  # one for a copy, of which work-items get nothing
            handed_out = 0 if "copied" in access.tags else access.bits / 8
            return np.maximum(self.items_at_once(access, sizes) * handed_out / (self.size * WORD_BYTES), 1.0)
        if access.touched is not None:
            return np.asarray(between_sizes(access.touched, self.size))
        return self.anywhere(counts, access, sizes)

    def of_active(self, found: Floats, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns what is left of a sub-group's blocks (or cycles) where some work-items, any of them, don't take part,
        as their loops have ended, or conditions don't hold: a block as long as one of those takes part that share it,
        and of several that each work-item has, its part."""
        group = math.prod(size(sizes) for size in counts.local_size)
        lanes = group / np.ceil(group / self.width)
        made = self.pattern.granularity.executions(access.executions, self.name)(sizes) * lanes
        taking_part = quotient(access.executions.workitem(sizes), made, 1.0)
        left_out = alike(np.clip(1.0 - taking_part, 0.0, 1.0))
        missing = np.power(left_out, np.maximum(lanes / np.maximum(found, 1e-9), 1.0))
        touched: Floats = np.maximum(found * (1.0 - missing), np.minimum(found, 1.0))
        return touched

    def passes_anywhere(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns how many passes atomics are expected to take, each work-item at any place of an array."""
        n_bytes = bytes_of_array(counts, access, sizes)
        words = np.inf if n_bytes is None else n_bytes / (access.bits // 8)
        return np.asarray(expected_passes(words, self.width), np.float64)

    def anywhere(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns how many blocks a sub-group is expected to hit in an array, each work-item any of them."""
        if access.space == "scratch":
            return np.asarray(self.of_scratch(access, dict(counts.scratch)[access.variable]))
        n_bytes = bytes_of_array(counts, access, sizes)
        if access.space != "global" or n_bytes is None:
            return np.asarray(float(self.width))
        among = np.maximum(np.ceil(n_bytes / self.size), 1.0)
        hit: Floats = among * -np.expm1(self.width * np.log1p(-1 / np.maximum(among, 1.0 + 1e-9)))
        return hit

    def of_scratch(self, access: AccessCount, n_bytes: int) -> float:
        """Returns how many blocks a sub-group hits in its work-items' own arrays, whose words lie side by side.

        Work-items at the same place in theirs access neighbouring words; those at different places, other rows.
        """
        words, item = max(access.bits // 8 // WORD_BYTES, 1), min(access.bits // 8, WORD_BYTES)
        if not access.local_strides:
            return max(1.0, self.width * words * item / self.size)
        rows, neighbours = max(n_bytes // (words * WORD_BYTES), 2), min(max(self.size // WORD_BYTES, 1), self.width)
        # Work-items whose words of one row share a block hit it if any of them goes to that row.
        hit = -rows * np.expm1(neighbours * np.log1p(-1 / rows))
        return float(self.width / neighbours * words * hit)


def update_of(access: AccessCount) -> Update:
    """Returns what an atomic does; a sum where nobody said it."""
    return access.update or Update("add", access.dtype)


def bytes_of_array(counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats | None:
    """Returns the bytes of the array that is accessed, or those of a table that the access reaches; None where they are
    not known."""
    array = counts.footprint_of(access.variable)
    if array is None:
        return None if access.reach is None else np.asarray(float(access.reach))
    return array.array_bytes(sizes)


class TransactionFamily(AccessFamily):
    prefix: tuple[str, ...] = ("mem", "transactions")
    summary = "aligned blocks of bytes that sub-groups access at once, or cycles of banks, or passes of atomics"
    examples: tuple[str, ...] = (
        "f_mem_transactions_global_load_block:128",
        "f_mem_transactions_local_banks:32",
        "f_mem_transactions_global_block:64_granularity:subgroup64",
        "f_mem_transactions_global_atomic_passes:32",
    )

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        spaces = {access.space for access in counts.accesses}
        if "global" in spaces:
            yield from (
                f"{self.name}_global{direction}_block:{size}"
                for direction in ("", "_load", "_store")
                for size in (32, 128)
            )
            yield f"{self.name}_global_load_banks:32"
        if "local" in spaces:
            yield f"{self.name}_local_banks:32"

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> AccessFeature:
        flags = {word.key: word for word in words if word.key in FLAGS and word.condition is None}
        words = tuple(word for word in words if word is not flags.get(word.key))
        own = [word for word in words if word.key in (*KINDS, PASSES)]
        if len(own) != 1:
            raise FeatureError(
                f"feature {name.text!r} needs one of block:BYTES, banks:NUMBER and passes:BYTES; write "
                f"{self.examples[0]} or {self.examples[1]}"
            )
        (word,) = own
        if word.key != "block" and flags:
            raise FeatureError(
                f"feature {name.text!r} is of {word.key}, where {next(iter(flags))!r} means nothing; write "
                "block:BYTES, or leave it out",
                word.offset,
            )
        condition = word.condition or ""
        if not (condition.isdecimal() and len(condition) < 5 and int(condition) > 0):
            raise FeatureError(f"{word.key}:{condition} is no whole number from 1 to 9999", word.offset)
        found = super().parse(name, tuple(w for w in words if w is not word))
        pattern, subgroup_size = found.pattern, SUBGROUP_SIZE
        for other in words:
            if other.key == "granularity":
                # Without a number it would be a second name of the feature that has none of this.
                if pattern.granularity.subgroup_size is None or other.condition == "subgroup":
                    raise FeatureError(
                        f"feature {name.text!r} is by sub-groups; leave granularity out, or write "
                        "granularity:subgroup64 for those of 64 work-items",
                        other.offset,
                    )
                subgroup_size = pattern.granularity.subgroup_size
        if pattern.space not in ("global", "local", "scratch"):
            raise FeatureError(f"feature {name.text!r} is of global, local or scratch memory; write which", word.offset)
        if word.key == PASSES and (pattern.space, pattern.direction) != ("global", "atomic"):
            raise FeatureError(
                f"feature {name.text!r} asks for passes of what is no atomic in global memory; write global_atomic",
                word.offset,
            )
        kind = "sector_passes" if word.key == PASSES else word.key
        return TransactionFeature(
            name, pattern, kind, int(condition), subgroup_size, *(flag in flags for flag in FLAGS)
        )
