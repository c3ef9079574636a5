"""Squared distances between all points of two sets: out[i, j] = the sum over e of (a[i, e] - b[j, e])^2."""

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

# Coordinates of a tile.
DEPTH = 16
# Indices in a or b, and their shape.
LAYOUTS = {"points": ("{point}, e", "n, d"), "coordinates": ("e, {point}", "d, n")}


class Pairwise(KernelGenerator):
    """One work-item a pair of points, looping along their coordinates; points of b lie along axis 0 of a work-group.

    Neighbours there load one coordinate of a point of a, and of points of b at the stride that the layout gives: d
    elements, or 1. With fetch:local, tiles of DEPTH coordinates of a work-group's points go through local memory.
    """

    name = "pairwise"
    summary = "squared distances between all points of two sets, with tiles in local memory or without"
    source = "for unified-plus: uniform and strided loads together, and subtractions beside multiply-adds"
    limits = "fetch:local in work-groups of one row or column"
    tags = (
        DTYPE,
        choice("layout", "a and b with coordinates (points) or points (coordinates) as the faster index", *LAYOUTS),
        choice("fetch", "tiles fetched to local memory: none, or of a and b", "none", "local"),
        *work_group(16, 16),
        size("n", "points of a, and of b", 1024, 2048, 4096),
        size("d", "coordinates of a point", 16, 64, 256),
    )
    checks = (
        ("lsizes:16x12,8x16", "n:48", "d:16,48"),
        ("dtype:float32", "fetch:none", "lsizes:16x16", "n:32", "d:1,7"),
        ("dtype:float32", "lsizes:16x16,32x8,8x32", "n:64", "d:32"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, is_local = np.dtype(variant["dtype"]), variant["fetch"] == "local"
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        place, shape = LAYOUTS[variant["layout"]]
        program = lp.make_kernel(
            "{[i, j, e]: 0 <= i, j < n and 0 <= e < d}",
            f"""
            for i, j
                total = 0 {{id=zero}}
                for e
                    gap = a[{place.format(point="i")}] - b[{place.format(point="j")}] {{id=gap, dep=zero}}
                    total = total + gap * gap {{id=add, dep=zero:gap}}
                end
                out[i, j] = total {{dep=add}}
            end
            """,
            [
                lp.GlobalArg("a, b", dtype, shape=shape),
                lp.GlobalArg("out", dtype, shape="n, n", is_input=False),
                lp.TemporaryVariable("total", dtype, shape=()),
                lp.TemporaryVariable("gap", dtype, shape=()),
                lp.ValueArg("n, d", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and d >= 1 and n mod {width} = 0 and n mod {height} = 0"
            + (f" and d mod {DEPTH} = 0" if is_local else ""),
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        program = lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")
        if not is_local:
            return program
        program = lp.split_iname(program, "e", DEPTH)
        program = lp.prioritize_loops(program, "e_outer,e_inner")
        for array, sweep in (("a", ["i_inner", "e_inner"]), ("b", ["j_inner", "e_inner"])):
            program = lp.add_prefetch(
                program, array, sweep, fetch_outer_inames="i_outer,j_outer,e_outer", default_tag="l.auto"
            )
        return program

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        points = math.lcm(int(variant["lsize_0"]), int(variant["lsize_1"]))
        return {"n": points, "d": DEPTH if variant["fetch"] == "local" else 1}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return variant["fetch"] == "none" or min(int(variant["lsize_0"]), int(variant["lsize_1"])) > 1

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, d = kernel.sizes["n"], kernel.sizes["d"]
        is_points = kernel.tags["layout"] == "points"
        a, b = (arrays[x].reshape(n, d) if is_points else arrays[x].reshape(d, n).T for x in "ab")
        return {"out": ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)}
