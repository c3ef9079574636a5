"""Arithmetic throughput: independent accumulators in registers, one operation each (journal version of the slides)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection import DTYPE, KernelGenerator, choice, size, work_group
from perfmodel.kernel import Kernel

UNROLL = 8

# Each operation as Loopy writes it and as numpy does. All are maps with a bounded orbit for x in [0.5, 1.5), so that no
# value overflows or becomes denormal, which some devices are slow at.
OPERATIONS: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "madd": ("acc[j] * quarter + x", lambda acc, x, quarter: acc * quarter + x),
    "add": ("acc[j] + x", lambda acc, x, quarter: acc + x),
    "mul": ("acc[j] * one", lambda acc, x, quarter: acc),
    "div": ("x / acc[j]", lambda acc, x, quarter: x / acc),
    "pow": ("acc[j] ** quarter", lambda acc, x, quarter: acc**quarter),
    "sqrt": ("sqrt(acc[j])", lambda acc, x, quarter: np.sqrt(acc)),
    "rsqrt": ("rsqrt(acc[j])", lambda acc, x, quarter: 1 / np.sqrt(acc)),
    "exp": ("exp(-acc[j])", lambda acc, x, quarter: np.exp(-acc)),
    "cos": ("cos(acc[j])", lambda acc, x, quarter: np.cos(acc)),
}


class Throughput(KernelGenerator):
    """Every work-item does m rounds of one operation on each of its accumulators."""

    name = "throughput"
    summary = "throughput of one arithmetic operation"
    tags = (
        DTYPE,
        choice("op", "operation", *OPERATIONS),
        choice("accumulators", "independent values a work-item works on", "8", "16", "32"),
        *work_group(256),
        size("n", "work-items", 2**14, 2**16, 2**18),
        size("m", "operations on each accumulator", 64, 256),
    )
    checks = (("lsize_0:64", "n:128", "m:8,16"),)

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        expression, _ = OPERATIONS[variant["op"]]
        lsize, accumulators = int(variant["lsize_0"]), int(variant["accumulators"])
        # The compiler must not know `one` and `quarter`, or it folds operations away. x/x might be NaN.
        program = lp.make_kernel(
            f"{{[i, j, j0, j1, k]: 0 <= i < n and 0 <= k < m and 0 <= j, j0, j1 < {accumulators}}}",
            f"""
            for i
                <> x = a[i] {{id=x}}
                <> one = x / x {{id=one, dep=x}}
                <> quarter = 0.25 * one {{id=quarter, dep=one}}
                for j0
                    acc[j0] = x + j0 * quarter {{id=start, dep=x:quarter}}
                end
                for k, j
                    acc[j] = {expression} {{id=step, dep=start:x:one:quarter}}
                end
                out[i] = sum(j1, acc[j1]) {{id=end, dep=step}}
            end
            """,
            [
                lp.GlobalArg("a", dtype, shape="n"),
                lp.GlobalArg("out", dtype, shape="n", is_input=False),
                lp.TemporaryVariable("acc", dtype, shape=(accumulators,)),
                lp.ValueArg("n, m", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and m >= 1 and n mod {lsize} = 0 and m mod {UNROLL} = 0",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")
        program = lp.split_iname(program, "k", UNROLL, inner_tag="unr")
        program = lp.tag_inames(program, {"j": "unr", "j0": "unr", "j1": "unr"})
        # Unasked, Loopy would make a loop of its own for every unrolled operation.
        return lp.prioritize_loops(program, "k_outer,k_inner,j")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"]), "m": UNROLL}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        x = arrays["a"]
        _, step = OPERATIONS[kernel.tags["op"]]
        quarter = x.dtype.type(0.25)
        acc = x + np.arange(int(kernel.tags["accumulators"]), dtype=x.dtype)[:, None] * quarter
        for _ in range(kernel.sizes["m"]):
            acc = step(acc, x, quarter)
        return {"out": acc.sum(axis=0)}
