"""Dot product by a tree of additions in local memory, and what a diverging branch adds (Kumar)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, size, work_group
from perfmodel.generators.vector_add import BRANCH, branched, branches
from perfmodel.kernels.kernel import Kernel


def folded(array: str, operation: str, last: str, active: int) -> list[str]:
    """Returns instructions after `last` that join all of a local array into its first element, in rounds of halves.

    Every round adds the upper half of what is left to the lower one; of an odd number, the middle one stays.
    """
    statements, first = [], last
    while active > 1:
        half = (active + 1) // 2
        joined = operation.format(f"{array}[l]", f"{array}[l + {half}]")
        statements += [f"if l < {active - half}", f"{array}[l] = {joined} {{id={first}{half}, dep={last}}}", "end"]
        last, active = f"{first}{half}", half
    return statements


class DotProduct(KernelGenerator):
    """One work-item a product; each work-group adds up its products in local memory and writes one sum.

    With a divergent branch, every product goes through `branches` first.
    """

    name = "dot_product"
    summary = "dot product, one sum a work-group, also with divergent branches"
    source = "Kumar, experiments, dot product; divergence"
    tags = (DTYPE, BRANCH, *work_group(256), GROUPS_FIT, size("n", "elements", 2**20, 2**22, 2**24, 2**26))
    checks = (
        ("groups_fit:True", "lsize_0:1,12,64", "n:192"),
        ("groups_fit:False", "lsize_0:7,64", "n:1,50,200"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize = np.dtype(variant["dtype"]), int(variant["lsize_0"])
        is_fit = variant["groups_fit"] == "True"
        item = f"{lsize}*g + l"
        product = f"""
            <> x = a[{item}] {{id=x}}
            <> y = b[{item}] {{id=y}}
            v = x * y {{id=v, dep=x:y}}
            {branches(f"({item})") if variant["branch"] == "divergent" else ""}
        """
        remainder = [f"if {item} < n", product, "else", "v = 0 {id=v_outside, dep=v*}", "end"]
        statements = [*([product] if is_fit else remainder), "part[l] = v {id=fold, dep=v*}"]
        statements += folded("part", "{0} + {1}", "fold", lsize)
        statements += ["if l == 0", "partial[g] = part[0] {dep=fold*}", "end"]
        program = lp.make_kernel(
            f"{{[g, l]: 0 <= {lsize}*g < n and 0 <= l < {lsize}}}",
            "\n".join(["for g, l", *statements, "end"]),
            [
                lp.GlobalArg("a, b", dtype, shape="n"),
                lp.GlobalArg("partial", dtype, shape=f"(n + {lsize - 1}) // {lsize}", is_input=False),
                lp.TemporaryVariable("v", dtype),
                lp.TemporaryVariable("part", dtype, shape=(lsize,), address_space=lp.AddressSpace.LOCAL),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.tag_inames(program, {"g": "g.0", "l": "l.0"})

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        a, b = arrays["a"], arrays["b"]
        products = a * b if kernel.tags["branch"] == "none" else branched(a * b, a, b)
        return {"partial": np.add.reduceat(products, np.arange(0, a.size, int(kernel.tags["lsize_0"])))}
