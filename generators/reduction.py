"""Sums by a tree of additions in local memory (Panwar et al., Table II)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import GROUPS_FIT, choice, size, work_group
from perfmodel.kernels.arguments import C_TYPES, Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """
#ifdef REMAINDERS
#define LOADED(place) ((place) < n ? values[place] : 0)
#else
#define LOADED(place) values[place]
#endif

__kernel __attribute__((reqd_work_group_size(LSIZE, 1, 1)))
void reduction(__global const ELEMENT *values, __global ELEMENT *sums, const int n)
{
    __local ELEMENT part[LSIZE];
    const int item = get_local_id(0);
    const int first = 2 * (int)get_global_id(0);
    part[item] = LOADED(first) + LOADED(first + 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int active = LSIZE / 2; active > 0; active /= 2) {
        if (item < active)
            part[item] += part[item + active];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        sums[get_group_id(0)] = part[0];
}
"""


class Reduction(KernelGenerator):
    """One work-item two neighbouring elements, whose sum each work-group of a power of two adds to the others'.

    The result is one sum a work-group; those of floating-point numbers are exact to rounding.
    """

    name = "reduction"
    summary = "sums of twice a work-group's elements, by a tree in local memory"
    source = "Panwar et al., Table II, Reduction"
    limits = "an lsize_0 that is no power of two"
    tags = (
        choice("dtype", "element type", "float32", "float64", "int32"),
        *work_group(256),
        GROUPS_FIT,
        size("n", "elements", 2**20, 2**22, 2**24, 2**26),
    )
    checks = (
        ("groups_fit:True", "lsize_0:1,16,64", "n:128,384"),
        ("groups_fit:False", "lsize_0:2,64", "n:1,129,200"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize, is_fit = variant["dtype"], int(variant["lsize_0"]), variant["groups_fit"] == "True"
        groups = f"(n + {2 * lsize - 1}) // {2 * lsize}"
        return OpenCLProgram(
            SOURCE,
            self.name,
            f"{groups} * {lsize}",
            lsize,
            [Array("values", dtype, "n"), Array("sums", dtype, groups, is_output=True), Scalar("n", "int32")],
            [f"-DELEMENT={C_TYPES[dtype]}", f"-DLSIZE={lsize}", *([] if is_fit else ["-DREMAINDERS"])],
            f"n % {2 * lsize} == 0" if is_fit else "",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": 2 * int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return int(variant["lsize_0"]).bit_count() == 1

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        values = arrays["values"]
        return {"sums": np.add.reduceat(values, np.arange(0, values.size, 2 * int(kernel.tags["lsize_0"])))}
