"""Kernels that do nothing, to learn what launching a kernel and its work-groups costs (2016, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection import KernelGenerator, size, work_group
from perfmodel.kernel import Kernel


class Empty(KernelGenerator):
    """n work-items that do nothing."""

    name = "empty"
    summary = "launches of kernels that do nothing"
    tags = (
        *work_group(256),
        size("n", "work-items", 2**10, 2**14, 2**18, 2**20),
    )
    checks = (("n:1024",),)

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        program = lp.make_kernel(
            "{[i]: 0 <= i < n}",
            "... nop {inames=i}",
            [lp.ValueArg("n", np.int32)],
            name=self.name,
            assumptions=f"n >= 1 and n mod {lsize} = 0",
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {}
