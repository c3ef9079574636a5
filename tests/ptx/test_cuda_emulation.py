"""CUDA kernels, compiled to PTX and emulated, compute what numpy computes."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import emulate
from tests.ptx.cuda import CASES

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")


@pytest.mark.parametrize("title", CASES)
def test_cuda_kernel_computes_what_numpy_computes(title: str) -> None:
    case = CASES[title]
    profile = emulate(case.kernel(), case.arrays, groups="all")
    expected = case.expected({name: array.copy() for name, array in case.arrays.items()})
    assert expected
    for name, wanted in expected.items():
        found = profile.array(name).reshape(case.arrays[name].shape)
        if found.dtype.kind == "f":
            np.testing.assert_allclose(
                found.astype("float64"), np.asarray(wanted, "float64"), case.tolerance, case.tolerance
            )
        else:
            np.testing.assert_array_equal(found, wanted)
