"""A kernel of a PTX text, read and analysed: what is emulated and counted."""

from __future__ import annotations

from functools import cached_property, lru_cache

from perfmodel.ptx.control_flow import ControlFlow
from perfmodel.ptx.dataflow import Dataflow
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


@lru_cache(maxsize=64)
def code_of(text: str, entry: str) -> Code:
    """Reads a PTX text and returns one of its kernels.

    Raises:
        SourceError: for what is no PTX, or not supported, with its line.
    """
    return Code(kernel_of(read(text), entry))
