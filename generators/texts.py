"""Texts of different lengths that a work-item each goes through byte by byte."""

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
__kernel void texts(__global const TYPE *x, __global TYPE *y, __global uint *keys, const int m, const int n)
{
    const int i = get_global_id(0);
    const int length = LENGTH;
    uint key = 7;
    for (int k = 0; k < length; ++k) {
        const uint c = x[i * m + k];
        DONE
    }
    keys[i] = key;
}
"""
LENGTHS = {"same": "m", "different": "m - i % 16 * (m / 32)"}
DONE = {
    "hashed": "key = key * 31 + c;",
    "changed": "key = key * 31 + c;\n        if (key & 8) y[i * m + k] = c ^ 1;",
    "classed": "const uint s = key * 5 >> 3 & 7;\n"
    "        if (s < 2) key += 9 * c; else if (s < 5) key = key * 5 + c; else key ^= c << 3;",
}
TYPES = {"uint8": "uchar", "uint32": "uint"}


class Texts(KernelGenerator):
    """Each work-item goes through a text of its own, of up to m bytes or words, and makes a key of it.

    Neighbours' texts may be of different lengths. Letters are hashed, some are stored changed, or what is done depends
    on which they are.
    """

    name = "texts"
    summary = "texts gone through by a work-item each, byte by byte"
    source = "parsers, hashes and string functions of everyday programs"
    tags = (
        choice("done", "what is done with a letter", *DONE),
        choice("lengths", "of neighbours' texts", *LENGTHS),
        choice("dtype", "type of a letter", *TYPES),
        size("m", "letters of the longest text", 32, 128),
        *work_group(256),
        size("n", "texts", 2**12, 2**16),
    )
    checks = (("done:*", "lengths:*", "dtype:*", "m:32", "lsize_0:64,128,256,512", "n:512"),)

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, dtype = int(variant["lsize_0"]), variant["dtype"]
        source = SOURCE.replace("LENGTH;", f"{LENGTHS[variant['lengths']]};").replace("DONE", DONE[variant["done"]])
        return OpenCLProgram(
            source.replace("TYPE", TYPES[dtype]),
            self.name,
            "n",
            lsize,
            [
                Array("x", dtype, "m * n"),
                Array("y", dtype, "m * n", is_output=True),
                Array("keys", "uint32", "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            (),
            f"n % {lsize} == 0 and m % 32 == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"]), "m": 32}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        m, n, done = int(kernel.sizes["m"]), int(kernel.sizes["n"]), kernel.tags["done"]
        length = np.full(n, m)
        if kernel.tags["lengths"] == "different":
            length = m - np.arange(n) % 16 * (m // 32)
        letters, changed = arrays["x"].reshape(n, m).astype(np.uint32), arrays["y"].reshape(n, m).copy()
        key = np.full(n, 7, np.uint32)
        for k in range(m):
            c, inside = letters[:, k], k < length
            if done == "hashed":
                after = key * np.uint32(31) + c
            elif done == "changed":
                after = key * np.uint32(31) + c
                stored = inside & (after & np.uint32(8) > 0)
                changed[stored, k] = (c[stored] ^ 1).astype(changed.dtype)
            else:
                state = key * np.uint32(5) >> np.uint32(3) & np.uint32(7)
                ways = [key + np.uint32(9) * c, key * np.uint32(5) + c]
                after = np.select([state < 2, state < 5], ways, key ^ c << np.uint32(3))
            key = np.where(inside, after, key)
        return {"y": changed.reshape(-1), "keys": key}
