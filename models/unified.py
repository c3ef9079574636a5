"""The unified model: Stevens & Klöckner, A Unified, Hardware-Fitted, Cross-GPU Performance Model (2016)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.models.probe import needs_small_sizes
from perfmodel.recipes.recipe import Recipe, TagFilter

# Section 2.1: categories of the amortized stride fraction.
FRACTIONS = (
    "0",
    "1",
    *(f"{{{part}/{s}}}" for s, top in (("2", 2), ("3", 3), ("4", 4), (">4", 4)) for part in range(1, top + 1)),
)
KINDS = ("add", "mul", "div", "pow", "special")


def _terms() -> list[str]:
    """Returns every property of section 2 with a weight of its own; the measurement kernels show those of the test
    kernels."""
    terms = ["p_const * f_sync_kernel_launch", "p_groups * f_thread_groups", "p_barrier * f_sync_barrier_local"]
    for bits in (32, 64, 128):
        for fraction in FRACTIONS:
            label = fraction.strip("{}").replace("/>", "_of_over_").replace("/", "_of_")
            for direction in ("load", "store"):
                terms.append(
                    f"p_{direction}_{bits}_{label} * f_mem_access_global_bits:{bits}_{direction}_asf:{fraction}"
                )
            terms.append(f"p_min_{bits}_{label} * f_mem_min_global_bits:{bits}_asf:{fraction}")
        terms.append(f"p_local_{bits} * f_mem_access_local_bits:{bits}_load")
        if bits <= 64:
            terms += [f"p_{kind}_{bits} * f_op_float{bits}_{kind}_contract:off" for kind in KINDS]
    return terms


MODEL = "\n+ ".join(_terms())

Sizes = Mapping[str, str]

# p of the published series n = 2^(p+t), for devices that take less than a millisecond for 512^3 multiply-adds, and for
# others; the smallest sizes are the first that take several times as long as a launch.
LARGE: Sizes = {
    "matmul": "2^(8+t)",
    "naive": "2^(8+t)",
    "scale_add": "2^(19+2t)",
    "transpose": "2^(10+t)",
    "global_copy": "2^(18+t)",
    "filled_stride": "2^(15+3t)",
    "arithmetic": "2^(8+t)",
    "empty": "2^(8+t)",
    "finite_difference": "2^(11+t)",
    "skinny": "2^(9+t)",
    "convolution": "2^(8+t)",
    "nbody": "2^(11+t)",
}
SMALL: Sizes = {
    "matmul": "2^(6+t)",
    "naive": "2^(6+t)",
    "scale_add": "2^(16+2t)",
    "transpose": "2^(8+t)",
    "global_copy": "2^(15+t)",
    "filled_stride": "2^(12+3t)",
    "arithmetic": "2^(5+t)",
    "empty": "2^(6+t)",
    "finite_difference": "2^(8+t)",
    "skinny": "2^(5+t)",
    "convolution": "2^(5+t)",
    "nbody": "2^(9+t)",
}


def measurement_classes(sizes: Sizes) -> dict[str, tuple[str, ...]]:
    """Returns section 4.1's nine classes (that of filled accesses at strides 2 and 3 counts as two)."""
    return {
        "matrix multiplication": (
            *("matmul", "tiled_prefetch:True", "shape:square,short_l,short_m,short_n"),
            *("lsizes:2-D_Large", f"n:{sizes['matmul']}:4"),
        ),
        "naive matrix multiplication": (
            *("matmul_sq", "tiled_prefetch:False", "lsizes:2-D_Large", f"n:{sizes['naive']}:4"),
        ),
        "vector scale and add": ("scale_add", "stride:1,2,3", "lsizes:1-D_Large", f"n:{sizes['scale_add']}:4"),
        "transpose": ("transpose", "access:*", "lsizes:2-D_Med", f"n:{sizes['transpose']}:4"),
        "stride-1 global access": ("global_copy", "loads:1,4,0", "lsizes:1-D_Large", f"n:{sizes['global_copy']}:9"),
        "stride-2 filled global access": (
            *("filled_stride", "stride:2", "lsizes:1-D_Large", f"n:{sizes['filled_stride']}:4"),
        ),
        "stride-3 filled global access": (
            *("filled_stride", "stride:3", "lsizes:1-D_Large", f"n:{sizes['filled_stride']}:4"),
        ),
        "arithmetic operations": (
            *("arithmetic", "op:*", "lsizes:2-D_Large", "k:256,512,728", f"n:{sizes['arithmetic']}:3"),
        ),
        "empty kernel": ("empty", "lsizes:2-D_Large", f"n:{sizes['empty']}:6"),
    }


def evaluation_kernels(sizes: Sizes) -> dict[str, tuple[str, ...]]:
    """Returns section 5's four test kernels, in work-groups of 256 work-items."""
    return {
        "Finite Difference": ("finite_difference", "fetch:halo", "lsizes:16x16", f"n:{sizes['finite_difference']}:4"),
        "Skinny MM": (*("matmul", "tiled_prefetch:True", "shape:skinny", "lsizes:16x16", f"n:{sizes['skinny']}:4"),),
        "Convolution": ("convolution", "lsizes:16x16", f"n:{sizes['convolution']}:4"),
        "N-Body": ("nbody", "prefetch:True", "lsizes:256", f"n:{sizes['nbody']}:4"),
    }


LABELS = {
    "finite_difference": "Finite Difference",
    "matmul": "Skinny MM",
    "convolution": "Convolution",
    "nbody": "N-Body",
}


def sizes_for(seconds_of: Callable[[TagFilter], float]) -> Sizes:
    return SMALL if needs_small_sizes(seconds_of) else LARGE


class Unified(Recipe):
    """The published model: linear, weights of either sign, least squares of relative errors."""

    name = "unified"
    summary = "the unified linear model of 2016: nine classes of measurement kernels, four test kernels"
    models: ClassVar = {"unified": MODEL}
    ranked = False
    # Table 1.
    published: ClassVar = {
        "Titan X": {"Finite Difference": 0.30, "Skinny MM": 0.08, "N-Body": 0.32, "Convolution": 0.10},
        "Tesla C2070": {"Finite Difference": 0.10, "Skinny MM": 0.10, "N-Body": 0.27, "Convolution": 0.13},
        "Tesla K40": {"Finite Difference": 0.01, "Skinny MM": 0.13, "N-Body": 0.54, "Convolution": 0.03},
        "R9 Fury": {"Finite Difference": 0.63, "Skinny MM": 0.28, "N-Body": 0.76, "Convolution": 0.23},
    }

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return list(measurement_classes(sizes_for(seconds_of)).values())

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return list(evaluation_kernels(sizes_for(seconds_of)).values())

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        return {"nonnegative": False}

    def label(self, kernel: Kernel) -> str:
        return LABELS[kernel.name]
