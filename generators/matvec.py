"""Matrix-vector multiplication y = a x, a work-item to a row, and what a diverging branch adds (Kumar)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, size, work_group
from perfmodel.generators.vector_add import BRANCH, branched, branches
from perfmodel.kernels.kernel import Kernel


class MatrixVector(KernelGenerator):
    """One work-item an element of the result, looping along its row, so that neighbours' loads lie n elements apart.

    With a divergent branch, every product on the way goes through `branches`, by the row.
    """

    name = "matvec"
    summary = "matrix times vector, a work-item to a row, also with divergent branches"
    source = "Kumar, experiments, matrix-vector multiplication; divergence"
    tags = (DTYPE, BRANCH, *work_group(256), GROUPS_FIT, size("n", "rows and columns", 1024, 2048, 4096, 8192))
    checks = (
        ("groups_fit:True", "lsize_0:16,12", "n:48"),
        ("groups_fit:False", "lsize_0:16,15", "n:1,10,100"),
        ("groups_fit:*", "dtype:float32", "lsize_0:64,128,256,512", "n:500,512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize = np.dtype(variant["dtype"]), int(variant["lsize_0"])
        divergent = f"""
            for i
                <> total = 0 {{id=zero}}
                for j
                    <> x = a[i, j] {{id=x}}
                    <> y = b[j] {{id=y}}
                    <> v = x * y {{id=v, dep=x:y}}
                    {branches("i")}
                    total = total + v {{id=add, dep=zero:v*}}
                end
                c[i] = total {{dep=add}}
            end
        """
        program = lp.make_kernel(
            "{[i, j]: 0 <= i, j < n}",
            "c[i] = sum(j, a[i, j] * b[j])" if variant["branch"] == "none" else divergent,
            [
                lp.GlobalArg("a", dtype, shape="n, n"),
                lp.GlobalArg("b", dtype, shape="n"),
                lp.GlobalArg("c", dtype, shape="n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, b = kernel.sizes["n"], arrays["b"]
        a = arrays["a"].reshape(n, n)
        if kernel.tags["branch"] == "none":
            return {"c": a @ b}
        return {"c": branched((a * b).T, a.T, b[:, None]).sum(axis=0)}
