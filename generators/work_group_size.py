"""A family that shows how the size of the work-group affects the time (Pöppl & Herz, "Workgroup Size")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import number, size
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__kernel void work_group_size(__global const float *a, __global float *out, const uint n)
{
    const uint i = get_global_id(0);
    out[i] = 747.18744f / a[i];
}
"""


class WorkGroupSize(KernelGenerator):
    """Each work-item reads a number, divides another by it, and writes the quotient."""

    name = "work_group_size"
    summary = "a load, a division and a store, in work-groups of any size"
    source = "Pöppl & Herz, Workgroup Size"
    tags = (
        number(
            "lsize_0",
            "work-items of a work-group",
            *(1, 8, 16, 24, 31, 32, 33, 48, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024),
            default=256,
        ),
        size("n", "work-items", 2**20, 2**22, 2**24),
    )
    # Of a power of two, each is checked with the next size that fits.
    checks = (
        ("lsize_0:1..34,48,64,96,128,160,192,224,256,320", "n:2^10"),
        ("lsize_0:384,448,512,640,768,896,1024", "n:2^10"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        arguments: list[Array | Scalar] = [
            Array("a", "float32", "n"),
            Array("out", "float32", "n", is_output=True),
            Scalar("n", "uint32"),
        ]
        return OpenCLProgram(SOURCE, self.name, "n", lsize, arguments, assumptions=f"n % {lsize} == 0")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {"out": np.float32(747.18744) / arrays["a"]}
