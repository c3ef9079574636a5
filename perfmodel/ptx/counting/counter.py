"""Counts a kernel from the emulation of some blocks of its grid, each of which stands for so many others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from perfmodel.counting.banks import WORD_BYTES
from perfmodel.counting.counts import (
    RESERVED,
    BranchCount,
    ChainCount,
    CollectiveCount,
    Executions,
    KernelCounts,
    OperationCount,
)
from perfmodel.ptx.counting.access_addresses import AccessAddresses, touched_by
from perfmodel.ptx.counting.accesses import AccessCounter
from perfmodel.ptx.counting.assembled import as_assembled, is_known
from perfmodel.ptx.counting.blocks_alike import fullest
from perfmodel.ptx.counting.chains import chains_of
from perfmodel.ptx.counting.executions import added, constant
from perfmodel.ptx.counting.footprints import FootprintCounter
from perfmodel.ptx.counting.hot_places import bytes_in_use
from perfmodel.ptx.counting.launch import EmulatedLaunch
from perfmodel.ptx.counting.operations import COLLECTIVE, Purposes, fences_in
from perfmodel.ptx.counting.three_inputs import joined_by_three
from perfmodel.ptx.dataflow import registers_in
from perfmodel.ptx.emulation.emulation import Emulation
from perfmodel.ptx.liveness import words_at_once
from perfmodel.ptx.syntax import Instruction
from perfmodel.sass.reading import Instruction as Machine

_KINDS = {"shfl": "shuffle", "vote": "vote", "match": "vote", "redux": "reduce"}
MOST_SEEN = 0.5
"""Lanes have been at all words of an array where no more than this part of their looks went to different ones."""


def counts_of(
    emulation: Emulation,
    arrays: Mapping[str, tuple[str, int]],
    given: Collection[str],
    subgroup_size: int | None,
    *,
    has_vectors: bool = True,
    has_scratch: bool = True,
    registers: int | None = None,
    code: Sequence[Machine] | None = None,
) -> KernelCounts:
    """Returns the counts of a launch from the emulation of some of its blocks.

    Args:
        arrays: the type and number of elements of each array.
        given, has_vectors, has_scratch: see `EmulatedLaunch`.
        registers: of a thread, as the assembler gives them out; by what lives at once in the text without.
        code: the machine code, by which operations and waits are counted; by the text without.
    """
    launch = EmulatedLaunch(emulation, arrays, given, subgroup_size, has_vectors=has_vectors, has_scratch=has_scratch)
    counts = _Counter(launch, registers).counts()
    return as_assembled(counts, launch, code) if code is not None and is_known(code) else counts


class _Counter:
    def __init__(self, launch: EmulatedLaunch, registers: int | None) -> None:
        self.registers = registers
        self.launch, self.emulation, self.code = launch, launch.emulation, launch.code
        self.purposes = Purposes(self.code)
        self.accesses = AccessCounter(launch, self.purposes)

    def counts(self) -> KernelCounts:
        launch, emulated = self.emulation.launch, self.launch
        return KernelCounts(
            operations=tuple(self.operations(True)),
            chains=tuple(self.chains()),
            accesses=tuple(self.accesses.counts()),
            footprints=tuple(FootprintCounter(self.accesses).counts()),
            branches=tuple(self.branches()),
            barriers=self.barriers(),
            fences=tuple(self.fences()),
            launches=constant(1),
            work_groups=constant(launch.blocks),
            work_items=constant(emulated.items),
            local_size=tuple(map(constant, self.emulation.lanes.block[: len(launch.block)])),
            grid=tuple(map(constant, self.emulation.lanes.grid)),
            subgroup_size=emulated.subgroup_size,
            exact=True,
            index_operations=tuple(self.operations(False)),
            collectives=tuple(self.collectives()),
            sampled=emulated.is_estimate,
            scratch=tuple(self.scratch()),
            registers=words_at_once(self.code) + RESERVED if self.registers is None else self.registers,
            local_bytes=constant(launch.shared + self.declared("shared")),
        )

    def operations(self, of_values: bool) -> Iterator[OperationCount]:
        """Yields operations, those of one block and kind together."""
        found: dict[tuple[str, str, int], tuple[Executions, int]] = {}
        joined = joined_by_three(self.code.dataflow, self._is_counted)
        for instruction, block in self.launch.instructions():
            own = self.purposes.operations(instruction)
            if not own or instruction in joined or self.purposes.values(instruction) != of_values:
                continue
            if not of_values and not self.purposes.indices(instruction):
                continue
            executions = self.launch.of(instruction, block)
            for (kind, dtype), times in own.items():
                key = kind, dtype, id(executions)
                found[key] = executions, times + (found[key][1] if key in found else 0)
        for (kind, dtype, _), (executions, times) in found.items():
            yield OperationCount(kind, dtype, times, executions)

    def _is_counted(self, instruction: Instruction) -> bool:
        return self.purposes.values(instruction) or self.purposes.indices(instruction)

    def chains(self) -> Iterator[ChainCount]:
        for chain in chains_of(self.code, self.purposes):
            operations = tuple((kind, dtype, times) for (kind, dtype), times in chain.operations.items())
            loops = tuple(loop.name for loop in self.code.flow.around(chain.loop.header))
            yield ChainCount(operations, self.launch.executions(self.emulation.blocks[chain.block]), loops)

    def barriers(self) -> Executions:
        launch = self.launch
        met = [
            launch.of(i, b) for i, b in launch.instructions() if i.opcode in ("bar", "barrier") and not i.has("warp")
        ]
        return added(met, launch.subgroup_size is not None)

    def collectives(self) -> Iterator[CollectiveCount]:
        for instruction, block in self.launch.instructions():
            if instruction.opcode in COLLECTIVE:
                dtype = "float32" if self._moves_floats(instruction) else instruction.types[-1].dtype
                yield CollectiveCount(_KINDS[instruction.opcode], "subgroup", dtype, self.launch.of(instruction, block))

    def fences(self) -> Iterator[Executions]:
        """Yields how often accesses are kept in order beyond a block, as fences that take as long; see `fences_in`."""
        for instruction, block in self.launch.instructions():
            if part := fences_in(instruction):
                yield self.launch.of(instruction, block).scaled(part)

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
            tally = self.launch.executions(self.emulation.blocks[number])
            is_counted = self.launch.subgroup_size is not None
            went = Executions(
                constant(float(self.launch.weights @ items)),
                constant(float(self.launch.weights @ taken)) if is_counted else None,
                constant(float(self.launch.weights @ groups)),
                (constant(float(self.launch.weights @ items)),),
            )
            divergent = constant(float(self.launch.weights @ parted)) if is_counted else None
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

    def scratch(self) -> Iterator[tuple[str, int]]:
        """Yields what of the arrays in local memory threads use, as far as emulated ones show it: caches hold no more,
        and where data decide on places, mostly those that many ask for.

        Of places that data decide on, those of few executions are not all, nor are those of some iterations.
        """
        used = [each for each in self.accesses.found if each.space == "scratch"]
        if used:
            declared, block = self.declared("local"), fullest(self.launch, used)
            addresses = [each.addresses for each in used]
            is_all = all(_is_at_all(each, block) for each in addresses)
            n_bytes = min(touched_by(addresses, block).bytes, declared) if is_all else declared
            loads = [each.addresses for each in used if each.direction == "load"]
            if any(each.noted.scattered for each in loads):
                n_bytes = round(bytes_in_use(loads, n_bytes, self.launch.width))
            yield "scratch", n_bytes

    def declared(self, space: str) -> int:
        """Returns the bytes of the variables that the text declares in a space."""
        return sum(each.n_bytes for each in self.code.kernel.variables.values() if each.space == space)


def _is_at_all(addresses: AccessAddresses, block: int) -> bool:
    """Returns whether an access was seen at all places of a thread's array that it goes to, in one emulated block."""
    noted = addresses.noted
    if not noted.scattered and not (noted.is_thinned and noted.beyond):
        return True
    looks = len(noted.rows) + sum(len(own) for _, own in noted.scattered)
    return touched_by([addresses], block).bytes <= MOST_SEEN * WORD_BYTES * looks
