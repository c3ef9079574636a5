"""Work-groups that hold much local memory, so that a device has room for few of them at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__kernel void residency(__global const float *a, __global float *out, const int m, const int n)
{
    __local float held[WORDS];
    const int i = get_global_id(0);
    const int l = get_local_id(0);
    const int size = get_local_size(0);
    float total = a[i];
    for (int k = 0; k < m; ++k) {
        STEP
    }
    held[l] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = held[size - 1 - l];
}
"""
TILE = """held[l] = a[k * n + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < READS; ++j)
            total += held[(l + j) & (size - 1)];
        barrier(CLK_LOCAL_MEM_FENCE);"""
STEPS = {
    "load": "total += a[k * n + i];",
    "tile": TILE.replace("READS", "1"),
    "reused": TILE.replace("READS", "16"),
    "madd": "total = 0.5f * total + 1.0f;",
}


class Residency(KernelGenerator):
    """Each work-item loads, or computes, m times, in work-groups that hold some local memory.

    The more a group holds, the fewer of them a compute unit has room for, and the less there is to do while one waits.
    """

    name = "residency"
    summary = "waits of work-groups of which local memory leaves room for few at a time"
    source = "tiled products and stencils whose tiles are large"
    limits = "work-groups whose size is no power of two, or that hold less than a number for each work-item"
    tags = (
        choice("step", "what is done each time", *STEPS),
        number("held", "bytes of local memory that a work-group holds", 1024, 8192, 16384, 45056),
        size("m", "times", 16, 64),
        *work_group(256),
        size("n", "work-items", 2**16, 2**18, 2**20),
    )
    checks = (
        ("step:*", "held:1024", "m:16", "lsize_0:64", "n:128"),
        ("step:*", "held:8192,16384,45056", "m:16,64", "lsize_0:16,32,64,128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        return OpenCLProgram(
            SOURCE.replace("STEP", STEPS[variant["step"]]),
            self.name,
            "n",
            lsize,
            [
                Array("a", "float32", "m*n"),
                Array("out", "float32", "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            [f"-DWORDS={int(variant['held']) // 4}"],
            f"n % {lsize} == 0 and m >= 1",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        lsize = int(variant["lsize_0"])
        return lsize & (lsize - 1) == 0 and 4 * lsize <= int(variant["held"])

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, m, lsize, step = (
            int(kernel.sizes["n"]),
            int(kernel.sizes["m"]),
            int(kernel.tags["lsize_0"]),
            kernel.tags["step"],
        )
        a = arrays["a"].reshape(m, n // lsize, lsize)
        total = a[0].copy()
        for k in range(m):
            if step == "madd":
                total = np.float32(0.5) * total + np.float32(1)
            elif step == "load":
                total += a[k]
            else:
                for j in range(1 if step == "tile" else 16):
                    total += np.roll(a[k], -j, axis=1)
        return {"out": total[:, ::-1].reshape(n)}
