"""Rows that a work-group each sums up: work-items by turns, then a tree of sums in local memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import INDEX, INDEX_TYPES, choice, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__kernel void group_sums(__global const float *x, __global float *y, const int m, const int n)
{
    __local float part[LSIZE];
    const INDEX l = get_local_id(0);
    __global const float *row = x + get_group_id(0) * (size_t)m;
    float total = 0;
    TURNS
    part[l] = total;
    TREE
    if (l == 0) y[get_group_id(0)] = part[0];
}
"""
TURNS = {
    "bounded": "for (INDEX k = l; k < m; k += LSIZE) total += row[k];",
    "counted": "for (INDEX k = 0; k < m / LSIZE; ++k) total += row[k * LSIZE + l];",
}
TREES = {
    "halves": "for (INDEX half_ = LSIZE / 2; half_ > 0; half_ >>= 1) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (l < half_) part[l] += part[l + half_];\n"
    "    }",
    "first": "barrier(CLK_LOCAL_MEM_FENCE);\n    if (l == 0) for (INDEX k = 1; k < LSIZE; ++k) part[0] += part[k];",
}


class GroupSums(KernelGenerator):
    """A work-group sums a row of m numbers, as pooling, norms and dot products do.

    Work-items go on until they reach the row's end (`bounded`), which each of them might do at another turn, or do as
    many turns as all others (`counted`). Their sums are added by a tree, half of the work-items at a time (`halves`),
    or by the first of them.
    """

    name = "group_sums"
    summary = "sums of rows by work-groups, with trees of sums in local memory"
    source = "pooling, norms and dot products of everyday programs"
    tags = (
        choice("turns", "what ends a work-item's loop", *TURNS),
        choice("tree", "who adds the work-items' sums", *TREES),
        INDEX,
        size("m", "numbers of a row", 256, 1024, 4096),
        *work_group(64),
        size("n", "work-items", 2**12, 2**16, 2**18),
    )
    checks = (("turns:*", "tree:*", "index:*", "m:512", "lsize_0:64,128,256,512", "n:512"),)

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        source = SOURCE.replace("TURNS", TURNS[variant["turns"]]).replace("TREE", TREES[variant["tree"]])
        return OpenCLProgram(
            source.replace("INDEX", INDEX_TYPES[variant["index"]]),
            self.name,
            "n",
            lsize,
            [
                Array("x", "float32", f"m * (n // {lsize})"),
                Array("y", "float32", f"n // {lsize}", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            [f"-DLSIZE={lsize}"],
            f"n % {lsize} == 0 and m % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"]), "m": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        rows = arrays["x"].reshape(-1, int(kernel.sizes["m"]))
        return {"y": rows.sum(1, dtype=np.float64).astype(np.float32)}
