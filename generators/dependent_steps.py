"""Operations that wait for each other, on what each iteration loads or on what goes on from iteration to iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__kernel void dependent_steps(__global const TYPE *restrict a, __global TYPE *restrict out, const int m, const int n)
{
    const int i = get_global_id(0);
    TYPE total = 0;
    for (int k = 0; k < m; ++k) {
        TYPE x = a[k * n + i];
        BODY
    }
    out[i] = total;
}
"""
BODIES = {
    "element": ("x", "total += x;"),
    "carried": ("total", "total += x;"),
}


@dataclass(frozen=True)
class Step:
    """One operation or a few, on a variable `{0}`, as OpenCL C has it and as numpy does it."""

    dtype: str
    text: str
    taken: Callable[[NDArray[Any]], NDArray[Any]]


STEPS = {
    "madd": Step("float32", "{0} = 0.5f * {0} + 0.25f;", lambda x: np.float32(0.5) * x + np.float32(0.25)),
    "rsqrt": Step("float32", "{0} = rsqrt({0} + 1.0f);", lambda x: 1 / np.sqrt(x + np.float32(1))),
    "double": Step("float64", "{0} = 0.5 * {0} + 0.25;", lambda x: 0.5 * x + 0.25),
    "hash": Step("uint32", "{0} = ({0} ^ ({0} >> 15)) * 739982445u;", lambda x: (x ^ (x >> 15)) * np.uint32(739982445)),
}
OPENCL = {"float32": "float", "float64": "double", "uint32": "uint"}


class DependentSteps(KernelGenerator):
    """Each work-item takes m numbers through some steps, one step after the other.

    Where they begin with each number anew, a compiler takes several numbers through them side by side; where they go on
    with the total, there is one long chain.
    """

    name = "dependent_steps"
    summary = "operations that wait for each other, in each iteration or through all"
    source = "bodies of everyday loops: distances and their roots, hashes, recurrences"
    tags = (
        choice("chain", "what the steps are done to: what each iteration loads, or the total", *BODIES),
        choice("op", "the operations of a step", *STEPS),
        number("steps", "steps of an iteration", 1, 4, 16),
        size("m", "iterations", 16, 64, 256),
        *work_group(256),
        size("n", "work-items", 2**13, 2**15, 2**18),
    )
    checks = (
        ("chain:*", "op:*", "steps:*", "m:16", "lsize_0:64", "n:128"),
        ("chain:*", "op:*", "steps:4", "m:16", "lsize_0:64,128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize, step = int(variant["lsize_0"]), STEPS[variant["op"]]
        changed, added = BODIES[variant["chain"]]
        steps = [step.text.format(changed)] * int(variant["steps"])
        lines = [*steps, added] if changed == "x" else [added, *steps]
        return OpenCLProgram(
            SOURCE.replace("TYPE", OPENCL[step.dtype]).replace("BODY", "\n        ".join(lines)),
            self.name,
            "n",
            lsize,
            [
                Array("a", step.dtype, "m * n"),
                Array("out", step.dtype, "n", is_output=True),
                Scalar("m", "int32"),
                Scalar("n", "int32"),
            ],
            (),
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        a, step = arrays["a"].reshape(int(kernel.sizes["m"]), -1), STEPS[kernel.tags["op"]]
        total = np.zeros_like(a[0])
        for x in a:
            if kernel.tags["chain"] == "carried":
                total = total + x
            for _ in range(int(kernel.tags["steps"])):
                if kernel.tags["chain"] == "carried":
                    total = step.taken(total)
                else:
                    x = step.taken(x)
            if kernel.tags["chain"] == "element":
                total = total + x
        return {"out": total}
