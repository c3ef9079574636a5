"""Functions of two vectors, element by element, c = f(a, b), from a few operations an element to many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, size, work_group
from perfmodel.kernels.kernel import Kernel

Values = NDArray[Any]


def horner(degree: int) -> tuple[str, Callable[[Values, Values], Values]]:
    """Returns a polynomial in x, all of whose coefficients are y, as Loopy writes it and as numpy does."""
    text = "y"
    for _ in range(degree):
        text = f"({text})*x + y"
    return text, lambda a, b: b * np.sum([a**power for power in range(degree + 1)], axis=0)


# The square root of 2 / pi and 0.044715, nearly: what float32 does not have exactly, Loopy takes for float64.
SCALE, CUBE = 817 / 2**10, 1465 / 2**15
# Of x and y, which are in [0.5, 1.5): as Loopy writes them, and as numpy does.
FUNCTIONS: dict[str, tuple[str, Callable[[Values, Values], Values]]] = {
    "triad": ("x + 2.5*y", lambda a, b: a + 2.5 * b),
    "sigmoid": ("x / (1 + exp(-y))", lambda a, b: a / (1 + np.exp(-b))),
    "gelu": (
        f"0.5*x*y * (1 + tanh({SCALE}*(x + {CUBE}*x*x*x)))",
        lambda a, b: b * (a / 2) * (1 + np.tanh(SCALE * (a + CUBE * a**3))),
    ),
    "log_ratio": ("log(x / y) * sqrt(y)", lambda a, b: np.log(a / b) * np.sqrt(b)),
    "polynomial": horner(8),
    "polynomial32": horner(32),
    "norm": ("x / sqrt(x*x + y*y)", lambda a, b: a / np.hypot(a, b)),
    "wave": ("sin(x) * cos(y)", lambda a, b: np.sin(a) * np.cos(b)),
}


class Elementwise(KernelGenerator):
    """Each work-item computes one element, or several that lie apart by as many as there are work-items."""

    name = "elementwise"
    summary = "c = f(a, b) of vectors, for functions from a multiply-add to a polynomial of degree 32"
    source = "for unified-plus: operations hidden behind global memory"
    tags = (
        choice("dtype", "element type; Loopy takes constants for float32 at least", "float32", "float64"),
        choice("function", "f; gelu(a) b, and polynomials in a whose coefficients are b", *FUNCTIONS),
        choice("elements", "elements that a work-item computes", "1", "2", "4"),
        *work_group(256),
        size("n", "elements of a vector", 2**22, 2**24, 2**26),
    )
    checks = (
        ("lsize_0:64", "n:256,768"),
        ("dtype:float32", "function:triad,sigmoid", "lsize_0:24,128,256,512", "n:6144"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize = np.dtype(variant["dtype"]), int(variant["lsize_0"])
        elements = int(variant["elements"])
        expression, _ = FUNCTIONS[variant["function"]]
        shape = f"{elements}, n // {elements}"
        program = lp.make_kernel(
            [f"{{[i]: 0 <= {elements}*i < n}}", f"{{[j]: 0 <= j < {elements}}}"],
            f"""
            for i, j
                <> x = a[j, i] {{id=x}}
                <> y = b[j, i] {{id=y, dep=x}}
                c[j, i] = {expression} {{dep=x:y}}
            end
            """,
            [
                lp.GlobalArg("a, b", dtype, shape=shape),
                lp.GlobalArg("c", dtype, shape=shape, is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and n mod {self.multiples(variant)['n']} = 0",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")
        return lp.tag_inames(program, {"j": "unr"})

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"]) * int(variant["elements"])}

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        arrays = dict(super().inputs(kernel, random))
        if kernel.tags["function"] == "log_ratio":
            # Logarithms near zero would show the rounding of the quotient, which differs between devices.
            arrays["a"] += arrays["a"].dtype.type(2)
        return arrays

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        _, function = FUNCTIONS[kernel.tags["function"]]
        return {"c": function(arrays["a"], arrays["b"])}
