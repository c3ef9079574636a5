"""One launch of an OpenCL C kernel and its arguments, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class ArrayArgument:
    """A kernel's global array of `size` elements of a numpy `dtype`; a vector type counts as its elements."""

    name: str
    dtype: str
    size: int
    is_output: bool


@dataclass(frozen=True)
class ScalarArgument:
    """A kernel's argument passed by value, of a numpy `dtype`."""

    name: str
    dtype: str
    value: float


@dataclass(frozen=True)
class LocalArgument:
    """Local memory of `n_bytes` a work-group, given by the launch."""

    name: str
    n_bytes: int


Argument: TypeAlias = ArrayArgument | ScalarArgument | LocalArgument


@dataclass(frozen=True)
class Launch:
    """One launch of an OpenCL C kernel: everything that decides what the device does.

    Attributes:
        global_size: work-items along each axis.
        local_size: work-items of a work-group along each axis; divides `global_size`.
        arguments: in the kernel's order.
        build_options: given to the OpenCL compiler.
        copied_in, copied_out: arrays copied to the device before, and from it after, as part of what is timed.
    """

    source: str
    kernel_name: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: tuple[Argument, ...]
    build_options: tuple[str, ...] = ()
    copied_in: tuple[str, ...] = ()
    copied_out: tuple[str, ...] = ()

    def arrays(self) -> list[ArrayArgument]:
        return [argument for argument in self.arguments if isinstance(argument, ArrayArgument)]
