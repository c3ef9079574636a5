"""Rows that are gone through several times, by one work-item or by a work-group each."""

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
__kernel void row_passes(__global const float *x, __global float *y, const int m, const int n)
{
    const int i = get_global_id(0);
    float middle = 0;
    for (int pass = 0; pass < PASSES; ++pass) {
        float total = 0;
        for (int k = FIRST; k < m; k += STEP)
            total += fabs(x[PLACE] - middle);
        middle = total / m;
    }
    y[i] = middle;
}
"""
WALKS = {
    "items": {"FIRST": "0", "STEP": "1", "PLACE": "i * m + k"},
    "groups": {"FIRST": "get_local_id(0)", "STEP": "LSIZE", "PLACE": "get_group_id(0) * m + k"},
}


class RowPasses(KernelGenerator):
    """Rows of m numbers are summed several times, each time as distances from the mean before.

    A work-item goes through a row of its own (`items`), or a work-group through one together (`groups`), as softmax,
    normalization and means with their deviations do. Later passes find the row in a cache that has kept it.
    """

    name = "row_passes"
    summary = "sums over rows, several times each"
    source = "softmax, layer normalization, variances of everyday programs"
    tags = (
        choice("walk", "who goes through a row", *WALKS),
        number("passes", "how often", 1, 2, 4),
        size("m", "numbers of a row", 64, 1024, 16384, 131072),
        *work_group(256),
        size("n", "work-items", 2**14, 2**16, 2**18),
    )
    checks = (
        ("walk:*", "passes:*", "m:64", "lsize_0:64", "n:256"),
        ("walk:*", "passes:4", "m:1024", "lsize_0:128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, walk = int(variant["lsize_0"]), variant["walk"]
        source = SOURCE
        for word, text in WALKS[walk].items():
            source = source.replace(word, text)
        rows = "n" if walk == "items" else f"(n // {lsize})"
        return OpenCLProgram(
            source,
            self.name,
            "n",
            lsize,
            [
                Array("x", "float32", f"m * {rows}"),
                Array("y", "float32", "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            [f"-DPASSES={variant['passes']}", f"-DLSIZE={lsize}"],
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        rows = sizes["n"] // (1 if variant["walk"] == "items" else int(variant["lsize_0"]))
        return sizes["m"] * rows < 2**31

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        m, n, tags = int(kernel.sizes["m"]), int(kernel.sizes["n"]), kernel.tags
        lsize = int(tags["lsize_0"])
        if tags["walk"] == "items":
            rows = arrays["x"].reshape(n, m)
        else:
            padded = np.zeros((n // lsize, -(-m // lsize) * lsize), np.float32)
            padded[:, :m] = arrays["x"].reshape(-1, m)
            rows = padded.reshape(n // lsize, -1, lsize).swapaxes(1, 2).reshape(n, -1)
        count = np.full(n, rows.shape[1])
        if tags["walk"] == "groups":
            count = np.tile((m - np.arange(lsize) + lsize - 1) // lsize, n // lsize)
        middle = np.zeros(n, np.float32)
        there = np.arange(rows.shape[1]) < count[:, None]
        for _ in range(int(tags["passes"])):
            middle = (np.abs(rows - middle[:, None]) * there).sum(1, dtype=np.float32) / np.float32(m)
        return {"y": middle}
