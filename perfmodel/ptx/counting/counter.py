"""Counts a kernel from the emulation of some blocks of its grid, each of which stands for so many others."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from perfmodel.counting.counts import (
    RESERVED,
    AccessCount,
    Blocks,
    BranchCount,
    ChainCount,
    CollectiveCount,
    Executions,
    Footprint,
    KernelCounts,
    OperationCount,
)
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.ptx.counting.access_places import AccessPlaces, touched_by
from perfmodel.ptx.counting.chains import chains_of
from perfmodel.ptx.counting.executions import added, constant, is_partly, scaled
from perfmodel.ptx.counting.operations import COLLECTIVE, Purposes, own_operations
from perfmodel.ptx.counting.origins import Origins
from perfmodel.ptx.counting.regions import BLOCK, over_grid
from perfmodel.ptx.counting.three_inputs import joined_bitwise
from perfmodel.ptx.counting.turns_at_once import copies_under_way
from perfmodel.ptx.counting.unrolling import Unrolling
from perfmodel.ptx.counting.vector_loads import with_vectors
from perfmodel.ptx.counting.waits import Waits
from perfmodel.ptx.dataflow import BULK, LOADS, STORES, registers_in
from perfmodel.ptx.emulation.emulation import Emulation
from perfmodel.ptx.emulation.recording import Tally
from perfmodel.ptx.liveness import words_at_once
from perfmodel.ptx.syntax import Instruction

GROUPS, MOST_ITEMS, ALIGNED = 8, 256, 256
"""The first threads of so many blocks are kept of accesses whose places jump about, from multiples of 256 bytes."""
SECTOR = 32
WORD = 4
TOUCHED = (1, 32, 64, 128)
"""Blocks of so many bytes are counted where strides don't say what is touched."""
_KINDS = {"shfl": "shuffle", "vote": "vote", "match": "vote", "redux": "reduce"}
_DIRECTIONS = {**dict.fromkeys(LOADS, "load"), **dict.fromkeys(STORES, "store"), "atom": "atomic", "red": "atomic"}
_SPACES = {"global": "global", "shared": "local", "local": "scratch"}


def counts_of(
    emulation: Emulation,
    arrays: Mapping[str, tuple[str, int]],
    given: Collection[str],
    subgroup_size: int | None,
) -> KernelCounts:
    """Returns the counts of a launch from the emulation of some of its blocks.

    Args:
        arrays: the type and number of elements of each array.
        given: arrays whose contents are known, so that what depends on them is as it is.
    """
    return _Counter(emulation, arrays, given, subgroup_size).counts()


@dataclass(eq=False)
class _Access:
    """One access of one array, and how often it is executed."""

    instruction: Instruction
    block: int
    name: str
    space: str
    places: AccessPlaces
    share: float

    @property
    def direction(self) -> str:
        if self.instruction.opcode in BULK:
            if self.instruction.opcode == "cp.reduce.async.bulk":
                return "atomic"
            return "load" if self.instruction.has("mbarrier::complete_tx::bytes") else "store"
        return _DIRECTIONS[self.instruction.opcode]


class _Counter:
    def __init__(
        self,
        emulation: Emulation,
        arrays: Mapping[str, tuple[str, int]],
        given: Collection[str],
        subgroup_size: int | None,
    ) -> None:
        self.emulation, self.code = emulation, emulation.code
        self.arrays, self.given, self.subgroup_size = arrays, given, subgroup_size
        self.weights = np.asarray(emulation.sample.weights)
        self.purposes = Purposes(self.code)
        self.origins = Origins(emulation)
        self._executions: dict[int, Executions] = {}
        self.items = emulation.launch.blocks * emulation.lanes.threads

    def counts(self) -> KernelCounts:
        launch = self.emulation.launch
        return KernelCounts(
            operations=tuple(self.operations(True)),
            chains=tuple(self.chains()),
            accesses=tuple(self.accesses()),
            footprints=tuple(self.footprints()),
            branches=tuple(self.branches()),
            barriers=self.barriers(),
            launches=constant(1),
            work_groups=constant(launch.blocks),
            work_items=constant(self.items),
            local_size=tuple(map(constant, self.emulation.lanes.block[: len(launch.block)])),
            subgroup_size=self.subgroup_size,
            exact=True,
            index_operations=tuple(self.operations(False)),
            collectives=tuple(self.collectives()),
            sampled=self.is_estimate,
            scratch=tuple(self.scratch()),
            registers=words_at_once(self.code) + RESERVED,
            local_bytes=constant(launch.shared + self.declared("shared")),
        )

    @cached_property
    def is_estimate(self) -> bool:
        """True where blocks that stand for several others did not all do the same."""
        several = self.weights > 1
        done = np.stack([tally.by_block()[0] for tally in self.emulation.blocks])[:, several]
        return bool(done.size) and bool(np.any(done != done[:, :1]))

    # --- how often

    def executions(self, tally: Tally) -> Executions:
        key = id(tally)
        if key not in self._executions:
            items, warps, groups = (float(self.weights @ numbers) for numbers in tally.by_block())
            self._executions[key] = Executions(
                constant(items),
                None if self.subgroup_size is None else constant(warps),
                constant(groups),
                (constant(self.items * tally.most()),),
            )
        return self._executions[key]

    def of(self, instruction: Instruction, block: int) -> Executions:
        return self.executions(self.emulation.tally(instruction, block))

    def copies(self, instruction: Instruction, block: int) -> Executions:
        """Returns how often a copy of a tile is made, each of which is waited for once."""
        emulation = self.emulation
        return self.executions(emulation.copied.get(instruction, emulation.blocks[block]))

    def instructions(self) -> Iterator[tuple[Instruction, int]]:
        for block in self.code.flow.blocks:
            for instruction in block.instructions:
                yield instruction, block.number

    # --- what

    def operations(self, of_values: bool) -> Iterator[OperationCount]:
        """Yields operations, those of one block and kind together."""
        found: dict[tuple[str, str, int], tuple[Executions, int]] = {}
        joined = joined_bitwise(self.code.dataflow)
        for instruction, block in self.instructions():
            own = own_operations(instruction)
            if not own or instruction in joined or self.purposes.values(instruction) != of_values:
                continue
            if not of_values and not self.purposes.indices(instruction):
                continue
            executions = self.of(instruction, block)
            for (kind, dtype), times in own.items():
                key = kind, dtype, id(executions)
                found[key] = executions, times + (found[key][1] if key in found else 0)
        for (kind, dtype, _), (executions, times) in found.items():
            yield OperationCount(kind, dtype, times, executions)

    def chains(self) -> Iterator[ChainCount]:
        for chain in chains_of(self.code, self.purposes):
            operations = tuple((kind, dtype, times) for (kind, dtype), times in chain.operations.items())
            loops = tuple(loop.name for loop in self.code.flow.around(chain.loop.header))
            yield ChainCount(operations, self.executions(self.emulation.blocks[chain.block]), loops)

    def barriers(self) -> Executions:
        met = [self.of(i, b) for i, b in self.instructions() if i.opcode in ("bar", "barrier") and not i.has("warp")]
        return added(met, self.subgroup_size is not None)

    def collectives(self) -> Iterator[CollectiveCount]:
        for instruction, block in self.instructions():
            if instruction.opcode in COLLECTIVE:
                dtype = "float32" if self._moves_floats(instruction) else instruction.types[-1].dtype
                yield CollectiveCount(_KINDS[instruction.opcode], "subgroup", dtype, self.of(instruction, block))

    def _moves_floats(self, instruction: Instruction) -> bool:
        """Returns whether what a shuffle moves is made a float."""
        results = list(registers_in(instruction.operands[0]))
        uses = [use for name in results for use in self.code.dataflow.uses.get(name, ())]
        return any(use.opcode == "mov" and self._is_float(use) for use in uses)

    def _is_float(self, move: Instruction) -> bool:
        return any(self.code.kernel.registers[name].is_float for name in registers_in(move.operands[0]))

    def branches(self) -> Iterator[BranchCount]:
        for number, (_, taken, parted, items, groups) in sorted(self.emulation.branches.items()):
            block = self.code.flow.blocks[number]
            around = self.code.flow.around(number)
            leaves = any(any(s not in loop.blocks for s in block.successors) for loop in around)
            tally = self.executions(self.emulation.blocks[number])
            is_counted = self.subgroup_size is not None
            went = Executions(
                constant(float(self.weights @ items)),
                constant(float(self.weights @ taken)) if is_counted else None,
                constant(float(self.weights @ groups)),
                (constant(float(self.weights @ items)),),
            )
            divergent = constant(float(self.weights @ parted)) if is_counted else None
            divergence = "by work-item" if parted.any() else "none"
            line = block.ending.line if block.ending else 0
            source = block.ending.source if block.ending else None
            text = f"{source.line}:{source.column}" if source else f"line {line} of the PTX"
            yield BranchCount(
                kind="loop" if leaves else "if",
                text=text,
                met=tally,
                taken=went,
                divergence=divergence,
                divergent=divergent,
            )

    # --- where

    @cached_property
    def _accesses(self) -> list[_Access]:
        blocks = dict(self.instructions())
        found = []
        for instruction, by_array in with_vectors(self.code.flow, self.emulation.places):
            made = {key: each.executions for key, each in by_array.items()}
            total = sum(made.values()) or 1
            for key, each in by_array.items():
                space = _SPACES.get(each.space)
                if space is not None:
                    share = made[key] / total
                    places = AccessPlaces(each)
                    found.append(
                        _Access(
                            instruction=instruction,
                            block=blocks[instruction],
                            name=each.name or space,
                            space=space,
                            places=places,
                            share=share,
                        )
                    )
        return found

    def dtype(self, access: _Access) -> str:
        """Returns the type of what is accessed: that of the array where the code moves bits of its width."""
        if access.instruction.opcode in BULK:
            return self.arrays[access.name][0] if access.name in self.arrays else "uint8"
        own = np.dtype(self.code.dataflow.dtype_of(access.instruction))
        declared = np.dtype(self.arrays[access.name][0]) if access.name in self.arrays else own
        return declared.name if declared.itemsize == own.itemsize else own.name

    @cached_property
    def unrolling(self) -> Unrolling:
        arrays: dict[object, str] = {each.instruction: each.name for each in self._accesses}
        return Unrolling(self.code, self.purposes, arrays)

    def accesses(self) -> Iterator[AccessCount]:
        """Yields accesses; those that a compiler made of one place in the source, as by unrolling, are one."""
        merged: dict[Any, list[tuple[_Access, AccessCount]]] = {}
        for number, access in enumerate(self._accesses):
            count = self.access(access)
            strides = (access.places.local_strides, access.places.group_strides)
            source = access.instruction.source or number
            key = (source, count.space, count.variable, count.direction, count.dtype, count.bits, strides, count.body)
            merged.setdefault(key, []).append((access, count))
        for same in merged.values():
            yield self._joined(same)

    def _joined(self, same: list[tuple[_Access, AccessCount]]) -> AccessCount:
        """Returns accesses of one place in the source as one; of one turn of a loop, they don't wait for each other."""
        with_subgroups = self.subgroup_size is not None
        first = same[0][1]
        if len(same) == 1:
            return first
        if same[0][0].instruction.opcode in BULK:
            sums = [[getattr(count, name) for _, count in same] for name in ("executions", "rounds")]
            executions, waits = (added(each, with_subgroups) for each in sums)
            return replace(first, executions=executions, rounds=waits)
        rounds, shares = [], []
        for block in {access.block for access, _ in same}:
            own = [count.rounds for access, count in same if access.block == block]
            turns = min(self.unrolling.turns(block, same[0][0].instruction.source), len(own))
            rounds.append(scaled(added(own, with_subgroups), turns / len(own)))
            found = [self.waits.of(access.instruction) for access, _ in same if access.block == block]
            shares.append(len({each.level for each in found}) * found[0].share / turns)
        executions = added([count.executions for _, count in same], with_subgroups)
        known = [count.recorded for _, count in same if count.recorded is not None]
        recorded = partial(_added_up, known) if known else None
        level = min(count.level for _, count in same)
        return replace(
            first,
            executions=executions,
            rounds=added(rounds, with_subgroups),
            recorded=recorded,
            wait=min(shares),
            level=level,
        )

    def access(self, access: _Access) -> AccessCount:
        instruction, places = access.instruction, access.places
        dtype = self.dtype(access)
        item = np.dtype(dtype).itemsize
        executions = self.of(instruction, access.block)
        if access.share != 1.0:
            executions = scaled(executions, access.share)
        local, group = places.local_strides, places.group_strides
        rank = len(self.emulation.launch.block)
        loops = tuple(loop.name for loop in self.code.flow.around(access.block))
        at_once = places.places.n_bytes
        is_uneven = any(step is not None and step % at_once for step in (*local, *(group or ())))
        is_scattered = is_uneven or None in local or (group is None and access.space == "global")
        known = self.origins.arrays_behind(instruction) <= {*self.given, *self.origins.constants}
        width = self.subgroup_size or 32
        jumps = is_scattered and access.space == "global" and self._jumps(access)
        touched: Blocks | None = None
        if is_scattered and access.space == "global" and known and not jumps:
            touched = tuple((size, places.blocks_of_subgroups(width, size)) for size in (32, 128))
        is_cut = access.space == "global" and not is_scattered and is_partly(executions)
        has_record = known and (is_cut or access.space == "scratch" or (access.space == "local" and is_scattered))
        where = instruction.source
        text = f"{access.name} at {where.line}:{where.column}" if where else f"{access.name} in line {instruction.line}"
        loop_stride = places.loop_stride()
        return AccessCount(
            space=access.space,
            variable=access.name,
            tags=frozenset(),
            dtype=dtype,
            bits=8 * places.places.n_bytes,
            direction=access.direction,
            local_strides=_strides(local[: max(rank, 1)], at_once),
            group_strides=_strides((None, None, None) if group is None else group, at_once),
            loop_strides={loops[-1]: _stride(loop_stride, at_once)} if loops else {},
            executions=executions,
            body=loops,
            rounds=self._rounds(instruction, access.block, executions),
            footprint=self._footprint_of(access, item),
            text=text,
            instruction=f"{instruction.name} in line {instruction.line}",
            pattern=self._pattern(access),
            places=places.first_places(GROUPS, MOST_ITEMS, ALIGNED) if jumps else None,
            reach=self._reach(access) if jumps else None,
            fresh=None,
            recorded=partial(self._recorded, access) if has_record else None,
            touched=touched,
            wait=self.waits.of(instruction).share,
            level=self.waits.of(instruction).level,
        )

    @cached_property
    def waits(self) -> Waits:
        return Waits(self.code.flow)

    def _rounds(self, instruction: Instruction, block: int, executions: Executions) -> Executions:
        """Returns how often an access is waited for; several turns share a wait for copies that they all began."""
        if instruction.opcode in BULK:
            return self.copies(instruction, block)
        return (
            scaled(executions, 1 / copies_under_way(self.code.flow, block)) if instruction.has("async") else executions
        )

    def _recorded(self, access: _Access, width: int, kind: str, size: int) -> float:
        """Returns the transactions of the launch, or cycles of the busiest bank, of one access."""
        _, warps, _ = self.emulation.tally(access.instruction, access.block).by_block()
        made = float(self.weights @ warps) * access.share
        if access.space == "scratch":  # whose words of one place lie side by side for all lanes
            return made * access.places.blocks_of_subgroups(width, WORD) * max(access.places.places.n_bytes // WORD, 1)
        each = (
            access.places.blocks_of_subgroups(width, size)
            if kind == "block"
            else access.places.bank_cycles(width, size)
        )
        return made * each

    def _pattern(self, access: _Access) -> str:
        if access.space == "scratch":
            return ""
        local = access.places.local_strides
        if None in local:
            return "complex"
        axis = next((k for k, extent in enumerate(self.emulation.lanes.block) if extent != 1), None)
        step = abs((0 if axis is None else local[axis]) or 0)
        widths = {access.places.places.n_bytes}
        if access.name in self.arrays:  # a compiler may load the part of an element that is used
            widths.add(np.dtype(self.arrays[access.name][0]).itemsize)
        return "constant" if step == 0 else "continuous" if step in widths else "complex"

    def _footprint_of(self, access: _Access, item: int) -> QuasiPolynomial | None:
        """Returns the distinct elements that one access touches over the launch."""
        steps = access.places.group_strides
        if steps is None or access.space != "global":
            return None
        whole = over_grid(access.places.region_of(self._fullest([access])), steps, self.emulation.lanes.grid)
        most = self.arrays[access.name][1] if access.name in self.arrays else np.inf
        return constant(min(whole.bytes / item, most))

    def _reach(self, access: _Access) -> int:
        """Returns about how many bytes an access touches over the launch, as far as the sample shows."""
        own = [addresses // SECTOR for _, addresses in access.places.executions_at(64)]
        if not own:
            return SECTOR
        looked_at = sum(map(len, own))
        seen = len(np.unique(np.concatenate(own)))
        if seen < 0.5 * looked_at:  # the sample goes to all of them
            return SECTOR * seen
        items, _, _ = self.emulation.tally(access.instruction, access.block).by_block()
        made = float(self.weights @ items) * access.share * seen / looked_at
        dtype, size = self.arrays.get(access.name, ("uint8", 2**40))
        there = max(size * np.dtype(dtype).itemsize / SECTOR, 1.0)
        return round(SECTOR * there * -math.expm1(-made / there))

    def _fullest(self, accesses: list[_Access]) -> int:
        """Returns the emulated block that does most of some accesses."""
        made = sum(self.emulation.tally(each.instruction, each.block).by_block()[0] for each in accesses)
        return int(np.argmax(made))

    def footprints(self) -> Iterator[Footprint]:
        by_array: dict[str, list[_Access]] = {}
        for access in self._accesses:
            if access.space == "global" and access.name in self.arrays:
                by_array.setdefault(access.name, []).append(access)
        for name, accesses in by_array.items():
            for direction in ("load", "store", "atomic", "any"):
                own = [each for each in accesses if direction in ("any", each.direction)]
                if own:
                    yield self._footprint(name, direction, own)

    def _footprint(self, name: str, direction: str, accesses: list[_Access]) -> Footprint:
        dtype, size = self.arrays[name]
        item = np.dtype(dtype).itemsize
        steps = {each.places.group_strides for each in accesses}
        known = all(
            self.origins.arrays_behind(each.instruction) <= {*self.given, *self.origins.constants} for each in accesses
        )
        is_regular = None not in steps and all(
            each.places.places.is_regular and (known or not each.places.is_laid_out) for each in accesses
        )
        found = Footprint(
            space="global",
            variable=name,
            dtype=dtype,
            direction=direction,
            elements=None,
            filled=None,
            by_group=None,
            size=constant(size),
        )
        if not is_regular:
            if not known or all(self._jumps(each) for each in accesses):
                return found
            return replace(found, touched=self._touched(accesses))
        fullest = self._fullest(accesses)
        n_bytes = blocks = 0.0
        for step in steps:
            own = [each for each in accesses if each.places.group_strides == step]
            one = touched_by([each.places for each in own], fullest)
            extent = over_grid(one, step or (0, 0, 0), self.emulation.lanes.grid)
            # Blocks may touch less than the fullest, as in triangles: all together not more than each for itself.
            times = self._by_group(own) / max(one.bytes, 1)
            n_bytes += min(extent.bytes, one.bytes * times)
            blocks += min(extent.blocks, one.blocks(BLOCK) * times)
        elements = min(n_bytes / item, size)
        filled = max(min(blocks * BLOCK / item, size), elements)
        return replace(
            found,
            elements=constant(elements),
            filled=constant(filled),
            by_group=constant(self._by_group(accesses) / item),
        )

    def _jumps(self, access: _Access) -> bool:
        """Returns whether ids alone decide on places that are all over an array; of others, what blocks touch is known
        by what the emulated ones do, as where a place is clamped to a border, or where arrays are given."""
        if self.given or None not in access.places.local_strides or access.places.is_laid_out:
            return False
        if self.origins.arrays_behind(access.instruction):
            return False
        width = self.subgroup_size or 32
        return access.places.blocks_of_subgroups(width, SECTOR) > width / 2

    def _by_group(self, accesses: list[_Access]) -> float:
        """Returns the bytes that blocks touch, added up over the grid; blocks that do as much touch as much."""
        made = np.asarray(sum(self.emulation.tally(each.instruction, each.block).by_block()[0] for each in accesses))
        alike = {each: block for block, each in enumerate(made.tolist())}
        touched = {each: touched_by([a.places for a in accesses], block).bytes for each, block in alike.items()}
        return float(sum(weight * touched[each] for weight, each in zip(self.weights, made.tolist(), strict=True)))

    def _touched(self, accesses: list[_Access]) -> Blocks:
        total = dict.fromkeys(TOUCHED, 0.0)
        for block, weight in enumerate(self.weights):
            own = touched_by([each.places for each in accesses], block)
            for size in TOUCHED:
                total[size] += float(weight) * own.blocks(size)
        return tuple((size, number / float(self.weights.sum())) for size, number in total.items())

    def scratch(self) -> Iterator[tuple[str, int]]:
        used = {each.name for each in self._accesses if each.space == "scratch"}
        if used:
            yield "scratch", self.declared("local")

    def declared(self, space: str) -> int:
        """Returns the bytes of the variables that the text declares in a space."""
        return sum(each.n_bytes for each in self.code.kernel.variables.values() if each.space == space)


def _added_up(recorded: list[Callable[[int, str, int], float]], width: int, kind: str, size: int) -> float:
    return sum(each(width, kind, size) for each in recorded)


def _strides(strides: tuple[int | None, ...], at_once: int) -> dict[int, QuasiPolynomial | None]:
    """Returns strides by axis in what is accessed at once: a vector is one element."""
    return {axis: _stride(stride, at_once) for axis, stride in enumerate(strides) if stride != 0}


def _stride(stride: int | None, at_once: int) -> QuasiPolynomial | None:
    return None if stride is None or stride % at_once else constant(stride // at_once)
