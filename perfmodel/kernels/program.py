"""Program: what every kind of program offers to a kernel that binds its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from perfmodel.counting.counts import KernelCounts
from perfmodel.device import CUDA, OPENCL
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.opencl_program import OpenCLProgram


class Program(Protocol):
    """A program is what a kernel runs, its sizes still open: Loopy's, OpenCL C source, or another form of one of
    these."""

    @property
    def name(self) -> str: ...

    @property
    def content(self) -> str:
        """SHA-256 of what the device is given; equal for equal programs, in every process."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the scalar arguments: sizes and other numbers."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """The arguments on which the counts depend."""

    @property
    def deciding(self) -> tuple[str, ...]:
        """The other arguments on which the counts may depend, as conditions are computed from them."""

    @property
    def budget(self) -> float:
        """The budget says how many times the usual work counting may take."""

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        """Returns what the program does; with executions by sub-groups of so many work-items, if a number is given.

        With `at`, only for these values of `deciding` arguments, and for these sizes if there are any, which may be
        possible where it is not for all.
        """

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        """Returns False if counts for all sizes (at these values of `deciding` arguments) lack an address that they
        would have at sizes that are numbers; finding that out takes less than such counts."""

    def check(self, sizes: Mapping[str, Any]) -> None:
        """Raises KernelError where sizes, whole numbers or arrays of them, break what the program assumes."""

    def check_launch(self, sizes: Mapping[str, Any]) -> None:
        """Raises KernelError where there can be no launch of all its sizes, see `perfmodel.device.launch_shape`."""

    def launch(self, arguments: Mapping[str, float]) -> Launch: ...

    def with_budget(self, budget: float) -> Program:
        """Returns the same program, of which counting may take so many times the usual work.

        Raises:
            KernelError: for a budget that leaves nothing.
        """

    def with_contents(self, contents: Mapping[str, Any]) -> Program:
        """Returns the same program, of which it is known what these arrays hold, beside those of which it is already;
        a Loopy program as OpenCL C source."""

    def as_opencl(self) -> OpenCLProgram:
        """Returns the same program as OpenCL C source."""


@runtime_checkable
class EmulatesItself(Protocol):
    """A program of this kind is machine code, counted as it stands by emulating blocks of its grid."""

    is_machine_code: bool

    def as_observed(self, arrays: Mapping[str, Any] | None, groups: Any = "sample", seed: int = 0) -> Program:
        """Returns the same program, counted on what these arrays hold."""

    def as_compiled(self) -> Program:
        """Returns the same program, counted by what the assembler makes of it, where that is installed."""


def runtime_of(programs: Iterable[Program]) -> str:
    """Returns what runs these programs, if one runtime does: CUDA if all of them are machine code."""
    found = [isinstance(program, EmulatesItself) for program in programs]
    return CUDA if found and all(found) else OPENCL
