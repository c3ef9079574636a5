"""Empty kernels, to learn what a launch and its work-groups cost (2016, section 4.1; journal version of the slides)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import size, work_group
from perfmodel.kernels.kernel import Kernel


class Launch(KernelGenerator):
    """Work-groups that do nothing."""

    name = "launch"
    summary = "empty work-groups"
    source = "2016, section 4.1, empty kernel; journal version of the 2018 slides, measurement kernels"
    tags = (
        *work_group(256),
        size("groups", "work-groups", 1, 2**4, 2**8, 2**12, 2**16, 2**20, step=2, cases=6),
    )
    checks = (
        ("lsize_0:64", "groups:1,5"),
        ("lsize_0:128,256,512", "groups:3"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        program = lp.make_kernel(
            f"{{[group, i]: 0 <= group < groups and 0 <= i < {variant['lsize_0']}}}",
            "... nop {inames=group:i}",
            [lp.ValueArg("groups", np.int32)],
            name=self.name,
            assumptions="groups >= 1",
            lang_version=(2018, 2),
        )
        return lp.tag_inames(program, {"group": "g.0", "i": "l.0"})

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {}
