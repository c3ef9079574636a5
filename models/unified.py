"""The measurement and test kernels of the unified model (Stevens & Klöckner 2016, sections 4.1 and 5), as tag filters.

Sizes are the published series, with p chosen for the device; work-groups those that the paper gives its largest GPU.
"""

from __future__ import annotations

MEASUREMENT_CLASSES: dict[str, tuple[str, ...]] = {
    "matrix multiplication": (
        "matmul",
        "tiled_prefetch:True",
        "shape:square,short_l,short_m,short_n",
        "lsizes:2-D_Large",
        "n:2^(p+t):4",
    ),
    "naive matrix multiplication": ("matmul_sq", "tiled_prefetch:False", "lsizes:2-D_Large", "n:2^(p+t):4"),
    "vector scale and add": ("scale_add", "stride:1,2,3", "lsizes:1-D_Large", "n:2^(p+2t):4"),
    "transpose": ("transpose", "access:*", "lsizes:2-D_Med", "n:2^(p+t):4"),
    "stride-1 global access": ("global_copy", "loads:1,4,0", "lsizes:1-D_Large", "n:2^(p+t):9"),
    "stride-2 filled global access": ("filled_stride", "stride:2", "lsizes:1-D_Large", "n:2^(p+3t):4"),
    "stride-3 filled global access": ("filled_stride", "stride:3", "lsizes:1-D_Large", "n:2^(p+3t):4"),
    "arithmetic operations": ("arithmetic", "op:*", "lsizes:2-D_Large", "k:256,512,728", "n:2^(p+t):3"),
    "empty kernel": ("empty", "lsizes:2-D_Large", "n:2^(p+t):6"),
}
"""The paper's nine classes; it counts the filled accesses at strides 2 and 3 as two."""

TEST_KERNELS: dict[str, tuple[str, ...]] = {
    "finite differences": ("finite_difference", "fetch:halo", "lsizes:16x16", "n:2^(p+t):4"),
    "skinny matrix multiplication": (
        "matmul",
        "tiled_prefetch:True",
        "shape:skinny",
        "lsizes:16x16",
        "n:2^(p+t):4",
    ),
    "convolution": ("convolution", "lsizes:16x16", "n:2^(p+t):4"),
    "n-body": ("nbody", "prefetch:True", "lsizes:256", "n:2^(p+t):4"),
}
