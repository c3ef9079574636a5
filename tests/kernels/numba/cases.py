"""Calls of the kernels of `tests.kernels.numba.sources`, and what numpy computes of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
RANDOM = np.random.default_rng(1)


@dataclass(frozen=True)
class Case:
    """A call of a kernel.

    Attributes:
        arguments: by name, in the kernel's order.
        wanted: gives what arrays hold afterwards, by name.
    """

    grid: Any
    block: Any
    arguments: Mapping[str, Any]
    wanted: Callable[[], Mapping[str, Values]]
    shared: int = 0

    @property
    def arrays(self) -> dict[str, Values]:
        return {name: value for name, value in self.arguments.items() if isinstance(value, np.ndarray)}


def floats(*shape: int, dtype: str = "float32") -> Values:
    return RANDOM.normal(size=shape).astype(dtype)


X, Y = floats(1000), floats(1000)
A, B = floats(40, 50), floats(50, 33)
D = floats(1000, dtype="float64")
H = RANDOM.integers(0, 20, 1000).astype("int32")
PRICE, STRIKE, YEARS = (RANDOM.uniform(low, low + 1, 500) for low in (1.0, 1.5, 0.2))
IMAGE = RANDOM.integers(0, 256, (30, 50)).astype("uint8")
CUBE = floats(4, 5, 6)


def priced() -> Mapping[str, Values]:
    def black(value: Values) -> Values:
        return np.asarray(0.5 * (1 + np.vectorize(erf)(value / np.sqrt(2))))

    root = 0.3 * np.sqrt(YEARS)
    d = (np.log(PRICE / STRIKE) + (0.05 + 0.045) * YEARS) / root
    return {"out": PRICE * black(d) - STRIKE * np.exp(-0.05 * YEARS) * black(d - root)}


def blurred() -> Mapping[str, Values]:
    found = np.zeros((30, 50), "int64")
    parts = [IMAGE[1 + y : 29 + y, 1 + x : 49 + x].astype("int64") for y in (-1, 0, 1) for x in (-1, 0, 1)]
    found[1:-1, 1:-1] = sum(parts) // 9
    return {"out": found}


def escaped() -> Mapping[str, Values]:
    y, x = np.mgrid[:20, :30]
    c = (x * 3.0 / 30 - 2.0) + 1j * (y * 2.0 / 20 - 1.0)
    z, count = np.zeros_like(c), np.zeros((20, 30), "int32")
    for _ in range(25):
        inside = z.real**2 + z.imag**2 <= 4
        z, count = np.where(inside, z * z + c, z), count + inside
    return {"out": count}


CASES = {
    "axpy": Case(4, 256, {"a": 2.5, "x": X, "y": Y}, lambda: {"y": 2.5 * X.astype(float) + Y}),
    "matmul": Case((3, 3), (16, 16), {"a": A, "b": B, "c": floats(40, 33)}, lambda: {"c": A @ B}),
    "block_sums": Case(4, 256, {"x": D, "out": np.zeros(1)}, lambda: {"out": D.sum(keepdims=True)}, shared=2048),
    "histogram": Case(
        3, 128, {"x": H, "counts": np.zeros(20, "int32")}, lambda: {"counts": np.bincount(H, minlength=20)}
    ),
    "options": Case(
        4,
        128,
        {"price": PRICE, "strike": STRIKE, "years": YEARS, "out": np.zeros(500), "rate": 0.05, "volatility": 0.3},
        priced,
    ),
    "blur": Case((4, 8), (16, 4), {"image": IMAGE, "out": np.zeros((30, 50), "uint8")}, blurred),
    "warp_sums": Case(
        4, 64, {"x": X[:256].copy(), "out": np.zeros(8, "float32")}, lambda: {"out": X[:256].reshape(8, 32).sum(1)}
    ),
    "escapes": Case((2, 3), (16, 8), {"out": np.zeros((20, 30), "int32"), "limit": 25}, escaped),
    "strided": Case(
        (1, 2, 2),
        (4, 4, 4),
        {"x": CUBE, "out": np.zeros((4, 5, 6), "float32").T},
        lambda: {"out": 2 * CUBE[:, :, ::-1].transpose(2, 1, 0)},
    ),
}
