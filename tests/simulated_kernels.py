"""Kernels of OpenCL C for campaigns: many that are alike, and some that make trouble."""

from __future__ import annotations

import perfmodel as pm
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.opencl_program import OpenCLProgram


def kernel(name: str = "fine", n: int = 64, body: str = "a[get_global_id(0)] += n;") -> pm.Kernel:
    source = f"__kernel void {name}(__global float *a, long n)\n{{\n  {body}\n}}\n"
    arguments = (Array("a", "float32", "n"), Scalar("n", "int64"))
    return pm.Kernel(OpenCLProgram(source, name, ("n",), (1,), arguments), n=n)


def kernels(count: int, name: str = "fine") -> list[pm.Kernel]:
    return [kernel(name, n=64 + index) for index in range(count)]
