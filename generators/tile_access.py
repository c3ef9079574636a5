"""The four ways in which a matrix multiplication reads its arrays, each by itself in a kernel that only sums.

What such an access costs depends on its strides across work-items and work-groups and on how often each element is
read (2018 slides, "Memory access pattern variants"), so the pattern is kept exactly and everything else removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection import KernelGenerator, choice, number, size
from perfmodel.kernel import Kernel

INDICES = {
    "row": "{l}*i_outer + i_inner, {l}*k_outer + k_inner",
    "column": "{l}*k_outer + k_inner, {l}*j_outer + j_inner",
    "row_tile": "{l}*i_outer + i_inner, {l}*k_outer + j_inner",
    "column_tile": "{l}*k_outer + i_inner, {l}*j_outer + j_inner",
}


class TileAccess(KernelGenerator):
    """Every work-item of an n x n grid sums what it reads of an n x n array, looping along one side."""

    name = "tile_access"
    summary = "one access pattern of a matrix multiplication, summed"
    tags = (
        choice("dtype", "element type", "float32", "float64"),
        choice(
            "pattern",
            "row and column as read without prefetch, row_tile and column_tile as fetched for a tile",
            *INDICES,
        ),
        number("lsize", "work-items of a work-group along each side; also the depth of a tile", 8, 16, 32, default=16),
        size("n", "rows and columns", 512, 1024, 2048),
    )
    checks = (("lsize:8,16", "n:16,48"),)

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        side = int(variant["lsize"])
        index = INDICES[variant["pattern"]].format(l=side)
        tiled = variant["pattern"].endswith("_tile")
        loops = "k_outer" if tiled else "k_outer, k_inner"
        bounds = f"0 <= i_outer, j_outer, k_outer < n/{side} and 0 <= i_inner, j_inner, k_inner < {side}"
        program = lp.make_kernel(
            f"{{[i_outer, j_outer, k_outer, i_inner, j_inner, k_inner]: {bounds}}}",
            f"out[{side}*i_outer + i_inner, {side}*j_outer + j_inner] = sum([{loops}], a[{index}])",
            [
                lp.GlobalArg("a", dtype, shape="n, n"),
                lp.GlobalArg("out", dtype, shape="n, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and n mod {side} = 0",
            lang_version=(2018, 2),
        )
        axes = {"i_outer": "g.1", "j_outer": "g.0", "i_inner": "l.1", "j_inner": "l.0"}
        program = lp.tag_inames(program, axes)
        return program if tiled else lp.prioritize_loops(program, "k_outer,k_inner")

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return sizes["n"] % int(variant["lsize"]) == 0

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, side = round(arrays["a"].size ** 0.5), int(kernel.tags["lsize"])
        a = arrays["a"].reshape(n, n)
        i, j = np.indices((n, n))
        match kernel.tags["pattern"]:
            case "row":
                out = np.repeat(a.sum(axis=1)[:, None], n, axis=1)
            case "column":
                out = np.repeat(a.sum(axis=0)[None, :], n, axis=0)
            case "row_tile":
                out = sum(a[i, side * k + j % side] for k in range(n // side))
            case _:
                out = sum(a[side * k + i % side, j] for k in range(n // side))
        return {"out": np.ravel(out)}
