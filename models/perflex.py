"""Perflex (2018 slides): a model made for one computation, linear or with memory and on-chip work overlapped.

Every access pattern of the computation has a parameter of its own. They are calibrated with microbenchmarks and with
the computation's own accesses isolated by work removal; no whole kernel is measured but those that are predicted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from perfmodel.kernels.kernel import Kernel
from perfmodel.models.probe import needs_small_sizes
from perfmodel.recipes.recipe import Recipe, TagFilter, tag_filters

# "Two types of models"; the terms are each computation's.
OVERHEAD = "overhead = p_launch * f_sync_kernel_launch + p_group * f_thread_groups"
LINEAR = "overhead + gmem + onchip"
OVERLAP = "overhead + smooth_max(gmem, onchip, p_edge)"

LOAD, STORE = "f_mem_access_global_float32_load", "f_mem_access_global_float32_store"

# "Matmul model"; in braces, strides along local axes.
MATMUL = f"""{OVERHEAD}
gmem     = p_r * {STORE}_lstrides:{{0:1;1:>15}}
           + p_bf * {LOAD}_lstrides:{{0:1;1:>15}}_gstrides:{{0:>1;1:0}}
           + p_af * {LOAD}_lstrides:{{0:1;1:>15}}_gstrides:{{0:0;1:>15}}
           + p_b * {LOAD}_lstrides:{{0:1;1:0}}_gstrides:{{0:>1;1:0}}_afr:>1
           + p_a * {LOAD}_lstrides:{{0:0;1:>15}}
onchip   = p_madd * f_op_float32_madd + p_loc * f_mem_access_local_float32
"""

# The matrices D and the field u, each as a tile or element by element, and u and the result in both layouts.
DG = f"""{OVERHEAD}
gmem     = p_result * {STORE}_var:result_lstrides:{{0:>1}} + p_result_t * {STORE}_var:result_lstrides:{{0:1}}
           + p_matrix * {LOAD}_var:D_lstrides:{{0:0}} + p_matrix_tile * {LOAD}_var:D_lstrides:{{0:1}}
           + p_field * {LOAD}_var:u_lstrides:{{0:>1;1:0}} + p_field_t * {LOAD}_var:u_lstrides:{{0:1;1:0}}
           + p_field_tile * {LOAD}_var:u_lstrides:{{0:1;1:>0}}
onchip   = p_madd * f_op_float32_madd + p_loc * f_mem_access_local_float32 + p_barrier * f_sync_barrier_local
"""

FD = f"""{OVERHEAD}
gmem     = p_f * {STORE}_var:f + p_u * {LOAD}_var:u_afr:<=1 + p_tile * {LOAD}_var:u_afr:>1
onchip   = p_madd * (f_op_float32_madd + f_op_float32_add + f_op_float32_mul) + p_loc * f_mem_access_local_float32
           + p_barrier * f_sync_barrier_local
"""

# Braces stand for sizes: items of a work-item loop, work-groups, and how many operations or accesses each does.
MICROBENCHMARKS = """\
throughput op:madd,add,mul n:{items} m:{work}
local_access direction:load,store n:{items} m:64,256
barrier n:{few_items},{items} m:64,256
launch groups:{groups}
"""

SIZES = {
    False: {"items": "2^18", "few_items": "2^15", "work": "128,256", "groups": "1024,16384,262144"},
    True: {"items": "2^12", "few_items": "2^9", "work": "128,256", "groups": "16,256,4096"},
}


class Computation(Recipe):
    """A recipe of one computation, with what all such recipes share.

    Attributes:
        variants: the tags of all its variants.
        sizes: by whether the device needs small ones: for isolated accesses, and for predictions.
    """

    variants: ClassVar[TagFilter]
    sizes: ClassVar[Mapping[bool, tuple[str, str]]]

    @abstractmethod
    def microbenchmarks(self, is_small: bool) -> Sequence[TagFilter]:
        """Returns filters of the kernels that calibrate what is not the computation's own."""

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        is_small = needs_small_sizes(seconds_of)
        return [*self.microbenchmarks(is_small), [*self.variants, "work_removed:True", self.sizes[is_small][0]]]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return [[*self.variants, self.sizes[needs_small_sizes(seconds_of)][1]]]


class _Published(Computation):
    def microbenchmarks(self, is_small: bool) -> Sequence[TagFilter]:
        return tag_filters(MICROBENCHMARKS, SIZES[is_small])


class MatrixMultiplication(Computation):
    variants = ("matmul_sq", "lsizes:16x16", "tiled_prefetch:*")
    sizes: ClassVar = {
        False: ("n:1024,1536,2048,3072,4096", "n:1024,1536,2048,2560,3072,3584,4096,5120,6144,8192"),
        True: ("n:256,384,448,512", "n:320,384,448,576,640,704,832"),
    }
    # "Matrix Multiplication Accuracy", nonlinear model.
    published: ClassVar = {
        "Tesla K40c": {"prefetch": 0.055, "no fetch": 0.022},
        "Titan X": {"prefetch": 0.042, "no fetch": 0.048},
        "Tesla C2070": {"prefetch": 0.047, "no fetch": 0.076},
        "R9 Fury": {"prefetch": 0.065, "no fetch": 0.048},
    }

    def label(self, kernel: Kernel) -> str:
        return "prefetch" if kernel.tags["tiled_prefetch"] == "True" else "no fetch"


class DGDifferentiation(Computation):
    variants = ("dg", "lsizes:16x16", "fetch:*", "layout:*")
    sizes: ClassVar = {
        False: (
            "elements:65536,131072,262144,524288",
            "elements:32768,65536,131072,196608,262144,327680,393216,524288,655360",
        ),
        True: ("elements:2048,4096,8192", "elements:1024,2048,4096,6144,8192,12288,16384"),
    }
    # "Discontinuous Galerkin Accuracy", nonlinear model.
    published: ClassVar = {
        "R9 Fury": {"fetch diff": 0.460, "fetch vec": 0.136, "no fetch": 0.034},
        "Tesla K40c": {"fetch diff": 0.218, "fetch vec": 0.257, "no fetch": 0.027},
        "Tesla C2070": {"fetch diff": 0.127, "fetch vec": 0.323, "no fetch": 0.127},
        "Titan X": {"fetch diff": 0.403, "fetch vec": 0.024, "no fetch": 0.003},
    }

    def label(self, kernel: Kernel) -> str:
        fetch = "no fetch" if kernel.tags["fetch"] == "none" else f"fetch {kernel.tags['fetch']}"
        return fetch + (", transposed" if kernel.tags["layout"] == "transposed" else "")


class FiniteDifferences(Computation):
    variants = ("finite_difference", "lsizes:16x16", "fetch:*")
    sizes: ClassVar = {
        # Tiles of 16 x 16 compute 14 x 14 points: their sizes are multiples of 14, and all variants have those of 112.
        False: (
            "n:2048,2058,4096,4102,8192,8204,12288",
            "n:2048,2058,4096,4102,6144,8192,8204,10240,12288,14336,16384,16394",
        ),
        True: ("n:560,1120,2240", "n:1008,1568,2016,2576,3024,4032"),
    }
    # "Finite Difference Accuracy", linear model.
    published: ClassVar = {
        "Tesla C2070": {"16x16 tiles": 0.016, "18x18 tiles": 0.063},
        "Tesla K40c": {"16x16 tiles": 0.045, "18x18 tiles": 0.058},
        "Titan X": {"16x16 tiles": 0.155, "18x18 tiles": 0.087},
        "R9 Fury": {"16x16 tiles": 0.273},
    }

    def label(self, kernel: Kernel) -> str:
        return {"group": "16x16 tiles", "halo": "18x18 tiles", "none": "no tiles"}[kernel.tags["fetch"]]


class PerflexMatmul(MatrixMultiplication, _Published):
    name = "perflex-matmul"
    summary = "square matrix multiplication with and without prefetch, from its isolated accesses (2018 slides)"
    models: ClassVar = {"linear": MATMUL + LINEAR, "overlap": MATMUL + OVERLAP}


class PerflexDG(DGDifferentiation, _Published):
    name = "perflex-dg"
    summary = "discontinuous Galerkin differentiation in six variants, from its isolated accesses (2018 slides)"
    models: ClassVar = {"linear": DG + LINEAR, "overlap": DG + OVERLAP}


class PerflexFD(FiniteDifferences, _Published):
    name = "perflex-fd"
    summary = "finite differences with and without tiles, from their isolated accesses (2018 slides)"
    models: ClassVar = {"linear": FD + LINEAR, "overlap": FD + OVERLAP}
