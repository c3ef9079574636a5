"""Windows of pictures, as programs write them: with indices of several types, and a border."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import INDEX, INDEX_TYPES, choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__kernel void windows(__global const TYPE *x, __global TYPE *y, const int n)
{
    const INDEX i = get_global_id(0), j = get_global_id(1);
    INSIDE
    SUM total = 0;
    for (int v = -REACH; v <= REACH; ++v)
        for (int u = -REACH; u <= REACH; ++u)
            total += x[PLACE];
    y[j * n + i] = total / ((2 * REACH + 1) * (2 * REACH + 1));
}
"""
BORDERS = {
    "padded": {"INSIDE": "", "PLACE": "(j + REACH + v) * (n + 2 * REACH) + i + REACH + u"},
    "skipped": {
        "INSIDE": "if (i < REACH || j < REACH || i >= n - REACH || j >= n - REACH) return;",
        "PLACE": "(j + v) * n + i + u",
    },
    "clamped": {"INSIDE": "", "PLACE": "clamp((int)j + v, 0, n - 1) * n + clamp((int)i + u, 0, n - 1)"},
}
TYPES = {"float32": ("float", "float"), "float64": ("double", "double"), "uint8": ("uchar", "int")}


class Windows(KernelGenerator):
    """Each work-item takes the mean of a square of pixels around its own.

    The picture has a border that is there to be read (`padded`), or whose pixels have no window (`skipped`), or it is
    continued by its outermost pixels (`clamped`).
    """

    name = "windows"
    summary = "means over windows of a picture, with indices of several types"
    source = "filters and stencils of everyday programs"
    tags = (
        choice("border", "what is done where the picture ends", *BORDERS),
        choice("dtype", "type of a pixel", *TYPES),
        INDEX,
        choice("loops", "whether a compiler writes the loops out", "written_out", "rolled"),
        number("reach", "pixels on each side of a window's middle", 0, 1, 2),
        *work_group(16, 16),
        size("n", "pixels along a side", 256, 512, 1024),
    )
    checks = (
        ("border:*", "dtype:*", "index:*", "loops:*", "reach:*", "n:32"),
        ("border:*", "index:*", "reach:1", "lsizes:8x8,8x32,32x8,64x4,256x1", "n:256"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        reach, (kind, total) = int(variant["reach"]), TYPES[variant["dtype"]]
        columns, rows = int(variant["lsize_0"]), int(variant["lsize_1"])
        source = SOURCE
        for word, text in BORDERS[variant["border"]].items():
            source = source.replace(word, text)
        source = source.replace("REACH", str(reach))
        if variant["loops"] == "rolled":
            source = source.replace("for (", "#pragma unroll 1\n    for (")
        source = source.replace("TYPE", kind).replace("SUM", total).replace("INDEX", INDEX_TYPES[variant["index"]])
        side = f"(n + {2 * reach})" if variant["border"] == "padded" else "n"
        return OpenCLProgram(
            source,
            self.name,
            ("n", "n"),
            (columns, rows),
            [
                Array("x", variant["dtype"], f"{side} * {side}"),
                Array("y", variant["dtype"], "n * n", is_output=True),
                Scalar("n", "int32"),
            ],
            (),
            f"n % {columns} == 0 and n % {rows} == 0 and n > {2 * reach}",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(np.lcm(int(variant["lsize_0"]), int(variant["lsize_1"])))}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, reach, border = int(kernel.sizes["n"]), int(kernel.tags["reach"]), kernel.tags["border"]
        side = n + 2 * reach if border == "padded" else n
        picture = arrays["x"].reshape(side, side)
        wide = picture if border == "padded" else np.pad(picture, reach, mode="edge")
        total = np.zeros((n, n), np.int32 if kernel.tags["dtype"] == "uint8" else picture.dtype)
        across = 2 * reach + 1
        for v in range(across):
            for u in range(across):
                total = total + wide[v : v + n, u : u + n]
        mean = total // across**2 if kernel.tags["dtype"] == "uint8" else total / across**2
        found = mean.astype(picture.dtype)
        if border == "skipped":
            inside = slice(reach, n - reach)
            kept = arrays["y"].reshape(n, n).copy()
            kept[inside, inside] = found[inside, inside]
            found = kept
        return {"y": found.reshape(-1)}
