"""Kernels that do nothing, to learn what launching a kernel and its work-groups costs (2016, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import GROUPS_FIT, assumed_multiples, size, work_group
from perfmodel.kernels.kernel import Kernel


class Empty(KernelGenerator):
    """n x n work-items that do nothing, launched as if each had an element of a matrix."""

    name = "empty"
    summary = "launches of kernels that do nothing, in two-dimensional work-groups"
    source = "2016, section 4.1, empty kernel"
    tags = (
        *work_group(16, 16),
        GROUPS_FIT,
        size("n", "work-items along each side", 256, 512, 1024, 2048, 4096, 8192, cases=6),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x12", "n:48"),
        ("groups_fit:False", "lsizes:16x12", "n:1,50"),
        ("groups_fit:*", "lsizes:8x16,16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        multiples = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            "{[i, j]: 0 <= i, j < n}",
            "... nop {inames=i:j}",
            [lp.ValueArg("n", np.int32)],
            name=self.name,
            assumptions=f"n >= 1{multiples}",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        return lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {}
