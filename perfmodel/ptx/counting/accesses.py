"""Counts the accesses of an emulated launch; those that a compiler made of one place in the source are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from perfmodel.counting.atomics import SECTOR, Update
from perfmodel.counting.contention import mean_contention
from perfmodel.counting.counts import AccessCount, Blocks, Executions
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.counting.blocks_alike import fullest
from perfmodel.ptx.counting.copies_at_once import copies_under_way
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.counting.executions import added, constant, is_partly
from perfmodel.ptx.counting.launch import EmulatedLaunch
from perfmodel.ptx.counting.operations import Purposes
from perfmodel.ptx.counting.parted_stores import parted_stores
from perfmodel.ptx.counting.reaches import Reaches
from perfmodel.ptx.counting.regions import bytes_over_grid, shape_of
from perfmodel.ptx.counting.stores_in_place import loads_of_stored, stores_in_place
from perfmodel.ptx.counting.unrolling import Unrolling
from perfmodel.ptx.counting.updates import Updates
from perfmodel.ptx.counting.vector_loads import with_vectors
from perfmodel.ptx.counting.waits import Waits
from perfmodel.ptx.counting.written_out import places_of, steps_of
from perfmodel.ptx.dataflow import BULK, IMAGES, address_of
from perfmodel.ptx.syntax import Instruction, Symbol

GROUPS, MOST_ITEMS, ALIGNED = 8, 256, 256
"""The first threads of so many blocks are kept of accesses whose addresses jump about, from multiples of 256 bytes."""
_TAGS = {"const": "constant", "async": "copied"}
_SPACES = {"global": "global", "shared": "local", "local": "scratch"}


class AccessCounter:
    """Finds the accesses of a launch, each of one array."""

    def __init__(self, launch: EmulatedLaunch, purposes: Purposes) -> None:
        self.launch, self.emulation, self.code = launch, launch.emulation, launch.code
        self._width = launch.width
        self._waits = Waits(self.code)
        self._updates = Updates(launch)
        self._purposes = purposes

    @cached_property
    def reaches(self) -> Reaches:
        """The places that the accesses go to."""
        return Reaches(self.launch, self.found)

    @cached_property
    def found(self) -> list[CountedAccess]:
        """The accesses, those of one instruction apart by the arrays that they go to."""
        blocks = dict(self.launch.instructions())
        found = []
        noted = self.emulation.addresses
        accesses = with_vectors(self.code.dataflow, noted) if self.launch.has_vectors else iter(noted.items())
        for instruction, by_array in accesses:
            made = {key: each.executions for key, each in by_array.items()}
            total = sum(made.values()) or 1
            for key, each in by_array.items():
                space = _SPACES.get(each.space)
                is_kept = space == "scratch" and not self.launch.has_scratch
                if space is not None and not is_kept and not _is_operand(instruction):
                    share = made[key] / total
                    addresses = AccessAddresses(each)
                    found.append(
                        CountedAccess(
                            instruction=instruction,
                            block=blocks[instruction],
                            name=each.name or space,
                            space=space,
                            addresses=addresses,
                            share=share,
                        )
                    )
        return found

    def _dtype(self, access: CountedAccess) -> str:
        """Returns the type of what is accessed: that of the array where the code moves bits of its width."""
        if access.instruction.opcode in BULK:
            return self.launch.arrays[access.name][0] if access.name in self.launch.arrays else "uint8"
        own = np.dtype(self.code.dataflow.dtype_of(access.instruction))
        declared = np.dtype(self.launch.arrays[access.name][0]) if access.name in self.launch.arrays else own
        return declared.name if declared.itemsize == own.itemsize else own.name

    @cached_property
    def _unrolling(self) -> Unrolling:
        arrays: dict[object, str] = {each.instruction: each.name for each in self.found}
        return Unrolling(self.code, self._purposes, arrays)

    @cached_property
    def _parted(self) -> frozenset[Instruction]:
        return parted_stores(self.code, self.found)

    @cached_property
    def _in_place(self) -> frozenset[CountedAccess]:
        return stores_in_place(self.code, self.found)

    @cached_property
    def _of_stored(self) -> frozenset[CountedAccess]:
        return loads_of_stored(self.found)

    def counts(self) -> Iterator[AccessCount]:
        """Yields accesses; those that a compiler made of one place in the source, as by unrolling, are one."""
        merged: dict[Any, list[tuple[CountedAccess, AccessCount]]] = {}
        for number, access in enumerate(self.found):
            if self._updates.retries.get(access.instruction) is not None:
                continue  # what is tried again is counted by the first try
            count = self._count(access)
            strides = (access.addresses.local_strides, access.addresses.group_strides)
            source = access.instruction.source or number
            key = (source, count.space, count.variable, count.direction, count.dtype, count.bits, strides, count.body)
            merged.setdefault(key, []).append((access, count))
        for same in merged.values():
            yield self._joined(same)

    def _joined(self, same: list[tuple[CountedAccess, AccessCount]]) -> AccessCount:
        """Returns accesses of one place in the source as one; those of one iteration don't wait for each other."""
        with_subgroups = self.launch.subgroup_size is not None
        first = same[0][1]
        if len(same) == 1:
            return first
        if same[0][0].instruction.opcode in BULK:
            sums = [[getattr(count, name) for _, count in same] for name in ("executions", "rounds")]
            executions, waits = (added(each, with_subgroups) for each in sums)
            return replace(first, executions=executions, rounds=waits)
        rounds, shares, depths, copies = [], [], [], 0
        blocks = {access.block for access, _ in same}
        ways = {block: self._waits.shared_by(block, same[0][0].instruction) for block in blocks}
        for block in blocks:
            own = [access for access, _ in same if access.block == block]
            times = min(self._unrolling.times(block, same[0][0].instruction.source), len(own))
            rounds.append(self._rounds_together(own, times))
            found = [self._waits.of(access.instruction) for access in own]
            together = sum(way == ways[block] for way in ways.values()) if ways[block] is not None else 1
            shares.append(len({each.level for each in found}) * found[0].share / times / together)
            depths.append(found[0].depth / times / len(blocks))
            copies += times
        executions = added([count.executions for _, count in same], with_subgroups)
        known = [count.recorded for _, count in same if count.recorded is not None]
        recorded = partial(_added_up, known) if known else None
        level = min(count.level for _, count in same)
        strides, numbers = self._written_out([access.addresses for access, _ in same], first, copies)
        return replace(
            first,
            loop_strides=strides,
            copies=numbers,
            executions=executions,
            rounds=added(rounds, with_subgroups),
            recorded=recorded,
            wait=min(shares),
            level=level,
            depth=min(depths),
            is_again=all(count.is_again for _, count in same),
            is_parted=any(count.is_parted for _, count in same),
            reach=max((count.reach for _, count in same if count.reach is not None), default=None),
            touched=_mean_blocks([(count.executions, count.touched) for _, count in same]),
            phases=_mean([(count.executions, count.phases) for _, count in same]),
            passes=_mean([(count.executions, count.passes) for _, count in same]),
            contention=mean_contention((float(each.executions.workitem({})), each.contention) for _, each in same),
        )

    def _written_out(
        self, same: Sequence[AccessAddresses], first: AccessCount, copies: int
    ) -> tuple[dict[str, QuasiPolynomial | None], tuple[int, ...]]:
        """Returns the strides of loops around an access, those included that copies of it stand for, and how often
        these go round."""
        places = None if self.code.kernel.is_of_tiles else places_of(same)  # a tile is no loop
        steps = None if places is None else steps_of(places)
        if steps is None:
            return {name: step and step.scaled(1 / copies) for name, step in first.loop_strides.items()}, ()
        if not steps and first.direction == "store":  # of a sum that a loop adds to, where arrays may overlap
            steps = ((0, len(same)),)
        within = {
            f"{number} copies, {depth}": _stride(step, first.bits // 8) for depth, (step, number) in enumerate(steps)
        }
        return {**first.loop_strides, **within}, tuple(number for _, number in steps)

    def _count(self, access: CountedAccess) -> AccessCount:
        instruction, addresses = access.instruction, access.addresses
        dtype = self._dtype(access)
        executions = self._executions(access)
        rank = len(self.emulation.launch.block)
        loops = tuple(loop.name for loop in self.code.flow.around(access.block))
        at_once = addresses.noted.n_bytes
        local, group = addresses.local_strides, addresses.group_strides
        if access.space == "scratch" and not self.launch.is_known(instruction):
            local = (None, None, None)
        is_scattered = self._is_scattered(access)
        is_anywhere = is_scattered and access.space == "global"
        jumps = is_anywhere and access in self.reaches.jumping
        are_places_known = is_anywhere and self.launch.is_known(instruction)
        touched = self._touched(access) if are_places_known and not jumps else None
        has_record = self._has_record(access, executions, is_scattered, jumps)
        update = self._updates.of(access, dtype) if access.direction == "atomic" else None
        first_tries = self._updates.first_tries(access)
        passes = None
        if access.direction == "atomic" and touched is not None:
            passes = addresses.sector_passes(self._width, SECTOR, are_tried_again=first_tries is not None)
        phases = None
        if access.direction == "load" and are_places_known:
            phases = addresses.phases(self._width, SECTOR)
        may_meet = access.direction in ("atomic", "store") and touched is not None
        wait = self._waits.of(instruction)
        return AccessCount(
            space=access.space,
            variable=access.name,
            tags=self._tags_of(access),
            dtype=dtype,
            bits=8 * at_once,
            direction=access.direction,
            local_strides=_strides(local[: max(rank, 1)], at_once),
            group_strides=_strides((None, None, None) if group is None else group, at_once),
            loop_strides={loops[-1]: _stride(addresses.steps.stride, at_once)} if loops else {},
            executions=first_tries or executions,
            body=loops,
            rounds=self._rounds(instruction, access.block, executions),
            footprint=self._footprint_of(access, np.dtype(dtype).itemsize),
            text=self._text(access),
            instruction=f"{instruction.name} in line {instruction.line}",
            pattern=self._pattern(access),
            addresses=addresses.first_addresses(GROUPS, MOST_ITEMS, ALIGNED) if jumps else None,
            reach=self.reaches.of(access, touched),
            recorded=partial(self._recorded, access, update) if has_record else None,
            touched=touched,
            phases=phases,
            shared=self.reaches.jumping[access] if jumps else None,
            passes=passes,
            update=update,
            contention=self._updates.contention(access, dtype) if may_meet else None,
            is_tried_again=first_tries is not None,
            wait=wait.share,
            level=wait.level,
            depth=wait.depth,
            is_again=wait.is_again,
            is_parted=instruction in self._parted,
        )

    @staticmethod
    def _is_scattered(access: CountedAccess) -> bool:
        """Returns whether no strides say where an access goes, or strides that are no multiples of what it moves."""
        local, group = access.addresses.local_strides, access.addresses.group_strides
        at_once = access.addresses.noted.n_bytes
        is_uneven = any(step is not None and step % at_once for step in (*local, *(group or ())))
        return is_uneven or None in local or (group is None and access.space == "global")

    def _touched(self, access: CountedAccess) -> Blocks:
        """Returns the blocks that a sub-group touches at once."""
        sizes = (4, 32, 128) if access.instruction.has("const") else (32, 128)
        return tuple((size, access.addresses.blocks_of_subgroups(self._width, size)) for size in sizes)

    def _has_record(self, access: CountedAccess, executions: Executions, is_scattered: bool, jumps: bool) -> bool:
        """Returns whether what was recorded of an access says more of its transactions than its strides do."""
        is_cut = access.space in ("global", "local") and not is_scattered and is_partly(executions)
        is_loaded = access.direction == "load" and not access.instruction.has("async")
        has_banks = access.space == "local" or (access.space == "global" and is_loaded)
        is_of_image = access.direction == "store" and access.addresses.is_of_image
        says_more = is_cut or is_of_image or access.space == "scratch" or (has_banks and is_scattered and not jumps)
        return says_more and self.launch.is_known(access.instruction)

    def _tags_of(self, access: CountedAccess) -> frozenset[str]:
        instruction = access.instruction
        if instruction.opcode in IMAGES:
            is_volume, is_filtered = instruction.has("3d"), instruction in self.emulation.filtered
            told = {"image": True, "volume": is_volume, "filtered": is_filtered, "thick": is_volume and is_filtered}
            return frozenset(tag for tag, is_so in told.items() if is_so)
        of_words = {tag: instruction.has(word) for word, tag in _TAGS.items()}
        told = {**of_words, "changed": access in self._in_place, "stored": access in self._of_stored}
        return frozenset(tag for tag, is_so in told.items() if is_so)

    @staticmethod
    def _text(access: CountedAccess) -> str:
        where = access.instruction.source
        if where:
            return f"{access.name} at {where.line}:{where.column}"
        return f"{access.name} in line {access.instruction.line}"

    def _executions(self, access: CountedAccess) -> Executions:
        return self.launch.of(access.instruction, access.block).scaled(access.share)

    def _rounds(self, instruction: Instruction, block: int, executions: Executions) -> Executions:
        """Returns how often an access is waited for; several iterations share a wait for copies that they all began."""
        if instruction.opcode in BULK:
            return self.launch.copies(instruction, block)
        return (
            executions.scaled(1 / copies_under_way(self.code.flow, block)) if instruction.has("async") else executions
        )

    def _rounds_together(self, accesses: Sequence[CountedAccess], times: int) -> Executions:
        """Returns how often accesses of one block that do not wait for each other are waited for, where it holds so
        many iterations of them."""
        instructions, block = [access.instruction for access in accesses], accesses[0].block
        share = sum(access.share for access in accesses) / len(accesses)
        if times == 1:
            return self._rounds(instructions[0], block, self.launch.any_of(instructions, block).scaled(share))
        each = [self._rounds(access.instruction, block, self._executions(access)) for access in accesses]
        return added(each, self.launch.subgroup_size is not None).scaled(times / len(each))

    def _recorded(self, access: CountedAccess, update: Update | None, width: int, kind: str, size: int) -> float:
        """Returns the transactions of the launch, or cycles of the busiest bank, of one access."""
        _, warps, _ = self.emulation.tally(access.instruction, access.block).by_block()
        made = float(self.launch.weights @ warps) * access.share
        return made * access.at_once(update, width, kind, size)

    def _pattern(self, access: CountedAccess) -> str:
        if access.space == "scratch":
            return ""
        local = access.addresses.local_strides
        if None in local:
            return "complex"
        axis = next((k for k, extent in enumerate(self.emulation.lanes.block) if extent != 1), None)
        step = abs((0 if axis is None else local[axis]) or 0)
        widths = {access.addresses.noted.n_bytes}
        if access.name in self.launch.arrays:  # a compiler may load the part of an element that is used
            widths.add(np.dtype(self.launch.arrays[access.name][0]).itemsize)
        return "constant" if step == 0 else "continuous" if step in widths else "complex"

    def _footprint_of(self, access: CountedAccess, item: int) -> QuasiPolynomial | None:
        """Returns the distinct elements that one access touches over the launch."""
        steps = access.addresses.group_strides
        if steps is None or access.space != "global":
            return None
        one = access.addresses.region_of(fullest(self.launch, [access]))
        key = shape_of(one), steps
        if key not in self._of_all_blocks:
            self._of_all_blocks[key] = bytes_over_grid(one, steps, self.emulation.lanes.grid)
        most = self.launch.arrays[access.name][1] if access.name in self.launch.arrays else np.inf
        return constant(min(self._of_all_blocks[key] / item, most))

    @cached_property
    def _of_all_blocks(self) -> dict[tuple[bytes, tuple[int, ...]], float]:
        """The bytes that all blocks touch by what one does, which is the same for the copies of an unrolled loop."""
        return {}


def _is_operand(instruction: Instruction) -> bool:
    """Returns True for a number in constant memory at a place that the text says: machine instructions have it as an
    operand, and load nothing."""
    address = address_of(instruction)
    return instruction.has("const") and address is not None and isinstance(address.base, Symbol)


def _added_up(recorded: list[Callable[[int, str, int], float]], width: int, kind: str, size: int) -> float:
    return sum(each(width, kind, size) for each in recorded)


def _mean(several: Sequence[tuple[Executions, float | None]]) -> float | None:
    """Returns the mean of what is known of accesses that are one, each as often as it is executed."""
    known = [(float(made.workitem({})), each) for made, each in several if each is not None]
    if not known:
        return None
    total = sum(made for made, _ in known)
    return sum(made * each for made, each in known) / total if total else known[0][1]


def _mean_blocks(several: Sequence[tuple[Executions, Blocks | None]]) -> Blocks | None:
    """Returns the mean likewise, of each size of blocks."""
    known = [(made, dict(each)) for made, each in several if each is not None]
    if not known:
        return None
    sizes = known[0][1]
    return tuple((size, _mean([(made, each.get(size)) for made, each in known]) or 0.0) for size in sizes)


def _strides(strides: tuple[int | None, ...], at_once: int) -> dict[int, QuasiPolynomial | None]:
    """Returns strides by axis in what is accessed at once: a vector is one element."""
    return {axis: _stride(stride, at_once) for axis, stride in enumerate(strides) if stride != 0}


def _stride(stride: int | None, at_once: int) -> QuasiPolynomial | None:
    return None if stride is None or stride % at_once else constant(stride // at_once)
