"""Pixels of images that are read through samplers, as filters do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import Array, Image, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
__constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

__kernel void image_reads(__read_only image2d_t photo, __global float *out, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    float total = 0;
    for (int v = 0; v < ROWS; ++v)
        for (int u = 0; u < COLUMNS; ++u)
            total += read_imagef(photo, at, (int2)(x + u, y + v)).x;
    out[y * n + x] = total;
}
"""


class ImageReads(KernelGenerator):
    """Each work-item reads a window of pixels to the right of and below its own."""

    name = "image_reads"
    summary = "pixels of an image, read through a sampler"
    source = "filters of images in everyday programs"
    tags = (
        choice("channels", "numbers of a pixel", "1", "4"),
        choice("dtype", "type of the numbers", "float32", "uint8"),
        number("rows", "rows of the window", 1, 3, 5),
        number("columns", "columns of the window", 1, 3, 5),
        *work_group(16, 16),
        size("n", "pixels along a side", 1024, 2048, 4096),
    )
    checks = (
        ("channels:*", "dtype:*", "rows:1,3", "columns:1,3", "n:64"),
        ("rows:5", "columns:5", "lsizes:32x8,64x4,8x8,8x32", "n:64"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        columns, rows = int(variant["lsize_0"]), int(variant["lsize_1"])
        is_whole = variant["dtype"] == "uint8"
        return OpenCLProgram(
            SOURCE,
            self.name,
            ("n", "n"),
            (columns, rows),
            [
                Image(
                    "photo",
                    variant["dtype"],
                    f"{variant['channels']} * n * n",
                    sizes=("n", "n"),
                    channels=int(variant["channels"]),
                    normalized=is_whole,
                ),
                Array("out", "float32", "n * n", is_output=True),
                Scalar("n", "int32"),
            ],
            [f"-DROWS={variant['rows']}", f"-DCOLUMNS={variant['columns']}"],
            f"n % {columns} == 0 and n % {rows} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(np.lcm(int(variant["lsize_0"]), int(variant["lsize_1"])))}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n, channels = int(kernel.sizes["n"]), int(kernel.tags["channels"])
        pixels = arrays["photo"].reshape(n, n, channels)[:, :, 0].astype(np.float32)
        if kernel.tags["dtype"] == "uint8":
            pixels = pixels / np.float32(255)
        rows, columns = int(kernel.tags["rows"]), int(kernel.tags["columns"])
        edged = np.pad(pixels, ((0, rows), (0, columns)), mode="edge")
        total = np.zeros((n, n), np.float32)
        for v in range(rows):
            for u in range(columns):
                total = total + edged[v : v + n, u : u + n]
        return {"out": total.reshape(-1)}
