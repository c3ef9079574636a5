"""Square matrix multiplication c = a b, with and without tiles in local memory (2018 slides, "Matmul model")."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection import DTYPE, GROUPS_FIT, KernelGenerator, choice, number, size
from perfmodel.kernel import Kernel


class SquareMatmul(KernelGenerator):
    """One work-item an element of c; with `tiled_prefetch`, tiles of a and b go through local memory."""

    name = "matmul_sq"
    summary = "square matrix multiplication, with tiles in local memory or without"
    source = "2018 slides, Matmul model; 2016, section 4.1, naive matrix multiplication"
    tags = (
        DTYPE,
        choice("tiled_prefetch", "tiles of a and b are fetched to local memory", "True", "False"),
        number(
            "lsize_0", "work-items of a work-group along c's columns; also the depth of a tile", 8, 16, 32, default=16
        ),
        number("lsize_1", "work-items of a work-group along c's rows", 8, 16, 32, default=16),
        GROUPS_FIT,
        size("n", "rows and columns", 256, 512, 1024, 2048),
    )
    checks = (
        ("groups_fit:True", "lsize_0:8,16", "lsize_1:8,16", "n:32,48"),
        ("groups_fit:False", "lsize_0:8,16", "lsize_1:4", "n:7,30,45"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        sides = f"n >= 1 and n mod {width} = 0 and n mod {height} = 0" if variant["groups_fit"] == "True" else "n >= 1"
        program = lp.make_kernel(
            "{[i, j, k]: 0 <= i, j, k < n}",
            "c[i, j] = sum(k, a[i, k] * b[k, j])",
            [
                lp.GlobalArg("a", dtype, shape="n, n"),
                lp.GlobalArg("b", dtype, shape="n, n"),
                lp.GlobalArg("c", dtype, shape="n, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=sides,
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        program = lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")
        program = lp.split_iname(program, "k", width)
        program = lp.prioritize_loops(program, "k_outer,k_inner")
        if variant["tiled_prefetch"] == "True":
            outer = "i_outer,j_outer,k_outer"
            for array, sweep in (("a", ["k_inner", "i_inner"]), ("b", ["j_inner", "k_inner"])):
                program = lp.add_prefetch(program, array, sweep, fetch_outer_inames=outer, default_tag="l.auto")
        return program

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": math.lcm(int(variant["lsize_0"]), int(variant["lsize_1"]))}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = round(arrays["a"].size ** 0.5)
        return {"c": (arrays["a"].reshape(n, n) @ arrays["b"].reshape(n, n)).ravel()}
