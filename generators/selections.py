"""Numbers that pass a test are counted by atomics, as filters, queues and histograms of outliers do."""

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
__kernel void selections(__global const uint *x, __global uint *counts, const uint m, const uint n)
{
    __local uint few[4];
    const size_t i = get_global_id(0);
    if (get_local_id(0) < 4)
        few[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < m; ++k) {
        const uint v = (x[k * (size_t)n + i] + (k * n + (uint)i) * 40503u) * 2654435761u >> 12;
        if ((v & 255) < PASS)
            atomic_inc(&COUNTER);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) < 4)
        atomic_add(&counts[get_local_id(0)], few[get_local_id(0)]);
}
"""
COUNTERS = {"local": "few[v >> 8 & 3]", "global": "counts[v >> 8 & 3]"}
OF = 256
"""A number passes if its hash, of so many, is below ``passed``."""


class Selections(KernelGenerator):
    """Each work-item tests m numbers, and counts those that pass: in counters of its work-group or of the launch.

    Hardly any pass, or some, half of them or all; nobody can tell which.
    """

    name = "selections"
    summary = "numbers counted if they pass a test"
    source = "filters, work queues and histograms of everyday programs"
    limits = "more numbers that pass than there are"
    tags = (
        choice("space", "memory that the counters lie in", *COUNTERS),
        number("passed", f"numbers that pass, of {OF}", 0, 16, 128, 256, default=128),
        size("m", "numbers of a work-item", 4, 16),
        *work_group(256),
        size("n", "work-items", 2**12, 2**16),
    )
    checks = (("space:*", "passed:*", "m:4", "lsize_0:64,128,256,512", "n:512"),)

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        return OpenCLProgram(
            SOURCE.replace("PASS", f"{int(variant['passed'])}u").replace("COUNTER", COUNTERS[variant["space"]]),
            self.name,
            "n",
            lsize,
            [
                Array("x", "uint32", "m * n"),
                Array("counts", "uint32", 4, is_output=True),
                Scalar("m", "uint32"),
                Scalar("n", "uint32"),
            ],
            (),
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return int(variant["passed"]) <= OF

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        mixed = arrays["x"] + np.arange(arrays["x"].size, dtype=np.uint32) * np.uint32(40503)
        hashes = mixed * np.uint32(2654435761) >> np.uint32(12)
        passing = hashes[(hashes & 255) < int(kernel.tags["passed"])]
        found = np.bincount(passing >> 8 & 3, minlength=4)
        return {"counts": arrays["counts"] + found.astype(np.uint32)}
