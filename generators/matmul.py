"""Matrix multiplication c = a b, with and without tiles in local memory (2016, section 4.1; 2018 slides)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, choice, number, size
from perfmodel.kernels.kernel import Kernel

# By shape, the rows of a, its columns and those of b (the program's n, m and l), in halves of the size tag.
SHAPES = {
    "square": (2, 2, 2),
    "short_l": (2, 2, 1),
    "short_m": (2, 1, 2),
    "short_n": (1, 2, 2),
    "skinny": (2, 16, 2),
}
TAGS = (
    DTYPE,
    choice("tiled_prefetch", "tiles of a and b are fetched to local memory", "True", "False"),
    number("lsize_0", "work-items of a work-group along c's columns; also the depth of a tile", 8, 16, 32, default=16),
    number("lsize_1", "work-items of a work-group along c's rows", 8, 16, 32, default=16),
    GROUPS_FIT,
)


def multiplication(name: str, variant: Mapping[str, str], rows: str, depth: str, columns: str) -> Any:
    """Returns the program that multiplies rows x depth by depth x columns, one work-item an element of c.

    With `tiled_prefetch`, tiles of a and b go through local memory: lsize_1 x lsize_0 and lsize_0 x lsize_0.
    """
    dtype = np.dtype(variant["dtype"])
    width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
    sides = list(dict.fromkeys((rows, depth, columns)))
    assumptions = [f"{side} >= 1" for side in sides]
    if variant["groups_fit"] == "True":
        multiples = ((columns, width), (depth, width), (rows, height))
        assumptions += dict.fromkeys(f"{side} mod {multiple} = 0" for side, multiple in multiples)
    program = lp.make_kernel(
        f"{{[i, j, k]: 0 <= i < {rows} and 0 <= j < {columns} and 0 <= k < {depth}}}",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        [
            lp.GlobalArg("a", dtype, shape=f"{rows}, {depth}"),
            lp.GlobalArg("b", dtype, shape=f"{depth}, {columns}"),
            lp.GlobalArg("c", dtype, shape=f"{rows}, {columns}", is_input=False),
            lp.ValueArg(", ".join(sides), np.int32),
        ],
        name=name,
        assumptions=" and ".join(assumptions),
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


LIMITS = "tiled_prefetch:True in work-groups of one row or column"


def has_tiles(variant: Mapping[str, str]) -> bool:
    """Returns True if the tiles of a variant have an element for each axis of the work-group, or there are none."""
    return variant["tiled_prefetch"] == "False" or min(int(variant["lsize_0"]), int(variant["lsize_1"])) > 1


class SquareMatmul(KernelGenerator):
    """The square matrix multiplication, with one size."""

    name = "matmul_sq"
    summary = "square matrix multiplication, with tiles in local memory or without"
    source = "2018 slides, Matmul model; 2016, section 4.1, naive matrix multiplication"
    limits = LIMITS
    tags = (*TAGS, size("n", "rows and columns", 256, 512, 1024, 2048))
    checks = (
        ("groups_fit:True", "lsize_0:8,16", "lsize_1:8,16", "n:32,48"),
        ("groups_fit:False", "lsize_0:8,16", "lsize_1:4", "n:7,30,45"),
        ("groups_fit:*", "dtype:float32", "lsizes:16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        return multiplication(self.name, variant, "n", "n", "n")

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return has_tiles(variant)

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        return {"c": (arrays["a"].reshape(n, n) @ arrays["b"].reshape(n, n)).ravel()}


class Matmul(KernelGenerator):
    """n x m by m x l; the size tag is the side that two of the three share, and the shape says what the third is."""

    name = "matmul"
    summary = "matrix multiplication of several shapes, with tiles in local memory or without"
    source = "2016, section 4.1, matrix multiplication; section 5, 'skinny' matrix multiplication"
    limits = LIMITS
    tags = (
        *TAGS,
        choice("shape", "n x m by m x l: all equal; l, m or n half of the others; m 8 times the others", *SHAPES),
        size("n", "the side that two or all of n, m and l have, by shape", 256, 512, 1024, 2048),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x12", "n:96"),
        ("groups_fit:False", "lsizes:16x12", "n:37,72"),
        ("groups_fit:*", "dtype:float32", "shape:square", "lsizes:8x8,24x16,32x16,16x32", "n:45,96"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        return multiplication(self.name, variant, "n", "m", "l")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        sides = zip((height, width, width), SHAPES[variant["shape"]], strict=True)
        return {"n": math.lcm(*(2 * multiple if halves == 1 else multiple for multiple, halves in sides))}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return has_tiles(variant) and min(self.arguments(variant, sizes).values()) >= 1

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        halves = SHAPES[variant["shape"]]
        return {side: sizes["n"] * count // 2 for side, count in zip("nml", halves, strict=True)}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, m, columns = (kernel.sizes[side] for side in "nml")
        return {"c": (arrays["a"].reshape(n, m) @ arrays["b"].reshape(m, columns)).ravel()}
