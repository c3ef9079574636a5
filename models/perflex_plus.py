"""Perflex's computations under one model of more than two overlapped resources, still without measuring any of them.

The resources are unified-plus's, without what only launches of few work-items show. Beside microbenchmarks of each
resource, the computation's own accesses are measured, isolated by work removal, as for the published models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.device import Device
from perfmodel.models.perflex import (
    Computation,
    DGDifferentiation,
    FiniteDifferences,
    MatrixMultiplication,
)
from perfmodel.models.unified_plus import BUSY, ISSUED, MEMORY, SIZES, options
from perfmodel.recipes.recipe import TagFilter, tag_filters

MODEL = f"""
groups   = p_group * f_thread_groups
compute  = {BUSY} * (p_f32 * (f_op_float32_add_granularity:subgroup + f_op_float32_mul_granularity:subgroup
                           + f_op_float32_madd_granularity:subgroup) + {ISSUED})
{MEMORY}p_launch * f_sync_kernel_launch + max(groups, overlap(compute, l1, l2, dram + phases, waves, p_overlap))
"""

# By the resource that they show. Braces stand for unified-plus's sizes.
MICROBENCHMARKS = """\
throughput op:madd,add,mul n:{items} m:128,256
local_access direction:* lstride_0:0,1,2,4,8,16 n:{items} m:64,256
local_access direction:* lsize_0:64,512 n:{items} m:64,256
barrier lsize_0:64,256 n:{items} m:64,256
launch lsize_0:64,128,256,512 groups:{groups}
empty lsizes:2-D_Large n:64,256
global_copy loads:* lsize_0:64,128,256,512,1024 n:{stream}
scale_add lsize_0:128,256,512 n:{stream}
access_pattern direction:load lstride_0:0,1,2,3,4,8,16,32,64 lstride_1:0 gstride_1:0 loopstride:1 m:64,256 \
    lsizes:256x1 n:{items}
access_pattern direction:load lstride_0:0,1,2,3,4,8,16,32 lstride_1:16,64 gstride_0:0 gstride_1:0 \
    loopstride:1 m:256 lsizes:16x16,32x8 n:{sides}
access_pattern direction:* gstride_0:0 loopstride:tile_0 m:16,64 lsizes:16x16,32x8,8x8,64x4 n:{sides}
access_pattern direction:load gstride_1:0 loopstride:tile_1 m:16,64 n:{sides}
access_pattern direction:load lstride_0:0 gstride_0:0 loopstride:1 m:16,64 n:{sides}
access_pattern direction:load lstride_1:0 gstride_1:0 loopstride:n m:16,64 n:{sides}
overlap onchip:* ratio:* lsize_0:64,256,512 n:{items} m:{loads}
transpose access:* padding:* lsizes:16x16,32x16,32x8,8x8,64x4 n:{sides}
"""


class _Resources(Computation):
    models: ClassVar = {"resources": MODEL}

    def microbenchmarks(self, is_small: bool) -> Sequence[TagFilter]:
        return tag_filters(MICROBENCHMARKS, SIZES[not is_small])

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        return options(device)


class PerflexMatmulPlus(MatrixMultiplication, _Resources):
    name = "perflex-matmul-plus"
    summary = "square matrix multiplication from microbenchmarks and its isolated accesses, five resources overlapped"


class PerflexDGPlus(DGDifferentiation, _Resources):
    name = "perflex-dg-plus"
    summary = "discontinuous Galerkin differentiation in six variants, five resources overlapped"


class PerflexFDPlus(FiniteDifferences, _Resources):
    name = "perflex-fd-plus"
    summary = "finite differences with and without tiles, five resources overlapped"
