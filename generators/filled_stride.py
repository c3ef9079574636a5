"""Strided global loads that together fill their array (2016, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, number, size, work_group
from perfmodel.kernels.kernel import Kernel


class FilledStride(KernelGenerator):
    """Sums over the columns of a stride x n array that is stored column by column.

    A work-group fetches as many columns as it has work-items, one row after the other: the loads of each row are
    `stride` elements apart, and those of all rows fill the array. Every work-item then sums up all of the group's
    columns, and stores the sum as its element of the result.
    """

    name = "filled_stride"
    summary = "global loads at a stride that together fill the array, summed from local memory"
    source = "2016, section 4.1, stride-2 and stride-3 filled global access"
    limits = "work-groups of one work-item, which has no columns to share"
    tags = (
        DTYPE,
        number("stride", "rows of the array, and so elements from one work-item's load to the next", 2, 3, 4, 8, 16),
        *work_group(256),
        GROUPS_FIT,
        size("n", "columns of the array", 2**18, 2**21, 2**24, step=3),
    )
    checks = (
        ("groups_fit:True", "stride:*", "lsize_0:64", "n:64,320"),
        ("groups_fit:False", "stride:*", "lsize_0:64", "n:1,63,200"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        stride, lsize = int(variant["stride"]), int(variant["lsize_0"])
        groups = f"{lsize}*i_outer"
        program = lp.make_kernel(
            f"{{[i_outer, i_inner, j]: 0 <= i_outer and 0 <= i_inner, j < {lsize} "
            f"and {groups} + i_inner < n and {groups} + j < n}}",
            f"out[{groups} + i_inner] = sum(j, {' + '.join(f'a[{row}, {groups} + j]' for row in range(stride))})",
            [
                lp.GlobalArg("a", dtype, shape=f"{stride}, n", dim_tags="N0,N1"),
                lp.GlobalArg("out", dtype, shape="n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        program = lp.tag_inames(program, {"i_outer": "g.0", "i_inner": "l.0"})
        program = lp.add_prefetch(
            program,
            "a",
            ["j"],
            dim_arg_names=["row", "column"],
            fetch_outer_inames="i_outer",
            temporary_name="columns",
            default_tag=None,
        )
        # Left to itself, Loopy would give the work-items the shorter stride, along the columns.
        return lp.tag_inames(program, {"column": "l.0"})

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return int(variant["lsize_0"]) > 1

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, stride, lsize = kernel.sizes["n"], int(kernel.tags["stride"]), int(kernel.tags["lsize_0"])
        sums = np.add.reduceat(arrays["a"].reshape(n, stride).sum(axis=1), range(0, n, lsize))
        return {"out": np.repeat(sums, lsize)[:n]}
