"""A program that is counted by what a compiler makes of it, at sizes that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar

from perfmodel.basics.errors import CountingError
from perfmodel.counting.counts import KernelCounts
from perfmodel.kernels.compiled import as_compiled
from perfmodel.kernels.derived_program import DerivedProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import Program

P = TypeVar("P", bound=Program)


class CountedAtNumbers(DerivedProgram[P]):
    """A program in this form has counts at a value for each of its arguments alone, which all decide on them."""

    is_of_compiler = True

    @cached_property
    def compiled(self) -> Program:
        """The program as compiled, which says what machine code doesn't."""
        return as_compiled(self.program)

    @property
    def deciding(self) -> tuple[str, ...]:
        return tuple(name for name in self.arguments if name not in self.sizes)

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        """True: there are no counts for all sizes."""
        return True

    def numbers(self, at: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the values that it is counted at.

        Raises:
            CountingError: a size has none.
        """
        known = dict(at or {})
        if missing := [name for name in self.sizes if name not in known]:
            raise CountingError(
                f"kernel {self.name!r} is counted as machine code, at sizes that are numbers; give {', '.join(missing)}"
            )
        return known

    def compiled_counts(self, subgroup_size: int | None, known: Mapping[str, Any]) -> KernelCounts:
        """Returns the counts of the program as compiled at these values."""
        own = {name: value for name, value in known.items() if name in (*self.sizes, *self.compiled.deciding)}
        return self.compiled.counts_for(subgroup_size, own or None)

    def as_opencl(self) -> OpenCLProgram:
        return self.compiled.as_opencl()
