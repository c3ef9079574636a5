"""Sums along the columns of a matrix, out[i] = the sum over k of a[k, i], a work-item to a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

# What is stored: in the loop, behind it, or in a second loop.
STORES = {
    "sum": "out[i] = total {id=store, dep=add}",
    "prefix": "",
    "scaled": "for k1\n out[k1, i] = a[k1, i] / total {id=store, dep=add}\n end",
}


class ColumnSum(KernelGenerator):
    """One work-item a column, looping over its m rows: neighbours load neighbouring elements, in every iteration n
    further.

    The result is each column's total, or its running sums, or its elements divided by the total.
    """

    name = "column_sum"
    summary = "sums along the columns of a matrix, a work-item to a column"
    source = "for unified-plus: few work-items with long loops over neighbouring columns"
    tags = (
        DTYPE,
        choice("result", "a column's total, its running sums, or its elements over the total", *STORES),
        *work_group(256),
        GROUPS_FIT,
        size("n", "columns", 2**11, 2**12, 2**13, 2**14),
        size("m", "rows", 1024, 4096),
    )
    checks = (
        ("groups_fit:True", "lsize_0:12,64", "n:192", "m:1,7,100"),
        ("groups_fit:False", "dtype:float32", "lsize_0:15,64", "n:1,50,200", "m:1,33"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024", "m:5"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize, result = np.dtype(variant["dtype"]), int(variant["lsize_0"]), variant["result"]
        program = lp.make_kernel(
            ["{[i, k]: 0 <= i < n and 0 <= k < m}", *(["{[k1]: 0 <= k1 < m}"] if result == "scaled" else [])],
            f"""
            for i
                total = 0 {{id=zero}}
                for k
                    total = total + a[k, i] {{id=add, dep=zero}}
                    {"out[k, i] = total {id=store, dep=add}" if result == "prefix" else ""}
                end
                {STORES[result]}
            end
            """,
            [
                lp.GlobalArg("a", dtype, shape="m, n"),
                lp.GlobalArg("out", dtype, shape="n" if result == "sum" else "m, n", is_input=False),
                lp.TemporaryVariable("total", dtype, shape=()),
                lp.ValueArg("n, m", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1 and m >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        a = arrays["a"].reshape(kernel.sizes["m"], kernel.sizes["n"])
        if kernel.tags["result"] == "prefix":
            return {"out": a.cumsum(axis=0)}
        total = a.sum(axis=0)
        return {"out": total if kernel.tags["result"] == "sum" else a / total}
