"""A program in another form: it runs as the program that it is made of, and is counted in another way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from perfmodel.basics.brief import brief
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import Program

P = TypeVar("P", bound=Program)


class DerivedProgram(Generic[P]):
    """A derived program has the name, arguments, checks and launch of another; subclasses say how it is counted."""

    is_of_compiler: ClassVar[bool] = False
    """True where it is counted as a compiler leaves it."""

    @classmethod
    def of(cls, program: P) -> Self:
        """Returns a program in this form: the same object for the same program, so that counts are kept."""
        name = f"_form_{cls.__name__}"
        found: Self | None = getattr(program, name, None)
        if found is None or found.program is not program:  # a copy has that of its original
            found = cls(program)
            object.__setattr__(program, name, found)
        return found

    def __init__(self, program: P) -> None:
        self.program = program
        self.name, self.arguments, self.sizes = program.name, program.arguments, program.sizes

    @property
    def content(self) -> str:
        """The content of the underlying program: what the device is given is the same."""
        return self.program.content

    @property
    def deciding(self) -> tuple[str, ...]:
        return self.program.deciding

    @property
    def budget(self) -> float:
        return self.program.budget

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        return self.program.knows_addresses(subgroup_size, at)

    def check(self, sizes: Mapping[str, Any]) -> None:
        self.program.check(sizes)

    def check_launch(self, sizes: Mapping[str, Any]) -> None:
        self.program.check_launch(sizes)

    def launch(self, arguments: Mapping[str, float]) -> Launch:
        return self.program.launch(arguments)

    def with_budget(self, budget: float) -> Self:
        return type(self)(cast("P", self.program.with_budget(budget)))

    def with_contents(self, contents: Mapping[str, Any]) -> Self:
        return type(self)(cast("P", self.program.with_contents(contents)))

    def as_opencl(self) -> OpenCLProgram:
        return self.program.as_opencl()

    def __repr__(self) -> str:
        return brief(self, repr(self.program))
