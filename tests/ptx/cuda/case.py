"""CUDA kernels with launches, data, and what numpy says that they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel import Kernel

Arrays = dict[str, NDArray[Any]]
CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """A kernel at one launch.

    Attributes:
        expected: what arrays hold afterwards, from what they held before.
        tolerance: relative, of floats.
        elements: of arrays of vectors, where they differ from numpy's.
    """

    source: str
    name: str
    grid: Any
    block: Any
    arrays: Arrays
    scalars: Mapping[str, float]
    expected: Callable[[Arrays], Arrays]
    tolerance: float = 1e-6
    shared: int = 0
    options: tuple[str, ...] = ()
    elements: Mapping[str, int] = field(default_factory=dict)

    def kernel(self) -> Kernel:
        elements = {name: array.size for name, array in self.arrays.items()} | dict(self.elements)
        kernel = Kernel.from_cuda(
            self.source, self.name, self.grid, self.block, elements, self.options, shared=self.shared
        )
        return kernel.at(**self.scalars)


def case(
    source: str,
    grid: Any,
    block: Any,
    arrays: Arrays,
    expected: Callable[[Arrays], Arrays],
    name: str = "",
    **more: Any,
) -> None:
    """Adds a case; what is no field of it is a scalar argument."""
    fields = {key: more.pop(key) for key in ("tolerance", "shared", "options", "elements", "title") if key in more}
    title = fields.pop("title", "") or name or source.partition("(")[0].split()[-1]
    assert title not in CASES
    kernel = name or source[source.index("__global__") :].partition("(")[0].split()[-1]
    CASES[title] = Case(
        source=source, name=kernel, grid=grid, block=block, arrays=arrays, scalars=more, expected=expected, **fields
    )


def floats(*shape: int, seed: int = 1, dtype: str = "float32") -> NDArray[Any]:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(dtype)


def whole(*shape: int, low: int = 0, high: int = 1000, seed: int = 2, dtype: str = "int32") -> NDArray[Any]:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def zeros(*shape: int, dtype: str = "float32") -> NDArray[Any]:
    return np.zeros(shape, dtype)


ID = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
