"""Whole numbers computed for an index, by divisors that are known or not (Pöppl & Herz, "Qualitative Evaluation").

Their example spends more on four quotients and remainders than on its load. What they cost depends on the divisor: one
that the compiler knows becomes a multiplication, a power of two a shift.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

Values = NDArray[np.uint32]
TABLE = 128
# One step, of t and the work-item's own number i. The exclusive or keeps two steps from becoming one.
OPERATIONS: dict[str, tuple[str, Callable[[Values, Values, np.uint32], Values]]] = {
    "div": ("(t / D) ^ i", lambda t, i, d: (t // d) ^ i),
    "mod": ("(t % D) ^ i", lambda t, i, d: (t % d) ^ i),
    "mul": ("(t * D) ^ i", lambda t, i, d: (t * d) ^ i),
    "add": ("(t + D) ^ i", lambda t, i, d: (t + d) ^ i),
}


class IndexArithmetic(KernelGenerator):
    """Each work-item does m operations on its number, and copies the element of a table that the result leads to."""

    name = "index_arithmetic"
    summary = "operations of whole numbers that lead to an index"
    source = "Pöppl & Herz, Example; Qualitative Evaluation"
    tags = (
        choice("op", "operation; an exclusive or comes with each", *OPERATIONS),
        choice("operand", "whether the other operand is an argument or known to the compiler", "argument", "macro"),
        number("by", "the other operand", 1000, 7, 1024),
        number("m", "operations of a work-item", 1, 2, 4, 8),
        *work_group(256),
        size("n", "work-items", 2**18, 2**20, 2**22),
    )
    checks = (("by:7,1000,1024", "m:1,2,4,8", "lsize_0:64", "n:2048"), ("m:2", "lsize_0:128,256,512", "n:512"))

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, is_argument = int(variant["lsize_0"]), variant["operand"] == "argument"
        text, _ = OPERATIONS[variant["op"]]
        steps = f"    t = {text};\n" * int(variant["m"])
        source = f"""\
#define D {"d" if is_argument else f"{variant['by']}u"}

__kernel void {self.name}(__global const float *a, __global float *out, const uint n{", const uint d" * is_argument})
{{
    const uint i = get_global_id(0);
    uint t = i;
{steps}    out[i] = a[t & 0x7F];
}}
"""
        arguments: list[Array | Scalar] = [
            Array("a", "float32", TABLE),
            Array("out", "float32", "n", is_output=True),
            Scalar("n", "uint32"),
        ]
        if is_argument:
            arguments.append(Scalar("d", "uint32"))
        return OpenCLProgram(source, self.name, "n", lsize, arguments, assumptions=f"n % {lsize} == 0")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return int(variant["by"]) < 2**32

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        return {**sizes, "d": int(variant["by"])} if variant["operand"] == "argument" else sizes

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        _, step = OPERATIONS[kernel.tags["op"]]
        i = np.arange(kernel.sizes["n"], dtype=np.uint32)
        t = i
        for _ in range(int(kernel.tags["m"])):
            t = step(t, i, np.uint32(int(kernel.tags["by"])))
        return {"out": arrays["a"][t % TABLE]}
