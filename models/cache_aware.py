"""The cache-aware static model (Pöppl and Herz, UCHPC 2015): the time of OpenCL C from its source, sizes and a device.

Everything that a prediction needs follows from the source as a compiler leaves it, see `Kernel.as_compiled`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.models.gpu_terms import MEANINGS
from perfmodel.models.unified import LARGE, measurement_classes, sizes_for
from perfmodel.models.unified_plus import BUSY, FILTERS, GROUPS, SIZES, options
from perfmodel.recipes.recipe import Recipe, TagFilter, tag_filters


def _sum(names: Sequence[str], words: str = "") -> str:
    return "(" + " + ".join(f"f_op_{name}_{words}".rstrip("_") for name in names) + ")"


def _typed(dtypes: str, kinds: str, index: bool = False) -> list[str]:
    return [f"{dtype}_{kind}" + ("_index" if index else "") for dtype in dtypes.split() for kind in kinds.split()]


SIMPLE = "add mul madd shift bitwise min max compare abs"
OPERATIONS: dict[str, list[str]] = {
    **{name: list(kinds) for name, kinds in GROUPS.items() if name not in ("p_i32", "p_i32_div")},
    "p_i32": _typed("int32 uint32", SIMPLE),
    "p_i32_div": [*_typed("int32 uint32", "div mod"), *_typed("int32 uint32", "div mod", index=True)],
    # Of either width: compilers turn most of the wide ones into narrow ones, or into steps of pointers.
    "p_index": _typed("int32 uint32 int64 uint64", SIMPLE, index=True),
    "p_i64": _typed("int64 uint64", "add shift bitwise min max compare abs"),
    "p_i64_mul": _typed("int64 uint64", "mul madd"),
    "p_i64_div": [*_typed("int64 uint64", "div mod"), *_typed("int64 uint64", "div mod", index=True)],
    "p_convert": _typed("float32 float64", "convert"),
}

COMPUTE = "\n           + ".join(
    f"{parameter} * {_sum(names, 'granularity:subgroup')}" for parameter, names in OPERATIONS.items()
)
FAST = _sum(GROUPS["p_f32"], "carried_granularity:longest")
SLOW = _sum((*GROUPS["p_f32_div"], *GROUPS["p_f32_log"]), "carried_granularity:longest")

# What an access brings into the second-level cache: of arrays that a first-level cache does not keep as a whole. Those
# that jump about bring single sectors, and go to memory for the part of their reach that is beyond the cache.
LOADED = "f_mem_footprint_global_load_granularity:workgroup_block:32"
GATHERED = "f_mem_scattered_global_load_block:32_reach:>196608"
MISSED = "f_mem_scattered_global_load_fresh_block:32_reach:>8000000"
TURNS = "f_mem_scattered_global_load_fresh_turns_block:32_reach:>8000000"

RESIDENT = 2048
"""So many work-items run on a compute unit at a time, at most."""

MODEL = f"""
transfer = p_to * f_transfer_bytes_to + p_to_latency * f_transfers_to + p_from * f_transfer_bytes_from \
+ p_from_latency * f_transfers_from
launch   = p_launch * f_sync_kernel_launch
groups   = p_group * f_thread_groups
compute  = {BUSY} * ({COMPUTE}
           + p_access * f_mem_access_global_load_granularity:subgroup
           + p_store * f_mem_access_global_store_granularity:subgroup + p_barrier * f_sync_barrier_local)
l1       = {BUSY} * (p_l1_global * f_mem_transactions_global_load_banks:32
                   + p_l1_line * f_mem_transactions_global_load_block:128
                   + p_l1_local * f_mem_transactions_local_banks:32
                   + p_l1_scratch * f_mem_transactions_scratch_block:128)
own      = f_mem_scratch / f_work_items * min(f_work_items / p_units, {RESIDENT}) / p_near_scratch
spilled  = own ** 2 / (1 + own ** 2) * f_mem_transactions_scratch_block:128
contend  = p_contend * (f_mem_contended_global_atomic_block:512 + f_mem_contended_global_store_block:512)
l2       = p_l2_scratch * spilled + p_l2_atomic * f_mem_transactions_global_atomic_block:32
           + p_l2_load * {LOADED}_beyond:65536 + p_gather * {GATHERED}
           + p_l2_store * f_mem_bytes_global_store + p_l2_line * f_mem_transactions_global_store_block:128
           + p_l2_partial * max(f_mem_footprint_global_store_granularity:workgroup_block:32
                                - f_mem_footprint_global_store_granularity:workgroup_block:4, 0)
phases   = p_phase * min(f_mem_rounds_global, f_mem_rounds_local_store, f_sync_barrier_local)
waves    = p_wave * min(f_mem_rounds_global, f_work_items)
filled   = f_mem_footprint_global_block:32 / p_cache
missed   = filled ** 8 / (1 + filled ** 8)
scatter  = p_scatter * max({MISSED} - p_kept * {TURNS}, 0)
dram     = p_dram * missed * f_mem_footprint_global_block:64 + scatter
near     = {LOADED} / f_thread_groups / p_near
far      = near ** 2 / (1 + near ** 2)
waits    = p_wait_scratch * f_mem_access_scratch_load_granularity:longest
           + (p_wait_load * far + p_wait_dram * missed) * f_mem_rounds_global_granularity:longest
           + p_wait_local * f_mem_access_local_load_granularity:longest + p_wait_barrier * f_sync_barrier_local
           + p_wait_op * {FAST} + p_wait_slow * {SLOW}
latency  = waits / f_work_items
chip     = overlap(compute, l1, latency, p_chip)
transfer + launch + max(groups, overlap(chip, l2, dram + phases, waves, contend, p_overlap))
"""

# --- as published

ACCESS = "f_mem_access_global_{direction}_class:{kind}"
CLASSES = ("continuous", "constant", "interval", "identical", "complex")
# W(n) saturates for the operations that all kernels have; of others there are as many as a line of source has.
SATURATING = {"float": "p_f32", "division": "p_f32_div", "integer": "p_index", "quotient": "p_i32_div"}
N_SATURATED = 8.0


def _cost(name: str, parameter: str) -> str:
    n = f"{_sum(OPERATIONS[parameter])} / f_work_items"
    own = ", ".join(f"p_{name}_{part}" for part in ("a", "b", "c", "slope", "base", "saturated"))
    return f"step({n} - 0.5) * saturating(max({n}, 0.001), {own}) * f_work_items"


def _published(accesses: str) -> str:
    others = [parameter for parameter in OPERATIONS if parameter not in SATURATING.values()]
    return "\n".join(
        [
            "transfer = p_to * f_transfer_bytes_to + p_to_latency * f_transfers_to + p_from * f_transfer_bytes_from"
            " + p_from_latency * f_transfers_from",
            "base = p_base_fixed * f_sync_kernel_launch + p_base * f_work_items",
            "operations = " + " + ".join(_cost(name, parameter) for name, parameter in SATURATING.items()),
            "others = " + " + ".join(f"{p} * {_sum(OPERATIONS[p])}" for p in others),
            f"accesses = {accesses}",
            "onchip = p_local_load * f_mem_access_local_load + p_local_store * f_mem_access_local_store"
            " + p_barrier * f_sync_barrier_local",
            "utilization = group_utilization(f_work_items / f_thread_groups, p_lanes)",
            "transfer + (base + operations + others + accesses + onchip) / utilization",
        ]
    )


AWARE = _published(
    " + ".join(
        f"p_{direction}_{kind} * {ACCESS.format(direction=direction, kind=kind)}"
        for direction in ("load", "store")
        for kind in CLASSES
        if direction == "load" or kind in ("continuous", "complex")
    )
)
UNAWARE = _published("p_load * f_mem_access_global_load + p_store * f_mem_access_global_store")

# --- kernels

# The device's characterization, by what it shows. Braces stand for sizes.
MICROBENCHMARKS = """\
straight_operations op:add,mul,madd,div,sqrt,rsqrt,exp,log,sin m:1,4,16,64 chains:1 n:{few},{many},{most}
straight_operations op:add,mul,madd,div,sqrt,exp m:4,16,64 chains:4 n:{few},{many},{most}
straight_operations dtype:float64 op:add,mul,madd,div,sqrt,exp m:1,4,16,64 chains:1 n:{few},{many}
straight_operations dtype:int32,uint32 op:add,mul,madd,div,mod m:1,4,16 chains:1 n:{few},{many},{most}
straight_operations dtype:int32,uint32 op:add,mul,madd,div,mod m:4,16 chains:4 n:{many}
throughput dtype:int64 op:add,mul,madd,div n:{few} m:32,64
access_classes access:{classes} m:1,2,4,8,16 axes:1 n:{some},{many}
access_classes access:row_interval,continuous,interval m:1,2,4,8,16 axes:2 n:{some},{many},{most}
access_classes access:continuous,interval,same,constant,identical m:1,4,16 n:{most}
access_classes access:complex window:{windows} m:1,2,4 n:{some},{many}
access_classes access:complex window:1024,16384,262144 m:1,2,4,8,16 n:{some},{many},{most}
access_classes access:complex window:{far_windows} m:1,2,4 n:{most}
access_classes access:complex window:65536,131072,1048576 m:1,4,16 n:{some},{many}
access_classes access:complex dtype:float64 window:262144,4194304,16777216 m:1,4 n:{some},{many}
access_classes access:complex direction:store window:{far_windows} m:1,2 n:{some},{many}
access_classes access:strided stride:2,32 m:1,2,4 n:{some},{many}
access_classes direction:store access:continuous,same,strided,complex,local m:1,2,4,8 n:{some},{many}
access_classes dtype:float64 access:{classes} m:1,4 n:{some},{many}
access_classes access:continuous,complex,interval lsize_0:64,512 m:1,4,16 n:{many}
index_arithmetic op:* operand:* by:1000,1024,7 m:1,4,8 n:{many},{most}
work_group_size lsize_0:* n:{some},{many},{most}
vector_add transfers:True n:2^10,2^12,2^14,2^16,2^18,2^20,2^22,2^24,{copied}
global_copy transfers:True loads:1,2,4 n:2^10,2^14,2^16,2^18,2^20,2^22,2^24,{copied}
access_classes transfers:True direction:store m:1,2,4,8 n:2^20,2^22
"""
# What the programs of others do beside that, for our model alone.
EVERYDAY = """\
atomic_update space:* place:* op:* counters:1,32,1024,65536,4194304 m:1,4,16 n:{few},{some}
atomic_update space:* place:* counters:1,1024 m:16,64 lsize_0:64,256,512 n:{few_items},{some}
private_array start:* access:* words:4,8,16,32,64,128,256 m:64,256 n:{few},{some}
private_array start:* access:* words:16,64,256 m:256 lsize_0:64 n:{few_items},{some}
pointer_chase waits:* span:{spans} m:16,64 n:{few_items},{few},{some}
"""
CLASS_TAGS = "continuous,constant,interval,row_interval,same,identical,strided,complex,local"
COUNTS = {
    True: {
        "few_items": "2^13,2^15",
        "spans": "1024,16384,262144,4194304,67108864",
        "few": "2^18",
        "some": "2^20",
        "many": "2^22",
        "most": "2^24",
        "windows": "8388608,16777216,33554432,67108864",
        "far_windows": "16777216,67108864",
        "copied": "2^26",
    },
    False: {
        "few_items": "2^9,2^11",
        "spans": "1024,16384,262144,4194304",
        "few": "2^14",
        "some": "2^16",
        "many": "2^18",
        "most": "2^20",
        "windows": "4194304,8388608",
        "far_windows": "8388608",
        "copied": "2^25",
    },
}
SETS = ("realistic", "unrestricted")
SEEDS = "1..1000"
SIDE = {True: 4096, False: 1024}
CHARACTERIZATION = frozenset(line.split()[0] for line in MICROBENCHMARKS.strip().splitlines())


class CacheAware(Recipe):
    """Random kernels, predicted from their source.

    ``simple`` and ``classes`` are the published forms, without and with classes of accesses, calibrated by what the
    paper characterizes a device with; ``cache-aware`` is ours, calibrated with unified-plus's kernels as well.
    """

    name = "cache-aware"
    summary = "random kernels from their OpenCL C alone, with what caches do (Pöppl and Herz)"
    models: ClassVar = {"simple": UNAWARE, "classes": AWARE, "cache-aware": MODEL}
    meanings: ClassVar = {"cache-aware": MEANINGS}
    ranked = False
    baselines = False

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        sizes = sizes_for(seconds_of)
        counts = {"classes": CLASS_TAGS, **COUNTS[sizes is LARGE]}
        return [
            *measurement_classes(sizes).values(),
            *tag_filters(FILTERS, SIZES[sizes is LARGE]),
            *tag_filters(MICROBENCHMARKS, counts),
            *tag_filters(EVERYDAY, counts),
        ]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        side = SIDE[sizes_for(seconds_of) is LARGE]
        random = [["random_expression", f"set:{name}", f"seed:{SEEDS}", f"n:{side}"] for name in SETS]
        return [*random, ["sq_mod", f"m:{side // 4},{side}", f"n:{side // 4},{side}"]]

    def is_fitted_to(self, model: str, kernel: Kernel) -> bool:
        return model == self.name or kernel.name in CHARACTERIZATION

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        if model != self.name:
            held: dict[str, Any] = {f"p_{name}_saturated": N_SATURATED for name in SATURATING}
            held |= {f"p_{name}_b": (0.3, 2.0) for name in SATURATING}  # as 0 would make a and c one parameter
            return {"parameters": {"p_lanes": 32.0, **held}, "residuals": "logarithmic"}
        caches = {
            "p_cache": {"value": 4e7, "min": 1e6, "max": 8e7},
            "p_kept": {"value": 3e7, "min": 1e6, "max": 6e7},
            "p_near_scratch": {"value": 1e5, "min": 2e4, "max": 3e5},
        }
        return {"parameters": {**options(device)["parameters"], **caches}, "residuals": "logarithmic"}

    def label(self, kernel: Kernel) -> str:
        return kernel.tags.get("set", kernel.name)
