"""Loads whose addresses follow from what was loaded before, so that each has to wait for another."""

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

# Knuth's multiplicative hash, its upper half folded onto the lower one.
SOURCE = """\
uint hash(uint x)
{
    x *= 2654435761u;
    return x ^ (x >> 15);
}

__kernel void pointer_chase(__global const uint *a, __global const uint *b, __global uint *out, const uint m,
                            const uint n)
{
    const uint i = get_global_id(0);
    uint place = i, total = 0;
    for (uint k = 0; k < m; ++k) {
        STEP
    }
    out[i] = total;
}
"""
STEPS = {
    "chained": "place = hash(place + b[place & (SPAN - 1)]); total += place;",
    "indirect": "total += b[hash(i + k * n + a[i + k * n]) & (SPAN - 1)];",
    "free": "total += b[hash(i + k * n) & (SPAN - 1)];",
}


class PointerChase(KernelGenerator):
    """Each work-item loads m numbers of b, each from a place that a hash chooses.

    The place is that of the number before, changed by what was loaded there (`chained`), as lists and trees have it;
    or follows from a number that is loaded from a row of another array (`indirect`), as sparse matrices have it; or
    from the work-item's and the iteration's number alone (`free`).
    """

    name = "pointer_chase"
    summary = "loads that wait for other loads, from caches or from memory"
    source = "lists, trees, graphs and sparse matrices of everyday programs"
    limits = "a span that is no power of two"
    tags = (
        choice("waits", "what a load's place follows from", *STEPS),
        number("span", "numbers of b, a power of two", 2**10, 2**14, 2**18, 2**22, 2**26),
        size("m", "loads of a work-item", 4, 16, 64),
        *work_group(256),
        size("n", "work-items", 2**13, 2**16, 2**18, 2**20),
    )
    checks = (
        ("waits:*", "span:1024,16384", "m:1,4", "lsize_0:64", "n:256"),
        ("waits:*", f"span:{2**18},{2**22},{2**26}", "m:16,64", "n:512"),
        ("waits:*", "lsize_0:128,256,512", "span:1024", "m:4", "n:1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, span = int(variant["lsize_0"]), int(variant["span"])
        is_indirect = variant["waits"] == "indirect"
        return OpenCLProgram(
            SOURCE.replace("STEP", STEPS[variant["waits"]]),
            self.name,
            "n",
            lsize,
            [
                Array("a", "uint32", "m * n" if is_indirect else 1),
                Array("b", "uint32", span),
                Array("out", "uint32", "n", is_output=True),
                Scalar("m", "uint32"),
                Scalar("n", "uint32"),
            ],
            [f"-DSPAN={span}"],
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        span = int(variant["span"])
        return span & (span - 1) == 0

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        sizes, tags = kernel.sizes, kernel.tags
        n, m, mask = int(sizes["n"]), int(sizes["m"]), np.uint32(int(tags["span"]) - 1)
        a, b = arrays["a"], arrays["b"]

        def hashed(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
            y = x * np.uint32(2654435761)
            return y ^ (y >> np.uint32(15))

        item = np.arange(n, dtype=np.uint32)
        place, total = item.copy(), np.zeros(n, np.uint32)
        for k in range(m):
            at = item + np.uint32(k * n)
            if tags["waits"] == "chained":
                place = hashed(place + b[place & mask])
                total += place
            elif tags["waits"] == "indirect":
                total += b[hashed(at + a[at]) & mask]
            else:
                total += b[hashed(at) & mask]
        return {"out": total}
