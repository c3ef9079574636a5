"""The unified model with what today's devices add: caches, coalescing, banks, waves, latency, and overlap of all that.

Each term was chosen by microbenchmarks and by cross-validation over the families of the measurement set, each left out
in turn; the test kernels' families are not in it. What the terms stand for: docs/unified-plus.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.models.unified import LABELS, LARGE, Unified, evaluation_kernels, measurement_classes, sizes_for
from perfmodel.recipes.recipe import Recipe, TagFilter, tag_filters


def _typed(dtype: str, kinds: str) -> tuple[str, ...]:
    return tuple(f"{dtype}_{kind}" for kind in kinds.split())


# Operations that cost about the same on a device share a parameter; those of a kind of their own have one each. Of each
# group the measurement set shows some, and the others are taken to cost as much.
GROUPS: dict[str, tuple[str, ...]] = {
    "p_f32": _typed("float32", "add mul madd"),
    "p_f32_minmax": _typed("float32", "min max compare abs fabs floor ceil rint round trunc"),
    "p_f32_div": _typed("float32", "div sqrt rsqrt exp exp2 tanh native"),
    "p_f32_log": _typed(
        "float32", "log log2 log10 log1p expm1 exp10 sin cos tan asin acos atan sinh cosh erf cbrt hypot fmod"
    ),
    "p_f32_pow": _typed("float32", "pow"),
    "p_f64": _typed("float64", "add mul madd min max compare abs fabs floor ceil rint round trunc"),
    "p_f64_div": _typed("float64", "div sqrt rsqrt"),
    "p_f64_exp": _typed(
        "float64", "exp exp2 log log2 log10 log1p expm1 sin cos tan asin acos atan sinh cosh tanh erf cbrt hypot pow"
    ),
    "p_i32": (
        *_typed("int32", "add mul madd shift bitwise min max compare abs"),
        *_typed("uint32", "add mul madd shift bitwise min max compare"),
    ),
    "p_i32_div": (*_typed("int32", "div mod"), *_typed("uint32", "div mod")),
}


def sum_of(names: Sequence[str], words: str = "") -> str:
    """Returns the sum of the features of some operations, as text of a model string."""
    return "(" + " + ".join(f"f_op_{name}_{words}".rstrip("_") for name in names) + ")"


OPERATIONS = "\n           + ".join(
    f"{parameter} * {sum_of(names, 'granularity:subgroup')}" for parameter, names in GROUPS.items()
)
# What waits for itself, from one iteration of a loop to the next.
FAST = sum_of(GROUPS["p_f32"], "carried_granularity:longest")
SLOW = sum_of((*GROUPS["p_f32_div"], *GROUPS["p_f32_log"]), "carried_granularity:longest")

# What the busiest compute unit has to do, against the mean: whole work-groups, at least the one with the longest loops.
BUSY = """\
max(ceil(f_thread_groups / p_units), f_mem_rounds_global_granularity:longest / max(f_mem_rounds_global, 1))
           * p_units / f_thread_groups"""

# How work-items wait at barriers and in waves, and which part of all data the last-level cache misses.
WAITS = """\
phases   = p_phase * min(f_mem_rounds_global, f_mem_rounds_local_store, f_sync_barrier_local)
waves    = p_wave * min(f_mem_rounds_global, f_work_items)
filled   = f_mem_footprint_global_block:32 / p_cache
missed   = filled ** 8 / (1 + filled ** 8)
"""

# The caches and what is behind them, and how work-items wait for that.
MEMORY = f"""\
l1       = {BUSY} * (p_l1_global * f_mem_transactions_global_load_banks:32
                   + p_l1_local * f_mem_transactions_local_banks:32)
l2       = p_l2_load * f_mem_footprint_global_load_granularity:workgroup_block:32
           + p_l2_store * (f_mem_bytes_global_store + f_mem_bytes_global_atomic)
           + p_l2_line * (f_mem_transactions_global_store_block:128 + f_mem_transactions_global_atomic_block:128)
           + p_l2_partial * max(f_mem_footprint_global_store_granularity:workgroup_block:32
                                - f_mem_footprint_global_store_granularity:workgroup_block:4, 0)
{WAITS}dram     = p_dram * missed * f_mem_footprint_global_block:64
"""

# Barriers, and what a compute unit does for each access to global memory beside it: addresses.
ISSUED = "p_access * f_mem_access_global_granularity:subgroup + p_barrier * f_sync_barrier_local"

MODEL = f"""
launch   = p_launch * f_sync_kernel_launch
groups   = p_group * f_thread_groups
compute  = {BUSY} * ({OPERATIONS}
           + {ISSUED})
{MEMORY}near     = f_mem_footprint_global_load_granularity:workgroup_block:32 / f_thread_groups / p_near
far      = near ** 2 / (1 + near ** 2)
waits    = (p_wait_load * far + p_wait_dram * missed) * f_mem_rounds_global_granularity:longest
           + p_wait_local * f_mem_access_local_load_granularity:longest + p_wait_barrier * f_sync_barrier_local
           + p_wait_op * {FAST} + p_wait_slow * {SLOW}
latency  = waits / f_work_items
chip     = overlap(compute, l1, latency, p_chip)
launch + max(groups, overlap(chip, l2, dram + phases, waves, p_overlap))
"""

# Beside the unified model's classes, by the resource that they show. Braces stand for sizes, see `SIZES`.
FILTERS = """\
throughput op:madd,add,mul,div,pow,sqrt,rsqrt,exp,log,log10,sin,cos,min,max,tanh,atan,erf n:{items} m:128,256
throughput op:madd,add,mul,div,sqrt,exp accumulators:8 lsize_0:64,256 n:{few_items} m:256
throughput op:madd,add,div,sqrt,rsqrt,exp,log,pow,min accumulators:1,2,4 n:256,{few_items} m:256
throughput op:madd,add accumulators:1,2 n:256 m:16384
throughput dtype:float64 op:madd,add,mul,div,sqrt,exp n:{items} m:64,128
throughput dtype:float64 op:madd,div,exp accumulators:1,4 n:{few_items} m:256
throughput dtype:int32 op:madd,add,div,mod,shift n:{items} m:128
arithmetic op:* n:{few_sides} k:512
local_access direction:* lstride_0:0,1,2,3,4,8,16,32 n:{items} m:64,256
local_access direction:* lsize_0:64,128,512 n:{few_items},{items} m:64,256
barrier lsize_0:64,128,256,512 n:{few_items},{items} m:64,256
launch lsize_0:64,128,256,512 groups:{groups}
global_copy stride:1,2,3,4,8,16,32 loads:1,2,4 lsize_0:128,256,512 n:{stream}
global_copy loads:* lsize_0:64,1024 n:{stream}
global_copy dtype:float64 loads:* lsize_0:64,256,512 n:{stream}
filled_stride stride:2,3,4,8,16 lsize_0:128,256,512 n:{stream}
scale_add stride:1,2,3,4,8 lsize_0:128,256,512 n:{stream}
access_pattern arrays:1,2,4 direction:* n:{sides}
access_pattern direction:load lstride_0:0,1,2,3,4,8,16,32,64 lstride_1:0 gstride_1:0 loopstride:1 m:64,256 \
    lsizes:256x1 n:{items}
access_pattern direction:load lstride_0:0,1,2,3,4,8,16,32 lstride_1:16,64 gstride_0:0 gstride_1:0 \
    loopstride:1 m:256 lsizes:16x16,32x8 n:{sides}
access_pattern direction:load lstride_0:0,1,32 lstride_1:0 gstride_0:0,tile gstride_1:0 loopstride:1,16,256 \
    m:256,1024 lsizes:64x1,256x1 n:256,{few_items}
access_pattern direction:load dtype:float64 lstride_0:1,2,3,8,32 lstride_1:0 gstride_1:0 loopstride:1 m:64 \
    lsizes:256x1 n:{items}
access_pattern direction:* gstride_0:0 loopstride:tile_0 m:16,64 lsizes:16x16,32x8,8x8,64x4 n:{sides}
access_pattern direction:load gstride_1:0 loopstride:tile_1 m:16,64 n:{sides}
access_pattern direction:load lstride_0:0 gstride_0:0 loopstride:1 m:16,64 n:{sides}
access_pattern direction:load lstride_1:0 gstride_1:0 loopstride:n m:16,64 n:{sides}
access_pattern direction:load,copy lstride_0:n lstride_1:1 n:{sides}
overlap onchip:* ratio:* lsize_0:64,256,512 n:{items} m:{loads}
overlap onchip:* ratio:0,1,4,16 lsize_0:64,256 n:{few_items} m:{loads}
matmul shape:square,short_l,short_m,short_n tiled_prefetch:* lsizes:16x16,32x16,8x8,32x8,16x8 n:{sides_cubed}
matmul_sq tiled_prefetch:* lsizes:16x16,8x8,32x8,32x32 n:{sides_cubed}
matmul_sq dtype:float64 tiled_prefetch:* n:{sides_cubed}
matmul_sq tiled_prefetch:* work_removed:True n:{sides_cubed}
transpose access:* padding:* lsizes:16x16,32x16,32x8,8x8,64x4 n:{sides}
transpose access:* lsizes:32x32,64x8 n:{sides}
transpose dtype:float64 access:* n:{sides}
dg fetch:* layout:* elements:{elements}
dg fetch:* layout:* lsizes:32x8,64x4,16x8 elements:{elements}
dg dtype:float64 fetch:none,diff layout:* elements:{elements}
dg fetch:* layout:* work_removed:True elements:{elements}
vector_add branch:* lsize_0:64,256,512 n:{stream}
vector_add dtype:float64 n:{stream}
matrix_add branch:* lsizes:16x16,32x8,64x4 n:{sides}
matvec branch:* lsize_0:64,256,512 n:512,1024,{sides},{long_sides}
dot_product branch:* lsize_0:64,128,256,512,1024 n:{stream}
floyd_warshall dtype:float32 n:{sides}
column_sum result:* lsize_0:64,256 n:{columns} m:{rows}
tridiagonal layout:* lsize_0:64,256 n:{few_items},{items} m:64,256
row_softmax lsize_0:64,128,256,512 n:{columns} m:{rows}
matmul_tiled tile_rows:* tile_cols:* tiled_prefetch:* n:{sides_cubed}
batched_matmul order:* fetch:* n:{elements}
elementwise function:* elements:* n:{stream}
elementwise function:* lsize_0:64,512 n:{stream}
elementwise dtype:float64 function:triad,polynomial,polynomial32,log_ratio n:{stream}
resample direction:* factor:* lsizes:16x16,32x8 n:{image_sides}
permute_axes order:* coalesced:* n:{cube_sides}
pairwise layout:* fetch:* n:{image_sides} d:16,64,256
triangular access:* lsize_0:64,256 n:{sides}
"""

SIZES = {
    True: {
        "items": "2^18",
        "few_items": "2^13,2^15",
        "few_sides": "64,128,256",
        "groups": "1024,16384,262144",
        "stream": "2^20,2^22,2^24",
        "sides": "2048,4096",
        "long_sides": "8192,16384",
        "image_sides": "1024,2048",
        "cube_sides": "128,256,512",
        "columns": "2048,8192,65536",
        "rows": "512,2048",
        "sides_cubed": "512,1024,2048",
        "elements": "65536,262144",
        "loads": "64",
    },
    False: {
        "items": "2^12",
        "few_items": "2^9",
        "few_sides": "32,64",
        "groups": "16,256,4096",
        "stream": "2^17,2^20",
        "sides": "512,1024",
        "long_sides": "2048",
        "image_sides": "256,512",
        "cube_sides": "64,128",
        "columns": "256,1024",
        "rows": "512,1024",
        "sides_cubed": "128,256",
        "elements": "2048,8192",
        "loads": "16",
    },
}


def options(device: Device | None) -> Mapping[str, Any]:
    """Returns options for a fit of these resources: what is known of the device, and residuals that no few kernels
    bend."""
    units = float(device.compute_units) if device else 1.0
    return {"parameters": {"p_units": units}, "residuals": "logarithmic"}


class UnifiedPlus(Recipe):
    """One model for kernels of any kind; calibrated without any kernel of the test kernels' families."""

    name = "unified-plus"
    summary = "the unified model with caches, coalescing, banks, waves, latency and overlap"
    models: ClassVar = {"unified-plus": MODEL}
    ranked = False
    published = Unified.published

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        sizes = sizes_for(seconds_of)
        return [*measurement_classes(sizes).values(), *tag_filters(FILTERS, SIZES[sizes is LARGE])]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return list(evaluation_kernels(sizes_for(seconds_of)).values())

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        return options(device)

    def label(self, kernel: Kernel) -> str:
        return LABELS[kernel.name]
