"""Special functions, as precise as OpenCL C has them by default, or rougher ones that are one instruction on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, size, work_group
from perfmodel.kernels.arguments import C_TYPES, Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

Values = NDArray[Any]

SOURCE = """\
__kernel void special_functions(__global const REAL *a, __global REAL *out, const int m, const int n)
{
    const int i = get_global_id(0), three = 3 + (m >> 24);
    const REAL x = a[i], quarter = (REAL)0.25 * (x / x);
    REAL p = x, q = x + quarter, r = q + quarter, s = r + quarter;
    for (int k = 0; k < m; ++k) {
        p = STEP(p);
        q = STEP(q);
        r = STEP(r);
        s = STEP(s);
    }
    out[i] = p + q + r + s;
}
"""


def _erf(values: Values) -> Values:
    from scipy import special  # slow to import, and only verification needs it

    found: Values = special.erf(values)
    return found


# Each map brings numbers closer to each other, so that small errors stay small however often it is repeated.
STEPS: dict[str, tuple[str, Callable[[Values, Values], Values]]] = {
    "exp": ("{}exp(-t)", lambda t, x: np.exp(-t)),
    "exp2": ("{}exp2(-t)", lambda t, x: np.exp2(-t)),
    "exp10": ("{}exp10(-t)", lambda t, x: 10**-t),
    "expm1": ("x + quarter * expm1(-t)", lambda t, x: x + np.expm1(-t) / 4),
    "log": ("{}log(t + 3)", lambda t, x: np.log(t + 3)),
    "log2": ("{}log2(t + 3)", lambda t, x: np.log2(t + 3)),
    "log10": ("{}log10(t + 3)", lambda t, x: np.log10(t + 3)),
    "log1p": ("x + quarter * log1p(t)", lambda t, x: x + np.log1p(t) / 4),
    "sin": ("{}sin(t)", lambda t, x: np.sin(t)),
    "cos": ("{}cos(t)", lambda t, x: np.cos(t)),
    "tan": ("{}tan(quarter * t)", lambda t, x: np.tan(t / 4)),
    "asin": ("x + quarter * asin(quarter * t)", lambda t, x: x + np.arcsin(t / 4) / 4),
    "acos": ("x + quarter * acos(quarter * t)", lambda t, x: x + np.arccos(t / 4) / 4),
    "atan": ("x + quarter * atan(t)", lambda t, x: x + np.arctan(t) / 4),
    "atan2": ("x + quarter * atan2(t, x)", lambda t, x: x + np.arctan2(t, x) / 4),
    "sinh": ("x + quarter * sinh(quarter * t)", lambda t, x: x + np.sinh(t / 4) / 4),
    "cosh": ("x + quarter * cosh(quarter * t)", lambda t, x: x + np.cosh(t / 4) / 4),
    "tanh": ("x + quarter * tanh(t)", lambda t, x: x + np.tanh(t) / 4),
    "erf": ("x + quarter * erf(t)", lambda t, x: x + _erf(t) / 4),
    "cbrt": ("x + quarter * cbrt(t)", lambda t, x: x + np.cbrt(t) / 4),
    "hypot": ("x + quarter * hypot(t, x)", lambda t, x: x + np.hypot(t, x) / 4),
    "pow": ("pow(t, quarter)", lambda t, x: t**0.25),
    "powr": ("{}powr(t, quarter)", lambda t, x: t**0.25),
    "pown": ("x + quarter * pown(quarter * t, three)", lambda t, x: x + (t / 4) ** 3 / 4),
    "sqrt": ("{}sqrt(t)", lambda t, x: np.sqrt(t)),
    "rsqrt": ("{}rsqrt(t + 1)", lambda t, x: 1 / np.sqrt(t + 1)),
    "divide": ("{}divide(x, t + 1)", lambda t, x: x / (t + 1)),
}


class SpecialFunctions(KernelGenerator):
    """Each work-item repeats one function on four numbers of its own, m times."""

    name = "special_functions"
    summary = "functions in loops, precise or rough"
    source = "image filters, option prices, n-body codes: whatever calls more than it adds"
    limits = "rough functions of float64, or that OpenCL C lacks"
    tags = (
        choice("dtype", "type of the numbers", "float32", "float64"),
        choice(
            "form",
            "as precise as usual; native_ before the name; or -cl-fast-relaxed-math among the options",
            *("plain", "native", "relaxed"),
        ),
        choice("function", "the function", *STEPS),
        size("m", "times that each number goes through the function", 16, 64, 256),
        *work_group(256),
        size("n", "work-items", 2**16, 2**18, 2**20),
    )
    checks = (
        ("dtype:*", "form:*", "function:*", "m:16", "lsize_0:64", "n:128"),
        ("form:plain,relaxed", "function:powr", "m:64,256", "lsize_0:64,128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, form = int(variant["lsize_0"]), variant["form"]
        step = STEPS[variant["function"]][0].format("native_" if form == "native" else "")
        return OpenCLProgram(
            f"#define REAL {C_TYPES[variant['dtype']]}\n#define STEP(t) {step}\n{SOURCE}",
            self.name,
            "n",
            lsize,
            [
                Array("a", variant["dtype"], "n"),
                Array("out", variant["dtype"], "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            ["-cl-fast-relaxed-math"] if form == "relaxed" else [],
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        is_rough = "{}" in STEPS[variant["function"]][0] and variant["dtype"] == "float32"
        if variant["function"] == "divide":
            return is_rough and variant["form"] == "native"
        return variant["form"] == "plain" or is_rough

    def tolerance(self, kernel: Kernel, dtype: str) -> float:
        return super().tolerance(kernel, dtype) if kernel.tags["form"] == "plain" else 2e-3

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        x = arrays["a"].astype(np.float64)
        numbers = [x + 0.25 * j for j in range(4)]
        step = STEPS[kernel.tags["function"]][1]
        for _ in range(int(kernel.sizes["m"])):
            numbers = [step(t, x) for t in numbers]
        return {"out": np.sum(numbers, axis=0).astype(arrays["a"].dtype)}
