"""Sums over the triangle of a square matrix by rows or columns, and a triangular matrix times a square one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, choice, number, size
from perfmodel.kernels.kernel import Kernel

# By access, the index of the result, and the term k of its sum.
ACCESSES = {"rows": ("i", "a[i, k]"), "columns": ("i", "a[k, i]"), "product": ("i, j", "a[i, k] * b[k, j]")}
# Work-items of a work-group along axis 0 for access:product.
WIDTH = 16


class Triangular(KernelGenerator):
    """The sum over k <= i of a[i, k], a[k, i] or a[i, k] b[k, j], so that work-items do more the larger their i is.

    Sums of rows and columns have a work-item each: neighbours load n elements apart, or next to each other, and differ
    by one addition. The product has one an element, 16 along a row of a work-group, all of which do the same.
    """

    name = "triangular"
    summary = "sums over a triangle of a matrix, and triangular times square; work-items with unequal work"
    source = "for unified-plus: loops as long as the work-item's number, within sub-groups and across work-groups"
    limits = f"access:product in work-groups of other than a multiple of {WIDTH}"
    tags = (
        DTYPE,
        choice("access", "sums of rows, of columns, or the triangular matrix times another", *ACCESSES),
        number(
            "lsize_0", f"work-items of a work-group; of access:product {WIDTH} a row", 64, 128, 256, 512, default=256
        ),
        size("n", "rows and columns", 1024, 2048, 4096, 8192),
    )
    checks = (
        ("lsize_0:64", "n:64,128"),
        ("lsize_0:16,48,192", "n:192"),
        ("dtype:float32", "lsize_0:128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, is_product = np.dtype(variant["dtype"]), variant["access"] == "product"
        place, term = ACCESSES[variant["access"]]
        height = _height(variant)
        program = lp.make_kernel(
            f"{{[{place}, k]: 0 <= k <= i < n{' and 0 <= j < n' if is_product else ''}}}",
            f"""
            for {place}
                total = 0 {{id=zero}}
                for k
                    total = total + {term} {{id=add, dep=zero}}
                end
                out[{place}] = total {{dep=add}}
            end
            """,
            [
                lp.GlobalArg("a, b" if is_product else "a", dtype, shape="n, n"),
                lp.GlobalArg("out", dtype, shape="n, n" if is_product else "n", is_input=False),
                lp.TemporaryVariable("total", dtype, shape=()),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and n mod {height} = 0" + (f" and n mod {WIDTH} = 0" if is_product else ""),
            lang_version=(2018, 2),
        )
        if not is_product:
            return lp.split_iname(program, "i", height, outer_tag="g.0", inner_tag="l.0")
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        return lp.split_iname(program, "j", WIDTH, outer_tag="g.0", inner_tag="l.0")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": math.lcm(_height(variant), WIDTH if variant["access"] == "product" else 1)}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return variant["access"] != "product" or int(variant["lsize_0"]) % WIDTH == 0

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        a = arrays["a"].reshape(n, n)
        if kernel.tags["access"] == "product":
            return {"out": np.tril(a) @ arrays["b"].reshape(n, n)}
        return {"out": np.tril(a).sum(axis=1) if kernel.tags["access"] == "rows" else np.triu(a).sum(axis=0)}


def _height(variant: Mapping[str, str]) -> int:
    """Returns the rows, or columns, of a that a work-group sums."""
    lsize = int(variant["lsize_0"])
    return max(lsize // WIDTH, 1) if variant["access"] == "product" else lsize
