"""A kernel of a PTX text, read and analysed: what is emulated and counted."""

from __future__ import annotations

from functools import cached_property, lru_cache

from perfmodel.ptx.control_flow import ControlFlow
from perfmodel.ptx.dataflow import Dataflow, ParameterPlace, parameters_behind
from perfmodel.ptx.inlining import Kernel, kernel_of
from perfmodel.ptx.reading.reader import read


class Code:
    """A kernel with its control flow and the flow of values through it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.flow = ControlFlow(kernel)

    @cached_property
    def dataflow(self) -> Dataflow:
        return Dataflow(self.flow)

    @cached_property
    def converted(self) -> frozenset[ParameterPlace]:
        """The parameters, and parts of structs, that are made addresses in a space: surely pointers."""
        uses = self.dataflow.uses
        return frozenset(
            place
            for block in self.flow.blocks
            for each in block.instructions
            for register, place in parameters_behind(each).items()
            if any(use.opcode == "cvta" for use in uses.get(register, ()))
        )


@lru_cache(maxsize=64)
def code_of(text: str, entry: str) -> Code:
    """Reads a PTX text and returns one of its kernels.

    Raises:
        SourceError: for what is no PTX, or not supported, with its line.
    """
    return Code(kernel_of(read(text), entry))
