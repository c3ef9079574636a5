"""Softmax of the rows of a matrix, out[g, j] = exp(a[g, j] - max) / sum, a work-group to a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, size, work_group
from perfmodel.generators.dot_product import folded
from perfmodel.kernels.kernel import Kernel


class RowSoftmax(KernelGenerator):
    """Each work-item strides through its group's row by the group's size, three times: for the greatest element, for
    the sum of the exponentials, and for the result. A tree in local memory folds what the work-items found.
    """

    name = "row_softmax"
    summary = "softmax of rows, a work-group to a row, with two trees in local memory"
    source = "for unified-plus: phases of loads, barriers and exponentials"
    tags = (DTYPE, *work_group(256), size("n", "rows", 2**12, 2**14), size("m", "columns", 1024, 4096))
    checks = (
        ("lsize_0:1,12,64", "n:1,12", "m:192"),
        ("lsize_0:7,64", "n:11", "m:448"),
        ("dtype:float32", "lsize_0:128,256,512", "n:8", "m:1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize = np.dtype(variant["dtype"]), int(variant["lsize_0"])
        program = lp.make_kernel(
            f"{{[g, l, j, j0, j1]: 0 <= g < n and 0 <= l < {lsize} and 0 <= j, j0, j1 < m/{lsize}}}",
            "\n".join(
                [
                    "for g, l",
                    f"most = {np.finfo(dtype).min} {{id=least}}",
                    "for j",
                    f"most = fmax(most, a[g, {lsize}*j + l]) {{id=most, dep=least}}",
                    "end",
                    "peaks[l] = most {id=peak, dep=most}",
                    *folded("peaks", "fmax({0}, {1})", "peak", lsize),
                    "top = peaks[0] {id=top, dep=peak*}",
                    "total = 0 {id=zero, dep=top}",
                    "for j0",
                    f"total = total + exp(a[g, {lsize}*j0 + l] - top) {{id=add, dep=zero:top}}",
                    "end",
                    "sums[l] = total {id=sum, dep=add}",
                    *folded("sums", "{0} + {1}", "sum", lsize),
                    "whole = sums[0] {id=whole, dep=sum*}",
                    "for j1",
                    f"out[g, {lsize}*j1 + l] = exp(a[g, {lsize}*j1 + l] - top) / whole {{id=store, dep=top:whole}}",
                    "end",
                    "end",
                ]
            ),
            [
                lp.GlobalArg("a", dtype, shape="n, m"),
                lp.GlobalArg("out", dtype, shape="n, m", is_input=False),
                *(lp.TemporaryVariable(name, dtype, shape=()) for name in ("most", "top", "total", "whole")),
                *(
                    lp.TemporaryVariable(name, dtype, shape=(lsize,), address_space=lp.AddressSpace.LOCAL)
                    for name in ("peaks", "sums")
                ),
                lp.ValueArg("n, m", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and m >= {lsize} and m mod {lsize} = 0",
            lang_version=(2018, 2),
        )
        return lp.tag_inames(program, {"g": "g.0", "l": "l.0"})

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"m": int(variant["lsize_0"])}

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Returns inputs with one element in every second row so great that a sum overflows unless it is found to be
        the greatest."""
        arrays = super().inputs(kernel, random)
        a = arrays["a"].reshape(kernel.sizes["n"], kernel.sizes["m"]).copy()
        raised = np.arange(1, kernel.sizes["n"], 2)
        a[raised, random.integers(kernel.sizes["m"], size=raised.size)] += 2 + np.log(float(np.finfo(a.dtype).max))
        return {**arrays, "a": a.ravel()}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        a = arrays["a"].reshape(kernel.sizes["n"], kernel.sizes["m"])
        powers = np.exp(a - a.max(axis=1, keepdims=True))
        return {"out": powers / powers.sum(axis=1, keepdims=True)}
