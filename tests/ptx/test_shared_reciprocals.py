"""Quotients by one divisor share its reciprocal: NVIDIA's assembler makes it once for all that follow."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")

N, BLOCK = 1024, 64
SOURCE = """
__global__ void k(const T *a, T *out, T m, T w)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    T x = a[i], y = a[i + 1], r;
    BODY
    out[i] = r;
}
"""
# How many instructions MUFU.RCP ptxas 13.0 makes of each.
RECIPROCALS = {
    "r = x % m;": 1,
    "r = x % m + y % m;": 1,
    "r = x / m + y % m;": 1,
    "r = x % m + y % w;": 2,
    "r = x % m; if (y > 3) r += y % m + i % m;": 1,
    "r = y; if (x > 3) r = x % m; r += y % m;": 2,
    "r = 0; for (int k = 0; k < 100; k++) r += (x + k * y) % m;": 100 // 4,
}


@pytest.mark.parametrize("body", RECIPROCALS)
@pytest.mark.parametrize("type_", ["int", "unsigned"])
def test_divisors_have_one_reciprocal_before_all_that_they_divide(body: str, type_: str) -> None:
    dtype = "int32" if type_ == "int" else "uint32"
    source = SOURCE.replace("BODY", body).replace("T ", f"{type_} ")
    kernel = pm.Kernel.from_cuda(source, "k", N // BLOCK, BLOCK, {"a": N + 1, "out": N}, m=7, w=5)
    kernel = kernel.as_observed({"a": np.full(N + 1, 9, dtype)})
    found = sum(float(pm.feature(f"f_op_{dtype}_{kind}").eval(kernel)) for kind in ("div", "mod"))
    assert found == RECIPROCALS[body] * N
