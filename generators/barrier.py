"""Local barriers (journal version of the slides, measurement kernels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import size, work_group
from perfmodel.kernels.kernel import Kernel


class Barrier(KernelGenerator):
    """n work-items, each of which meets m barriers and adds a number before each of them.

    Without anything to keep across them, a CPU's compiler drops barriers.
    """

    name = "barrier"
    summary = "local barriers, an addition before each"
    source = "journal version of the 2018 slides, measurement kernels"
    tags = (
        *work_group(256),
        size("n", "work-items", 2**20, 2**22, 2**24),
        size("m", "barriers that a work-item meets", 64, 256),
    )
    checks = (
        ("lsize_0:64", "n:64,128", "m:8"),
        ("lsize_0:128,256,512", "n:1024", "m:8"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        program = lp.make_kernel(
            "{[i, k]: 0 <= i < n and 0 <= k < m}",
            """
            for i
                <> x = a[i] {id=load}
                <> total = x {id=start, dep=load}
                for k
                    total = total + x {id=add, dep=start}
                    ... lbarrier {id=meet, dep=add}
                end
                out[i] = total {dep=add}
            end
            """,
            [
                lp.GlobalArg("a", np.float32, shape="n"),
                lp.GlobalArg("out", np.float32, shape="n", is_input=False),
                lp.ValueArg("n, m", np.int32),
            ],
            name="local_barrier",  # barrier is a function of OpenCL C
            assumptions=f"n >= 1 and m >= 1 and n mod {lsize} = 0",
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {"out": arrays["a"] * np.float32(kernel.sizes["m"] + 1)}
