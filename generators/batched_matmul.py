"""Many small matrix multiplications c = a b, a work-group to each, with the factors in local memory or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, choice, size
from perfmodel.kernels.kernel import Kernel

# The factors that go through local memory, and the loops whose part of them is a matrix.
SWEEPS = {"a": ["i", "k"], "b": ["k", "j"]}
FETCHED = {"none": "", "left": "a", "right": "b", "both": "ab"}


class BatchedMatmul(KernelGenerator):
    """c[e, i, j] = the sum over k of a[e, i, k] b[e, k, j], for n pairs e of matrices.

    A work-group has as many work-items as a matrix has elements; its axis 0 lies along the columns of c.
    """

    name = "batched_matmul"
    summary = "products of many small matrices, a work-group to each, from local memory or not"
    source = "for unified-plus: reuse within small work-groups"
    tags = (
        DTYPE,
        choice("order", "rows and columns of a matrix, and work-items along both axes", "8", "16", "32", default="16"),
        choice("fetch", "factors fetched to local memory", *FETCHED),
        size("n", "products", 2**12, 2**13, 2**14, 2**15, 2**16),
    )
    checks = (("n:1,37",),)

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, order = np.dtype(variant["dtype"]), int(variant["order"])
        program = lp.make_kernel(
            f"{{[e, i, j, k]: 0 <= e < n and 0 <= i, j, k < {order}}}",
            "c[e, i, j] = sum(k, a[e, i, k] * b[e, k, j])",
            [
                lp.GlobalArg("a, b", dtype, shape=f"n, {order}, {order}"),
                lp.GlobalArg("c", dtype, shape=f"n, {order}, {order}", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1",
            lang_version=(2018, 2),
        )
        program = lp.tag_inames(program, {"e": "g.0", "i": "l.1", "j": "l.0"})
        for array in FETCHED[variant["fetch"]]:
            program = lp.add_prefetch(program, array, SWEEPS[array], fetch_outer_inames="e", default_tag="l.auto")
        return program

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        order = int(kernel.tags["order"])
        a, b = (arrays[name].reshape(-1, order, order) for name in "ab")
        return {"c": (a @ b).ravel()}
