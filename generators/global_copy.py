"""Global memory accesses at a stride: copies of an array and sums of arrays (2016, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, number, size, work_group
from perfmodel.kernels.kernel import Kernel


class GlobalCopy(KernelGenerator):
    """out[stride*i] = the sum of `loads` arrays at the same index; with no load, i is stored."""

    name = "global_copy"
    summary = "global loads and stores at a stride"
    source = "2016, section 4.1, stride-1 global access"
    tags = (
        DTYPE,
        number("stride", "elements from one work-item's access to the next", 1, 2, 3, 4, 8, 16),
        choice("loads", "arrays read", "0", "1", "2", "4", default="1"),
        *work_group(256),
        GROUPS_FIT,
        size("n", "elements written", 2**20, 2**22, 2**24, cases=9),
    )
    checks = (
        ("groups_fit:True", "lsize_0:64", "n:64,320"),
        ("groups_fit:False", "stride:1,3", "lsize_0:64", "n:1,63,200"),
        ("groups_fit:*", "dtype:float32", "stride:*", "loads:1", "lsize_0:64", "n:64,200"),
        ("groups_fit:*", "dtype:float32", "loads:1", "lsize_0:128,256,512", "n:1000,1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        stride, loads, lsize = (int(variant[key]) for key in ("stride", "loads", "lsize_0"))
        place = f"[{stride}*i]" if stride > 1 else "[i]"
        value = " + ".join(f"in{k}{place}" for k in range(loads)) or "index"
        shape = f"{stride}*n"
        program = lp.make_kernel(
            "{[i]: 0 <= i < n}",
            [
                # In a whole number, or Loopy would compute the index in floating point.
                *([] if loads else ["<int32> index = i"]),
                f"out{place} = {value}",
            ],
            [
                *(lp.GlobalArg(f"in{k}", dtype, shape=shape) for k in range(loads)),
                lp.GlobalArg("out", dtype, shape=shape, is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        stride, loads = int(kernel.tags["stride"]), int(kernel.tags["loads"])
        out = arrays["out"].copy()
        read = [arrays[f"in{k}"][::stride] for k in range(loads)]
        out[::stride] = sum(read[1:], read[0]) if read else np.arange(out.size // stride)
        return {"out": out}
