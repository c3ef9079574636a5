"""Numbers divided by their sum, all held in registers meanwhile: what a kernel's registers do to occupancy (Kumar)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, number, size, work_group
from perfmodel.kernels.kernel import Kernel


class Normalization(KernelGenerator):
    """One work-item a column of `held` numbers, each loaded once, held until their sum is known, and divided by it."""

    name = "normalization"
    summary = "columns divided by their sums, held in registers meanwhile"
    source = "Kumar, influencing parameters, registers of a thread"
    tags = (
        DTYPE,
        number("held", "numbers of a column, which a work-item holds at once", 1, 4, 8, 16, 32, 64, default=8),
        *work_group(256),
        GROUPS_FIT,
        size("n", "columns", 2**16, 2**18, 2**20),
    )
    checks = (
        ("groups_fit:True", "lsize_0:64,96", "held:1,4,32", "n:192,576"),
        ("groups_fit:False", "lsize_0:15,64", "held:1,8", "n:1,50,200"),
        ("groups_fit:*", "dtype:float32", "held:*", "lsize_0:64,128,256,512", "n:1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize, held = np.dtype(variant["dtype"]), int(variant["lsize_0"]), int(variant["held"])
        loads = [f"<> v{k} = x[{k}, i] {{id=v{k}}}" for k in range(held)]
        total = " + ".join(f"v{k}" for k in range(held))
        stores = [f"out[{k}, i] = v{k} * scale {{id=out{k}, dep=scale:v{k}}}" for k in range(held)]
        program = lp.make_kernel(
            "{[i]: 0 <= i < n}",
            "\n".join(["for i", *loads, f"<> scale = 1 / ({total}) {{id=scale, dep=v*}}", *stores, "end"]),
            [
                lp.GlobalArg("x", dtype, shape=f"{held}, n"),
                lp.GlobalArg("out", dtype, shape=f"{held}, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        x = arrays["x"].reshape(int(kernel.tags["held"]), -1)
        return {"out": x / x.sum(axis=0)}
