"""Vector addition c = a + b, and what a branch that diverges within every sub-group adds (Kumar)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

BRANCH = choice("branch", "whether neighbouring work-items take different branches", "none", "divergent")
LENGTH = 4


def branches(item: str) -> str:
    """Returns statements for Loopy that go on with a value v, in two branches by the parity of the work-item's number.

    Even work-items do `LENGTH` times v = v x + y, odd ones as often v = x / (y + v); neither can be had from the other.
    x, y and v are private numbers that an instruction ``v`` and those before it set; who uses v depends on ``v*``.
    Both stay between 0.1 and 28 for x and y in [0.5, 1.5) and v in [0, 3).
    """
    even = odd = "v"
    for _ in range(LENGTH):
        even, odd = f"({even}*x + y)", f"x / (y + {odd})"
    return f"""
        if {item} % 2 == 0
            v = {even} {{id=v_even, dep=v}}
        else
            v = {odd} {{id=v_odd, dep=v_even}}
        end
    """


def branched(v: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Returns what `branches` computes, with the work-items along the last axis."""
    even = odd = v
    for _ in range(LENGTH):
        even, odd = even * x + y, x / (y + odd)
    return np.where(np.arange(v.shape[-1]) % 2 == 0, even, odd)


class VectorAdd(KernelGenerator):
    """One work-item an element; with a divergent branch, what `branches` makes of a + b from a and b."""

    name = "vector_add"
    summary = "c = a + b of vectors, also with divergent branches"
    source = "Kumar, experiments, vector addition; divergence"
    tags = (DTYPE, BRANCH, *work_group(256), GROUPS_FIT, size("n", "elements", 2**20, 2**22, 2**24, 2**25))
    checks = (
        ("groups_fit:True", "lsize_0:64,192", "n:192,576"),
        ("groups_fit:False", "lsize_0:15,64", "n:1,50,200"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize = np.dtype(variant["dtype"]), int(variant["lsize_0"])
        divergent = f"""
            for i
                <> x = a[i] {{id=x}}
                <> y = b[i] {{id=y}}
                <> v = x + y {{id=v, dep=x:y}}
                {branches("i")}
                c[i] = v {{dep=v*}}
            end
        """
        program = lp.make_kernel(
            "{[i]: 0 <= i < n}",
            "c[i] = a[i] + b[i]" if variant["branch"] == "none" else divergent,
            [
                lp.GlobalArg("a, b", dtype, shape="n"),
                lp.GlobalArg("c", dtype, shape="n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        a, b = arrays["a"], arrays["b"]
        return {"c": a + b if kernel.tags["branch"] == "none" else branched(a + b, a, b)}
