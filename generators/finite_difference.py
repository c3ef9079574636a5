"""Finite differences: a 5-point stencil with a quadratic source term (2016, section 5; 2018 slides)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel


class FiniteDifference(KernelGenerator):
    """f = the discrete Laplacian of u, plus u squared, on the n x n inner points of u's (n + 2) x (n + 2).

    Without `fetch`, every work-item loads its five points. With "group", a work-group fetches a tile as large as
    itself and computes the tile's inner points, two fewer each way; the work-items left over only fetch. With "halo", a
    work-group computes as many points as it has work-items, from a tile that is two points larger each way.
    """

    name = "finite_difference"
    summary = "5-point stencil with a quadratic source term, from local memory or not"
    source = "2016, section 5, finite differences; 2018 slides, finite difference accuracy"
    limits = "fetch:group in work-groups with a side below 3, which have no inner points"
    tags = (
        DTYPE,
        choice("fetch", "tile fetched: none, as large as the work-group, or that and a halo", "none", "group", "halo"),
        *work_group(16, 16),
        GROUPS_FIT,
        size("n", "inner points along each side", 1024, 2048, 4096, 8192, 16384),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x12", "n:48,96"),
        ("groups_fit:True", "fetch:group", "lsizes:16x12,8x8", "n:210"),
        ("groups_fit:False", "lsizes:16x12,8x16", "n:1,15,75"),
        ("groups_fit:*", "dtype:float32", "lsizes:8x16,16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        width, height = _points(variant)
        multiples = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            "{[i, j]: 0 <= i, j < n}",
            """
            <> centre = u[i + 1, j + 1] {id=centre}
            f[i, j] = centre ** 2 + u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2] + (-4) * centre \
                {dep=centre}
            """,
            [
                lp.GlobalArg("u", dtype, shape="n + 2, n + 2"),
                lp.GlobalArg("f", dtype, shape="n, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1{multiples}",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        program = lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")
        if variant["fetch"] == "none":
            return program
        program = lp.add_prefetch(
            program,
            "u",
            ["i_inner", "j_inner"],
            dim_arg_names=["row", "column"],
            fetch_outer_inames="i_outer,j_outer",
            # The corners, which no stencil uses, are fetched with the rest.
            fetch_bounding_box=True,
            temporary_name="tile",
            default_tag="l.auto" if variant["fetch"] == "halo" else None,
        )
        # A tile of the work-group's size makes the work-group, which is larger than the points that it computes.
        return program if variant["fetch"] == "halo" else lp.tag_inames(program, {"row": "l.1", "column": "l.0"})

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": math.lcm(*_points(variant))} if min(_points(variant)) > 0 else {}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return min(_points(variant)) > 0

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Returns values near 2, with which the sum's terms do not cancel and its rounding stays small beside it."""
        arrays = super().inputs(kernel, random)
        return {**arrays, "u": (1.5 + arrays["u"] / 2).astype(arrays["u"].dtype)}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        u = arrays["u"].reshape(n + 2, n + 2)
        centre = u[1:-1, 1:-1]
        laplacian = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * centre
        return {"f": (laplacian + centre**2).ravel()}


def _points(variant: Mapping[str, str]) -> tuple[int, int]:
    """Returns the points along axis 0 and axis 1 that a work-group computes."""
    width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
    return (width - 2, height - 2) if variant["fetch"] == "group" else (width, height)
