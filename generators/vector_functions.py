"""Functions of vectors with four numbers, applied again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__kernel void vector_functions(__global const VECTOR *a, __global VECTOR *out, const int m, const int n)
{
    const size_t i = get_global_id(0);
    VECTOR v = a[i];
    for (int k = 0; k < m; ++k)
        v = RESULT;
    out[i] = v;
}
"""
FUNCTIONS = {
    "add": "v * 0.5f + 1.0f",
    "min": "fmin(v * 0.5f + 1.0f, 3.0f)",
    "dot": "v * 0.5f + fmin(0.1f * dot(v, v), 1.0f)",
    "length": "v * 0.5f + 0.1f * length(v)",
    "sqrt": "sqrt(v + 1.0f)",
    "mix": "mix(v, (VECTOR)(1.0f), 0.5f)",
}


class VectorFunctions(KernelGenerator):
    """Each work-item takes a vector of numbers through a function m times, each time from the result before.

    A compiler for processors makes vectors of work-items where a source adds and multiplies vectors, and does one
    work-item after the other where it calls functions of them.
    """

    name = "vector_functions"
    summary = "functions of vectors of two or four numbers, in a row"
    source = "geometry, particles and colours in everyday programs"
    tags = (
        choice("function", "what is done in each iteration", *FUNCTIONS),
        choice("width", "numbers of a vector", "4", "2"),
        size("m", "iterations", 16, 64),
        *work_group(256),
        size("n", "work-items", 2**14, 2**16, 2**18),
    )
    checks = (
        ("function:*", "width:*", "m:16", "lsize_0:64", "n:128"),
        ("function:*", "m:64", "lsize_0:64,128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, width = int(variant["lsize_0"]), int(variant["width"])
        source = SOURCE.replace("RESULT", FUNCTIONS[variant["function"]]).replace("VECTOR", f"float{width}")
        return OpenCLProgram(
            source,
            self.name,
            "n",
            lsize,
            [
                Array("a", "float32", f"{width} * n"),
                Array("out", "float32", f"{width} * n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            (),
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        one = np.float32
        v = arrays["a"].reshape(-1, int(kernel.tags["width"]))
        for _ in range(int(kernel.sizes["m"])):
            squares = (v * v).sum(1, dtype=np.float32)[:, None]
            v = {
                "add": v * one(0.5) + one(1),
                "min": np.minimum(v * one(0.5) + one(1), one(3)),
                "dot": v * one(0.5) + np.minimum(one(0.1) * squares, one(1)),
                "length": v * one(0.5) + one(0.1) * np.sqrt(squares),
                "sqrt": np.sqrt(v + one(1)),
                "mix": v + (one(1) - v) * one(0.5),
            }[kernel.tags["function"]]
        return {"out": v.reshape(-1)}
