"""Tables in constant memory, at places that are the same for neighbours or not."""

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

WORDS = 1024
SOURCE = """\
DECLARED
__kernel void constant_lookups(ARGUMENT__global const uint *a, __global uint *out, const int m, const int n)
{
    const int i = get_global_id(0);
    uint total = a[i];
    for (int k = 0; k < m; ++k)
        total = total * 5 + table[(PLACE) & (SPAN - 1)];
    out[i] = total;
}
"""
PLACES = {"same": "5 * k + 3", "different": "3 * i + 5 * k"}


def _number(place: int) -> int:
    return place * 2654435761 % 2**32 >> 20


class ConstantLookups(KernelGenerator):
    """Each work-item looks m numbers up in a table, all at the same place or each at one of its own."""

    name = "constant_lookups"
    summary = "lookups in a table that lies in constant memory"
    source = "gamma tables of image programs, substitution boxes of ciphers, weights of filters"
    tags = (
        choice("table", "where the table comes from", "argument", "program"),
        choice("place", "whether neighbours look at the same place", *PLACES),
        number("span", "numbers of the table that are looked at, a power of two", 4, 32, 256, 1024),
        size("m", "lookups of a work-item", 16, 64),
        *work_group(256),
        size("n", "work-items", 2**16, 2**18, 2**20),
    )
    checks = (
        ("table:*", "place:*", "span:*", "m:16", "lsize_0:64", "n:128"),
        ("place:*", "m:64", "lsize_0:64,128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, is_argument = int(variant["lsize_0"]), variant["table"] == "argument"
        numbers = ", ".join(f"{_number(place)}u" for place in range(WORDS))
        declared = "" if is_argument else f"__constant uint table[{WORDS}] = {{{numbers}}};"
        table = [Array("table", "uint32", WORDS)] if is_argument else []
        return OpenCLProgram(
            SOURCE.replace("DECLARED", declared)
            .replace("ARGUMENT", "__constant uint *table, " if is_argument else "")
            .replace("PLACE", PLACES[variant["place"]]),
            self.name,
            "n",
            lsize,
            [
                *table,
                Array("a", "uint32", "n"),
                Array("out", "uint32", "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            [f"-DSPAN={variant['span']}"],
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        span = int(variant["span"])
        return span & (span - 1) == 0 and span <= WORDS

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        table = arrays.get("table", np.array([_number(place) for place in range(WORDS)], np.uint32))
        total, span = arrays["a"].copy(), int(kernel.tags["span"])
        first, step = (3, 0) if kernel.tags["place"] == "same" else (0, 3)
        ids = np.arange(len(total), dtype=np.int64)
        for k in range(int(kernel.sizes["m"])):
            total = total * np.uint32(5) + table[(first + step * ids + 5 * k) & (span - 1)]
        return {"out": total}
