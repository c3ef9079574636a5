"""Tridiagonal systems of equations, a work-item to a system: a[e] x[e-1] + b[e] x[e] + c[e] x[e+1] = d[e]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

# Index of equation e of system i, and the arrays' shape.
LAYOUTS = {"interleaved": ("{e}, i", "m, n"), "contiguous": ("i, {e}", "n, m")}


class Tridiagonal(KernelGenerator):
    """Thomas's algorithm: a sweep forward eliminates the a's, and stores c and d as they are then; x follows backward.

    The first a and the last c of a system are multiplied by zero. Timed, as all kernels are, with numbers near one, the
    systems are not diagonally dominant, and the results of no use.
    """

    name = "tridiagonal"
    summary = "batch of tridiagonal systems by Thomas's algorithm, a work-item to a system"
    source = "for unified-plus: loops of which every iteration waits for a division of the one before"
    tags = (
        DTYPE,
        choice("layout", "arrays with systems (interleaved) or equations (contiguous) as the faster index", *LAYOUTS),
        *work_group(256),
        GROUPS_FIT,
        size("n", "systems", 2**12, 2**14, 2**16),
        size("m", "equations of a system", 64, 256),
    )
    checks = (
        ("groups_fit:True", "lsize_0:12,64", "n:192", "m:1,2,33"),
        ("groups_fit:False", "lsize_0:15,64", "n:1,50,200", "m:1,20"),
        ("groups_fit:*", "dtype:float32", "lsize_0:128,256,512", "n:1000,1024", "m:5"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize = np.dtype(variant["dtype"]), int(variant["lsize_0"])
        place, shape = LAYOUTS[variant["layout"]]
        here, back = place.format(e="e"), place.format(e="m - 1 - k")
        program = lp.make_kernel(
            "{[i, e, k]: 0 <= i < n and 0 <= e, k < m}",
            f"""
            for i
                upper = 0 {{id=upper}}
                right = 0 {{id=right, dep=upper}}
                for e
                    lower = a[{here}] {{id=lower, dep=right}}
                    pivot = b[{here}] - lower * upper {{id=pivot, dep=lower}}
                    upper = c[{here}] / pivot {{id=next_upper, dep=pivot}}
                    right = (d[{here}] - lower * right) / pivot {{id=next_right, dep=next_upper}}
                    c_new[{here}] = upper {{id=stored_c, dep=next_right}}
                    d_new[{here}] = right {{id=stored_d, dep=stored_c}}
                end
                found = 0 {{id=found, dep=stored*}}
                for k
                    found = d_new[{back}] - c_new[{back}] * found {{id=solve, dep=found:stored*, nosync=stored*}}
                    x[{back}] = found {{id=store, dep=solve}}
                end
            end
            """,
            [
                lp.GlobalArg("a, b, c, d", dtype, shape=shape),
                lp.GlobalArg("c_new, d_new, x", dtype, shape=shape, is_input=False),
                *(lp.TemporaryVariable(t, dtype, shape=()) for t in ("lower", "pivot", "upper", "right", "found")),
                lp.ValueArg("n, m", np.int32),
            ],
            name=self.name,
            assumptions="n >= 1 and m >= 1" + assumed_multiples(variant, "n", lsize),
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Returns diagonally dominant systems, beside numbers of at most 1.5 a diagonal of at least 4.5, without
        differences of like numbers: what is beside the diagonal is negative, so that all x are sums of positive
        numbers.
        """
        arrays = super().inputs(kernel, random)
        changed = {"a": -arrays["a"], "b": arrays["b"] + arrays["b"].dtype.type(4), "c": -arrays["c"]}
        return {**arrays, **changed}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """Solves the first e + 1 equations of each system, whose last unknown is the stored d; with right sides of
        zeros before c, it is the stored c.
        """
        n, m = kernel.sizes["n"], kernel.sizes["m"]
        is_contiguous = kernel.tags["layout"] == "contiguous"
        a, b, c, d = (
            (arrays[key].reshape(n, m) if is_contiguous else arrays[key].reshape(m, n).T).astype(np.float64)
            for key in "abcd"
        )
        e = np.arange(m)
        matrices = np.zeros((n, m, m))
        matrices[:, e, e] = b
        matrices[:, e[1:], e[:-1]] = a[:, 1:]
        matrices[:, e[:-1], e[1:]] = c[:, :-1]
        c_new, d_new = np.empty((2, n, m))
        for last in range(m):
            right = np.zeros((n, last + 1, 2))
            right[:, :, 0] = d[:, : last + 1]
            right[:, last, 1] = c[:, last]
            solved = np.linalg.solve(matrices[:, : last + 1, : last + 1], right)
            d_new[:, last], c_new[:, last] = solved[:, last].T
        found = {"c_new": c_new, "d_new": d_new, "x": solved[:, :, 0]}
        return {name: values if is_contiguous else values.T for name, values in found.items()}
