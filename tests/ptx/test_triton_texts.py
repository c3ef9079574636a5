"""PTX that Triton made is read, emulated and predicted like any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from perfmodel import Calibration, Kernel, emulate
from perfmodel.kernels.arguments import Argument, Array, Scalar
from perfmodel.vocabulary.named_features import feature

FOLDER = Path(__file__).parent / "triton_texts"
RANDOM = np.random.default_rng(1)
ROWS = RANDOM.normal(size=(6, 777)).astype("float32")
MATRICES = [RANDOM.normal(size=(96, 96)).astype("float32") for _ in range(2)]
NUMBERS = RANDOM.normal(size=4096).astype("float32")
WHOLE = RANDOM.integers(0, 50, 4096).astype("int32")


def softmax(x: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


CASES: dict[str, tuple[Any, list[Any], int, Callable[[], NDArray[Any]]]] = {
    "softmax": (6, [np.zeros_like(ROWS), ROWS, 777, 777], 16, lambda: softmax(ROWS)),
    "mm": ((3, 3), [np.zeros((96, 96), "float32"), *MATRICES, 96], 16384, lambda: MATRICES[0] @ MATRICES[1]),
    "cumsum": (4, [np.zeros_like(NUMBERS), NUMBERS, 4096], 128, lambda: NUMBERS.reshape(4, 1024).cumsum(1).ravel()),
    "histogram": (4, [np.zeros(50, "int32"), WHOLE, 4096], 0, lambda: np.bincount(WHOLE, minlength=50)),
}


def kernel_of(name: str) -> tuple[Kernel, dict[str, NDArray[Any]]]:
    """Returns a kernel, and what its arrays hold; behind its own arguments, Triton has two of its runtime."""
    grid, given, shared, _ = CASES[name]
    names = [f"{name}_param_{place}" for place in range(len(given) + 2)]
    arrays = {each: value for each, value in zip(names, given, strict=False) if isinstance(value, np.ndarray)}
    numbers = {each: value for each, value in zip(names, given, strict=False) if not isinstance(value, np.ndarray)}
    declared: list[Argument] = [
        Scalar(each, "int32") if each in numbers else Array(each, *_shape(arrays.get(each))) for each in names
    ]
    kernel = Kernel.from_ptx(FOLDER / f"{name}.ptx", None, grid, 128, declared, shared=shared)
    return kernel.at(**numbers), arrays


def _shape(array: NDArray[Any] | None) -> tuple[str, int]:
    return ("uint8", 1) if array is None else (array.dtype.name, array.size)


@pytest.mark.parametrize("name", CASES)
def test_texts_compute_what_numpy_computes(name: str) -> None:
    kernel, arrays = kernel_of(name)
    wanted = CASES[name][3]()
    found = emulate(kernel, arrays, groups="all").array(f"{name}_param_0").reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_texts_are_predicted(name: str) -> None:
    kernel, arrays = kernel_of(name)
    assert 1e-6 < float(Calibration.shipped(device="H200").predict(kernel.as_observed(arrays))) < 1e-4


def test_asynchronous_copies_are_loads() -> None:
    kernel, _ = kernel_of("mm")
    loads = feature("f_mem_access_global_float32_load").eval(kernel)
    assert loads >= 2 * 96**3 / 32  # of a tile of 32 by 32, each element once for each row or column of tiles
    assert feature("f_op_float32_madd").eval(kernel) == 96**3
