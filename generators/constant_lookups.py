"""Tables in constant memory, at places that are the same for neighbours, beside theirs, or anywhere."""

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

LEAST_WORDS, MOST_WORDS = 1024, 16384
"""Numbers of a table, at least and at most: constant memory has 64 KB."""
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
PLACES = {
    "same": "5 * k + 3",
    "different": "3 * i + 5 * k",
    "scattered": "(total ^ (uint)i * 2654435761u) >> 11",
}


def _number(place: int) -> int:
    return place * 2654435761 % 2**32 >> 20


def _words(tags: Mapping[str, str]) -> int:
    """Returns how many numbers a table has."""
    span = int(tags["span"])
    return span if tags["place"] == "scattered" else max(LEAST_WORDS, span)


class ConstantLookups(KernelGenerator):
    """Each work-item looks m numbers up in a table: all at the same place, each at one near its neighbours', or each
    where what it found before leads, as in ciphers (`scattered`)."""

    name = "constant_lookups"
    summary = "lookups in a table that lies in constant memory"
    source = "gamma tables of image programs, substitution boxes of ciphers, weights of filters"
    tags = (
        choice("table", "where the table comes from", "argument", "program"),
        choice("place", "whether neighbours look at the same place, at places side by side, or anywhere", *PLACES),
        number("span", "numbers of the table that are looked at, a power of two", 4, 32, 256, 1024, 4096),
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
        words = _words(variant)
        numbers = ", ".join(f"{_number(place)}u" for place in range(words))
        declared = "" if is_argument else f"__constant uint table[{words}] = {{{numbers}}};"
        table = [Array("table", "uint32", words)] if is_argument else []
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
        return span & (span - 1) == 0 and span <= MOST_WORDS

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        total, span = arrays["a"].copy(), int(kernel.tags["span"])
        table = arrays.get("table", np.array([_number(place) for place in range(_words(kernel.tags))], np.uint32))
        ids = np.arange(len(total), dtype=np.int64)
        for k in range(int(kernel.sizes["m"])):
            scattered = (total ^ ids.astype(np.uint32) * np.uint32(2654435761)) >> np.uint32(11)
            places = {"same": 5 * k + 3, "different": 3 * ids + 5 * k, "scattered": scattered}
            total = total * np.uint32(5) + table[places[kernel.tags["place"]] & (span - 1)]
        return {"out": total}
