"""Vector scale and add, z = alpha x + beta y, at a stride (2016, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, number, size, work_group
from perfmodel.kernels.kernel import Kernel

ALPHA, BETA = 0.5, 2.0


class ScaleAdd(KernelGenerator):
    """One work-item an element of z; with a stride, every stride-th element of longer arrays is read and written."""

    name = "scale_add"
    summary = "z = alpha x + beta y on every element, or on every stride-th"
    source = "2016, section 4.1, vector scale and add"
    tags = (
        DTYPE,
        number("stride", "elements from one work-item's accesses to the next one's", 1, 2, 3),
        *work_group(256),
        GROUPS_FIT,
        size("n", "elements computed", 2**20, 2**22, 2**24, step=2),
    )
    checks = (
        ("groups_fit:True", "stride:*", "lsize_0:64,192", "n:192,576"),
        ("groups_fit:False", "stride:*", "lsize_0:64", "n:1,63,200"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        stride, lsize = int(variant["stride"]), int(variant["lsize_0"])
        place, shape = f"{stride}*i", f"{stride}*n"
        program = lp.make_kernel(
            "{[i]: 0 <= i < n}",
            f"z[{place}] = alpha * x[{place}] + beta * y[{place}]",
            [
                lp.ValueArg("alpha, beta", dtype),
                lp.GlobalArg("x, y", dtype, shape=shape),
                lp.GlobalArg("z", dtype, shape=shape, is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        return {**sizes, "alpha": ALPHA, "beta": BETA}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        stride = int(kernel.tags["stride"])
        alpha, beta = (arrays["x"].dtype.type(factor) for factor in (ALPHA, BETA))
        z = arrays["z"].copy()
        z[::stride] = alpha * arrays["x"][::stride] + beta * arrays["y"][::stride]
        return {"z": z}
