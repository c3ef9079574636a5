"""N-body: for each position, the sum of the inverses of its distances to all others (2016, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

SOFTENING = 2.0**-10
"""Added to squared distances, so that positions that coincide, a position and itself too, have a finite inverse."""


class NBody(KernelGenerator):
    """Each work-item sums rsqrt(|x_i - x_j|^2 + softening) over all j, its own i included, as softened sums do.

    With `prefetch`, a work-group fetches positions in blocks of as many as it has work-items.
    """

    name = "nbody"
    summary = "sums of inverse distances between all pairs of positions"
    source = "2016, section 5, n-body"
    limits = "prefetch:True in work-groups of one work-item"
    tags = (
        DTYPE,
        choice("prefetch", "blocks of positions are fetched to local memory", "True", "False"),
        *work_group(256),
        GROUPS_FIT,
        size("n", "positions", 1024, 2048, 4096, 8192, 16384, 32768, 65536),
    )
    checks = (
        ("groups_fit:True", "lsize_0:64,96", "n:192,576"),
        ("groups_fit:False", "lsize_0:64,96", "n:1,63,200"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        lsize = int(variant["lsize_0"])
        program = lp.make_kernel(
            "{[i, j]: 0 <= i, j < n}",
            f"""
            for i
                <> x0 = x[0, i] {{id=x0}}
                <> x1 = x[1, i] {{id=x1}}
                <> x2 = x[2, i] {{id=x2}}
                total = 0 {{id=zero}}
                for j
                    <> d0 = x0 - x[0, j] {{id=d0, dep=x0}}
                    <> d1 = x1 - x[1, j] {{id=d1, dep=x1}}
                    <> d2 = x2 - x[2, j] {{id=d2, dep=x2}}
                    total = total + rsqrt(d0*d0 + d1*d1 + d2*d2 + {SOFTENING}) {{id=step, dep=zero:d0:d1:d2}}
                end
                out[i] = total {{dep=step}}
            end
            """,
            [
                lp.GlobalArg("x", dtype, shape="3, n", dim_tags="N0,N1"),
                lp.GlobalArg("out", dtype, shape="n", is_input=False),
                lp.TemporaryVariable("total", dtype),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")
        if variant["prefetch"] == "False":
            return program
        program = lp.split_iname(program, "j", lsize)
        program = lp.prioritize_loops(program, "j_outer,j_inner")
        program = lp.add_prefetch(
            program,
            "x",
            ["j_inner"],
            dim_arg_names=["axis", "position"],
            fetch_outer_inames="i_outer,j_outer",
            temporary_name="block",
            default_tag=None,
            within="id:d0 or id:d1 or id:d2",
        )
        # Left to itself, Loopy would spread the work-items over the three coordinates, which lie next to each other.
        return lp.tag_inames(program, {"position": "l.0"})

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return variant["prefetch"] == "False" or int(variant["lsize_0"]) > 1

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        x = arrays["x"].reshape(-1, 3)
        squares = ((x[:, None] - x) ** 2).sum(axis=2)
        return {"out": (1 / np.sqrt(squares + x.dtype.type(SOFTENING))).sum(axis=1)}
