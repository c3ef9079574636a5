"""Builds the calls of kernels of Triton that `tests.kernels.triton.cases` makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.emulation.narrow_floats import decoded, encoded

Values = NDArray[Any]
RANDOM = np.random.default_rng(1)


@dataclass(frozen=True)
class Narrow:
    """An array of a type that numpy lacks, by its bits."""

    type: str
    bits: Values

    @property
    def values(self) -> Values:
        return decoded(self.bits, SHORT[self.type])


@dataclass(frozen=True)
class Tiles:
    """A tensor descriptor as Triton has it, of an array that is copied by tiles."""

    base: Values
    block_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(step // self.base.itemsize for step in self.base.strides)


SHORT = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


@dataclass(frozen=True)
class Case:
    """A call of a kernel.

    Attributes:
        arguments: arrays and numbers by name, in the kernel's order, without constants.
        constants: and options of the compiler; functions by their names in the sources.
        wanted: gives what arrays hold afterwards, by name.
        type: of these arrays, where numpy lacks it.
        tolerance: relative and absolute.
    """

    function: str
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    constants: Mapping[str, Any]
    wanted: Callable[[], Mapping[str, Values]]
    tolerance: float = 1e-5
    type: str = ""
    target: str = "sm_90"
    functions: Mapping[str, str] = field(default_factory=dict)

    @property
    def arrays(self) -> dict[str, Values]:
        """The arrays as they are at first, by the bits that numpy has for them."""
        found = {}
        for name, value in self.arguments.items():
            if isinstance(value, Narrow | Tiles | np.ndarray):
                bits = value.bits if isinstance(value, Narrow) else value
                found[name] = bits.base if isinstance(bits, Tiles) else bits
        return found


def floats(*shape: int, dtype: str = "float32") -> Values:
    return RANDOM.normal(size=shape).astype(dtype)


def narrow(type_: str, *shape: int) -> Narrow:
    return Narrow(type_, encoded(RANDOM.normal(size=shape), SHORT[type_]))


def zeros(*shape: int, dtype: str = "float32") -> Values:
    return np.zeros(shape, dtype)


def softmax(x: Values) -> Values:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def normalized(x: Values) -> Values:
    return np.asarray((x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5))


CASES: dict[str, Case] = {}


def halves(*shape: int) -> Values:
    return floats(*shape, dtype="float16")


def case(
    function: str,
    grid: tuple[int, ...],
    arguments: Mapping[str, Any],
    constants: Mapping[str, Any],
    wanted: Callable[[], Mapping[str, Values]],
    tolerance: float = 1e-5,
    title: str = "",
    **more: Any,
) -> None:
    CASES[title or function] = Case(
        function=function,
        grid=grid,
        arguments=arguments,
        constants=constants,
        wanted=wanted,
        tolerance=tolerance,
        **more,
    )
