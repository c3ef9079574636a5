"""Squares of a matrix less its first row, the running example of the cache-aware model (Pöppl & Herz, "Example")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

# A work-item finds its row and column by a quotient and a remainder, and its own element by them, twice, as published.
SOURCE = """\
__kernel void sq_mod(__global const float *a, __global float *b, const uint m, const uint n)
{
    const size_t place = get_global_id(0);
    const uint row = place / n;
    const uint column = place % n;
    b[place] = a[row * n + column] * a[row * n + column] - a[column];
}
"""


class SqMod(KernelGenerator):
    """b(i, j) = a(i, j)^2 - a(0, j) for a matrix of m rows and n columns, in a launch of one axis."""

    name = "sq_mod"
    summary = "b(i, j) = a(i, j)^2 - a(0, j), rows and columns from one axis of work-items"
    source = "Pöppl & Herz, Example; Qualitative Evaluation"
    tags = (
        *work_group(256),
        size("m", "rows", 1024, 2048, 4096),
        size("n", "columns", 1024, 2048, 4096),
    )
    checks = (("lsize_0:64", "m:1,3,64", "n:64,128"), ("lsize_0:128,256,512", "m:3", "n:512"))

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        arguments: list[Array | Scalar] = [
            Array("a", "float32", "m * n"),
            Array("b", "float32", "m * n", is_output=True),
            Scalar("m", "uint32"),
            Scalar("n", "uint32"),
        ]
        return OpenCLProgram(SOURCE, self.name, "m * n", lsize, arguments, assumptions=f"n % {lsize} == 0")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def inputs(self, kernel: Kernel, random: Any) -> Mapping[str, NDArray[Any]]:
        """Returns multiples of 1/64, whose squares and differences are exact: some would cancel but for their
        rounding."""
        return {
            array.name: (random.integers(32, 96, array.size) / 64).astype(array.dtype)
            for array in kernel.launch().arrays()
        }

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        a = arrays["a"].reshape(kernel.sizes["m"], kernel.sizes["n"])
        return {"b": (a**2 - a[0]).ravel()}
