"""One step of the Floyd-Warshall algorithm for all shortest paths (Panwar et al., Table II)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.loopy_program import LoopyProgram


class FloydWarshall(KernelGenerator):
    """One work-item a pair of nodes: whether the way through node k = n/2 is shorter than the one known so far.

    Row and column k, which all read, do not change in step k where the diagonal is not negative, so the order of
    work-items is of no matter. A step done again finds no shorter way: all but the first of the timed runs only read,
    and the counts are those of such a run.
    """

    name = "floyd_warshall"
    summary = "all shortest paths: one step, distances and the last node on the way"
    source = "Panwar et al., Table II, FloydWarshall"
    tags = (
        choice("dtype", "element type of the distances", "int32", "float32", "float64"),
        *work_group(16, 16),
        GROUPS_FIT,
        size("n", "nodes", 1024, 2048, 4096, 8192),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x4,12x8", "n:48"),
        ("groups_fit:False", "lsizes:16x4,5x8", "n:1,30,37"),
        ("groups_fit:*", "dtype:float32", "lsizes:8x16,16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        fit = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            "[n, k] -> {[i, j]: 0 <= i, j < n}",
            """
            for i, j
                <> known = distance[i, j] {id=known, dep=*}
                <> found = distance[i, k] + distance[k, j] {id=found, dep=*}
                if found < known
                    distance[i, j] = found {id=shorter, dep=known:found, nosync=known:found}
                    path[i, j] = k {id=way, dep=known:found}
                end
            end
            """,
            [
                lp.GlobalArg("distance", np.dtype(variant["dtype"]), shape="n, n"),
                lp.GlobalArg("path", np.int32, shape="n, n"),
                lp.ValueArg("n, k", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and 0 <= k < n{fit}",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        program = lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")
        return LoopyProgram(program, {"found < known": 0})

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        return {"n": sizes["n"], "k": sizes["n"] // 2}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, k = kernel.sizes["n"], kernel.sizes["k"]
        known = arrays["distance"].reshape(n, n)
        found = known[:, k, None] + known[None, k, :]
        path = np.where(found < known, np.int32(k), arrays["path"].reshape(n, n))
        return {"distance": np.minimum(found, known), "path": path}
