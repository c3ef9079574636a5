"""Matrix multiplication c = a b, each work-item computing a tile of results that it holds in registers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

DEPTH = 16
"""The depth of the tiles in local memory."""


class TiledMatmul(KernelGenerator):
    """A work-item computes tile_rows x tile_cols elements of c in one loop over k, and loads each value once for them.

    Its columns lie apart by the work-group's width and its rows by the height, so that neighbouring work-items have
    neighbouring columns. With `tiled_prefetch`, the work-group's parts of a and b go through local memory.
    """

    name = "matmul_tiled"
    summary = "square matrix multiplication, a tile of results in each work-item's registers"
    source = "for unified-plus: reuse in registers"
    limits = "tiled_prefetch:True in work-groups that compute one row or column"
    tags = (
        DTYPE,
        choice("tiled_prefetch", "tiles of a and b are fetched to local memory", "True", "False"),
        choice("tile_rows", "rows of c that a work-item computes", "1", "2", "4", "8", default="4"),
        choice("tile_cols", "columns of c that a work-item computes", "1", "2", "4", default="4"),
        *work_group(16, 16),
        size("n", "rows and columns", 512, 1024, 2048, 4096),
    )
    checks = (
        ("dtype:float32", "lsizes:16x8", "n:64"),
        ("lsizes:16x8", "tile_rows:2", "tile_cols:2", "n:64"),
        ("dtype:float32", "lsizes:4x6", "tile_rows:2", "tile_cols:4", "n:96"),
        ("dtype:float32", "lsizes:8x16,32x16,16x32", "tile_rows:1", "tile_cols:2", "n:128"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        rows, columns = int(variant["tile_rows"]), int(variant["tile_cols"])
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        i, j = f"{rows * height}*gi + {height}*{{}} + li", f"{columns * width}*gj + {width}*{{}} + lj"
        program = lp.make_kernel(
            f"{{[gi, li, gj, lj, k, r, r0, r1, r2, s, s0, s1, s2]: 0 <= k < n "
            f"and 0 <= {rows * height}*gi < n and 0 <= li < {height} and 0 <= r, r0, r1, r2 < {rows} "
            f"and 0 <= {columns * width}*gj < n and 0 <= lj < {width} and 0 <= s, s0, s1, s2 < {columns}}}",
            f"""
            for gi, li, gj, lj
                for r0, s0
                    total[r0, s0] = 0 {{id=zero}}
                end
                for k
                    for r1
                        left[r1] = a[{i.format("r1")}, k] {{id=left, dep=zero}}
                    end
                    for s1
                        right[s1] = b[k, {j.format("s1")}] {{id=right, dep=left}}
                    end
                    for r, s
                        total[r, s] = total[r, s] + left[r] * right[s] {{id=add, dep=zero:left:right}}
                    end
                end
                for r2, s2
                    c[{i.format("r2")}, {j.format("s2")}] = total[r2, s2] {{dep=add}}
                end
            end
            """,
            [
                lp.GlobalArg("a, b", dtype, shape="n, n"),
                lp.GlobalArg("c", dtype, shape="n, n", is_input=False),
                lp.TemporaryVariable("total", dtype, shape=(rows, columns)),
                lp.TemporaryVariable("left", dtype, shape=(rows,)),
                lp.TemporaryVariable("right", dtype, shape=(columns,)),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and n mod {self.multiples(variant)['n']} = 0",
            lang_version=(2018, 2),
        )
        program = lp.tag_inames(program, {"gi": "g.1", "li": "l.1", "gj": "g.0", "lj": "l.0"})
        program = lp.tag_inames(program, dict.fromkeys(("r", "r0", "r1", "r2", "s", "s0", "s1", "s2"), "unr"))
        program = lp.prioritize_loops(lp.prioritize_loops(program, "r0,s0"), "r2,s2")
        if variant["tiled_prefetch"] == "False":
            return lp.prioritize_loops(program, "k,r,s")
        program = lp.split_iname(program, "k", DEPTH)
        program = lp.prioritize_loops(program, "k_outer,k_inner,r,s")
        for array, sweep in (("a", ["r1", "li", "k_inner"]), ("b", ["k_inner", "s1", "lj"])):
            program = lp.add_prefetch(program, array, sweep, fetch_outer_inames="gi,gj,k_outer", default_tag="l.auto")
        # The barrier that Loopy would add says which array it is for: in one process a, in another b.
        program = lp.add_dependency(program, "id:b_fetch_rule", "id:a_fetch_rule")
        return lp.add_barrier(
            program,
            "id:b_fetch_rule",
            "id:left",
            "fetched",
            synchronization_kind="local",
            within_inames=frozenset({"gi", "gj", "k_outer"}),
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": math.lcm(*_sides(variant), DEPTH if variant["tiled_prefetch"] == "True" else 1)}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return variant["tiled_prefetch"] == "False" or min(_sides(variant)) > 1

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        return {"c": (arrays["a"].reshape(n, n) @ arrays["b"].reshape(n, n)).ravel()}


def _sides(variant: Mapping[str, str]) -> tuple[int, int]:
    """Returns the rows and columns of c that a work-group computes."""
    return int(variant["tile_rows"]) * int(variant["lsize_1"]), int(variant["tile_cols"]) * int(variant["lsize_0"])
