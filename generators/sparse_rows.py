"""Sums over sparse rows, whose columns are loaded before the numbers that they say."""

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

__kernel void sparse_rows(__global const int *length, __global const uint *column, __global const REAL *value,
                          __global const REAL *x, __global REAL *y, const int m, const int n)
{
    const int i = get_global_id(0);
    const int end = LENGTH;
    REAL total = 0;
    for (int k = 0; k < end; ++k) {
        const int j = PLACE;
        total += value[j] * x[COLUMN & (SPAN - 1)];
    }
    y[i] = total;
}
"""
LENGTHS = {"even": "m", "uneven": "m * length[i] / 4"}
PLACES = {"rows": "i * (2 * m) + k", "columns": "k * n + i", "given": "i * m + length[i] + k"}
COLUMNS = {"near": "(i + column[j])", "far": "hash(j + column[j])"}


class SparseRows(KernelGenerator):
    """Each work-item multiplies a row of a sparse matrix by a vector.

    A row's numbers and their columns lie side by side, as in compressed rows (`rows`), or those of neighbouring rows do
    (`columns`), as in ELLPACK; or rows lie one behind the other, and begin where data say (`given`). Columns are next
    to the diagonal (`near`) or anywhere (`far`); rows have m numbers each, or from a quarter to seven quarters, as
    data say.
    """

    name = "sparse_rows"
    summary = "rows of sparse matrices, by work-items"
    source = "compressed rows and ELLPACK: Bell and Garland 2009 (Implementing sparse matrix-vector multiplication)"
    limits = "a span that is no power of two"
    tags = (
        choice("storage", "whether a row's numbers lie side by side, or those of neighbouring rows", *PLACES),
        choice("columns", "where the columns of a row are", *COLUMNS),
        choice("lengths", "whether rows have as many numbers each", *LENGTHS),
        choice("dtype", "type of the numbers", "float32", "float64"),
        number("span", "numbers of the vector, a power of two", 2**14, 2**18, 2**22),
        size("m", "numbers of a row, on average", 8, 32),
        *work_group(128),
        size("n", "rows", 2**15, 2**17, 2**19),
    )
    checks = (
        ("storage:*", "columns:*", "lengths:*", "dtype:*", "span:16384", "m:8", "lsize_0:64", "n:256"),
        ("storage:*", "columns:far", f"span:{2**18},{2**22}", "lsize_0:128,256,512", "m:32", "n:1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, span, dtype = int(variant["lsize_0"]), int(variant["span"]), variant["dtype"]
        source = SOURCE
        for word, choices, tag in (
            ("LENGTH", LENGTHS, "lengths"),
            ("PLACE", PLACES, "storage"),
            ("COLUMN", COLUMNS, "columns"),
        ):
            source = source.replace(word, choices[variant[tag]])
        return OpenCLProgram(
            source,
            self.name,
            "n",
            lsize,
            [
                Array("length", "int32", "n"),
                Array("column", "uint32", "2 * m * n"),
                Array("value", dtype, "2 * m * n"),
                Array("x", dtype, span),
                Array("y", dtype, "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            [f"-DSPAN={span}", f"-DREAL={'float' if dtype == 'float32' else 'double'}"],
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        span = int(variant["span"])
        return span & (span - 1) == 0 and 2 * sizes["m"] * sizes["n"] < 2**31

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        tags, m, n = kernel.tags, int(kernel.sizes["m"]), int(kernel.sizes["n"])
        item, mask = np.arange(n), np.uint32(int(tags["span"]) - 1)
        end = m * arrays["length"].astype(np.int64) // 4 if tags["lengths"] == "uneven" else np.full(n, m)
        total = np.zeros(n, arrays["value"].dtype)
        for k in range(int(end.max())):
            rows = item[k < end]
            places = {
                "rows": rows * 2 * m + k,
                "columns": k * n + rows,
                "given": rows * m + arrays["length"][rows] + k,
            }[tags["storage"]]
            if tags["columns"] == "near":
                columns = rows.astype(np.uint32) + arrays["column"][places]
            else:
                hashed = (places.astype(np.uint32) + arrays["column"][places]) * np.uint32(2654435761)
                columns = hashed ^ (hashed >> np.uint32(15))
            total[rows] += arrays["value"][places] * arrays["x"][columns & mask]
        return {"y": total}
