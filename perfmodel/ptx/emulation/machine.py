"""A kernel made ready to run: its instructions as steps over the lanes of some blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError, KernelError
from perfmodel.ptx.code import Code
from perfmodel.ptx.dataflow import ACCESSING, BULK, IMAGE_SIZES, IMAGES, PRODUCTS
from perfmodel.ptx.emulation.accesses import Accesses
from perfmodel.ptx.emulation.bulk_copies import BulkCopies
from perfmodel.ptx.emulation.deciding import Deciding
from perfmodel.ptx.emulation.elementwise import elementwise
from perfmodel.ptx.emulation.images import image_access, image_size
from perfmodel.ptx.emulation.lanes import WARP, Lanes, Mask
from perfmodel.ptx.emulation.launch import Buffer, Holder, Launch
from perfmodel.ptx.emulation.matrices import product
from perfmodel.ptx.emulation.matrix_accesses import matrix_access, noting
from perfmodel.ptx.emulation.mbarriers import Barriers
from perfmodel.ptx.emulation.memory import Allocation, Memory, variables_at
from perfmodel.ptx.emulation.nominal import block_seconds, preparing_seconds
from perfmodel.ptx.emulation.recording import Tally
from perfmodel.ptx.emulation.registers import Registers
from perfmodel.ptx.emulation.warps import together
from perfmodel.ptx.emulation.work_counters import Turns, work_counters
from perfmodel.ptx.names import own_name
from perfmodel.ptx.syntax import Instruction, Symbol

Step = Callable[[Mask], None]
_NOTHING = frozenset(
    (
        *("membar", "fence", "prefetch", "prefetchu", "nanosleep", "brkpt", "griddepcontrol", "setmaxnreg"),
        *("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "cp"),
    )
)


def _nothing(mask: Mask) -> None:
    """Does what an instruction does that has no effect here."""


class Machine:
    """Runs the threads of some blocks of a launch side by side.

    Args:
        width: threads of the sub-groups whose executions are counted.
        deciding: given where only what was executed is wanted: what decides on nothing is then not computed.
        has_notes: whether it is noted where accesses go that decide on nothing.

    Attributes:
        needs_data: whether what memory holds matters.
        buffers: the arrays of the launch, by name.
        live: the lanes that have not ended.
        tallies: of each basic block.
        guarded: of each instruction that has a guard of its own; of copies of tiles, by their rows.
        copied: of copies of tiles that have a guard of their own, as a whole.
        noted: is told of each execution that is counted for a guarded instruction, if there is somebody who wants to
            know.
    """

    def __init__(
        self,
        code: Code,
        launch: Launch,
        lanes: Lanes,
        width: int,
        deciding: Deciding | None = None,
        has_notes: bool = True,
    ) -> None:
        self.has_notes = has_notes
        self.code, self.launch, self.lanes, self.width = code, launch, lanes, width
        self.deciding = deciding
        self.needs_data = deciding is None or deciding.depends_on_data
        self.live = Mask(lanes, lanes.is_thread)
        kernel = code.kernel
        places: dict[str, int] = {}
        ends: dict[str, int] = {}
        for space in ("shared", "local", "stack"):
            own, ends[space] = variables_at(kernel.variables, space)
            places |= own
        self.memory = Memory(lanes, ends["shared"] + launch.shared, ends["local"], ends["stack"])
        self.memory.is_filled, self.memory.is_lazy = self.needs_data, deciding is not None
        spaces = {name: variable.space for name, variable in kernel.variables.items()}
        self.buffers: dict[str, Allocation] = {}
        # First of all, as their addresses may be taken with 32 bits.
        held = {each.name: self.memory.allocate("", max(each.n_bytes, 8)) for each in kernel.parameters}
        parameters = self._parameters()
        for name, contents in parameters.items():
            held[name].bytes[: len(contents)] = np.frombuffer(contents, np.uint8)
            places[name] = held[name].base
        self._variables(places)
        self.registers = Registers(kernel.registers, lanes, self._special, places)
        uses = code.dataflow.uses
        shared_out = frozenset[Instruction]() if deciding is None else work_counters(code)
        turns = Turns(launch.blocks / lanes.count)
        self.accesses = Accesses(
            self.registers,
            self.memory,
            spaces,
            places,
            parameters,
            is_read=lambda name: name in uses,
            is_alone=lambda instruction: deciding is not None and deciding.is_update(instruction),
            turns=lambda instruction: turns if instruction in shared_out else None,
        )
        self.tallies = [Tally(lanes, width) for _ in code.flow.blocks]
        self.guarded: dict[Instruction, Tally] = {}
        self.copied: dict[Instruction, Tally] = {}
        self.copies = BulkCopies(self.accesses, self.guarded, width)
        self.barriers = Barriers(self.accesses)
        self.noted: Callable[[Tally, Mask], None] | None = None
        self._steps: dict[int, tuple[list[Step], float]] = {}
        numbers = self.registers.numbers
        self.alive = [frozenset(numbers[name] for name in names) for names in code.dataflow.alive]

    def steps_of(self, block: int) -> tuple[list[Step], float]:
        """Returns the steps of a basic block, made when lanes first come to it, and the seconds that they take at the
        nominal speed of emulation."""
        found = self._steps.get(block)
        if found is None:
            made = [(self._step(each), each) for each in self.code.flow.blocks[block].instructions]
            made = [(step, each) for step, each in made if step is not _nothing]
            seconds = block_seconds([each for _, each in made], self.lanes.total)
            found = self._steps[block] = [step for step, _ in made], seconds
        return found

    @property
    def preparing_s(self) -> float:
        """The seconds that it takes beside its steps, at the nominal speed of emulation."""
        return preparing_seconds(sum(len(block.instructions) for block in self.code.flow.blocks), *self.memory.pages)

    def _parameters(self) -> dict[str, bytes]:
        """Returns the bytes of the launch's arguments, by the names that the text has for them."""
        declared, given = self.code.kernel.parameters, self.launch.arguments
        name = own_name(self.code.kernel.name)
        if len(declared) != len(given):
            raise KernelError(
                f"kernel {name!r} takes {len(declared)} arguments in its PTX, and is given "
                f"{len(given)}; give one for each"
            )
        found = {}
        for variable, argument in zip(declared, given, strict=True):
            match argument:
                case Buffer():
                    contents = self._address(argument) + argument.behind
                case Holder():
                    held = bytearray(argument.contents)
                    for place, buffer in argument.buffers.items():
                        held[place : place + 8] = self._address(buffer)
                    contents = bytes(held)
                case _:
                    contents = argument
            if len(contents) > max(variable.n_bytes, 1):
                raise KernelError(
                    f"argument {variable.name!r} of kernel {name!r} has {variable.n_bytes} bytes, and "
                    f"is given {len(contents)}; give a value of its type"
                )
            found[variable.name] = contents.ljust(variable.n_bytes, b"\0")
        return found

    def _address(self, buffer: Buffer) -> bytes:
        """Lays out an array of the launch, and returns its address."""
        is_kept = self.deciding is not None and not self.deciding.changes_arrays
        own = self.memory.allocate(buffer.name, buffer.n_bytes, buffer.contents, buffer.fill, is_kept)
        own.image = buffer.image
        self.buffers[buffer.name] = own
        return own.base.to_bytes(8, "little")

    def _variables(self, places: dict[str, int]) -> None:
        """Lays out the variables in global and constant memory, with what they hold at first."""
        own = [each for each in self.code.kernel.variables.values() if each.space in ("global", "const")]
        allocations = []
        for variable in own:
            given = self.launch.variables.get(variable.name)
            contents = None if variable.contents is None else np.frombuffer(variable.contents, np.uint8)
            if given is not None:
                contents = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
                if len(contents) > variable.n_bytes:
                    raise KernelError(
                        f"variable {variable.name!r} has {variable.n_bytes} bytes, and is given {len(contents)}; give "
                        "no more"
                    )
            allocation = self.memory.allocate(variable.name, variable.n_bytes, contents)
            places[variable.name] = allocation.base
            self.buffers.setdefault(variable.name, allocation)
            allocations.append((variable, allocation))
        for variable, allocation in allocations:
            for offset, symbol in variable.addresses.items():
                address = places.get(symbol.name, 0) + symbol.offset
                allocation.bytes[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)

    def _special(self, name: str) -> Any:
        lanes = self.lanes
        what, _, axis = name.removeprefix("%").partition(".")
        if axis in ("x", "y", "z"):
            place = "xyz".index(axis)
            match what:
                case "tid":
                    return lanes.item(place)
                case "ntid":
                    return np.uint32(lanes.block[place])
                case "ctaid":
                    return lanes.block_id(place)
                case "nctaid":
                    return np.uint32(lanes.grid[place])
                case "clusterid":
                    return lanes.block_id(place)
                case "nclusterid":
                    return np.uint32(lanes.grid[place])
            return np.uint32(what.startswith("cluster_n"))
        lane = (lanes.in_block % WARP).astype(np.uint32)
        one = np.uint32(1)
        match what:
            case "laneid":
                return lane
            case "warpid":
                return (lanes.in_block // WARP).astype(np.uint32)
            case "nwarpid":
                return np.uint32(lanes.per_block // WARP)
            case "lanemask_eq":
                return one << lane
            case "lanemask_lt":
                return (one << lane) - one
            case "lanemask_le":
                return (one << lane) | ((one << lane) - one)
            case "lanemask_gt":
                return ~((one << lane) | ((one << lane) - one))
            case "lanemask_ge":
                return ~((one << lane) - one)
            case "dynamic_smem_size":
                return np.uint32(self.launch.shared)
            case "total_smem_size":
                return np.uint32(self.memory.sizes["shared"])
            case "nsmid" | "cluster_nctarank":
                return one
            case "clock64" | "globaltimer":
                return np.uint64(0)
        return np.uint32(0)

    def _step(self, instruction: Instruction) -> Step:
        plain = self._plain_step(instruction)
        guard = instruction.guard
        if guard is None:
            return plain
        of = self.copied if instruction.opcode in BULK else self.guarded
        tally = of.setdefault(instruction, Tally(self.lanes, self.width))
        values, place = self.registers.values, self.registers.numbers[guard.register.name]

        def guarded(mask: Mask) -> None:
            holds = values[place]
            chosen = mask.without(holds) if guard.is_negated else mask.where(holds)
            tally.add(chosen)
            if self.noted is not None:
                self.noted(tally, chosen)
            plain(chosen)

        return guarded

    def _plain_step(self, instruction: Instruction) -> Step:
        try:
            return self._made(instruction)
        except (ValueError, TypeError, LookupError, StopIteration, AttributeError) as error:
            raise EmulationError(
                f"line {instruction.line} of the PTX gives {instruction.name!r} operands or types that it can't have"
            ) from error

    def _made(self, instruction: Instruction) -> Step:
        if self.deciding is not None and not self.deciding.is_needed(instruction):
            if instruction.opcode not in ACCESSING or not self.has_notes:
                return _nothing
            if instruction.opcode in IMAGES:
                return image_access(instruction, self.accesses, is_moved=False)
            return noting(instruction, self.accesses)
        if instruction.opcode in IMAGES:
            return image_access(instruction, self.accesses)
        if instruction.opcode in IMAGE_SIZES:
            return image_size(instruction, self.accesses)
        if "matrix" in instruction.opcode or instruction.opcode in ("wmma.load", "wmma.store"):
            return matrix_access(instruction, self.accesses)
        if instruction.opcode in ACCESSING:
            return self.accesses.step(instruction)
        if instruction.opcode in BULK:
            return self.copies.step(instruction)
        if instruction.opcode.startswith("mbarrier.") or instruction.opcode == "cp.async.mbarrier":
            return self.barriers.step(instruction)
        if instruction.opcode in PRODUCTS:
            return product(instruction, self.registers, self.memory)
        step = together(instruction, self.registers)
        if instruction.opcode in ("bar", "barrier"):
            return self._barrier(instruction, step)
        step = step or elementwise(instruction, self.registers)
        if step is not None:
            return step
        if instruction.opcode in _NOTHING:
            return _nothing
        if instruction.opcode == "trap":
            return self._trap(instruction)
        raise EmulationError(
            f"line {instruction.line} of the PTX has an instruction that isn't emulated: {instruction.name}"
        )

    def _trap(self, instruction: Instruction) -> Step:
        def trap(mask: Mask) -> None:
            if mask.count:
                raise EmulationError(
                    f"{mask.count} threads come to the trap in line {instruction.line} of the PTX, as of an assertion "
                    "that does not hold; give arguments for which it does"
                )

        return trap

    def _barrier(self, instruction: Instruction, reduction: Step | None) -> Step:
        """Returns a barrier; threads run side by side, so that there is nothing to wait for, if all of a block come, or
        if nothing that others compute decides what is executed."""
        operands = [each for each in instruction.operands if not isinstance(each, Symbol)]
        is_of_all = not instruction.has("warp", "arrive") and (reduction is not None or len(operands) == 1)
        is_of_all = is_of_all and self.needs_data

        def meet(mask: Mask) -> None:
            if is_of_all and mask is not self.live:
                here, all_ = mask.by_block, self.live.by_block
                if np.any((here > 0) & (here != all_)):
                    raise EmulationError(
                        f"only some threads of a block come to the barrier in line {instruction.line} of the PTX; "
                        "kernels whose warps meet at different barriers are not emulated"
                    )
            if reduction is not None:
                reduction(mask)

        return meet
