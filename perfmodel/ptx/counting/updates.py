"""Says what atomics do to their places, and which are made until they succeed."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from perfmodel.counting.atomics import Update
from perfmodel.counting.contention import Contention
from perfmodel.counting.counts import Executions
from perfmodel.ptx.control_flow import ControlFlow, Loop
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.counting.executions import added
from perfmodel.ptx.counting.launch import EmulatedLaunch
from perfmodel.ptx.counting.meetings import contention
from perfmodel.ptx.dataflow import address_of, read, written
from perfmodel.ptx.syntax import Instruction, Register, Special

OPERATIONS = {
    **{each: each for each in ("add", "and", "or", "xor", "min", "max")},
    "exch": "exchange",
    "cas": "compare",
    "inc": "wrap",
    "dec": "wrap",
}
OWN = ("%tid", "%laneid", "%clock")
"""Special registers that differ among the threads of a warp, or from time to time."""
OF_OTHERS = ("atom", "shfl", "activemask", "vote", "match")
"""Instructions that give what other threads, or the moment, decide on."""


class Updates:
    """Says of the atomics of a launch what they do."""

    def __init__(self, launch: EmulatedLaunch) -> None:
        self.launch, self.emulation, self.code = launch, launch.emulation, launch.code

    def of(self, access: CountedAccess, dtype: str) -> Update:
        """Returns what an atomic does to its place; copies in the background add."""
        instruction, flow = access.instruction, self.code.dataflow
        operation = next((OPERATIONS[each] for each in instruction.modifiers if each in OPERATIONS), "add")
        if instruction.types:
            dtype = "float16" if instruction.types[-1].form else instruction.types[-1].dtype
        is_of_all = access.addresses.local_strides == (0, 0, 0) and not self._differs(instruction)
        is_read = any(name in flow.uses for name in written(instruction))
        return Update(operation, dtype, is_of_all, is_read)

    def contention(self, access: CountedAccess, dtype: str) -> Contention | None:
        """Returns how often the atomics, or the stores, of different work-groups go to one place."""
        is_counter, is_repeated = access.direction == "atomic", access.instruction in self.retries
        item = np.dtype(dtype).itemsize
        return contention(access.addresses, item, are_updates=is_counter, are_repeated=is_repeated)

    def first_tries(self, access: CountedAccess) -> Executions | None:
        """Returns how often a comparison and exchange in global memory is begun that is made until it succeeds; None
        for others."""
        if access.space != "global":
            return None
        if access.instruction in self.retries.values():
            return self.launch.of(access.instruction, access.block).scaled(access.share)
        if access.instruction not in self.retries:
            return None
        flow = self.code.flow
        loop = flow.around(access.block)[-1]
        entered = [self.launch.executions(self.emulation.blocks[number]) for number in _before(flow, loop)]
        return added(entered, self.launch.subgroup_size is not None).scaled(access.share)

    @cached_property
    def retries(self) -> dict[Instruction, Instruction | None]:
        """The comparisons and exchanges in loops that end by what these find, with the one that compilers have before
        the loop for the first try, if they do: the loop has those that failed then. Those that go on to another place
        are not made again."""
        flow, found = self.code.flow, {}
        for block in flow.blocks:
            for instruction in block.instructions:
                *_, loop = (None, *flow.around(block.number))
                if loop is None or not instruction.has("cas"):
                    continue
                inside = [flow.blocks[number] for number in loop.blocks]
                endings = [
                    each.ending for each in inside if each.ending and not loop.blocks.issuperset(each.successors)
                ]
                is_ending = any(instruction in self.code.dataflow.behind(read(each)) for each in endings)
                if is_ending and not self._goes_on(instruction, loop):
                    before = [each for number in _before(flow, loop) for each in flow.blocks[number].instructions]
                    first = [each for each in before if each.name == instruction.name]
                    found[instruction] = first[-1] if first else None
        return found

    def _goes_on(self, access: Instruction, loop: Loop) -> bool:
        """Returns whether the place of an access follows from what a loop's iteration before left."""
        address, flow = address_of(access), self.code.dataflow
        if address is None or not isinstance(address.base, Register):
            return False
        inside = (each for number in loop.blocks for each in self.code.flow.blocks[number].instructions)
        carried = flow.alive[loop.header].intersection(name for each in inside for name in written(each))
        behind = (name for each in flow.behind((address.base.name,)) for name in read(each))
        return not carried.isdisjoint((address.base.name, *behind))

    def _differs(self, access: Instruction) -> bool:
        """Returns whether a compiler must take the address of an access for a thread's own."""
        address = address_of(access)
        if address is None or not isinstance(address.base, Register):
            return False
        behind = self.code.dataflow.behind((address.base.name,))
        return any(
            each.opcode in OF_OTHERS
            or any(isinstance(operand, Special) and operand.name.startswith(OWN) for operand in each.operands)
            for each in behind
        )


def _before(flow: ControlFlow, loop: Loop) -> list[int]:
    """Returns the basic blocks that lead into a loop."""
    return [number for number in flow.predecessors[loop.header] if number not in loop.blocks]
