"""Matrix addition c = a + b with coalesced accesses, and what a diverging branch adds (Kumar)."""

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


class MatrixAdd(KernelGenerator):
    """One work-item an element, neighbours along a row; with a divergent branch, as `vector_add` by the column."""

    name = "matrix_add"
    summary = "c = a + b of square matrices, also with divergent branches"
    source = "Kumar, experiments, matrix addition; divergence"
    tags = (DTYPE, BRANCH, *work_group(16, 16), GROUPS_FIT, size("n", "rows and columns", 1024, 2048, 4096, 6144))
    checks = (
        ("groups_fit:True", "lsizes:16x4,8x12", "n:48"),
        ("groups_fit:False", "lsizes:16x4,5x8", "n:1,30,37"),
        ("groups_fit:*", "dtype:float32", "lsizes:8x16,16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        divergent = f"""
            for i, j
                <> x = a[i, j] {{id=x}}
                <> y = b[i, j] {{id=y}}
                <> v = x + y {{id=v, dep=x:y}}
                {branches("j")}
                c[i, j] = v {{dep=v*}}
            end
        """
        fit = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            "{[i, j]: 0 <= i, j < n}",
            "c[i, j] = a[i, j] + b[i, j]" if variant["branch"] == "none" else divergent,
            [
                lp.GlobalArg("a, b", dtype, shape="n, n"),
                lp.GlobalArg("c", dtype, shape="n, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1{fit}",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        return lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        a, b = arrays["a"].reshape(n, n), arrays["b"].reshape(n, n)
        return {"c": a + b if kernel.tags["branch"] == "none" else branched(a + b, a, b)}
