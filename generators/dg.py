"""Discontinuous Galerkin differentiation: three small matrices times the values at the nodes of every element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, number, size
from perfmodel.kernels.kernel import Kernel

AXES = 3
# Arrays, and the loops whose part of them is a tile.
FETCHED = {"diff": ("D", ["d", "i_inner", "j_inner"]), "vec": ("u", ["e_inner", "j_inner"])}
# Indices in u, and its shape.
LAYOUTS = {"normal": ("e, {node}", "elements, {nodes}"), "transposed": ("{node}, e", "{nodes}, elements")}


class DGDifferentiation(KernelGenerator):
    """result[d, e, i] = the sum over j of D[d, i, j] u[e, j], for the three derivatives d of a field on elements e.

    A work-item computes all three derivatives at one node, and reads each value of u once for three multiply-adds.
    Along axis 0 of a work-group lie elements: work-items there read one element of the matrices, and elements of u at
    the stride that the layout gives them.
    """

    name = "dg"
    summary = "discontinuous Galerkin differentiation: three matrices times the values of all elements"
    source = "2018 slides, Discontinuous Galerkin accuracy; their journal version for the transposed layout"
    limits = "tiles of one node or, of vectors, one element, and with fetch:diff lsizes:1x1"
    tags = (
        DTYPE,
        choice("fetch", "tiles fetched to local memory: none, of the matrices, or of the vectors", "none", *FETCHED),
        choice("layout", "u and result with nodes (normal) or elements (transposed) as the faster index", *LAYOUTS),
        number("nodes", "nodes of an element", 64),
        number("lsize_0", "elements of a work-group; also the depth of a tile", 8, 16, 32, default=16),
        number("lsize_1", "nodes of a work-group", 8, 16, 32, default=16),
        GROUPS_FIT,
        size("elements", "elements", 2**15, 2**17, 5 * 2**16, 5 * 2**17),
    )
    checks = (
        ("groups_fit:True", "lsize_0:8", "lsize_1:16", "elements:16,48"),
        ("groups_fit:False", "lsize_0:8", "lsize_1:12", "nodes:20", "elements:5,31"),
        ("groups_fit:*", "dtype:float32", "lsizes:16x8,32x32", "elements:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        width, height, nodes = (int(variant[key]) for key in ("lsize_0", "lsize_1", "nodes"))
        place, shape = LAYOUTS[variant["layout"]]
        shape = shape.format(nodes=nodes)
        program = lp.make_kernel(
            f"{{[d, d0, d1, e, i, j]: 0 <= d, d0, d1 < {AXES} and 0 <= e < elements and 0 <= i, j < {nodes}}}",
            f"""
            for e, i
                for d0
                    derivative[d0] = 0 {{id=start}}
                end
                for j
                    <> value = u[{place.format(node="j")}] {{id=load}}
                    for d
                        derivative[d] = derivative[d] + D[d, i, j] * value {{id=add, dep=start:load}}
                    end
                end
                for d1
                    result[d1, {place.format(node="i")}] = derivative[d1] {{dep=add}}
                end
            end
            """,
            [
                lp.GlobalArg("D", dtype, shape=(AXES, nodes, nodes)),
                lp.GlobalArg("u", dtype, shape=shape),
                lp.GlobalArg("result", dtype, shape=f"{AXES}, {shape}", is_input=False),
                lp.TemporaryVariable("derivative", dtype, shape=(AXES,)),
                lp.ValueArg("elements", np.int32),
            ],
            name=self.name,
            assumptions="elements >= 1" + assumed_multiples(variant, "elements", width),
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "e", width, outer_tag="g.0", inner_tag="l.0")
        program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
        program = lp.tag_inames(program, dict.fromkeys(("d", "d0", "d1"), "unr"))
        if variant["fetch"] == "none":
            return lp.prioritize_loops(program, "j,d")
        program = lp.split_iname(program, "j", width)
        program = lp.prioritize_loops(program, "j_outer,j_inner,d")
        array, sweep = FETCHED[variant["fetch"]]
        return lp.add_prefetch(
            program, array, sweep, fetch_outer_inames="e_outer,i_outer,j_outer", default_tag="l.auto"
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"elements": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        width, height, nodes = (int(variant[key]) for key in ("lsize_0", "lsize_1", "nodes"))
        shortest = {"none": 2, "diff": min(max(width, height), nodes), "vec": min(width, nodes)}
        return shortest[variant["fetch"]] > 1

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        nodes = int(kernel.tags["nodes"])
        matrices = arrays["D"].reshape(AXES, nodes, nodes)
        if kernel.tags["layout"] == "transposed":
            return {"result": matrices @ arrays["u"].reshape(nodes, -1)}
        return {"result": arrays["u"].reshape(-1, nodes) @ matrices.transpose(0, 2, 1)}
