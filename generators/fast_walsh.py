"""One step of the fast Walsh-Hadamard transform (Panwar et al., Table II)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, size, work_group
from perfmodel.kernels.arguments import C_TYPES, Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """
__kernel void fast_walsh(__global REAL *values, const int n, const int step)
{
    const int pair = get_global_id(0);
    const int first = pair / step * (2 * step) + pair % step;
    const int second = first + step;
#ifdef REMAINDERS
    if (second >= n / (2 * step) * (2 * step))
        return;
#endif
    const REAL upper = values[first];
    const REAL lower = values[second];
    values[first] = upper + lower;
    values[second] = upper - lower;
}
"""


class FastWalsh(KernelGenerator):
    """One work-item a pair of elements `step` apart, replaced by their sum and difference in place.

    The log2(n) steps at 1, 2, 4 … n/2 make a transform. What lies behind the last whole block of two steps, stays. Done
    again and again, as when it is timed, a step doubles the values every second time: float32 bears 250 times.
    """

    name = "fast_walsh"
    summary = "fast Walsh-Hadamard transform: one step on pairs at a distance"
    source = "Panwar et al., Table II, FastWalshTrans."
    limits = "an n that is no multiple of twice the step or, with groups_fit:False, less than that"
    tags = (
        DTYPE,
        *work_group(256),
        GROUPS_FIT,
        size("n", "elements", 2**20, 2**22, 2**24, 2**26),
        size("step", "elements from one of a pair to the other", 1, 32, 1024),
    )
    checks = (
        ("groups_fit:True", "lsize_0:12,64", "n:768", "step:1,3,32,128,384"),
        ("groups_fit:False", "lsize_0:15,64", "n:256,200,31", "step:1,3,32,128"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024", "step:2"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, is_fit = int(variant["lsize_0"]), variant["groups_fit"] == "True"
        pairs = "n // (2 * step) * step"
        return OpenCLProgram(
            SOURCE,
            self.name,
            pairs if is_fit else f"({pairs} + {lsize - 1}) // {lsize} * {lsize}",
            lsize,
            [Array("values", variant["dtype"], "n", is_output=True), Scalar("n", "int32"), Scalar("step", "int32")],
            [f"-DREAL={C_TYPES[variant['dtype']]}", *([] if is_fit else ["-DREMAINDERS"])],
            "n % (2 * step) == 0" if is_fit else "",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": 2 * int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        block = 2 * sizes["step"]
        return sizes["n"] % block == 0 if variant["groups_fit"] == "True" else sizes["n"] >= block

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        step, values = kernel.sizes["step"], arrays["values"].copy()
        blocks = values[: values.size // (2 * step) * 2 * step].reshape(-1, 2, step)
        upper, lower = blocks[:, 0].copy(), blocks[:, 1].copy()
        blocks[:, 0], blocks[:, 1] = upper + lower, upper - lower
        return {"values": values}
