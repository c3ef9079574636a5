"""Says what a program of the survey is: a kernel of a .cl file, its launches, and what must come out of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

FOLDER = Path(__file__).parent
SIZES = ("cpu", "gpu")
"""Each case is launched at a size that one processor core does in milliseconds, and at one for a large GPU."""

Array: TypeAlias = np.ndarray[Any, Any]
Rng: TypeAlias = np.random.Generator
Arrays: TypeAlias = Mapping[str, Any]
"""Arrays and scalars by the names of a kernel's arguments."""


@dataclass(frozen=True)
class Local:
    """This argument is so many bytes of local memory."""

    bytes: int


@dataclass(frozen=True)
class Random:
    """This argument is an array of random numbers from `low` up to, but without, `high`."""

    dtype: str
    size: int
    low: float = 0
    high: float = 1

    def array(self, rng: Rng) -> Array:
        dtype = np.dtype(self.dtype)
        if dtype.kind in "iu":
            whole: Array = rng.integers(int(self.low), int(self.high), self.size, dtype)
            return whole
        single = np.dtype(np.float32)
        values: Array = rng.random(self.size, np.float32 if dtype == single else np.float64)
        values *= self.high - self.low
        values += self.low
        below = np.nextafter(dtype.type(self.high), dtype.type(self.low))
        return np.asarray(np.minimum(values, below), dtype)


@dataclass(frozen=True)
class Zeros:
    """This argument is an array of zeros; structs are told by their dtype."""

    dtype: str | np.dtype[Any]
    size: int

    def array(self, rng: Rng) -> Array:
        return np.zeros(self.size, self.dtype)


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel, and how its results are judged.

    Attributes:
        arguments: in the kernel's order: numpy scalars (structured ones for structs by value), arrays, `Random`,
            `Zeros` and `Local`.
        reference: gives the expected contents of the arrays that it names, from the arguments before the launch.
        invariant: raises AssertionError unless the arguments after the launch fit those before it.
        tolerance: how far floating-point numbers may be off, as a part of themselves and of the array's mean absolute
            value.
        outliers: the part of an array that may be further off, as where rounding decides a comparison.
    """

    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: Arrays
    reference: Callable[[Arrays], Arrays] | None = None
    invariant: Callable[[Arrays, Arrays], None] | None = None
    tolerance: float = 1e-4
    outliers: float = 0.0


@dataclass(frozen=True)
class Case:
    """A kernel of a .cl file beside this module, with what makes its launches from sizes.

    Attributes:
        make: gives a launch, from a generator of random numbers and the sizes.
        sizes: of the launches "cpu" and "gpu".
        any_order: arrays whose contents depend on the order in which work-items run.
        any_rounding: arrays of whole numbers made of floats that OpenCL lets every device round in its own way.
    """

    name: str
    group: str
    source: str
    kernel: str
    options: tuple[str, ...]
    make: Callable[..., Launch]
    sizes: Mapping[str, Mapping[str, int]]
    any_order: tuple[str, ...] = ()
    any_rounding: tuple[str, ...] = ()

    def launch(self, size: str) -> Launch:
        """Returns the launch at one of `SIZES`; its arrays are the same each time."""
        return self.make(self._rng(size, 0), **self.sizes[size])

    def arrays(self, size: str, launch: Launch) -> dict[str, Any]:
        """Returns a launch's arguments by name, with `Random` and `Zeros` made into arrays."""
        rng = self._rng(size, 1)
        return {
            name: value.array(rng) if isinstance(value, Random | Zeros) else value
            for name, value in launch.arguments.items()
        }

    @property
    def text(self) -> str:
        return (FOLDER / self.source).read_text(encoding="utf-8")

    def _rng(self, size: str, stream: int) -> Rng:
        return np.random.default_rng([zlib.crc32(f"{self.name} {size}".encode()), stream])


@dataclass
class Group:
    """Collects the cases of one module; `case` decorates the function that makes a case's launches."""

    name: str
    source: str
    cases: list[Case] = field(default_factory=list)

    def case(
        self,
        cpu: Mapping[str, int],
        gpu: Mapping[str, int],
        kernel: str = "",
        options: tuple[str, ...] = (),
        source: str = "",
        any_order: tuple[str, ...] = (),
        any_rounding: tuple[str, ...] = (),
    ) -> Callable[[Callable[..., Launch]], Callable[..., Launch]]:
        def add(make: Callable[..., Launch]) -> Callable[..., Launch]:
            name = make.__name__
            self.cases.append(
                Case(
                    name=name,
                    group=self.name,
                    source=source or self.source,
                    kernel=kernel or name,
                    options=options,
                    make=make,
                    sizes={"cpu": cpu, "gpu": gpu},
                    any_order=any_order,
                    any_rounding=any_rounding,
                )
            )
            return make

        return add


def up(size: int, multiple: int) -> int:
    """Returns the next multiple that is not below a size."""
    return -(-size // multiple) * multiple
