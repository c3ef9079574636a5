"""Private arrays whose indices no compiler knows, so that they lie in memory and not in registers."""

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
__kernel void private_array(__global const float *a, __global const int *starts, __global float *out, const int m,
                            const int n)
{
    const int i = get_global_id(0);
    const int start = START;
    float own[WORDS];
    for (int w = 0; w < WORDS; ++w)
        own[w] = a[i] + w;
    float total = 0;
    for (int k = 0; k < m; ++k) {
        const int at = (5 * k + start) & (WORDS - 1);
        total = 0.5f * (total + own[at]);
        STORE
    }
    out[i] = total;
}
"""
STARTS = {"same": "n", "different": "starts[i]", "hashed": "(int)((uint)i * 2654435761u >> 12)"}
STORES = {"load": "", "update": "own[at] = total;"}


class PrivateArray(KernelGenerator):
    """Each work-item goes m times through an array of its own, at places that follow from m, or from data too.

    The array's numbers of neighbouring work-items lie next to each other in memory, so that work-items at the same
    place in theirs access it as one.
    """

    name = "private_array"
    summary = "private arrays at indices that no compiler knows"
    source = "tables of dynamic programs, stacks of traversals, small histograms of everyday programs"
    limits = "words that are no power of two"
    tags = (
        choice("start", "where neighbouring work-items begin", *STARTS),
        choice("access", "what is done at each place", *STORES),
        number("words", "numbers of a work-item's array, a power of two", 4, 8, 16, 32, 64, 128, 256),
        size("m", "places that a work-item goes to", 16, 64, 256),
        *work_group(256),
        size("n", "work-items", 2**16, 2**18, 2**20),
    )
    checks = (
        ("start:*", "access:*", "words:4,8,16,32,64,128,256", "m:16", "lsize_0:64", "n:128"),
        ("start:*", "access:*", "words:16", "m:64,256", "lsize_0:64,128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        return OpenCLProgram(
            SOURCE.replace("START;", f"{STARTS[variant['start']]};").replace("STORE", STORES[variant["access"]]),
            self.name,
            "n",
            lsize,
            [
                Array("a", "float32", "n"),
                Array("starts", "int32", "n"),
                Array("out", "float32", "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            [f"-DWORDS={variant['words']}"],
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        words = int(variant["words"])
        return words & (words - 1) == 0

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        words, m = int(kernel.tags["words"]), int(kernel.sizes["m"])
        starts = arrays["starts"].astype(np.int64)
        hashes = np.arange(len(starts), dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(12)
        first = {"same": np.full_like(starts, len(starts)), "different": starts, "hashed": hashes.astype(np.int64)}[
            kernel.tags["start"]
        ]
        own = arrays["a"][:, None] + np.arange(words, dtype=np.float32)
        rows, total = np.arange(len(own)), np.zeros(len(own), np.float32)
        for k in range(m):
            at = (5 * k + first) & (words - 1)
            total = np.float32(0.5) * (total + own[rows, at])
            if kernel.tags["access"] == "update":
                own[rows, at] = total
        return {"out": total}
