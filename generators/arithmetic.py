"""Arithmetic of one kind, without global loads (2016, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel


def _pow(t: Any, x: Any) -> Any:
    for _ in range(6):
        t = t**x
    return t


def _div(t: Any, x: Any) -> Any:
    for _ in range(6):
        t = x / t
    return t


def _rsqrt(t: Any, x: Any) -> Any:
    value = t * x
    for _ in range(8):
        value = 1 / np.sqrt(value)
    return value


# What is summed up over t = 1 … k, as Loopy writes it and as numpy does; x is a work-item's own number near 1. Every
# step depends on t, so that none moves out of the loop, and has rounding of its own, so that none cancels another.
OPERATIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("t + x + t - x + t + x + t - x + t", lambda t, x: t + x + t - x + t + x + t - x + t),
    "mul": ("t * x * t * x * t * x * t * x * x", lambda t, x: t * x * t * x * t * x * t * x * x),
    "div": ("x / (x / (x / (x / (x / (x / t)))))", _div),
    "pow": ("(((((t ** x) ** x) ** x) ** x) ** x) ** x", _pow),
    "rsqrt": (8 * "rsqrt(" + "t * x" + 8 * ")", _rsqrt),
}


class Arithmetic(KernelGenerator):
    """Each element of an n x n result is a sum over k values of an expression of 6 or 8 operations of one kind."""

    name = "arithmetic"
    summary = "sums of expressions of one arithmetic operation, without loads"
    source = "2016, section 4.1, arithmetic operations"
    tags = (
        choice("dtype", "element type; the sums are too large for half precision", "float32", "float64"),
        choice(
            "op", "operation, of which an expression has 8 (div, pow: 6); add alternates with subtract", *OPERATIONS
        ),
        *work_group(16, 16),
        GROUPS_FIT,
        size("n", "rows and columns of the result", 512, 1024, 2048, cases=3),
        size("k", "terms of each sum", 256, 512, 728),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x12", "n:48", "k:7,100"),
        ("groups_fit:False", "lsizes:16x12", "n:1,37", "k:1,100"),
        ("groups_fit:*", "dtype:float32", "lsizes:8x16,16x32,32x8", "n:32,33", "k:7"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        multiples = assumed_multiples(variant, "n", width, height)
        expression, _ = OPERATIONS[variant["op"]]
        program = lp.make_kernel(
            "{[i, j, s]: 0 <= i, j < n and 1 <= s <= k}",
            f"""
            for i, j
                <int32> whole = i - j {{id=whole}}
                distance = whole {{id=distance, dep=whole}}
                x = 1 + {2.0**-16} * distance {{id=x, dep=distance}}
                total = 0 {{id=zero}}
                for s
                    t = s {{id=t}}
                    total = {expression} + total {{id=step, dep=zero:x:t}}
                end
                out[i, j] = total {{dep=step}}
            end
            """,
            [
                lp.GlobalArg("out", dtype, shape="n, n", is_input=False),
                *(lp.TemporaryVariable(name, dtype) for name in ("distance", "x", "total", "t")),
                lp.ValueArg("n, k", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and k >= 1{multiples}",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        return lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, dtype = kernel.sizes["n"], arrays["out"].dtype
        i, j = np.indices((n, n))
        x = (1 + 2.0**-16 * (i - j)).astype(dtype)
        _, term = OPERATIONS[kernel.tags["op"]]
        total = np.zeros((n, n), dtype)
        for t in range(1, kernel.sizes["k"] + 1):
            total += term(dtype.type(t), x)
        return {"out": total.ravel()}
