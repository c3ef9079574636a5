"""Records of four numbers that are read, changed and stored, as programs with particles and pixels keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import INDEX, INDEX_TYPES, choice, size, work_group
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """\
typedef struct { float x, y, z, w; } Four;
__kernel void records(__global KIND *place, __global KIND *speed, const int n)
{
    const INDEX i = get_global_id(0);
    KIND p = place[i], v = speed[i];
    BOUNCE
    p.x += 0.125f * v.x;
    p.y += 0.125f * v.y;
    p.z += 0.125f * v.z;
    place[i] = p;
    speed[i] = v;
}
"""
KINDS = {"vector": "float4", "struct": "Four"}
BOUNCES = {"never": "", "tested": "if (p.x * p.x + p.y * p.y > v.w) { v.x = -v.x; v.y = p.x - v.y; v.w *= 0.5f; }"}


class Records(KernelGenerator):
    """Each work-item moves a particle: it reads a place and a speed of four numbers each, and stores both again.

    They are vectors of OpenCL C, or structs. What is changed may depend on a test of the data (`tested`).
    """

    name = "records"
    summary = "records of four numbers, read, changed and stored"
    source = "particles and pixels of everyday programs"
    tags = (
        choice("kind", "what a record is", *KINDS),
        INDEX,
        choice("bounce", "whether data decide on changes", *BOUNCES),
        *work_group(64),
        size("n", "records", 2**12, 2**16, 2**21),
    )
    checks = (("kind:*", "index:*", "bounce:*", "lsize_0:64,128,256,512", "n:512"),)

    def program(self, variant: Mapping[str, str]) -> Any:
        lsize = int(variant["lsize_0"])
        source = SOURCE.replace("KIND", KINDS[variant["kind"]]).replace("BOUNCE", BOUNCES[variant["bounce"]])
        return OpenCLProgram(
            source.replace("INDEX", INDEX_TYPES[variant["index"]]),
            self.name,
            "n",
            lsize,
            [
                Array("place", "float32", "4 * n", is_output=True),
                Array("speed", "float32", "4 * n", is_output=True),
                Scalar("n", "int32"),
            ],
            (),
            f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        place, speed = (arrays[name].reshape(-1, 4).copy() for name in ("place", "speed"))
        if kernel.tags["bounce"] == "tested":
            hit = place[:, 0] * place[:, 0] + place[:, 1] * place[:, 1] > speed[:, 3]
            turned = np.stack(
                [-speed[:, 0], place[:, 0] - speed[:, 1], speed[:, 2], speed[:, 3] * np.float32(0.5)], axis=1
            )
            speed = np.where(hit[:, None], turned, speed)
        place[:, :3] += np.float32(0.125) * speed[:, :3]
        return {"place": place.reshape(-1), "speed": speed.reshape(-1)}
