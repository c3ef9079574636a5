"""Tests of data in a loop: ladders of ifs, conditions of several parts, and a state machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__kernel void decisions(__global const int *a, __global int *out, const int m, const int n)
{
    const int i = get_global_id(0);
    int place = START;
    int total = 0;
    int state = 0;
    for (int k = 0; k < m; ++k) {
        place = (5 * place + 3) & 15;
        const TYPE x = place;
        DECISION
    }
    out[i] = total + state;
}
"""
STARTS = {"same": "n", "different": "a[i]"}
DECISIONS = {
    "ladder": "if (x < 4) total += 3; else if (x < 8) total -= place; else if (x < 11) total += 2 * place; "
    "else total ^= k;",
    "range": "if ((x > 2 && x < 9) || x == 12) total += place;",
    "count": "total += (x > 1) + (x > 3) + (x > 6) + (x > 9) + (x > 11) + (x > 14);",
    "states": "switch (state) {\n"
    "        case 0: if (x == 3) state = 1; else if (x > 9) state = 2; break;\n"
    "        case 1: total += place; if (x < 5) state = 2; break;\n"
    "        default: total ^= place; state = x < 8 ? 0 : 1; break;\n"
    "        }",
}


class Decisions(KernelGenerator):
    """Each work-item tests a number m times and does one thing or another.

    The number goes through sixteen values in turn. Where neighbours begin at different ones, their sub-group does all
    that one of them does.
    """

    name = "decisions"
    summary = "ifs, conditions and states that follow from numbers"
    source = "parsers, searches and filters of everyday programs"
    limits = "numbers from 1 to 7 in a, for results that are checked"
    tags = (
        choice("form", "what is decided in each iteration", *DECISIONS),
        choice("dtype", "type of the numbers that are compared", "int32", "float32"),
        choice("start", "where neighbouring work-items begin", *STARTS),
        number("unrolled", "iterations that are written out by the compiler", 1, 4),
        size("m", "iterations", 16, 64, 256),
        *work_group(256),
        size("n", "work-items", 2**16, 2**18, 2**20),
    )
    checks = (
        ("form:*", "dtype:*", "start:*", "unrolled:*", "m:16", "lsize_0:64", "n:128"),
        ("form:*", "dtype:*", "m:64,256", "lsize_0:64,128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        loop = f"#pragma unroll {variant['unrolled']}\n    for"
        return OpenCLProgram(
            SOURCE.replace("START;", f"{STARTS[variant['start']]};")
            .replace("DECISION", DECISIONS[variant["form"]])
            .replace("TYPE", "float" if variant["dtype"] == "float32" else "int")
            .replace("for", loop, 1),
            self.name,
            "n",
            lsize,
            [Array("a", "int32", "n"), Array("out", "int32", "n", is_output=True), *map(_number, ("m", "n"))],
            (),
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        a, form = arrays["a"], kernel.tags["form"]
        place = np.full_like(a, len(a)) if kernel.tags["start"] == "same" else a.copy()
        total, state = np.zeros_like(a), np.zeros_like(a)
        for k in range(int(kernel.sizes["m"])):
            place = (5 * place + 3) & 15
            if form == "ladder":
                total = np.select(
                    [place < 4, place < 8, place < 11], [total + 3, total - place, total + 2 * place], total ^ k
                )
            elif form == "range":
                total = total + np.where(((place > 2) & (place < 9)) | (place == 12), place, 0)
            elif form == "count":
                total = total + sum((place > least).astype(np.int32) for least in (1, 3, 6, 9, 11, 14))
            else:
                first = np.where(place == 3, 1, np.where(place > 9, 2, 0))
                total = np.select([state == 0, state == 1], [total, total + place], total ^ place)
                state = np.select([state == 0, state == 1], [first, np.where(place < 5, 2, 1)], place >= 8)
        return {"out": (total + state).astype(np.int32)}


def _number(name: str) -> Scalar:
    return Scalar(name, "int32")
