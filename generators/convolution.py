"""Convolution of three images of three colours with three filters (2016, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel

COUNT = 3
"""Images, filters, and colours."""
REACH = 3
"""Elements of a filter on each side of its middle; images are padded by as many."""
WIDTH = 2 * REACH + 1


class Convolution(KernelGenerator):
    """Each work-item computes one pixel of one image, for all filters: the sum over a neighbourhood and the colours.

    Images are n x n, padded on all sides, and filters 7 x 7; colours lie next to each other in both. Work-groups are
    spread over pixels along axes 0 and 1, and over the images along axis 2.
    """

    name = "convolution"
    summary = "three 7 x 7 filters applied to three RGB images"
    source = "2016, section 5, convolution"
    tags = (
        DTYPE,
        choice("fetch", "what is fetched to local memory", "none", "filters"),
        *work_group(16, 16),
        GROUPS_FIT,
        size("n", "pixels along each side of an image", 64, 128, 256, 512, 1024, 2048),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x12", "n:48"),
        ("groups_fit:False", "lsizes:16x12,8x4", "n:1,37"),
        ("groups_fit:*", "dtype:float32", "lsizes:8x16,16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        multiples = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            f"{{[i, j, x, y, xi, eta, c]: 0 <= x, y < n and 0 <= i, j, c < {COUNT} "
            f"and -{REACH} <= xi, eta <= {REACH}}}",
            f"""
            r[i, j, x, y] = sum([xi, eta, c],
                                m[i, {REACH} + x - xi, {REACH} + y - eta, c] * f[j, {REACH} + xi, {REACH} + eta, c])
            """,
            [
                lp.GlobalArg("m", dtype, shape=f"{COUNT}, n + {2 * REACH}, n + {2 * REACH}, {COUNT}"),
                lp.GlobalArg("f", dtype, shape=(COUNT, WIDTH, WIDTH, COUNT)),
                lp.GlobalArg("r", dtype, shape=f"{COUNT}, {COUNT}, n, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1{multiples}",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "x", height, outer_tag="g.1", inner_tag="l.1")
        program = lp.split_iname(program, "y", width, outer_tag="g.0", inner_tag="l.0")
        program = lp.tag_inames(program, {"i": "g.2"})
        program = lp.prioritize_loops(program, "j,xi,eta,c")
        if variant["fetch"] == "filters":
            program = lp.add_prefetch(
                program,
                "f",
                ["j", "xi", "eta", "c"],
                fetch_outer_inames="i,x_outer,y_outer",
                temporary_name="filters",
                default_tag="l.auto",
            )
        return program

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        images = arrays["m"].reshape(COUNT, n + 2 * REACH, n + 2 * REACH, COUNT)
        filters = arrays["f"].reshape(COUNT, WIDTH, WIDTH, COUNT)
        windows = np.lib.stride_tricks.sliding_window_view(images, (WIDTH, WIDTH), axis=(1, 2))
        return {"r": np.einsum("ixycab,jabc->ijxy", windows, filters[:, ::-1, ::-1]).ravel()}
