"""Kernels whose machine code tests count, as Intel's driver for processors makes it."""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.kernels.arguments import Argument, Array, Scalar
from perfmodel.kernels.driver_code import driver_code, intel_processor
from perfmodel.kernels.opencl_program import OpenCLProgram

needs_driver = pytest.mark.skipif(intel_processor() is None, reason="Intel's driver for processors is not here")


def kernel(body: str, local: int | tuple[int, ...] = 64, items: int | tuple[int, ...] = 4096) -> pm.Kernel:
    source = f"__kernel void k(__global float *a, __global const float *b, int n) {{\n{body}\n}}\n"
    arguments: list[Argument] = [
        Array("a", "float32", 1 << 16, is_output=True),
        Array("b", "float32", 1 << 16),
        Scalar("n", "int32"),
    ]
    return pm.Kernel(OpenCLProgram(source, "k", items, local, arguments), {}, None, n=64).as_core_code()


def core(name: str, of: pm.Kernel) -> float:
    return float(pm.feature(f"f_core_{name}").eval(of))


def lanes() -> int:
    made = driver_code(ONE, "k", ())
    assert made is not None
    return made.lanes["k"]


ONE = "__kernel void k(__global float *a) { a[get_global_id(0)] += 1; }"
PRODUCT = """size_t i = get_global_id(0); float s = 0; {pragma}
for (int j = 0; j < {turns}; j++)
    s += a[i] * b[j * 3];
a[i] = s;"""
