"""A three-dimensional array with its axes in another order: out[k, i, j] = a[i, j, k] and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

GIVEN = "ijk"


class PermuteAxes(KernelGenerator):
    """One work-item an element; a work-group lies in the plane of the last two axes of a, or of out.

    Along axis 0 of the work-group lies the last axis, so that loads, or stores, have stride 1. What has the other
    order has the stride that this axis has there: n or n^2 elements, or 1 as well.
    """

    name = "permute_axes"
    summary = "a three-dimensional array with its axes permuted, coalesced loads or stores"
    source = "for unified-plus: strides of a row and of a plane, in work-groups with three axes"
    limits = "order:ijk and coalesced:store, the kernel that coalesced:load is"
    tags = (
        DTYPE,
        choice("order", "axes of out, in terms of a[i, j, k]", "ijk", "ikj", "jik", "jki", "kij", "kji", default="kji"),
        choice("coalesced", "whether work-groups lie in planes of a or of out", "load", "store"),
        *work_group(32, 8),
        GROUPS_FIT,
        size("n", "elements along each axis", 128, 256, 512),
    )
    checks = (
        ("groups_fit:True", "lsizes:8x4", "n:8,24"),
        ("groups_fit:False", "lsizes:8x4", "n:1,15"),
        ("groups_fit:*", "dtype:float32", "order:kij", "lsizes:32x8,16x16,8x32", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, order = np.dtype(variant["dtype"]), variant["order"]
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        fit = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            "{[i, j, k]: 0 <= i, j, k < n}",
            f"out[{', '.join(order)}] = a[i, j, k]",
            [
                lp.GlobalArg("a", dtype, shape="n, n, n"),
                lp.GlobalArg("out", dtype, shape="n, n, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1{fit}",
            lang_version=(2018, 2),
        )
        plane, row, column = tuple(GIVEN if variant["coalesced"] == "load" else order)
        program = lp.tag_inames(program, {plane: "g.2"})
        program = lp.split_iname(program, row, height, outer_tag="g.1", inner_tag="l.1")
        return lp.split_iname(program, column, width, outer_tag="g.0", inner_tag="l.0")

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return variant["order"] != GIVEN or variant["coalesced"] == "load"

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        return {"out": arrays["a"].reshape(n, n, n).transpose([GIVEN.index(axis) for axis in kernel.tags["order"]])}
