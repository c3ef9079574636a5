"""Images resized by a whole factor: means of factor x factor elements, or every element repeated as often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

# By direction: the side of the points that have a work-item each, those of a and of out, and what a work-item does.
DIRECTIONS = {
    "down": ("n", "{factor}*n", "n", "out[i, j] = weight * sum((p, q), a[{factor}*i + p, {factor}*j + q])"),
    "up": (
        "n",
        "n",
        "{factor}*n",
        """
        for i, j
            <> value = a[i, j] {{id=load}}
            for p, q
                out[{factor}*i + p, {factor}*j + q] = value {{dep=load}}
            end
        end
        """,
    ),
    "up_gather": ("{factor}*n", "n", "{factor}*n", "out[i, j] = a[i // {factor}, j // {factor}]"),
}


class Resample(KernelGenerator):
    """n x n elements of a small image, and (factor n) x (factor n) of a large one, neighbours along a row.

    Down and up, a work-item is an element of the small image: it loads, or stores, factor x factor elements of the
    large one, at a stride of factor elements from its neighbour's. In up_gather it is an element of the large image,
    and factor neighbours load the same element.
    """

    name = "resample"
    summary = "images made smaller or larger by a whole factor"
    source = "for unified-plus: strides along both axes, and rows of elements that neighbours share"
    tags = (
        DTYPE,
        choice("direction", "means; repetitions, by elements of a; repetitions, by elements of out", *DIRECTIONS),
        choice("factor", "how many times as many rows, and columns, the large image has", "2", "3", "4"),
        *work_group(16, 16),
        GROUPS_FIT,
        size("n", "rows and columns of the small image", 1024, 2048, 4096),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x12", "n:48"),
        ("groups_fit:False", "dtype:float32", "lsizes:16x12,5x8", "n:1,37"),
        ("groups_fit:*", "dtype:float32", "factor:3", "lsizes:8x16,16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, factor = np.dtype(variant["dtype"]), variant["factor"]
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        points, given, made, text = (part.format(factor=factor) for part in DIRECTIONS[variant["direction"]])
        is_gather = variant["direction"] == "up_gather"
        domain = f"{{[i, j]: 0 <= i, j < {points}}}"
        inner = f"{{[p, q]: 0 <= p, q < {factor}}}"
        fit = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            [domain] if is_gather else [domain, inner],
            text.replace("weight", repr(1 / int(factor) ** 2)),
            [
                lp.GlobalArg("a", dtype, shape=f"{given}, {given}"),
                lp.GlobalArg("out", dtype, shape=f"{made}, {made}", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1{fit}",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        program = lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")
        return program if is_gather else lp.tag_inames(program, {"p": "unr", "q": "unr"})

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, factor = kernel.sizes["n"], int(kernel.tags["factor"])
        if kernel.tags["direction"] == "down":
            return {"out": arrays["a"].reshape(n, factor, n, factor).mean(axis=(1, 3))}
        return {"out": np.kron(arrays["a"].reshape(n, n), np.ones((factor, factor), arrays["a"].dtype))}
